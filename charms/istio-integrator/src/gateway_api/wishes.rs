//! What related applications ask for, as far as the Gateway API can say it.

use std::collections::BTreeMap;

use juju_charm::{Problem, RelationId};
use mesh::routes::gateway_api::{MAX_OPEN_RULES, Parent, object_names, preferred, refusal};
use mesh::routes::{Edge, Route};

use super::choice::ApiChoice;
use super::live::Acceptance;
use crate::auth::{Auth, TOKENS};
use crate::ingress::IngressState;
use crate::observe::View;

/// What routes are attached to.
pub(crate) fn parent(choice: &ApiChoice) -> Parent {
    Parent {
        namespace: choice.gateway.workload.namespace.clone(),
        name: choice.gateway.name.clone(),
        own: choice.own,
    }
}

/// Authorization as such a gateway can have it: a filter asks. Tokens are no condition there, so
/// nobody passes by one.
pub(crate) fn adapt_auth(auth: &mut Auth, cluster: &View, problems: &mut Vec<Problem>) {
    let Some(gate) = &mut auth.gate else { return };
    gate.provider = None;
    if !gate.tokens.is_empty() {
        gate.tokens.clear();
        problems.push(Problem::blocked(format!(
            "no token passes: routes of the Gateway API cannot tell those of {TOKENS}"
        )));
    }
    if gate.mechanism().is_none() {
        auth.gate = None;
        auth.guard = Some(cluster.guard.clone());
        return;
    }
    auth.guard = Some(gate.guard(&cluster.guard));
}

/// Takes out what the API cannot say; the relation is told, with the field.
pub(crate) fn refuse(
    routes: &mut Vec<Route>,
    states: &mut BTreeMap<RelationId, IngressState>,
    problems: &mut Vec<Problem>,
) {
    let mut kept = Vec::new();
    for route in routes.drain(..) {
        let Some(refusal) = refusal(&route) else {
            kept.push(route);
            continue;
        };
        tell(states, problems, &route, &refusal.to_string());
    }
    *routes = kept;
}

/// What is wrong with the routes on this gateway, in its words and in ours.
pub(crate) fn problems(
    edge: &Edge,
    choice: &ApiChoice,
    cluster: &View,
    auth: &Auth,
    routes: &[Route],
    states: &mut BTreeMap<RelationId, IngressState>,
    problems: &mut Vec<Problem>,
) {
    let parent = parent(choice);
    let open: usize = routes
        .iter()
        .filter(|route| route.open)
        .map(|route| route.matches.len())
        .sum();
    if auth.wanted && open > MAX_OPEN_RULES {
        problems.push(Problem::blocked(format!(
            "{open} open conditions are more than {MAX_OPEN_RULES}: the rest is asked about"
        )));
    }
    for route in routes {
        if let Some(other) = preferred(edge, route, routes) {
            let app = &other.app;
            problems.push(Problem::blocked(format!(
                "route {} of {}: the Gateway API asks a prefix of {app} before its expression",
                route.name, route.app
            )));
        }
        let names = object_names(edge, route);
        let said = names.iter().filter_map(|name| {
            let of = |kind: &str| cluster.acceptances.get(&(kind.to_owned(), name.clone()));
            of("HTTPRoute").or_else(|| of("GRPCRoute"))
        });
        let Some(Acceptance {
            accepted,
            wrong: Some(wrong),
        }) = said.into_iter().find(|said| said.wrong.is_some())
        else {
            continue;
        };
        let wrong = format!("gateway {}/{}: {wrong}", parent.namespace, parent.name);
        if *accepted == Some(false) {
            tell(states, problems, route, &wrong);
        } else {
            problems.push(Problem::waiting(format!("{}: {wrong}", route.app)));
        }
    }
}

fn tell(
    states: &mut BTreeMap<RelationId, IngressState>,
    problems: &mut Vec<Problem>,
    route: &Route,
    why: &str,
) {
    let Some(state) = states.get_mut(&RelationId(route.relation)) else {
        return;
    };
    let message = if route.name.is_empty() {
        why.to_owned()
    } else {
        format!("route {}: {why}", route.name)
    };
    problems.push(Problem::blocked(format!(
        "{} of {}: {message}",
        state.endpoint, state.app
    )));
    state.problem.get_or_insert(message);
}
