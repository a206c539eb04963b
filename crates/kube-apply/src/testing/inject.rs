//! Plays the sidecar injectors: what they would make of a pod that is created.
//!
//! Of their selectors only this much is played: a pod's own `istio.io/rev` label picks the revision or
//! tag, no label picks the default; a webhook that selects by `istio.io/deactivated` takes nothing, one
//! without a CA bundle refuses; the last in name order has the last word.

use serde_json::{Value, json};

use super::store::Store;

const REV: &str = "istio.io/rev";

/// The pod as the injectors leave it, or the words of the one that refuses it.
pub(super) fn injected(store: &Store, mut pod: Value) -> Result<Value, String> {
    let labels = &pod["metadata"]["labels"];
    if labels["sidecar.istio.io/inject"] == "false" {
        return Ok(pod);
    }
    let wanted = labels[REV].as_str().unwrap_or("default").to_owned();
    let configs = store.objects.iter().filter_map(|((_, kind, _, _), entry)| {
        (kind == "MutatingWebhookConfiguration").then_some(&entry.value)
    });
    let mut by = None;
    for config in configs {
        let labels = &config["metadata"]["labels"];
        let answers = labels["istio.io/tag"]
            .as_str()
            .or_else(|| labels[REV].as_str());
        let webhooks = config["webhooks"].as_array();
        let mut injectors = webhooks.into_iter().flatten().filter(|webhook| {
            let name = webhook["name"].as_str().unwrap_or_default();
            let parked = &webhook["namespaceSelector"]["matchLabels"]["istio.io/deactivated"];
            name.ends_with("sidecar-injector.istio.io") && parked.is_null()
        });
        let Some(injector) = injectors.next().filter(|_| answers == Some(&wanted)) else {
            continue;
        };
        if injector["clientConfig"]["caBundle"].is_null() {
            let name = injector["name"].as_str().unwrap_or_default();
            return Err(format!(
                "failed calling webhook \"{name}\": unknown authority"
            ));
        }
        by = labels[REV].as_str().map(str::to_owned);
    }
    if let Some(revision) = by {
        let status = json!({"revision": revision}).to_string();
        pod["metadata"]["annotations"]["sidecar.istio.io/status"] = status.into();
    }
    Ok(pod)
}
