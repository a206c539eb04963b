//! Our renderer against real Helm 4: every chart of five Istio releases, object by object.

use anyhow::{Context, Result};
use interop::helm::{self, CHARTS, Case, Payload, cases};
use std::path::{Path, PathBuf};
use testbed::Artifact;

/// Releases whose every default is varied one by one.
const ONE_BY_ONE: [&str; 2] = ["1.31.0", "1.24.0"];

fn cases_of(payload: &Payload, chart: &str, defaults: &serde_json::Value) -> Vec<Case> {
    let mut all = cases::profiles();
    all.extend(cases::circumstances());
    all.extend(cases::of_chart(chart));
    if ONE_BY_ONE.contains(&payload.version.as_str()) {
        all.extend(cases::one_by_one(defaults));
    }
    if chart == "gateway" {
        // With the schema, old gateway charts are refused outright.
        let unchecked: Vec<Case> = all
            .iter()
            .map(|case| Case {
                skip_schema: true,
                ..case.clone()
            })
            .collect();
        all.extend(unchecked);
    }
    all
}

#[derive(Default)]
struct Tally {
    compared: usize,
    objects: usize,
    refused: usize,
    different: Vec<String>,
}

fn check(chart: &str) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let built = testbed::build::need(&[Artifact::Helm], &mut |_| {})?;
    let helm = built.path(Artifact::Helm)?;
    let mut tally = Tally::default();
    for istio in testbed::ALL {
        let payload = Payload::open(&istio.payload()?, istio.version, scratch.path())?;
        compare_chart(&payload, chart, helm, scratch.path(), &mut tally)?;
    }
    testbed::tell(&format!(
        "{chart}: {} comparisons with helm, {} objects equal, {} refused by both, {} differences",
        tally.compared,
        tally.objects,
        tally.refused,
        tally.different.len()
    ));
    assert!(tally.objects > 0);
    assert!(tally.different.is_empty(), "{}", tally.different.join("\n"));
    Ok(())
}

#[test]
fn every_chart_of_every_release_is_compared() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for istio in testbed::ALL {
        let payload = Payload::open(&istio.payload()?, istio.version, scratch.path())?;
        assert_eq!(payload.charts(), CHARTS, "{}", istio.version);
    }
    Ok(())
}

#[test]
fn base_renders_to_helms_objects() -> Result<()> {
    check("base")
}

#[test]
fn default_renders_to_helms_objects() -> Result<()> {
    check("default")
}

#[test]
fn gateway_renders_to_helms_objects() -> Result<()> {
    check("gateway")
}

#[test]
fn egress_renders_to_helms_objects() -> Result<()> {
    check("gateways/istio-egress")
}

#[test]
fn ingress_renders_to_helms_objects() -> Result<()> {
    check("gateways/istio-ingress")
}

#[test]
fn cni_renders_to_helms_objects() -> Result<()> {
    check("istio-cni")
}

#[test]
fn istiod_renders_to_helms_objects() -> Result<()> {
    check("istio-control/istio-discovery")
}

#[test]
fn ztunnel_renders_to_helms_objects() -> Result<()> {
    check("ztunnel")
}

fn compare_chart(
    payload: &Payload,
    chart: &str,
    helm: &Path,
    scratch: &Path,
    tally: &mut Tally,
) -> Result<()> {
    let loaded = payload.chart(chart)?;
    let dir: PathBuf = payload.chart_dir(chart);
    let cases = cases_of(payload, chart, &loaded.default_values());
    for case in &cases {
        let ours = helm::ours(&loaded, case);
        let helms = helm::helms(helm, &dir, case, scratch).context("asking helm")?;
        tally.compared += 1;
        match &helms {
            Ok(objects) => tally.objects += objects.len(),
            Err(_) => tally.refused += 1,
        }
        let found = helm::differences(&ours, &helms);
        let label = |d: String| format!("{} {chart} [{}]: {d}", payload.version, case.name);
        tally.different.extend(found.into_iter().map(label));
    }
    Ok(())
}

/// How long a render takes, beside the programs that do the same.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the measuring program builds what it lacks, so it needs the whole environment"
)]
fn the_time_of_a_render_is_told_beside_helm_and_istioctl() -> Result<()> {
    let program = env!("CARGO_BIN_EXE_render-ratio");
    let output = std::process::Command::new(program).output()?;
    let figures = String::from_utf8(output.stdout)?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for judge in ["helm template", "istioctl manifest generate"] {
        assert!(figures.contains(judge), "no {judge} in {figures}");
    }
    testbed::tell(figures.trim_end());
    Ok(())
}
