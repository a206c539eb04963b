//! One release beside another: promoted, rolled back, removed.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, Release};
use juju_charm::Event;
use kube_apply::ObjectRef;
use serde_json::{Value, json};

const INJECTOR: &str = "MutatingWebhookConfiguration istio-sidecar-injector-istio-lab";
const NEW_INJECTOR: &str = "MutatingWebhookConfiguration istio-sidecar-injector-1-31-0-istio-lab";
const TAG: &str = "istio-revision-tag-default-istio-lab";

/// A lab in which 1.30.3 runs as the default revision, and 1.31.0 beside it.
fn canary() -> Lab {
    let lab = Lab::running("1.30.3");
    lab.config("upgrade-strategy", "canary")
        .attach(&Release::of("1.31.0"))
        .hook(Event::UpgradeCharm);
    lab.assert_status(
        "active",
        "Istio 1.31.0 in istio-lab, revision 1-31-0; default is revision default",
    );
    lab
}

fn selects(lab: &Lab, name: &str) -> Option<bool> {
    let id = ObjectRef::cluster(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        name,
    );
    let config = lab.api.get(&id)?;
    Some(!mesh::upgrade::promotion::is_parked(&config))
}

/// Which revision the default validator's Service is of.
fn validator(lab: &Lab) -> String {
    let id = ObjectRef::cluster(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "istiod-default-validator",
    );
    let config = lab.api.get(&id).unwrap();
    let service = &config["webhooks"][0]["clientConfig"]["service"]["name"];
    service.as_str().unwrap().to_owned()
}

fn gateways_revision(lab: &Lab) -> Value {
    let id = ObjectRef::namespaced("apps/v1", "Deployment", "edge-lab", "edge");
    lab.api.get(&id).unwrap()["spec"]["template"]["metadata"]["labels"]["istio.io/rev"].clone()
}

#[test]
fn a_new_revision_comes_up_beside_the_old_one_and_changes_nothing_of_it() {
    let lab = canary();
    let writes = lab.api.writes();
    for of_the_old in [
        "/deployments/istiod",
        "/configmaps/istio-sidecar-injector",
        "/istio-sidecar-injector-istio-lab",
        "/istiod-default-validator",
        "/deployments/edge",
    ] {
        assert!(
            !writes.iter().any(|w| w.ends_with(of_the_old)),
            "{of_the_old} {writes:#?}"
        );
    }
    assert_eq!(lab.image("istiod"), "registry.example/pilot:1.30.3");
    assert_eq!(lab.image("istiod-1-31-0"), "registry.example/pilot:1.31.0");
    assert!(lab.exists(INJECTOR) && lab.exists(NEW_INJECTOR));
    assert_eq!(validator(&lab), "istiod");
    assert_eq!(gateways_revision(&lab), "default");
    lab.api.forget_requests();
    lab.update_status().assert_untouched();
}

#[test]
fn beside_others_a_far_release_is_reached_by_promoting_each_stage() {
    let lab = Lab::running("1.28.1");
    lab.config("upgrade-strategy", "canary")
        .attach_stage(1, &Release::of("1.30.3"))
        .attach(&Release::of("1.31.0"))
        .hook(Event::UpgradeCharm);
    let stands = "Istio 1.30.3 in istio-lab, revision 1-30-3; default is revision default, \
                  promote to go on to 1.31.0";
    lab.assert_status("active", stands);
    lab.update_status().assert_status("active", stands);
    for back in [false, true, false] {
        let action = if back { "rollback" } else { "promote" };
        let moved = lab.action(action, json!({}));
        assert_eq!(moved.failure, None, "{action}");
        assert_eq!(moved.results["version"], "1.30.3");
        assert!(
            !lab.exists("Deployment istio-lab/istiod-1-31-0"),
            "{action}"
        );
    }
    lab.update_status().assert_status(
        "active",
        "Istio 1.31.0 in istio-lab, revision 1-31-0; default is revision 1-30-3",
    );
    assert_eq!(lab.action("promote", json!({})).failure, None);
    for left in ["default", "1-30-3"] {
        let removed = lab.action("remove-revision", json!({"revision": left}));
        assert_eq!(removed.failure, None, "{left}");
    }
    lab.update_status()
        .assert_status("active", "Istio 1.31.0 in istio-lab, revision 1-31-0");
    let istiods = lab.ours();
    let istiods = istiods
        .iter()
        .filter(|o| o.starts_with("Deployment istio-lab/"));
    assert_eq!(
        istiods.collect::<Vec<_>>(),
        ["Deployment istio-lab/istiod-1-31-0"]
    );
}

#[test]
fn promoted_and_rolled_back_the_default_moves_and_returns_however_often() {
    let lab = canary();
    let old = "istio-sidecar-injector-istio-lab";
    for _ in 0..2 {
        let plan = lab.action("promote", json!({"dry-run": true}));
        assert_eq!(plan.failure, None);
        assert_ne!(plan.results["changes"], "0");
        assert_eq!((selects(&lab, TAG), selects(&lab, old)), (None, Some(true)));

        for _ in 0..2 {
            let promoted = lab.action("promote", json!({}));
            assert_eq!(promoted.failure, None);
            assert_eq!(promoted.results["default"], "1-31-0");
            assert_eq!(
                (selects(&lab, TAG), selects(&lab, old)),
                (Some(true), Some(false))
            );
            assert_eq!(validator(&lab), "istiod-1-31-0");
            assert_eq!(gateways_revision(&lab), "1-31-0");
        }
        lab.update_status();
        lab.assert_status("active", "Istio 1.31.0 in istio-lab, revision 1-31-0");
        lab.api.forget_requests();
        lab.update_status().assert_untouched();

        for _ in 0..2 {
            let back = lab.action("rollback", json!({}));
            assert_eq!(back.failure, None);
            assert_eq!(back.results["default"], "default");
            assert_eq!((selects(&lab, TAG), selects(&lab, old)), (None, Some(true)));
            assert_eq!(validator(&lab), "istiod");
            assert_eq!(gateways_revision(&lab), "default");
        }
        lab.update_status().api.forget_requests();
        lab.update_status().assert_untouched();
    }
}

#[test]
fn a_plan_lists_each_object_once() {
    let lab = canary();
    let plan = lab.action("promote", json!({"dry-run": true}));
    let tag = format!("MutatingWebhookConfiguration {TAG}");
    assert_eq!(plan.results["plan"].matches(&tag).count(), 1, "{plan:?}");
    lab.config("values", "revisionTags: [prod]");
    let plan = lab.action("plan", json!({"format": "json"}));
    let plan: Value = serde_json::from_str(&plan.results["plan"]).unwrap();
    let created: Vec<_> = plan["create"].as_array().unwrap().iter().collect();
    for object in &created {
        assert_eq!(
            created.iter().filter(|o| o == &object).count(),
            1,
            "{object}"
        );
    }
}

#[test]
fn a_promotion_gives_before_it_takes() {
    let lab = canary();
    lab.api.forget_requests();
    lab.action("promote", json!({}));
    let order: Vec<(String, bool)> = lab
        .api
        .requests()
        .iter()
        .filter(|request| request.is_write() && request.path.contains("mutatingwebhook"))
        .map(|request| {
            let name = request.body["metadata"]["name"]
                .as_str()
                .unwrap_or_default();
            let parked = mesh::upgrade::promotion::is_parked(&request.body);
            (name.to_owned(), parked)
        })
        .collect();
    let expect = [
        // Parked until istiod has signed it, then active, and only then is the old one parked.
        (TAG.to_owned(), true),
        (TAG.to_owned(), false),
        ("istio-sidecar-injector-istio-lab".to_owned(), true),
    ];
    assert_eq!(order, expect);
}

#[test]
fn a_promotion_that_is_cut_off_anywhere_leaves_an_injector_for_the_default() {
    let lab = canary();
    lab.api.forget_requests();
    lab.action("promote", json!({}));
    let all = u32::try_from(lab.api.writes().len()).unwrap();
    for writes in 0..all {
        let lab = canary();
        lab.api.die_after_writes(writes);
        lab.action("promote", json!({}));
        lab.api.revive();
        let old = "istio-sidecar-injector-istio-lab";
        let active = [selects(&lab, TAG), selects(&lab, old)].contains(&Some(true));
        assert!(active, "after {writes} writes");
        lab.update_status();
        let again = lab.action("promote", json!({}));
        assert_eq!(again.failure, None, "after {writes} writes");
        assert_eq!(
            (selects(&lab, TAG), selects(&lab, old)),
            (Some(true), Some(false))
        );
    }
}

#[test]
fn a_revision_that_is_not_needed_goes_and_leaves_nothing() {
    let lab = canary();
    let refused = lab.action("remove-revision", json!({"revision": "default"}));
    assert!(refused.failure.unwrap().contains("answers for the default"));
    lab.action("promote", json!({}));
    let before = lab.ours();
    let plan = lab.action(
        "remove-revision",
        json!({"revision": "default", "dry-run": true}),
    );
    assert_eq!(plan.failure, None);
    assert!(plan.results["plan"].contains("prune ClusterRole istiod-istio-lab"));
    assert_eq!(lab.ours(), before);
    let gone = lab.action("remove-revision", json!({"revision": "default"}));
    assert_eq!(gone.failure, None);
    let left = lab.ours();
    let mut removed: Vec<_> = before.iter().filter(|o| !left.contains(o)).collect();
    removed.sort();
    assert_eq!(
        removed,
        [
            "ClusterRole istiod-istio-lab",
            "ConfigMap istio-lab/istio",
            "ConfigMap istio-lab/istio-sidecar-injector",
            "Deployment istio-lab/istiod",
            INJECTOR,
            "Secret istio-lab/meshy.revision.default",
            "Service istio-lab/istiod",
            "ServiceAccount istio-lab/istiod",
            "ValidatingWebhookConfiguration istio-validator-istio-lab",
        ]
    );
    assert!(
        left.iter().all(|object| before.contains(object)),
        "{left:#?}"
    );
    lab.update_status();
    lab.assert_status("active", "Istio 1.31.0 in istio-lab, revision 1-31-0");
    lab.api.forget_requests();
    lab.update_status().assert_untouched();
}

#[test]
fn removing_a_revision_takes_no_other_along_that_has_not_come_up() {
    let lab = canary();
    lab.action("promote", json!({}));
    let mut third = lab.get("apps/v1", "Deployment", "istiod-1-31-0");
    third["metadata"]["name"] = "istiod-third".into();
    third["metadata"]["labels"]["istio.io/rev"] = "third".into();
    lab.api.seed(third);
    lab.api.forget_requests();
    let remove = |revision: &str| lab.action("remove-revision", json!({"revision": revision}));
    let refused = remove("default").failure.unwrap();
    assert!(refused.contains("third has not come up"), "{refused}");
    assert!(
        refused.contains("remove-revision revision=third"),
        "{refused}"
    );
    lab.assert_untouched();
    assert_eq!(remove("third").failure, None);
    assert!(!lab.exists("Deployment istio-lab/istiod-third"));
    assert_eq!(remove("default").failure, None);
    assert!(!lab.exists("Deployment istio-lab/istiod"));
}

#[test]
fn a_revision_that_is_no_name_fails_the_action_and_changes_nothing() {
    let lab = canary();
    lab.action("promote", json!({}));
    lab.api.forget_requests();
    for (action, revision) in [
        ("rollback", "1.30.3"),
        ("remove-revision", "Default"),
        ("remove-revision", ""),
    ] {
        let failure = lab.action(action, json!({"revision": revision})).failure;
        let failure = failure.unwrap();
        assert!(failure.contains("parameter revision: "), "{failure}");
        assert!(failure.contains(revision), "{failure}");
    }
    lab.assert_untouched();
}

#[test]
fn a_record_grants_no_rights() {
    let lab = canary();
    let role = ObjectRef::cluster(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "istiod-istio-lab",
    );
    lab.api
        .edit("kubectl-edit", &role, |role| role["rules"] = json!([]));
    lab.api.forget_requests();
    lab.update_status().assert_untouched();
    assert_eq!(lab.api.get(&role).unwrap()["rules"], json!([]));
}

#[test]
fn the_application_goes_with_all_its_revisions() {
    let lab = canary();
    lab.change(|mut state| {
        state.planned_units = 0;
        state
    });
    lab.hook(Event::Remove);
    assert_eq!(
        lab.ours(),
        ["CustomResourceDefinition virtualservices.networking.istio.io"]
    );
}
