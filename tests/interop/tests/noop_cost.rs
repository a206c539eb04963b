//! What a hook costs that changes nothing: istio-k8s on a settled control plane, beside a Python
//! charm that builds its Kubernetes client and does nothing more, in one model on one API server.
//!
//! The numbers are printed, not asserted: they depend on the machine. What is asserted is that the
//! hook asked the API server for no change.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use anyhow::Result;
use interop::charm_files::{pack_python, packed};
use interop::played_istiod::PlayedIstiod;
use interop::venv::Venv;
use juju_sim::clock::SystemClock;
use juju_sim::record::HookRecord;
use juju_sim::{DeployRequest, Model, Options};
use testbed::{Api, Beside, ControlPlane, RealCloud, V1_31, audit};

/// How often each hook is measured.
const RUNS: usize = 5;

struct Cost {
    wall_ms: u64,
    peak_kib: u64,
    requests: usize,
}

/// The median of several update-status hooks, each of which must have asked for no change.
fn measure(model: &mut Model, cluster: &ControlPlane, api: &Api, app: &str) -> Cost {
    let mut hooks: Vec<HookRecord> = Vec::new();
    let mut requests = 0;
    for _ in 0..RUNS {
        let mark = cluster.audit().mark(api).unwrap();
        model.fire_update_status(app).unwrap();
        model.advance().unwrap();
        let hook = model.hook_log().unwrap().pop().unwrap();
        assert_eq!(
            (hook.hook.as_str(), hook.ok),
            ("update-status", true),
            "{hook:?}"
        );
        hooks.push(hook);
        cluster.audit().mark(api).unwrap();
        let mut entries = cluster.audit().since(mark).unwrap();
        entries.retain(|entry| entry.is_by(model.name(), app));
        assert_eq!(
            audit::writes(&entries).len(),
            0,
            "{:#?}",
            audit::writes(&entries)
        );
        requests = entries.len();
    }
    let median = |value: fn(&HookRecord) -> u64| {
        let mut values: Vec<u64> = hooks.iter().map(value).collect();
        values.sort_unstable();
        values[RUNS / 2]
    };
    Cost {
        wall_ms: median(|h| h.wall_ms),
        peak_kib: median(|h| h.peak_rss_kib),
        requests,
    }
}

#[test]
fn a_hook_that_finds_everything_in_place_asks_for_no_change() {
    let venv = Venv::ready().unwrap();
    let charm = packed()
        .unwrap()
        .into_iter()
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("istio-k8s_")
        })
        .expect("istio-k8s is not packed: run `cargo xtask pack`");
    let cluster = ControlPlane::up(Beside::Pods, &mut |step| eprintln!("{step}")).unwrap();
    let api = cluster.api().unwrap();
    let cloud = Arc::new(RealCloud::connect(cluster.kubeconfig()).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        jujuc: Some(env!("CARGO_BIN_EXE_simulator").into()),
        ..Options::default()
    };
    let mut model = Model::open(dir.path(), cloud, Arc::new(SystemClock), options).unwrap();

    let python = pack_python("noop", &venv).unwrap();
    model.deploy(&DeployRequest::new(python).trusted()).unwrap();
    let payload = V1_31.payload().unwrap();
    let istio = DeployRequest::new(charm)
        .named("meshy")
        .trusted()
        .with_config("namespace", "istio-lab")
        .with_config("gateways", "[]")
        .with_resource("istio-release", payload.to_str().unwrap());
    model.deploy(&istio).unwrap();
    let istiod = PlayedIstiod::start(&cluster).unwrap();
    settle(&mut model).unwrap();
    drop(istiod);

    let python = measure(&mut model, &cluster, &api, "noop");
    let ours = measure(&mut model, &cluster, &api, "meshy");
    testbed::tell(&format!(
        "update-status with nothing to do, median of {RUNS}:"
    ));
    testbed::tell(&format!(
        "{:<28}{:>12}{:>14}{:>12}",
        "", "wall time", "peak memory", "requests"
    ));
    for (name, cost) in [
        ("ops + lightkube, client only", &python),
        ("istio-k8s", &ours),
    ] {
        testbed::tell(&format!(
            "{name:<28}{:>9} ms{:>10} MiB{:>12}",
            cost.wall_ms,
            cost.peak_kib / 1024,
            cost.requests
        ));
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people to read")]
    let ratio = |ours: u64, python: u64| ours as f64 / python.max(1) as f64;
    testbed::tell(&format!(
        "{:<28}{:>12.2}{:>14.2}",
        "ratio",
        ratio(ours.wall_ms, python.wall_ms),
        ratio(ours.peak_kib, python.peak_kib)
    ));
    assert!(ours.requests > 0, "the hook looked at the cluster");
}

/// Runs hooks until istio-k8s says that all is well.
fn settle(model: &mut Model) -> Result<()> {
    const TRIES: usize = 5;
    for _ in 0..TRIES {
        model.advance()?;
        let status = model.status();
        let status = &status["applications"]["meshy"]["application-status"];
        if status["current"] == "active" {
            return Ok(());
        }
        anyhow::ensure!(
            status["current"] != "blocked",
            "{status}\n{}",
            model.debug_log()?
        );
        model.fire_update_status("meshy")?;
    }
    anyhow::bail!(
        "{:#}\n{}",
        model.status()["applications"]["meshy"],
        model.debug_log()?
    )
}
