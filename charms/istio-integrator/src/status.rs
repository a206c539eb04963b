//! Status, from what was applied and what is wrong. Pure.

use juju_charm::{ModelView, Outcome, Problem, StatusMessage};
use mesh::auth::AuthState;

use crate::pass::Done;
use crate::replies;
use crate::validate::Validated;

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
    outcome.databags = replies::databags(view, validated, applied);
    outcome
}

/// What Juju is told if the cluster could not be read. What requirers need before anything else
/// does not depend on it.
pub fn unobserved(view: &ModelView, problem: Problem) -> Outcome {
    let mut outcome = Outcome::from_problems(view, "", &[problem]);
    outcome.databags = replies::versions(view);
    outcome
}

fn serving(validated: &Validated, done: &Done) -> String {
    let placed = validated.routes.iter();
    let count = placed
        .filter(|route| done.served.contains(&route.relation))
        .count();
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
    problems.extend(done.refused.iter().cloned());
    if validated.target.is_none() && validated.auth.wanted {
        problems.push(Problem::waiting(
            "no gateway is clear: routes without authorization are taken down",
        ));
        return problems;
    }
    // Without a known authorizer, the reason has been told already.
    if validated.auth.gate.is_some() {
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
