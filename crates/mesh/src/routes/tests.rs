//! What is matched, rewritten, kept and refused.

use std::collections::BTreeMap;

use istio_api::CustomObject as _;
use istio_api::networking::{HttpRoute, StringMatch, VirtualService};
use serde_json::json;

use super::objects::OBJECT_BYTES;
use super::*;

fn request(relation: u32, prefix: &str, rewrite: Option<&str>) -> RouteRequest {
    let backend = Backend {
        service: format!("svc-{relation}"),
        namespace: "lab".to_owned(),
        port: 8080,
    };
    let app = format!("app-{relation}");
    RouteRequest::prefix(relation, &app, prefix, rewrite.map(str::to_owned), backend)
}

fn set_prefix(request: &mut RouteRequest, prefix: &str) {
    request.matches[0].path = PathRequest::Prefix(prefix.to_owned());
}

fn set_rewrite(request: &mut RouteRequest, to: PathChange) {
    let ActionRequest::Forward { rewrite, .. } = &mut request.action else {
        panic!("{request:?}")
    };
    *rewrite = Some(to);
}

fn backend(request: &mut RouteRequest) -> &mut Backend {
    let ActionRequest::Forward { backends, .. } = &mut request.action else {
        panic!("no backends")
    };
    &mut backends[0].backend
}

fn edge() -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["*".to_owned()],
        http: 80,
        ..Edge::default()
    }
}

/// What Envoy does with a path: the first matching rule, and the path as the backend sees it.
fn envoy(http: &[HttpRoute], path: &str) -> Option<(String, String)> {
    http.iter().find_map(|rule| {
        let matched = rule.matches.iter().find_map(|m| match m.uri.as_ref()? {
            StringMatch::Exact(exact) => (path == exact).then_some(exact.as_str()),
            StringMatch::Prefix(prefix) => path.starts_with(prefix).then_some(prefix.as_str()),
            StringMatch::Regex(_) => None,
        })?;
        let rewrite = rule
            .rewrite
            .as_ref()
            .and_then(|rewrite| rewrite.uri.as_deref());
        let seen = match rewrite {
            None => path.to_owned(),
            Some(uri) => format!("{uri}{}", &path[matched.len()..]),
        };
        Some((rule.route[0].destination.host.clone(), seen))
    })
}

/// The rules of routes: all but the charm's own.
fn http_of(services: &[VirtualService]) -> Vec<HttpRoute> {
    let own = |rule: &HttpRoute| match &rule.matches[0].uri {
        Some(StringMatch::Exact(path)) => path.starts_with(RESERVED_PREFIX),
        _ => false,
    };
    let rules = services.iter().flat_map(|service| &service.spec.http);
    rules.filter(|rule| !own(rule)).cloned().collect()
}

#[test]
fn prefixes_match_at_segment_borders_and_rewrites_join_with_one_slash() {
    let check = |prefix: &str, rewrite: Option<&str>, path: &str, expect: Option<&str>| {
        let (routes, problems) = routes(&[request(1, prefix, rewrite)]);
        assert!(problems.is_empty(), "{problems:?}");
        let http = http_of(&virtual_services(&edge(), &routes));
        let got = envoy(&http, path).map(|(_, path)| path);
        assert_eq!(got.as_deref(), expect, "{prefix} {rewrite:?} {path}");
    };
    for prefix in ["/app", "/app/", "//app//"] {
        check(prefix, None, "/app", Some("/app"));
        check(prefix, None, "/app/", Some("/app/"));
        check(prefix, None, "/app/x", Some("/app/x"));
        check(prefix, None, "/appendix", None);
        check(prefix, None, "/", None);
        check(prefix, Some("/"), "/app", Some("/"));
        check(prefix, Some("/"), "/app/", Some("/"));
        check(prefix, Some("/"), "/app/x/y", Some("/x/y"));
        check(prefix, Some("/v2"), "/app", Some("/v2"));
        check(prefix, Some("/v2/"), "/app/x", Some("/v2/x"));
        check(prefix, Some("/app"), "/app/x", Some("/app/x"));
    }
    check("/", None, "/anything", Some("/anything"));
    check("/", Some("/"), "/", Some("/"));
    check("/", Some("/ui"), "/x", Some("/ui/x"));
}

#[test]
fn the_longest_prefix_wins_whatever_the_order_of_relations() {
    let requests = [
        request(1, "/", None),
        request(2, "/app", None),
        request(3, "/app/deep", None),
        request(4, "/other", None),
    ];
    let mut turned = requests.to_vec();
    turned.reverse();
    assert_eq!(routes(&requests), routes(&turned));
    let http = http_of(&virtual_services(&edge(), &routes(&requests).0));
    let check = |path: &str, relation: u32| {
        let host = envoy(&http, path).unwrap().0;
        assert_eq!(
            host,
            format!("svc-{relation}.lab.svc.cluster.local"),
            "{path}"
        );
    };
    check("/", 1);
    check("/appendix", 1);
    check("/app", 2);
    check("/app/deeper", 2);
    check("/app/deep/x", 3);
    check("/other/", 4);
}

#[test]
fn the_first_claimant_keeps_a_prefix_and_the_second_is_told() {
    let requests = [
        request(7, "/app/", None),
        request(3, "/app", None),
        request(9, "/x", None),
    ];
    let (routes, problems) = routes(&requests);
    let served: Vec<u32> = routes.iter().map(|route| route.relation).collect();
    assert_eq!(served, [3, 9]);
    let told: BTreeMap<u32, String> = problems
        .iter()
        .map(|((id, _), problem)| (*id, problem.to_string()))
        .collect();
    assert_eq!(
        told,
        BTreeMap::from([(7, "prefix /app is taken by app-3".to_owned())])
    );
}

#[test]
fn a_bad_request_is_a_problem_and_leaves_the_others_alone() {
    let check = |mut bad: RouteRequest, change: fn(&mut RouteRequest), expect: &str| {
        change(&mut bad);
        let (routes, problems) = routes(&[bad, request(2, "/good", None)]);
        assert_eq!(routes.len(), 1);
        assert_eq!(problems[&(1, String::new())].to_string(), expect);
    };
    let ok = || request(1, "/app", None);
    check(
        ok(),
        |r| set_prefix(r, "app"),
        "prefix \"app\" must begin with /",
    );
    check(ok(), |r| set_prefix(r, ""), "prefix \"\" must begin with /");
    check(
        ok(),
        |r| set_prefix(r, "/a%2Fb"),
        "prefix \"/a%2Fb\" has '%', which a path prefix cannot have",
    );
    check(
        ok(),
        |r| set_prefix(r, "/a b"),
        "prefix \"/a b\" has ' ', which a path prefix cannot have",
    );
    check(
        ok(),
        |r| set_prefix(r, "/a;b"),
        "prefix \"/a;b\" has ';', which a path prefix cannot have",
    );
    check(
        ok(),
        |r| set_prefix(r, "/a/../b"),
        "prefix \"/a/../b\" must not have . or .. segments",
    );
    check(
        ok(),
        |r| set_rewrite(r, PathChange::Prefix("up".into())),
        "rewrite \"up\" must begin with /",
    );
    check(
        ok(),
        |r| set_prefix(r, "/.well-known/istio-integrator/probe"),
        "prefix \"/.well-known/istio-integrator/probe\" is reserved",
    );
    check(
        ok(),
        |r| backend(r).service = "a.b".into(),
        "service \"a.b\" has '.', only a-z, 0-9 and - are allowed",
    );
    check(
        ok(),
        |r| backend(r).namespace = String::new(),
        "namespace \"\" must not be empty",
    );
}

#[test]
fn many_routes_are_spread_without_parting_those_that_could_shadow_each_other() {
    let count = 3000;
    let mut requests = Vec::new();
    for relation in 0..count {
        requests.push(request(2 * relation, &format!("/team-{relation}"), None));
        requests.push(request(
            2 * relation + 1,
            &format!("/team-{relation}/deep"),
            None,
        ));
    }
    let (routes, problems) = routes(&requests);
    assert!(problems.is_empty());
    let services = virtual_services(&edge(), &routes);
    assert!(services.len() > 1);
    for service in &services {
        let size = service.to_object().to_string().len();
        assert!(size < 2 * OBJECT_BYTES, "{size}");
    }
    assert_eq!(http_of(&services).len(), requests.len());
    let home = |prefix: &str| {
        let exact = StringMatch::Exact(prefix.to_owned());
        services.iter().position(|service| {
            service
                .spec
                .http
                .iter()
                .any(|rule| rule.matches[0].uri.as_ref() == Some(&exact))
        })
    };
    for relation in 0..count {
        let team = format!("/team-{relation}");
        assert_eq!(home(&team), home(&format!("{team}/deep")));
    }
}

#[test]
fn a_route_about_any_first_segment_keeps_all_of_its_host_in_one_object() {
    let check = |any: RouteRequest| {
        let teams = (1..3000).map(|relation| request(relation, &format!("/team-{relation}"), None));
        let requests: Vec<RouteRequest> = teams.chain([any]).collect();
        let (routes, problems) = routes(&requests);
        assert!(problems.is_empty());
        assert_eq!(virtual_services(&edge(), &routes).len(), 1);
    };
    check(request(9000, "/", None));
    let mut expression = request(9000, "/", None);
    expression.matches[0].path = PathRequest::Regex("/t[a-z]+/x".to_owned());
    check(expression);
}

#[test]
fn the_charms_own_paths_are_asked_first_in_every_object_of_a_guarded_gateway() {
    use crate::auth::{DENIED_PATH, PROBE_PATH};
    let guarded = Edge {
        guard: Some("token".to_owned()),
        ..edge()
    };
    let check = |requests: &[RouteRequest], objects: usize| {
        let services = virtual_services(&guarded, &routes(requests).0);
        assert_eq!(services.len(), objects);
        for service in services {
            let first = service.spec.http.iter().take(2);
            let shown: Vec<_> = first
                .map(|rule| (rule.matches[0].uri.clone(), rule.direct_response.clone()))
                .map(|(uri, answer)| (uri.unwrap(), answer.unwrap().status))
                .collect();
            let exact = |path: &str| StringMatch::Exact(path.to_owned());
            assert_eq!(shown, [(exact(PROBE_PATH), 200), (exact(DENIED_PATH), 404)]);
        }
    };
    let mut root = request(1, "/", None);
    root.open = true;
    let mut elsewhere = request(2, "/", None);
    elsewhere.hosts = vec!["books.example.org".to_owned()];
    check(&[root, elsewhere], 2);
    let teams: Vec<RouteRequest> = (1..2500)
        .map(|relation| request(relation, &format!("/team-{relation}"), None))
        .collect();
    check(&teams, 2);
}

#[test]
fn only_routes_whose_every_rule_is_live_are_established() {
    let (old, _) = routes(&[request(1, "/app", Some("/")), request(2, "/books", None)]);
    let live = virtual_services(&edge(), &old);
    let (new, _) = routes(&[
        request(1, "/app", Some("/v2")),
        request(2, "/books", None),
        request(3, "/fresh", None),
    ]);
    let kept: Vec<u32> = established(&new, &edge(), &live)
        .iter()
        .map(|route| route.relation)
        .collect();
    assert_eq!(kept, [2]);
    assert!(established(&new, &edge(), &[]).is_empty());
}

#[test]
fn objects_are_written_in_a_version_the_cluster_serves() {
    let served = |versions: &[&str]| versions.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        networking_version(&served(&["v1", "v1beta1", "v1alpha3"])),
        "v1"
    );
    assert_eq!(
        networking_version(&served(&["v1beta1", "v1alpha3"])),
        "v1beta1"
    );
    assert_eq!(security_version(&served(&["v1beta1"])), "v1beta1");
    let (routes, _) = routes(&[request(1, "/app", Some("/"))]);
    let objects: Vec<_> = virtual_services(&edge(), &routes)
        .iter()
        .map(|v| v.to_object_as("v1beta1"))
        .collect();
    let route = json!([{"destination": {
        "host": "svc-1.lab.svc.cluster.local", "port": {"number": 8080}}}]);
    assert_eq!(
        objects,
        [json!({
            "apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService",
            "metadata": {"name": "meshy-routes", "namespace": "lab"},
            "spec": {"hosts": ["*"], "gateways": ["lab/front"], "http": [
                {"match": [{"uri": {"exact": "/app"}}], "rewrite": {"uri": "/"}, "route": route},
                {"match": [{"uri": {"prefix": "/app/"}}], "rewrite": {"uri": "/"}, "route": route},
            ]},
        })]
    );
    let labels = BTreeMap::from([("istio".to_owned(), "edge".to_owned())]);
    assert_eq!(
        gateway(&edge(), &labels, &[]).to_object_as("v1")["spec"],
        json!({"selector": {"istio": "edge"}, "servers": [
            {"hosts": ["*"], "port": {"name": "http", "number": 80, "protocol": "HTTP"}}]})
    );
}

#[test]
fn guarded_rules_ask_for_the_header_and_hide_it_from_the_workload() {
    let (routes, _) = routes(&[request(1, "/app", Some("/")), request(2, "/", None)]);
    let guarded = Edge {
        guard: Some("token".to_owned()),
        ..edge()
    };
    let live = virtual_services(&guarded, &routes);
    for rule in http_of(&live) {
        for condition in &rule.matches {
            let required = condition.headers.get(crate::auth::GUARD_HEADER);
            assert_eq!(required, Some(&StringMatch::Exact("token".to_owned())));
        }
        let removed = rule.headers.unwrap().request.unwrap().remove;
        assert_eq!(removed, [crate::auth::GUARD_HEADER]);
    }
    assert_eq!(established(&routes, &guarded, &live).len(), 2);
    assert!(
        established(&routes, &edge(), &live).is_empty(),
        "an unguarded rule is another rule"
    );
    assert!(established(&routes, &guarded, &virtual_services(&edge(), &routes)).is_empty());
}
