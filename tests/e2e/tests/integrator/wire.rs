//! One Istio with both kinds of gateway, two applications, and requests to them.

#![allow(unreachable_pub, reason = "test support")]

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use e2e::wait::until;
use e2e::{Juju, Lab, Response, http};
use serde_json::{Value, json};
use testbed::build::program;
use testbed::{Artifact, V1_31, gateway_api_crds};

/// The host that requests are for.
pub const HOST: &str = "apps.example.com";
const MODEL: &str = "ingress-lab";
const EDGE: &str = "edge-lab";
const CLASSIC: &str = "edge";
const LIMIT: Duration = Duration::from_mins(1);

/// The kinds of gateways.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Of Istio's own API.
    Istio,
    /// Of the Gateway API.
    GatewayApi,
}

impl Kind {
    fn option(self) -> &'static str {
        match self {
            Self::Istio => "route-api=istio",
            Self::GatewayApi => "route-api=gateway-api",
        }
    }

    /// Whether these are kinds of objects that such a gateway takes.
    pub fn carries(self, kinds: &str) -> bool {
        match self {
            Self::Istio => kinds == "VirtualService",
            Self::GatewayApi => kinds == "HTTPRoute" || kinds.contains("GRPCRoute"),
        }
    }
}

/// The lab, and which gateway is asked.
#[derive(Debug)]
pub struct Wire {
    lab: Lab,
    pub juju: Juju,
    kind: std::cell::Cell<Kind>,
}

impl Wire {
    /// Deploys everything, on the classic gateway.
    pub fn up() -> Result<Self> {
        let lab = Lab::up(MODEL, &[V1_31])?;
        for kind in [
            "gatewayclasses",
            "gateways",
            "httproutes",
            "grpcroutes",
            "referencegrants",
        ] {
            let name = format!("gateway.networking.k8s.io_{kind}.yaml");
            let definition = yaml::parse(&fs::read_to_string(gateway_api_crds()?.join(name))?)?;
            let name = format!("{kind}.gateway.networking.k8s.io");
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            lab.api.apply(&format!("{path}/{name}"), &definition)?;
        }
        e2e::helm::install(&lab, "mesh-lab", EDGE)?;
        let juju = lab.juju.clone();
        juju.run(&[
            "deploy",
            &Lab::charm("istio-integrator"),
            "--trust",
            "--config",
            &format!("external-hostname={HOST}"),
        ])?;
        let routes = lab.write(
            "echo.yaml",
            json!({"echo": {"routes": routes()}}).to_string(),
        )?;
        let echo = Lab::charm("echo-k8s");
        juju.run(&["deploy", &echo, "echo", "--trust", "--config", &routes])?;
        juju.run(&["deploy", &echo, "twin", "--trust"])?;
        juju.run(&["deploy", &echo, "guest", "--trust"])?;
        juju.run(&["integrate", "echo:ingress", "istio-integrator:ingress"])?;
        let open = "istio-integrator:ingress-unauthenticated";
        juju.run(&["integrate", "guest:ingress", open])?;
        let route = "istio-ingress-route";
        juju.run(&[
            "integrate",
            &format!("echo:{route}"),
            &format!("istio-integrator:{route}"),
        ])?;
        juju.wait_active(&["echo", "twin", "guest", "istio-integrator"])?;
        Ok(Self {
            lab,
            juju,
            kind: std::cell::Cell::new(Kind::Istio),
        })
    }

    /// Has the gateway of this kind serve, and asks it from now on. The other one serves until then.
    pub fn serve(&self, kind: Kind) -> Result<()> {
        self.juju
            .run(&["config", "istio-integrator", kind.option()])?;
        self.juju.wait_active(&["istio-integrator"])?;
        self.kind.set(kind);
        self.until(&format!("http://{HOST}/ingress-lab-echo/x"), &[], 200)?;
        until("the other kind's routes to go", LIMIT, || {
            self.juju.run(&["update-status", "istio-integrator"])?;
            let other = match kind {
                Kind::Istio => "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes",
                Kind::GatewayApi => "/apis/networking.istio.io/v1/namespaces/{}/virtualservices",
            };
            let left = self.lab.api.get(&other.replace("{}", MODEL))?;
            Ok(left["items"]
                .as_array()
                .is_some_and(Vec::is_empty)
                .then_some(()))
        })
    }

    fn address(&self, port: u16) -> Result<SocketAddr> {
        match self.kind.get() {
            Kind::Istio => self.lab.service(EDGE, CLASSIC, port),
            Kind::GatewayApi => self.lab.service(MODEL, "istio-gateway-istio", port),
        }
    }

    /// One plain request.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        http::get(self.address(80)?, HOST, path, headers)
    }

    /// Every answer of a row has `status`.
    pub fn steady(&self, path: &str, headers: &[(&str, &str)], status: u16) -> Result<()> {
        for turn in 0..20 {
            let answer = self.get(path, headers)?;
            ensure!(
                answer.status == status,
                "answer {turn} to {path}: {answer:?}"
            );
        }
        Ok(())
    }

    /// Asks until the answer has `status`.
    pub fn until(&self, url: &str, headers: &[(&str, &str)], status: u16) -> Result<Value> {
        let mut last = Value::Null;
        until(&format!("{status} for {url}"), LIMIT, || {
            last = self.ask(url, headers)?;
            Ok((last["status"] == status).then(|| last.clone()))
        })
        .with_context(|| format!("{:?}: the last answer to {url} was {last}", self.kind.get()))
    }

    /// One call, once it is answered at all by whoever answers for good.
    pub fn call(&self, url: &str) -> Result<Value> {
        until(&format!("an answer to {url}"), LIMIT, || {
            let answer = self.ask(url, &[])?;
            Ok((answer["grpc"] != "14" && answer["status"] != 503).then_some(answer))
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the testbed's own client speaks TLS and gRPC"
    )]
    fn ask(&self, url: &str, headers: &[(&str, &str)]) -> Result<Value> {
        let secure = url.starts_with("https:") || url.starts_with("grpcs:");
        let address = self.address(if secure { 443 } else { 80 })?.to_string();
        let headers = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}"));
        let output = Command::new(program(Artifact::Testapp)?)
            .args(["ask", &address, url])
            .args(headers)
            .output()?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).context("an answer")
    }

    /// Gives the gateway a certificate, or takes it.
    pub fn certificate(&self, wanted: bool) -> Result<()> {
        if !wanted {
            self.juju
                .run(&["config", "istio-integrator", "--reset", "tls-secret-id"])?;
            self.juju.run(&["remove-secret", "edge"])?;
            return self.juju.wait_active(&["istio-integrator"]);
        }
        let made = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
        let chain = self.lab.write("chain.pem", made.cert.pem())?;
        let key = self
            .lab
            .write("key.pem", made.signing_key.serialize_pem())?;
        let id = self.juju.run(&[
            "add-secret",
            "edge",
            &format!("tls-crt#file={chain}"),
            &format!("tls-key#file={key}"),
        ])?;
        self.juju
            .run(&["grant-secret", "edge", "istio-integrator"])?;
        let option = format!("tls-secret-id={}", id.trim());
        self.juju.run(&["config", "istio-integrator", &option])?;
        self.juju.wait_active(&["istio-integrator"])
    }

    /// Relates a gatekeeper, or says that nobody is asked any more.
    pub fn gatekeeper(&self, wanted: bool) -> Result<()> {
        let juju = &self.juju;
        if wanted {
            juju.run(&["config", "istio-integrator", "auth=auto"])?;
            juju.run(&["deploy", &Lab::charm("gatekeeper-k8s"), "gate", "--trust"])?;
            let auth = "istio-integrator:ingress-auth";
            juju.run(&["integrate", "gate:ingress-auth", auth])?;
            return juju.wait_active(&["gate", "istio-integrator"]);
        }
        juju.run(&["config", "istio-integrator", "auth=none"])?;
        juju.wait_active(&["istio-integrator"])
    }

    /// Gives a deployment so many pods.
    pub fn scale(&self, deployment: &str, replicas: u64) -> Result<()> {
        let path = format!("/apis/apps/v1/namespaces/{MODEL}/deployments/{deployment}");
        let scale = format!("{path}/scale");
        let mut object = self.lab.api.get(&scale)?;
        object["spec"]["replicas"] = replicas.into();
        self.lab
            .api
            .call(&::http::Method::PUT, &scale, Some(&object))?;
        until(
            &format!("{replicas} replicas of {deployment}"),
            LIMIT,
            || {
                let live = self.lab.api.get(&path)?;
                let ready = live["status"]["readyReplicas"].as_u64().unwrap_or(0);
                Ok((ready == replicas).then_some(()))
            },
        )
    }

    /// The rows of `list-routes`.
    pub fn listed(&self) -> Result<Vec<Value>> {
        let unit = "istio-integrator/leader";
        let results = self.juju.action(unit, "list-routes", &["format=json"])?;
        let rows = results["routes"].as_str().context("no routes")?;
        Ok(serde_json::from_str(rows)?)
    }
}

/// What the sample server says it received.
pub fn seen(answer: &Value) -> Result<Value> {
    let body = answer["body"].as_str().context("no body")?;
    serde_json::from_str(body).with_context(|| format!("not the server's: {answer}"))
}

/// The pod that answered.
pub fn pod(answer: &Value) -> Result<String> {
    let told = seen(answer)?;
    told["pod"].as_str().map(str::to_owned).context("no pod")
}

fn routes() -> String {
    let web = |app: &str, weight: u32| json!({"service": format!("{app}-web"), "port": 8080, "weight": weight});
    let prefix = |path: &str| json!([{"path": {"type": "PathPrefix", "value": path}}]);
    let route = |name: &str, more: Value| {
        let mut route = json!({
            "name": name, "listener": {"port": 80, "protocol": "HTTP"},
            "backends": [web("echo", 1)],
        });
        if let (Some(route), Some(more)) = (route.as_object_mut(), more.as_object()) {
            route.extend(more.clone());
        }
        route
    };
    json!({
        "model": MODEL,
        "listeners": [{"port": 80, "protocol": "HTTP"}],
        "http_routes": [
            route("split", json!({"backends": [web("echo", 75), web("twin", 25)],
                "matches": prefix("/split")})),
            route("whole", json!({
                "matches": [{"path": {"type": "Exact", "value": "/exact"}, "method": "GET",
                    "headers": {"x-lab": "yes"}}],
                "filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "inner.example.com",
                    "path": {"type": "ReplaceFullPath", "replaceFullPath": "/whole"}}}],
            })),
            route("prefix", json!({
                "matches": prefix("/pre"),
                "filters": [{"type": "URLRewrite", "urlRewrite": {
                    "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/post"}}}],
            })),
            route("away", json!({
                "matches": prefix("/away"), "backends": [],
                "filters": [{"type": "RequestRedirect", "requestRedirect": {
                    "scheme": "http", "hostname": "new.example.com", "statusCode": 302,
                    "path": {"type": "ReplaceFullPath", "replaceFullPath": "/here"}}}],
            })),
            route("host", json!({"hostnames": ["other.example.com"],
                "backends": [web("twin", 1)], "matches": prefix("/")})),
        ],
        "grpc_routes": [{
            "name": "calls", "listener": {"port": 80, "protocol": "GRPC"},
            "backends": [web("echo", 1)],
            "matches": [{"method": {"service": "lab.Echo", "method": "Say"}}],
        }],
    })
    .to_string()
}
