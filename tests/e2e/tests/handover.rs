//! Istio changes hands on a real node: Helm's is left alone, taken over by name, proven, and handed
//! over again.

use anyhow::{Context, Result, ensure};
use e2e::lab::{HUB, istio_config};
use e2e::listing::listing;
use e2e::{Lab, helm};
use serde_json::Value;
use testbed::{V1_31, audit, tell};

const MODEL: &str = "handover-lab";
const APP: &str = "meshy";
const UNIT: &str = "meshy/0";
const ISTIO: &str = "mesh-lab";
const EDGE: &str = "edge-lab";
const TESTAPP: &str = "testbed.local/testapp:v1";

fn text<'a>(results: &'a Value, key: &str) -> &'a str {
    results[key].as_str().unwrap_or_default()
}

#[test]
fn helms_istio_is_left_alone_taken_over_proven_and_handed_over() -> Result<()> {
    let lab = Lab::up(MODEL, &[V1_31])?;
    helm::install(&lab, ISTIO, EDGE)?;
    let before = listing(&lab.api)?;
    deploy(&lab)?;

    // Left alone: whatever hooks run, nothing is written.
    let log = lab.audit()?;
    let mark = log.mark(&lab.api)?;
    let status = lab.juju.wait_status(APP, "blocked")?;
    tell(&format!("beside Helm: {status}"));
    lab.juju.run(&["update-status", APP])?;
    let entries: Vec<_> = log
        .since(mark)?
        .into_iter()
        .filter(|entry| entry.is_by(MODEL, APP))
        .collect();
    let writes = audit::writes(&entries);
    ensure!(writes.is_empty(), "wrote {writes:#?}");
    let after = listing(&lab.api)?;
    // The model's own namespace and rights come with the deployment.
    let strange: Vec<_> = after
        .symmetric_difference(&before)
        .filter(|name| !name.contains(MODEL) && !name.contains(APP))
        .collect();
    ensure!(strange.is_empty(), "came or went: {strange:#?}");

    // Taken over, owner by owner, as the dry run names them.
    let shown = lab.juju.action(UNIT, "adopt", &[])?;
    let owners: Vec<String> = text(&shown, "owners").lines().map(str::to_owned).collect();
    tell(&format!("{} objects of {owners:?}", text(&shown, "count")));
    ensure!(owners.len() == 2, "{owners:?}");
    for owner in &owners {
        let owner = format!("owner={owner}");
        lab.juju.action(
            UNIT,
            "adopt",
            &[&owner, "dry-run=false", "forget-helm-release=true"],
        )?;
    }
    lab.juju.wait_active(&[APP])?;
    let again = lab.juju.action(UNIT, "adopt", &[])?;
    ensure!(text(&again, "count") == "0", "{again}");
    for object in listing(&lab.api)? {
        ensure!(!object.contains("sh.helm.release.v1.istiod"), "{object}");
    }

    proven(&lab)?;
    restarted(&lab)?;
    handed_over(&lab)
}

fn deploy(lab: &Lab) -> Result<()> {
    let release = format!("istio-release={}", V1_31.payload()?.display());
    let options = istio_config(APP, HUB, V1_31.version, EDGE)?;
    let options = lab.write("meshy.yaml", options)?;
    let namespace = format!("namespace={ISTIO}");
    lab.juju.run(&[
        "deploy",
        &Lab::charm("istio-k8s"),
        APP,
        "--trust",
        "--config",
        &namespace,
        "--config",
        &options,
        "--config",
        "gateways=",
        "--resource",
        &release,
    ])?;
    Ok(())
}

/// The mesh injects, encrypts, routes and refuses, and nothing of the proof is left.
fn proven(lab: &Lab) -> Result<()> {
    let image = format!("server-image={TESTAPP}");
    let client = format!("client-image={TESTAPP}");
    let params = [
        image.as_str(),
        &client,
        "client-command=/usr/local/bin/testapp get",
    ];
    let answer = lab.juju.action(UNIT, "verify", &params)?;
    for check in ["injection", "mtls", "routing", "no-plaintext", "denial"] {
        ensure!(text(&answer, check) == "passed", "{check}: {answer}");
    }
    let namespaces = lab.api.get("/api/v1/namespaces")?;
    ensure!(
        !namespaces.to_string().contains("meshy-verify"),
        "left behind"
    );
    tell("verify: injection, mtls, routing, no-plaintext, denial");
    Ok(())
}

/// A gateway whose pods were injected with another image than now comes back with the new one.
fn restarted(lab: &Lab) -> Result<()> {
    let up_to_date = lab
        .juju
        .action(UNIT, "restart-proxies", &["dry-run=true"])?;
    ensure!(text(&up_to_date, "behind").is_empty(), "{up_to_date}");
    // The same image under another name is another image to the injector.
    let other_hub = format!("hub={HUB}/again");
    lab.juju.run(&["config", APP, &other_hub])?;
    lab.juju.wait_active(&[APP])?;
    let shown = lab
        .juju
        .action(UNIT, "restart-proxies", &["dry-run=true"])?;
    let behind = text(&shown, "behind");
    ensure!(behind.contains("Deployment edge-lab/edge"), "{shown}");
    let done = lab.juju.action(UNIT, "restart-proxies", &[])?;
    ensure!(text(&done, "remaining") == "0", "{done}");
    let pods = lab.api.get(&format!("/api/v1/namespaces/{EDGE}/pods"))?;
    let pods = pods["items"].as_array().context("pods")?;
    let living = pods
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    for pod in living {
        ensure!(
            pod.to_string().contains(&format!("{HUB}/again/proxyv2")),
            "{pod}"
        );
    }
    tell(&format!("restart-proxies: {}", behind.replace('\n', ", ")));
    Ok(())
}

/// The application lets go and leaves; Istio stays as it is.
fn handed_over(lab: &Lab) -> Result<()> {
    lab.juju
        .action(UNIT, "disown", &["from=own", "dry-run=false"])?;
    let before = listing(&lab.api)?;
    lab.juju.run(&["remove-application", APP, "--no-prompt"])?;
    e2e::wait::until(
        "the application's end",
        std::time::Duration::from_mins(3),
        || {
            let status = lab.juju.status()?;
            Ok(status["applications"][APP].is_null().then_some(()))
        },
    )?;
    let after = listing(&lab.api)?;
    let gone: Vec<_> = before
        .difference(&after)
        .filter(|object| object.contains(ISTIO) || object.contains("istio"))
        .filter(|object| !object.contains(MODEL))
        .collect();
    ensure!(gone.is_empty(), "{gone:#?}");
    Ok(())
}
