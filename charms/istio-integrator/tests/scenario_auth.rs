//! Authorization fails closed, hook by hook.

mod common;

use common::*;
use juju_charm::Event;
use juju_hooks::RelationKind;
use kube_apply::ObjectRef;
use mesh::auth::PROBE_PATH;
use serde_json::json;

/// The cluster and the state after authorization was related and proven.
fn guarded() -> (kube_apply::testing::FakeApi, juju_sim::scenario::State) {
    let api = cluster();
    api.seed(gate_service());
    answers(&api, PROBE_PATH, 404, "", Some(1));
    open(&api, 1);
    authorizing(&api);
    denying(&api);
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    (api, after)
}

/// Position of the first write of a kind; beyond all others if there is none.
fn position(writes: &[String], method: &str, plural: &str) -> usize {
    writes
        .iter()
        .position(|write| write.starts_with(method) && write.contains(plural))
        .unwrap_or(usize::MAX)
}

#[test]
fn routes_come_after_the_policy_and_the_policy_goes_after_proof() {
    let (api, after) = guarded();
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    assert_eq!(kinds(&api), ["EnvoyFilter", "Gateway", "VirtualService"]);
    assert_eq!(app_data(&after, 2, "_supported_versions"), Some("- v1\n"));
    let writes = api.writes();
    let policy = position(&writes, "PATCH", "authorizationpolicies");
    let filter = position(&writes, "PATCH", "envoyfilters");
    let probe = position(&writes, "PATCH", "virtualservices/meshy-auth-probe");
    let routes = position(&writes, "PATCH", "virtualservices/meshy-routes");
    let lifted = position(&writes, "DELETE", "authorizationpolicies");
    assert!(lifted < writes.len(), "{writes:#?}");
    assert!(policy < probe && probe < filter, "{writes:#?}");
    assert!(
        filter < lifted && policy < routes && routes <= lifted,
        "{writes:#?}"
    );
}

#[test]
fn a_hook_in_which_nothing_changed_writes_nothing() {
    let (api, after) = guarded();
    api.forget_requests();
    let again = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
    assert_eq!(again.unit_status, after.unit_status);
}

#[test]
fn while_nothing_is_proven_new_routes_wait_and_the_policy_stands() {
    let api = cluster();
    api.seed(gate_service());
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    // No pod answers.
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "waiting",
        "neither authorization nor its DENY policy is proven in force: new routes wait",
    );
    assert_eq!(
        kinds(&api),
        ["AuthorizationPolicy", "Gateway", "VirtualService"]
    );
    assert!(routed(&api).is_empty());
    assert_eq!(app_data(&after, 1, "ingress"), None);
}

#[test]
fn an_authorizer_whose_service_is_missing_means_denied() {
    let api = cluster();
    denying(&api);
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "waiting",
        "all is denied: ingress-auth of gatekeeper: Service lab/gate does not exist",
    );
    assert_eq!(
        kinds(&api),
        ["AuthorizationPolicy", "Gateway", "VirtualService"]
    );
    assert_eq!(
        routed(&api).len(),
        2,
        "behind the proven policy routes may stand"
    );
}

#[test]
fn incomplete_bad_and_rival_authorizers_mean_denied() {
    let check = |relations: Vec<juju_sim::scenario::Relation>, status: &str, message: &str| {
        let api = cluster();
        api.seed(gate_service());
        denying(&api);
        let mut state = leader().relation(traefik(1, "echo"));
        state.relations.extend(relations);
        let after = config_changed(&api, &state);
        assert_status(&after, status, message);
        assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
        assert!(!kinds(&api).contains(&"EnvoyFilter".to_owned()));
    };
    check(
        vec![empty_relation("ingress-auth", 2, "gatekeeper")],
        "waiting",
        "all is denied: ingress-auth of gatekeeper: no data yet",
    );
    let bad = juju_sim::scenario::Relation::new("ingress-auth", 2, "gatekeeper").remote_app_data(
        juju_sim::scenario::databag([
            ("_supported_versions", "- v1\n"),
            (
                "data",
                "service: gate\nport: 8080\nallowed-response-headers: [\"a b\"]\n",
            ),
        ]),
    );
    check(
        vec![bad],
        "blocked",
        "all is denied: ingress-auth of gatekeeper: \"a b\" cannot be used as a header name",
    );
    check(
        vec![gate(2, "gatekeeper"), gate(3, "rival")],
        "blocked",
        "several applications offer authorization, all is denied: gatekeeper, rival",
    );
}

#[test]
fn removing_the_authorizer_denies_everything_until_the_admin_says_otherwise() {
    let (api, after) = guarded();
    let broken = gate(2, "gatekeeper").event(RelationKind::Broken, None);
    let after = hook(&api, broken, &after);
    assert_status(
        &after,
        "blocked",
        "authorization is wanted but none is related: all is denied; \
         run: juju config meshy auth=none",
    );
    assert_eq!(
        kinds(&api),
        [
            "AuthorizationPolicy",
            "EnvoyFilter",
            "Gateway",
            "VirtualService"
        ]
    );

    // It is remembered by the objects, not by the relation.
    let mut after = after;
    after.relations.retain(|relation| relation.id.0 != 2);
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(status(&after).0, "blocked");
    assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));

    let after = config_changed(&api, &after.config("auth", "none"));
    assert_status(&after, "active", "1 route at http://192.0.2.7");
    assert_eq!(kinds(&api), ["Gateway", "VirtualService"]);
}

#[test]
fn authorization_may_be_required_before_anybody_offers_it() {
    let api = cluster();
    let state = leader()
        .config("auth", "required")
        .relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "blocked");
    assert_eq!(
        kinds(&api),
        ["AuthorizationPolicy", "Gateway", "VirtualService"]
    );
    assert!(routed(&api).is_empty());
}

#[test]
fn a_filter_that_somebody_removed_or_changed_is_put_back_behind_the_policy() {
    let (api, after) = guarded();
    let filter = ours(&api)
        .into_iter()
        .find(|name| name.starts_with("EnvoyFilter"))
        .expect("it");
    let name = filter.rsplit('/').next().expect("a name");
    let id = ObjectRef::namespaced(
        "networking.istio.io/v1alpha3",
        "EnvoyFilter",
        "edge-lab",
        name,
    );
    api.edit("someone", &id, |filter| {
        filter["spec"]["configPatches"] = json!([]);
    });
    api.forget_requests();
    hook(&api, Event::UpdateStatus, &after);
    let writes = api.writes();
    let policy = position(&writes, "PATCH", "authorizationpolicies");
    let taken_out = position(&writes, "DELETE", "envoyfilters");
    assert!(
        policy < taken_out && taken_out < writes.len(),
        "{writes:#?}"
    );
    // The script answers as if a filter were there all the time: it is not taken for the new one.
    assert!(!kinds(&api).contains(&"EnvoyFilter".to_owned()));
    assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
}

#[test]
fn every_namespace_whose_pods_the_gateway_selects_is_guarded() {
    let api = cluster();
    api.seed(gate_service());
    for object in edge("twin-lab", "edge") {
        if object["kind"] == "Pod" {
            api.seed(object);
        }
    }
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "waiting", "no pod answers");
    let guards: Vec<String> = ours(&api)
        .iter()
        .filter_map(|name| {
            Some(
                name.strip_prefix("AuthorizationPolicy ")?
                    .split('/')
                    .next()?
                    .to_owned(),
            )
        })
        .collect();
    assert_eq!(guards, ["edge-lab", "twin-lab"]);
    assert!(routed(&api).is_empty());
}

#[test]
fn an_unready_pod_proves_nothing() {
    let api = cluster();
    api.seed(gate_service());
    authorizing(&api);
    denying(&api);
    let id = ObjectRef::namespaced("v1", "Pod", "edge-lab", "edge-0");
    api.edit("kubelet", &id, |pod| {
        pod["status"]["conditions"][0]["status"] = json!("False");
    });
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_eq!(
        status(&after),
        (
            "waiting".to_owned(),
            "gateway edge-lab/edge has no ready pod (+1 more)".to_owned()
        )
    );
    assert!(routed(&api).is_empty());
}

#[test]
fn an_application_that_answers_the_probe_is_no_proof() {
    let api = cluster();
    api.seed(gate_service());
    answers(&api, PROBE_PATH, 302, "", None);
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "waiting");
    assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
    assert!(routed(&api).is_empty());
}

#[test]
fn list_routes_tells_how_far_authorization_is() {
    let (api, after) = guarded();
    let rows = &action(&api, "list-routes", &json!({"format": "json"}), &after)["routes"];
    let rows: serde_json::Value = serde_json::from_str(rows).expect("JSON");
    assert_eq!(
        (&rows[0]["auth"], &rows[0]["state"]),
        (&json!("in force"), &json!("served"))
    );
}

#[test]
fn an_authorizer_whose_name_is_no_services_closes_routes_and_is_never_asked_for() {
    let check = |service: &str, character: char| {
        let api = cluster();
        denying(&api);
        let open = config_changed(&api, &leader().relation(traefik(1, "echo")));
        assert_eq!(routed(&api).len(), 2);
        let auth = relations::IngressAuth {
            service: service.to_owned(),
            port: 8080,
            allowed_request_headers: Vec::new(),
            allowed_response_headers: Vec::new(),
        };
        let gate = juju_sim::scenario::Relation::new("ingress-auth", 2, "gatekeeper")
            .remote_app_data(auth.encode());
        api.forget_requests();
        let after = config_changed(&api, &open.relation(gate));
        assert_status(
            &after,
            "blocked",
            &format!(
                "all is denied: ingress-auth of gatekeeper: service {service:?} has \
                 {character:?}, only a-z, 0-9 and - are allowed"
            ),
        );
        assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
        let asked = |request: &kube_apply::testing::Recorded| {
            request.method == "GET" && request.path.contains("/namespaces/lab/services/")
        };
        assert!(!api.requests().iter().any(asked), "{service}");
    };
    check("a b", ' ');
    check("x/proxy/admin", '/');
    check("..", '.');
}

/// A cluster with an open route of `echo`, and the state that goes with it.
fn open_route() -> (kube_apply::testing::FakeApi, juju_sim::scenario::State) {
    let api = cluster();
    api.seed(gate_service());
    let after = config_changed(&api, &leader().relation(traefik(1, "echo")));
    assert_status(&after, "active", "1 route at http://192.0.2.7");
    assert_eq!(kinds(&api), ["Gateway", "VirtualService"]);
    (api, after)
}

#[test]
fn open_routes_go_when_authorization_is_wanted_and_no_gateway_is_clear() {
    // Another gateway has come.
    let (api, after) = open_route();
    for object in edge("twin-lab", "rival") {
        api.seed(object);
    }
    let unclear = config_changed(&api, &after);
    assert_eq!(status(&unclear).0, "blocked");
    assert_eq!(routed(&api).len(), 2, "nobody wants authorization");
    let after = config_changed(&api, &unclear.relation(gate(2, "gatekeeper")));
    assert_status(
        &after,
        "blocked",
        "several gateways: edge-lab/edge, twin-lab/rival; run: juju config meshy gateway=… \
         (+1 more)",
    );
    assert_eq!(ours(&api), ["Gateway lab/istio-gateway"]);
    assert_eq!(app_data(&after, 1, "ingress"), None);

    // Options are bad.
    let (api, after) = open_route();
    let bad = after.config("istio-namespace", "Istio");
    let bad = config_changed(&api, &bad);
    assert_eq!(routed(&api).len(), 2, "nobody wants authorization");
    let bad = bad.relation(gate(2, "gatekeeper"));
    config_changed(&api, &bad.clone().config("auth", "none"));
    assert_eq!(routed(&api).len(), 2, "open on purpose");
    config_changed(&api, &bad.config("auth", "nonne"));
    assert_eq!(ours(&api), ["Gateway lab/istio-gateway"]);
}

#[test]
fn guarded_routes_stay_while_no_gateway_is_clear() {
    let (api, after) = guarded();
    let before = ours(&api);
    for object in edge("twin-lab", "rival") {
        api.seed(object);
    }
    api.forget_requests();
    let after = config_changed(&api, &after);
    assert_eq!(status(&after).0, "blocked");
    assert_eq!(api.writes(), Vec::<String>::new());
    assert_eq!(ours(&api), before);
}

#[test]
fn open_routes_go_though_another_namespace_refuses_its_policy() {
    let (api, after) = open_route();
    for object in edge("back-lab", "edge") {
        if object["kind"] == "Pod" {
            api.seed(object);
        }
    }
    let path = "/apis/security.istio.io/v1/namespaces/back-lab/authorizationpolicies/";
    let refused = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
        "message": "admission webhook \"rules\" denied the request",
    });
    api.script("PATCH", path, 403, &refused.to_string(), None);
    let after = config_changed(&api, &after.relation(gate(2, "gatekeeper")));
    assert_eq!(status(&after).0, "blocked");
    assert!(routed(&api).is_empty());
    let policies: Vec<String> = ours(&api)
        .into_iter()
        .filter(|name| name.starts_with("AuthorizationPolicy edge-lab/"))
        .collect();
    assert_eq!(policies.len(), 1, "the gateway's own namespace is guarded");
}

#[test]
fn a_namespace_on_its_way_out_is_not_written_to() {
    let api = cluster();
    api.seed(gate_service());
    for object in edge("back-lab", "edge") {
        if object["kind"] == "Pod" {
            api.seed(object);
        }
    }
    api.seed(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "back-lab", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }));
    denying(&api);
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    config_changed(&api, &state);
    assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
    assert!(!ours(&api).iter().any(|name| name.contains("back-lab")));
}

#[test]
fn that_authorization_was_wanted_is_remembered_by_each_of_its_objects() {
    let check = |kept: &str| {
        let (api, mut after) = guarded();
        after.relations.retain(|relation| relation.id.0 != 2);
        for object in api.objects() {
            let name = object["metadata"]["name"].as_str().unwrap_or("");
            let version = object["apiVersion"].as_str().unwrap_or("");
            let kind = object["kind"].as_str().unwrap_or("");
            let namespace = object["metadata"]["namespace"].as_str();
            if ["EnvoyFilter", "VirtualService"].contains(&kind) && !name.contains(kept) {
                api.remove(&ObjectRef::new(version, kind, namespace, name));
            }
        }
        let after = hook(&api, Event::UpdateStatus, &after);
        assert_eq!(status(&after).0, "blocked", "{kept}");
        assert!(
            kinds(&api).contains(&"AuthorizationPolicy".to_owned()),
            "{kept}"
        );
    };
    check("meshy-routes");
    check("meshy-auth-probe");
    check("lab-meshy-auth-");
}

#[test]
fn a_pod_in_another_namespace_is_guarded_but_has_no_say_in_what_is_proven() {
    let api = cluster();
    api.seed(gate_service());
    // Anybody may give a pod the gateway's labels. It says it is ready, and answers nothing.
    for object in edge("back-lab", "edge") {
        if object["kind"] == "Pod" {
            api.seed(object);
        }
    }
    answers(&api, PROBE_PATH, 404, "", Some(1));
    open(&api, 1);
    authorizing(&api);
    denying(&api);
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    let filters: Vec<String> = ours(&api)
        .iter()
        .filter_map(|name| {
            Some(
                name.strip_prefix("EnvoyFilter ")?
                    .split('/')
                    .next()?
                    .to_owned(),
            )
        })
        .collect();
    assert_eq!(filters, ["back-lab", "edge-lab"]);
}

#[test]
fn a_header_that_the_authorizer_both_reads_and_sets_is_told() {
    let api = cluster();
    api.seed(gate_service());
    answers(&api, PROBE_PATH, 404, "", Some(1));
    open(&api, 1);
    authorizing(&api);
    denying(&api);
    let auth = relations::IngressAuth {
        service: "gate".to_owned(),
        port: 8080,
        allowed_request_headers: vec!["authorization".to_owned()],
        allowed_response_headers: vec!["Authorization".to_owned()],
    };
    let gate = juju_sim::scenario::Relation::new("ingress-auth", 2, "gatekeeper")
        .remote_app_data(auth.encode());
    let after = config_changed(&api, &leader().relation(traefik(1, "echo")).relation(gate));
    assert_status(
        &after,
        "blocked",
        "ingress-auth of gatekeeper: it sets header authorization, so it is not shown what \
         clients send in it",
    );
    assert_eq!(kinds(&api), ["EnvoyFilter", "Gateway", "VirtualService"]);
}

#[test]
fn what_routes_ask_for_cannot_be_guessed_and_stays_as_long_as_one_object_tells_it() {
    let (api, after) = guarded();
    let first = guard(&api);
    assert_eq!(first.len(), 32);
    assert_ne!(first, guard(&guarded().0), "same model, same application");

    let all = api.objects();
    let filter = all.iter().find(|object| object["kind"] == "EnvoyFilter");
    assert!(filter.expect("a filter").to_string().contains(&first));
    let id = |kind: &str, namespace: &str, name: &str| {
        ObjectRef::namespaced("networking.istio.io/v1", kind, namespace, name)
    };
    api.remove(&id("VirtualService", "lab", "meshy-routes"));
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(guard(&api), first);

    let name = filter.and_then(|object| object["metadata"]["name"].as_str());
    api.remove(&id("EnvoyFilter", "edge-lab", name.expect("a name")));
    assert!(!kinds(&api).contains(&"EnvoyFilter".to_owned()));
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(guard(&api), first);
}

#[test]
fn while_what_tells_of_authorization_cannot_be_read_nothing_is_changed() {
    for resource in [
        "envoyfilters.networking.istio.io",
        "virtualservices.networking.istio.io",
        "authorizationpolicies.security.istio.io",
    ] {
        let (api, state) = guarded();
        let mut after = config_changed(&api, &state);
        after.relations.retain(|relation| relation.id.0 == 1);
        api.forget_requests();
        api.forbid("list", resource);
        let after = hook(&api, Event::UpdateStatus, &after);
        let (text, message) = status(&after);
        assert_eq!(text, "blocked");
        assert!(
            message.contains(&format!("not permitted to list {resource}")),
            "{message}"
        );
        assert_eq!(api.writes(), Vec::<String>::new(), "{resource}");
    }
}

#[test]
fn the_check_is_passed_only_by_answers_that_are_the_gates() {
    let check = |status: u16, failure: Option<&str>| {
        let (api, state) = guarded();
        answers(&api, "/lab-echo/check-auth", 302, "", None);
        answers(&api, "/lab-echo", status, "", None);
        let after = act(&api, "check-auth", &json!({}), &state);
        assert_eq!(after.record.action.failure.as_deref(), failure, "{status}");
        assert_eq!(after.record.action.results["asked"], "2");
    };
    let why = Some("1 answers are not from what refuses strangers");
    check(302, None);
    check(200, why);
    // An application refuses, or redirects, too.
    check(401, why);
    check(404, why);
    check(301, why);
}

#[test]
fn a_check_that_asks_not_all_says_so() {
    let (api, state) = guarded();
    let prefixes = (10..120).map(|id| kubeflow(id, &format!("app-{id}"), &format!("/app-{id}")));
    let state = prefixes.fold(state, juju_sim::scenario::State::relation);
    let after = act(&api, "check-auth", &json!({}), &state);
    assert_eq!(after.record.action.results["not-asked"], "22");
}

#[test]
fn where_plain_http_only_leads_to_https_the_check_asks_there() {
    let api = cluster();
    with_tls(&api);
    let id = "secret:9m4e2mr0ui3e8a215n4g";
    let certificate = include_str!("common/certificate.pem");
    let key = "-----BEGIN PRIVATE KEY-----\nbm9uZQ==\n-----END PRIVATE KEY-----\n";
    let secret = juju_sim::scenario::databag([("tls-crt", certificate), ("tls-key", key)]);
    let state = leader()
        .config("auth", "required")
        .config("tls-secret-id", id)
        .granted_secret(id, secret)
        .relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    api.forget_requests();
    act(&api, "check-auth", &json!({}), &after);
    let asked = api.requests();
    let secure = "/api/v1/namespaces/edge-lab/pods/https:edge-0:8443/proxy/";
    let probes: Vec<String> = asked
        .iter()
        .map(|request| request.path.clone())
        .filter(|path| path.contains("/lab-echo"))
        .collect();
    assert!(
        probes.iter().all(|path| path.starts_with(secure)),
        "{probes:?}"
    );
}

#[test]
fn behind_a_filter_of_somebody_else_nothing_is_denied() {
    let api = cluster();
    api.seed(gate_service());
    let asks = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz";
    api.seed(json!({
        "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter",
        "metadata": {"name": "theirs", "namespace": "edge-lab"},
        "spec": {"configPatches": [{"patch": {"value": {"typed_config": {"@type": asks}}}}]},
    }));
    // Their filter answers where there is a route, and there is none of ours yet.
    answers(&api, PROBE_PATH, 404, "", Some(1));
    answers(&api, PROBE_PATH, 401, "", None);
    let mut silent = gate(2, "gatekeeper");
    silent.remote_app_data.clear();
    let after = config_changed(&api, &leader().relation(silent));
    assert_eq!(status(&after).0, "waiting");
    let after = config_changed(&api, &leader().relation(gate(2, "gatekeeper")));
    assert_eq!(status(&after).0, "active");
    let ours = |line: &&String| line.contains("envoyfilters");
    assert!(api.writes().iter().any(|line| ours(&line)));
    let denials = |line: &&String| line.contains("authorizationpolicies");
    assert_eq!(api.writes().iter().filter(denials).count(), 0);
}
