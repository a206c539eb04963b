//! Which Istio, which gateway: one answer is taken, several are named, none is waited for.

mod common;

use common::*;
use juju_charm::Event;
use juju_sim::scenario::{Relation, databag};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use serde_json::json;

#[test]
fn without_istio_the_status_says_what_was_looked_for_and_heals_by_itself() {
    let api = FakeApi::new();
    let state = leader().relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "blocked",
        "no Istio found: the cluster does not serve virtualservices.networking.istio.io",
    );
    // What a requirer's library needs first does not wait for Istio.
    assert_eq!(
        app_data(&after, 1, "_supported_versions"),
        Some("- v1\n- v2\n")
    );

    let api = bare_cluster();
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(
        &after,
        "blocked",
        "no Istio found: looked for istiod (label app=istiod)",
    );
    api.seed(istiod("istio-lab", "default"));
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(
        &after,
        "blocked",
        "no gateway found: looked for an ingress gateway of control plane istio-lab/default",
    );
    for object in edge("edge-lab", "edge") {
        api.seed(object);
    }
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(&after, "active", "1 route at http://192.0.2.7");
}

#[test]
fn several_control_planes_are_named_with_the_option_that_decides() {
    let api = cluster();
    api.seed(istiod("other-lab", "default"));
    let after = config_changed(&api, &leader());
    assert_status(
        &after,
        "blocked",
        "several control planes: istio-lab/default, other-lab/default; \
         run: juju config meshy istio-namespace=…",
    );
    assert_eq!(api.writes(), Vec::<String>::new());
    let after = config_changed(&api, &after.config("istio-namespace", "istio-lab"));
    assert_status(&after, "active", "0 routes at http://192.0.2.7");

    let api = cluster();
    api.seed(istiod("istio-lab", "canary"));
    let after = config_changed(&api, &leader());
    let (_, message) = status(&after);
    assert!(
        message.ends_with("run: juju config meshy revision=…"),
        "{message}"
    );
    let after = config_changed(&api, &after.config("revision", "canary"));
    assert_status(&after, "active", "0 routes at http://192.0.2.7");
}

#[test]
fn several_gateways_are_named_and_the_option_takes_their_names() {
    let api = cluster();
    for object in edge("back-lab", "back") {
        api.seed(object);
    }
    let after = config_changed(&api, &leader());
    assert_status(
        &after,
        "blocked",
        "several gateways: back-lab/back, edge-lab/edge; run: juju config meshy gateway=…",
    );
    for gateway in ["edge-lab/edge", "edge"] {
        let after = config_changed(&api, &after.clone().config("gateway", gateway));
        assert_status(&after, "active", "0 routes at http://192.0.2.7");
    }
    let after = config_changed(&api, &after.config("gateway", "nowhere/edge"));
    assert_status(
        &after,
        "blocked",
        "no gateway found: looked for gateway nowhere/edge",
    );
}

#[test]
fn the_related_istio_is_preferred_and_waited_for() {
    let api = cluster();
    api.seed(istiod("other-lab", "default"));
    let related = |namespace: &str| {
        Relation::new("istio-metadata", 1, "mesh")
            .remote_app_data(databag([("root_namespace", namespace)]))
    };
    let after = config_changed(&api, &leader().relation(related("istio-lab")));
    assert_status(&after, "active", "0 routes at http://192.0.2.7");
    let after = config_changed(&api, &leader().relation(related("soon-lab")));
    let (status, message) = status(&after);
    assert_eq!(status, "waiting");
    assert!(message.contains("root namespace soon-lab"), "{message}");
}

#[test]
fn a_gateway_without_the_usual_label_is_found_too() {
    let api = bare_cluster();
    api.seed(istiod("istio-lab", "default"));
    for mut object in edge("edge-lab", "edge") {
        if object["kind"] == "Deployment" {
            object["metadata"]["labels"] = json!({"team": "web"});
        }
        api.seed(object);
    }
    let after = config_changed(&api, &leader());
    assert_status(&after, "active", "0 routes at http://192.0.2.7");
}

#[test]
fn a_load_balancer_without_an_address_is_waited_for_and_other_services_are_fine() {
    let check = |kind: &str, balancer: serde_json::Value, status: &str, message: &str| {
        let api = cluster();
        let id = ObjectRef::namespaced("v1", "Service", "edge-lab", "edge");
        api.edit("someone", &id, |service| {
            service["spec"]["type"] = json!(kind);
            service["status"] = json!({"loadBalancer": balancer});
        });
        let after = config_changed(&api, &leader().relation(traefik(1, "echo")));
        assert_status(&after, status, message);
        assert_eq!(routed(&api).len(), 2, "routes need no address");
    };
    check(
        "LoadBalancer",
        json!({}),
        "waiting",
        "load balancer of Service edge-lab/edge has no address yet",
    );
    check(
        "NodePort",
        json!({}),
        "active",
        "1 route at http://10.96.0.7",
    );
    check(
        "ClusterIP",
        json!({}),
        "active",
        "1 route at http://10.96.0.7",
    );
    let two = json!({"ingress": [{"ip": "2001:db8::7"}, {"ip": "192.0.2.7"}]});
    check(
        "LoadBalancer",
        two,
        "active",
        "1 route at http://[2001:db8::7]",
    );
}

#[test]
fn missing_permission_and_a_lost_api_server_are_statuses() {
    let api = cluster();
    api.forbid("list", "deployments.apps");
    let after = config_changed(&api, &leader());
    let (text, message) = status(&after);
    assert_eq!(text, "blocked");
    assert!(
        message.contains("run: juju trust meshy --scope=cluster"),
        "{message}"
    );

    let api = cluster();
    api.die_after_writes(0);
    let state = leader().relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_status(&after, "waiting", "Kubernetes API server not reachable");
    assert_eq!(
        app_data(&after, 1, "_supported_versions"),
        Some("- v1\n- v2\n")
    );
    api.revive();
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(&after, "active", "1 route at http://192.0.2.7");
}

#[test]
fn a_bad_option_blocks_and_touches_nothing() {
    let api = cluster();
    let after = config_changed(&api, &leader().relation(traefik(1, "echo")));
    api.forget_requests();
    let after = config_changed(&api, &after.config("auth", "maybe"));
    let (text, message) = status(&after);
    assert_eq!(text, "blocked");
    assert!(
        message.starts_with("option auth must be auto, required or none"),
        "{message}"
    );
    assert_eq!(api.writes(), Vec::<String>::new());
    assert_eq!(routed(&api).len(), 2);
}

#[test]
fn discover_shows_everything_found() {
    let results = action(&cluster(), "discover", &json!({}), &leader());
    assert_eq!(
        results["control-planes"],
        "\
CONTROL-PLANE      VERSION  ROOT-NAMESPACE  TRUST-DOMAIN   TAGS  EXTENSION-PROVIDERS  MODE     OWNER    READY
istio-lab/default  1.30.3   istio-lab       cluster.local  -     -                    sidecar  unknown  true"
    );
    assert_eq!(
        results["gateways"],
        "\
GATEWAY        KIND        REVISION  SERVICE            ADDRESS    ACCOUNT  READY
edge-lab/edge  Deployment  -         LoadBalancer edge  192.0.2.7  default  true"
    );
}
