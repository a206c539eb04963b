//! What a profile of the release switches on.
//!
//! A profile is one of the payload's `manifests/profiles/*.yaml`, an overlay on `default`. Taken from
//! it: which components it enables and in which namespace, and the two chart values that make the
//! charts apply their own share of the profile. The ingress and egress gateways of a profile are
//! not taken: gateways are the `gateways` option's business.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// A part of Istio that one application may own without the others.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Component {
    /// CRDs and the reader account.
    Base,
    /// istiod.
    Istiod,
    /// The node agent.
    Cni,
    /// The ambient node proxy.
    Ztunnel,
}

impl Component {
    /// Every component.
    pub const ALL: [Self; 4] = [Self::Base, Self::Istiod, Self::Cni, Self::Ztunnel];

    /// As options name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Istiod => "istiod",
            Self::Cni => "cni",
            Self::Ztunnel => "ztunnel",
        }
    }
}

impl FromStr for Component {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let named = Self::ALL.into_iter().find(|c| c.as_str() == text);
        named.ok_or(())
    }
}

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

impl Components {
    /// Exactly the components `chosen`, each where the profile would have it.
    #[must_use]
    pub fn only(self, chosen: &BTreeSet<Component>, profile: &Value) -> Self {
        let place = |component: Component| {
            let namespace = profile["spec"]["components"][component.as_str()]["namespace"].as_str();
            chosen.contains(&component).then(|| match namespace {
                Some(namespace) => Placement::Namespace(namespace.to_owned()),
                None => Placement::WithIstiod,
            })
        };
        Self {
            base: chosen.contains(&Component::Base),
            istiod: chosen.contains(&Component::Istiod),
            cni: place(Component::Cni),
            ztunnel: place(Component::Ztunnel),
        }
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

    #[test]
    fn a_choice_of_components_is_exactly_that_and_keeps_the_profiles_namespaces() {
        let profile = json!({"spec": {"components": {
            "base": {"enabled": true}, "pilot": {"enabled": true},
            "ztunnel": {"enabled": true, "namespace": "node-lab"},
        }}});
        let chosen = BTreeSet::from([Component::Cni, Component::Ztunnel]);
        assert_eq!(
            components(&profile).only(&chosen, &profile),
            Components {
                base: false,
                istiod: false,
                cni: Some(Placement::WithIstiod),
                ztunnel: Some(Placement::Namespace("node-lab".to_owned())),
            }
        );
        assert_eq!("cni".parse(), Ok(Component::Cni));
        assert!("pilot".parse::<Component>().is_err());
    }
}
