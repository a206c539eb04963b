//! Routes with all fields, routes that nobody is asked about, and what other namespaces refuse.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::*;
use juju_charm::Event;
use kube_apply::ObjectRef;
use mesh::auth::{GUARD_HEADER, PROBE_PATH};
use serde_json::{Value, json};

fn http(name: &str, path: &str, service: &str) -> Value {
    json!({
        "name": name, "listener": {"port": 80, "protocol": "HTTP"},
        "matches": [{"path": {"type": "PathPrefix", "value": path}}],
        "backends": [{"service": service, "port": 8080}],
    })
}

fn config(routes: &[Value]) -> Value {
    json!({"model": "lab", "http_routes": routes})
}

#[test]
fn a_route_relation_is_served_with_all_its_fields_and_answered() {
    let api = cluster();
    let wish = json!({
        "model": "lab",
        "listeners": [{"port": 80, "protocol": "HTTP"}],
        "http_routes": [{
            "name": "api", "listener": {"port": 80, "protocol": "HTTP"},
            "hostnames": ["books.example.org"],
            "matches": [{
                "path": {"type": "Exact", "value": "/api"}, "method": "GET",
                "headers": {"X-Team": "blue"},
            }],
            "backends": [
                {"service": "books", "port": 8080, "weight": 3},
                {"service": "books-new", "port": 8080, "weight": 1},
            ],
            "filters": [{"type": "URLRewrite", "urlRewrite": {
                "path": {"type": "ReplaceFullPath", "replaceFullPath": "/v2"}}}],
        }],
        "grpc_routes": [{
            "name": "shelf", "listener": {"port": 80, "protocol": "GRPC"},
            "backends": [{"service": "shelf", "port": 9000}],
            "matches": [{"method": {"service": "lab.Shelf", "method": "Get"}}],
        }],
    });
    let state = leader().relation(routes("istio-ingress-route", 1, "books", &wish));
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "2 routes at http://192.0.2.7");
    assert_eq!(app_data(&after, 1, "external_host"), Some("192.0.2.7"));
    assert_eq!(app_data(&after, 1, "tls_enabled"), Some("False"));
    let named = api.objects().into_iter().find(|object| {
        object["kind"] == "VirtualService"
            && object["spec"]["hosts"] == json!(["books.example.org"])
    });
    let rule = named.expect("an object of the host")["spec"]["http"][0].clone();
    assert_eq!(
        rule["match"],
        json!([{"uri": {"exact": "/api"}, "method": {"exact": "GET"},
        "headers": {"x-team": {"exact": "blue"}}}])
    );
    assert_eq!(rule["route"][1]["weight"], 1);
    assert_eq!(rule["rewrite"]["uriRegexRewrite"]["rewrite"], "/v2");
    assert_eq!(routed(&api)[0].0, "exact /lab.Shelf/Get");
    let rules: Vec<String> = ours(&api)
        .into_iter()
        .filter(|name| name.starts_with("Dest"))
        .collect();
    assert_eq!(rules.len(), 1, "gRPC arrives as HTTP/2");
    let table = &action(&api, "list-routes", &json!({}), &after)["routes"];
    assert!(table.contains("http://books.example.org/api"), "{table}");

    api.forget_requests();
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[test]
fn a_conflict_is_told_to_the_second_in_its_databag_and_costs_it_that_route_only() {
    let api = cluster();
    let first = routes(
        "istio-ingress-route",
        1,
        "books",
        &config(&[http("a", "/a", "books")]),
    );
    let second = config(&[http("a", "/a/", "echo"), http("b", "/b", "echo")]);
    let second = routes("istio-ingress-route", 2, "echo", &second);
    let after = config_changed(&api, &leader().relation(first).relation(second));
    assert_status(
        &after,
        "blocked",
        "istio-ingress-route of echo: route a: prefix /a is taken by books",
    );
    assert_eq!(app_data(&after, 1, "external_host"), Some("192.0.2.7"));
    assert_eq!(app_data(&after, 2, "external_host"), None);
    let paths: Vec<String> = routed(&api).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["exact /a", "prefix /a/", "exact /b", "prefix /b/"]);
}

#[test]
fn who_names_the_gateways_own_address_keeps_nobody_else_from_it() {
    let api = cluster();
    let id = ObjectRef::namespaced("v1", "Service", "edge-lab", "edge");
    api.edit("kubectl", &id, |service| {
        service["status"]["loadBalancer"]["ingress"] = json!([{"hostname": "lb.example.org"}]);
    });
    let mut own = http("own", "/books", "books");
    own["hostnames"] = json!(["LB.example.org"]);
    let state = leader().relation(traefik(1, "echo")).relation(routes(
        "istio-ingress-route",
        2,
        "books",
        &config(&[own]),
    ));
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "2 routes at http://lb.example.org");
    assert_eq!(api.objects_of("VirtualService").len(), 1);
    assert_eq!(routed(&api).len(), 4);
}

#[test]
fn a_document_that_is_none_costs_its_relation_only() {
    let check = |document: Value, why: &str| {
        let api = cluster();
        let bad = routes("istio-ingress-route", 1, "odd", &document);
        let after = config_changed(&api, &leader().relation(bad).relation(traefik(2, "echo")));
        assert_status(
            &after,
            "blocked",
            &format!("istio-ingress-route of odd: {why}"),
        );
        assert_eq!(routed(&api).len(), 2);
    };
    check(
        json!({"model": "lab", "http_routes": [{}]}),
        "databag key config: missing field `name`",
    );
    check(
        config(&[http("A", "/a", "x")]),
        "route name \"A\" has 'A', only a-z, 0-9 and - are allowed",
    );
    check(
        config(&[http("a", "/a", "x"), http("a", "/b", "x")]),
        "two routes are named \"a\"",
    );
    let mut both = http("a", "/a", "x");
    both["filters"] = json!([
        {"type": "URLRewrite", "urlRewrite": {}}, {"type": "RequestRedirect", "requestRedirect": {}}]);
    check(config(&[both]), "route a: it both rewrites and redirects");
}

#[test]
fn calls_are_sent_elsewhere_where_their_route_says_so() {
    let api = cluster();
    let wish = json!({"model": "lab", "grpc_routes": [{
        "name": "shelf", "listener": {"port": 80, "protocol": "GRPC"}, "backends": [],
        "matches": [{"method": {"service": "lab.Shelf"}}],
        "filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": "new.example.org"}}],
    }]});
    let state = leader().relation(routes("istio-ingress-route", 1, "books", &wish));
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "1 route at http://192.0.2.7");
    let sent = rules(&api)
        .into_iter()
        .find(|rule| rule["redirect"].is_object());
    let sent = sent.expect("a rule that redirects");
    assert_eq!(sent["redirect"]["authority"], "new.example.org");
    assert!(sent["route"].is_null(), "{sent}");
}

#[test]
fn nobody_is_asked_about_open_routes_and_about_no_other() {
    let api = cluster();
    api.seed(gate_service());
    open(&api, 2);
    authorizing(&api);
    denying(&api);
    let mut status = traefik(1, "status");
    status.endpoint = juju_hooks::EndpointName::new("ingress-unauthenticated").expect("a name");
    let state = leader()
        .relation(status)
        .relation(traefik(2, "echo"))
        .relation(gate(3, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "2 routes at http://192.0.2.7, authorization in force",
    );
    assert_eq!(
        app_data(&after, 1, "_supported_versions"),
        Some("- v1\n- v2\n")
    );
    let name = mesh::auth::open_route_name(&guard(&api));
    for rule in rules(&api) {
        let open = rule["route"][0]["destination"]["host"] == "status.lab.svc.cluster.local";
        assert_eq!(rule["name"] == name.as_str(), open);
        assert!(rule["match"][0]["headers"][GUARD_HEADER].is_object());
    }
    let filter = api
        .objects()
        .into_iter()
        .find(|object| object["kind"] == "EnvoyFilter");
    let patch = &filter.expect("a filter")["spec"]["configPatches"][2];
    assert_eq!(
        patch["match"]["routeConfiguration"]["vhost"]["route"]["name"],
        name.as_str()
    );
    let table = &action(&api, "list-routes", &json!({"format": "json"}), &after)["routes"];
    let rows: Value = serde_json::from_str(table).expect("JSON");
    assert_eq!(
        (&rows[0]["auth"], &rows[1]["auth"]),
        (&json!("open"), &json!("in force"))
    );
}

#[test]
fn what_another_namespace_refuses_is_told_and_stops_nothing_else() {
    let api = cluster();
    // Somebody else's pods carry the gateway's labels.
    for object in edge("twin-lab", "edge") {
        api.seed(object);
    }
    api.seed(gate_service());
    answers(&api, PROBE_PATH, 404, "", Some(1));
    open(&api, 2);
    authorizing(&api);
    denying(&api);
    let body = json!({"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden",
        "message": "admission webhook \"no.example.org\" denied the request: not here"});
    for path in [
        "/apis/security.istio.io/v1/namespaces/twin-lab/authorizationpolicies/",
        "/apis/networking.istio.io/v1alpha3/namespaces/twin-lab/envoyfilters/",
    ] {
        let name = guard_name(&api, path);
        api.script("PATCH", &name, 403, &body.to_string(), None);
    }
    let state = leader()
        .config("gateway", "edge-lab/edge")
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"));
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "blocked", "{:?}", status(&after));
    assert_eq!(routed(&api).len(), 2, "{:?}", ours(&api));
    assert!(
        ours(&api)
            .iter()
            .any(|name| name.starts_with("EnvoyFilter edge-lab/"))
    );
}

/// The path of a guarding object.
fn guard_name(api: &kube_apply::testing::FakeApi, collection: &str) -> String {
    let after = config_changed(api, &leader());
    let uuid = after.model_uuid.to_string();
    let names = istio_integrator::observe::Names::new("lab", &uuid, "meshy");
    format!("{collection}{}", names.guard)
}

#[test]
fn the_other_ends_of_the_gateways_interfaces_are_told() {
    let api = cluster();
    let id = ObjectRef::namespaced("v1", "Pod", "edge-lab", "edge-0");
    api.edit("kubelet", &id, |pod| {
        pod["status"]["podIP"] = json!("10.1.0.9");
    });
    let after = config_changed(
        &api,
        &leader()
            .relation(empty_relation("gateway-metadata", 1, "beacon"))
            .relation(empty_relation("metrics-endpoint", 2, "prometheus"))
            .relation(empty_relation("istio-ingress-config", 3, "istio"))
            .relation(empty_relation("upstream-ingress", 4, "front")),
    );
    let metadata = r#"{"deployment_name":"edge","gateway_name":"istio-gateway","namespace":"edge-lab","service_account":"default"}"#;
    assert_eq!(app_data(&after, 1, "metadata"), Some(metadata));
    let jobs = app_data(&after, 2, "scrape_jobs").expect("jobs");
    assert!(
        jobs.contains("10.1.0.9:15020") && jobs.contains("/stats/prometheus"),
        "{jobs}"
    );
    assert_eq!(
        app_data(&after, 3, "ext_authz_service_name"),
        Some("fake_host")
    );
    assert_eq!(app_data(&after, 4, "name"), Some("\"meshy\""));
}

#[test]
fn urls_are_those_of_the_ingress_in_front() {
    let api = cluster();
    let reply = juju_sim::scenario::databag([(
        "ingress",
        r#"{"url": "https://apps.example.org/lab-meshy/"}"#,
    )]);
    let upstream =
        juju_sim::scenario::Relation::new("upstream-ingress", 2, "front").remote_app_data(reply);
    let after = config_changed(
        &api,
        &leader().relation(traefik(1, "echo")).relation(upstream),
    );
    let url = r#"{"url":"https://apps.example.org/lab-meshy/lab-echo"}"#;
    assert_eq!(app_data(&after, 1, "ingress"), Some(url));
}
