//! The integrator on an Istio that Helm installed, in a namespace of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::Lab;
use e2e::lab::HUB;
use e2e::story::Story;
use testbed::build::need;
use testbed::{Artifact, V1_31};

const MODEL: &str = "helm-lab";
const ISTIO: &str = "mesh-lab";
const EDGE: &str = "edge-lab";

/// Deployed once and used by each test. What does not deploy is not tried again for the next one.
fn story() -> Result<MutexGuard<'static, Story>> {
    static STORY: OnceLock<Result<Mutex<Story>, String>> = OnceLock::new();
    let story = STORY.get_or_init(|| deploy().map(Mutex::new).map_err(|e| format!("{e:?}")));
    let story = story.as_ref().map_err(|e| anyhow!("not deployed: {e}"))?;
    Ok(story.lock().unwrap_or_else(PoisonError::into_inner))
}

fn deploy() -> Result<Story> {
    let lab = Lab::up(MODEL, &[V1_31])?;
    install(&lab)?;
    Story::deploy(lab, MODEL, (EDGE, "edge"))
}

/// What upstream's guide does, in another namespace than it says.
fn install(lab: &Lab) -> Result<()> {
    let charts = charts(lab)?;
    let values = lab.write("values.yaml", testbed::pilot_values())?;
    let ns = format!("global.istioNamespace={ISTIO}");
    let hub = format!("global.hub={HUB}");
    let tag = format!("global.tag={}", V1_31.version);
    helm(
        lab,
        &["istio-base", "-n", ISTIO, "--set", &ns],
        &charts.join("base"),
    )?;
    helm(
        lab,
        &[
            "istiod", "-n", ISTIO, "-f", &values, "--set", &ns, "--set", &hub, "--set", &tag,
            "--wait",
        ],
        &charts.join("istio-control/istio-discovery"),
    )?;
    helm(
        lab,
        &[
            "edge",
            "-n",
            EDGE,
            "--set",
            "service.type=ClusterIP",
            "--set",
            "autoscaling.enabled=false",
            "--wait",
        ],
        &charts.join("gateway"),
    )
}

/// The release's charts, unpacked.
#[expect(
    clippy::disallowed_methods,
    reason = "Helm takes a chart from a directory"
)]
fn charts(lab: &Lab) -> Result<PathBuf> {
    let dir = PathBuf::from(lab.write("payload", "")?).with_file_name("charts");
    std::fs::create_dir_all(&dir)?;
    let output = Command::new("tar")
        .arg("xzf")
        .arg(V1_31.payload()?)
        .arg("-C")
        .arg(&dir)
        .output()?;
    ensure!(
        output.status.success(),
        "tar: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(dir.join(format!("istio-{}/manifests/charts", V1_31.version)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "Helm is the other installer under test"
)]
fn helm(lab: &Lab, args: &[&str], chart: &Path) -> Result<()> {
    let helm = need(&[Artifact::Helm], &mut |_| {})?
        .path(Artifact::Helm)?
        .to_owned();
    let output = Command::new(helm)
        .args(["install", "--create-namespace", "--timeout", "180s"])
        .args(args)
        .arg(chart)
        .env("KUBECONFIG", lab.kubeconfig())
        .output()
        .context("helm")?;
    ensure!(
        output.status.success(),
        "helm {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[test]
fn requests_are_routed_and_rewritten_in_both_dialects() -> Result<()> {
    story()?.routed_and_rewritten()
}

#[test]
fn an_unknown_path_is_404_and_a_prefix_ends_at_a_segment() -> Result<()> {
    story()?.unknown_is_not_found()
}

#[test]
fn with_auth_a_request_needs_a_session_and_carries_the_identity() -> Result<()> {
    story()?.a_session_is_needed()
}

#[test]
fn an_identity_header_from_outside_never_reaches_an_application() -> Result<()> {
    story()?.a_forged_identity_is_stripped()
}

#[test]
fn with_the_provider_down_everything_is_denied() -> Result<()> {
    story()?.provider_down_denies()
}

#[test]
fn with_the_auth_application_gone_everything_is_denied_until_an_admin_decides() -> Result<()> {
    story()?.auth_application_gone_denies()
}

#[test]
fn removing_a_relation_removes_its_route_and_no_other() -> Result<()> {
    story()?.relation_removed_removes_its_route()
}
