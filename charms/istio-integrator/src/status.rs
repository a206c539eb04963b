//! Status and databags, from what was applied and what is wrong. Pure.

use std::collections::BTreeMap;

use juju_charm::{Databag, LocalData, ModelView, Outcome, Problem, RelationId, StatusMessage};
use mesh::auth::AuthState;
use relations::{GatewayInfo, TraefikReply, ingress, ingress_auth, sdi};

use crate::pass::Done;
use crate::validate::{Target, Validated};

/// What this hook tells Juju.
pub fn outcome(
    view: &ModelView,
    validated: &Validated,
    applied: Option<&Done>,
    problems: &[Problem],
) -> Outcome {
    let mut problems = problems.to_vec();
    if let Some(done) = applied {
        problems.extend(problems_of(view, validated, done));
    }
    let mut outcome = match (&validated.target, applied) {
        (_, Some(done)) => Outcome::from_problems(view, serving(validated, done), &problems),
        (Some(_), None) if !view.leader && problems.is_empty() => {
            Outcome::status(view, StatusMessage::active("standby: the leader acts"))
        }
        _ => Outcome::from_problems(view, "", &problems),
    };
    outcome.databags = databags(view, validated, applied);
    outcome
}

/// What Juju is told if the cluster could not be read. What requirers need before anything else
/// does not depend on it.
pub fn unobserved(view: &ModelView, problem: Problem) -> Outcome {
    let mut outcome = Outcome::from_problems(view, "", &[problem]);
    outcome.databags = versions(view);
    outcome
}

fn serving(validated: &Validated, done: &Done) -> String {
    let count = done.served.len();
    let routes = if count == 1 {
        "1 route".to_owned()
    } else {
        format!("{count} routes")
    };
    let target = validated
        .target
        .as_ref()
        .and_then(|target| target.base_url.as_deref());
    let auth = if done.state == AuthState::InForce {
        ", authorization in force"
    } else {
        ""
    };
    match target {
        Some(url) => format!("{routes} at {url}{auth}"),
        None => format!("{routes}{auth}"),
    }
}

/// What keeps the applied objects from serving.
fn problems_of(view: &ModelView, validated: &Validated, done: &Done) -> Vec<Problem> {
    let app = view.context.app.as_str();
    let mut problems: Vec<Problem> = done
        .applied
        .conflicts
        .iter()
        .map(|conflict| Problem::blocked(format!("{conflict}, left as it is")))
        .collect();
    problems.extend(done.applied.not_permitted.iter().map(|kind| {
        Problem::blocked(format!("not permitted to list {kind}"))
            .with_hint(format!("juju trust {app} --scope=cluster"))
    }));
    if validated.target.is_none() && validated.auth.wanted {
        problems.push(Problem::waiting(
            "no gateway is clear: routes without authorization are taken down",
        ));
        return problems;
    }
    // Without a known authorizer, the reason has been told already.
    if validated.auth.authorizer.is_some() {
        match done.state {
            AuthState::Off | AuthState::InForce => {}
            AuthState::Denied => problems.push(Problem::waiting(
                "authorization is not proven in force yet: all requests are denied",
            )),
            AuthState::Unproven => problems.push(Problem::waiting(
                "neither authorization nor its DENY policy is proven in force: new routes wait",
            )),
        }
    }
    problems
}

fn databags(
    view: &ModelView,
    validated: &Validated,
    applied: Option<&Done>,
) -> BTreeMap<RelationId, LocalData> {
    let mut databags = versions(view);
    for relation in view.relations_of("ingress") {
        let Some(state) = validated.ingresses.get(&relation.id) else {
            continue;
        };
        if state.dialect == Some("kubeflow") {
            continue;
        }
        let reply = match (applied, &validated.target) {
            // Refused or gone: what was published is not true any more.
            _ if state.problem.is_some() => Some(String::new()),
            (Some(done), target) if done.served.contains(&relation.id.0) => target
                .as_ref()
                .and_then(|target| url(target, validated, relation.id)),
            (Some(_), _) => Some(String::new()),
            _ => None,
        };
        if let Some(url) = reply {
            let entry = if url.is_empty() {
                Databag::from([(ingress::REPLY_KEY.to_owned(), String::new())])
            } else {
                TraefikReply { url }.encode()
            };
            databags.entry(relation.id).or_default().app.extend(entry);
        }
    }
    if let (Some(_), Some(target)) = (applied, &validated.target) {
        let info = GatewayInfo {
            gateway_name: target.settings.gateway_name.clone(),
            gateway_namespace: view.context.model_name.to_string(),
            gateway_up: target.ready && target.base_url.is_some(),
        };
        for relation in view.relations_of("gateway-info") {
            databags
                .entry(relation.id)
                .or_default()
                .app
                .extend(info.encode());
        }
    }
    databags
}

/// The URL of a relation's route; `None` while the gateway has no address, and then what was
/// published stays.
pub fn url(target: &Target, validated: &Validated, id: RelationId) -> Option<String> {
    let route = validated
        .routes
        .iter()
        .find(|route| route.relation == id.0)?;
    let base = target.base_url.as_ref()?;
    Some(format!("{base}{}", route.prefix))
}

/// The versions of serialized-data-interface, which come first and depend on nothing.
fn versions(view: &ModelView) -> BTreeMap<RelationId, LocalData> {
    let endpoints = [
        ("ingress", ingress::VERSIONS),
        ("ingress-auth", ingress_auth::VERSIONS),
    ];
    let mut databags = BTreeMap::new();
    for (endpoint, versions) in endpoints {
        for relation in view.relations_of(endpoint) {
            let data = LocalData {
                app: sdi::versions(versions),
                unit: Databag::new(),
            };
            databags.insert(relation.id, data);
        }
    }
    databags
}
