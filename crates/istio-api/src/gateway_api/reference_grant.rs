//! `ReferenceGrant`: lets routes of another namespace lead to Services of its own.

use serde::{Deserialize, Serialize};

use crate::meta::custom_object;

custom_object! {
    /// `referencegrants.gateway.networking.k8s.io`.
    ReferenceGrant, "gateway.networking.k8s.io", ReferenceGrantSpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceGrantSpec {
    /// `spec.from`: who may refer, at most 16.
    pub from: Vec<GrantFrom>,
    /// `spec.to`: to what, at most 16.
    pub to: Vec<GrantTo>,
}

/// `spec.from[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantFrom {
    /// `group`.
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `namespace`.
    pub namespace: String,
}

/// `spec.to[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantTo {
    /// `group`.
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `name`; absent: all of that kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
