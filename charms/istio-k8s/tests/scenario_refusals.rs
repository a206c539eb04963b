//! What is not in order is told by a status that names it, and nothing is written.

mod common;

use common::{Lab, Release, foreign_injector};
use juju_charm::Event;
use kube_apply::ObjectRef;
use serde_json::{Value, json};

const ATTACH: &str = "run: juju attach-resource meshy istio-release=";

/// On a fresh cluster and on a running control plane: blocked with all of `says`, nothing written;
/// undone, it is active again.
#[track_caller]
fn refused(spoil: impl Fn(&Lab) -> &Lab, mend: impl Fn(&Lab) -> &Lab, says: &[&str]) {
    for lab in [Lab::new(), Lab::installed()] {
        spoil(&lab)
            .config_changed()
            .assert_says("blocked", says)
            .assert_untouched();
        assert_eq!(lab.state().app_status, lab.state().unit_status);
        mend(&lab)
            .config_changed()
            .assert_status("active", "Istio 1.31.0 in istio-lab");
    }
}

#[test]
fn a_bad_option_is_refused_by_its_name() {
    let check = |option: &str, bad: &str, good: &str, says: &[&str]| {
        let option_named = format!("option {option}: ");
        let says: Vec<&str> = says
            .iter()
            .copied()
            .chain([option_named.as_str()])
            .collect();
        refused(
            |lab| lab.config(option, bad),
            |lab| lab.config(option, good),
            &says,
        );
    };
    let edge = common::EDGE;
    check(
        "namespace",
        "Istio_Lab",
        "istio-lab",
        &["\"Istio_Lab\"", "only a-z"],
    );
    check(
        "namespace",
        "kube-system",
        "istio-lab",
        &["the cluster's own"],
    );
    check("revision", "1.31", "", &["\"1.31\"", "'.'"]);
    check(
        "profile",
        "nosuch",
        "default",
        &["\"nosuch\"", "ambient, default, minimal"],
    );
    check("version", "1.31", "", &["\"1.31\"", "1.31.0"]);
    check("version", "1.30.0", "", &["\"1.30.0\"", "1.31.0"]);
    check("platform", "moon", "", &["\"moon\"", "gke, k3d"]);
    check(
        "components",
        "pilot",
        "",
        &["base, istiod, cni, ztunnel, none"],
    );
    check("hub", "https://registry.example", "", &["has a scheme"]);
    check("tag", "a b", "", &["\"a b\""]);
    check("variant", "slim", "", &["empty, distroless, debug"]);
    check("image-pull-secrets", "A", "", &["\"A\""]);
    check("mesh-config", "accessLogFile: [a]", "", &["is not text"]);
    check("mesh-config", "- a", "", &["not a YAML mapping"]);
    check("crd-policy", "delete", "keep", &["keep, remove"]);
    check(
        "upgrade-strategy",
        "fast",
        "in-place",
        &["in-place, canary"],
    );
    check("restart-proxies", "auto", "manual", &["manual, rolling"]);
    check(
        "gateway-api-crds",
        "always",
        "never",
        &["never, if-absent, manage"],
    );
    let number = |option: &str, bad: i64, says: &[&str]| {
        let option_named = format!("option {option}: ");
        let says: Vec<&str> = says
            .iter()
            .copied()
            .chain([option_named.as_str()])
            .collect();
        refused(
            |lab| lab.config(option, bad),
            |lab| lab.config(option, 0),
            &says,
        );
    };
    number("replicas", -1, &["1 to 100"]);
    number("autoscale-min", 2, &["needs autoscale-max"]);
    number("autoscale-max", 2, &["needs autoscale-min"]);
    check("values", "global: [\n", "", &[]);
    check("values", "a: 1\na: 2\n", "", &[]);
    check("values", "- a\n", "", &["not a YAML mapping"]);
    check("gateways", "- nam: edge\n", edge, &[]);
    check("gateways", "- name: Edge\n", edge, &["\"Edge\""]);
    check("gateways", "edge", edge, &[]);
    check("gateways", "[{name: a, kind: out}]", edge, &[]);
    check(
        "gateways",
        "[{name: a, replicas: 0}]",
        edge,
        &["leaves no gateway"],
    );
    check(
        "release-sha256",
        "abc",
        "",
        &["\"abc\"", "64 hexadecimal digits"],
    );
}

#[test]
fn values_that_the_charts_refuse_are_named_with_the_reason() {
    refused(
        |lab| lab.config("values", "replicaCount: 10"),
        |lab| lab.config("values", "replicaCount: 1"),
        &["option values: ", "at most 9"],
    );
    refused(
        |lab| lab.config("gateways", "- {name: edge, replicas: 10}\n"),
        |lab| lab.config("gateways", common::EDGE),
        &["option gateways: \"edge\"", "at most 9"],
    );
}

#[test]
fn several_bad_options_are_counted() {
    let lab = Lab::new();
    lab.config("namespace", "-")
        .config("revision", "A")
        .config("values", "3");
    lab.config_changed()
        .assert_says("blocked", &["option namespace: ", "(+2 more)"]);
    lab.assert_untouched();
}

#[test]
fn a_release_that_is_missing_or_damaged_is_asked_for() {
    let check = |spoil: fn(&Lab) -> &Lab, says: &[&str]| {
        let says: Vec<&str> = says
            .iter()
            .copied()
            .chain(["resource istio-release", ATTACH])
            .collect();
        refused(spoil, |lab| lab.attach(&Release::of("1.31.0")), &says);
    };
    let missing = "is not attached";
    check(
        |lab| {
            lab.change(|mut state| {
                state.resources.clear();
                state
            })
        },
        &[missing],
    );
    check(|lab| lab.attach_bytes(b""), &[missing]);
    check(|lab| lab.attach_bytes(b"<html>not found</html>"), &["gzip"]);
    check(
        |lab| {
            let bytes = std::fs::read(lab.payload()).unwrap();
            lab.attach_bytes(&bytes[..bytes.len() / 2])
        },
        &[": "],
    );
    check(
        |lab| lab.attach(&Release::of("1.31.0").without("manifests/charts/gateway")),
        &["no chart gateway"],
    );
    check(
        |lab| lab.attach(&Release::of("1.31.0").without("manifests/")),
        &[": "],
    );
    check(
        |lab| {
            let release = Release::of("1.31.0");
            lab.attach(&release.with("manifests/profiles/default.yaml", "spec: ["))
        },
        &["profile default"],
    );
}

#[test]
fn a_release_of_another_digest_is_refused() {
    let zeros = "0".repeat(64);
    refused(
        |lab| lab.config("release-sha256", zeros.as_str()),
        |lab| lab.config("release-sha256", ""),
        &["resource istio-release", "not release-sha256", ATTACH],
    );
}

#[test]
fn a_release_of_the_pinned_digest_is_taken_in_either_case() {
    let lab = Lab::new();
    lab.config("release-sha256", "0".repeat(64))
        .config_changed();
    let (_, message) = lab.status();
    let shown = message
        .split("sha256 ")
        .nth(1)
        .unwrap()
        .split('…')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(shown.len(), 8, "{message}");
    let digest = sha2_of(&std::fs::read(lab.payload()).unwrap());
    assert!(digest.starts_with(&shown));
    for pinned in [digest.to_uppercase(), digest] {
        lab.config("release-sha256", pinned).config_changed();
        lab.assert_status("active", "Istio 1.31.0 in istio-lab");
    }
}

fn sha2_of(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let hex = |byte: &u8| format!("{byte:02x}");
    Sha256::digest(bytes)
        .iter()
        .map(hex)
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn a_running_control_plane_neither_moves_nor_changes_its_revision() {
    let lab = Lab::installed();
    lab.config("namespace", "other-lab")
        .config_changed()
        .assert_says(
            "blocked",
            &[
                "option namespace: ",
                "istio-lab",
                "run: juju config meshy namespace=istio-lab",
            ],
        );
    lab.assert_untouched();
    lab.config("namespace", "istio-lab")
        .config("revision", "canary")
        .config_changed()
        .assert_says(
            "blocked",
            &[
                "option revision: ",
                "default",
                "run: juju config meshy revision=default",
            ],
        );
    lab.assert_untouched();
    // The command of the hint is the mend.
    lab.config("revision", "default")
        .config_changed()
        .assert_says("active", &[]);
    lab.assert_untouched();
}

#[test]
fn options_that_leave_out_the_running_istiod_are_refused() {
    let nothing = "spec: {components: {base: {enabled: false}, pilot: {enabled: false}}}\n";
    let lab = Lab::installed();
    lab.attach(&Release::of("1.31.0").with("manifests/profiles/empty.yaml", nothing));
    let before = lab.ours();
    for (option, value, says) in [
        ("profile", "empty", "leave out the istiod that runs"),
        (
            "values",
            "global: {resourceScope: cluster}",
            "global.resourceScope",
        ),
    ] {
        lab.config(option, value)
            .config_changed()
            .assert_says("blocked", &[says]);
        assert_eq!(lab.ours(), before, "{option}={value} removed something");
        lab.config(option, if option == "profile" { "default" } else { "" });
    }
}

#[test]
fn a_release_two_minors_older_is_refused_under_a_newer_control_plane() {
    let lab = Lab::installed();
    lab.attach(&Release::of("1.29.2"))
        .config_changed()
        .assert_says("blocked", &["Istio 1.31.0 to 1.29.2", "at most one"]);
    lab.assert_untouched();
}

#[test]
fn a_gateway_with_the_name_of_istiod_is_refused() {
    let lab = Lab::new();
    lab.config("gateways", "- name: istiod\n")
        .config_changed()
        .assert_says("blocked", &["option gateways", "twice"]);
    lab.assert_untouched();
}

#[test]
fn a_foreign_object_among_ours_keeps_all_of_the_set_from_being_written() {
    let lab = Lab::new();
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": "istio-lab"},
    }));
    lab.config_changed()
        .assert_says("blocked", &["ConfigMap istio-lab/istio"]);
    assert_eq!(lab.ours(), [""; 0]);
}

#[test]
fn a_second_injector_for_the_same_pods_is_refused() {
    let theirs = "istio-sidecar-injector-other-lab";
    let lab = Lab::new();
    lab.api.seed(foreign_injector(theirs, "default"));
    lab.config_changed().assert_says(
        "blocked",
        &[
            theirs,
            "injects the same pods",
            "run: juju config meshy revision=",
        ],
    );
    lab.assert_untouched();
    lab.config("revision", "lab").config_changed();
    lab.assert_status("active", "Istio 1.31.0 in istio-lab, revision lab");
}

#[test]
fn an_injector_of_other_pods_is_no_obstacle() {
    let lab = Lab::new();
    lab.api
        .seed(foreign_injector("istio-sidecar-injector-canary", "canary"));
    lab.config_changed()
        .assert_status("active", "Istio 1.31.0 in istio-lab");
}

#[test]
fn an_object_of_somebody_else_is_not_overwritten() {
    let check = |object: Value, says: &[&str]| {
        let lab = Lab::new();
        lab.api.seed_namespace("istio-lab");
        lab.api.seed(object.clone());
        lab.config_changed().assert_says("blocked", says);
        let kept = lab
            .api
            .objects()
            .into_iter()
            .find(|o| common::name(o) == common::name(&object));
        let kept = kept.expect("it is still there");
        assert_eq!(kept["data"], object["data"]);
        assert_eq!(kept["metadata"]["labels"], object["metadata"]["labels"]);
        let writes = lab.api.writes();
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(
            !writes.iter().any(|w| w.ends_with(&format!("/{name}"))),
            "{writes:#?}"
        );
    };
    let config = |metadata: Value| {
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"mesh": "theirs"},
            "metadata": {"name": "istio", "namespace": "istio-lab"},
        });
        for (key, value) in metadata.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        object
    };
    check(
        config(json!({})),
        &[
            "ConfigMap istio-lab/istio belongs to nobody known",
            "left as it is",
        ],
    );
    check(
        config(json!({"annotations": {
            "meta.helm.sh/release-name": "istiod", "meta.helm.sh/release-namespace": "istio-lab"}})),
        &["ConfigMap istio-lab/istio belongs to Helm release istio-lab/istiod"],
    );
    check(
        config(json!({"labels": {"charms.istio-operators.dev/app": "other",
            "charms.istio-operators.dev/model": "1-2", "app.kubernetes.io/managed-by": "istio-k8s"}})),
        &["ConfigMap istio-lab/istio belongs to application other of model 1-2"],
    );
}

#[test]
fn a_conflict_keeps_what_is_no_longer_wanted_until_it_is_solved() {
    let lab = Lab::installed();
    let id = ObjectRef::namespaced("v1", "ConfigMap", "istio-lab", "istio");
    lab.api
        .edit("kubectl-edit", &id, |o| o["metadata"]["labels"] = json!({}));
    lab.config("gateways", "")
        .config_changed()
        .assert_says("blocked", &["ConfigMap istio-lab/istio"]);
    assert!(lab.exists("Deployment edge-lab/edge"));
    lab.api.remove(&id);
    lab.update_status().assert_says("active", &[]);
    assert!(!lab.exists("Deployment edge-lab/edge"));
}

#[test]
fn without_rights_the_status_has_the_command_that_gives_them() {
    for (verb, resource) in [
        ("list", "deployments.apps"),
        (
            "list",
            "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        ),
        (
            "list",
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
        ),
    ] {
        let lab = Lab::new();
        lab.api.forbid(verb, resource);
        let message = format!("not permitted to {verb} {resource}");
        lab.config_changed()
            .assert_says("blocked", &[&message])
            .assert_untouched();
    }
    let lab = Lab::new();
    lab.api.forbid("list", "deployments.apps");
    lab.config_changed().assert_status(
        "blocked",
        "not permitted to list deployments.apps; run: juju trust meshy --scope=cluster",
    );
    for (verb, resource) in [("patch", "services"), ("list", "secrets")] {
        let lab = Lab::new();
        lab.api.forbid(verb, resource);
        let message = format!("not permitted to {verb} {resource}");
        let hint = "run: juju trust meshy --scope=cluster";
        lab.config_changed()
            .assert_says("blocked", &[&message, hint]);
    }
}

#[test]
fn an_api_server_that_is_away_is_waited_for() {
    let lab = Lab::installed();
    lab.api.die_after_writes(0);
    lab.config("values", "replicaCount: 2").config_changed();
    lab.assert_status("waiting", "Kubernetes API server not reachable");
    assert_eq!(lab.state().app_status, lab.state().unit_status);
    lab.api.revive();
    lab.update_status().assert_says("active", &[]);
    assert_eq!(
        lab.get("apps/v1", "Deployment", "istiod")["spec"]["replicas"],
        2
    );
}

#[test]
fn what_the_cluster_refuses_is_told_with_its_words() {
    let path = "/apis/apps/v1/namespaces/istio-lab/deployments/istiod";
    let answer = |code: u16, message: &str| {
        json!({"kind": "Status", "status": "Failure", "code": code, "message": message,
               "reason": "Invalid"})
        .to_string()
    };
    let check = |code: u16, body: &str, status: &str, says: &[&str]| {
        let lab = Lab::new();
        lab.api.script("PATCH", path, code, body, None);
        lab.config_changed().assert_says(status, says);
        assert!(!lab.exists("MutatingWebhookConfiguration istio-sidecar-injector-istio-lab"));
    };
    let invalid = answer(422, "spec.replicas: must be small");
    check(
        422,
        &invalid,
        "blocked",
        &["the cluster refuses Deployment istio-lab/istiod", "small"],
    );
    let internal = answer(500, "etcd has no leader");
    check(500, &internal, "waiting", &["API server answers 500"]);
}

#[test]
fn an_event_on_a_broken_installation_does_not_fail_the_hook() {
    let lab = Lab::new();
    lab.attach_bytes(b"").config("namespace", "-");
    for event in [
        Event::Install,
        Event::Start,
        Event::LeaderElected,
        Event::UpgradeCharm,
        Event::UpdateStatus,
        Event::Stop,
    ] {
        lab.hook(event)
            .assert_says("blocked", &["option namespace"])
            .assert_untouched();
    }
}
