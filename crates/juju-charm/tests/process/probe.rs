//! A charm without a cluster whose option `mode` decides how it ends.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::ExitCode;

use juju_charm::{
    ActionOutcome, Charm, EffectError, Effects, ModelView, Outcome, Problem, Progress,
};

#[derive(Debug, thiserror::Error)]
#[error("nobody thought of mode {0}")]
struct Unforeseen(String);

impl EffectError for Unforeseen {
    fn problem(&self) -> Option<Problem> {
        None
    }
}

#[derive(Debug)]
struct NoCluster;

impl Effects for NoCluster {
    type Query = Option<String>;
    type View = ();
    type Objects = ();
    type Applied = ();
    type Plan = ();
    type Work = Infallible;
    type Done = Infallible;
    type Error = Unforeseen;

    async fn observe(&self, mode: Option<String>) -> Result<(), Unforeseen> {
        match mode {
            Some(mode) if mode == "bug" => Err(Unforeseen(mode)),
            _ => Ok(()),
        }
    }

    async fn apply(&self, (): ()) -> Result<(), Unforeseen> {
        tracing::info!("applied");
        tracing::info!(objects = 0, "counted");
        Ok(())
    }

    async fn plan(&self, (): ()) -> Result<(), Unforeseen> {
        Ok(())
    }

    async fn work(&self, work: Infallible, _: &dyn Progress) -> Result<Infallible, Unforeseen> {
        match work {}
    }
}

struct Probe;

impl Charm for Probe {
    const METADATA: &'static str = "name: probe\nconfig: {options: {mode: {type: string}}}\n";
    type Fx = NoCluster;
    type Validated = ();

    fn query(view: &ModelView) -> Option<String> {
        view.config.str("mode").map(str::to_owned)
    }

    fn validate(view: &ModelView, (): &()) -> ((), Vec<Problem>) {
        assert_ne!(view.config.str("mode"), Some("panic"), "the option said so");
        ((), Vec::new())
    }

    fn desired(_: &ModelView, (): &(), (): &()) -> Option<()> {
        Some(())
    }

    fn outcome(
        view: &ModelView,
        (): &(),
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        problems: &[Problem],
    ) -> Outcome {
        Outcome::from_problems(view, "", problems)
    }

    fn action(
        view: &ModelView,
        (): &(),
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        _: &[Problem],
    ) -> ActionOutcome {
        let unit = view.context.unit.to_string();
        ActionOutcome::ok(BTreeMap::from([("unit".to_owned(), unit)]))
    }
}

fn main() -> ExitCode {
    juju_charm::run::<Probe>(|_| Ok(NoCluster))
}
