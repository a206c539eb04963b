//! The images that come with a release, and the pod that pulls them before anything is written. Pure.

use k8s_openapi::api::core::v1::Pod;
use kube_apply::Object;
use mesh::control_plane::ControlPlane;
use serde_json::{Value, json};

use super::proof::NOT_INJECTED;

/// Reasons for which an image is not there.
const NOT_PULLED: [&str; 4] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
];

/// What the pulling pod has shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Pulled {
    /// Both images are there.
    Yes,
    /// Not yet.
    Waiting(String),
    /// One cannot be had: why.
    No(String),
    /// The pod could not show it, for a reason that is no fault of the images.
    Unknown(String),
}

/// istiod's image and the proxies', where the control plane names them.
pub fn images(control_plane: &ControlPlane) -> Vec<String> {
    let istiod = control_plane.istiod.first();
    let istiod = istiod
        .and_then(|istiod| istiod["spec"]["template"]["spec"]["containers"][0]["image"].as_str())
        .map(str::to_owned);
    istiod
        .into_iter()
        .chain(proxy_image(control_plane))
        .collect()
}

/// The image that the injector gives to proxies, from the values beside its templates.
pub fn proxy_image(control_plane: &ControlPlane) -> Option<String> {
    let values = control_plane.injector_config.first()?["data"]["values"].as_str()?;
    let values: Value = serde_json::from_str(values).ok()?;
    let global = &values["global"];
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let image = text(&global["proxy"]["image"])?;
    if image.contains('/') {
        return Some(image);
    }
    let (hub, tag) = (text(&global["hub"])?, text(&global["tag"])?);
    let variant = text(&global["variant"]).map_or_else(String::new, |v| format!("-{v}"));
    Some(format!("{hub}/{image}:{tag}{variant}"))
}

/// A pod that pulls the images where istiod runs and ends. It goes with the istiod that it is to
/// replace, and by itself after five minutes.
pub fn pulling_pod(
    app: &str,
    images: &[String],
    istiod: &Object,
    control_plane: &ControlPlane,
) -> Value {
    let containers: Vec<Value> = images
        .iter()
        .enumerate()
        .map(|(number, image)| {
            json!({
                "name": format!("image-{number}"), "image": image, "args": ["version"],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"},
                              "limits": {"cpu": "500m", "memory": "128Mi"}},
                "securityContext": {
                    "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1337,
                    "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
                    "seccompProfile": {"type": "RuntimeDefault"}},
            })
        })
        .collect();
    let mut spec = json!({
        "restartPolicy": "Never", "activeDeadlineSeconds": 300,
        "automountServiceAccountToken": false, "containers": containers,
    });
    let wanted = control_plane
        .istiod
        .first()
        .map(|d| &d["spec"]["template"]["spec"]);
    for key in [
        "nodeSelector",
        "tolerations",
        "affinity",
        "imagePullSecrets",
    ] {
        if let Some(value) = wanted
            .map(|spec| &spec[key])
            .filter(|value| !value.is_null())
        {
            spec[key] = value.clone();
        }
    }
    let account = control_plane
        .config
        .iter()
        .find(|o| o["kind"] == "ServiceAccount" && o["imagePullSecrets"].is_array());
    if let Some(account) = account {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{app}-image-proof"), "namespace": istiod.namespace(),
            "labels": {NOT_INJECTED.0: NOT_INJECTED.1, "istio.io/dataplane-mode": "none"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment",
                                 "name": istiod.name(), "uid": istiod.uid().unwrap_or_default()}],
        },
        "spec": spec,
    })
}

/// Whether the live pod pulls the same images.
pub fn pulls_the_same(live: &Object, wanted: &Value) -> bool {
    let images = |pod: &Value| -> Vec<Value> {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        containers
            .map(|container| container["image"].clone())
            .collect()
    };
    images(live.value()) == images(wanted)
}

/// What the pulling pod has shown so far.
pub fn pulled(pod: &Object) -> Pulled {
    let pod: Pod = match pod.typed() {
        Ok(pod) => pod,
        Err(error) => return Pulled::Unknown(error.to_string()),
    };
    let wanted = pod.spec.map_or(0, |spec| spec.containers.len());
    let Some(status) = pod.status else {
        return Pulled::Waiting("not scheduled".to_owned());
    };
    let mut there = 0;
    for container in status.container_statuses.iter().flatten() {
        let state = container.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let reason = waiting
            .and_then(|waiting| waiting.reason.as_deref())
            .unwrap_or_default();
        if NOT_PULLED.contains(&reason) {
            return Pulled::No(format!("{reason} of {}", container.image));
        }
        if state.is_some_and(|state| state.running.is_some() || state.terminated.is_some()) {
            there += 1;
        }
    }
    if wanted > 0 && there == wanted {
        return Pulled::Yes;
    }
    if status.phase.as_deref() == Some("Failed") {
        let reason = status.reason.unwrap_or_else(|| "it failed".to_owned());
        return Pulled::Unknown(reason);
    }
    let unschedulable = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    Pulled::Waiting(match unschedulable {
        Some(condition) => condition.reason.clone().unwrap_or_default(),
        None => "pulling".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::new(value).unwrap()
    }

    fn injector(values: &Value) -> ControlPlane {
        ControlPlane {
            injector_config: vec![json!({"data": {"values": values.to_string()}})],
            ..ControlPlane::default()
        }
    }

    #[test]
    fn the_proxies_image_is_put_together_as_the_templates_do() {
        let check = |global: Value, expect: Option<&str>| {
            let found = proxy_image(&injector(&json!({"global": global})));
            assert_eq!(found.as_deref(), expect);
        };
        let image = json!({"image": "proxyv2"});
        check(
            json!({"hub": "registry.example/istio", "tag": "1.31.0", "proxy": image}),
            Some("registry.example/istio/proxyv2:1.31.0"),
        );
        check(
            json!({"hub": "h", "tag": "1.31.0", "variant": "distroless", "proxy": image}),
            Some("h/proxyv2:1.31.0-distroless"),
        );
        check(
            json!({"hub": "h", "tag": "t", "proxy": {"image": "mine/proxy:1"}}),
            Some("mine/proxy:1"),
        );
        check(json!({}), None);
    }

    #[test]
    fn an_image_is_there_when_its_container_has_begun() {
        let check = |statuses: Value, phase: &str, expect: &Pulled| {
            let pod = object(json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "image-0"}, {"name": "image-1"}]},
                "status": {"phase": phase, "containerStatuses": statuses}}));
            assert_eq!(&pulled(&pod), expect);
        };
        let status = |state: Value| {
            json!({"name": "a", "image": "i:1", "imageID": "", "ready": false, "restartCount": 0,
                   "state": state})
        };
        let begun = || status(json!({"terminated": {"exitCode": 1}}));
        let creating = || status(json!({"waiting": {"reason": "ContainerCreating"}}));
        check(json!([begun(), begun()]), "Failed", &Pulled::Yes);
        let pulling = Pulled::Waiting("pulling".to_owned());
        check(json!([begun(), creating()]), "Pending", &pulling);
        check(json!([]), "Pending", &pulling);
        let missing = status(json!({"waiting": {"reason": "ErrImagePull"}}));
        check(
            json!([begun(), missing]),
            "Pending",
            &Pulled::No("ErrImagePull of i:1".to_owned()),
        );
        check(
            json!([creating(), creating()]),
            "Failed",
            &Pulled::Unknown("it failed".to_owned()),
        );
    }
}
