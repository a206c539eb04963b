//! The last act: an Istio as istio-pilot leaves it moves to a namespace of its own, under requests.

#![expect(clippy::print_stdout, reason = "the demo is what it prints")]

use std::fs;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow};
use testbed::V1_31;

use super::{Demo, Images, heading, typed};
use crate::pilot::{self, Load, OLD};
use crate::{Juju, Lab, lab};

const MODEL: &str = "istio";
const APP: &str = "istio-k8s";
const LEADER: &str = "istio-k8s/leader";
/// Where the control plane goes.
const NEW: &str = "istio-system";

/// The cluster of this act: a node of its own, which gets ready while the other acts play.
#[derive(Debug)]
pub(super) struct Stage(JoinHandle<Result<pilot::Lab>>);

impl Stage {
    /// Begins to set it.
    pub(super) fn set() -> Self {
        Self(thread::spawn(|| {
            let lab = pilot::Lab::up(&mut |_| ())?;
            lab.play_applications()?;
            Ok(lab)
        }))
    }

    fn ready(self) -> Result<pilot::Lab> {
        let joined = self.0.join();
        joined.map_err(|_| anyhow!("the second node was not set up"))?
    }
}

/// Plays it.
pub(super) fn play(demo: &mut Demo, stage: Stage) -> Result<()> {
    heading("Move an Istio that istio-pilot installed");
    let cluster = stage.ready()?;
    println!("A second cluster: Istio, its gateway, routes and authorization in namespace {OLD}.");
    let load = Load::start(&cluster)?;
    println!("Requests without end: through the gateway, and between sidecars.");
    let moved = migrate(demo, &cluster);
    let counts = load.stop()?;
    println!("\n{counts}");
    demo.prove(
        "an Istio moved to another namespace, and no request failed",
        moved? && counts.failed() == 0,
    );
    demo.prove(
        "what was denied before was denied all the way",
        counts.open() == 0,
    );
    Ok(())
}

/// The commands of a user; whether they lead to where they should.
fn migrate(demo: &Demo, cluster: &pilot::Lab) -> Result<bool> {
    let data = cluster.scratch()?;
    let program = lab::program("testbed-juju")?;
    let juju = Juju::new(program, data.clone(), cluster.kubeconfig());
    let show = |args: &[&str]| -> Result<String> {
        println!("\n$ juju {}", typed(args));
        let out = juju.run(args)?;
        print!("{out}");
        Ok(out)
    };
    show(&["add-model", MODEL])?;
    let options = data.join("migrate.yaml");
    fs::write(&options, self::options(&demo.images)?)?;
    let payload = V1_31.payload()?;
    show(&[
        "deploy",
        &Lab::charm(APP),
        "--trust",
        "--config",
        &options.display().to_string(),
        "--resource",
        &format!("istio-release={}", payload.display()),
    ])?;
    println!("... {APP} is {}", juju.wait_status(APP, "blocked")?);
    show(&["run", LEADER, "migrate", "dry-run=true"])?;
    let page = juju.action(LEADER, "migrate", &["dry-run=true", "format=html"])?;
    let file = testbed::root().join("migration.html");
    fs::write(&file, page["plan"].as_str().context("no plan")?)?;
    println!("The plan as a page: {}", file.display());
    let told = show(&["run", LEADER, "migrate"])?;
    println!("... {APP} is {}", juju.wait_status(APP, "active")?);
    let old = cluster.api.find(&format!(
        "/apis/apps/v1/namespaces/{OLD}/deployments/istiod"
    ))?;
    Ok(told.contains("stand: done") && old.is_none())
}

fn options(images: &Images) -> Result<String> {
    let values = format!("{}revisionTags: [default]\n", testbed::pilot_values());
    let options = serde_json::json!({APP: {
        "namespace": NEW,
        "revision": "m1",
        "migrate-from": OLD,
        "profile": "minimal",
        "hub": images.hub,
        "tag": images.tag,
        "values": values,
    }});
    Ok(serde_json::to_string_pretty(&options)?)
}
