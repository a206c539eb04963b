//! Typed Istio and Gateway API objects and the kind table.
