//! The findings about an upgrade, from what was read. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use juju_charm::{ModelView, Problem};
use kube_apply::Object;
use mesh::upgrade::admission::Service;
use mesh::upgrade::rights::Right;
use mesh::upgrade::{Code, Finding, Way, admission, certificate, definitions, disruption, finding};
use mesh::upgrade::{rights, skew, version};
use serde_json::Value;

use super::target::Target;
use crate::observe::{Goal, RELEASE, Release, View, inventory};

/// What the findings rest on, besides what every hook reads.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Every definition in the cluster, with its status.
    pub definitions: Vec<Value>,
    /// How many objects there are of each Gateway API kind that has a least bundle, by plural.
    pub used: BTreeMap<String, usize>,
    /// Every disruption budget.
    pub budgets: Vec<Value>,
    /// The Services behind webhooks that have somebody ready.
    pub answered: BTreeSet<Service>,
    /// The mesh's root certificate, where istiod has published it.
    pub root: Option<String>,
    /// Rights that are missing.
    pub missing: Vec<Right>,
}

/// Everything that is to be said about the release going to its target, the gravest first.
pub fn findings(
    view: &ModelView,
    cluster: &View,
    target: &Target,
    release: &Release,
) -> Vec<Finding> {
    let app = view.context.app.to_string();
    let to = release.version.as_str();
    let mut out = Vec::new();
    match (&target.follows, &cluster.goal) {
        (
            Some(from),
            Some(Goal {
                version,
                path,
                unusable,
                free,
            }),
        ) => {
            out.extend(unusable.iter().map(|(resource, why)| {
                let object = format!("resource {resource}");
                let why = why.trim_start_matches([':', ' ']);
                let finding = if path.is_err() {
                    Finding::error(Code::StageUnusable, object, why)
                } else {
                    Finding::warning(Code::StageUnusable, object, why)
                };
                finding.mended_by(format!("juju attach-resource {app} {resource}=FILE"))
            }));
            // On the way each step is a short one; without a way, it is said what is missing.
            if let Err(missing) = path {
                let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
                let why = format!("one step at a time, not attached: {}", missing.join(", "));
                let object = format!("Istio {from} to {version}");
                // Without room for another stage the way is made in two.
                let resource = free.unwrap_or(RELEASE);
                let mend = format!("juju attach-resource {app} {resource}=FILE");
                out.push(Finding::error(Code::MinorsSkipped, object, why).mended_by(mend));
            }
        }
        (Some(from), None) => out.extend(skew::step(from, to, target.way, &app)),
        (None, _) => {}
    }
    let server = view.context.cloud_api_version.as_deref();
    out.extend(skew::kubernetes(to, server));
    if target.way == Way::InPlace && target.follows.is_some() {
        out.extend(proxies(view, cluster, target, to));
    }
    if let Some(facts) = &cluster.facts {
        out.extend(of_facts(view, cluster, facts, target, release));
    }
    finding::sorted(out)
}

fn proxies(view: &ModelView, cluster: &View, target: &Target, to: &str) -> Vec<Finding> {
    let Some(read) = &cluster.proxies else {
        return Vec::new();
    };
    let gateways: BTreeSet<&str> = cluster
        .release
        .iter()
        .flatten()
        .flat_map(|release| &release.control_plane.gateways)
        .map(|gateway| gateway.namespace.as_str())
        .collect();
    let label = target.revision.label();
    let served: Vec<_> = read
        .proxies
        .iter()
        .filter(|proxy| proxy.revision == label)
        .cloned()
        .collect();
    let mut out = skew::proxies(to, &served, |proxy| {
        let namespace = proxy.proxy.split_once('.').map(|(_, namespace)| namespace);
        proxy.kind == "router" && namespace.is_some_and(|n| gateways.contains(n))
    });
    let back = target
        .follows
        .as_deref()
        .is_some_and(|from| version::order(to) < version::order(from));
    if !read.failures.is_empty() {
        let object = finding::few(&read.failures);
        let why = "which proxies it serves is not known";
        let unknown = if back {
            Finding::error(Code::ProxiesUnknown, object, why)
        } else {
            Finding::warning(Code::ProxiesUnknown, object, why)
        };
        let run = format!("juju run {}/leader proxy-status", view.context.app);
        out.push(unknown.mended_by(run));
    }
    out
}

fn of_facts(
    view: &ModelView,
    cluster: &View,
    facts: &Facts,
    target: &Target,
    release: &Release,
) -> Vec<Finding> {
    let Facts {
        definitions: crds,
        used,
        budgets,
        answered,
        root,
        missing,
    } = facts;
    let inventory = inventory(view);
    let values =
        |objects: &[Object]| -> Vec<Value> { objects.iter().map(|o| o.value().clone()).collect() };
    let mutating = values(&cluster.mutating);
    let ours: BTreeSet<&str> = cluster
        .mutating
        .iter()
        .filter(|config| inventory.owns(config))
        .map(Object::name)
        .collect();
    let mut out = definitions::istio(crds, &release.control_plane.crds);
    out.extend(definitions::gateway_api(&release.version, crds, used));
    out.extend(admission::overlapping(&mutating, |name| {
        ours.contains(name)
    }));
    let mut webhooks = mutating;
    webhooks.extend(values(&cluster.validating));
    out.extend(admission::dead(&webhooks, answered));
    let namespace = cluster.namespace.as_str();
    let mut namespaces = vec![namespace];
    namespaces.extend(
        release
            .control_plane
            .gateways
            .iter()
            .map(|g| g.namespace.as_str()),
    );
    out.extend(disruption::deadlocks(budgets, &namespaces));
    if let Some(root) = root {
        let object = format!("ConfigMap {namespace}/istio-ca-root-cert");
        out.extend(certificate::root(root, seconds(view.now), &object));
    }
    out.extend(rights::missing(missing, view.context.app.as_str()));
    if target.others.is_empty() {
        return out;
    }
    // Two revisions of one application overlap for a moment of each promotion.
    out.retain(|f| f.code != Code::InjectorOverlap || f.blocks());
    out
}

/// The first finding that keeps the upgrade from starting, as a status.
pub fn refusal(findings: &[Finding]) -> Option<Problem> {
    let blocking: Vec<&Finding> = findings.iter().filter(|f| f.blocks()).collect();
    let first = blocking.first()?;
    let more = match blocking.len() {
        1 => String::new(),
        several => format!(" (+{} more, see precheck)", several - 1),
    };
    let message = format!("{}: {}{more}", first.object, first.why);
    Some(Problem::blocked(message).with_hint(first.mend.clone()))
}

fn seconds(now: SystemTime) -> i64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
