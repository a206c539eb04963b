//! The charm's options, checked before anything is touched.

use std::collections::BTreeSet;

use juju_charm::{Config, Problem, chain};
use k8s_openapi::ByteString;
use mesh::control_plane::{GatewaySettings, Settings};
use mesh::name::check_label;
use mesh::{Namespace, Revision};
use serde_json::{Map, Value};

/// Namespaces that Kubernetes keeps for itself.
const RESERVED: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Reads every option. Without problems the settings are whole; with problems there are none.
///
/// # Errors
/// One problem per bad option: its name, its value and what is allowed.
pub fn settings(config: &Config) -> Result<Settings, Vec<Problem>> {
    let mut problems = Vec::new();
    let namespace = keep(&mut problems, namespace(config));
    let revision = keep(&mut problems, revision(config));
    let values = keep(&mut problems, values(config));
    let gateways = keep(&mut problems, gateways(config));
    keep(&mut problems, release_sha256(config));
    if let (Some(namespace), Some(gateways)) = (&namespace, &gateways) {
        problems.extend(twins(namespace, gateways));
    }
    let (Some(namespace), Some(revision), Some(values), Some(gateways), true) =
        (namespace, revision, values, gateways, problems.is_empty())
    else {
        return Err(problems);
    };
    Ok(Settings {
        namespace,
        revision,
        profile: text(config, "profile").unwrap_or("default").to_owned(),
        hub: text(config, "hub").map(str::to_owned),
        tag: text(config, "tag").map(str::to_owned),
        values,
        gateways,
        kubernetes_version: None,
    })
}

/// The SHA-256 that the release payload must have, in lower case, where one is asked for.
///
/// # Errors
/// Anything but 64 hexadecimal digits.
pub fn release_sha256(config: &Config) -> Result<Option<String>, Problem> {
    let Some(text) = text(config, "release-sha256") else {
        return Ok(None);
    };
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(Some(text.to_ascii_lowercase()));
    }
    Err(bad("release-sha256", text, "is not 64 hexadecimal digits"))
}

fn namespace(config: &Config) -> Result<Namespace, Problem> {
    let text = text(config, "namespace").unwrap_or("istio-system");
    let name: Namespace = text.parse().map_err(|why| bad("namespace", text, why))?;
    if RESERVED.contains(&text) {
        return Err(bad("namespace", text, "is the cluster's own"));
    }
    Ok(name)
}

fn revision(config: &Config) -> Result<Revision, Problem> {
    let text = text(config, "revision").unwrap_or_default();
    text.parse().map_err(|why| bad("revision", text, why))
}

fn values(config: &Config) -> Result<Value, Problem> {
    let Some(text) = text(config, "values") else {
        return Ok(Value::Object(Map::new()));
    };
    match yaml::parse(text).map_err(|why| unreadable("values", &why))? {
        Value::Null => Ok(Value::Object(Map::new())),
        value @ Value::Object(_) => whole_scope(value).and_then(readable_bundles),
        _ => Err(Problem::blocked("option values: not a YAML mapping")),
    }
}

/// One application owns all of a control plane: a part of it would prune the other.
fn whole_scope(values: Value) -> Result<Value, Problem> {
    match values["global"]["resourceScope"].as_str() {
        None | Some("all") => Ok(values),
        Some(scope) => Err(Problem::blocked(format!(
            "option values: global.resourceScope {scope:?}, only \"all\" is allowed"
        ))),
    }
}

/// A certificate bundle that cannot be read would leave webhooks that nobody can answer.
fn readable_bundles(values: Value) -> Result<Value, Problem> {
    for (chart, key) in [
        ("base", "validationCABundle"),
        ("istiodRemote", "injectionCABundle"),
    ] {
        let Some(text) = values[chart][key].as_str() else {
            continue;
        };
        let trimmed = Value::String(text.trim().to_owned());
        if serde_json::from_value::<ByteString>(trimmed).is_err() {
            return Err(Problem::blocked(format!(
                "option values: {chart}.{key} is not base64"
            )));
        }
    }
    Ok(values)
}

fn gateways(config: &Config) -> Result<Vec<GatewaySettings>, Problem> {
    let Some(text) = text(config, "gateways") else {
        return Ok(Vec::new());
    };
    let gateways: Option<Vec<GatewaySettings>> =
        yaml::parse_as(text).map_err(|why| unreadable("gateways", &why))?;
    let gateways = gateways.unwrap_or_default();
    for gateway in &gateways {
        check_label(&gateway.name).map_err(|why| bad("gateways: name", &gateway.name, why))?;
        if let Some(namespace) = &gateway.namespace {
            check_label(namespace).map_err(|why| bad("gateways: namespace", namespace, why))?;
            if RESERVED.contains(&namespace.as_str()) {
                return Err(bad(
                    "gateways: namespace",
                    namespace,
                    "is the cluster's own",
                ));
            }
        }
    }
    Ok(gateways)
}

/// Gateways of one name in one namespace; one that names none is in `namespace`.
fn twins(namespace: &Namespace, gateways: &[GatewaySettings]) -> Option<Problem> {
    let mut seen = BTreeSet::new();
    let twin = gateways.iter().find(|gateway| {
        let place = gateway.namespace.as_deref().unwrap_or(namespace.as_str());
        !seen.insert((place, &gateway.name))
    });
    twin.map(|twin| {
        bad(
            "gateways: name",
            &twin.name,
            "is there twice in one namespace",
        )
    })
}

/// An option's text; an empty one counts as unset.
fn text<'a>(config: &'a Config, option: &str) -> Option<&'a str> {
    config
        .str(option)
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

fn bad(option: &str, value: &str, why: impl std::fmt::Display) -> Problem {
    let shown: String = value.chars().take(40).collect();
    Problem::blocked(format!("option {option}: {shown:?} {why}"))
}

/// A YAML error: where, without the text around it, which would not fit a status line.
fn unreadable(option: &str, why: &yaml::Error) -> Problem {
    let why = chain(why);
    let first = why.lines().next().unwrap_or_default();
    Problem::blocked(format!("option {option}: {first}"))
}

fn keep<T>(problems: &mut Vec<Problem>, result: Result<T, Problem>) -> Option<T> {
    result.map_err(|problem| problems.push(problem)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(options: &Value) -> Config {
        Config::new(options.as_object().unwrap().clone())
    }

    #[track_caller]
    fn refused(options: &Value, expect: &[&str]) {
        let problems = settings(&config(options)).unwrap_err();
        let messages: Vec<_> = problems.iter().map(|p| p.message.clone()).collect();
        assert_eq!(messages.len(), expect.len(), "{messages:?}");
        for (message, expect) in messages.iter().zip(expect) {
            assert!(
                message.starts_with(expect),
                "{message:?} does not start with {expect:?}"
            );
        }
    }

    #[test]
    fn the_defaults_are_the_default_revision_in_istio_system() {
        let settings = settings(&config(&json!({}))).unwrap();
        assert_eq!(settings.namespace.as_str(), "istio-system");
        assert!(settings.revision.is_default());
        assert_eq!(settings.profile, "default");
        assert_eq!(settings.values, json!({}));
    }

    #[test]
    fn a_bad_option_is_named_with_its_value_and_the_reason() {
        refused(
            &json!({"namespace": "Istio_System"}),
            &[r#"option namespace: "Istio_System" has 'I', only a-z, 0-9 and - are allowed"#],
        );
        refused(
            &json!({"namespace": "kube-system"}),
            &[r#"option namespace: "kube-system" is the cluster's own"#],
        );
        refused(
            &json!({"revision": "1.31"}),
            &[r#"option revision: "1.31" has '.'"#],
        );
        refused(&json!({"values": "global: [\n"}), &["option values: "]);
        refused(
            &json!({"values": "- a\n"}),
            &["option values: not a YAML mapping"],
        );
        refused(
            &json!({"gateways": "- nam: edge\n"}),
            &["option gateways: "],
        );
        refused(
            &json!({"gateways": "- name: Edge\n"}),
            &[r#"option gateways: name: "Edge" has"#],
        );
        refused(
            &json!({"release-sha256": "abc"}),
            &[r#"option release-sha256: "abc" is not 64"#],
        );
    }

    #[test]
    fn a_certificate_bundle_that_cannot_be_read_is_refused() {
        refused(
            &json!({"values": "base: {validationCABundle: '?'}"}),
            &["option values: base.validationCABundle is not base64"],
        );
        refused(
            &json!({"values": "istiodRemote: {injectionCABundle: '?'}"}),
            &["option values: istiodRemote.injectionCABundle is not base64"],
        );
        let readable = json!({"values": "base: {validationCABundle: YWJj}"});
        assert!(settings(&config(&readable)).is_ok());
    }

    #[test]
    fn all_bad_options_are_told_at_once() {
        refused(
            &json!({"namespace": "-", "revision": "A", "values": "3"}),
            &["option namespace", "option revision", "option values"],
        );
    }

    #[test]
    fn one_gateway_twice_is_refused_but_not_the_same_name_in_two_namespaces() {
        refused(
            &json!({"gateways": "[{name: edge}, {name: edge}]"}),
            &[r#"option gateways: name: "edge" is there twice in one namespace"#],
        );
        refused(
            &json!({"namespace": "a", "gateways": "[{name: edge}, {name: edge, namespace: a}]"}),
            &[r#"option gateways: name: "edge" is there twice in one namespace"#],
        );
        let two = json!({"gateways": "[{name: edge, namespace: a}, {name: edge, namespace: b}]"});
        assert_eq!(settings(&config(&two)).unwrap().gateways.len(), 2);
    }
}
