//! Which kinds the cluster serves.
//!
//! One request (`/apis` in the aggregated form that Kubernetes has had since 1.27). Servers that do
//! not know that form answer with a plain list of groups; then each group version of our tables costs
//! one more. The core group is not asked for: its kinds are the same everywhere.

use istio_api::{Scope, kinds};
use kube::Client;
use serde_json::Value;

use crate::error::Result;
use crate::query::{Served, ServedKind};
use crate::transport::{self, Call, Refusal};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Reads the discovery document.
pub(crate) async fn discover(client: &Client) -> Result<Served> {
    let mut call = Call::get("/apis".to_owned(), "get", "apis".to_owned());
    call.accept = AGGREGATED;
    let document = transport::json(client, &call).await?;
    if document.get("kind").and_then(Value::as_str) == Some("APIGroupDiscoveryList") {
        return Ok(aggregated(&document));
    }
    let mut served = core_kinds();
    for (group, version) in group_versions(&document) {
        let call = Call::get(format!("/apis/{group}/{version}"), "get", "apis".to_owned());
        match transport::json(client, &call).await {
            Ok(resources) => add_resources(&mut served, &group, &version, &resources),
            // The group went away, or its aggregated server is down.
            Err(Refusal::Absent(_)) => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(served)
}

/// The kinds of our tables in the core group.
pub(crate) fn core_kinds() -> Served {
    let mut served = Served::default();
    for row in kinds::TABLE
        .iter()
        .chain(kinds::READ_ONLY)
        .filter(|row| row.group.is_empty())
    {
        for version in row.versions {
            let kind = ServedKind {
                version: (*version).to_owned(),
                plural: row.plural.to_owned(),
                namespaced: row.scope == Scope::Namespaced,
            };
            served.insert(row.group, row.kind, kind);
        }
    }
    served
}

fn aggregated(document: &Value) -> Served {
    let mut served = core_kinds();
    for group in items(document, "items") {
        let Some(name) = group.pointer("/metadata/name").and_then(Value::as_str) else {
            continue;
        };
        for version in items(group, "versions") {
            let Some(version_name) = text(version, "version") else {
                continue;
            };
            for resource in items(version, "resources") {
                let kind = resource
                    .pointer("/responseKind/kind")
                    .and_then(Value::as_str);
                if let (Some(kind), Some(plural)) = (kind, text(resource, "resource")) {
                    let namespaced = text(resource, "scope") == Some("Namespaced");
                    let served_kind = ServedKind {
                        version: version_name.to_owned(),
                        plural: plural.to_owned(),
                        namespaced,
                    };
                    served.insert(name, kind, served_kind);
                }
            }
        }
    }
    served
}

/// The group versions of a plain group list that our tables speak of.
fn group_versions(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for group in items(document, "groups") {
        let Some(name) = text(group, "name") else {
            continue;
        };
        for version in items(group, "versions") {
            let Some(version) = text(version, "version") else {
                continue;
            };
            let ours = kinds::TABLE
                .iter()
                .chain(kinds::READ_ONLY)
                .any(|row| row.group == name && row.versions.contains(&version));
            if ours {
                found.push((name.to_owned(), version.to_owned()));
            }
        }
    }
    found
}

fn add_resources(served: &mut Served, group: &str, version: &str, document: &Value) {
    for resource in items(document, "resources") {
        if let (Some(kind), Some(plural)) = (text(resource, "kind"), text(resource, "name"))
            && !plural.contains('/')
        {
            let namespaced = resource
                .get("namespaced")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let kind_version = ServedKind {
                version: version.to_owned(),
                plural: plural.to_owned(),
                namespaced,
            };
            served.insert(group, kind, kind_version);
        }
    }
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_discovery_say_the_same() {
        let aggregated = aggregated(&json!({
            "kind": "APIGroupDiscoveryList",
            "items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
                {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced",
                 "subresources": [{"subresource": "status"}]},
            ]}]}],
        }));
        let mut plain = core_kinds();
        let groups = json!({"groups": [
            {"name": "apps", "versions": [{"version": "v1"}]},
            {"name": "metrics.k8s.io", "versions": [{"version": "v1"}]},
        ]});
        assert_eq!(
            group_versions(&groups),
            [("apps".to_owned(), "v1".to_owned())]
        );
        let resources = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true},
        ]});
        add_resources(&mut plain, "apps", "v1", &resources);
        assert_eq!(aggregated, plain);
        assert!(plain.serves("apps", "v1", "Deployment"));
        assert!(plain.serves("", "v1", "Pod"));
        assert!(!plain.serves("apps", "v1beta1", "Deployment"));
    }
}
