//! Chart values that make a real istiod work with the testbed's Envoy.

/// Values for istiod's chart, as YAML.
///
/// The testbed's Envoy is upstream's, without Istio's own filters: `istio.metadata_exchange`,
/// `istio.alpn` and `istio.stats` must not be configured, or every proxy rejects its listeners.
/// Requests are small so that the whole mesh fits on two cores.
pub const fn pilot_values() -> &'static str {
    include_str!("values.yaml")
}
