//! The option `gateways`.

use std::collections::BTreeSet;

use juju_charm::Config;
use mesh::control_plane::gateway::Autoscaling;
use mesh::control_plane::{GatewayKind, GatewaySettings};
use mesh::name::check_label;
use mesh::{Namespace, Revision};

use super::RESERVED;
use super::text::{Bad, text};

const OPTION: &str = "gateways";

pub(super) fn gateways(config: &Config) -> Result<Vec<GatewaySettings>, Bad> {
    let Some(text) = text(config, OPTION) else {
        return Ok(Vec::new());
    };
    let gateways: Option<Vec<GatewaySettings>> =
        yaml::parse_as(text).map_err(|why| Bad::unreadable(OPTION, &why))?;
    let gateways = gateways.unwrap_or_default();
    gateways.iter().try_for_each(check)?;
    Ok(gateways)
}

fn check(gateway: &GatewaySettings) -> Result<(), Bad> {
    let name = gateway.name.as_str();
    let bad = |part: &str, value: &str, why: &str| Err(Bad::part(OPTION, part, value, why));
    check_label(name).map_err(|why| Bad::part(OPTION, "name", name, why))?;
    if let Some(namespace) = &gateway.namespace {
        check_label(namespace).map_err(|why| Bad::part(OPTION, "namespace", namespace, why))?;
        if RESERVED.contains(&namespace.as_str()) {
            return bad("namespace", namespace, "is the cluster's own");
        }
    }
    if let Some(revision) = &gateway.revision {
        let parsed = revision.parse::<Revision>();
        parsed.map_err(|why| Bad::part(OPTION, "revision", revision, why))?;
    }
    let label = gateway.own_label();
    if gateway.kind == GatewayKind::Ingress && label.contains("egress") {
        return bad("name", name, "names an egress, set kind: egress");
    }
    check_label(&label).map_err(|why| Bad::part(OPTION, "name", name, why))?;
    match (gateway.replicas, gateway.autoscaling) {
        (Some(0), _) => return bad("replicas", "0", "leaves no gateway, take it off the list"),
        (Some(_), Some(_)) => return bad("replicas", name, "has autoscaling as well"),
        (_, Some(Autoscaling { min, max, cpu }))
            if min == 0 || min > max || cpu.is_some_and(|cpu| !(1..=100).contains(&cpu)) =>
        {
            return bad("autoscaling", name, "needs 1 <= min <= max, cpu 1 to 100");
        }
        _ => {}
    }
    let ports = gateway.ports.as_deref();
    if ports.is_some_and(<[_]>::is_empty) {
        return bad("ports", name, "has none, leave ports out for 80 and 443");
    }
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports.into_iter().flatten() {
        check_label(&port.name).map_err(|why| Bad::part(OPTION, "port", &port.name, why))?;
        if port.port == 0 || !names.insert(&port.name) || !numbers.insert(port.port) {
            return bad("port", &port.name, "must be 1 to 65535 and there once");
        }
    }
    Ok(())
}

/// Gateways of one name in one namespace; one that names none is in `namespace`.
pub(super) fn twins(namespace: &Namespace, gateways: &[GatewaySettings]) -> Option<Bad> {
    let mut seen = BTreeSet::new();
    let twin = gateways.iter().find(|gateway| {
        let place = gateway.namespace.as_deref().unwrap_or(namespace.as_str());
        !seen.insert((place, &gateway.name))
    });
    twin.map(|twin| {
        Bad::part(
            OPTION,
            "name",
            &twin.name,
            "is there twice in one namespace",
        )
    })
}
