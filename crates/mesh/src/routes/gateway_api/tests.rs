//! What each field of a route becomes.

use istio_api::CustomObject;
use istio_api::networking::StringMatch;
use serde_json::{Value, json};

use super::*;
use crate::routes::{
    ActionRequest, Backend, MatchRequest, PathChange, PathRequest, RouteRequest, Tls, Weighted,
    routes,
};

pub(super) fn edge() -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["*".to_owned()],
        http: 80,
        ..Edge::default()
    }
}

pub(super) fn own() -> Parent {
    Parent {
        namespace: "lab".to_owned(),
        name: "front".to_owned(),
        own: true,
    }
}

pub(super) fn request(relation: u32, prefix: &str, rewrite: Option<&str>) -> RouteRequest {
    let backend = Backend {
        service: format!("app-{relation}"),
        namespace: "lab".to_owned(),
        port: 8080,
    };
    let rewrite = rewrite.map(str::to_owned);
    RouteRequest::prefix(
        relation,
        &format!("app-{relation}"),
        prefix,
        rewrite,
        backend,
    )
}

pub(super) fn served(requests: &[RouteRequest]) -> Vec<Route> {
    let (routes, problems) = routes(requests);
    assert!(problems.is_empty(), "{problems:?}");
    let refused: Vec<_> = routes.iter().filter_map(refusal).collect();
    assert!(refused.is_empty(), "{refused:?}");
    routes
}

fn specs(edge: &Edge, parent: &Parent, requests: &[RouteRequest]) -> Vec<Value> {
    let objects = objects(edge, parent, &served(requests), true);
    let http = objects.http.iter().map(CustomObject::to_object);
    let grpc = objects.grpc.iter().map(CustomObject::to_object);
    http.chain(grpc).collect()
}

/// The rules of the one object that the request becomes.
fn rules(request: RouteRequest) -> Value {
    let all = specs(&edge(), &own(), &[request]);
    assert_eq!(all.len(), 1);
    all[0]["spec"]["rules"].clone()
}

fn backend_ref(name: &str, weight: u32) -> Value {
    json!({"group": "", "kind": "Service", "namespace": "lab", "name": name, "port": 8080,
        "weight": weight})
}

#[test]
fn a_prefix_is_a_route_of_its_own_that_matches_at_segment_borders() {
    let all = specs(&edge(), &own(), &[request(7, "/app/", None)]);
    let expect = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "meshy-routes-7", "namespace": "lab"},
        "spec": {
            "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway",
                "namespace": "lab", "name": "front"}],
            "rules": [{
                "matches": [{"path": {"type": "PathPrefix", "value": "/app"}}],
                "backendRefs": [backend_ref("app-7", 1)],
            }],
        },
    });
    assert_eq!(all, [expect]);
}

#[test]
fn a_prefix_is_replaced_in_a_rule_of_one_condition_each() {
    let mut both = request(1, "/app", Some("/"));
    both.matches.push(MatchRequest {
        path: PathRequest::Prefix("/old".to_owned()),
        method: None,
        headers: Vec::new(),
    });
    let rule = |prefix: &str| {
        json!({
            "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
            "filters": [{"type": "URLRewrite", "urlRewrite": {
                "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}],
            "backendRefs": [backend_ref("app-1", 1)],
        })
    };
    assert_eq!(rules(both), json!([rule("/app"), rule("/old")]));
    // What stays as it is is no rewrite.
    assert!(
        rules(request(1, "/app", Some("/app/")))[0]
            .get("filters")
            .is_none()
    );
}

#[test]
fn path_method_and_headers_are_conditions_and_shares_are_weights() {
    let mut request = request(1, "/", None);
    request.matches = vec![MatchRequest {
        path: PathRequest::Exact("/a/".to_owned()),
        method: Some("POST".to_owned()),
        headers: vec![
            ("X-Env".to_owned(), StringMatch::Exact("test".to_owned())),
            ("x-any".to_owned(), StringMatch::Regex("a.*".to_owned())),
        ],
    }];
    let backend = |service: &str, weight: u32| Weighted {
        backend: Backend {
            service: service.to_owned(),
            namespace: "lab".to_owned(),
            port: 8080,
        },
        weight,
    };
    request.action = ActionRequest::Forward {
        backends: vec![backend("one", 90), backend("two", 10)],
        rewrite: Some(PathChange::Whole("/b/".to_owned())),
        host: Some("inner.example.org".to_owned()),
    };
    assert_eq!(
        rules(request),
        json!([{
            "matches": [{
                "path": {"type": "Exact", "value": "/a/"},
                "method": "POST",
                "headers": [
                    {"type": "RegularExpression", "name": "x-any", "value": "a.*"},
                    {"type": "Exact", "name": "x-env", "value": "test"},
                ],
            }],
            "filters": [{"type": "URLRewrite", "urlRewrite": {
                "hostname": "inner.example.org",
                "path": {"type": "ReplaceFullPath", "replaceFullPath": "/b/"},
            }}],
            "backendRefs": [backend_ref("one", 90), backend_ref("two", 10)],
        }])
    );
}

#[test]
fn a_redirect_has_no_backend() {
    let mut request = request(1, "/old", None);
    request.action = ActionRequest::Redirect {
        scheme: Some("https".to_owned()),
        host: Some("new.example.org".to_owned()),
        path: Some(PathChange::Whole("/new".to_owned())),
        port: Some(8443),
        code: 302,
    };
    assert_eq!(
        rules(request),
        json!([{
            "matches": [{"path": {"type": "PathPrefix", "value": "/old"}}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": {
                "scheme": "https", "hostname": "new.example.org", "port": 8443, "statusCode": 302,
                "path": {"type": "ReplaceFullPath", "replaceFullPath": "/new"},
            }}],
        }])
    );
}

#[test]
fn hosts_are_those_of_the_route_else_those_of_the_gateway() {
    let check = |edge_host: &str, named: &[&str], expect: Value| {
        let edge = Edge {
            hosts: vec![edge_host.to_owned()],
            ..edge()
        };
        let mut request = request(1, "/", None);
        request.hosts = named.iter().map(|host| (*host).to_owned()).collect();
        assert_eq!(
            specs(&edge, &own(), &[request])[0]["spec"]["hostnames"],
            expect
        );
    };
    check("*", &[], Value::Null);
    check("apps.example.org", &[], json!(["apps.example.org"]));
    check(
        "*",
        &["b.example.org", "*.a.example.org"],
        json!(["*.a.example.org", "b.example.org"]),
    );
}

#[test]
fn what_one_object_does_not_hold_is_spread_over_several() {
    let mut hosts = request(1, "/", None);
    hosts.hosts = (0..20).map(|n| format!("h{n}.example.org")).collect();
    let all = specs(&edge(), &own(), &[hosts]);
    let count = |route: &Value| route["spec"]["hostnames"].as_array().unwrap().len();
    assert_eq!(all.iter().map(count).collect::<Vec<_>>(), [16, 4]);
    assert_eq!(all[1]["metadata"]["name"], "meshy-routes-1-1");

    let mut matches = request(1, "/", Some("/x"));
    matches.matches = (0..20)
        .map(|n| MatchRequest {
            path: PathRequest::Prefix(format!("/p{n}")),
            method: None,
            headers: Vec::new(),
        })
        .collect();
    let all = specs(&edge(), &own(), &[matches.clone()]);
    let count = |route: &Value| route["spec"]["rules"].as_array().unwrap().len();
    assert_eq!(all.iter().map(count).collect::<Vec<_>>(), [16, 4]);
    let ActionRequest::Forward { rewrite, .. } = &mut matches.action else {
        panic!("it forwards")
    };
    *rewrite = None;
    let all = specs(&edge(), &own(), &[matches]);
    assert_eq!(all.iter().map(count).collect::<Vec<_>>(), [3]);
}

fn call(relation: u32, path: PathRequest) -> RouteRequest {
    let mut request = request(relation, "/", None);
    request.matches[0].path = path;
    request.client_protocol = true;
    request
}

#[test]
fn a_call_is_a_grpc_route_unless_another_route_of_its_host_shares_its_requests() {
    let exact = || call(1, PathRequest::Exact("/lab.Echo/Say".to_owned()));
    let service = || call(1, PathRequest::Prefix("/lab.Echo".to_owned()));
    let kinds = |requests: &[RouteRequest]| {
        let all = specs(&edge(), &own(), requests);
        let kind = |route: &Value| route["kind"].as_str().unwrap().to_owned();
        all.iter().map(kind).collect::<Vec<_>>()
    };
    let method = |request: RouteRequest| rules(request)[0]["matches"].clone();
    assert_eq!(
        method(exact()),
        json!([{"method": {"type": "Exact", "service": "lab.Echo", "method": "Say"}}])
    );
    assert_eq!(
        method(service()),
        json!([{"method": {"type": "Exact", "service": "lab.Echo"}}])
    );
    assert_eq!(
        method(call(1, PathRequest::Prefix("/".to_owned()))),
        json!([{}])
    );
    assert_eq!(
        kinds(&[service(), request(2, "/app", None)]),
        ["HTTPRoute", "GRPCRoute"]
    );
    assert_eq!(
        kinds(&[service(), request(2, "/", None)]),
        ["HTTPRoute", "HTTPRoute"]
    );
    let mut elsewhere = request(2, "/", None);
    elsewhere.hosts = vec!["b.example.org".to_owned()];
    assert_eq!(kinds(&[service(), elsewhere]), ["HTTPRoute", "GRPCRoute"]);
    // No name of a service: whatever it is, it is no call.
    assert_eq!(
        kinds(&[call(1, PathRequest::Prefix("/lab-app".to_owned()))]),
        ["HTTPRoute"]
    );
    let unserved = objects(&edge(), &own(), &served(&[service()]), false);
    assert_eq!((unserved.http.len(), unserved.grpc.len()), (1, 0));
}

#[test]
fn only_the_services_of_other_namespaces_are_granted() {
    let mut requests: Vec<RouteRequest> = (1..20)
        .map(|relation| request(relation, &format!("/p{relation}"), None))
        .collect();
    for request in &mut requests[1..] {
        let ActionRequest::Forward { backends, .. } = &mut request.action else {
            panic!("it forwards")
        };
        backends[0].backend.namespace = "back-lab".to_owned();
    }
    let grants = reference_grants(&edge(), &served(&requests));
    assert_eq!(grants.len(), 2);
    let first = grants[0].to_object();
    assert_eq!(first["metadata"]["namespace"], "back-lab");
    assert_eq!(
        first["spec"]["from"][1],
        json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "lab"})
    );
    assert_eq!(first["spec"]["to"].as_array().unwrap().len(), 16);
    assert_eq!(
        first["spec"]["to"][0],
        json!({"group": "", "kind": "Service", "name": "app-10"})
    );
}

#[test]
fn a_certificate_makes_a_listener_and_sends_plain_http_there() {
    let with_tls = |redirect: bool| Edge {
        tls: Some(Tls {
            port: 443,
            credential: "front-tls".to_owned(),
            redirect,
        }),
        ..edge()
    };
    let class = OwnGateway {
        class: "istio".to_owned(),
        revision: Some("canary".to_owned()),
    };
    let made = gateway(&with_tls(true), &own(), &class).to_object();
    assert_eq!(
        made["metadata"]["labels"],
        json!({"istio.io/rev": "canary"})
    );
    assert_eq!(
        made["spec"],
        json!({"gatewayClassName": "istio", "listeners": [
            {"name": "http", "port": 80, "protocol": "HTTP",
                "allowedRoutes": {"namespaces": {"from": "Same"}}},
            {"name": "https", "port": 443, "protocol": "HTTPS",
                "tls": {"mode": "Terminate", "certificateRefs": [
                    {"group": "", "kind": "Secret", "name": "front-tls"}]},
                "allowedRoutes": {"namespaces": {"from": "Same"}}},
        ]})
    );
    let all = specs(&with_tls(true), &own(), &[request(1, "/app", None)]);
    let section = |route: &Value| route["spec"]["parentRefs"][0]["sectionName"].clone();
    assert_eq!(
        all.iter().map(section).collect::<Vec<_>>(),
        ["https", "http"]
    );
    assert_eq!(
        all[1]["spec"]["rules"],
        json!([{
            "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
            "filters": [{"type": "RequestRedirect",
                "requestRedirect": {"scheme": "https", "statusCode": 301}}],
        }])
    );
    let both = specs(&with_tls(false), &own(), &[request(1, "/app", None)]);
    assert_eq!(both.iter().map(section).collect::<Vec<_>>(), [Value::Null]);
    // The listeners of others' gateways are theirs, what they are called and what they redirect.
    let foreign = Parent {
        own: false,
        ..own()
    };
    let all = specs(&with_tls(true), &foreign, &[request(1, "/app", None)]);
    assert_eq!(all.iter().map(section).collect::<Vec<_>>(), [Value::Null]);
}

#[test]
fn what_the_api_cannot_say_is_refused_with_its_field() {
    let check = |change: &dyn Fn(&mut RouteRequest), expect: &str| {
        let mut request = request(1, "/app", None);
        change(&mut request);
        let (routes, problems) = routes(&[request]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(refusal(&routes[0]).unwrap().to_string(), expect);
    };
    let header = |value: StringMatch| {
        move |request: &mut RouteRequest| {
            request.matches[0].headers = vec![("x-env".to_owned(), value.clone())];
        }
    };
    check(
        &header(StringMatch::Prefix("te".to_owned())),
        "header value \"te\" cannot be a beginning",
    );
    check(
        &|request| {
            let headers = (0..16).map(|n| (format!("x-{n}"), StringMatch::Exact("a".to_owned())));
            request.matches[0].headers = headers.collect();
        },
        "headers \"16\" are more than 15",
    );
    check(
        &|request| {
            let ActionRequest::Forward { backends, .. } = &mut request.action else {
                panic!("it forwards")
            };
            *backends = vec![backends[0].clone(); 17];
        },
        "backends \"17\" are more than 16",
    );
    check(
        &|request| {
            let ActionRequest::Forward { host, .. } = &mut request.action else {
                panic!("it forwards")
            };
            *host = Some("*.example.org".to_owned());
        },
        "hostname \"*.example.org\" must have no wildcard here",
    );
    check(
        &|request| {
            request.action = ActionRequest::Redirect {
                scheme: None,
                host: None,
                path: None,
                port: None,
                code: 307,
            };
        },
        "statusCode \"307\" must be 301 or 302 on the Gateway API",
    );
}

#[test]
fn an_expression_behind_a_prefix_of_its_host_is_told() {
    let expression = || {
        let mut request = request(2, "/", None);
        request.matches[0].path = PathRequest::Regex("/api/v[0-9]+".to_owned());
        request
    };
    let check = |other: RouteRequest, expect: bool| {
        let routes = served(&[other, expression()]);
        assert_eq!(preferred(&edge(), &routes[1], &routes).is_some(), expect);
        assert!(preferred(&edge(), &routes[0], &routes).is_none());
    };
    check(request(1, "/", None), true);
    check(request(1, "/api", None), true);
    check(request(1, "/app", None), false);
    let mut elsewhere = request(1, "/", None);
    elsewhere.hosts = vec!["b.example.org".to_owned()];
    check(elsewhere, false);
}

#[test]
fn the_newest_served_version_that_is_known_is_written() {
    let served = |versions: &[&str]| {
        let versions: Vec<String> = versions.iter().map(|v| (*v).to_owned()).collect();
        version(&versions)
    };
    assert_eq!(served(&["v1beta1", "v1"]), Some("v1"));
    assert_eq!(served(&["v1beta1"]), Some("v1beta1"));
    assert_eq!(served(&["v1alpha2"]), None);
    assert_eq!(served(&[]), None);
}
