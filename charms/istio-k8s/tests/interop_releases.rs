//! One real release after the other, with the charts that Istio has published, on an API server in
//! this process. A release that the testbed lacks is stood in for by the charts of the one before it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use std::collections::BTreeMap;

use common::{EDGE, Lab};
use juju_charm::Event;
use serde_json::{Value, json};
use testbed::{Istio, V1_24, V1_26, V1_30, V1_31};

/// A release: whose charts, and under which version.
type Step = (Istio, &'static str);

fn attach(lab: &Lab, resource: &str, (charts, version): Step) {
    let payload = charts.payload_as(version).expect("a payload");
    lab.change(|state| state.resource(resource, payload));
}

/// A lab with the release attached, and nothing installed.
fn lab(release: Step) -> Lab {
    let lab = Lab::new();
    attach(&lab, "istio-release", release);
    lab.config("gateways", EDGE).config("replicas", 2);
    lab
}

/// A lab in which the release runs.
fn running(release: Step) -> Lab {
    let lab = lab(release);
    lab.hook(Event::ConfigChanged);
    lab.assert_status("active", &format!("Istio {} in istio-lab", release.1));
    lab
}

/// Jumps to the last of the releases over all others, each hook one step.
fn jump(lab: &Lab, steps: &[Step]) {
    let (goal, stages) = steps.split_last().expect("a goal");
    for (number, stage) in (1..).zip(stages) {
        attach(lab, &format!("istio-release-stage-{number}"), *stage);
    }
    attach(lab, "istio-release", *goal);
    for (_, version) in stages {
        lab.hook(Event::UpdateStatus).assert_status(
            "active",
            &format!("Istio {version} in istio-lab, on the way to {}", goal.1),
        );
        assert_eq!(lab.state().workload_version, *version);
        let left = versions(lab);
        assert!(
            !left.is_empty() && left.iter().all(|(_, v)| v == version),
            "{version} {left:#?}"
        );
        println!("{version}: {} objects", lab.ours().len());
    }
    lab.hook(Event::UpdateStatus)
        .assert_status("active", &format!("Istio {} in istio-lab", goal.1));
    println!("{}: {} objects", goal.1, lab.ours().len());
}

/// The version that each of our objects says it is of.
fn versions(lab: &Lab) -> BTreeMap<String, String> {
    let version = |object: &Value| {
        let version = object["metadata"]["labels"]["app.kubernetes.io/version"].as_str()?;
        Some((common::name(object), version.to_owned()))
    };
    ours(lab).iter().filter_map(version).collect()
}

fn ours(lab: &Lab) -> Vec<Value> {
    let objects = lab.api.objects().into_iter();
    objects
        .filter(|o| o["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "istio-k8s")
        .collect()
}

/// Our objects without what depends on when they were written.
fn content(lab: &Lab) -> BTreeMap<String, Value> {
    let content = |mut object: Value| {
        let name = common::name(&object);
        for of_the_server in ["generation", "resourceVersion", "uid", "managedFields"] {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove(of_the_server);
        }
        object.as_object_mut().unwrap().remove("status");
        (name, object)
    };
    ours(lab).into_iter().map(content).collect()
}

#[test]
fn jumps_over_several_minors_end_as_a_fresh_installation_of_their_goal_would() {
    let lab = running((V1_24, "1.24.0"));
    let jumps: [&[Step]; 3] = [
        &[(V1_24, "1.25.0"), (V1_26, "1.26.0")],
        &[
            (V1_26, "1.27.0"),
            (V1_26, "1.28.0"),
            (V1_26, "1.29.0"),
            (V1_30, "1.30.3"),
        ],
        &[(V1_31, "1.31.0"), (V1_31, "1.32.0")],
    ];
    for steps in jumps {
        jump(&lab, steps);
        lab.api.forget_requests();
        lab.update_status().assert_untouched();
        let goal = *steps.last().unwrap();
        let (jumped, fresh) = (content(&lab), content(&running(goal)));
        for (name, object) in &fresh {
            assert_eq!(jumped.get(name), Some(object), "{name}");
        }
        let left: Vec<&String> = jumped
            .keys()
            .filter(|name| !fresh.contains_key(*name))
            .collect();
        // Definitions are never deleted, whoever still has objects of them.
        assert!(
            left.iter()
                .all(|name| name.starts_with("CustomResourceDefinition ")),
            "{left:#?}"
        );
    }
}

#[test]
fn a_real_release_two_minors_ahead_comes_beside_and_the_old_one_goes_without_a_trace() {
    let goal = (V1_26, "1.26.0");
    let lab = running((V1_24, "1.24.0"));
    lab.api.seed(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
                     "metadata": {"name": "istio-theirs", "namespace": "istio-lab"}}),
    );
    let theirs = lab.get("v1", "ConfigMap", "istio-theirs");
    lab.config("upgrade-strategy", "canary");
    attach(&lab, "istio-release", goal);
    lab.hook(Event::UpgradeCharm).assert_status(
        "active",
        "Istio 1.26.0 in istio-lab, revision 1-26-0; default is revision default",
    );
    for (action, params) in [
        ("promote", json!({})),
        ("rollback", json!({})),
        ("promote", json!({})),
        ("remove-revision", json!({"revision": "default"})),
    ] {
        assert_eq!(lab.action(action, params).failure, None, "{action}");
    }
    lab.update_status()
        .assert_status("active", "Istio 1.26.0 in istio-lab, revision 1-26-0");
    assert_eq!(lab.get("v1", "ConfigMap", "istio-theirs"), theirs);

    let fresh = self::lab(goal);
    fresh
        .config("revision", "1-26-0")
        .hook(Event::ConfigChanged);
    assert_eq!(fresh.action("promote", json!({})).failure, None);
    let names = |lab: &Lab| -> Vec<String> { content(lab).into_keys().collect() };
    let definition = |name: &String| name.starts_with("CustomResourceDefinition ");
    let mut left = names(&lab);
    left.retain(|name| !definition(name) || fresh.ours().contains(name));
    assert_eq!(left, names(&fresh));
}

#[test]
fn a_real_release_one_minor_back_is_as_it_was_and_two_back_are_refused() {
    let lab = running((V1_30, "1.30.3"));
    let before = content(&lab);
    jump(&lab, &[(V1_31, "1.31.0")]);
    jump(&lab, &[(V1_30, "1.30.3")]);
    let after = content(&lab);
    for (name, object) in before {
        // Of a definition the newer one stays, for it has the fields of both.
        if !name.starts_with("CustomResourceDefinition ") {
            assert_eq!(after.get(&name), Some(&object), "{name}");
        }
    }
    attach(&lab, "istio-release", (V1_26, "1.26.0"));
    lab.api.forget_requests();
    lab.update_status()
        .assert_says("blocked", &["Istio 1.30.3 to 1.26.0", "at most one"])
        .assert_untouched();
}

#[test]
fn a_jump_of_real_releases_is_told_before_it_is_made() {
    let lab = running((V1_24, "1.24.0"));
    attach(&lab, "istio-release", (V1_26, "1.26.0"));
    lab.api.forget_requests();
    let check = |findings: &[&str]| {
        let answer = lab.action("precheck", json!({"format": "json"}));
        assert_eq!(
            (answer.failure, &answer.results["from"]),
            (None, &"1.24.0".to_owned())
        );
        let found: Value = serde_json::from_str(&answer.results["findings"]).unwrap();
        let found = found.as_array().unwrap().iter();
        let found: Vec<&str> = found
            .filter(|finding| finding["severity"] == "error")
            .map(|finding| finding["code"].as_str().unwrap())
            .collect();
        assert_eq!(found, findings);
    };
    check(&["minors-skipped"]);
    attach(&lab, "istio-release-stage-1", (V1_24, "1.25.0"));
    check(&[]);
    lab.assert_untouched();
}
