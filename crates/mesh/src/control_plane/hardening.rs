//! Hardened mode: in the mesh, what no policy allows is denied.
//!
//! Two policies in the root namespace allow nothing: one for every workload and gateway, one for
//! every waypoint. Requests from outside carry no identity that a policy could name, so each gateway
//! that is `open` gets a policy of its own that admits them; what is behind it still needs an
//! allowing policy. Who restricts an open gateway does so with policies of action `DENY` or
//! `CUSTOM`, which come before every allowing one.

use serde_json::{Value, json};

use super::Settings;

/// The policies, those that admit before those that deny. `owner` tells two applications' policies in
/// one root namespace apart.
pub fn policies(settings: &Settings, owner: &str) -> (Vec<Value>, Vec<Value>) {
    if !settings.hardened {
        return (Vec::new(), Vec::new());
    }
    let root = settings.root_namespace();
    let open = settings.gateways.iter().filter(|gateway| gateway.open);
    let admit = open.map(|gateway| {
        let namespace = gateway.namespace.as_deref();
        let namespace = namespace.unwrap_or_else(|| settings.namespace.as_str());
        policy(
            namespace,
            &format!("{owner}-open-{}", gateway.name),
            &json!({
                "action": "ALLOW",
                "selector": {"matchLabels": {"istio": gateway.istio_label()}},
                "rules": [{}],
            }),
        )
    });
    let waypoints = json!({"targetRefs": [
        {"group": "gateway.networking.k8s.io", "kind": "GatewayClass", "name": "istio-waypoint"},
    ]});
    let deny = vec![
        policy(root, &format!("{owner}-allow-nothing"), &json!({})),
        policy(root, &format!("{owner}-allow-nothing-waypoint"), &waypoints),
    ];
    (admit.collect(), deny)
}

fn policy(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::values::tests::settings;

    fn names(policies: &[Value]) -> Vec<String> {
        let name = |p: &Value| format!("{}/{}", p["metadata"]["namespace"], p["metadata"]["name"]);
        policies.iter().map(|p| name(p).replace('"', "")).collect()
    }

    #[test]
    fn nothing_is_hardened_unless_asked_for() {
        let (admit, deny) = policies(&settings("", json!({})), "meshy");
        assert!(admit.is_empty() && deny.is_empty());
    }

    #[test]
    fn the_root_namespace_allows_nothing_and_open_gateways_admit_requests_from_outside() {
        let mut settings = settings("", json!({"meshConfig": {"rootNamespace": "root-lab"}}));
        settings.hardened = true;
        settings.gateways = yaml::parse_as(
            "[{name: istio-edge, namespace: edge-lab}, {name: shut, open: false}, \
             {name: b, values: {labels: {istio: front}}}]",
        )
        .unwrap();
        let (admit, deny) = policies(&settings, "meshy");
        assert_eq!(
            names(&admit),
            ["edge-lab/meshy-open-istio-edge", "istio-lab/meshy-open-b"]
        );
        assert_eq!(
            admit[0]["spec"]["selector"]["matchLabels"],
            json!({"istio": "edge"})
        );
        assert_eq!(
            admit[1]["spec"]["selector"]["matchLabels"],
            json!({"istio": "front"}),
            "a label of the values"
        );
        assert_eq!(
            names(&deny),
            [
                "root-lab/meshy-allow-nothing",
                "root-lab/meshy-allow-nothing-waypoint"
            ]
        );
        assert_eq!(deny[0]["spec"], json!({}));
        assert_eq!(deny[1]["spec"]["targetRefs"][0]["name"], "istio-waypoint");
    }
}
