//! A cluster as istio-pilot and istio-gateway leave it: istioctl's own install in another namespace
//! than upstream's, a gateway that is written out and not injected, their routes and their filter; and
//! users with sidecars and policies.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use http::Method;
use serde_json::{Value, json};
use testbed::build::{Artifact, need};
use testbed::{Api, Node, V1_31, image, node};

use e2e::lab::HUB;

/// Applications behind the old charm's ingress.
pub(crate) const APPS: [&str; 2] = ["dash-a", "dash-b"];
/// The application that decides on requests.
pub(crate) const GATE: &str = "authsvc";
/// Namespace of the old control plane.
pub(crate) const OLD: &str = "kubeflow-lab";
/// The gateway's Deployment and Service.
pub(crate) const GATEWAY: &str = "istio-ingressgateway-workload";
/// Where the clients inside leave their counts.
pub(crate) const TALLIES: &str = "/run/istio-migration-tallies";
const LIMIT: Duration = Duration::from_mins(3);

/// The cluster.
#[derive(Debug)]
pub(crate) struct Lab {
    node: Node,
    /// A client with all rights.
    pub(crate) api: Api,
    istioctl: PathBuf,
}

impl Lab {
    /// The cluster with everything but the applications behind the gateway and the one that decides,
    /// which are charms of their names.
    ///
    /// # Errors
    /// Anything that does not build or start.
    pub(crate) fn up(say: &mut dyn FnMut(&str)) -> Result<Self> {
        let istioctl = need(&[Artifact::Istioctl(V1_31)], &mut |_| {})?
            .path(Artifact::Istioctl(V1_31))?
            .to_owned();
        let options = node::Options {
            istio: vec![V1_31],
            keep: false,
        };
        let node = Node::up(&options, say)?;
        let lab = Self {
            api: node.api()?,
            node,
            istioctl,
        };
        lab.install()?;
        lab.populate()?;
        Ok(lab)
    }

    /// A kubeconfig with all rights.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.node.kubeconfig()
    }

    /// A folder that goes when the node's logs go.
    ///
    /// # Errors
    /// The disk.
    pub(crate) fn scratch(&self) -> Result<PathBuf> {
        let folder = self.node.logs().join("juju");
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The migration's writes that the API server refused, as its audit log has them.
    pub(crate) fn refused(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.node.audit().path()).unwrap_or_default();
        let refused = log.lines().filter(|line| {
            line.contains("fieldManager=istio-migrate") && !line.contains("\"code\":20")
        });
        refused.map(str::to_owned).collect()
    }

    /// What a program inside the node says.
    ///
    /// # Errors
    /// It cannot be run.
    pub(crate) fn inside(&self, program: &str, args: &[&str]) -> Result<String> {
        let output = self.node.inside(program)?.args(args).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// As istio-pilot's install hook does.
    fn install(&self) -> Result<()> {
        let values: Value = yaml::parse(testbed::pilot_values())?;
        let mut operator = json!({
            "apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator",
            "spec": {
                "profile": "minimal", "hub": HUB, "tag": V1_31.version,
                "meshConfig": {"accessLogFile": "/dev/stdout"}, "values": values,
            },
        });
        operator["spec"]["values"]["global"]["istioNamespace"] = OLD.into();
        let file = self.kubeconfig().with_file_name("istio-operator.json");
        std::fs::write(&file, operator.to_string())?;
        self.istioctl(&["install", "-y", "-f", &file.display().to_string()])?;
        Ok(())
    }

    /// As istio-pilot's remove hook does.
    ///
    /// # Errors
    /// It fails.
    pub(crate) fn purge(&self) -> Result<String> {
        self.istioctl(&["uninstall", "--purge", "-y"])
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "istioctl is the other installer under test"
    )]
    fn istioctl(&self, args: &[&str]) -> Result<String> {
        let output = Command::new(&self.istioctl)
            .args(args)
            .env("KUBECONFIG", self.kubeconfig())
            .output()
            .context("istioctl")?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(
            output.status.success(),
            "istioctl {args:?}: {said} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(said)
    }

    /// Applies objects as the old charm's library does.
    ///
    /// # Errors
    /// One is refused.
    pub(crate) fn apply(&self, objects: impl IntoIterator<Item = Value>) -> Result<()> {
        for object in objects {
            let id = kube_apply::Object::new(object.clone())?.id();
            let kind = istio_api::kinds::lookup(&id.group, &id.kind).context("a known kind")?;
            let path = kind.path(&id.version, id.namespace.as_deref(), Some(&id.name));
            let path = format!("{path}?fieldManager=lightkube&force=true");
            self.api.call(&Method::PATCH, &path, Some(&object))?;
        }
        Ok(())
    }

    fn populate(&self) -> Result<()> {
        let injected = json!({"istio-injection": "enabled"});
        self.apply([namespace("appa", &injected), namespace("appb", &injected)])?;
        self.apply([namespace("probe-lab", &injected)])?;
        self.apply(gateway())?;
        self.pilot_writes()?;
        self.apply(routes_of_users())?;
        self.apply(["istio-pilot", "istio-ingressgateway"].map(charm_pods))?;
        self.apply(policies())?;
        for namespace in ["appa", "appb"] {
            self.apply(server(namespace, "srv", &[]))?;
        }
        self.wait(&[(OLD, GATEWAY), ("appa", "srv"), ("appb", "srv")])?;
        // Clients count from their first request on: their servers have to be there.
        for (here, there) in [("appa", "appb"), ("appb", "appa")] {
            let url = format!("http://srv.{there}:8080/");
            let allowed = format!("{here} to {there}");
            let forbidden = format!("forbidden {here} to {there}");
            self.apply(client(here, "cli", &[&allowed, "200", &url]))?;
            self.apply(client(here, "bad", &[&forbidden, "403", &url]))?;
        }
        self.wait(&[
            ("appa", "cli"),
            ("appb", "cli"),
            ("appa", "bad"),
            ("appb", "bad"),
        ])
    }

    /// What istio-pilot writes for its relations.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) fn pilot_writes(&self) -> Result<()> {
        self.apply(routes())
    }

    /// Deletes what is there.
    ///
    /// # Errors
    /// It is not there, or may not be deleted.
    pub(crate) fn delete(&self, path: &str) -> Result<()> {
        self.api.call(&Method::DELETE, path, None).map(drop)
    }

    /// Which Service the gateway's is, and its address.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn gateway_service(&self) -> Result<(Value, Value)> {
        let path = format!("/api/v1/namespaces/{OLD}/services/{GATEWAY}");
        let service = self.api.get(&path)?;
        let of = |pointer: &str| service.pointer(pointer).cloned().unwrap_or_default();
        Ok((of("/metadata/uid"), of("/spec/clusterIP")))
    }

    fn wait(&self, deployments: &[(&str, &str)]) -> Result<()> {
        for (namespace, name) in deployments {
            self.api.wait_deployment(namespace, name, LIMIT)?;
        }
        Ok(())
    }
}

/// The pods of a charm, as far as anybody looks: their `StatefulSet`.
pub(crate) fn charm_pods(application: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": application, "namespace": OLD},
        "spec": {
            "replicas": 0, "serviceName": application,
            "selector": {"matchLabels": {"app.kubernetes.io/name": application}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": application}},
                "spec": {"containers": [{"name": "charm", "image": "charm"}]},
            },
        },
    })
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

fn account(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

fn deployment(namespace: &str, name: &str, replicas: u32, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    })
}

/// A server of two replicas behind a Service.
fn server(namespace: &str, name: &str, args: &[&str]) -> Vec<Value> {
    let pod = json!({
        "serviceAccountName": name, "terminationGracePeriodSeconds": 20,
        "containers": [{
            "name": "main", "image": image::TESTAPP, "imagePullPolicy": "IfNotPresent", "args": args,
            "ports": [{"containerPort": 8080}],
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
        }],
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 8080}]},
    });
    let deployment = deployment(namespace, name, 2, &pod);
    vec![account(namespace, name), deployment, service]
}

/// A client that asks without end.
fn client(namespace: &str, name: &str, loops: &[&str]) -> Vec<Value> {
    let mut args = vec!["loop", TALLIES];
    args.extend(loops);
    let pod = json!({
        "serviceAccountName": name, "terminationGracePeriodSeconds": 15,
        "containers": [{
            "name": "main", "image": image::TESTAPP, "imagePullPolicy": "IfNotPresent", "args": args,
            "volumeMounts": [{"name": "tallies", "mountPath": TALLIES}],
        }],
        "volumes": [{"name": "tallies", "hostPath": {"path": TALLIES, "type": "DirectoryOrCreate"}}],
    });
    vec![
        account(namespace, name),
        deployment(namespace, name, 1, &pod),
    ]
}

fn gateway() -> Vec<Value> {
    let labels = json!({
        "app": "istio-ingressgateway", "istio": "ingressgateway", "istio.io/rev": "default",
        "operator.istio.io/component": "IngressGateways", "release": "istio",
    });
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let sa = format!("{GATEWAY}-service-account");
    let pod = json!({
        "serviceAccountName": sa, "terminationGracePeriodSeconds": 20,
        "containers": [{
            "name": "istio-proxy", "image": format!("{HUB}/proxyv2:{}", V1_31.version),
            "args": ["proxy", "router", "--domain", format!("{OLD}.svc.cluster.local"),
                     "--proxyLogLevel=warning", "--proxyComponentLogLevel=misc:error", "--log_output_level=default:info"],
            "env": [
                {"name": "PILOT_CERT_PROVIDER", "value": "istiod"},
                {"name": "CA_ADDR", "value": format!("istiod.{OLD}.svc:15012")},
                field("NODE_NAME", "spec.nodeName"), field("POD_NAME", "metadata.name"),
                field("POD_NAMESPACE", "metadata.namespace"), field("INSTANCE_IP", "status.podIP"),
                field("HOST_IP", "status.hostIP"), field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
                {"name": "ISTIO_META_WORKLOAD_NAME", "value": GATEWAY},
                {"name": "ISTIO_META_CLUSTER_ID", "value": "Kubernetes"},
                {"name": "ISTIO_META_MESH_ID", "value": "cluster.local"},
                {"name": "TRUST_DOMAIN", "value": "cluster.local"},
            ],
            "ports": [{"containerPort": 8080}, {"containerPort": 15021}],
            "readinessProbe": {"httpGet": {"path": "/healthz/ready", "port": 15021}, "periodSeconds": 2},
            "lifecycle": {"preStop": {"exec": {"command": ["pilot-agent", "wait", "--timeoutSeconds", "1"]}}},
            "securityContext": {"runAsUser": 1337, "runAsGroup": 1337, "runAsNonRoot": true},
            "volumeMounts": [
                mount("workload-socket", "/var/run/secrets/workload-spiffe-uds"),
                mount("credential-socket", "/var/run/secrets/credential-uds"),
                mount("workload-certs", "/var/run/secrets/workload-spiffe-credentials"),
                mount("istio-envoy", "/etc/istio/proxy"), mount("config-volume", "/etc/istio/config"),
                mount("istiod-ca-cert", "/var/run/secrets/istio"),
                mount("istio-token", "/var/run/secrets/tokens"), mount("istio-data", "/var/lib/istio/data"),
            ],
        }],
        "securityContext": {"fsGroup": 1337},
        "volumes": [
            {"name": "workload-socket", "emptyDir": {}}, {"name": "credential-socket", "emptyDir": {}},
            {"name": "workload-certs", "emptyDir": {}}, {"name": "istio-envoy", "emptyDir": {}},
            {"name": "istio-data", "emptyDir": {}},
            {"name": "istiod-ca-cert", "configMap": {"name": "istio-ca-root-cert"}},
            {"name": "config-volume", "configMap": {"name": "istio", "optional": true}},
            {"name": "istio-token", "projected": {"sources": [{"serviceAccountToken": {
                "path": "istio-token", "expirationSeconds": 43200, "audience": "istio-ca"}}]}},
        ],
    });
    let mut workload = deployment(OLD, GATEWAY, 2, &pod);
    workload["metadata"]["labels"] = labels.clone();
    workload["spec"]["selector"]["matchLabels"] =
        json!({"app": "istio-ingressgateway", "istio": "ingressgateway"});
    workload["spec"]["template"]["metadata"]["labels"] = json!({
        "app": "istio-ingressgateway", "istio": "ingressgateway", "sidecar.istio.io/inject": "false",
    });
    vec![
        account(OLD, &sa),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": GATEWAY, "namespace": OLD, "labels": labels},
            "spec": {
                "selector": {"app": "istio-ingressgateway", "istio": "ingressgateway"},
                "ports": [{"name": "http2", "port": 80, "targetPort": 8080}],
            },
        }),
        workload,
    ]
}

fn custom(
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    labels: &Value,
    spec: &Value,
) -> Value {
    json!({
        "apiVersion": group, "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec,
    })
}

/// A filter that has requests at the gateway asked about, under a name of Envoy's.
fn filter(name: &str, filter: &str) -> Value {
    let authority = format!("{GATE}-web.{OLD}.svc.cluster.local");
    let spec = json!({
        "workloadSelector": {"labels": {"istio": "ingressgateway"}},
        "configPatches": [{
            "applyTo": "HTTP_FILTER",
            "match": {"context": "GATEWAY", "listener": {"portNumber": 8080, "filterChain": {"filter": {
                "name": "envoy.filters.network.http_connection_manager"}}}},
            "patch": {"operation": "INSERT_BEFORE", "value": {
                "name": filter,
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
                    "http_service": {
                        "server_uri": {"uri": format!("http://{authority}:8080"), "cluster": format!("outbound|8080||{authority}"), "timeout": "10s"},
                        "authorization_request": {"allowed_headers": {"patterns": [{"exact": "cookie"}]}},
                        "authorization_response": {"allowed_upstream_headers": {"patterns": [{"exact": "kubeflow-userid"}]}},
                    },
                },
            }},
        }],
    });
    let networking = "networking.istio.io/v1alpha3";
    custom(networking, "EnvoyFilter", OLD, name, &json!({}), &spec)
}

fn routes() -> Vec<Value> {
    let scope = |scope: &str| {
        json!({"app.kubernetes.io/instance": format!("istio-pilot-{OLD}"),
               "kubernetes-resource-handler-scope": scope})
    };
    let networking = "networking.istio.io/v1";
    let mut objects = vec![
        custom(
            networking,
            "Gateway",
            OLD,
            "kubeflow-gateway",
            &scope("gateway"),
            &json!({
                "selector": {"istio": "ingressgateway"},
                "servers": [{"hosts": ["*"], "port": {"name": "http", "number": 8080, "protocol": "HTTP"}}],
            }),
        ),
        filter("istio-pilot-authn-filter", "envoy.filters.http.ext_authz"),
    ];
    for app in APPS {
        let (name, host) = (
            format!("{app}-web"),
            format!("{app}-web.{OLD}.svc.cluster.local"),
        );
        let gateway = "kubeflow-gateway";
        objects.push(route((OLD, &name), &scope("ingress"), gateway, app, &host));
    }
    objects
}

/// A prefix that leads to a host, on a Gateway.
fn route(
    (namespace, name): (&str, &str),
    labels: &Value,
    gateway: &str,
    prefix: &str,
    host: &str,
) -> Value {
    custom(
        "networking.istio.io/v1",
        "VirtualService",
        namespace,
        name,
        labels,
        &json!({
            "gateways": [format!("{OLD}/{gateway}")], "hosts": ["*"],
            "http": [{
                "match": [{"uri": {"prefix": format!("/{prefix}/")}}], "rewrite": {"uri": "/"},
                "route": [{"destination": {"host": host, "port": {"number": 8080}}}],
            }],
        }),
    )
}

/// Routes that users hung on the old charm's Gateway.
fn routes_of_users() -> Vec<Value> {
    let of = |app: &str| {
        let host = format!("srv.{app}.svc.cluster.local");
        route((app, "srv"), &json!({}), "kubeflow-gateway", app, &host)
    };
    vec![of("appa"), of("appb")]
}

fn policies() -> Vec<Value> {
    let security = "security.istio.io/v1";
    let none = json!({});
    let principals: Vec<String> = [
        (OLD, format!("{GATEWAY}-service-account").as_str()),
        ("appa", "cli"),
        ("appb", "cli"),
    ]
    .iter()
    .map(|(namespace, account)| format!("cluster.local/ns/{namespace}/sa/{account}"))
    .collect();
    vec![
        custom(
            security,
            "PeerAuthentication",
            OLD,
            "default",
            &none,
            &json!({"mtls": {"mode": "STRICT"}}),
        ),
        custom(
            security,
            "AuthorizationPolicy",
            OLD,
            "blocked",
            &none,
            &json!({
                "action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/blocked", "/appa/blocked"]}}]}],
            }),
        ),
        custom(
            security,
            "AuthorizationPolicy",
            OLD,
            "apps",
            &none,
            &json!({
                "selector": {"matchLabels": {"app": "srv"}},
                "rules": [{"from": [{"source": {"principals": principals}}]}],
            }),
        ),
        // Nothing routes by it, but another istiod would not even see it.
        custom(
            "networking.istio.io/v1",
            "VirtualService",
            "appb",
            "labelled",
            &json!({"istio.io/rev": "default"}),
            &json!({
                "hosts": ["srv"], "http": [{"route": [{"destination": {"host": "srv", "port": {"number": 8080}}}]}],
            }),
        ),
    ]
}
