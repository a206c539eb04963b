//! network-get and the port tools.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Call;
use super::Failure;
use super::no_more;
use super::refused;
use super::relation::relation_id;
use super::usage;
use crate::agent::context::HookRun;

pub(super) fn network_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let binding = match call.line.args.as_slice() {
        [] => return usage("no arguments specified"),
        [binding] => binding,
        [_, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    relation_id(run, call)?;
    let Some(app) = run.state().applications.get(&run.app) else {
        return refused("application not found");
    };
    let known = binding == "juju-info"
        || app.charm.endpoints.contains_key(binding)
        || app.charm.extra_bindings.contains(binding);
    if !known {
        return refused(format!("no network config found for binding {binding:?}"));
    }
    let address = run
        .state()
        .unit(&run.unit)
        .map(|u| u.address.clone())
        .unwrap_or_default();
    let subnet = format!("{address}/32");
    let parts = [
        ("bind-address", json!(address)),
        ("ingress-address", json!(app.address)),
        ("egress-subnets", json!([subnet])),
    ];
    let primary = call.line.is("primary-address");
    let asked: Map<String, Value> = parts
        .into_iter()
        .filter(|(name, _)| call.line.is(name) || (primary && *name == "bind-address"))
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    match asked.len() {
        0 => {}
        1 => return call.print(asked.values().next().unwrap_or(&Value::Null)),
        _ => return call.print(&Value::Object(asked)),
    }
    call.print(&json!({
        "bind-addresses": [{
            "mac-address": "",
            "interface-name": "",
            "addresses": [{"hostname": "", "value": address, "cidr": ""}],
        }],
        "egress-subnets": [subnet],
        "ingress-addresses": [app.address],
    }))
}

pub(super) fn open_port(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let (port, endpoints) = port(run, call)?;
    let mut ports = ports(run);
    ports.entry(port).or_default().extend(endpoints);
    run.pending.ports = Some(ports);
    Ok(String::new())
}

pub(super) fn close_port(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let (port, endpoints) = port(run, call)?;
    let mut ports = ports(run);
    if let Some(open) = ports.get_mut(&port) {
        if endpoints.contains("*") {
            open.clear();
        }
        open.retain(|e| !endpoints.contains(e));
    }
    ports.retain(|_, open| !open.is_empty());
    run.pending.ports = Some(ports);
    Ok(String::new())
}

pub(super) fn opened_ports(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    let with_endpoints = call.line.is("endpoints");
    let mut listed: Vec<String> = ports(run)
        .into_iter()
        .map(|(port, endpoints)| {
            let endpoints: Vec<String> = endpoints.into_iter().collect();
            if with_endpoints {
                format!("{port} ({})", endpoints.join(", "))
            } else {
                port
            }
        })
        .collect();
    listed.sort();
    call.print(&json!(listed))
}

/// Opened ports as this hook sees them.
fn ports(run: &HookRun<'_>) -> BTreeMap<String, BTreeSet<String>> {
    match &run.pending.ports {
        Some(ports) => ports.clone(),
        None => run
            .state()
            .unit(&run.unit)
            .map(|u| u.ports.clone())
            .unwrap_or_default(),
    }
}

/// The port and the endpoints of an open-port or close-port command line.
fn port(run: &HookRun<'_>, call: &Call<'_>) -> Result<(String, BTreeSet<String>), Failure> {
    let text = match call.line.args.as_slice() {
        [] => return usage("no port or range specified"),
        [text] => text.to_lowercase(),
        [_, rest @ ..] => return no_more(rest).map(|()| (String::new(), BTreeSet::new())),
    };
    let port = if text == "icmp" {
        text
    } else {
        let (number, protocol) = text.split_once('/').unwrap_or((&text, "tcp"));
        if number.contains('-') {
            return refused(
                "port ranges are not supported for k8s applications, please specify a single port",
            );
        }
        if !matches!(number.parse::<u16>(), Ok(1..)) {
            return usage(format!(
                "invalid port {number:?}; expected <port>[/<protocol>]"
            ));
        }
        if protocol != "tcp" && protocol != "udp" {
            return usage(format!(
                "invalid protocol {protocol:?}, expected \"tcp\" or \"udp\""
            ));
        }
        format!("{number}/{protocol}")
    };
    let endpoints: BTreeSet<String> = match call.line.get("endpoints") {
        None | Some("" | "*") => BTreeSet::from(["*".to_owned()]),
        Some(list) => list.split(',').map(|e| e.trim().to_owned()).collect(),
    };
    let declared = run
        .state()
        .applications
        .get(&run.app)
        .map(|a| &a.charm.endpoints);
    for endpoint in endpoints.iter().filter(|e| *e != "*") {
        if !declared.is_some_and(|d| d.contains_key(endpoint)) {
            return refused(format!("endpoint {endpoint:?} not found"));
        }
    }
    Ok((port, endpoints))
}
