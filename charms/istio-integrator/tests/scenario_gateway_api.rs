//! Gateways of the Gateway API: when they are chosen, and what is written for them.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::gateway_api::*;
use common::*;
use juju_charm::Event;
use kube_apply::testing::FakeApi;
use serde_json::{Value, json};

fn routes_of(id: u32, app: &str, http: &[Value], grpc: &[Value]) -> juju_sim::scenario::Relation {
    let wish = json!({"model": "lab", "http_routes": http, "grpc_routes": grpc});
    routes("istio-ingress-route", id, app, &wish)
}

fn http(name: &str, path: &str, more: &Value) -> Value {
    let mut route = json!({
        "name": name, "listener": {"port": 80, "protocol": "HTTP"},
        "matches": [{"path": {"type": "PathPrefix", "value": path}}],
        "backends": [{"service": "books", "port": 8080}],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        route[key] = value.clone();
    }
    route
}

fn grpc(name: &str) -> Value {
    json!({
        "name": name, "listener": {"port": 80, "protocol": "GRPC"},
        "backends": [{"service": "shelf", "port": 9000}],
        "matches": [{"method": {"service": "lab.Shelf", "method": "Get"}}],
    })
}

#[test]
fn the_api_follows_from_the_gateway_unless_it_is_told() {
    let check = |api: FakeApi, config: &[(&str, &str)], expect: &[&str]| {
        let mut state = leader().relation(kubeflow(1, "books", "/books"));
        for (option, value) in config {
            state = state.config(option, *value);
        }
        config_changed(&api, &state);
        let of_ours = |kind: &&str| our_kinds(&api).iter().any(|ours| ours == kind);
        let routing = ["VirtualService", "HTTPRoute"];
        let written: Vec<&str> = routing.into_iter().filter(of_ours).collect();
        assert_eq!(written, expect, "{config:?}");
    };
    let both = || {
        let api = cluster();
        class(&api);
        api
    };
    check(cluster(), &[], &["VirtualService"]);
    check(both(), &[], &["VirtualService"]);
    check(both(), &[("route-api", "gateway-api")], &["HTTPRoute"]);
    check(only_a_class(), &[], &["HTTPRoute"]);
    check(only_a_class(), &[("route-api", "istio")], &[]);
    check(cluster(), &[("route-api", "gateway-api")], &[]);
    let shared = || {
        let api = both();
        foreign(&api, "back-lab", "shared", "All");
        api
    };
    check(shared(), &[], &["VirtualService"]);
    check(
        shared(),
        &[("gateway", "edge-lab/edge")],
        &["VirtualService"],
    );
    check(shared(), &[("gateway", "back-lab/shared")], &["HTTPRoute"]);
    check(
        shared(),
        &[("gateway", "shared"), ("route-api", "istio")],
        &[],
    );
}

#[test]
fn what_is_missing_is_told_of_the_api_that_is_asked_for() {
    let check = |api: FakeApi, config: &[(&str, &str)], expect: &str| {
        let mut state = leader();
        for (option, value) in config {
            state = state.config(option, *value);
        }
        assert_status(&config_changed(&api, &state), "blocked", expect);
    };
    let told = ("route-api", "gateway-api");
    check(
        cluster(),
        &[told],
        "no gateway found: looked for a GatewayClass of Istio (controller istio.io/gateway-controller)",
    );
    check(
        only_a_class(),
        &[told, ("gateway", "nowhere")],
        "no gateway found: looked for gateway nowhere of the Gateway API, of a class of Istio's",
    );
    check(
        only_a_class(),
        &[("route-api", "other")],
        "option route-api must be auto, istio or gateway-api, is \"other\"; \
         run: juju config meshy --reset route-api",
    );
    let closed = only_a_class();
    foreign(&closed, "back-lab", "shared", "Same");
    check(
        closed,
        &[("gateway", "back-lab/shared")],
        "Gateway back-lab/shared has no listener for HTTP that takes routes of the model's namespace",
    );
}

#[test]
fn a_gateway_of_our_own_is_made_and_waited_for() {
    let api = only_a_class();
    let state = leader().relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "waiting",
        "gateway lab/istio-gateway-istio has no ready pod (+1 more)",
    );
    let gateway = api_object(&api, "Gateway", "istio-gateway").expect("it");
    assert_eq!(gateway["spec"]["gatewayClassName"], "istio");
    assert_eq!(gateway["spec"]["listeners"][0]["port"], 80);
    made(&api);
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(&after, "active", "1 route at http://192.0.2.9");
    let url = r#"{"url":"http://192.0.2.9/lab-echo"}"#;
    assert_eq!(app_data(&after, 1, "ingress"), Some(url));
    let route = api_object(&api, "HTTPRoute", "meshy-routes-1").expect("a route");
    assert_eq!(
        route["spec"]["parentRefs"],
        json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway",
            "namespace": "lab", "name": "istio-gateway"}])
    );
    api.forget_requests();
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[test]
fn another_ones_gateway_gets_routes_and_is_left_alone() {
    let api = only_a_class();
    foreign(&api, "back-lab", "shared", "All");
    let before = api_object(&api, "Gateway", "shared");
    let state = leader()
        .config("gateway", "back-lab/shared")
        .relation(traefik(1, "echo"));
    config_changed(&api, &state);
    let route = api_object(&api, "HTTPRoute", "meshy-routes-1").expect("a route");
    assert_eq!(route["metadata"]["namespace"], "lab");
    assert_eq!(route["spec"]["parentRefs"][0]["namespace"], "back-lab");
    assert_eq!(api_object(&api, "Gateway", "shared"), before);
    assert_eq!(api_object(&api, "Gateway", "istio-gateway"), None);
}

#[test]
fn a_route_relation_is_served_with_all_its_fields() {
    let api = only_a_class();
    made(&api);
    let wish = http(
        "api",
        "/unused",
        &json!({
            "hostnames": ["books.example.org"],
            "matches": [{"path": {"type": "Exact", "value": "/api"}, "method": "GET",
                "headers": {"X-Team": "blue"}}],
            "backends": [{"service": "books", "port": 8080, "weight": 3},
                {"service": "books-new", "port": 8080, "weight": 1}],
            "filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "in.example.org",
                "path": {"type": "ReplaceFullPath", "replaceFullPath": "/v2"}}}],
        }),
    );
    let away = http(
        "away",
        "/away",
        &json!({"backends": [], "filters": [{"type": "RequestRedirect", "requestRedirect": {
            "scheme": "https", "hostname": "new.example.org", "port": 8443, "statusCode": 302}}]}),
    );
    let pre = http(
        "pre",
        "/pre",
        &json!({"filters": [{"type": "URLRewrite", "urlRewrite": {
            "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/post"}}}]}),
    );
    let state = leader().relation(routes_of(1, "books", &[wish, away, pre], &[grpc("shelf")]));
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "4 routes at http://192.0.2.9");
    let of = |holds: &dyn Fn(&Value) -> bool| {
        let found = our_objects(&api).into_iter().find(|object| holds(object));
        found.expect("an object")["spec"].clone()
    };
    let exact = of(&|o| o["spec"]["hostnames"] == json!(["books.example.org"]));
    let rule = &exact["rules"][0];
    assert_eq!(
        rule["matches"],
        json!([{"path": {"type": "Exact", "value": "/api"}, "method": "GET",
            "headers": [{"type": "Exact", "name": "x-team", "value": "blue"}]}])
    );
    assert_eq!(
        (
            &rule["backendRefs"][0]["weight"],
            &rule["backendRefs"][1]["weight"]
        ),
        (&json!(3), &json!(1))
    );
    assert_eq!(
        rule["filters"][0]["urlRewrite"],
        json!({"hostname": "in.example.org",
            "path": {"type": "ReplaceFullPath", "replaceFullPath": "/v2"}})
    );
    let path = |o: &Value, path: &str| o["spec"]["rules"][0]["matches"][0]["path"]["value"] == path;
    let away = of(&|o| path(o, "/away"));
    assert_eq!(
        away["rules"][0]["filters"][0]["requestRedirect"],
        json!({"scheme": "https", "hostname": "new.example.org", "port": 8443, "statusCode": 302})
    );
    let pre = of(&|o| path(o, "/pre"));
    assert_eq!(
        pre["rules"][0]["filters"][0]["urlRewrite"]["path"],
        json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/post"})
    );
    let call = of(&|o| o["kind"] == "GRPCRoute");
    assert_eq!(
        call["rules"][0]["matches"],
        json!([{"method": {"type": "Exact", "service": "lab.Shelf", "method": "Get"}}])
    );
    let rules = ours(&api)
        .into_iter()
        .filter(|name| name.starts_with("Dest"))
        .count();
    assert_eq!(rules, 1, "gRPC arrives as HTTP/2");
}

#[test]
fn what_the_api_cannot_say_is_refused_and_costs_no_other_route() {
    let api = only_a_class();
    made(&api);
    let away = http(
        "away",
        "/away",
        &json!({"backends": [], "filters": [{"type": "RequestRedirect",
            "requestRedirect": {"hostname": "new.example.org", "statusCode": 307}}]}),
    );
    let state = leader()
        .relation(routes_of(1, "books", &[away], &[]))
        .relation(kubeflow(2, "team", "/team"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "blocked",
        "istio-ingress-route of books: route away: statusCode \"307\" must be 301 or 302 on the Gateway API",
    );
    assert_eq!(app_data(&after, 1, "external_host").unwrap_or_default(), "");
    assert_eq!(
        api_object(&api, "HTTPRoute", "meshy-routes-2").map(drop),
        Some(())
    );
    let listed = listed(&api, &after);
    assert_eq!(
        listed[0]["state"],
        "route away: statusCode \"307\" must be 301 or 302 on the Gateway API"
    );
    assert_eq!(listed[1]["state"], "served");
}

#[test]
fn backends_in_other_namespaces_are_granted_there_and_no_longer_than_needed() {
    let api = only_a_class();
    made(&api);
    let elsewhere = relations::KubeflowIngress {
        service: "books-ui".to_owned(),
        port: 5000,
        namespace: Some("back-lab".to_owned()),
        prefix: "/books".to_owned(),
        rewrite: None,
    };
    let state = leader().relation(
        juju_sim::scenario::Relation::new("ingress", 1, "books")
            .remote_app_data(elsewhere.encode()),
    );
    let after = config_changed(&api, &state);
    let grants = || {
        let of = |object: &Value| object["kind"] == "ReferenceGrant";
        our_objects(&api).into_iter().filter(of).collect::<Vec<_>>()
    };
    let granted = grants();
    assert_eq!(granted.len(), 1);
    assert_eq!(granted[0]["metadata"]["namespace"], "back-lab");
    assert_eq!(
        granted[0]["spec"]["to"],
        json!([{"group": "", "kind": "Service", "name": "books-ui"}])
    );
    let mut gone = after.clone();
    gone.relations.clear();
    config_changed(&api, &gone);
    assert!(grants().is_empty());
}

#[test]
fn with_a_certificate_the_gateway_has_a_listener_for_tls_and_plain_http_leads_there() {
    let api = only_a_class();
    made(&api);
    let state = leader()
        .config("external-hostname", "apps.example.org")
        .relation(traefik(1, "echo"));
    let state = with_certificate("apps.example.org", &state);
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "1 route at https://apps.example.org");
    let gateway = api_object(&api, "Gateway", "istio-gateway").expect("it");
    let listener = &gateway["spec"]["listeners"][1];
    assert_eq!(
        (&listener["protocol"], &listener["tls"]["mode"]),
        (&json!("HTTPS"), &json!("Terminate"))
    );
    let name = listener["tls"]["certificateRefs"][0]["name"]
        .as_str()
        .expect("a name");
    let secret = our(&api, "Secret", name).expect("the certificate");
    assert_eq!(secret["metadata"]["namespace"], "lab", "beside the Gateway");
    let section = |name: &str| {
        let route = api_object(&api, "HTTPRoute", name).expect("a route");
        route["spec"]["parentRefs"][0]["sectionName"].clone()
    };
    assert_eq!(section("meshy-routes-1"), "https");
    assert_eq!(section("meshy-routes-https"), "http");

    let both = after.config("https-redirect", false);
    config_changed(&api, &both);
    assert_eq!(section("meshy-routes-1"), Value::Null);
    assert_eq!(api_object(&api, "HTTPRoute", "meshy-routes-https"), None);
}

#[test]
fn a_certificate_for_another_ones_gateway_is_refused() {
    let api = only_a_class();
    foreign(&api, "back-lab", "shared", "All");
    let state = leader()
        .config("external-hostname", "apps.example.org")
        .config("gateway", "back-lab/shared")
        .relation(traefik(1, "echo"));
    let state = with_certificate("apps.example.org", &state);
    let after = config_changed(&api, &state);
    assert_eq!(after.unit_status.status, "blocked");
    let message = &after.unit_status.message;
    assert!(
        message.starts_with("Gateway back-lab/shared is not ours: its owner decides about TLS"),
        "{message}"
    );
}

#[test]
fn each_route_is_listed_with_what_it_became() {
    let api = only_a_class();
    made(&api);
    let state = leader()
        .relation(kubeflow(1, "team", "/team"))
        .relation(routes_of(
            2,
            "books",
            &[http("a", "/a", &json!({}))],
            &[grpc("shelf")],
        ))
        .relation(routes_of(3, "shelf", &[], &[grpc("other")]));
    let after = config_changed(&api, &state);
    let kinds: Vec<Value> = listed(&api, &after)
        .iter()
        .map(|row| row["kind"].clone())
        .collect();
    assert_eq!(kinds, ["HTTPRoute", "GRPCRoute,HTTPRoute", "-"]);
    let gateways: Vec<Value> = listed(&api, &after)
        .iter()
        .map(|row| row["gateway"].clone())
        .collect();
    assert_eq!(gateways[0], "lab/istio-gateway-istio");
}

#[test]
fn what_the_gateway_does_not_take_is_told_by_its_relation() {
    let api = only_a_class();
    made(&api);
    let state = leader().relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_eq!(after.unit_status.status, "active");
    say(&api, "HTTPRoute", "meshy-routes-1", "Accepted", "False");
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(
        &after,
        "blocked",
        "ingress of echo: gateway lab/istio-gateway: NotAllowedByListeners: no listener takes it",
    );
    assert_eq!(app_data(&after, 1, "ingress").unwrap_or_default(), "");
    say(&api, "HTTPRoute", "meshy-routes-1", "Accepted", "True");
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_status(&after, "active", "1 route at http://192.0.2.9");
}

#[test]
fn the_old_kind_of_routes_goes_once_the_new_one_is_taken() {
    let api = cluster();
    class(&api);
    let state = leader().relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_eq!(our_kinds(&api), ["Gateway", "VirtualService"]);

    let switched = after.config("route-api", "gateway-api");
    let after = config_changed(&api, &switched);
    let both = ["Gateway", "HTTPRoute", "VirtualService"];
    assert_eq!(our_kinds(&api), both);
    assert_eq!(listed(&api, &after)[0]["kind"], "HTTPRoute,VirtualService");
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(our_kinds(&api), both, "no pod yet");
    made(&api);
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(our_kinds(&api), both, "not taken yet");
    say(&api, "HTTPRoute", "meshy-routes-1", "Accepted", "True");
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(our_kinds(&api), ["Gateway", "HTTPRoute"]);
    assert_eq!(our(&api, "VirtualService", "meshy-routes"), None);
    assert_eq!(classic_gateways(&api), 0);

    let back = after.config("route-api", "istio");
    let after = config_changed(&api, &back);
    assert_eq!(our_kinds(&api), both);
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(our_kinds(&api), ["Gateway", "VirtualService"]);
    assert_eq!(api_object(&api, "Gateway", "istio-gateway"), None);
}
