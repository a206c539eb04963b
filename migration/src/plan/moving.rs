//! Another control plane in the place of the one that there is, in either strategy.

use istio_api::ObjectRef;
use kube_apply::Object;
use mesh::control_plane::webhooks::DEFAULT_VALIDATOR;
use serde_json::{Value, json};

use super::data::{Action, Check, Phase, Plan, Step};
use super::guard::id;
use super::target::{Target, armed, is_webhook};
use super::{Request, Strategy, gateways, policies, refresh, switch};
use crate::inventory::{CA_SECRETS, Snapshot, Source, Workload, is_lock, workloads};

/// Up to where the old control plane serves nobody.
pub(super) fn steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
) {
    let (all, by_hand) = workloads(snapshot);
    let window = request.strategy == Strategy::Window;
    for line in by_hand {
        plan.by_hand.push(line);
    }
    notes(plan, snapshot, source, target);
    plan.steps.push(trust(snapshot, request, target));
    if window {
        plan.steps.push(close(&all));
        plan.steps
            .push(scale_down(source, "stop-old", Phase::Switch, snapshot));
    }
    if window {
        // Nobody is served: what is copied first holds from the first sidecar on.
        policies::steps(plan, snapshot, source, target, &Vec::new());
        plan.steps.retain(|step| step.id != "root");
    }
    let definitions = definitions(snapshot, request, target);
    if !definitions.is_empty() {
        plan.steps.push(definitions);
    }
    plan.steps.push(control_plane(snapshot, request, target));
    if window {
        switch::steps(plan, snapshot, source, request, target);
        // The new injectors answer the default already: the old ones have to point there by then.
        let after = plan.steps.iter().position(|step| step.id == "injectors");
        let at = after.map_or(plan.steps.len(), |at| at + 1);
        plan.steps.insert(at, webhooks(snapshot, request, target));
        plan.steps.push(validators(source));
        plan.steps.push(bridge(snapshot, source, target));
    } else {
        plan.steps.push(webhooks(snapshot, request, target));
    }
    let first = plan.steps.len();
    let mut late = refresh::steps(plan, snapshot, source, request, target, &all);
    late.extend(gateways::steps(
        plan, snapshot, source, request, target, &all,
    ));
    if window {
        back_at_the_end(plan, first);
        plan.steps.push(open(&all));
        return;
    }
    policies::steps(plan, snapshot, source, target, &late);
    switch::steps(plan, snapshot, source, request, target);
    refresh::restore_labels(plan, snapshot, source, target);
    plan.steps.push(validators(source));
    plan.steps.push(bridge(snapshot, source, target));
    plan.steps
        .push(scale_down(source, "drain", Phase::Finish, snapshot));
    plan.steps
        .extend(policies::retire_step(snapshot, source, target, &late));
}

/// On the way back through a window, sidecars are restarted when the old istiod runs again, and not
/// where they were restarted on the way there: it was off then.
fn back_at_the_end(plan: &mut Plan, first: usize) {
    let (mut undo, mut undone) = (Vec::new(), Vec::new());
    for step in &mut plan.steps[first..] {
        undo.append(&mut step.undo);
        undone.append(&mut step.undone);
    }
    if let Some(close) = plan.steps.iter_mut().find(|step| step.id == "close") {
        undo.append(&mut close.undo);
        undone.append(&mut close.undone);
        (close.undo, close.undone) = (undo, undone);
    }
}

/// The end of the old control plane.
pub(super) fn last_steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
) {
    if request.strategy == Strategy::Window {
        plan.steps
            .extend(policies::retire_step(snapshot, source, target, &Vec::new()));
    }
    plan.steps.push(remove(source, target));
    plan.steps.push(unbridge(plan, source));
    let mut step = Step::new(
        "settle",
        Phase::Finish,
        "give the new control plane its last form",
        "The old name goes out of its certificate, and root renewal is its own again.",
    );
    step.forward_only = true;
    for object in Target::dressed(&target.last, request) {
        if !is_webhook(&object) && id(&object).kind != "CustomResourceDefinition" {
            step.effect.push(apply(object, request));
        }
    }
    step.after.push(Check::RolledOut {
        object: target.deployment(),
    });
    step.after.push(Check::OneInjector);
    plan.steps.push(step);
}

fn notes(plan: &mut Plan, snapshot: &Snapshot, source: &Source<'_>, target: &Target) {
    let namespace = &source.plane.namespace;
    for policy in snapshot.objects.list("networking.k8s.io", "NetworkPolicy") {
        if policy.namespace() != Some(namespace)
            && policy.value().to_string().contains(namespace.as_str())
        {
            plan.notes.push(format!(
                "{} names namespace {namespace}: let it reach {} as well (ports 15012 and 15017)",
                policy.id(),
                target.namespace
            ));
        }
    }
    let own = &snapshot.objects;
    if let Some(service) = own.get("", "Service", Some(namespace), "istiod")
        && service.pointer("/spec/type") == Some(&"LoadBalancer".into())
    {
        plan.notes.push(format!(
            "{} is a load balancer: other clusters may use it",
            service.id()
        ));
    }
}

fn apply(object: Value, request: &Request) -> Action {
    Action::Apply {
        object,
        manager: request.manager().to_owned(),
    }
}

fn trust(snapshot: &Snapshot, request: &Request, target: &Target) -> Step {
    let mut step = Step::new(
        "ca",
        Phase::Prepare,
        "carry the certificate authority over",
        "An istiod without it would make a root of its own, and every connection between old and new \
         sidecars would fail. Its key is copied by the API alone and shown nowhere.",
    );
    let namespace = ObjectRef::cluster("v1", "Namespace", &target.namespace);
    if snapshot.objects.find(&namespace).is_none() {
        step.effect.push(Action::Apply {
            object: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target.namespace}}),
            manager: crate::api::MANAGER.to_owned(),
        });
    }
    if target.namespace != request.from {
        let copied = CA_SECRETS.iter().filter(|name| {
            snapshot
                .roots
                .iter()
                .any(|r| r.namespace == request.from && r.secret == **name)
        });
        for name in copied {
            step.effect.push(Action::CopySecret {
                name: (*name).to_owned(),
                from: request.from.clone(),
                to: target.namespace.clone(),
            });
            let there = snapshot
                .roots
                .iter()
                .any(|r| r.namespace == target.namespace && r.secret == *name);
            if !there {
                step.undo.push(Action::DeleteCopy {
                    name: (*name).to_owned(),
                    from: request.from.clone(),
                    to: target.namespace.clone(),
                });
            }
        }
    }
    if let Some(root) = snapshot.root(&request.from) {
        step.after.push(Check::Root {
            namespace: target.namespace.clone(),
            fingerprint: root.fingerprint.clone(),
        });
    }
    step
}

/// Definitions that the cluster lacks. Those that it has stay as they are: they are the same minor's.
fn definitions(snapshot: &Snapshot, request: &Request, target: &Target) -> Step {
    let mut step = Step::new(
        "definitions",
        Phase::Prepare,
        "add the definitions that the cluster lacks",
        "A kind that istiod knows and the cluster does not serve is not read.",
    );
    for object in Target::dressed(&target.last, request) {
        let id = id(&object);
        if id.kind != "CustomResourceDefinition" || snapshot.objects.find(&id).is_some() {
            continue;
        }
        step.effect.push(apply(object, request));
        step.after.push(Check::Exists { object: id });
    }
    step
}

fn control_plane(snapshot: &Snapshot, request: &Request, target: &Target) -> Step {
    let mut step = Step::new(
        "control-plane",
        Phase::SideBySide,
        "start the new istiod beside the old one",
        "It reads the old root namespace and answers to the old name as well; nobody uses it yet.",
    );
    if let Some(root) = snapshot.root(&request.from) {
        // Without it, istiod makes a root of its own the moment it starts.
        step.before.push(Check::Root {
            namespace: target.namespace.clone(),
            fingerprint: root.fingerprint.clone(),
        });
    }
    for object in Target::dressed(&target.transitional, request) {
        let id = id(&object);
        if is_webhook(&object) || id.kind == "CustomResourceDefinition" {
            continue;
        }
        if snapshot.objects.find(&id).is_none() {
            step.undo.insert(0, Action::Delete { object: id.clone() });
            step.undone.push(Check::Absent { object: id });
        } else {
            step.undo.insert(0, Action::Restore { object: id });
        }
        step.effect.push(apply(object, request));
    }
    step.after.push(Check::RolledOut {
        object: target.deployment(),
    });
    step.after.push(Check::SameTrust {
        namespace: target.namespace.clone(),
        other: request.from.clone(),
    });
    step
}

fn webhooks(snapshot: &Snapshot, request: &Request, target: &Target) -> Step {
    let mut step = Step::new(
        "webhooks",
        Phase::SideBySide,
        "let the new istiod inject and validate its own revision",
        "Only what names the new revision is concerned, and nothing does yet.",
    );
    let bundle = snapshot.ca_bundle(&request.from);
    for object in Target::dressed(&target.transitional, request) {
        let id = id(&object);
        if !is_webhook(&object) || id.name == DEFAULT_VALIDATOR || is_tag(&object) {
            continue;
        }
        let live = snapshot.objects.find(&id);
        step.effect
            .push(apply(armed(object, bundle.as_deref(), live), request));
        step.after.push(Check::Armed { object: id.clone() });
        if live.is_none() {
            step.undo.insert(0, Action::Delete { object: id.clone() });
            step.undone.push(Check::Absent { object: id });
        }
    }
    step.after.push(Check::OneInjector);
    if request.strategy == Strategy::ZeroDowntime {
        step.after.push(Check::Injects {
            namespace: target.namespace.clone(),
            labels: [("istio.io/rev".to_owned(), target.revision.clone())].into(),
            istiod: format!("{}.{}.svc", target.service(), target.namespace),
        });
    }
    step
}

fn is_tag(object: &Value) -> bool {
    object["metadata"]["labels"]["istio.io/tag"].is_string()
}

fn validators(source: &Source<'_>) -> Step {
    let mut step = Step::new(
        "validators-retire",
        Phase::Finish,
        "delete the old validator",
        "It names a Service that is about to be a bridge, and the API server asks no bridge: it would \
         refuse what it should check.",
    );
    let all = source.webhooks("ValidatingWebhookConfiguration");
    for live in all.into_iter().filter(|v| v.name() != DEFAULT_VALIDATOR) {
        deleted(&mut step, live);
    }
    step.after.push(Check::OneInjector);
    step
}

fn deleted(step: &mut Step, live: &Object) {
    let object = live.id();
    step.effect.push(Action::Delete {
        object: object.clone(),
    });
    step.after.push(Check::Absent {
        object: object.clone(),
    });
    step.undo.push(Action::Restore {
        object: object.clone(),
    });
    step.undone.push(Check::Exists { object });
}

fn service(source: &Source<'_>) -> ObjectRef {
    ObjectRef::namespaced(
        "v1",
        "Service",
        &source.plane.namespace,
        &source.service_name(),
    )
}

fn bridge(snapshot: &Snapshot, source: &Source<'_>, target: &Target) -> Step {
    let mut step = Step::new(
        "bridge",
        Phase::Finish,
        "make the old name of istiod lead to the new one",
        "Proxies that were not restarted reconnect by themselves; the new istiod's certificate has the \
         old name.",
    );
    let object = service(source);
    let name = format!(
        "{}.{}.svc.cluster.local",
        target.service(),
        target.namespace
    );
    step.effect.push(Action::Patch {
        object: object.clone(),
        patch: json!({"spec": {
            "type": "ExternalName", "externalName": name,
            "clusterIP": null, "clusterIPs": null, "selector": null,
        }}),
    });
    let is = |pointer: &str, equals: Value| Check::Field {
        object: object.clone(),
        pointer: pointer.to_owned(),
        equals,
    };
    step.after.push(is("/spec/externalName", name.into()));
    step.undo.push(Action::Restore {
        object: object.clone(),
    });
    let kind = snapshot
        .objects
        .find(&object)
        .and_then(|live| live.pointer("/spec/type"));
    let kind = kind.cloned().unwrap_or_else(|| "ClusterIP".into());
    step.undone.push(is("/spec/type", kind));
    step
}

/// The old istiod without pods; its autoscaler first, or it would bring them back.
fn scale_down(source: &Source<'_>, name: &str, phase: Phase, snapshot: &Snapshot) -> Step {
    let mut step = Step::new(
        name,
        phase,
        "stop the old istiod",
        "Whoever is still connected to it reconnects to the new one; it can be started again.",
    );
    let namespace = Some(source.plane.namespace.as_str());
    let istiod = source.service_name();
    let scaler = snapshot
        .objects
        .get("autoscaling", "HorizontalPodAutoscaler", namespace, &istiod);
    if let Some(deployment) = source.istiod() {
        let object = deployment.id();
        let scale = |replicas: Value| Action::Patch {
            object: object.clone(),
            patch: json!({"spec": {"replicas": replicas}}),
        };
        let replicas = deployment
            .pointer("/spec/replicas")
            .cloned()
            .unwrap_or_else(|| 1.into());
        if let Some(scaler) = scaler {
            deleted(&mut step, scaler);
        }
        step.effect.push(scale(0.into()));
        step.undo.insert(0, scale(replicas));
        step.undone.push(Check::RolledOut {
            object: object.clone(),
        });
        step.after.push(Check::Field {
            object,
            pointer: "/spec/replicas".to_owned(),
            equals: 0.into(),
        });
    }
    step.after.push(Check::Drained {
        namespace: source.plane.namespace.clone(),
        revision: source.plane.revision.label().to_owned(),
    });
    step
}

/// Gateways of the window strategy: off before anything is unprotected, on when all is in place.
fn close(all: &[Workload]) -> Step {
    let mut step = Step::new(
        "close",
        Phase::Switch,
        "stop the gateways",
        "From here until they are started again nobody outside is served, and nobody unauthorized either.",
    );
    for workload in all.iter().filter(|w| w.router && w.id.kind == "Deployment") {
        step.effect.push(scale(workload, 0));
        step.undo.push(scale(workload, workload.replicas));
        step.after.push(Check::Field {
            object: workload.id.clone(),
            pointer: "/spec/replicas".to_owned(),
            equals: 0.into(),
        });
        step.undone.push(Check::RolledOut {
            object: workload.id.clone(),
        });
    }
    step
}

fn open(all: &[Workload]) -> Step {
    let mut step = Step::new(
        "open",
        Phase::Switch,
        "start the gateways",
        "Policies, injectors and sidecars are the new control plane's.",
    );
    for workload in all.iter().filter(|w| w.router && w.id.kind == "Deployment") {
        step.effect.push(scale(workload, workload.replicas));
        step.undo.push(scale(workload, 0));
        step.after.push(Check::RolledOut {
            object: workload.id.clone(),
        });
    }
    step
}

fn scale(workload: &Workload, replicas: u64) -> Action {
    Action::Patch {
        object: workload.id.clone(),
        patch: json!({"spec": {"replicas": replicas}}),
    }
}

fn remove(source: &Source<'_>, target: &Target) -> Step {
    let mut step = Step::new(
        "remove-old",
        Phase::Finish,
        "delete what is left of the old control plane",
        "Nobody has used it since the drain. Its CA's Secret and the bridge stay.",
    );
    step.forward_only = true;
    step.before.push(Check::OneInjector);
    step.before.push(Check::Drained {
        namespace: source.plane.namespace.clone(),
        revision: source.plane.revision.label().to_owned(),
    });
    // In the same namespace, the new control plane has some of them under the same name.
    let kept = |object: &ObjectRef| {
        let mut new = target.last.iter().map(id);
        new.any(|new| new.same_object(object))
            || (target.namespace == source.plane.namespace && is_lock(&object.name))
    };
    for object in source.remains().into_iter().filter(|o| !kept(o)) {
        step.effect.push(Action::Delete {
            object: object.clone(),
        });
        step.after.push(Check::Absent { object });
    }
    step
}

fn unbridge(plan: &Plan, source: &Source<'_>) -> Step {
    let mut step = Step::new(
        "unreferenced",
        Phase::Finish,
        "wait until no pod names the old istiod, and take the bridge away",
        "A pod that names it would lose its control plane.",
    );
    step.forward_only = true;
    let host = format!("{}.{}.svc", source.service_name(), source.plane.namespace);
    step.before.push(Check::Unreferenced { host });
    let object = service(source);
    step.effect.push(Action::Delete {
        object: object.clone(),
    });
    step.after.push(Check::Absent { object });
    for line in &plan.by_hand {
        step.commands.push(format!("# restart by hand: {line}"));
    }
    step
}
