//! From ingress requests to a `Gateway` and `VirtualService`s.
//!
//! Invariants: a prefix matches at segment borders (`/app` matches `/app` and `/app/x`, not
//! `/appendix`); the more special condition wins wherever it comes from; of two relations that ask for
//! the same path of a host the one with the lower id keeps it; a request that cannot be served is a [`RouteProblem`]
//! and leaves the others as they are. Everything written was checked first: the objects are shared,
//! so one bad field would take all routes down with it.

mod check;
mod claims;
pub mod gateway_api;
mod model;
mod objects;
mod pattern;
mod prefix;
mod rules;

pub use check::is_host;
pub use claims::{OwnHosts, RouteKey, routes, routes_at};
pub use model::{
    Action, ActionRequest, Backend, Match, MatchRequest, Path, PathChange, PathRequest, Rewrite,
    Route, RouteProblem, RouteRequest, Weighted,
};
pub use objects::{
    Edge, Tls, Tokens, client_protocol_rules, established, gateway, hosts, networking_version,
    security_version, short_hash, virtual_services,
};
pub use pattern::{InvalidPattern, Pattern};
pub use prefix::{InvalidPrefix, Prefix, RESERVED_PREFIX};
pub use rules::rules;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_fields;
#[cfg(test)]
mod tests_pitfalls;
