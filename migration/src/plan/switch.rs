//! Who injects and who validates, from the old istiod to the new one, never by two and never by none.
//!
//! The old configurations are pointed at the new istiod in one write each. Only then come the new
//! configurations, which point at the same istiod, and the old ones go.

use kube_apply::Object;
use mesh::control_plane::webhooks::DEFAULT_VALIDATOR;
use serde_json::{Value, json};

use super::Request;
use super::data::{Action, Check, Phase, Plan, Step};
use super::guard::id;
use super::target::{Target, armed, is_webhook};
use crate::api::fresh;
use crate::inventory::{Snapshot, Source};
use crate::webhooks;

/// Points the old configurations at the new istiod, and puts the new ones beside them.
pub(super) fn steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
) {
    let injectors = source.webhooks("MutatingWebhookConfiguration");
    let active: Vec<&Object> = injectors
        .iter()
        .copied()
        .filter(|o| webhooks::is_active(o))
        .collect();
    plan.steps.push(repoint(
        "injectors",
        "point the old injectors at the new istiod",
        "One write for each: before it, pods get the old sidecar, after it the new one, and at no \
         time none or both.",
        &active,
        source,
        target,
    ));
    plan.steps.push(tags(snapshot, request, target));
    // One that the new control plane has under the same name is its own by then.
    let last: Vec<_> = target.last.iter().map(id).collect();
    let old = |live: &&Object| !last.iter().any(|new| new.same_object(&live.id()));
    let injectors: Vec<&Object> = injectors.into_iter().filter(old).collect();
    plan.steps.push(retire(&injectors, &active, source, target));
    let validators = source.webhooks("ValidatingWebhookConfiguration");
    let default: Vec<&Object> = validators
        .into_iter()
        .filter(|validator| validator.name() == DEFAULT_VALIDATOR)
        .collect();
    if !default.is_empty() {
        plan.steps.push(repoint(
            "validator",
            "point the default validator at the new istiod",
            "An invalid object is refused before and after; failurePolicy stays as it is.",
            &default,
            source,
            target,
        ));
    }
}

fn repoint(
    name: &str,
    title: &str,
    why: &str,
    configurations: &[&Object],
    source: &Source<'_>,
    target: &Target,
) -> Step {
    let mut step = Step::new(name, Phase::Switch, title, why);
    step.before.push(Check::RolledOut {
        object: target.deployment(),
    });
    for live in configurations {
        let object = live.id();
        step.effect.push(Action::Patch {
            object: object.clone(),
            patch: content(&pointed(live, source, target)),
        });
        step.undo.push(Action::Patch {
            object: object.clone(),
            patch: content(live.value()),
        });
        step.after.push(service_is(live, &target.namespace));
        step.undone.push(service_is(live, &source.plane.namespace));
    }
    step.after.push(Check::OneInjector);
    step.undone.push(Check::OneInjector);
    step
}

fn service_is(live: &Object, namespace: &str) -> Check {
    Check::Field {
        object: live.id(),
        pointer: "/webhooks/0/clientConfig/service/namespace".to_owned(),
        equals: namespace.into(),
    }
}

/// The part of a configuration that a repointing changes.
fn content(configuration: &Value) -> Value {
    json!({
        "metadata": {"labels": {"istio.io/rev": configuration["metadata"]["labels"]["istio.io/rev"]}},
        "webhooks": configuration["webhooks"],
    })
}

/// The configuration with the new istiod in place of the old one.
fn pointed(live: &Object, source: &Source<'_>, target: &Target) -> Value {
    let mut value = live.value().clone();
    for webhook in value["webhooks"].as_array_mut().into_iter().flatten() {
        let service = &mut webhook["clientConfig"]["service"];
        if service["namespace"] == source.plane.namespace.as_str() {
            service["namespace"] = target.namespace.as_str().into();
            service["name"] = target.service().into();
        }
    }
    // Each istiod writes the CA of the configurations that carry its revision.
    value["metadata"]["labels"]["istio.io/rev"] = target.revision.as_str().into();
    value
}

/// The configurations and Services of the tags, which only the last form has.
fn tags(snapshot: &Snapshot, request: &Request, target: &Target) -> Step {
    let mut step = Step::new(
        "tags",
        Phase::Switch,
        "make the new control plane answer to the old one's revision and tags",
        "Namespaces and pods that name the old revision, or none, are injected by the new istiod.",
    );
    let known: Vec<_> = target.transitional.iter().map(id).collect();
    let bundle = snapshot.ca_bundle(&request.from);
    for object in Target::dressed(&target.last, request) {
        let id = id(&object);
        let new = !known.iter().any(|known| known.same_object(&id));
        if !new || id.name == DEFAULT_VALIDATOR {
            continue;
        }
        let webhook = is_webhook(&object);
        let object = if webhook {
            armed(object, bundle.as_deref(), None)
        } else {
            object
        };
        step.effect.push(Action::Apply {
            object,
            manager: request.manager().to_owned(),
        });
        if webhook {
            step.after.push(Check::Armed { object: id.clone() });
        }
        if snapshot.objects.find(&id).is_some() {
            // In the same namespace it has the name of an old one.
            step.undo.push(Action::Restore { object: id });
        } else {
            step.undo.insert(0, Action::Delete { object: id.clone() });
            step.undone.push(Check::Absent { object: id });
        }
    }
    step.after.push(Check::OneInjector);
    step
}

fn retire(all: &[&Object], active: &[&Object], source: &Source<'_>, target: &Target) -> Step {
    let mut step = Step::new(
        "injectors-retire",
        Phase::Switch,
        "delete the old injectors",
        "They name the new istiod by now, as the new ones do: nothing changes for any pod.",
    );
    step.before.push(Check::OneInjector);
    for live in all {
        let object = live.id();
        step.effect.push(Action::Delete {
            object: object.clone(),
        });
        step.after.push(Check::Absent {
            object: object.clone(),
        });
        step.undone.push(Check::Exists {
            object: object.clone(),
        });
        // Back as the step before left it: the original would be a second injector.
        step.undo.push(if active.iter().any(|a| a.id() == object) {
            Action::Apply {
                object: fresh(pointed(live, source, target)),
                manager: crate::api::MANAGER.to_owned(),
            }
        } else {
            Action::Restore { object }
        });
    }
    step.after.push(Check::OneInjector);
    step.undone.push(Check::OneInjector);
    step
}
