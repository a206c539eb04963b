//! Deferral, which this library has no need of, in charms on `ops` under the simulator.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use interop::charm_files::pack_python;
use interop::venv::Venv;
use juju_sim::clock::ManualClock;
use juju_sim::cloud::NoCloud;
use juju_sim::{DeployRequest, Model, Options};
use serde_json::{Map, Value};
use tempfile::TempDir;

struct Lab {
    model: Model,
    _dir: TempDir,
}

impl Lab {
    /// A charm that defers update-status, after so many of them.
    fn wavering(times: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            jujuc: Some(env!("CARGO_BIN_EXE_simulator").into()),
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::at(1_800_000_000));
        let mut model = Model::open(dir.path(), Arc::new(NoCloud), clock, options).unwrap();
        let path = pack_python("waverer", &Venv::ready().unwrap()).unwrap();
        model.deploy(&DeployRequest::new(path)).unwrap();
        model.advance().unwrap();
        let mut lab = Self { model, _dir: dir };
        for _ in 0..times {
            lab.update();
        }
        lab
    }

    fn update(&mut self) {
        self.model.fire_update_status("waverer").unwrap();
        self.model.advance().unwrap();
        let log = self.model.hook_log().unwrap();
        let last = log.last().unwrap();
        assert!(last.ok, "{last:?}\n{}", self.model.debug_log().unwrap());
    }

    /// Sets an option; config-changed then brings back what was deferred.
    fn set(&mut self, option: &str) {
        let value = BTreeMap::from([(option.to_owned(), Value::from("true"))]);
        self.model.set_config("waverer", &value).unwrap();
        self.model.advance().unwrap();
    }

    /// What was handled, and how many events are deferred.
    fn told(&mut self) -> (String, String) {
        let task = self.model.run("waverer/0", "told", Map::new()).unwrap();
        assert_eq!(task.status, "completed", "{task:?}");
        let text = |key: &str| task.results[key].as_str().unwrap().to_owned();
        (text("handled"), text("deferred"))
    }
}

fn pair(handled: &str, deferred: &str) -> (String, String) {
    (handled.to_owned(), deferred.to_owned())
}

#[test]
fn the_same_event_deferred_again_and_again_is_kept_once() {
    let mut lab = Lab::wavering(3);
    assert_eq!(lab.told(), pair("nothing", "1"));
    lab.set("ready");
    assert_eq!(lab.told(), pair("update-status,decided", "0"));
}

#[test]
fn a_deferred_event_whose_observer_is_gone_is_dropped() {
    let mut lab = Lab::wavering(1);
    assert_eq!(lab.told(), pair("nothing", "1"));
    lab.set("blind");
    lab.update();
    let (handled, _) = lab.told();
    assert_eq!(handled, "nothing");
}

#[test]
fn an_event_emitted_while_deferred_ones_come_again_is_not_lost() {
    let mut lab = Lab::wavering(1);
    lab.set("ready");
    lab.update();
    let handled = "update-status,decided,update-status,decided";
    assert_eq!(lab.told(), pair(handled, "0"));
}
