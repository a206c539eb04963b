//! What a profile of the release switches on.
//!
//! A profile is one of the payload's `manifests/profiles/*.yaml`, an overlay on `default`. Taken from
//! it: which components it enables and in which namespace, and the two chart values that make the
//! charts apply their own share of the profile. The ingress and egress gateways of a profile are
//! not taken: gateways are the `gateways` option's business.

use serde_json::{Map, Value, json};

/// Which components a profile enables.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Components {
    /// CRDs and the reader account.
    pub base: bool,
    /// istiod.
    pub istiod: bool,
    /// The node agent, with the namespace where the profile insists on one.
    pub cni: Option<Placement>,
    /// The ambient node proxy, likewise.
    pub ztunnel: Option<Placement>,
}

/// Where a component goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Placement {
    /// The namespace of istiod.
    WithIstiod,
    /// A namespace that the profile names.
    Namespace(String),
}

/// The components of a merged profile.
pub fn components(profile: &Value) -> Components {
    let all = &profile["spec"]["components"];
    let enabled = |name: &str| all[name]["enabled"].as_bool() == Some(true);
    let placement = |name: &str| {
        enabled(name).then(|| match all[name]["namespace"].as_str() {
            Some(namespace) => Placement::Namespace(namespace.to_owned()),
            None => Placement::WithIstiod,
        })
    };
    Components {
        base: enabled("base"),
        istiod: enabled("pilot"),
        cni: placement("cni"),
        ztunnel: placement("ztunnel"),
    }
}

/// The chart values `profile` and `global.platform` of a merged profile, where it has them.
pub fn chart_values(profile: &Value) -> Value {
    let values = &profile["spec"]["values"];
    let mut out = Map::new();
    if let Some(name) = values["profile"].as_str() {
        out.insert("profile".to_owned(), json!(name));
    }
    if let Some(platform) = values["global"]["platform"].as_str() {
        out.insert("global".to_owned(), json!({"platform": platform}));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_its_components_and_their_namespaces() {
        let profile = json!({"spec": {
            "components": {
                "base": {"enabled": true}, "pilot": {"enabled": true},
                "cni": {"enabled": true, "namespace": "node-lab"},
                "ztunnel": {"enabled": true},
            },
            "values": {"profile": "ambient", "global": {"platform": "openshift", "other": 1}},
        }});
        assert_eq!(
            components(&profile),
            Components {
                base: true,
                istiod: true,
                cni: Some(Placement::Namespace("node-lab".to_owned())),
                ztunnel: Some(Placement::WithIstiod),
            }
        );
        assert_eq!(
            chart_values(&profile),
            json!({"profile": "ambient", "global": {"platform": "openshift"}})
        );
    }

    #[test]
    fn an_empty_profile_enables_nothing() {
        assert_eq!(components(&json!({})), Components::default());
        assert_eq!(chart_values(&json!({})), json!({}));
    }
}
