//! A cluster, a release payload, and the charm's hooks run against both in this process.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "test support; each test file uses its own part"
)]

mod release;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use istio_k8s::IstioK8s;
use istio_k8s::cluster::Cluster;
use juju_charm::{Databag, EffectsFor, Event};
use juju_hooks::ActionCall;
use juju_sim::scenario::{ActionRecord, Relation, Scenario, State};
use kube_apply::ObjectRef;
use kube_apply::testing::{Controllers, FakeApi};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

pub use self::release::Release;

pub const UNIT: &str = "meshy/0";
pub const MODEL_UUID: &str = "0d5f2a7c-8a57-4d3e-9b21-6f1c5a0e7d42";
pub const EDGE: &str = "- {name: edge, namespace: edge-lab, service-type: ClusterIP}\n";

/// A cluster and what Juju knows of the application `meshy`: it leads, is to run in `istio-lab` with
/// the gateway `edge-lab/edge`, and release 1.31.0 is attached.
pub struct Lab {
    pub api: FakeApi,
    dir: TempDir,
    state: RefCell<State>,
}

impl Lab {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let payload = Release::of("1.31.0").write(dir.path());
        let state = State::new(UNIT)
            .leader()
            .config("namespace", "istio-lab")
            .config("gateways", EDGE)
            .resource("istio-release", payload);
        let (api, state) = (FakeApi::new(), RefCell::new(state));
        Self { api, dir, state }
    }

    /// A lab in which the control plane runs; the requests that made it are forgotten.
    pub fn installed() -> Self {
        let lab = Self::new();
        lab.hook(Event::ConfigChanged);
        lab.assert_status("active", "Istio 1.31.0 in istio-lab");
        lab.api.forget_requests();
        lab
    }

    /// A lab in which this version runs; the requests that made it are forgotten.
    pub fn running(version: &str) -> Self {
        let lab = Self::new();
        lab.attach(&Release::of(version)).hook(Event::ConfigChanged);
        lab.assert_says("active", &[version]);
        lab.api.forget_requests();
        lab
    }

    pub fn config(&self, option: &str, value: impl Into<Value>) -> &Self {
        self.change(|state| state.config(option, value))
    }

    pub fn attach(&self, release: &Release) -> &Self {
        let payload = release.write(self.dir.path());
        self.change(|state| state.resource("istio-release", payload))
    }

    /// Attaches a release on the way.
    pub fn attach_stage(&self, number: usize, release: &Release) -> &Self {
        let dir = self.dir.path().join(format!("stage-{number}"));
        fs::create_dir_all(&dir).expect("a directory");
        let payload = release.write(&dir);
        let name = format!("istio-release-stage-{number}");
        self.change(|state| state.resource(&name, payload))
    }

    /// Attaches a file of these bytes.
    pub fn attach_bytes(&self, bytes: &[u8]) -> &Self {
        let path = self.payload();
        fs::write(&path, bytes).expect("a file");
        self.change(|state| state.resource("istio-release", path))
    }

    pub fn payload(&self) -> PathBuf {
        self.dir.path().join("istio-release.tar.gz")
    }

    pub fn change(&self, change: impl FnOnce(State) -> State) -> &Self {
        let state = self.state();
        self.state.replace(change(state));
        self
    }

    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Runs a hook; the clock jumps over waiting.
    pub fn hook(&self, event: Event) -> &Self {
        self.run(event, Map::new(), || {
            let app = "meshy".parse().expect("a name");
            Cluster::new(self.api.engine(), app)
        });
        self
    }

    pub fn update_status(&self) -> &Self {
        self.hook(Event::UpdateStatus)
    }

    pub fn config_changed(&self) -> &Self {
        self.hook(Event::ConfigChanged)
    }

    pub fn action(&self, name: &str, params: Value) -> ActionRecord {
        self.action_on(name, params, || {
            let app = "meshy".parse().expect("a name");
            Cluster::new(self.api.engine(), app)
        })
    }

    pub fn action_on<F: EffectsFor<IstioK8s>>(
        &self,
        name: &str,
        params: Value,
        fx: impl FnOnce() -> F,
    ) -> ActionRecord {
        let call = ActionCall {
            name: name.to_owned(),
            id: "1".to_owned(),
        };
        let Value::Object(params) = params else {
            panic!("parameters are a mapping")
        };
        self.run(Event::Action(call), params, fx);
        self.state().record.action
    }

    /// Runs a hook that is to fail, and gives the reason. Juju keeps nothing of it.
    pub fn failing_hook(&self, event: Event) -> String {
        let app = "meshy".parse().expect("a name");
        let fx = || Cluster::new(self.api.engine(), app);
        match self.attempt(event, Map::new(), fx) {
            Ok(_) => panic!("the hook did not fail"),
            Err(error) => error,
        }
    }

    fn run<F: EffectsFor<IstioK8s>>(
        &self,
        event: Event,
        params: Map<String, Value>,
        fx: impl FnOnce() -> F,
    ) {
        let after = self.attempt(event, params, fx);
        self.state
            .replace(after.unwrap_or_else(|error| panic!("{error}")));
    }

    fn attempt<F: EffectsFor<IstioK8s>>(
        &self,
        event: Event,
        params: Map<String, Value>,
        fx: impl FnOnce() -> F,
    ) -> Result<State, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let scenario = Scenario::<IstioK8s>::new().expect("metadata");
        runtime
            .block_on(async { scenario.run_async(event, params, &self.state(), fx()).await })
            .map_err(|error| error.to_string())
    }

    pub fn status(&self) -> (String, String) {
        let status = self.state().unit_status;
        (status.status, status.message)
    }

    #[track_caller]
    pub fn assert_status(&self, status: &str, message: &str) -> &Self {
        let found = self.status();
        assert_eq!((found.0.as_str(), found.1.as_str()), (status, message));
        self
    }

    /// The status is this one and its message names everything.
    #[track_caller]
    pub fn assert_says(&self, status: &str, parts: &[&str]) -> &Self {
        let (found, message) = self.status();
        assert_eq!(found, status, "{message}");
        for part in parts {
            assert!(message.contains(part), "{message:?} does not say {part:?}");
        }
        self
    }

    #[track_caller]
    pub fn assert_untouched(&self) -> &Self {
        assert_eq!(self.api.writes(), Vec::<String>::new());
        self
    }

    pub fn controllers(&self, roll_out: bool, establish: bool, ca_bundle: bool) -> &Self {
        self.api.set_controllers(Controllers {
            roll_out,
            establish,
            ca_bundle,
        });
        self
    }

    /// Our objects, as `Kind namespace/name`.
    pub fn ours(&self) -> Vec<String> {
        let objects = self.api.objects();
        let ours = objects
            .iter()
            .filter(|o| o["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "istio-k8s");
        ours.map(name).collect()
    }

    pub fn exists(&self, name_of: &str) -> bool {
        self.api
            .objects()
            .iter()
            .any(|object| name(object) == name_of)
    }

    /// The image of a Deployment in the control plane's namespace.
    #[track_caller]
    pub fn image(&self, name: &str) -> Value {
        let deployment = self.get("apps/v1", "Deployment", name);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    }

    /// One live object in the control plane's namespace.
    #[track_caller]
    pub fn get(&self, api_version: &str, kind: &str, name: &str) -> Value {
        let id = ObjectRef::namespaced(api_version, kind, "istio-lab", name);
        self.api.get(&id).unwrap_or_else(|| panic!("no {id}"))
    }
}

/// Relates `app`, which has written this.
pub fn related(lab: &Lab, endpoint: &str, id: u32, app: &str, data: Databag) {
    let relation = Relation::new(endpoint, id, app).remote_app_data(data);
    lab.change(|state| state.relation(relation));
}

/// What the charm has told the application of a relation.
pub fn told(lab: &Lab, id: u32) -> Databag {
    let state = lab.state();
    state.get(id).expect("a relation").local_app_data.clone()
}

pub fn name(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// An injector that nobody of ours made, for pods and namespaces of one revision.
pub fn foreign_injector(name: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"istio.io/rev": revision}},
        "webhooks": [{
            "name": "rev.namespace.sidecar-injector.istio.io",
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": "istiod", "namespace": "other-lab"}},
            "namespaceSelector": {"matchExpressions": [
                {"key": "istio.io/rev", "operator": "In", "values": [revision]},
                {"key": "istio-injection", "operator": "DoesNotExist"}]},
        }],
    })
}
