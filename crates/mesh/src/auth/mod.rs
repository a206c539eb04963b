//! Authorization at the gateway by an external service, failing closed.
//!
//! Two objects stand in the gateway workload's namespace. An `EnvoyFilter` asks the authorizer about
//! every request, on every listener. A DENY `AuthorizationPolicy` refuses everything while the first
//! is not *proven* in force. Proof is an unauthenticated request to [`PROBE_PATH`] on each ready
//! gateway pod: a route there answers by itself, so whatever else answers stands in front of it.
//!
//! What reaches a workload also depends on the filter being there at all: its routes match only with
//! the header [`GUARD_HEADER`], which the filter's object sets on every request that comes in, and with
//! a value that clients do not know: it is random, and stands in the objects themselves, where whoever
//! may read `EnvoyFilter`s and `VirtualService`s can read it. So a filter that somebody deletes takes the routes with it, and so
//! connections that are older than the filter, which Envoy serves with its old filters until they
//! are drained, find no route.
//!
//! Where the mesh config has an extension provider for the authorizer, a CUSTOM policy asks instead of
//! the filter ([`Mechanism`]); then Istio asks before it looks at DENY policies, and a policy that
//! somebody deletes is noticed by the next hook only. Tokens need no proof: see [`TokenRule`].
//!
//! The filter comes right before Envoy's router: nothing can reach a workload past it, it sees the
//! request as the router will, and the DENY policy, which Istio puts earlier, can be proven on its
//! own. (Envoy's external authorization does not run where no route matches, hence the route.)

mod custom;
mod gate;
mod objects;
mod probe;
mod state;
mod tokens;

pub use custom::{Unasked, covered_elsewhere, custom_policy, is_open_by_path};
pub use gate::{Gate, Mechanism, unmarked};
pub(crate) use objects::own_rules;
pub use objects::{
    Authorizer, GUARD_HEADER, InvalidAuthorizer, deny_policy, envoy_filter, guard_of_filter,
    guard_of_routes, open_route_name, probe_virtual_service, routes_unguarded, shows_authorization,
};
pub use probe::{Answer, DENIED_PATH, Evidence, PROBE_BODY, PROBE_PATH, PodEvidence, read_answer};
pub use state::{
    AuthMode, AuthState, Ease, FilterStep, LiveFilter, Scope, Situation, Step, step, wanted,
};
pub use tokens::{
    ISSUER_CLAIM, InvalidToken, TokenRule, issuer_conditions, request_authentication,
};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_gate;
