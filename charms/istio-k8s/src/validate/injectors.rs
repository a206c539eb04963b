//! Whose pods are whose. Pure.

use juju_charm::{ModelView, Problem};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube_apply::{Inventory, Object};
use mesh::injection::{is_injector, overlaps};
use serde_json::Value;

use crate::observe::View;

/// A pod that two injectors take is injected twice, so ours does not come beside a foreign one.
pub(super) fn no_second_injector(
    view: &ModelView,
    cluster: &View,
    inventory: &Inventory,
    webhooks: &[Value],
    running: bool,
) -> Result<(), Problem> {
    let foreign: Vec<MutatingWebhookConfiguration> = cluster
        .mutating
        .iter()
        .filter(|c| !inventory.owns(c) && !is_adopted(view, c, webhooks))
        .filter_map(|c| c.typed().ok())
        .filter(is_injector)
        .collect();
    let ours: Vec<MutatingWebhookConfiguration> = webhooks
        .iter()
        .filter(|o| o["kind"] == "MutatingWebhookConfiguration")
        .filter_map(|o| serde_json::from_value(o.clone()).ok())
        .collect();
    let Some(overlap) = overlaps(&ours, &foreign).into_iter().next() else {
        return Ok(());
    };
    let problem = Problem::blocked(format!(
        "{} of another Istio injects the same pods",
        overlap.other
    ));
    if running {
        // Its revision does not change; which of the two gives way is a person's decision.
        return Err(problem);
    }
    Err(problem.with_hint(format!("juju config {} revision=NAME", view.context.app)))
}

/// Whether the action `adopt` would take the configuration over: it is one of ours by its name, or
/// leads to the same istiod.
fn is_adopted(view: &ModelView, config: &Object, webhooks: &[Value]) -> bool {
    let adopts = view.action.as_ref().is_some_and(|a| a.name == "adopt");
    let service = |config: &Value| config["webhooks"][0]["clientConfig"]["service"].clone();
    adopts
        && webhooks.iter().any(|ours| {
            let (theirs, ours_leads_to) = (service(config.value()), service(ours));
            ours["metadata"]["name"] == config.name()
                || (theirs["name"].is_string()
                    && theirs["name"] == ours_leads_to["name"]
                    && theirs["namespace"] == ours_leads_to["namespace"])
        })
}
