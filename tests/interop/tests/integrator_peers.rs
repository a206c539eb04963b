//! A charm on the libraries of Python charms, related to the packed istio-integrator in a model on a real API server:
//! each library reads what istio-integrator says, and what the libraries ask for is in the cluster.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use interop::charm_files::{pack_python, packed};
use interop::played_istiod::PlayedIstiod;
use interop::venv::Venv;
use juju_sim::clock::SystemClock;
use juju_sim::{DeployRequest, Model, Options};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use testbed::{Api, Beside, ControlPlane, RealCloud, V1_31};

const INTEGRATOR: &str = "istio-integrator";
/// How often a model is asked to look again before it must be settled.
const TRIES: usize = 6;

/// Longest wait for a played pod.
const LIMIT: Duration = Duration::from_mins(1);

struct Lab {
    model: Model,
    api: Api,
    _istiod: PlayedIstiod,
    _cluster: ControlPlane,
    _dir: TempDir,
}

fn charm(name: &str) -> PathBuf {
    let start = format!("{name}_");
    let found = packed().unwrap().into_iter().find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&start))
    });
    found.expect("the charms are not packed: run `cargo xtask pack`")
}

/// A gateway as somebody else installs it, behind a load balancer that has an address. No istiod is there to complete
/// its pods.
fn gateway(api: &Api) {
    const NAME: &str = "istio-ingressgateway";
    let namespace = "/api/v1/namespaces/istio-ingress";
    let labels = json!({"app": NAME, "istio": "ingressgateway"});
    let metadata = json!({"name": NAME, "namespace": "istio-ingress", "labels": labels});
    let ports = [("http2", 80, 8080), ("https", 443, 8443)]
        .map(|(name, port, target)| json!({"name": name, "port": port, "targetPort": target}));
    let apply = |path: &str, object: Value| api.apply(path, &object).unwrap();
    apply(
        namespace,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-ingress"}}),
    );
    apply(
        &format!("{namespace}/serviceaccounts/{NAME}"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
    );
    apply(
        &format!("/apis/apps/v1/namespaces/istio-ingress/deployments/{NAME}"),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {
                        "labels": labels,
                        "annotations": {"inject.istio.io/templates": "gateway"},
                    },
                    "spec": {
                        "serviceAccountName": NAME,
                        "containers": [
                            {"name": "istio-proxy", "image": "auto", "args": ["proxy", "router"]},
                        ],
                    },
                },
            },
        }),
    );
    api.wait_deployment("istio-ingress", NAME, LIMIT).unwrap();
    let path = format!("{namespace}/services/{NAME}");
    let mut service = apply(
        &path,
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"type": "LoadBalancer", "selector": labels, "ports": ports},
        }),
    );
    service["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}});
    api.call(&Method::PUT, &format!("{path}/status"), Some(&service))
        .unwrap();
}

impl Lab {
    /// Istio with an ingress gateway, istio-integrator and the Python charm, none of them related.
    fn up() -> Self {
        let cluster = ControlPlane::up(Beside::Pods, &mut |_| {}).unwrap();
        let api = cluster.api().unwrap();
        let cloud = Arc::new(RealCloud::connect(cluster.kubeconfig()).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            jujuc: Some(env!("CARGO_BIN_EXE_simulator").into()),
            ..Options::default()
        };
        let mut model = Model::open(dir.path(), cloud, Arc::new(SystemClock), options).unwrap();
        let payload = V1_31.payload().unwrap();
        gateway(&api);
        let istio = DeployRequest::new(charm("istio-k8s"))
            .trusted()
            .with_config("namespace", "istio-lab")
            .with_config("gateways", "[]")
            .with_resource("istio-release", payload.to_str().unwrap());
        model.deploy(&istio).unwrap();
        let integrator = DeployRequest::new(charm(INTEGRATOR))
            .trusted()
            .with_config("external-hostname", "front.example");
        model.deploy(&integrator).unwrap();
        let shop = pack_python("shop", &Venv::ready().unwrap()).unwrap();
        model.deploy(&DeployRequest::new(&shop).trusted()).unwrap();
        let reader = DeployRequest::new(&shop).trusted().named("reader");
        model.deploy(&reader).unwrap();
        let istiod = PlayedIstiod::start(&cluster).unwrap();
        // The model's namespace is there from now on.
        model.advance().unwrap();
        let lab = Self {
            model,
            api,
            _istiod: istiod,
            _cluster: cluster,
            _dir: dir,
        };
        lab.service("shop");
        lab
    }

    /// What Juju makes of an application's ports.
    fn service(&self, app: &str) {
        let name = self.model.name();
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": app, "namespace": name},
            "spec": {
                "selector": {"app.kubernetes.io/name": app},
                "ports": [{"name": "http", "port": 8080}],
            },
        });
        let path = format!("/api/v1/namespaces/{name}/services/{app}");
        self.api.apply(&path, &service).unwrap();
    }

    /// Lets hooks run until istio-integrator says that all is well.
    fn settle(&mut self) {
        for _ in 0..TRIES {
            self.model.advance().unwrap();
            let status = self.model.status();
            if status["applications"][INTEGRATOR]["application-status"]["current"] == "active" {
                return;
            }
            for app in ["istio-k8s", INTEGRATOR] {
                self.model.fire_update_status(app).unwrap();
            }
        }
        panic!(
            "{:#}\n{}",
            self.model.status()["applications"],
            self.model.debug_log().unwrap()
        );
    }

    fn integrate(&mut self, theirs: &str, ours: &str) {
        let ours = format!("{INTEGRATOR}:{ours}");
        self.model
            .integrate(&format!("shop:{theirs}"), &ours)
            .unwrap();
        self.settle();
    }

    /// What the libraries of the Python charm read.
    fn seen(&mut self) -> Value {
        let task = self.model.run("shop/0", "seen", Map::new()).unwrap();
        assert_eq!(task.status, "completed", "{task:?}");
        serde_json::from_str(task.results["seen"].as_str().unwrap()).unwrap()
    }

    /// The objects of a kind in the model's namespace.
    fn objects(&self, group: &str, plural: &str) -> Vec<Value> {
        let path = format!("/apis/{group}/namespaces/{}/{plural}", self.model.name());
        self.api.get(&path).unwrap()["items"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Every rule of our `VirtualService` objects.
    fn rules(&self) -> Vec<Value> {
        let services = self.objects("networking.istio.io/v1", "virtualservices");
        let rules = services
            .iter()
            .flat_map(|one| one["spec"]["http"].as_array().unwrap());
        rules.cloned().collect()
    }
}

#[test]
fn a_charm_on_the_python_libraries_is_served_and_reads_what_it_is_told() {
    let mut lab = Lab::up();
    lab.settle();
    lab.integrate("ingress", "ingress");
    let name = lab.model.name().to_owned();
    assert_eq!(
        lab.seen()["url"],
        format!("http://front.example/{name}-shop")
    );
    let rules = lab.rules();
    let stripped = rules.iter().find(|rule| !rule["rewrite"].is_null());
    let stripped = stripped.unwrap_or_else(|| panic!("{rules:#?}"));
    let host = &stripped["route"][0]["destination"]["host"];
    assert_eq!(*host, format!("shop.{name}.svc.cluster.local"));

    lab.integrate("route", "istio-ingress-route");
    let seen = lab.seen();
    assert_eq!(
        (&seen["host"], &seen["tls"]),
        (&json!("front.example"), &json!(false))
    );
    let rules = lab.rules();
    let team = |rule: &&Value| rule["match"][0]["headers"]["x-team"] == json!({"exact": "blue"});
    let route = rules
        .iter()
        .find(team)
        .unwrap_or_else(|| panic!("{rules:#?}"));
    assert_eq!(route["match"][0]["method"], json!({"exact": "GET"}));

    lab.integrate("gateway-metadata", "gateway-metadata");
    assert_eq!(
        lab.seen()["gateway"],
        json!({
            "namespace": "istio-ingress", "gateway_name": "istio-gateway",
            "deployment_name": "istio-ingressgateway", "service_account": "istio-ingressgateway",
        })
    );

    lab.model.integrate("reader:stock", "shop:api").unwrap();
    lab.integrate("service-mesh", "service-mesh");
    assert_eq!(lab.seen()["labels"]["sidecar.istio.io/inject"], "true");
    let policies = lab.objects("security.istio.io/v1", "authorizationpolicies");
    let lets_in = policies.iter().find(|policy| {
        policy["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] == "shop"
    });
    let rule = &lets_in.unwrap_or_else(|| panic!("{policies:#?}"))["spec"]["rules"][0];
    let who = format!("cluster.local/ns/{name}/sa/reader");
    assert_eq!(rule["from"][0]["source"]["principals"], json!([who]));
    assert_eq!(
        rule["to"][0]["operation"],
        json!({"ports": ["8080"], "methods": ["GET"], "paths": ["/stock/*"]})
    );

    lab.integrate("certificates", "certificates");
    let seen = lab.seen();
    assert_eq!(seen["names"], json!([["front.example"]]));
    assert_eq!(seen["url"], format!("https://front.example/{name}-shop"));
    assert_eq!(seen["tls"], true);
    let secrets = lab
        .api
        .get("/api/v1/namespaces/istio-ingress/secrets")
        .unwrap();
    let tls = |secret: &&Value| secret["type"] == "kubernetes.io/tls";
    assert!(
        secrets["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|secret| tls(&secret))
    );

    lab.model
        .remove_relation("shop:ingress", "istio-integrator:ingress")
        .unwrap();
    lab.settle();
    assert_eq!(lab.seen()["url"], Value::Null);
    assert_eq!(
        lab.seen()["host"],
        "front.example",
        "the other relation stays"
    );
    for hook in lab.model.hook_log().unwrap() {
        assert!(hook.ok, "{hook:?}\n{}", lab.model.debug_log().unwrap());
    }
}
