//! Moves a running Istio from one charm or namespace to another.
