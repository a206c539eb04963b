//! Charm `greeter`: says a greeting to related applications.
//!
//! Every hook runs all functions of [`Greeter`] from scratch. They are pure: what they are given is
//! all that Juju knows, and what they return is all that Juju is told.

use std::collections::BTreeMap;
use std::convert::Infallible;

use juju_charm::{
    ActionOutcome, Charm, LocalData, ModelView, NoWorld, Outcome, Problem, TypedError,
};
use serde::{Deserialize, Serialize};

/// The charm.
#[derive(Debug)]
pub struct Greeter;

/// The config options.
#[derive(Debug, Clone, Deserialize)]
pub struct Settings {
    /// What is said.
    pub words: String,
    /// How often.
    pub times: usize,
}

/// Parameters of action `greet`.
#[derive(Debug, Clone, Deserialize)]
pub struct Greet {
    /// Who is greeted.
    pub name: String,
}

/// Results of action `greet`.
#[derive(Debug, Clone, Serialize)]
struct Greeted {
    greeting: String,
}

impl Settings {
    const MOST: usize = 9;

    fn greeting(&self) -> String {
        vec![self.words.as_str(); self.times].join(" ")
    }
}

impl Charm for Greeter {
    const METADATA: &'static str = include_str!("../charmcraft.yaml");

    type Fx = NoWorld;
    /// The settings, unless they are wrong.
    type Validated = Option<Settings>;

    fn query(_: &ModelView) {}

    fn validate(view: &ModelView, (): &()) -> (Option<Settings>, Vec<Problem>) {
        let app = &view.context.app;
        match view.config.read::<Settings>() {
            Err(error) => (None, vec![error.config_problem(app.as_str())]),
            Ok(settings) if settings.times == 0 || settings.times > Settings::MOST => {
                let error = TypedError {
                    key: Some("times".to_owned()),
                    reason: format!("{} is not between 1 and {}", settings.times, Settings::MOST),
                };
                (None, vec![error.config_problem(app.as_str())])
            }
            Ok(settings) => (Some(settings), Vec::new()),
        }
    }

    fn desired(_: &ModelView, _: &Option<Settings>, (): &()) -> Option<()> {
        None
    }

    fn outcome(
        view: &ModelView,
        settings: &Option<Settings>,
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        problems: &[Problem],
    ) -> Outcome {
        let mut outcome = Outcome::from_problems(view, "", problems);
        let Some(settings) = settings else {
            return outcome;
        };
        for relation in view.relations_of("greeting") {
            let data = LocalData {
                app: BTreeMap::from([("greeting".to_owned(), settings.greeting())]),
                unit: BTreeMap::new(),
            };
            outcome.databags.insert(relation.id, data);
        }
        outcome
    }

    fn action(
        view: &ModelView,
        settings: &Option<Settings>,
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        problems: &[Problem],
    ) -> ActionOutcome {
        let why = || problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (Some(call), Some(settings)) = (&view.action, settings) else {
            return ActionOutcome::failed(why().join("; "), BTreeMap::new());
        };
        let answer = call.read::<Greet>().and_then(|greet| {
            ActionOutcome::of(&Greeted {
                greeting: format!("{} {}", settings.greeting(), greet.name),
            })
        });
        answer.unwrap_or_else(|error| ActionOutcome::failed(error.to_string(), BTreeMap::new()))
    }
}
