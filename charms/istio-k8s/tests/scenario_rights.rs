//! What an upgrade may do is asked before it begins.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::collections::BTreeSet;

use common::{Lab, Release};
use juju_charm::Event;
use kube_apply::testing::Recorded;
use serde_json::{Value, json};

/// The definition of the policies of hardened mode.
const POLICY_CRD: &str = r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: authorizationpolicies.security.istio.io
spec:
  group: security.istio.io
  scope: Namespaced
  names: {kind: AuthorizationPolicy, plural: authorizationpolicies}
  versions: [{name: v1, served: true, storage: true}]
";

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A lab with everything that the charm writes, and the next minor attached.
fn everything() -> Lab {
    let lab = Lab::new();
    let release = |version| {
        Release::of(version).with("manifests/charts/base/templates/policies.yaml", POLICY_CRD)
    };
    lab.attach(&release("1.30.3"))
        .config("profile", "ambient")
        .config("hardened-mode", true)
        .config("replicas", 2)
        .hook(Event::ConfigChanged);
    lab.assert_says("active", &["1.30.3"]);
    lab.attach(&release("1.31.0"));
    lab.api.forget_requests();
    lab
}

/// Verb, resource with its group, and namespace.
type Right = (String, String, String);

/// The right that a request needs.
fn used(request: &Recorded) -> Right {
    let path = request.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        other => unreachable!("{other:?}"),
    };
    let (namespace, resource) = match rest {
        ["namespaces", namespace, resource, ..] => (*namespace, *resource),
        [resource, ..] => ("", *resource),
        [] => unreachable!("{path}"),
    };
    let verb = match request.method.as_str() {
        "POST" => "create",
        "PATCH" => "patch",
        "DELETE" => "delete",
        other => unreachable!("{other}"),
    };
    (
        verb.to_owned(),
        format!("{resource}.{group}"),
        namespace.to_owned(),
    )
}

/// The right that a review asks about.
fn asked(review: &Value) -> Right {
    let attributes = &review["spec"]["resourceAttributes"];
    let text = |key: &str| attributes[key].as_str().unwrap_or_default().to_owned();
    (
        text("verb"),
        format!("{}.{}", text("resource"), text("group")),
        text("namespace"),
    )
}

fn reviews(lab: &Lab) -> Vec<Right> {
    let requests = lab.api.requests();
    let reviews = requests.iter().filter(|request| request.path == REVIEWS);
    reviews.map(|review| asked(&review.body)).collect()
}

#[test]
fn whatever_an_upgrade_writes_was_asked_about_before() {
    let lab = everything();
    // Who may not do everything is asked about each.
    lab.api
        .forbid("escalate", "clusterroles.rbac.authorization.k8s.io");
    lab.config("values", "global: {proxy: {image: other}}")
        .hook(Event::UpgradeCharm)
        .assert_says("active", &["1.31.0"]);
    let asked: BTreeSet<Right> = reviews(&lab).into_iter().collect();
    let writes = lab.api.requests();
    let writes: Vec<Right> = writes.iter().filter(|r| r.is_write()).map(used).collect();
    assert!(writes.len() > 5, "{writes:#?}");
    for (verb, resource, namespace) in writes {
        let everywhere = (verb.clone(), resource.clone(), String::new());
        let there = (verb, resource, namespace);
        assert!(
            asked.contains(&there) || asked.contains(&everywhere),
            "{there:?} {asked:#?}"
        );
    }
    for resource in [
        "daemonsets.apps",
        "authorizationpolicies.security.istio.io",
        "secrets.",
        "customresourcedefinitions.apiextensions.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    ] {
        let is_of = |(verb, of, _): &Right| verb == "patch" && of == resource;
        assert!(asked.iter().any(is_of), "{resource} {asked:#?}");
    }
}

#[test]
fn who_may_do_everything_is_asked_once() {
    let lab = everything();
    lab.hook(Event::UpgradeCharm);
    let everything = ["*", "*.*", ""].map(str::to_owned);
    assert_eq!(reviews(&lab), [everything.into()]);
}

#[test]
fn a_right_that_is_missing_somewhere_keeps_the_upgrade_from_starting() {
    let lab = everything();
    lab.api.forbid("delete", "daemonsets.apps");
    lab.hook(Event::UpgradeCharm)
        .assert_says(
            "blocked",
            &[
                "delete daemonsets: an upgrade without these rights would stop half way",
                "run: juju trust meshy --scope=cluster",
            ],
        )
        .assert_untouched();
    let findings = lab.action("precheck", json!({})).results["findings"].clone();
    assert!(findings.contains("missing-right"), "{findings}");
}
