//! What related applications are told in our databags. Pure.

use std::collections::BTreeMap;

use juju_charm::{Databag, LocalData, ModelView, RelationId};
use mesh::routes::Path;
use relations::{
    GatewayInfo, GatewayMetadata, IngressConfig, IngressedApps, MeshLabels, RouteReply, ScrapeJob,
    ScrapeJobs, ScrapeMetadata, StaticConfig, TraefikIngress, TraefikReply, UnitAddress, ingress,
    ingress_auth, sdi,
};

use crate::ingress::IngressState;
use crate::observe::CHARM;
use crate::pass::Done;
use crate::target::Target;
use crate::tls;
use crate::validate::Validated;

/// Port of the metrics of Istio's proxies, and their path.
const METRICS: (u16, &str) = (15020, "/stats/prometheus");

/// Everything that is told after a hook.
pub(crate) fn databags(
    view: &ModelView,
    validated: &Validated,
    applied: Option<&Done>,
) -> BTreeMap<RelationId, LocalData> {
    let mut databags = versions(view);
    let mut tell = |id: RelationId, data: Databag| {
        databags.entry(id).or_default().app.extend(data);
    };
    for (id, state) in &validated.ingresses {
        if let Some(data) = reply(validated, applied, *id, state) {
            tell(*id, data);
        }
    }
    for relation in view.relations_of("forward-auth") {
        let apps = validated.ingresses.values().map(|state| state.app.clone());
        let mut apps: Vec<String> = apps.collect();
        apps.sort();
        apps.dedup();
        tell(relation.id, IngressedApps(apps).encode());
    }
    for relation in view.relations_of("istio-ingress-config") {
        tell(relation.id, authorizer(validated));
    }
    if let (Some(_), Some(target)) = (applied, &validated.target) {
        // VirtualServices, which is what is asked for here, cannot be attached to others.
        let takes = target.api.is_none();
        let (namespace, name) = match &target.api {
            Some(choice) => (
                choice.gateway.workload.namespace.clone(),
                choice.gateway.name.clone(),
            ),
            None => (
                view.context.model_name.to_string(),
                target.settings.gateway_name.clone(),
            ),
        };
        let info = GatewayInfo {
            gateway_name: name.clone(),
            gateway_namespace: namespace,
            gateway_up: takes && target.ready && target.base_url.is_some(),
        };
        let metadata = GatewayMetadata {
            namespace: target.gateway.namespace.clone(),
            gateway_name: name,
            deployment_name: target.gateway.name.clone(),
            service_account: target.gateway.service_account.clone(),
        };
        for (endpoint, data) in [
            ("gateway-info", info.encode()),
            ("gateway-metadata", metadata.encode()),
            ("metrics-endpoint", metrics(view, target)),
            ("service-mesh", mesh_labels(target).encode()),
        ] {
            for relation in view.relations_of(endpoint) {
                tell(relation.id, data.clone());
            }
        }
        for relation in view.relations_of("upstream-ingress") {
            let data = upstream(view, target);
            let entry = databags.entry(relation.id).or_default();
            entry.app.extend(data.app);
            entry.unit.extend(data.unit);
        }
        // The key that a request stands for is kept by now.
        for relation in view.relations_of("certificates") {
            if let Some(data) = tls::asked(&validated.tls) {
                databags
                    .entry(relation.id)
                    .or_default()
                    .app
                    .extend(data.app);
            }
        }
    }
    databags
}

/// The answer to a relation that asks for routes; `None` leaves what was said.
fn reply(
    validated: &Validated,
    applied: Option<&Done>,
    id: RelationId,
    state: &IngressState,
) -> Option<Databag> {
    let routed = state.endpoint.starts_with("istio-ingress-route");
    let withdrawn = || {
        if routed {
            RouteReply::withdrawn()
        } else {
            Databag::from([(ingress::REPLY_KEY.to_owned(), String::new())])
        }
    };
    // Refused or gone, or it speaks another dialect now: what was published is not true any more.
    if state.problem.is_some() || state.dialect == Some("kubeflow") {
        return Some(withdrawn());
    }
    let done = applied?;
    if !done.served.contains(&id.0) {
        return Some(withdrawn());
    }
    let target = validated.target.as_ref()?;
    if routed {
        let reply = RouteReply {
            external_host: target.host()?.to_owned(),
            tls_enabled: target.base_url.as_ref()?.starts_with("https://"),
        };
        return Some(reply.encode());
    }
    let url = url(target, validated, id)?;
    Some(TraefikReply { url }.encode())
}

/// The URL of a relation's first route; `None` while the gateway has no address, and then what was
/// published stays.
pub(crate) fn url(target: &Target, validated: &Validated, id: RelationId) -> Option<String> {
    let route = validated
        .routes
        .iter()
        .find(|route| route.relation == id.0)?;
    let base = target.base_url.as_ref()?;
    let path = match &route.matches.first()?.path {
        Path::Regex(pattern) => pattern.literal(),
        other => other.beginning(),
    };
    match route.hosts.first() {
        None => Some(format!("{base}{path}")),
        Some(host) => {
            let (scheme, rest) = base.split_once("://")?;
            let authority = rest.split('/').next()?;
            let port = authority.rsplit_once(':').map(|(_, port)| port);
            let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            Some(format!("{scheme}://{host}{port}{path}"))
        }
    }
}

/// The versions of serialized-data-interface, which come first and depend on nothing.
pub(crate) fn versions(view: &ModelView) -> BTreeMap<RelationId, LocalData> {
    let endpoints = [
        ("ingress", ingress::VERSIONS),
        ("ingress-unauthenticated", ingress::VERSIONS),
        ("ingress-auth", ingress_auth::VERSIONS),
    ];
    let mut databags = BTreeMap::new();
    for (endpoint, versions) in endpoints {
        for relation in view.relations_of(endpoint) {
            let data = LocalData {
                app: sdi::versions(versions),
                unit: Databag::new(),
            };
            databags.insert(relation.id, data);
        }
    }
    databags
}

/// What the control plane's charm is to make an extension provider of.
fn authorizer(validated: &Validated) -> Databag {
    let gate = validated.auth.gate.as_ref();
    let Some(authorizer) = gate.and_then(|gate| gate.authorizer.as_ref()) else {
        return IngressConfig::nobody();
    };
    let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect();
    let downstream = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    IngressConfig {
        service: authorizer.host(),
        port: authorizer.port,
        grpc: false,
        include_headers_in_check: list(&authorizer.request_headers),
        headers_to_upstream_on_allow: list(&authorizer.identity_headers),
        headers_to_downstream_on_allow: downstream(&["set-cookie"]),
        headers_to_downstream_on_deny: downstream(&["content-type", "set-cookie"]),
    }
    .encode()
}

/// The labels by which pods become part of the mesh.
fn mesh_labels(target: &Target) -> MeshLabels {
    let mut labels = BTreeMap::new();
    let mut put = |key: &str, value: &str| labels.insert(key.to_owned(), value.to_owned());
    if target.plane.ambient {
        put("istio.io/dataplane-mode", "ambient");
    } else {
        put("sidecar.istio.io/inject", "true");
        let revision = target.plane.revision.label();
        if revision != "default" {
            put("istio.io/rev", revision);
        }
    }
    MeshLabels { labels }
}

fn metrics(view: &ModelView, target: &Target) -> Databag {
    let (port, path) = METRICS;
    let targets = target.addresses.iter().map(|ip| {
        if ip.contains(':') {
            format!("[{ip}]:{port}")
        } else {
            format!("{ip}:{port}")
        }
    });
    let context = &view.context;
    ScrapeJobs {
        metadata: ScrapeMetadata {
            model: context.model_name.to_string(),
            model_uuid: context.model_uuid.to_string(),
            application: context.app.to_string(),
            unit: context.unit.to_string(),
            charm_name: CHARM.to_owned(),
        },
        jobs: vec![ScrapeJob {
            metrics_path: path.to_owned(),
            static_configs: vec![StaticConfig {
                targets: targets.collect(),
            }],
        }],
        alert_rules: serde_json::Value::Null,
    }
    .encode()
}

/// What an ingress in front of this one is asked for: the gateway, with all its paths.
fn upstream(view: &ModelView, target: &Target) -> LocalData {
    let Some(service) = &target.gateway.service else {
        return LocalData::default();
    };
    let unit = UnitAddress {
        host: format!(
            "{}.{}.svc.cluster.local",
            service.name, target.gateway.namespace
        ),
        ip: service.cluster_ip.clone(),
    };
    let ingress = TraefikIngress {
        model: view.context.model_name.to_string(),
        name: view.context.app.to_string(),
        port: target.port,
        strip_prefix: true,
        redirect_https: false,
        scheme: relations::Scheme::Http,
        units: Vec::new(),
    };
    LocalData {
        app: ingress.encode(),
        unit: unit.encode(),
    }
}
