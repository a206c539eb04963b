//! Upgrades on a real API server whose pods are played: what is written, in which state it is left,
//! and that it is left alone then.

mod common;

use anyhow::{Context, Result, ensure};
use common::{APP, Bench, NAMESPACE};
use serde_json::Value;
use testbed::{Istio, V1_30, V1_31};

fn payload(istio: Istio) -> Result<String> {
    Ok(format!("istio-release={}", istio.payload()?.display()))
}

/// Runs an action and gives its results.
fn act(bench: &Bench, name: &str) -> Result<Value> {
    bench.juju.action(&format!("{APP}/leader"), name, &[])
}

fn image(bench: &Bench, name: &str) -> Result<String> {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}");
    let istiod = bench.api.get(&path)?;
    let image = &istiod["spec"]["template"]["spec"]["containers"][0]["image"];
    image.as_str().map(str::to_owned).context("no image")
}

/// The Service behind the default validator.
fn validator(bench: &Bench) -> Result<Value> {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/\
                istiod-default-validator";
    let config = bench.api.get(path)?;
    Ok(config["webhooks"][0]["clientConfig"]["service"]["name"].clone())
}

/// Another hook finds nothing to write.
fn at_rest(bench: &Bench) -> Result<()> {
    bench.juju.run(&["update-status", APP])?;
    let mark = bench.mark()?;
    bench.juju.run(&["update-status", APP])?;
    bench.wrote_nothing(mark)
}

#[test]
fn a_release_comes_in_place_then_beside_and_is_promoted_and_rolled_back() -> Result<()> {
    let bench = Bench::up()?;
    bench.deploy(&["--trust", "--resource", &payload(V1_30)?])?;
    bench.told(&[], "active: Istio 1.30.3 in istio-lab", &[])?;
    at_rest(&bench)?;

    bench.told(
        &["attach-resource", APP, &payload(V1_31)?],
        "active: Istio 1.31.0 in istio-lab",
        &[],
    )?;
    ensure!(image(&bench, "istiod")?.ends_with("pilot:1.31.0"));
    at_rest(&bench)?;

    let next = format!("istio-release={}", V1_31.payload_as("1.32.0")?.display());
    bench
        .juju
        .run(&["config", APP, "upgrade-strategy=canary"])?;
    bench.told(
        &["attach-resource", APP, &next],
        "active: Istio 1.32.0 in istio-lab, revision 1-32-0; default is revision default",
        &[],
    )?;
    ensure!(image(&bench, "istiod")?.ends_with("pilot:1.31.0"));
    ensure!(validator(&bench)? == "istiod");
    at_rest(&bench)?;

    for _ in 0..2 {
        let promoted = act(&bench, "promote")?;
        ensure!(promoted["default"] == "1-32-0", "{promoted:#}");
        ensure!(validator(&bench)? == "istiod-1-32-0");
        at_rest(&bench)?;
        let back = act(&bench, "rollback")?;
        ensure!(back["default"] == "default", "{back:#}");
        ensure!(validator(&bench)? == "istiod");
        at_rest(&bench)?;
    }
    Ok(())
}

#[test]
fn a_release_two_minors_ahead_is_refused_and_nothing_is_written() -> Result<()> {
    let bench = Bench::up()?;
    bench.deploy(&["--trust", "--resource", &payload(V1_30)?])?;
    bench.told(&[], "active: Istio 1.30.3 in istio-lab", &[])?;
    at_rest(&bench)?;
    let mark = bench.mark()?;
    let far = format!("istio-release={}", V1_31.payload_as("1.32.0")?.display());
    bench.told(
        &["attach-resource", APP, &far],
        "blocked",
        &["Istio 1.30.3 to 1.32.0", "not attached: 1.31"],
    )?;
    bench.wrote_nothing(mark)?;
    let answer = act(&bench, "precheck")?;
    let findings = answer["findings"].as_str().context("findings")?;
    ensure!(findings.contains("minors-skipped"), "{findings}");
    ensure!(!findings.contains("missing-right"), "{findings}");
    bench.wrote_nothing(mark)
}
