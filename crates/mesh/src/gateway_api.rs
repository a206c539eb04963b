//! Gateway API's custom resource definitions: a bundle of one version, from a payload of its own.
//!
//! Istio never installs them and other controllers share them, so they are never downgraded and
//! never taken from another owner, and a bundle is installed whole or not at all.

use serde_json::Value;

/// Annotation with the version of the bundle that a definition came with.
pub const BUNDLE_VERSION: &str = "gateway.networking.k8s.io/bundle-version";
const GROUPS: [&str; 2] = ["gateway.networking.k8s.io", "gateway.networking.x-k8s.io"];
/// Label that tells which of two definitions is newer.
const VERSION: &str = "app.kubernetes.io/version";

/// Why a file is no bundle.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NoBundle {
    /// Not YAML.
    #[error("not YAML: {0}")]
    Yaml(String),
    /// It holds no definition of Gateway API's.
    #[error("holds no definition of Gateway API's")]
    Empty,
    /// A definition names no version, or another than the first.
    #[error("{0} is of no or of another bundle version")]
    Mixed(String),
}

/// A bundle.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// Its version, without a leading `v`.
    pub version: String,
    /// The definitions, by name. What else the file holds is left out.
    pub definitions: Vec<Value>,
}

/// Reads the file that the project publishes.
pub fn bundle(text: &str) -> Result<Bundle, NoBundle> {
    let documents = yaml::parse_all(text).map_err(|why| NoBundle::Yaml(why.to_string()))?;
    let mut definitions: Vec<Value> = documents.into_iter().filter(is_definition).collect();
    definitions.sort_by(|a, b| name(a).cmp(name(b)));
    let version = definitions.first().map(version_of).ok_or(NoBundle::Empty)?;
    let odd = definitions
        .iter()
        .find(|d| version_of(d) != version || version.is_none());
    if let Some(odd) = odd {
        return Err(NoBundle::Mixed(name(odd).to_owned()));
    }
    let version = version.unwrap_or_default();
    for definition in &mut definitions {
        if !definition["metadata"]["labels"].is_object() {
            definition["metadata"]["labels"] = serde_json::json!({});
        }
        definition["metadata"]["labels"][VERSION] = Value::from(version.as_str());
    }
    Ok(Bundle {
        version,
        definitions,
    })
}

/// Whether an object is a definition of Gateway API's.
pub fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
        && GROUPS
            .iter()
            .any(|group| name(object).ends_with(&format!(".{group}")))
}

/// Version of the bundle that a definition came with, without a leading `v`.
pub fn version_of(definition: &Value) -> Option<String> {
    let version = definition["metadata"]["annotations"][BUNDLE_VERSION].as_str()?;
    Some(version.trim_start_matches('v').to_owned())
}

/// Whether version `a` of a bundle is newer than `b`.
pub fn is_newer(a: &str, b: &str) -> bool {
    match (semver::Version::parse(a), semver::Version::parse(b)) {
        (Ok(a), Ok(b)) => a > b,
        _ => a != b,
    }
}

/// Who else applies a definition again and again, by the name of the field manager. Someone who
/// typed `kubectl` once is nobody.
pub fn other_applier(definition: &Value, ours: &str) -> Option<String> {
    let managers = definition["metadata"]["managedFields"].as_array();
    let passive = |name: &str| {
        name == ours
            || name.starts_with("kubectl")
            || matches!(name, "before-first-apply" | "kube-apiserver")
    };
    managers
        .into_iter()
        .flatten()
        .filter(|entry| entry["subresource"].as_str().is_none_or(str::is_empty))
        .filter_map(|entry| entry["manager"].as_str())
        .find(|name| !passive(name))
        .map(str::to_owned)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(plural: &str, version: &str) -> String {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  \
             name: {plural}.gateway.networking.k8s.io\n  annotations: {{{BUNDLE_VERSION}: {version}}}\n---\n"
        )
    }

    #[test]
    fn a_bundle_is_its_definitions_and_their_one_version() {
        let policy = "kind: ValidatingAdmissionPolicy\nmetadata: {name: x}\n---\n";
        let text = definition("httproutes", "v1.5.1") + policy + &definition("gateways", "v1.5.1");
        let bundle = bundle(&text).unwrap();
        assert_eq!(bundle.version, "1.5.1");
        let names: Vec<&str> = bundle.definitions.iter().map(name).collect();
        assert_eq!(
            names,
            [
                "gateways.gateway.networking.k8s.io",
                "httproutes.gateway.networking.k8s.io"
            ]
        );
        assert_eq!(
            bundle.definitions[0]["metadata"]["labels"][VERSION],
            "1.5.1"
        );
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        assert!(matches!(bundle("a: ["), Err(NoBundle::Yaml(_))));
        assert_eq!(bundle("a: 1"), Err(NoBundle::Empty));
        let mixed = definition("a", "v1.5.1") + &definition("b", "v1.4.0");
        assert_eq!(
            bundle(&mixed),
            Err(NoBundle::Mixed("b.gateway.networking.k8s.io".to_owned()))
        );
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_newer("1.10.0", "1.9.3"));
        assert!(!is_newer("1.5.1", "1.5.1"));
        assert!(!is_newer("1.5.0-rc.1", "1.5.0"));
    }

    #[test]
    fn an_add_on_manager_is_an_owner_and_a_person_at_a_terminal_is_none() {
        let check = |manager: &str, expect: Option<&str>| {
            let definition = json!({"metadata": {"managedFields": [
                {"manager": "kube-apiserver", "subresource": "status"}, {"manager": manager},
            ]}});
            assert_eq!(
                other_applier(&definition, "istio-k8s/control-plane").as_deref(),
                expect
            );
        };
        check("kubectl-client-side-apply", None);
        check("istio-k8s/control-plane", None);
        check("addon-manager", Some("addon-manager"));
    }
}
