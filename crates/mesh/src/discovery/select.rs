//! Which of the things found is meant: one answer, none, or several for the user to choose from.

use super::{ControlPlane, GatewayWorkload, Role};

/// The result of a selection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Selected<T> {
    /// The one that is meant.
    One(T),
    /// Nothing fits; what was looked for, in words.
    None {
        /// What was looked for.
        looked_for: String,
    },
    /// More than one fits.
    Several {
        /// Their names, as the option takes them.
        candidates: Vec<String>,
    },
}

impl<T> Selected<T> {
    /// The same of what belongs to the one that is meant.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Selected<U> {
        match self {
            Self::One(one) => Selected::One(of(one)),
            Self::None { looked_for } => Selected::None { looked_for },
            Self::Several { candidates } => Selected::Several { candidates },
        }
    }

    /// The one that is meant.
    pub fn one(self) -> Option<T> {
        match self {
            Self::One(one) => Some(one),
            Self::None { .. } | Self::Several { .. } => None,
        }
    }
}

/// What narrows the choice of a control plane. Empty texts do not narrow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// Namespace of istiod.
    pub namespace: &'a str,
    /// Revision or tag.
    pub revision: &'a str,
    /// Root namespace that a related charm names.
    pub root_namespace: &'a str,
}

/// The control plane that `choice` leaves.
pub fn select_control_plane<'a>(
    found: &'a [ControlPlane],
    choice: &Choice<'_>,
) -> Selected<&'a ControlPlane> {
    let fits = |plane: &&ControlPlane| {
        (choice.namespace.is_empty() || plane.namespace == choice.namespace)
            && (choice.revision.is_empty() || plane.answers_to(choice.revision))
            && (choice.root_namespace.is_empty() || plane.root_namespace == choice.root_namespace)
    };
    let fitting: Vec<&ControlPlane> = found.iter().filter(fits).collect();
    narrow(&fitting, ControlPlane::reference, || {
        let mut what = "istiod (label app=istiod)".to_owned();
        for (text, part) in [
            (choice.namespace, " in namespace "),
            (choice.revision, " with revision or tag "),
            (choice.root_namespace, " with root namespace "),
        ] {
            if !text.is_empty() {
                what.push_str(part);
                what.push_str(text);
            }
        }
        what
    })
}

/// The gateway that is meant. `wanted` is `[namespace/]name`, where the name may also be the value
/// of the pods' `istio` label; empty means the only ingress gateway of the control plane's
/// revision.
pub fn select_gateway<'a>(
    found: &'a [GatewayWorkload],
    wanted: &str,
    plane: &ControlPlane,
) -> Selected<&'a GatewayWorkload> {
    let serves = |gateway: &GatewayWorkload| {
        gateway
            .revision
            .as_deref()
            .is_none_or(|revision| plane.answers_to(revision))
    };
    let fitting: Vec<&GatewayWorkload> = if wanted.is_empty() {
        found
            .iter()
            .filter(|g| g.role == Role::Ingress && serves(g))
            .collect()
    } else {
        let (namespace, name) = wanted.rsplit_once('/').unwrap_or(("", wanted));
        let named = |g: &&GatewayWorkload| {
            (namespace.is_empty() || g.namespace == namespace)
                && (g.name == name || g.labels.get("istio").is_some_and(|value| value == name))
        };
        found.iter().filter(named).collect()
    };
    narrow(&fitting, GatewayWorkload::reference, || {
        if wanted.is_empty() {
            format!("an ingress gateway of control plane {}", plane.reference())
        } else {
            format!("gateway {wanted}")
        }
    })
}

fn narrow<'a, T>(
    fitting: &[&'a T],
    name: impl Fn(&T) -> String,
    looked_for: impl Fn() -> String,
) -> Selected<&'a T> {
    match fitting {
        [] => Selected::None {
            looked_for: looked_for(),
        },
        [one] => Selected::One(one),
        several => Selected::Several {
            candidates: several.iter().map(|one| name(one)).collect(),
        },
    }
}
