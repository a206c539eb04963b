//! The action `discover`: all that is known about Istio in the cluster, and what is made of it. Pure.

use juju_charm::ModelView;
use mesh::discovery::{ControlPlane, GatewayWorkload, Selected};

use crate::actions::{Row, or_dash};
use crate::auth;
use crate::observe::View;
use crate::validate::Validated;

/// API groups that tell who runs Istio, or that something of it is there.
const SIGNALS: &[(&str, &str)] = &[
    ("networking.istio.io", "definitions of Istio"),
    ("install.istio.io", "Istio's former operator"),
    ("sailoperator.io", "Sail operator"),
    ("maistra.io", "OpenShift Service Mesh 2"),
    ("mesh.cloud.google.com", "Google's managed mesh"),
    ("operator.kyma-project.io", "Kyma's operator"),
    ("istio.deckhouse.io", "Deckhouse"),
    ("gateway.networking.k8s.io", "Gateway API"),
];

/// Control planes, gateways, signals and what is chosen.
pub(crate) fn tables(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
) -> Vec<(&'static str, Vec<Row>)> {
    let of_api = cluster.api_gateways.iter().map(|gateway| &gateway.workload);
    let gateways = cluster.gateways.iter().chain(of_api);
    vec![
        (
            "control-planes",
            cluster.control_planes.iter().map(plane).collect(),
        ),
        ("gateways", gateways.map(gateway).collect()),
        ("signals", signals(cluster)),
        ("choice", choice(cluster)),
        ("extension-provider", provider(view, validated)),
    ]
}

fn plane(plane: &ControlPlane) -> Row {
    vec![
        ("control-plane", plane.reference()),
        ("version", or_dash(plane.version.clone())),
        ("root-namespace", plane.root_namespace.clone()),
        ("trust-domain", plane.trust_domain.clone()),
        ("tags", or_dash(Some(plane.tags.join(",")))),
        (
            "extension-providers",
            or_dash(Some(plane.extension_providers.join(","))),
        ),
        (
            "mode",
            if plane.ambient { "ambient" } else { "sidecar" }.to_owned(),
        ),
        ("owner", plane.owner.to_string()),
        ("ready", plane.ready.to_string()),
    ]
}

fn gateway(gateway: &GatewayWorkload) -> Row {
    let service = gateway.service.as_ref();
    vec![
        ("gateway", gateway.reference()),
        ("kind", gateway.kind.clone()),
        ("revision", or_dash(gateway.revision.clone())),
        (
            "service",
            or_dash(service.map(|s| format!("{} {}", s.kind, s.name))),
        ),
        (
            "address",
            or_dash(service.and_then(|s| s.host()).map(str::to_owned)),
        ),
        ("account", gateway.service_account.clone()),
        ("ready", gateway.ready.to_string()),
    ]
}

fn signals(cluster: &View) -> Vec<Row> {
    let row = |(group, what): &(&'static str, &'static str)| {
        vec![
            ("signal", (*what).to_owned()),
            ("api-group", (*group).to_owned()),
        ]
    };
    let mut rows: Vec<Row> = SIGNALS
        .iter()
        .filter(|(group, _)| cluster.groups.contains(*group))
        .map(row)
        .collect();
    if !cluster.networking.is_empty() && cluster.control_planes.is_empty() {
        rows.push(vec![
            (
                "signal",
                "leftovers: definitions without a control plane".to_owned(),
            ),
            ("api-group", "-".to_owned()),
        ]);
    }
    rows
}

fn choice(cluster: &View) -> Vec<Row> {
    let told = |what: &str, chosen: String, why: String| {
        vec![
            ("choice", what.to_owned()),
            ("is", chosen),
            ("because", why),
        ]
    };
    let only = || "it is the only one that fits".to_owned();
    let plane = match &cluster.plane {
        Selected::One(plane) => told("control-plane", plane.reference(), only()),
        Selected::None { looked_for } => told(
            "control-plane",
            "-".into(),
            format!("not found: {looked_for}"),
        ),
        Selected::Several { candidates } => told(
            "control-plane",
            "-".into(),
            format!("several: {}", candidates.join(", ")),
        ),
    };
    let gateway = match &cluster.gateway {
        None => told("gateway", "-".into(), "no control plane is chosen".into()),
        Some(Selected::One(gateway)) => told("gateway", gateway.reference(), only()),
        Some(Selected::None { looked_for }) => {
            told("gateway", "-".into(), format!("not found: {looked_for}"))
        }
        Some(Selected::Several { candidates }) => told(
            "gateway",
            "-".into(),
            format!("several: {}", candidates.join(", ")),
        ),
    };
    vec![plane, gateway]
}

/// What an administrator may add to the mesh config, so that Istio itself asks the authorizer.
fn provider(view: &ModelView, validated: &Validated) -> Vec<Row> {
    let gate = validated.auth.gate.as_ref();
    let Some(authorizer) = gate.and_then(|gate| gate.authorizer.as_ref()) else {
        return Vec::new();
    };
    let list = |names: &std::collections::BTreeSet<String>| {
        names.iter().cloned().collect::<Vec<_>>().join(", ")
    };
    let line = format!(
        "- {{name: {}, envoyExtAuthzHttp: {{service: {}, port: {}, includeRequestHeadersInCheck: \
         [{}], headersToUpstreamOnAllow: [{}]}}}}",
        auth::provider_name(view),
        authorizer.host(),
        authorizer.port,
        list(&authorizer.request_headers),
        list(&authorizer.identity_headers),
    );
    let used = gate.and_then(|gate| gate.provider.clone());
    let tokens = gate.is_some_and(|gate| !gate.tokens.is_empty());
    let used = if tokens {
        "no: tokens pass beside the authorizer".to_owned()
    } else {
        or_dash(used)
    };
    vec![vec![("in-use", used), ("mesh-config-line", line)]]
}
