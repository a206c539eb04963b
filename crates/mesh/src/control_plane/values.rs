//! Chart values of the control plane: profile under the administrator's values under what the charm
//! decides.

use serde_json::{Value, json};

use super::Settings;

/// Values for the base, istiod, cni and ztunnel charts alike, as istioctl hands them out.
///
/// Precedence, last wins: the profile's two chart values, the `values` option, the `hub` and `tag`
/// options, and the namespace and revision, which no value may change: an istiod whose values name
/// another namespace than its own breaks half of the mesh. `defaultRevision` is filled in where it
/// is not given.
pub fn chart_values(profile: &Value, settings: &Settings) -> Value {
    let mut values = super::profile::chart_values(profile);
    helm_chart::values::layer(&mut values, settings.values.clone());
    let mut decided = json!({
        "revision": settings.revision.chart_value(),
        "global": {"istioNamespace": settings.namespace.as_str()},
    });
    if let Some(hub) = &settings.hub {
        decided["global"]["hub"] = json!(hub);
    }
    if let Some(tag) = &settings.tag {
        decided["global"]["tag"] = json!(tag);
    }
    decided["defaultRevision"] = json!(default_revision(&values, settings));
    helm_chart::values::layer(&mut values, decided);
    values
}

/// The revision that answers the cluster's default validator: `default` or a name; empty for none.
///
/// The base chart's `defaultRevision`, where the values set it. Else the default revision takes
/// the singleton, and a named one takes it only with the tag `default`.
fn default_revision(values: &Value, settings: &Settings) -> String {
    if let Some(asked) = values["defaultRevision"].as_str() {
        return asked.to_owned();
    }
    if settings.revision.is_default() || revision_tags(values).iter().any(|t| t == "default") {
        return settings.revision.label().to_owned();
    }
    String::new()
}

/// The revision tags that the values ask for.
pub fn revision_tags(values: &Value) -> Vec<String> {
    let tags = values["revisionTags"].as_array();
    tags.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn settings(revision: &str, values: Value) -> Settings {
        Settings {
            namespace: "istio-lab".parse().unwrap(),
            revision: revision.parse().unwrap(),
            profile: "default".to_owned(),
            hub: None,
            tag: None,
            values,
            gateways: Vec::new(),
            kubernetes_version: None,
        }
    }

    #[test]
    fn no_value_can_move_the_control_plane_out_of_its_namespace() {
        let settings = settings("", json!({"global": {"istioNamespace": "other", "x": 1}}));
        let values = chart_values(&json!({}), &settings);
        assert_eq!(
            values["global"],
            json!({"istioNamespace": "istio-lab", "x": 1})
        );
    }

    #[test]
    fn options_win_over_values_and_values_over_the_profile() {
        let mut settings = settings(
            "",
            json!({"profile": "mine", "global": {"hub": "a", "tag": "b"}}),
        );
        settings.tag = Some("1.31.0".to_owned());
        let profile = json!({"spec": {"values": {"profile": "theirs"}}});
        let values = chart_values(&profile, &settings);
        assert_eq!(values["profile"], "mine");
        assert_eq!(values["global"]["hub"], "a");
        assert_eq!(values["global"]["tag"], "1.31.0");
    }

    #[test]
    fn one_revision_answers_the_default_validator() {
        #[track_caller]
        fn check(revision: &str, values: &Value, expect: &str) {
            assert_eq!(
                default_revision(values, &settings(revision, json!({}))),
                expect
            );
        }
        check("", &json!({}), "default");
        check("canary", &json!({}), "");
        check("canary", &json!({"revisionTags": ["default"]}), "canary");
        check("", &json!({"defaultRevision": ""}), "");
        check("", &json!({"defaultRevision": "1-30"}), "1-30");
    }
}
