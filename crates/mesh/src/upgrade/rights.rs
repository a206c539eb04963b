//! The rights in the cluster without which an upgrade would stop half way.

use std::collections::BTreeSet;

use istio_api::kinds;
use serde_json::{Value, json};

use super::finding::{Code, Finding, few};

/// One right: verb, API group, resource; in one namespace or in the whole cluster.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Right {
    /// `create`.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name, with a subresource after a slash.
    pub resource: String,
    /// The namespace that it is needed in; none for all of them, and for what is in none.
    pub namespace: Option<String>,
}

impl Right {
    fn new(verb: &'static str, group: &str, resource: &str, namespace: Option<&str>) -> Self {
        Self {
            verb,
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }

    /// The right to everything, which includes all others: asked for first, it saves asking for each.
    pub fn to_everything() -> Self {
        Self::new("*", "*", "*", None)
    }
}

/// Every right by which these objects are written, read and deleted, beside istiod in `namespace`.
/// Definitions and namespaces are never deleted.
pub fn needed<'a>(objects: impl IntoIterator<Item = &'a Value>, namespace: &str) -> Vec<Right> {
    // What is remembered of the revision is a Secret.
    let record =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace}});
    let mut all: Vec<&Value> = objects.into_iter().collect();
    all.push(&record);
    let mut out = BTreeSet::new();
    for object in all {
        let (group, _) = object["apiVersion"]
            .as_str()
            .map(istio_api::split_api_version)
            .unwrap_or_default();
        // A kind that the table lacks is none that the engine writes.
        let Some(kind) = kinds::lookup(group, object["kind"].as_str().unwrap_or_default()) else {
            continue;
        };
        // What is no longer wanted is looked for everywhere.
        out.insert(Right::new("list", group, kind.plural, None));
        let namespace = object["metadata"]["namespace"].as_str();
        let namespace = namespace.filter(|_| kind.is_namespaced());
        let kept = matches!(kind.kind, "Namespace" | "CustomResourceDefinition");
        for verb in ["get", "create", "patch", "delete"] {
            if verb != "delete" || !kept {
                out.insert(Right::new(verb, group, kind.plural, namespace));
            }
        }
    }
    // Images and injection are proven by pods, and istiod is asked for its proxies.
    for verb in ["get", "create", "delete"] {
        out.insert(Right::new(verb, "", "pods", Some(namespace)));
    }
    out.insert(Right::new("list", "", "pods", None));
    out.insert(Right::new(
        "create",
        "",
        "pods/portforward",
        Some(namespace),
    ));
    out.into_iter().collect()
}

/// The finding about those rights that are missing, if any.
pub fn missing(missing: &[Right], app: &str) -> Option<Finding> {
    if missing.is_empty() {
        return None;
    }
    let names: BTreeSet<String> = missing
        .iter()
        .map(|right| format!("{} {}", right.verb, right.resource))
        .collect();
    let why = "an upgrade without these rights would stop half way";
    Some(
        Finding::error(Code::MissingRight, few(&Vec::from_iter(names)), why)
            .mended_by(format!("juju trust {app} --scope=cluster")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str, namespace: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind,
               "metadata": {"name": "a", "namespace": namespace}})
    }

    fn of(objects: &[Value]) -> Vec<String> {
        let shown = |right: &Right| {
            let Right {
                verb,
                group,
                resource,
                namespace,
            } = right;
            let place = namespace.as_deref().unwrap_or("*");
            format!("{verb} {resource}.{group} {place}")
        };
        needed(objects, "istio-lab").iter().map(shown).collect()
    }

    #[test]
    fn each_kind_is_needed_where_its_objects_are_and_is_listed_everywhere() {
        let all = of(&[
            object("networking.k8s.io/v1", "NetworkPolicy", "edge-lab"),
            object("apps/v1", "DaemonSet", "node-lab"),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", ""),
        ]);
        for expected in [
            "create networkpolicies.networking.k8s.io edge-lab",
            "delete daemonsets.apps node-lab",
            "list daemonsets.apps *",
            "patch clusterroles.rbac.authorization.k8s.io *",
            "create secrets. istio-lab",
            "create pods/portforward. istio-lab",
        ] {
            assert!(
                all.iter().any(|right| right == expected),
                "{expected} {all:#?}"
            );
        }
        assert!(!all.iter().any(|right| right.contains("services")));
    }

    #[test]
    fn nothing_asks_for_the_right_to_delete_definitions_or_namespaces() {
        let all = of(&[
            object("v1", "Namespace", ""),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", ""),
        ]);
        let deletes = all.iter().filter(|right| right.starts_with("delete"));
        assert_eq!(
            deletes.collect::<Vec<_>>(),
            ["delete pods. istio-lab", "delete secrets. istio-lab"]
        );
    }

    #[test]
    fn missing_rights_are_one_finding_with_the_command() {
        assert_eq!(missing(&[], "meshy"), None);
        let of_two_namespaces = [
            object("apps/v1", "Deployment", "istio-lab"),
            object("apps/v1", "Deployment", "edge-lab"),
        ];
        let all = needed(&of_two_namespaces, "istio-lab");
        let deployments: Vec<Right> = all.into_iter().filter(|r| r.group == "apps").collect();
        let found = missing(&deployments, "meshy").unwrap();
        assert!(found.blocks());
        assert_eq!(
            found.object,
            "create deployments, delete deployments, get deployments (+2 more)"
        );
        assert_eq!(found.mend, "juju trust meshy --scope=cluster");
    }
}
