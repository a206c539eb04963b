//! A charm on this library with a workload container: the process that tests of containers deploy.
//! Option `command` is what its service runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::ExitCode;

use juju_charm::{
    ActionOutcome, Charm, EffectError, Effects, ModelView, Outcome, Problem, Progress,
};
use juju_hooks::pebble::{Pebble, PebbleError};
use serde_json::json;

/// The container.
struct Web(Pebble);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Failure(PebbleError);

impl EffectError for Failure {
    fn problem(&self) -> Option<Problem> {
        Some(match &self.0 {
            PebbleError::Unreachable { .. } => Problem::waiting("the container is not up"),
            other => Problem::blocked(other.to_string().lines().next().unwrap_or_default()),
        })
    }
}

impl Effects for Web {
    type Query = ();
    type View = ();
    type Objects = String;
    /// How the service is.
    type Applied = String;
    type Plan = ();
    type Work = Infallible;
    type Done = Infallible;
    type Error = Failure;

    async fn observe(&self, (): ()) -> Result<(), Failure> {
        Ok(())
    }

    async fn apply(&self, command: String) -> Result<String, Failure> {
        let service = json!({"override": "replace", "command": command, "startup": "enabled"});
        let check = json!({"override": "replace", "exec": {"command": "check"}});
        let layer = json!({"services": {"web": service}, "checks": {"alive": check}});
        self.0.add_layer("tender", &layer).map_err(Failure)?;
        self.0.replan().map_err(Failure)?;
        let services = self.0.services().map_err(Failure)?;
        Ok(services
            .get("web")
            .map_or_else(String::new, |web| web.current.clone()))
    }

    async fn plan(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }

    async fn work(&self, work: Infallible, _: &dyn Progress) -> Result<Infallible, Failure> {
        match work {}
    }
}

struct Tender;

impl Charm for Tender {
    const METADATA: &'static str = include_str!("tender.yaml");
    type Fx = Web;
    type Validated = ();

    fn query(_: &ModelView) {}

    fn validate(_: &ModelView, (): &()) -> ((), Vec<Problem>) {
        ((), Vec::new())
    }

    fn desired(view: &ModelView, (): &(), (): &()) -> Option<String> {
        view.config.str("command").map(str::to_owned)
    }

    fn outcome(
        view: &ModelView,
        (): &(),
        (): &(),
        applied: Option<&String>,
        _: Option<&Infallible>,
        problems: &[Problem],
    ) -> Outcome {
        let web = applied.map_or_else(String::new, |current| format!("web is {current}"));
        Outcome::from_problems(view, web, problems)
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
    juju_charm::run::<Tender>(|context| Ok(Web(Pebble::of_container(context, "web"))))
}
