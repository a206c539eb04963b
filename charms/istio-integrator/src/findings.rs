//! What would keep the desired objects from working, found by looking at them beside what is live.
//! Pure. A finding names the relation it came from, or the object that is in the way.

use std::collections::BTreeMap;

use istio_api::networking::Gateway;
use juju_charm::Problem;
use mesh::routes::{Edge, Route, hosts};

use crate::observe::{ServiceInfo, View};
use crate::target::Target;

/// What is odd about the Services behind each relation's routes. Known only for the model's own
/// Services; those of other namespaces are not read.
pub fn backends(model: &str, cluster: &View, routes: &[Route]) -> BTreeMap<u32, String> {
    let mut findings = BTreeMap::new();
    for route in routes {
        for weighted in route.backends() {
            let backend = &weighted.backend;
            if backend.namespace != model {
                continue;
            }
            let name = format!("{}/{}", backend.namespace, backend.service);
            let key = (backend.namespace.clone(), backend.service.clone());
            let found = match cluster.services.get(&key) {
                None => Some(format!("Service {name} does not exist")),
                Some(service) => port(service, &name, backend.port, route.client_protocol),
            };
            if let Some(found) = found {
                findings.entry(route.relation).or_insert(found);
            }
        }
    }
    findings
}

/// Istio takes a port's protocol from its name or `appProtocol`; what it takes for TCP it does not
/// route by path.
fn port(service: &ServiceInfo, name: &str, number: u16, http2: bool) -> Option<String> {
    let Some(port) = service.ports.iter().find(|port| port.number == number) else {
        return Some(format!("Service {name} has no port {number}"));
    };
    let named = port.name.split('-').next().unwrap_or_default();
    let told = if port.protocol.is_empty() {
        named
    } else {
        &port.protocol
    };
    let told = told.to_ascii_lowercase();
    match told.as_str() {
        "tcp" | "tls" | "mongo" | "mysql" | "redis" | "udp" => Some(format!(
            "port {number} of Service {name} says it is {told}, not HTTP"
        )),
        "http" if http2 => Some(format!(
            "port {number} of Service {name} says it is http, but is spoken to in HTTP/2"
        )),
        _ => None,
    }
}

/// Other `Gateway`s in the way: of two servers for TLS on one port and host Istio keeps the older.
pub fn gateways(edge: &Edge, target: &Target, cluster: &View, routes: &[Route]) -> Vec<Problem> {
    let Some(tls) = &edge.tls else {
        return Vec::new();
    };
    let ours = hosts(edge, routes);
    let mut problems = Vec::new();
    for other in cluster
        .other_gateways
        .iter()
        .filter(|other| selects(other, target))
    {
        for server in &other.spec.servers {
            let claimed = server.port.number == tls.port
                && server.hosts.iter().any(|host| {
                    let host = host.rsplit('/').next().unwrap_or(host);
                    ours.iter().any(|own| overlaps(own, host))
                });
            if claimed {
                let metadata = &other.metadata;
                problems.push(Problem::blocked(format!(
                    "Gateway {}/{} has hosts of ours on port {}: the older one keeps them",
                    metadata.namespace.as_deref().unwrap_or_default(),
                    metadata.name.as_deref().unwrap_or_default(),
                    tls.port
                )));
                break;
            }
        }
    }
    problems
}

fn selects(gateway: &Gateway, target: &Target) -> bool {
    let labels = &target.gateway.labels;
    let selector = &gateway.spec.selector;
    !selector.is_empty()
        && selector
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
}

fn overlaps(a: &str, b: &str) -> bool {
    let covers = |wide: &str, narrow: &str| {
        wide == "*"
            || wide
                .strip_prefix('*')
                .is_some_and(|suffix| narrow.ends_with(suffix))
    };
    a == b || covers(a, b) || covers(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::ServicePort;

    #[test]
    fn hosts_overlap_by_name_or_wildcard() {
        let check = |a: &str, b: &str, expect: bool| {
            assert_eq!(overlaps(a, b), expect, "{a} {b}");
            assert_eq!(overlaps(b, a), expect, "{b} {a}");
        };
        check("a.example.org", "a.example.org", true);
        check("*", "a.example.org", true);
        check("*.example.org", "a.example.org", true);
        check("*.example.org", "a.example.com", false);
        check("a.example.org", "b.example.org", false);
    }

    #[test]
    fn a_port_that_says_it_is_no_http_is_told() {
        let check = |name: &str, protocol: &str, http2: bool, expect: Option<&str>| {
            let service = ServiceInfo {
                ports: vec![ServicePort {
                    name: name.to_owned(),
                    number: 80,
                    protocol: protocol.to_owned(),
                    target: None,
                }],
                selector: BTreeMap::new(),
            };
            assert_eq!(port(&service, "lab/x", 80, http2).as_deref(), expect);
        };
        check("", "", false, None);
        check("http-web", "", false, None);
        check("grpc", "", true, None);
        check(
            "tcp-x",
            "",
            false,
            Some("port 80 of Service lab/x says it is tcp, not HTTP"),
        );
        check("tcp-x", "http", false, None);
        check(
            "http",
            "",
            true,
            Some("port 80 of Service lab/x says it is http, but is spoken to in HTTP/2"),
        );
    }
}
