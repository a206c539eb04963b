//! A charm on this library that keeps one secret and shares it: the process that tests of secrets
//! deploy. Option `password` is its content, option `sharing` whether related ones may read it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::ExitCode;

use juju_charm::{ActionOutcome, Charm, ModelView, NoWorld, Outcome, OwnSecret, Problem};

struct Keeper;

impl Charm for Keeper {
    const METADATA: &'static str = include_str!("keeper.yaml");
    type Fx = NoWorld;
    type Validated = ();

    fn query(_: &ModelView) {}

    fn validate(_: &ModelView, (): &()) -> ((), Vec<Problem>) {
        ((), Vec::new())
    }

    fn desired(_: &ModelView, (): &(), (): &()) -> Option<()> {
        None
    }

    fn outcome(
        view: &ModelView,
        (): &(),
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        problems: &[Problem],
    ) -> Outcome {
        let mut outcome = Outcome::from_problems(view, "", problems);
        let password = view.config.str("password").filter(|text| !text.is_empty());
        let content = password.map(|text| ("password".to_owned(), text.to_owned()));
        let sharing = view.config.bool("sharing") == Some(true);
        let readers = view.relations_of("readers").filter(|_| sharing);
        let secret = OwnSecret {
            content: content.into_iter().collect::<BTreeMap<_, _>>().into(),
            shared: readers.map(|r| (r.id, "credentials".to_owned())).collect(),
            ..OwnSecret::default()
        };
        outcome.secrets.insert("kept".to_owned(), secret);
        outcome
    }

    fn action(
        _: &ModelView,
        (): &(),
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        _: &[Problem],
    ) -> ActionOutcome {
        ActionOutcome::ok(BTreeMap::new())
    }
}

fn main() -> ExitCode {
    juju_charm::run::<Keeper>(NoWorld::connect)
}
