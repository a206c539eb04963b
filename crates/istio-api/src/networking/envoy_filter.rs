//! `EnvoyFilter`: patches to the generated Envoy configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{api_enum, custom_object};

custom_object! {
    /// `envoyfilters.networking.istio.io`.
    EnvoyFilter, "networking.istio.io", EnvoyFilterSpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvoyFilterSpec {
    /// `spec.workloadSelector`: in the root namespace all namespaces are searched, elsewhere the
    /// object's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_selector: Option<WorkloadSelector>,
    /// `spec.configPatches`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_patches: Vec<EnvoyConfigPatch>,
    /// `spec.priority`: lower is applied earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// `spec.workloadSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSelector {
    /// `labels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// `spec.configPatches[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvoyConfigPatch {
    /// `applyTo`.
    pub apply_to: ApplyTo,
    /// `match`: which generated objects; kept as JSON because its shape follows Envoy's
    /// configuration. Use [`EnvoyConfigPatch::with_context`] for the common part.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<Value>,
    /// `patch`.
    pub patch: EnvoyPatch,
}

impl EnvoyConfigPatch {
    /// Adds `match.context`.
    #[must_use]
    pub fn with_context(mut self, context: PatchContext) -> Self {
        let matches = self
            .matches
            .get_or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let (Value::Object(fields), Ok(context)) = (matches, serde_json::to_value(context)) {
            fields.insert("context".to_owned(), context);
        }
        self
    }
}

/// `spec.configPatches[].patch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvoyPatch {
    /// `operation`.
    pub operation: PatchOperation,
    /// `value`: Envoy configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

api_enum! {
    /// `spec.configPatches[].applyTo`.
    ApplyTo {
        /// A listener.
        Listener,
        /// A filter chain of a listener.
        FilterChain,
        /// A network filter.
        NetworkFilter,
        /// An HTTP filter.
        HttpFilter,
        /// A route configuration.
        RouteConfiguration,
        /// A virtual host.
        VirtualHost,
        /// A route of a virtual host.
        HttpRoute,
        /// A cluster.
        Cluster,
        /// An extension configuration.
        ExtensionConfig,
        /// The bootstrap.
        Bootstrap,
        /// A listener filter.
        ListenerFilter,
    }
}

api_enum! {
    /// `spec.configPatches[].match.context`.
    PatchContext {
        /// Everywhere.
        Any,
        /// Towards a sidecar's application.
        SidecarInbound,
        /// From a sidecar's application.
        SidecarOutbound,
        /// At gateways.
        Gateway,
        /// At waypoints.
        Waypoint,
    }
}

api_enum! {
    /// `spec.configPatches[].patch.operation`.
    PatchOperation {
        /// Merge into the matched object.
        Merge,
        /// Add to the list.
        Add,
        /// Remove the matched object.
        Remove,
        /// Insert before the matched object.
        InsertBefore,
        /// Insert after the matched object.
        InsertAfter,
        /// Insert first.
        InsertFirst,
        /// Replace the matched object.
        Replace,
    }
}
