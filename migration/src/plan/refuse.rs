//! Why a migration does not begin. Everything here is decided before the first write.

use std::fmt;

use jiff::SignedDuration;
use kube_apply::Object;
use mesh::discovery::{ControlPlane, Owner};
use serde::Serialize;

use super::split::{Pilot, serves};
use super::{Request, Strategy};
use crate::inventory::{Snapshot, Source};
use crate::webhooks;

/// A reason, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Short name, for programs.
    pub code: &'static str,
    /// Why.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.why, self.code, self.remedy)
    }
}

fn refusal(code: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> Refusal {
    Refusal {
        code,
        why: why.into(),
        remedy: remedy.into(),
    }
}

/// Whether this is the control plane that the request means.
pub(super) fn is_source(plane: &ControlPlane, request: &Request) -> bool {
    plane.namespace == request.from && !is_target(plane, request)
}

/// Whether this is the control plane that is to be: a migration that was begun may have made it.
fn is_target(plane: &ControlPlane, request: &Request) -> bool {
    request.target.as_ref().is_some_and(|target| {
        plane.namespace == target.namespace && plane.revision.label() == target.revision
    })
}

/// All reasons.
pub(super) fn refusals(
    snapshot: &Snapshot,
    request: &Request,
    planes: &[ControlPlane],
) -> Vec<Refusal> {
    let mut found = Vec::new();
    rights(snapshot, &mut found);
    let sources: Vec<&ControlPlane> = planes.iter().filter(|p| is_source(p, request)).collect();
    let [plane] = sources.as_slice() else {
        found.push(if sources.is_empty() {
            let known: Vec<String> = planes.iter().map(ControlPlane::reference).collect();
            let remedy = format!("name the namespace of one of: {}", known.join(", "));
            refusal(
                "no-source",
                format!("no istiod in namespace {}", request.from),
                remedy,
            )
        } else {
            refusal(
                "several-sources",
                format!("namespace {} has several istiods", request.from),
                "finish the upgrade that left two of them, then migrate",
            )
        });
        return found;
    };
    strangers(planes, request, &mut found);
    let source = Source::new(snapshot, (*plane).clone());
    owner(plane, request, &mut found);
    if request.target.is_some() {
        trust(snapshot, &source, request, &mut found);
        versions(snapshot, plane, request, &mut found);
        place(plane, request, &mut found);
    }
    pilot(snapshot, request, &mut found);
    injectors(snapshot, &mut found);
    ambient(snapshot, &mut found);
    found
}

/// A hand-over from a charm that is not there would end at once, and leave the real one's routes.
fn pilot(snapshot: &Snapshot, request: &Request, found: &mut Vec<Refusal>) {
    let Some(split) = &request.split else { return };
    let pilot = Pilot::find(snapshot, &request.from, split);
    routes(&pilot, found);
    let from = Some(request.from.as_str());
    let pods = snapshot
        .objects
        .get("apps", "StatefulSet", from, &split.pilot);
    if pods.is_none() && !pilot.is_known() {
        found.push(refusal(
            "no-pilot",
            format!("no application {} in {}", split.pilot, request.from),
            "name the application that routes and authorization are handed over from",
        ));
    } else if !pilot.routes.is_empty() && !pilot.has_gateway() {
        found.push(refusal(
            "no-gateway",
            format!("routes of {} hang on no Gateway of it", split.pilot),
            "which proxies would have to run with them cannot be told: let it write its Gateway first",
        ));
    }
}

/// What a route of the old charm serves is how the integrator's is known to serve the same.
fn routes(pilot: &Pilot<'_>, found: &mut Vec<Refusal>) {
    let unknown = pilot.routes.iter().filter(|route| serves(route).is_empty());
    let unknown: Vec<String> = unknown.map(|route| route.id().to_string()).collect();
    if !unknown.is_empty() {
        found.push(refusal(
            "unknown-route",
            format!("no path and destination in {}", unknown.join(", ")),
            "whether the integrator serves the same cannot be told: take it away, or hand it over by hand first",
        ));
    }
}

fn rights(snapshot: &Snapshot, found: &mut Vec<Refusal>) {
    let denied = snapshot.may_not.iter().map(|access| {
        let group = if access.group.is_empty() {
            String::new()
        } else {
            format!(".{}", access.group)
        };
        format!("{} {}{group}", access.verb, access.resource)
    });
    let missing: Vec<String> = snapshot.unreadable().into_iter().chain(denied).collect();
    if !missing.is_empty() {
        found.push(refusal(
            "missing-rights",
            format!("not permitted to {}", missing.join(", ")),
            "juju trust the application with --scope=cluster, or use a kubeconfig of an administrator",
        ));
    }
}

fn strangers(planes: &[ControlPlane], request: &Request, found: &mut Vec<Refusal>) {
    let others: Vec<String> = planes
        .iter()
        .filter(|plane| !is_source(plane, request) && !is_target(plane, request))
        .map(|plane| format!("{} ({})", plane.reference(), plane.owner))
        .collect();
    if !others.is_empty() {
        found.push(refusal(
            "foreign-control-plane",
            format!("besides the one in {} there is {}", request.from, others.join(", ")),
            "which one workloads belong to would be a guess: move their workloads and remove it first",
        ));
    }
}

fn owner(plane: &ControlPlane, request: &Request, found: &mut Vec<Refusal>) {
    if plane.owner == Owner::Unknown && !request.accept_unknown_owner {
        found.push(refusal(
            "unknown-owner",
            format!("nothing tells who installed istiod in {}", plane.namespace),
            "whoever did may write it again: stop that, then allow an unknown owner",
        ));
    }
}

fn trust(snapshot: &Snapshot, source: &Source<'_>, request: &Request, found: &mut Vec<Refusal>) {
    let external = ["EXTERNAL_CA", "PILOT_CERT_PROVIDER"]
        .into_iter()
        .find_map(|name| {
            let value = source.env(name)?;
            let own = value.is_empty() || (name == "PILOT_CERT_PROVIDER" && value == "istiod");
            (!own).then(|| format!("{name}={value}"))
        });
    let Some(root) = snapshot.root(&request.from) else {
        let why = external.map_or_else(
            || format!("namespace {} holds no CA of istiod", request.from),
            |setting| format!("certificates come from an external CA ({setting})"),
        );
        found.push(refusal(
            "external-ca",
            why,
            "set the new control plane up with the same external CA, then migrate with the window strategy of your CA",
        ));
        return;
    };
    if let Some(setting) = external {
        found.push(refusal(
            "external-ca",
            format!("certificates come from an external CA ({setting})"),
            "carrying the Secret over is not enough: configure the new control plane for that CA by hand",
        ));
    }
    let life = root.not_after.duration_since(root.not_before);
    let left = root.not_after.duration_since(snapshot.at);
    // istiod renews a self-signed root by itself in the last fifth of its life.
    if left < life / 5 || left < SignedDuration::from_hours(24 * 30) {
        found.push(refusal(
            "root-near-expiry",
            format!("the root of {} ends on {}", root.secret, root.not_after),
            "two istiods would renew it apart: rotate the root first",
        ));
    }
    let other = request.target.as_ref().and_then(|target| {
        (target.namespace != request.from).then(|| snapshot.root(&target.namespace))?
    });
    if let Some(other) = other.filter(|other| other.fingerprint != root.fingerprint) {
        found.push(refusal(
            "another-root",
            format!("namespace {} holds another CA already", other.namespace),
            format!(
                "delete Secret {}/{} if nobody uses it",
                other.namespace, other.secret
            ),
        ));
    }
}

/// Major and minor of a version.
fn minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn versions(
    snapshot: &Snapshot,
    plane: &ControlPlane,
    request: &Request,
    found: &mut Vec<Refusal>,
) {
    let Some(target) = &request.target else {
        return;
    };
    let Some(to) = minor(&target.version) else {
        return;
    };
    let newer: Vec<String> = snapshot
        .pods
        .iter()
        .filter_map(|pod| Some((pod, minor(pod.version.as_deref()?)?)))
        .filter(|(_, version)| *version > to)
        .map(|(pod, _)| format!("{}/{}", pod.namespace, pod.name))
        .take(3)
        .collect();
    if !newer.is_empty() {
        found.push(refusal(
            "newer-data-plane",
            format!(
                "proxies are newer than {}: {}",
                target.version,
                newer.join(", ")
            ),
            "a control plane does not serve newer proxies: choose a release that is not older",
        ));
    }
    let from = plane.version.as_deref().and_then(minor);
    if from.is_some_and(|from| from != to) {
        found.push(refusal(
            "another-minor",
            format!(
                "istiod is {}, the target {}",
                plane.version.as_deref().unwrap_or_default(),
                target.version
            ),
            "move with the release that runs, then upgrade: a move and an upgrade at once cannot be told apart when they fail",
        ));
    }
}

fn place(plane: &ControlPlane, request: &Request, found: &mut Vec<Refusal>) {
    let Some(target) = &request.target else {
        return;
    };
    if request.strategy == Strategy::ZeroDowntime && plane.revision.label() == target.revision {
        found.push(refusal(
            "same-revision",
            format!("both control planes would be revision {}", target.revision),
            "two istiods of one revision fight over webhooks and roots: give the new one another revision, or use the window strategy",
        ));
    }
    if request.strategy == Strategy::Window && plane.namespace == target.namespace {
        found.push(refusal(
            "same-namespace",
            "the window strategy moves to another namespace",
            "use the zero-downtime strategy for another revision in the same one",
        ));
    }
}

fn injectors(snapshot: &Snapshot, found: &mut Vec<Refusal>) {
    let list = snapshot
        .objects
        .list(
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
        )
        .filter(|configuration| webhooks::is_injector(configuration));
    let injecting: Vec<&Object> = list.collect();
    let several = webhooks::injectors(injecting, &[]);
    if let Some((permutation, injectors)) = several.iter().find(|(_, i)| i.len() > 1) {
        found.push(refusal(
            "double-injection",
            format!("{injectors:?} inject the same pods ({permutation:?})"),
            "park the injector that should not: both its selectors must match nothing",
        ));
    }
}

fn ambient(snapshot: &Snapshot, found: &mut Vec<Refusal>) {
    let ztunnel = snapshot
        .objects
        .list("apps", "DaemonSet")
        .find(|set| set.name() == "ztunnel" || set.label("app") == Some("ztunnel"));
    if let Some(ztunnel) = ztunnel {
        found.push(refusal(
            "ambient",
            format!("{} serves an ambient mesh", ztunnel.id()),
            "node proxies cannot be moved namespace by namespace: only sidecar meshes are migrated",
        ));
    }
}
