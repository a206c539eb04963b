//! From ingress requests to a `Gateway` and `VirtualService`s.
//!
//! Invariants: a prefix matches at segment borders (`/app` matches `/app` and `/app/x`, not
//! `/appendix`); the longest prefix wins wherever it comes from; of two requests for one prefix the
//! one with the lower relation id keeps it; a request that cannot be served is a [`RouteProblem`] and
//! leaves the others as they are. Everything written was checked first: the objects are shared, so
//! one bad field would take all routes down with it.

mod objects;
mod prefix;

use std::collections::BTreeMap;

use crate::name::check_label;

pub use objects::{
    Edge, MAX_ROUTES_PER_OBJECT, established, gateway, networking_version, rules, security_version,
    virtual_services,
};
pub use prefix::{InvalidPrefix, Prefix, RESERVED_PREFIX};

/// Where requests go: a Service port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Backend {
    /// Name of the Service.
    pub service: String,
    /// Its namespace.
    pub namespace: String,
    /// Its port.
    pub port: u16,
}

impl Backend {
    /// The Service's full name, independent of the namespace it is resolved in.
    pub fn host(&self) -> String {
        format!("{}.{}.svc.cluster.local", self.service, self.namespace)
    }
}

/// One relation's wish, not yet checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RouteRequest {
    /// Relation id: the lower claims first.
    pub relation: u32,
    /// The related application, for messages.
    pub app: String,
    /// Path prefix to serve.
    pub prefix: String,
    /// What the prefix becomes at the backend; `None`: it stays.
    pub rewrite: Option<String>,
    /// Where to.
    pub backend: Backend,
}

/// A checked route.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Route {
    /// Relation id.
    pub relation: u32,
    /// The related application.
    pub app: String,
    /// The path prefix served.
    pub prefix: Prefix,
    /// What it becomes at the backend.
    pub rewrite: Prefix,
    /// Where to.
    pub backend: Backend,
}

/// Why a request gets no route.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RouteProblem {
    /// The prefix cannot be served.
    #[error("prefix {0:?} {1}")]
    Prefix(String, InvalidPrefix),
    /// The rewrite cannot be used.
    #[error("rewrite {0:?} {1}")]
    Rewrite(String, InvalidPrefix),
    /// The Service's name or namespace is none.
    #[error("{what} {name:?} {why}")]
    Backend {
        /// `service` or `namespace`.
        what: &'static str,
        /// The offending name.
        name: String,
        /// Why it is none.
        why: crate::InvalidName,
    },
    /// Another relation has claimed the prefix.
    #[error("prefix {prefix} is taken by {holder}")]
    Taken {
        /// The prefix.
        prefix: Prefix,
        /// The application that keeps it.
        holder: String,
    },
}

/// The routes that can be served, longest prefix first, and what is wrong with the others, by
/// relation id.
pub fn routes(requests: &[RouteRequest]) -> (Vec<Route>, BTreeMap<u32, RouteProblem>) {
    let mut by_claim: Vec<&RouteRequest> = requests.iter().collect();
    by_claim.sort_by_key(|request| request.relation);
    let mut claimed: BTreeMap<Prefix, Route> = BTreeMap::new();
    let mut problems = BTreeMap::new();
    for request in by_claim {
        match checked(request) {
            Err(problem) => {
                problems.insert(request.relation, problem);
            }
            Ok(route) => match claimed.get(&route.prefix) {
                Some(holder) => {
                    let taken = RouteProblem::Taken {
                        prefix: route.prefix,
                        holder: holder.app.clone(),
                    };
                    problems.insert(route.relation, taken);
                }
                None => {
                    claimed.insert(route.prefix.clone(), route);
                }
            },
        }
    }
    let mut routes: Vec<Route> = claimed.into_values().collect();
    routes.sort_by(|a, b| {
        b.prefix
            .as_str()
            .len()
            .cmp(&a.prefix.as_str().len())
            .then(a.prefix.cmp(&b.prefix))
    });
    (routes, problems)
}

fn checked(request: &RouteRequest) -> Result<Route, RouteProblem> {
    let prefix: Prefix = request
        .prefix
        .parse()
        .map_err(|why| RouteProblem::Prefix(request.prefix.clone(), why))?;
    if prefix.is_reserved() {
        return Err(RouteProblem::Prefix(
            request.prefix.clone(),
            InvalidPrefix::Reserved,
        ));
    }
    let rewrite = match &request.rewrite {
        None => prefix.clone(),
        Some(text) => text
            .parse()
            .map_err(|why| RouteProblem::Rewrite(text.clone(), why))?,
    };
    let backend = &request.backend;
    for (what, name) in [
        ("service", &backend.service),
        ("namespace", &backend.namespace),
    ] {
        check_label(name).map_err(|why| RouteProblem::Backend {
            what,
            name: name.clone(),
            why,
        })?;
    }
    Ok(Route {
        relation: request.relation,
        app: request.app.clone(),
        prefix,
        rewrite,
        backend: backend.clone(),
    })
}

#[cfg(test)]
mod tests;
