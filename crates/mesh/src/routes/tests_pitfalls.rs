//! What goes wrong with routes elsewhere, and must not here.

use istio_api::CustomObject;
use serde_json::Value;

use super::*;

fn edge(tls: bool) -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["apps.example.org".to_owned()],
        http: 80,
        tls: tls.then(|| Tls {
            port: 443,
            credential: "meshy-tls".to_owned(),
            redirect: true,
        }),
        ..Edge::default()
    }
}

fn served() -> Vec<Route> {
    let backend = Backend {
        service: "books".to_owned(),
        namespace: "back-lab".to_owned(),
        port: 80,
    };
    let mut named = RouteRequest::prefix(2, "books", "/books", None, backend.clone());
    named.hosts = vec!["books.example.org".to_owned()];
    let plain = RouteRequest::prefix(1, "echo", "/echo", None, backend);
    let (routes, problems) = routes(&[plain, named]);
    assert!(problems.is_empty());
    routes
}

fn services(edge: &Edge) -> Vec<Value> {
    let services = virtual_services(edge, &served());
    assert_eq!(services.len(), 2);
    services.iter().map(CustomObject::to_object).collect()
}

fn rules(edge: &Edge) -> Vec<Value> {
    let rules = services(edge)
        .into_iter()
        .map(|service| service["spec"]["http"].as_array().unwrap().clone());
    rules.flatten().collect()
}

#[test]
fn routes_are_for_one_gateway_named_in_full_and_not_for_sidecars() {
    for service in services(&edge(false)) {
        assert_eq!(
            service["spec"]["gateways"],
            serde_json::json!(["lab/front"])
        );
    }
}

#[test]
fn backends_are_named_in_full_whatever_namespace_the_routes_are_in() {
    for rule in rules(&edge(false)) {
        let host = &rule["route"][0]["destination"]["host"];
        assert_eq!(host, "books.back-lab.svc.cluster.local");
    }
}

#[test]
fn no_route_has_a_timeout_or_retries_of_its_own() {
    for rule in rules(&edge(true)) {
        assert!(rule.get("timeout").is_none() && rule.get("retries").is_none());
    }
}

#[test]
fn all_hosts_of_the_certificate_are_one_server_and_every_routed_host_is_one_of_them() {
    let edge = edge(true);
    let gateway = gateway(
        &edge,
        &[("istio".to_owned(), "edge".to_owned())].into(),
        &served(),
    );
    let secure: Vec<_> = gateway
        .spec
        .servers
        .iter()
        .filter(|server| server.tls.is_some())
        .collect();
    assert_eq!(secure.len(), 1);
    assert_eq!(secure[0].hosts, ["apps.example.org", "books.example.org"]);
    for service in virtual_services(&edge, &served()) {
        assert!(
            service
                .spec
                .hosts
                .iter()
                .all(|host| secure[0].hosts.contains(host))
        );
    }
}

#[test]
fn without_a_certificate_nothing_is_redirected() {
    assert!(
        rules(&edge(false))
            .iter()
            .all(|rule| rule.get("redirect").is_none())
    );
    assert!(
        rules(&edge(true))
            .iter()
            .any(|rule| rule.get("redirect").is_some())
    );
}
