//! Room for the migration of a running Istio from one charm, or one namespace, to another.
//!
//! Nothing is here yet. The shape is decided (`docs/explanation/architecture.md`): inventory, plan,
//! execution, verification, each step repeatable and checked.
