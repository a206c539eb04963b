//! The pod that is only tried and shows what the injector makes of it. Pure.

use kube_apply::Object;
use mesh::Revision;
use serde_json::{Value, json};

/// The label that keeps every injector away from a pod.
pub(super) const NOT_INJECTED: (&str, &str) = ("sidecar.istio.io/inject", "false");

/// What the injector of a revision makes of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Injection {
    /// The proxy that it should.
    Right,
    /// Pods are refused, or get another proxy, or none: how.
    Wrong(String),
    /// The answer says nothing of the injector.
    Unknown(String),
}

/// A pod that the injector of `revision` takes in a namespace without labels; it is only tried.
pub fn tried_pod(namespace: &str, revision: &Revision) -> Value {
    let labels = match revision {
        Revision::Default => json!({NOT_INJECTED.0: "true"}),
        Revision::Named(name) => json!({"istio.io/rev": name, NOT_INJECTED.0: "true"}),
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "injection-proof-", "name": "injection-proof",
                     "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "registry.k8s.io/pause:3.10"}]},
    })
}

/// Judges what came of the tried pod; `refusal` is the server's words if it refused. `image` is the
/// proxies' image, where it is known.
pub fn judge(answer: Result<&Object, &str>, revision: &Revision, image: Option<&str>) -> Injection {
    let pod = match answer {
        Ok(pod) => pod,
        Err(words) if words.contains("sidecar-injector.istio.io") => {
            return Injection::Wrong(format!("pods are denied: {words}"));
        }
        Err(words) => return Injection::Unknown(words.to_owned()),
    };
    let Some(status) = pod.annotation("sidecar.istio.io/status") else {
        return Injection::Wrong("pods get no proxy".to_owned());
    };
    let status: Value = serde_json::from_str(status).unwrap_or_default();
    if let Some(found) = status["revision"].as_str()
        && found != revision.label()
    {
        return Injection::Wrong(format!("pods are injected by revision {found}"));
    }
    let spec = &pod.value()["spec"];
    let containers = ["initContainers", "containers"]
        .iter()
        .flat_map(|key| spec[*key].as_array().into_iter().flatten());
    let proxy = containers
        .filter(|container| container["name"] == "istio-proxy")
        .find_map(|container| container["image"].as_str());
    match (proxy, image) {
        (Some(found), Some(image)) if found != image => {
            Injection::Wrong(format!("pods get {found} instead of {image}"))
        }
        _ => Injection::Right,
    }
}

/// The namespace to try a pod in: one that no injector is told about by a label. `first` is taken
/// if it is such a one.
pub fn quiet_namespace<'a>(
    namespaces: impl Iterator<Item = &'a Object>,
    first: &str,
) -> Option<String> {
    let quiet = |namespace: &&Object| {
        namespace.label("istio-injection").is_none()
            && namespace.label("istio.io/rev").is_none()
            && namespace.label("istio.io/dataplane-mode").is_none()
            && !namespace.is_terminating()
            && !namespace.name().starts_with("kube-")
    };
    let names: Vec<&str> = namespaces.filter(quiet).map(Object::name).collect();
    let found = [first, "default"]
        .into_iter()
        .find(|name| names.contains(name));
    found.or_else(|| names.first().copied()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::new(value).unwrap()
    }

    #[test]
    fn a_denied_uninjected_or_foreign_proxy_is_wrong_and_another_refusal_says_nothing() {
        let image = Some("h/proxyv2:1.31.0");
        let pod = |status: Option<&str>, image: &str| {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"initContainers": [{"name": "istio-proxy", "image": image}]}});
            if let Some(status) = status {
                pod["metadata"]["annotations"]["sidecar.istio.io/status"] = status.into();
            }
            object(pod)
        };
        let right = r#"{"revision":"canary"}"#;
        let revision: Revision = "canary".parse().unwrap();
        let check = |answer: Result<&Object, &str>, expect: &str| {
            let found = match judge(answer, &revision, image) {
                Injection::Right => "right".to_owned(),
                Injection::Wrong(how) => format!("wrong: {how}"),
                Injection::Unknown(how) => format!("unknown: {how}"),
            };
            assert!(found.starts_with(expect), "{found} {expect}");
        };
        check(Ok(&pod(Some(right), "h/proxyv2:1.31.0")), "right");
        check(
            Ok(&pod(Some(right), "h/proxyv2:9")),
            "wrong: pods get h/proxyv2:9 instead",
        );
        check(
            Ok(&pod(Some(r#"{"revision":"default"}"#), "h/proxyv2:1.31.0")),
            "wrong: pods are injected by revision default",
        );
        check(Ok(&pod(None, "")), "wrong: pods get no proxy");
        check(
            Err("admission webhook \"namespace.sidecar-injector.istio.io\" denied the request: x"),
            "wrong: pods are denied",
        );
        check(Err("violates PodSecurity \"restricted:latest\""), "unknown");
    }

    #[test]
    fn a_pod_is_tried_where_no_label_leads_to_an_injector() {
        let namespace = |name: &str, labels: Value| {
            object(json!({"apiVersion": "v1", "kind": "Namespace",
                          "metadata": {"name": name, "labels": labels}}))
        };
        let check = |list: &[Object], expect: Option<&str>| {
            assert_eq!(quiet_namespace(list.iter(), "istio-lab").as_deref(), expect);
        };
        let injected = json!({"istio-injection": "enabled"});
        check(
            &[
                namespace("default", json!({})),
                namespace("istio-lab", json!({})),
            ],
            Some("istio-lab"),
        );
        check(
            &[
                namespace("default", json!({})),
                namespace("istio-lab", injected.clone()),
            ],
            Some("default"),
        );
        check(
            &[
                namespace("a", json!({})),
                namespace("default", injected.clone()),
            ],
            Some("a"),
        );
        check(
            &[
                namespace("kube-system", json!({})),
                namespace("a", injected),
            ],
            None,
        );
    }
}
