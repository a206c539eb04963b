//! Moves a running Istio from one charm or namespace to another, without losing an object.
//!
//! `inventory` reads the cluster once into a [`Snapshot`]; [`plan`] turns a snapshot and a
//! [`Request`] into a [`Plan`], steps as data; an executor takes the steps one after the other
//! and keeps its place in the cluster, so that anybody can go on, or back.
//!
//! # Invariants
//! * A plan is a function of snapshot and request: the same two give the same bytes.
//! * What makes a move unsafe is refused before the first write.
//! * Every effect and every undo may be done twice; a call may be cut off anywhere.
//! * Definitions (CRDs) are never deleted, and while a migration runs nobody else can delete them.
//! * Contents of Secrets are in no snapshot, plan, journal, report or error: a root of trust is known
//!   by its fingerprint.

pub mod api;
pub mod execute;
pub mod inventory;
pub mod plan;
pub mod report;
pub mod webhooks;

pub use api::Api;
pub use execute::{Executor, Failure, Progress, Stand};
pub use inventory::Snapshot;
pub use plan::{Plan, Refusal, Request, plan};
