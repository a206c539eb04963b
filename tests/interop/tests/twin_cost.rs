//! One charm written twice, in Rust on this repository's library and in Python on `ops`, under one
//! simulator: both say the same, and what each of their hooks costs is shown as ratios.
//!
//! The times are printed, not asserted: they depend on the machine. What is asserted is that both
//! end in the same statuses, databags and results, and that the Rust one asks no more of Juju than
//! the task needs.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interop::charm_files::{pack_python, packed};
use interop::venv::{Venv, scripts};
use juju_sim::clock::SystemClock;
use juju_sim::cloud::NoCloud;
use juju_sim::record::HookRecord;
use juju_sim::{DeployRequest, Model, Options, RefreshRequest};
use serde_json::{Map, Value, json};
use testbed::tell;
use zip::write::SimpleFileOptions;

/// How many units tell their load.
const CROWD: u32 = 100;
/// How often each hook is measured.
const RUNS: usize = 5;

/// A charm with the declarations of both halves and a program without a task.
fn still(into: &Path) -> PathBuf {
    let folder = scripts().join("charms/twin");
    let path = into.join("still.charm");
    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let plain = SimpleFileOptions::default().unix_permissions(0o644);
    for name in [
        "metadata.yaml",
        "config.yaml",
        "actions.yaml",
        "manifest.yaml",
    ] {
        zip.start_file(name, plain).unwrap();
        zip.write_all(&fs::read(folder.join(name)).unwrap())
            .unwrap();
    }
    let options = SimpleFileOptions::default().unix_permissions(0o755);
    zip.start_file("dispatch", options).unwrap();
    zip.write_all(b"#!/bin/sh\n").unwrap();
    zip.finish().unwrap();
    path
}

struct Lab {
    model: Model,
    still: PathBuf,
    halves: [PathBuf; 2],
    relations: BTreeMap<&'static str, u32>,
}

/// The two halves, by the names they are deployed under.
const HALVES: [&str; 2] = ["rust", "python"];

impl Lab {
    fn new(dir: &Path) -> Self {
        let options = Options {
            jujuc: Some(env!("CARGO_BIN_EXE_simulator").into()),
            max_hooks: 10_000,
            ..Options::default()
        };
        let clock = Arc::new(SystemClock);
        let mut model = Model::open(&dir.join("model"), Arc::new(NoCloud), clock, options).unwrap();
        let venv = Venv::ready().unwrap();
        let crowd = pack_python("crowd", &venv).unwrap();
        let still = still(dir);
        model
            .deploy(&DeployRequest::new(crowd).with_units(CROWD))
            .unwrap();
        for name in HALVES {
            let request = DeployRequest::new(&still).named(name);
            model.deploy(&request).unwrap();
        }
        model.advance().unwrap();
        let rust = packed().unwrap().into_iter().find(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("twin_"))
        });
        let rust = rust.expect("the Rust half is not packed: run `cargo xtask pack`");
        let halves = [rust, pack_python("twin", &venv).unwrap()];
        Self {
            model,
            still,
            halves,
            relations: BTreeMap::new(),
        }
    }

    /// Exchanges the programs of both halves.
    fn play(&mut self, [rust, python]: [PathBuf; 2]) {
        for (app, path) in HALVES.into_iter().zip([rust, python]) {
            let request = RefreshRequest {
                charm: Some(path),
                ..RefreshRequest::default()
            };
            self.model.refresh(app, &request).unwrap();
        }
        self.model.advance().unwrap();
    }

    /// Relates both halves to the crowd. Meanwhile a program without a task stands in for them, as
    /// each is told of each unit of the crowd twice.
    fn relate(&mut self) {
        self.play([self.still.clone(), self.still.clone()]);
        for name in HALVES {
            let with = format!("{name}:load");
            let id = self.model.integrate("crowd:load", &with).unwrap();
            self.relations.insert(name, id);
        }
        self.model.advance().unwrap();
        self.play(self.halves.clone());
    }

    /// The last hook of a half.
    fn last(&self, app: &str) -> HookRecord {
        let unit = format!("{app}/0");
        let log = self.model.hook_log().unwrap();
        log.into_iter()
            .rev()
            .find(|hook| hook.unit == unit)
            .unwrap()
    }

    fn message(&self, app: &str) -> Value {
        let status = &self.model.status()["applications"][app]["application-status"];
        json!([status["current"], status["message"]])
    }

    /// Runs something for each half in turn and keeps the hook it led to.
    fn measure(&mut self, mut cause: impl FnMut(&mut Self, &str, usize)) -> [Cost; 2] {
        let mut hooks = [const { Vec::new() }; 2];
        for run in 0..RUNS {
            for (index, app) in HALVES.into_iter().enumerate() {
                cause(self, app, run);
                let hook = self.last(app);
                assert!(hook.ok, "{hook:?}\n{}", self.model.debug_log().unwrap());
                hooks[index].push(hook);
            }
        }
        assert_eq!(self.message("rust"), self.message("python"));
        hooks.map(|hooks| Cost::of(&hooks))
    }
}

/// Medians over several runs of one hook.
struct Cost {
    hook: String,
    wall_us: u64,
    cpu_us: u64,
    peak_kib: u64,
    calls: u64,
    bags: u64,
}

impl Cost {
    fn of(hooks: &[HookRecord]) -> Self {
        let median = |value: &dyn Fn(&HookRecord) -> u64| {
            let mut values: Vec<u64> = hooks.iter().map(value).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        let count = |hook: &HookRecord, tool: Option<&str>| {
            let calls = hook.calls.iter();
            calls
                .filter(|call| tool.is_none_or(|tool| call.tool == tool))
                .count() as u64
        };
        Self {
            hook: hooks[0].hook.clone(),
            wall_us: median(&|hook| hook.wall_us),
            cpu_us: median(&|hook| hook.cpu_us),
            peak_kib: median(&|hook| hook.peak_rss_kib),
            calls: median(&|hook| count(hook, None)),
            bags: median(&|hook| count(hook, Some("relation-get"))),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "ratios for people to read")]
fn show([rust, python]: &[Cost; 2], what: &str) {
    let row = |name: &str, cost: &Cost| {
        tell(&format!(
            "{name:<36}{:>9.1} ms{:>9.1} ms{:>9.1} MiB{:>8}",
            cost.wall_us as f64 / 1000.0,
            cost.cpu_us as f64 / 1000.0,
            cost.peak_kib as f64 / 1024.0,
            cost.calls
        ));
    };
    row(&format!("{what}: Python on ops"), python);
    row(&format!("{what}: Rust"), rust);
    let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
    tell(&format!(
        "{:<36}{:>11.1}x{:>10.1}x{:>11.1}x{:>8.1}",
        "ratio",
        ratio(python.wall_us, rust.wall_us),
        ratio(python.cpu_us, rust.cpu_us),
        ratio(python.peak_kib, rust.peak_kib),
        ratio(python.calls, rust.calls)
    ));
}

#[test]
fn the_same_charm_in_rust_and_on_ops_says_the_same_for_less() {
    let dir = tempfile::tempdir().unwrap();
    let mut lab = Lab::new(dir.path());
    tell(&format!(
        "{:<36}{:>12}{:>12}{:>13}{:>8}",
        "one charm written twice", "wall time", "processor", "peak memory", "tools"
    ));
    lab.play(lab.halves.clone());
    let idle = lab.measure(|lab, app, _| {
        lab.model.fire_update_status(app).unwrap();
        lab.model.advance().unwrap();
    });
    assert_eq!(idle[0].hook, "update-status");
    show(&idle, "update-status, nothing to do");

    lab.relate();
    let changed = lab.measure(|lab, app, run| {
        let script = format!("relation-set -r {} load={}", lab.relations[app], run + 2);
        lab.model.exec("crowd/7", &script).unwrap();
        lab.model.advance().unwrap();
    });
    assert_eq!(changed[0].hook, "load-relation-changed");
    let units = u64::from(CROWD);
    // One read for each remote unit, the remote application and the two databags of this side.
    assert_eq!(changed[0].bags, units + 3);
    show(&changed, &format!("relation-changed, {CROWD} units"));
    for app in HALVES {
        let bag = lab.model.databag(lab.relations[app], app).unwrap();
        let total = (CROWD - 1) as usize + RUNS + 1;
        assert_eq!(bag["total"], total.to_string());
    }

    let mut results = Vec::new();
    let acted = lab.measure(|lab, app, _| {
        let params = Map::from_iter([("times".to_owned(), json!(2))]);
        let task = lab.model.run(&format!("{app}/0"), "total", params).unwrap();
        assert_eq!(task.status, "completed", "{task:?}");
        results.push((task.results["total"].clone(), task.results["units"].clone()));
    });
    assert!(
        results.windows(2).all(|pair| pair[0] == pair[1]),
        "{results:?}"
    );
    show(&acted, &format!("action, {CROWD} units"));
}
