//! Helm as another installer of Istio.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::build::need;
use testbed::{Artifact, V1_31};

use crate::Lab;
use crate::lab::HUB;

/// What upstream's guide does, with istiod in `namespace` and a gateway `edge` in `gateways`.
///
/// # Errors
/// What Helm says.
pub fn install(lab: &Lab, namespace: &str, gateways: &str) -> Result<()> {
    let charts = charts(lab)?;
    let values = lab.write("values.yaml", testbed::pilot_values())?;
    let ns = format!("global.istioNamespace={namespace}");
    let hub = format!("global.hub={HUB}");
    let tag = format!("global.tag={}", V1_31.version);
    helm(
        lab,
        &["istio-base", "-n", namespace, "--set", &ns],
        &charts.join("base"),
    )?;
    helm(
        lab,
        &[
            "istiod", "-n", namespace, "-f", &values, "--set", &ns, "--set", &hub, "--set", &tag,
            "--wait",
        ],
        &charts.join("istio-control/istio-discovery"),
    )?;
    helm(
        lab,
        &[
            "edge",
            "-n",
            gateways,
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
///
/// # Errors
/// A payload that cannot be had or unpacked.
#[expect(
    clippy::disallowed_methods,
    reason = "Helm takes a chart from a directory"
)]
pub fn charts(lab: &Lab) -> Result<PathBuf> {
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

/// `helm install ARGS CHART` on the lab's cluster.
///
/// # Errors
/// What Helm says.
#[expect(
    clippy::disallowed_methods,
    reason = "Helm is the other installer under test"
)]
pub fn helm(lab: &Lab, args: &[&str], chart: &Path) -> Result<()> {
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
