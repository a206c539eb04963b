//! Our objects for a gateway of the Gateway API, as they are, and what the gateway says of them.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::gateway_api::Gateway;
use istio_api::networking::EnvoyFilter;
use istio_api::security::AuthorizationPolicy;
use istio_api::{CustomObject, ObjectMeta};
use kube_apply::{Error, Object, ObjectRef};
use mesh::auth::guard_of_filter;
use mesh::routes::gateway_api::{
    self, LiveRoutes, guard_of_routes, object_names, routes_unguarded, shows_authorization,
};
use mesh::routes::{Edge, Route};
use serde_json::Value;

use super::choice::ApiChoice;
use super::wishes::parent;

/// Our objects for a gateway of the Gateway API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveApi {
    /// Our `Gateway`s.
    pub gateways: Vec<Gateway>,
    /// Our routes.
    pub routes: LiveRoutes,
    /// Our `ReferenceGrant`s.
    pub grants: BTreeSet<ObjectRef>,
    /// The filters that ask the authorizer.
    pub filters: Vec<EnvoyFilter>,
    /// The filters that answer at the charm's own paths.
    pub probes: Vec<EnvoyFilter>,
    /// The policies that deny everything.
    pub policies: Vec<AuthorizationPolicy>,
}

impl LiveApi {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether authorization was wanted when these were written.
    pub fn guarded(&self) -> bool {
        !self.filters.is_empty()
            || !self.probes.is_empty()
            || !self.policies.is_empty()
            || shows_authorization(&self.routes)
    }

    /// What routes ask for; see [`mesh::auth::GUARD_HEADER`].
    pub fn guards(&self) -> impl Iterator<Item = &str> {
        let filters = self.filters.iter().filter_map(guard_of_filter);
        filters.chain(guard_of_routes(&self.routes))
    }

    /// Whether routes lead to workloads without authorization.
    pub fn is_open(&self) -> bool {
        !routes_unguarded(&self.routes).0.is_empty()
    }

    /// The names of all of these.
    ///
    /// # Errors
    /// Never, but for an object without a name.
    pub fn ids(&self) -> Result<Vec<ObjectRef>, Error> {
        let gateways = self.gateways.iter().map(CustomObject::to_object);
        let http = self.routes.http.iter().map(CustomObject::to_object);
        let grpc = self.routes.grpc.iter().map(CustomObject::to_object);
        let filters = self.filters.iter().chain(&self.probes);
        let policies = self.policies.iter().map(CustomObject::to_object);
        let all = gateways
            .chain(http)
            .chain(grpc)
            .chain(filters.map(CustomObject::to_object))
            .chain(policies);
        let ids: Result<Vec<ObjectRef>, Error> = all
            .map(|value| Object::new(value).map(|o| o.id()))
            .collect();
        Ok(ids?
            .into_iter()
            .chain(self.grants.iter().cloned())
            .collect())
    }
}

/// What the gateway says of one of our routes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Acceptance {
    /// Whether it takes the route; `None` until it has said so.
    pub accepted: Option<bool>,
    /// What is wrong, in its words.
    pub wrong: Option<String>,
}

/// What the gateways say of routes, by the routes' kinds and names.
pub fn acceptances<'a>(
    routes: impl Iterator<Item = &'a Object>,
) -> BTreeMap<(String, String), Acceptance> {
    let key = |route: &Object| (route.kind().to_owned(), route.name().to_owned());
    routes
        .map(|route| (key(route), acceptance(route.value())))
        .collect()
}

fn acceptance(route: &Value) -> Acceptance {
    let generation = route["metadata"]["generation"].as_i64();
    let parents = route["status"]["parents"].as_array();
    let conditions = parents
        .into_iter()
        .flatten()
        .filter_map(|parent| parent["conditions"].as_array())
        .flatten()
        // What was said of an earlier state of the route does not count.
        .filter(|condition| {
            let observed = condition["observedGeneration"].as_i64();
            generation.is_none() || observed.is_none() || observed >= generation
        });
    let mut said = Acceptance::default();
    for condition in conditions {
        let holds = condition["status"] == "True";
        match condition["type"].as_str() {
            Some("Accepted") => said.accepted = Some(holds && said.accepted != Some(false)),
            Some("ResolvedRefs") => {}
            _ => continue,
        }
        if !holds {
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            said.wrong = Some(format!("{}: {}", text("reason"), text("message")));
        }
    }
    said
}

/// Those of `routes` that are live as they would be written for the gateway `choice`.
pub fn established(
    edge: &Edge,
    choice: &ApiChoice,
    routes: &[Route],
    live: &LiveApi,
) -> Vec<Route> {
    let grpc = choice.served.grpc.is_some();
    gateway_api::established(edge, &parent(choice), routes, grpc, &live.routes)
}

/// The kinds of our live objects that carry the routes of relations.
pub fn carried(
    edge: &Edge,
    routes: &[Route],
    live: &LiveApi,
) -> BTreeMap<u32, BTreeSet<&'static str>> {
    let name = |metadata: &ObjectMeta| metadata.name.clone().unwrap_or_default();
    let LiveRoutes { http, grpc } = &live.routes;
    let http: BTreeSet<String> = http.iter().map(|route| name(&route.metadata)).collect();
    let grpc: BTreeSet<String> = grpc.iter().map(|route| name(&route.metadata)).collect();
    let mut carried: BTreeMap<u32, BTreeSet<&'static str>> = BTreeMap::new();
    for route in routes {
        for name in object_names(edge, route) {
            for (kind, live) in [("HTTPRoute", &http), ("GRPCRoute", &grpc)] {
                if live.contains(&name) {
                    carried.entry(route.relation).or_default().insert(kind);
                }
            }
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_gateway_says_whether_it_takes_a_route() {
        let check = |conditions: Value, accepted: Option<bool>, wrong: Option<&str>| {
            let said = acceptance(&json!({
                "metadata": {"generation": 2},
                "status": {"parents": [{"conditions": conditions}]},
            }));
            assert_eq!((said.accepted, said.wrong.as_deref()), (accepted, wrong));
        };
        let condition = |kind: &str, status: &str, generation: i64| {
            json!({"type": kind, "status": status, "observedGeneration": generation,
                "reason": "Why", "message": "so"})
        };
        check(json!([]), None, None);
        check(json!([condition("Accepted", "True", 2)]), Some(true), None);
        check(json!([condition("Accepted", "True", 1)]), None, None);
        check(
            json!([
                condition("Accepted", "False", 2),
                condition("ResolvedRefs", "True", 2)
            ]),
            Some(false),
            Some("Why: so"),
        );
        check(
            json!([
                condition("Accepted", "True", 2),
                condition("ResolvedRefs", "False", 2)
            ]),
            Some(true),
            Some("Why: so"),
        );
    }
}
