//! Charm: runs Istio for its whole life.
