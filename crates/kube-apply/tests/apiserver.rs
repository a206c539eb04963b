//! The engine against a real kube-apiserver and etcd: what a fake can only claim.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use common::{names, object};
use http::Method;
use kube_apply::{
    Applied, Connect, Engine, Error, Gate, Inventory, Object, ObjectRef, ObjectsSet, Query, Stage,
};
use serde_json::{Value, json};
use testbed::{Api, Beside, ControlPlane};

fn up(beside: Beside) -> ControlPlane {
    ControlPlane::up(beside, &mut |step| println!("{step}")).expect("a control plane")
}

/// One API server for all tests that leave it alive; each has its own namespace and inventory.
fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<ControlPlane> = OnceLock::new();
    SHARED.get_or_init(|| up(Beside::Nothing))
}

/// A namespace and an inventory of the same name.
struct Lab<'a> {
    cluster: &'a ControlPlane,
    api: Api,
    name: &'static str,
}

impl<'a> Lab<'a> {
    fn new(cluster: &'a ControlPlane, name: &'static str) -> Self {
        let api = cluster.api().expect("a client");
        let namespace = common::namespace(name).into_value();
        api.apply(&format!("/api/v1/namespaces/{name}"), &namespace)
            .expect("a namespace");
        Self { cluster, api, name }
    }

    fn set(&self, stages: Vec<Stage>) -> ObjectsSet {
        let inventory = Inventory {
            name: self.name.to_owned(),
            ..common::inventory()
        };
        ObjectsSet {
            inventory,
            wait: Duration::from_mins(1),
            whole: false,
            ..common::set(stages)
        }
    }

    fn here(&self, object: Object) -> Object {
        let mut value = object.into_value();
        value["metadata"]["namespace"] = self.name.into();
        common::object(value)
    }

    fn config_map(&self, name: &str, value: &str) -> Object {
        self.here(common::config_map(name, value))
    }

    fn service(&self, name: &str) -> Object {
        self.here(common::service(name))
    }

    fn all(&self, objects: Vec<Object>) -> ObjectsSet {
        self.set(vec![Stage::new("all", objects)])
    }

    fn apply(&self, set: &ObjectsSet) -> Applied {
        self.with_engine(async |engine| engine.apply(set).await)
            .expect("applied")
    }

    fn refused(&self, set: &ObjectsSet) -> Error {
        self.with_engine(async |engine| engine.apply(set).await)
            .expect_err("refused")
    }

    fn with_engine<T>(&self, work: impl AsyncFnOnce(Engine) -> T) -> T {
        let connect = Connect::Kubeconfig(self.cluster.kubeconfig().to_owned());
        with_engine(&connect, work)
    }

    fn exists(&self, path: &str) -> bool {
        let path = format!("/api/v1/namespaces/{}/{path}", self.name);
        self.api.find(&path).expect("an answer").is_some()
    }

    /// The writes of this lab's field manager while `work` ran.
    fn writes_of(&self, work: impl FnOnce()) -> Vec<String> {
        let audit = self.cluster.audit();
        let mark = audit.mark(&self.api).expect("a mark");
        work();
        audit.mark(&self.api).expect("a mark");
        let entries = audit.since(mark).expect("entries");
        let ours = format!("%2F{}&", self.name);
        let in_namespace = format!("/namespaces/{}/", self.name);
        entries
            .iter()
            .filter(|entry| !matches!(entry.verb.as_str(), "get" | "list" | "watch"))
            .filter(|entry| entry.uri.contains(&ours) || entry.uri.contains(&in_namespace))
            .map(|entry| format!("{} {}", entry.verb, entry.uri))
            .collect()
    }
}

fn with_engine<T>(connect: &Connect, work: impl AsyncFnOnce(Engine) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let engine = Engine::connect(connect).expect("an engine");
        work(engine).await
    })
}

/// A Service, a Deployment with resource quantities, RBAC, a webhook: what the server rewrites most.
fn control_plane(lab: &Lab<'_>) -> ObjectsSet {
    let role = object(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": lab.name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
    }));
    let scaler = object(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "istiod", "namespace": lab.name},
        "spec": {
            "minReplicas": 1, "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "istiod"},
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }}],
        },
    }));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": lab.name}, "stringData": {"cookie": "hush"},
    });
    lab.all(vec![
        lab.here(common::account("istiod")),
        lab.config_map("istio", "mesh"),
        object(secret),
        lab.service("istiod"),
        lab.here(common::deployment("istiod", "pilot:1")),
        common::webhook(lab.name, "Ignore"),
        role,
        scaler,
    ])
}

#[test]
fn a_second_apply_of_the_same_set_writes_nothing() {
    let lab = Lab::new(shared(), "lab-noop");
    let set = control_plane(&lab);
    let first = lab.writes_of(|| assert_eq!(lab.apply(&set).written.len(), 8));
    assert_eq!(first.len(), 8, "{first:?}");
    let second = lab.writes_of(|| assert_eq!(lab.apply(&set).unchanged, 8));
    assert_eq!(second, Vec::<String>::new());
    let plan = lab
        .with_engine(async |engine| engine.plan(&set).await)
        .expect("a plan");
    assert!(plan.is_empty(), "{plan}");
}

#[test]
fn a_field_that_another_manager_took_is_a_conflict() {
    let lab = Lab::new(shared(), "lab-conflict");
    let set = lab.all(vec![common::webhook(lab.name, "Ignore")]);
    lab.apply(&set);
    let taken = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": lab.name},
        "webhooks": [{"name": "rev.validation.istio.io", "failurePolicy": "Fail"}],
    });
    let path = format!(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{}",
        lab.name
    );
    lab.api.apply(&path, &taken).expect("taken");
    let applied = lab.apply(&set);
    assert_eq!(applied.written, []);
    let [conflict] = applied.conflicts.as_slice() else {
        panic!("{:?}", applied.conflicts)
    };
    assert_eq!(conflict.owner, "testbed");
    let expect = [".webhooks[name=\"rev.validation.istio.io\"].failurePolicy"];
    assert_eq!(conflict.fields, expect);
    assert_eq!(
        lab.api.get(&path).expect("there")["webhooks"][0]["failurePolicy"],
        "Fail"
    );
}

#[test]
fn a_persons_edit_is_overruled() {
    let lab = Lab::new(shared(), "lab-person");
    let set = lab.all(vec![lab.config_map("istio", "ours")]);
    lab.apply(&set);
    let path = "/api/v1/namespaces/lab-person/configmaps/istio";
    let edited = lab.config_map("istio", "theirs").into_value();
    let by_hand = format!("{path}?fieldManager=kubectl-edit&force=true");
    lab.api
        .call(&Method::PATCH, &by_hand, Some(&edited))
        .expect("edited");
    assert_eq!(
        names(&lab.apply(&set).written),
        ["ConfigMap lab-person/istio"]
    );
    assert_eq!(lab.api.get(path).expect("there")["data"]["key"], "ours");
}

#[test]
fn only_our_own_objects_are_pruned() {
    let lab = Lab::new(shared(), "lab-prune");
    lab.apply(&lab.all(vec![
        lab.service("a"),
        lab.config_map("b", "1"),
        lab.config_map("c", "1"),
    ]));
    let foreign = lab.config_map("foreign", "1").into_value();
    lab.api
        .apply("/api/v1/namespaces/lab-prune/configmaps/foreign", &foreign)
        .expect("made");
    // The labels of our Service, as a controller copies them.
    let service = lab
        .api
        .get("/api/v1/namespaces/lab-prune/services/a")
        .expect("there");
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "endpoints": [], "ports": [],
        "metadata": {
            "name": "a-1", "namespace": lab.name, "labels": service["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Service", "name": "a", "uid": service["metadata"]["uid"],
            }],
        },
    });
    let slice_path = "/apis/discovery.k8s.io/v1/namespaces/lab-prune/endpointslices/a-1";
    lab.api.apply(slice_path, &slice).expect("made");
    let applied = lab.apply(&lab.all(vec![lab.config_map("c", "1")]));
    assert_eq!(
        names(&applied.pruned),
        ["Service lab-prune/a", "ConfigMap lab-prune/b"]
    );
    assert!(lab.exists("configmaps/c") && lab.exists("configmaps/foreign"));
    assert!(lab.api.find(slice_path).expect("an answer").is_some());
}

#[test]
fn writes_that_are_only_tried_leave_nothing_and_delete_nothing() {
    let lab = Lab::new(shared(), "lab-tried");
    let (kept, never) = (lab.config_map("kept", "1"), lab.config_map("never", "1"));
    lab.with_engine(async |engine| {
        let made = engine.create(&kept, "mover", false).await;
        made.expect("created");
        engine.create(&never, "mover", true).await.expect("tried");
        let applied = engine.apply_as(&never, "mover", true, true).await;
        applied.expect("tried");
        let tried = kube_apply::Delete {
            dry_run: true,
            ..kube_apply::Delete::default()
        };
        assert!(engine.delete(&kept.id(), &tried).await.expect("tried"));
        assert!(engine.get(&kept.id()).await.expect("read").is_some());
        assert!(engine.get(&never.id()).await.expect("read").is_none());
    });
}

#[test]
fn a_foreign_object_is_left_alone() {
    let lab = Lab::new(shared(), "lab-foreign");
    let path = "/api/v1/namespaces/lab-foreign/configmaps/istio";
    let foreign = lab.config_map("istio", "theirs").into_value();
    lab.api.apply(path, &foreign).expect("made");
    let before = lab.api.get(path).expect("there");
    let set = lab.all(vec![lab.config_map("istio", "ours")]);
    let writes = lab.writes_of(|| assert_eq!(lab.apply(&set).conflicts.len(), 1));
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(lab.api.get(path).expect("there"), before);
}

#[test]
fn adopted_objects_change_hands_without_a_conflict() {
    let lab = Lab::new(shared(), "lab-adopt");
    let path = "/api/v1/namespaces/lab-adopt/configmaps/istio";
    lab.api
        .apply(path, &lab.config_map("istio", "theirs").into_value())
        .expect("made");
    let set = lab.all(vec![lab.config_map("istio", "ours")]);
    let ids = [lab.config_map("istio", "").id()];
    let adopted = lab
        .with_engine(async |engine| engine.adopt(&set.inventory, &ids).await)
        .expect("adopted");
    assert_eq!(adopted, ids);
    let applied = lab.apply(&set);
    assert_eq!(
        (applied.written.as_slice(), applied.conflicts.as_slice()),
        (&ids[..], &[][..])
    );
    assert_eq!(lab.api.get(path).expect("there")["data"]["key"], "ours");
    lab.with_engine(async |engine| engine.disown(&set.inventory, &ids).await)
        .expect("disowned");
    assert_eq!(lab.apply(&lab.all(vec![])).pruned, []);
    assert!(lab.exists("configmaps/istio"));
}

#[test]
fn objects_of_a_new_kind_follow_their_established_definition() {
    let lab = Lab::new(shared(), "lab-crd");
    let lantern = lab.here(common::lantern("night"));
    let set = lab.set(vec![
        Stage::new("definitions", vec![common::crd()]).gate(Gate::CrdEstablished),
        Stage::new("lanterns", vec![lantern.clone()]),
    ]);
    let applied = lab.apply(&set);
    assert!(applied.is_complete(), "{applied:?}");
    let expect = [
        "CustomResourceDefinition lanterns.lab.example.org",
        "Lantern lab-crd/night",
    ];
    assert_eq!(names(&applied.written), expect);
    assert_eq!(lab.apply(&set).unchanged, 2);

    let unserved = object(json!({
        "apiVersion": "lab.example.org/v2", "kind": "Lantern",
        "metadata": {"name": "night", "namespace": lab.name},
    }));
    let error = lab.refused(&lab.all(vec![unserved]));
    assert!(
        matches!(&error, Error::NotServed { api_version, .. } if api_version == "lab.example.org/v2")
    );

    // The definition and its objects outlive the inventory's wish for the definition.
    lab.apply(&lab.all(vec![lantern]));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let found = lab
        .api
        .find(&format!("{definitions}/lanterns.lab.example.org"));
    assert!(found.expect("an answer").is_some());
}

#[test]
fn an_invalid_object_is_named_with_the_servers_reason() {
    let lab = Lab::new(shared(), "lab-invalid");
    let check = |change: fn(&mut Value), expect: &str| {
        let mut value = lab
            .here(common::deployment("istiod", "pilot:1"))
            .into_value();
        change(&mut value);
        match lab.refused(&lab.all(vec![object(value)])) {
            Error::Invalid { object, message } => {
                assert_eq!(object.to_string(), "Deployment lab-invalid/istiod");
                assert!(message.contains(expect), "{message}");
            }
            error => panic!("{error:?}"),
        }
    };
    check(
        |value| value["spec"]["tempalte"] = json!({}),
        "spec.tempalte",
    );
    check(
        |value| value["spec"]["selector"]["matchLabels"]["app"] = "other".into(),
        "selector",
    );
    let nowhere = common::service("a");
    let error = lab.refused(&lab.all(vec![nowhere]));
    assert_eq!(error.to_string(), "namespace istio-lab not found");
}

#[test]
fn an_inventory_of_more_than_a_thousand_objects_is_applied_kept_and_pruned() {
    let lab = Lab::new(shared(), "lab-thousand");
    let many: Vec<Object> = (0..1050)
        .map(|n| lab.config_map(&format!("c{n}"), "1"))
        .collect();
    assert_eq!(lab.apply(&lab.all(many.clone())).written.len(), 1050);
    assert_eq!(lab.apply(&lab.all(many)).unchanged, 1050);
    assert_eq!(lab.apply(&lab.all(vec![])).pruned.len(), 1050);
    assert!(!lab.exists("configmaps/c0") && !lab.exists("configmaps/c1049"));
}

#[test]
fn a_service_account_is_told_which_permission_it_lacks() {
    let lab = Lab::new(shared(), "lab-forbidden");
    let accounts = "/api/v1/namespaces/lab-forbidden/serviceaccounts";
    lab.api
        .apply(
            &format!("{accounts}/meshy"),
            &lab.here(common::account("meshy")).into_value(),
        )
        .expect("made");
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = lab.api.call(
        &Method::POST,
        &format!("{accounts}/meshy/token"),
        Some(&request),
    );
    let token = token.expect("a token")["status"]["token"]
        .as_str()
        .expect("text")
        .to_owned();
    let files = tempfile::tempdir().expect("a directory");
    std::fs::write(files.path().join("token"), token).expect("written");
    std::fs::write(
        files.path().join("ca.crt"),
        authority(lab.cluster.kubeconfig()),
    )
    .expect("written");
    let connect = Connect::InCluster {
        host: "127.0.0.1".to_owned(),
        port: port(lab.cluster),
        account: files.path().to_owned(),
    };
    let set = lab.all(vec![lab.config_map("istio", "1")]);
    let error =
        with_engine(&connect, async |engine| engine.apply(&set).await).expect_err("refused");
    match error {
        Error::Forbidden {
            verb,
            resource,
            message,
        } => {
            assert_eq!((verb.as_str(), resource.as_str()), ("patch", "configmaps"));
            assert!(message.contains("lab-forbidden:meshy"), "{message}");
        }
        error => panic!("{error:?}"),
    }
}

#[test]
fn a_rollout_is_waited_for_until_the_old_pods_are_gone() {
    let cluster = up(Beside::Pods);
    let lab = Lab::new(&cluster, "lab-rollout");
    let set = |image: &str| {
        let objects = vec![
            lab.here(common::account("istiod")),
            lab.here(common::deployment("istiod", image)),
        ];
        lab.set(vec![Stage::new("daemon", objects).gate(Gate::RolledOut)])
    };
    for image in ["pilot:1", "pilot:2"] {
        let applied = lab.apply(&set(image));
        assert!(applied.is_complete(), "{applied:?}");
        let pods = lab
            .api
            .get("/api/v1/namespaces/lab-rollout/pods")
            .expect("pods");
        let images: Vec<&Value> = pods["items"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|pod| pod["metadata"].get("deletionTimestamp").is_none())
            .map(|pod| &pod["spec"]["containers"][0]["image"])
            .collect();
        assert_eq!(images, [image]);
    }
    // An image nobody can run: kwok plays every pod, so a request that fits no node stands for it.
    let mut stuck = lab
        .here(common::deployment("istiod", "pilot:3"))
        .into_value();
    stuck["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "node"});
    let mut set = lab.set(vec![
        Stage::new("daemon", vec![object(stuck)]).gate(Gate::RolledOut),
    ]);
    set.wait = Duration::from_secs(3);
    let pending = lab.apply(&set).pending.expect("pending");
    assert_eq!(pending.what, "istiod 0/1 updated pods ready in lab-rollout");
}

#[test]
fn a_run_that_an_api_server_did_not_survive_is_completed_by_the_next() {
    let cluster = up(Beside::Nothing);
    let lab = Lab::new(&cluster, "lab-killed");
    let set = lab.all(
        (0..400)
            .map(|n| lab.config_map(&format!("c{n:03}"), "1"))
            .collect(),
    );
    let server = server::Server::of(&cluster);
    let configs = Query::list("", "ConfigMap")
        .in_namespace(lab.name)
        .metadata_only();
    let error = lab.with_engine(async |engine| {
        let halfway = async {
            let watcher = Engine::connect(&Connect::Kubeconfig(cluster.kubeconfig().to_owned()));
            let watcher = watcher.expect("an engine");
            loop {
                let seen = watcher
                    .observe(std::slice::from_ref(&configs))
                    .await
                    .expect("read");
                if seen.list("", "ConfigMap").count() > 20 {
                    return server.kill();
                }
            }
        };
        let (result, ()) = tokio::join!(engine.apply(&set), halfway);
        result.expect_err("cut off")
    });
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    let error = lab.refused(&set);
    assert!(error.is_transient(), "{error:?}");

    let _again = server.start_again(&lab.api);
    let applied = lab.apply(&set);
    assert!(applied.is_complete());
    assert!(applied.unchanged > 20, "{}", applied.unchanged);
    assert_eq!(applied.unchanged + applied.written.len(), 400);
    assert_eq!(lab.apply(&set).unchanged, 400);
}

#[test]
fn what_was_applied_is_observed() {
    let lab = Lab::new(shared(), "lab-observe");
    lab.apply(&lab.all(vec![lab.config_map("a", "1"), lab.service("b")]));
    let queries = [
        Query::list("", "ConfigMap")
            .in_namespace(lab.name)
            .metadata_only(),
        Query::get("", "Service", Some(lab.name), "b"),
        Query::get("", "Service", Some(lab.name), "absent"),
        Query::list("networking.istio.io", "Gateway"),
    ];
    let observed = lab
        .with_engine(async |engine| engine.observe(&queries).await)
        .expect("read");
    let ids: Vec<ObjectRef> = observed.objects().map(Object::id).collect();
    assert_eq!(
        names(&ids),
        ["ConfigMap lab-observe/a", "Service lab-observe/b"]
    );
    assert_eq!(
        observed.objects().next().expect("one").pointer("/data"),
        None
    );
    assert_eq!(observed.notes().count(), 1);
    assert!(observed.served().serves("apps", "v1", "Deployment"));
    let version = lab
        .with_engine(async |engine| engine.server_version().await)
        .expect("a version");
    assert!(version.starts_with("v1."), "{version}");
}

fn port(cluster: &ControlPlane) -> u16 {
    let port = cluster.url().rsplit(':').next().expect("a port");
    port.parse().expect("a number")
}

/// The certificate authority that a kubeconfig names, as PEM.
fn authority(kubeconfig: &Path) -> Vec<u8> {
    let text = std::fs::read(kubeconfig).expect("a kubeconfig");
    let config: Value = serde_json::from_slice(&text).expect("JSON");
    let cluster = &config["clusters"][0]["cluster"];
    let path = cluster["certificate-authority"].as_str().expect("a path");
    std::fs::read(path).expect("a certificate")
}

/// The API server's process: killed, and started again as it was.
mod server {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use testbed::{Api, ControlPlane};

    pub(crate) struct Server {
        pid: String,
        args: Vec<OsString>,
        folder: PathBuf,
    }

    /// A server of our own; killed when dropped.
    pub(crate) struct Started(Child);

    impl Drop for Started {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    impl Server {
        /// Finds the process by its port, which no other has.
        pub(crate) fn of(cluster: &ControlPlane) -> Self {
            let port = format!("--secure-port={}", super::port(cluster));
            let processes = std::fs::read_dir("/proc").expect("processes");
            let found = processes.flatten().find_map(|process| {
                let args = args(&process.path())?;
                let program = Path::new(args.first()?).file_name()?.to_str()?;
                let is_it =
                    program.contains("kube-apiserver") && args.iter().any(|arg| *arg == *port);
                let folder = std::fs::read_link(process.path().join("cwd")).ok()?;
                let pid = process.file_name().to_string_lossy().into_owned();
                is_it.then_some(Self { pid, args, folder })
            });
            found.expect("a running API server")
        }

        pub(crate) fn kill(&self) {
            assert!(
                command("kill")
                    .args(["-KILL", &self.pid])
                    .status()
                    .expect("kill runs")
                    .success()
            );
        }

        /// Starts it again and waits until it is ready.
        pub(crate) fn start_again(&self, api: &Api) -> Started {
            let mut command = command("setpriv");
            command
                .args(["--pdeathsig", "KILL"])
                .args(&self.args)
                .current_dir(&self.folder);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut started = Started(command.spawn().expect("started"));
            while !api.get("/readyz").is_ok_and(|answer| answer == "ok") {
                assert_eq!(
                    started.0.try_wait().expect("a state"),
                    None,
                    "the server ended"
                );
                std::thread::yield_now();
            }
            started
        }
    }

    fn args(process: &Path) -> Option<Vec<OsString>> {
        let text = std::fs::read(process.join("cmdline")).ok()?;
        let args = text.split(|byte| *byte == 0).filter(|arg| !arg.is_empty());
        Some(args.map(|arg| OsString::from_vec(arg.to_vec())).collect())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test ends a process of its own test bed"
    )]
    fn command(program: &str) -> Command {
        Command::new(program)
    }
}
