//! The rights in the cluster without which an upgrade would stop half way.

use super::finding::{Code, Finding, few};

/// One right: verb, API group, resource; in the control plane's namespace or in the whole cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Right {
    /// `create`.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural name, with a subresource after a slash.
    pub resource: &'static str,
    /// Whether it is needed in one namespace only.
    pub namespaced: bool,
}

const RESOURCES: [(&str, &str, bool); 16] = [
    ("", "namespaces", false),
    ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ("rbac.authorization.k8s.io", "clusterroles", false),
    ("rbac.authorization.k8s.io", "clusterrolebindings", false),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        false,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        false,
    ),
    ("rbac.authorization.k8s.io", "roles", true),
    ("rbac.authorization.k8s.io", "rolebindings", true),
    ("", "serviceaccounts", true),
    ("", "services", true),
    ("", "configmaps", true),
    ("", "secrets", true),
    ("", "pods", true),
    ("apps", "deployments", true),
    ("autoscaling", "horizontalpodautoscalers", true),
    ("policy", "poddisruptionbudgets", true),
];

/// Every right that an installation or an upgrade uses. Definitions and namespaces are never deleted.
pub fn needed() -> Vec<Right> {
    let mut out = Vec::new();
    for (group, resource, namespaced) in RESOURCES {
        let kept = matches!(resource, "namespaces" | "customresourcedefinitions");
        for verb in ["list", "create", "patch", "delete"] {
            if verb == "delete" && kept {
                continue;
            }
            out.push(Right {
                verb,
                group,
                resource,
                namespaced,
            });
        }
    }
    out.push(Right {
        verb: "create",
        group: "",
        resource: "pods/portforward",
        namespaced: true,
    });
    out
}

/// The finding about those rights that are missing, if any.
pub fn missing(missing: &[Right], app: &str) -> Option<Finding> {
    if missing.is_empty() {
        return None;
    }
    let names: Vec<String> = missing
        .iter()
        .map(|right| format!("{} {}", right.verb, right.resource))
        .collect();
    let why = "an upgrade without these rights would stop half way";
    Some(
        Finding::error(Code::MissingRight, few(&names), why)
            .mended_by(format!("juju trust {app} --scope=cluster")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asks_for_the_right_to_delete_definitions_or_namespaces() {
        let deletes: Vec<_> = needed()
            .into_iter()
            .filter(|right| right.verb == "delete")
            .map(|right| right.resource)
            .collect();
        assert!(deletes.contains(&"deployments"));
        assert!(!deletes.contains(&"namespaces"));
        assert!(!deletes.contains(&"customresourcedefinitions"));
    }

    #[test]
    fn missing_rights_are_one_finding_with_the_command() {
        assert_eq!(missing(&[], "meshy"), None);
        let found = missing(&needed()[..5], "meshy").unwrap();
        assert!(found.blocks());
        assert_eq!(
            found.object,
            "list namespaces, create namespaces, patch namespaces (+2 more)"
        );
        assert_eq!(found.mend, "juju trust meshy --scope=cluster");
    }
}
