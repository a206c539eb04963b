//! From a snapshot and a request to steps as data. Pure.

mod data;
mod gateways;
mod guard;
mod moving;
mod policies;
mod refresh;
mod refuse;
mod split;
mod switch;
mod target;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use data::{Action, Check, Phase, Place, Plan, Step};
pub(crate) use gateways::NOT_AN_ADDRESS;
pub(crate) use policies::{COPY_OF, KINDS, Meaning, class_of_pods, meaning};
pub use policies::{Class, classify};
pub use refuse::Refusal;
pub(crate) use split::{asks, serves};
pub use target::{Target, TargetError};

use crate::inventory::{Snapshot, Source, control_planes, hexadecimal};
use crate::webhooks::{self, Permutation};

/// How to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Both control planes side by side; nobody loses a request.
    #[default]
    ZeroDowntime,
    /// Gateways off, one control plane after the other, gateways on. Fewer moments, one interruption.
    Window,
}

/// What becomes of the gateway that clients know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayChoice {
    /// It stays what and whose it is.
    #[default]
    Stay,
    /// It is taken from the old gateway charm: the same Service object, the same address.
    KeepAddress,
    /// A second gateway of the new owner stands beside it; DNS moves.
    NewAddress,
}

/// The applications that routes and daemon go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The application that had both, as in `istio-pilot`.
    pub pilot: String,
    /// The gateway's application, as in `istio-ingressgateway`.
    pub gateway: String,
    /// The daemon's application, as in `istio-k8s`.
    pub daemon: String,
    /// The integrator's application, as in `istio-integrator`.
    pub integrator: String,
    /// The authorization application, as in `oidc-gatekeeper`.
    pub authorizer: String,
    /// Applications related to the old one for ingress, where known.
    pub applications: Vec<String>,
}

/// What is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Namespace of the control plane that there is.
    pub from: String,
    /// The control plane that there is to be; none to leave it where it is.
    pub target: Option<Target>,
    /// How.
    pub strategy: Strategy,
    /// The two charms in place of the one; none to leave routes as they are.
    pub split: Option<Split>,
    /// The gateway.
    pub gateway: GatewayChoice,
    /// Workloads that are restarted together.
    pub batch: usize,
    /// Labels of the owner of what there is to be, and its field manager.
    pub owner: Option<NewOwner>,
    /// Take a control plane over though nothing tells who made it.
    pub accept_unknown_owner: bool,
    /// Restart what cannot be restarted without an interruption, too.
    pub accept_interruption: bool,
}

/// Whose the new control plane is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewOwner {
    /// Labels of its objects.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Field manager of its objects.
    pub manager: String,
}

impl Request {
    /// A zero-downtime move out of `from`.
    pub fn moving(from: &str, target: Target) -> Self {
        Self {
            from: from.to_owned(),
            target: Some(target),
            strategy: Strategy::ZeroDowntime,
            split: None,
            gateway: GatewayChoice::Stay,
            batch: 10,
            owner: None,
            accept_unknown_owner: false,
            accept_interruption: false,
        }
    }

    /// Who writes the new control plane.
    pub(crate) fn manager(&self) -> &str {
        let owner = self.owner.as_ref();
        owner.map_or(crate::api::MANAGER, |owner| owner.manager.as_str())
    }
}

/// Plans, or says why not.
///
/// # Errors
/// Everything that makes the move unsafe, all at once.
pub fn plan(snapshot: &Snapshot, request: &Request) -> Result<Plan, Vec<Refusal>> {
    let planes = control_planes(snapshot);
    let refusals = refuse::refusals(snapshot, request, &planes);
    let plane = planes.into_iter().find(|p| refuse::is_source(p, request));
    let Some(plane) = plane.filter(|_| refusals.is_empty()) else {
        return Err(refusals);
    };
    let source = Source::new(snapshot, plane);
    let mut plan = Plan {
        id: identity(snapshot, request),
        strategy: request.strategy,
        from: Place {
            namespace: source.plane.namespace.clone(),
            revision: source.plane.revision.label().to_owned(),
            version: source.plane.version.clone(),
        },
        to: request.target.as_ref().map(|target| Place {
            namespace: target.namespace.clone(),
            revision: target.revision.clone(),
            version: Some(target.version.clone()),
        }),
        manager: request.manager().to_owned(),
        root: snapshot
            .root(&request.from)
            .map(|root| root.fingerprint.clone()),
        injected: injected(snapshot),
        steps: Vec::new(),
        notes: Vec::new(),
        by_hand: Vec::new(),
        backup: backup(snapshot, &source),
    };
    guard::steps(&mut plan, snapshot, &source, request);
    if let Some(target) = &request.target {
        moving::steps(&mut plan, snapshot, &source, request, target);
    }
    if let Some(split) = &request.split {
        split::steps(&mut plan, snapshot, &source, request, split);
    }
    if let Some(target) = &request.target {
        moving::last_steps(&mut plan, snapshot, &source, request, target);
    }
    guard::last_step(&mut plan, snapshot);
    let undo = plan.steps.iter().flat_map(|step| &step.undo);
    let restored = undo.filter_map(|action| match action {
        Action::Restore { object } => Some(object.clone()),
        _ => None,
    });
    plan.backup.extend(restored.collect::<Vec<_>>());
    plan.backup.sort();
    plan.backup.dedup();
    Ok(plan)
}

/// What is written down before anything is changed: every custom object, and all that is changed or
/// deleted. Secrets are not; nothing deletes any.
fn backup(snapshot: &Snapshot, source: &Source<'_>) -> Vec<istio_api::ObjectRef> {
    let mut wanted: Vec<_> = snapshot
        .custom_objects()
        .map(kube_apply::Object::id)
        .collect();
    wanted.extend(source.remains());
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        wanted.extend(
            source
                .webhooks(kind)
                .into_iter()
                .map(kube_apply::Object::id),
        );
    }
    let namespace = Some(source.plane.namespace.as_str());
    let name = source.service_name();
    for (group, kind) in [("", "Service"), ("autoscaling", "HorizontalPodAutoscaler")] {
        let live = snapshot.objects.get(group, kind, namespace, &name);
        wanted.extend(live.map(kube_apply::Object::id));
    }
    wanted.sort();
    wanted.dedup();
    wanted
}

/// The labels that somebody injects today.
fn injected(snapshot: &Snapshot) -> Vec<Permutation> {
    let list = snapshot.objects.list(
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
    );
    let found = webhooks::injectors(list, &[]).into_iter();
    found
        .filter(|(_, injectors)| !injectors.is_empty())
        .map(|(permutation, _)| permutation)
        .collect()
}

/// A short name of this migration: equal for the same request at the same time.
fn identity(snapshot: &Snapshot, request: &Request) -> String {
    let mut hash = Sha256::new();
    hash.update(snapshot.at.to_string());
    hash.update(serde_json::to_vec(request).unwrap_or_default());
    hexadecimal(&hash.finalize()[..5])
}
