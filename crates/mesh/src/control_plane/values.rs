//! Chart values of the control plane: profile under the administrator's values under what the charm
//! decides.

use serde_json::{Value, json};

use super::{Component, Components, Settings};

/// Values for the base, istiod, cni and ztunnel charts alike, as istioctl hands them out.
///
/// Precedence, last wins: the profile's two chart values, the `values` option, what other options say
/// of single values, the mesh config overlay, and the namespace and revision, which no value may
/// change: an istiod whose values name another namespace than its own breaks half of the mesh.
/// `defaultRevision` is filled in where it is not given.
pub fn chart_values(profile: &Value, settings: &Settings) -> Value {
    let mut values = super::profile::chart_values(profile);
    helm_chart::values::layer(&mut values, of_components(profile, settings));
    helm_chart::values::layer(&mut values, settings.values.clone());
    helm_chart::values::layer(&mut values, of_options(settings));
    let mut decided = json!({
        "revision": settings.revision.chart_value(),
        "global": {"istioNamespace": settings.namespace.as_str()},
    });
    decided["defaultRevision"] = json!(default_revision(&values, settings));
    helm_chart::values::layer(&mut values, decided);
    values
}

/// What istiod's chart must know of other components: with a node agent, no init container sets a pod up. The agent may
/// be another application's.
fn of_components(profile: &Value, settings: &Settings) -> Value {
    let Components { istiod, cni, .. } = super::profile::components(profile);
    let chosen = settings.components.as_ref();
    let istiod = chosen.map_or(istiod, |chosen| chosen.contains(&Component::Istiod));
    let cni = cni.is_some() || chosen.is_some_and(|chosen| chosen.contains(&Component::Cni));
    json!({"pilot": {"enabled": istiod, "cni": {"enabled": cni}}})
}

/// The options that stand for one chart value each.
fn of_options(settings: &Settings) -> Value {
    let mut out = json!({});
    for (key, text) in [
        ("hub", &settings.hub),
        ("tag", &settings.tag),
        ("variant", &settings.variant),
        ("platform", &settings.platform),
    ] {
        if let Some(text) = text {
            out["global"][key] = json!(text);
        }
    }
    if !settings.image_pull_secrets.is_empty() {
        out["global"]["imagePullSecrets"] = json!(settings.image_pull_secrets);
        // The ztunnel chart has its own key, of the shape that pods have.
        let named = settings.image_pull_secrets.iter();
        out["imagePullSecrets"] = named.map(|name| json!({"name": name})).collect();
    }
    if settings
        .mesh_config
        .as_object()
        .is_some_and(|m| !m.is_empty())
    {
        out["meshConfig"] = settings.mesh_config.clone();
    }
    if let Some(pilot) = settings.scale.istiod_values() {
        out["pilot"] = pilot;
    }
    if let Some(pem) = &settings.jwks_ca {
        out["pilot"]["jwksResolverExtraRootCA"] = json!(pem);
    }
    out
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
    use crate::control_plane::Scale;

    pub(crate) fn settings(revision: &str, values: Value) -> Settings {
        Settings {
            values,
            ..Settings::new("istio-lab".parse().unwrap(), revision.parse().unwrap())
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
    fn istiod_knows_of_the_node_agent_unless_a_value_says_otherwise() {
        let ambient =
            json!({"spec": {"components": {"pilot": {"enabled": true}, "cni": {"enabled": true}}}});
        for (profile, values, expect) in [
            (&ambient, json!({}), true),
            (
                &ambient,
                json!({"pilot": {"cni": {"enabled": false}}}),
                false,
            ),
            (&json!({}), json!({}), false),
        ] {
            let values = chart_values(profile, &settings("", values));
            assert_eq!(values["pilot"]["cni"]["enabled"], expect, "{profile}");
        }
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

    #[test]
    fn every_option_of_a_single_value_reaches_it_and_wins() {
        let mut settings = settings(
            "",
            json!({"global": {"variant": "debug"}, "meshConfig": {"accessLogFile": "x", "y": 1}}),
        );
        settings.variant = Some("distroless".to_owned());
        settings.platform = Some("k3d".to_owned());
        settings.image_pull_secrets = vec!["lab-registry".to_owned()];
        settings.mesh_config = json!({"accessLogFile": "/dev/stdout"});
        settings.scale = Scale::Fixed(2);
        settings.jwks_ca = Some("PEM".to_owned());
        let values = chart_values(&json!({}), &settings);
        assert_eq!(
            values,
            json!({
                "revision": "", "defaultRevision": "default",
                "global": {
                    "istioNamespace": "istio-lab", "variant": "distroless", "platform": "k3d",
                    "imagePullSecrets": ["lab-registry"],
                },
                "imagePullSecrets": [{"name": "lab-registry"}],
                "meshConfig": {"accessLogFile": "/dev/stdout", "y": 1},
                "pilot": {"enabled": false, "cni": {"enabled": false},
                    "autoscaleEnabled": false, "replicaCount": 2,
                    "jwksResolverExtraRootCA": "PEM",
                },
            })
        );
    }
}
