//! Databag schema of each interface, both sides.
