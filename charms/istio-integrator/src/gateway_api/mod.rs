//! Gateways of the Gateway API: which one is meant, what it takes, and what is written for it. Pure.
//!
//! The rest of the charm sees such a gateway as any other workload: istiod makes one of it, with pods
//! that carry its name. What differs is here: a `Gateway` may be our own, routes are
//! `HTTPRoute`s and `GRPCRoute`s, the gateway says whether it accepts them, and authorization is always asked by
//! a filter (policies of extension providers know paths only, and tokens are no condition of the API's).

mod choice;
mod live;
pub(crate) mod observed;
mod pass;
mod serve;
mod wishes;

pub use choice::{ApiChoice, Facts, RouteApi, Served, choose};
pub use live::{Acceptance, LiveApi, acceptances, carried, established};
pub(crate) use pass::{close_routes, keep, pass};
pub use serve::{ServeApi, serve};
pub(crate) use wishes::{adapt_auth, problems, refuse};

#[cfg(test)]
mod tests;
