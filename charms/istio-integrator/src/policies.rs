//! Who may call which workloads: the gateway, whose routes lead there, and whom related applications
//! let in. Pure.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::CustomObject as _;
use juju_charm::{ModelView, Problem, RelationView};
use mesh::name::check_label;
use mesh::policies::{Endpoint, Pods, allow, deny_by_default, principal};
use mesh::routes::{Route, short_hash};
use relations::service_mesh::TargetType;
use relations::{CrossModelApp, MeshPolicies, MeshPolicy};
use serde_json::Value;

use crate::ingress::{is_foreign, remote};
use crate::observe::{APP_LABEL, Names, View};
use crate::target::Target;

/// A permission that a related application asked for, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The relation that asks for it.
    pub relation: u32,
    /// Namespace and account of who may call.
    pub source: (String, String),
    /// Who may be called.
    pub pods: Pods,
    /// What may be called.
    pub endpoints: Vec<Endpoint>,
}

/// The permissions asked for over `service-mesh`, and what is wrong with the others.
pub fn permissions(
    view: &ModelView,
    cluster: &View,
    problems: &mut Vec<Problem>,
) -> Vec<Permission> {
    let aliases = aliases(view, cluster);
    let mut permissions = Vec::new();
    for relation in view.relations_of("service-mesh") {
        match asked(view, relation, &aliases) {
            Ok(asked) => permissions.extend(asked),
            Err(problem) => problems.push(Problem::blocked(format!(
                "service-mesh of {}: {}",
                remote(relation),
                problem.message
            ))),
        }
    }
    permissions
}

/// What applications of other models are called there. One of the own model has its name from Juju.
fn aliases(view: &ModelView, cluster: &View) -> BTreeMap<String, CrossModelApp> {
    let own = view.context.model_name.as_str();
    let foreign = |app: &str, says: &str| says != own && is_foreign(app, own, says, cluster);
    let known = view
        .relations_of("provide-cmr-mesh")
        .filter_map(|relation| {
            let app = CrossModelApp::decode(&relation.remote_app_data)
                .ok()
                .flatten()?;
            Some((remote(relation), app))
        })
        .filter(|(name, app)| foreign(name, &app.juju_model_name));
    known.collect()
}

fn asked(
    view: &ModelView,
    relation: &RelationView,
    aliases: &BTreeMap<String, CrossModelApp>,
) -> Result<Vec<Permission>, Problem> {
    let MeshPolicies(policies) = MeshPolicies::decode(&relation.remote_app_data)
        .map_err(|problem| Problem::blocked(problem.to_string()))?;
    let own = aliases
        .get(&remote(relation))
        .cloned()
        .unwrap_or_else(|| CrossModelApp {
            app_name: remote(relation),
            juju_model_name: view.context.model_name.to_string(),
        });
    policies
        .iter()
        .map(|policy| checked(relation.id.0, policy, &own, aliases))
        .collect()
}

/// An application opens itself only, and nothing that it cannot name.
fn checked(
    relation: u32,
    policy: &MeshPolicy,
    own: &CrossModelApp,
    aliases: &BTreeMap<String, CrossModelApp>,
) -> Result<Permission, Problem> {
    let refuse = |why: String| Err(Problem::blocked(why));
    let source = aliases.get(&policy.source_app_name).map_or_else(
        || {
            (
                policy.source_namespace.clone(),
                policy.source_app_name.clone(),
            )
        },
        |app| (app.juju_model_name.clone(), app.app_name.clone()),
    );
    for text in [&source.0, &source.1, &policy.target_namespace] {
        if let Err(why) = check_label(text) {
            return refuse(format!("{text:?} {why}"));
        }
    }
    let told = [
        policy.target_app_name.as_ref(),
        policy.target_service.as_ref(),
    ];
    let named = policy.target_app_name.as_ref().unwrap_or(&own.app_name);
    if policy.target_namespace != own.juju_model_name || *named != own.app_name {
        let target = told
            .into_iter()
            .flatten()
            .next()
            .map_or("pods", String::as_str);
        return refuse(format!(
            "{}/{target} is not its own",
            policy.target_namespace
        ));
    }
    let mut labels = BTreeMap::from([(APP_LABEL.to_owned(), own.app_name.clone())]);
    for (key, value) in policy.target_selector_labels.iter().flatten() {
        if key == APP_LABEL && *value != own.app_name {
            return refuse(format!("pods of {value} are not its own"));
        }
        if !is_label(key, value) {
            return refuse(format!("{key:?}: {value:?} is no label"));
        }
        labels.insert(key.clone(), value.clone());
    }
    let unit = policy.target_type == TargetType::Unit;
    let mut endpoints = Vec::new();
    for asked in &policy.endpoints {
        let mut texts = asked.paths.iter().chain(&asked.hosts);
        if let Some(odd) = texts.find(|text| !is_pattern(text)) {
            return refuse(format!("{odd:?} is no host or path"));
        }
        // What is about pods is about connections: Istio would not let a condition on requests fit.
        let texts = |texts: &Vec<String>| if unit { Vec::new() } else { texts.clone() };
        let ports = asked.ports.iter().copied().filter(|port| *port != 0);
        let endpoint = Endpoint {
            hosts: texts(&asked.hosts),
            ports: ports.collect(),
            methods: texts(&asked.methods),
            paths: texts(&asked.paths),
        };
        if endpoint == Endpoint::default() {
            return refuse("an endpoint without any condition that can be used".to_owned());
        }
        endpoints.push(endpoint);
    }
    Ok(Permission {
        relation,
        source,
        pods: Pods {
            namespace: policy.target_namespace.clone(),
            labels,
        },
        endpoints,
    })
}

/// A label as Kubernetes takes it: a name with perhaps a domain before it, and a name or nothing.
fn is_label(key: &str, value: &str) -> bool {
    let name = |text: &str| {
        let edge = |c: char| c.is_ascii_alphanumeric();
        text.len() <= 63
            && text.starts_with(edge)
            && text.ends_with(edge)
            && text.chars().all(|c| edge(c) || "-_.".contains(c))
    };
    let (domain, rest) = match key.split_once('/') {
        Some((domain, rest)) => (Some(domain), rest),
        None => (None, key),
    };
    let domain = domain.is_none_or(|domain| mesh::routes::is_host(domain) && !domain.contains('*'));
    domain && name(rest) && (value.is_empty() || name(value))
}

/// A host or path that Istio takes: text with a `*` at an end, or with whole segments `{*}` and, as
/// the last one, `{**}`.
fn is_pattern(text: &str) -> bool {
    let plain = text.chars().all(|c| ('!'..='~').contains(&c));
    if text.is_empty() || text.len() > 1024 || !plain {
        return false;
    }
    let template = text.contains(['{', '}']);
    if !template {
        return true;
    }
    let (head, tail) = text.rsplit_once('/').unwrap_or_default();
    let segment = |part: &str| part == "{*}" || !part.contains(['{', '}', '*']);
    text.starts_with('/') && head.split('/').all(segment) && (tail == "{**}" || segment(tail))
}

/// The policies that the options ask for: the gateway is let in, nobody else is.
pub fn objects(
    view: &ModelView,
    target: &Target,
    cluster: &View,
    routes: &[Route],
    security: &str,
) -> Vec<Value> {
    let model = view.context.model_name.as_str();
    let mode = target.settings.policy_mode;
    let mut policies = Vec::new();
    if target.settings.workload_policies {
        let who = principal(
            &target.plane.trust_domain,
            &target.gateway.namespace,
            &target.gateway.service_account,
        );
        for (pods, ports) in reached(cluster, routes) {
            let endpoint = Endpoint {
                ports,
                ..Endpoint::default()
            };
            let name = name(view, "gateway", &format!("{pods:?}"));
            policies.push(allow(
                &name,
                &pods,
                std::slice::from_ref(&who),
                &[endpoint],
                mode,
            ));
        }
    }
    if target.settings.deny_by_default {
        policies.push(deny_by_default(&name(view, "default", model), model, mode));
    }
    policies
        .iter()
        .map(|policy| policy.to_object_as(security))
        .collect()
}

/// The policies that related applications ask for, each with its relation.
pub fn permitting(
    view: &ModelView,
    target: &Target,
    permissions: &[Permission],
    security: &str,
) -> Vec<(u32, Value)> {
    let policy = |permission: &Permission| {
        let Permission {
            relation,
            source,
            pods,
            endpoints,
        } = permission;
        let who = principal(&target.plane.trust_domain, &source.0, &source.1);
        let name = name(view, "mesh", &format!("{source:?} {pods:?} {endpoints:?}"));
        let mode = target.settings.policy_mode;
        let policy = allow(&name, pods, &[who], endpoints, mode);
        (*relation, policy.to_object_as(security))
    };
    permissions.iter().map(policy).collect()
}

fn name(view: &ModelView, kind: &str, what: &str) -> String {
    let model = view.context.model_name.as_str();
    let app = view.context.app.as_str();
    let names = Names::new(model, view.context.model_uuid.as_str(), app);
    let hash = short_hash(&format!("{} {what}", names.guard));
    format!("{}-{kind}-{hash}", names.app)
}

/// The pods that routes lead to, with the pods' ports.
fn reached(cluster: &View, routes: &[Route]) -> BTreeMap<Pods, BTreeSet<u16>> {
    let mut reached: BTreeMap<Pods, BTreeSet<u16>> = BTreeMap::new();
    for weighted in routes.iter().flat_map(Route::backends) {
        let backend = &weighted.backend;
        let key = (backend.namespace.clone(), backend.service.clone());
        let service = cluster.services.get(&key);
        let selector = service
            .map(|service| service.selector.clone())
            .unwrap_or_default();
        let labels = if selector.is_empty() {
            BTreeMap::from([(APP_LABEL.to_owned(), backend.service.clone())])
        } else {
            selector
        };
        let port = service.and_then(|service| {
            service
                .ports
                .iter()
                .find(|port| port.number == backend.port)?
                .target
        });
        let pods = Pods {
            namespace: backend.namespace.clone(),
            labels,
        };
        reached
            .entry(pods)
            .or_default()
            .insert(port.unwrap_or(backend.port));
    }
    reached
}
