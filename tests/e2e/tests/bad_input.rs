//! Everything a person or the world can get wrong, on a real API server: a clear status, no write,
//! and healed by the obvious command.

mod common;

use anyhow::{Context, Result, ensure};
use common::{ACTIVE, APP, Bench, NAMESPACE, release};
use serde_json::json;

const ATTACH: &str = "run: juju attach-resource mesh istio-release=";

#[test]
fn a_bad_option_is_named_and_set_right_it_installs() -> Result<()> {
    let bench = Bench::up()?;
    let mark = bench.mark()?;
    bench.deploy(&[
        "--trust",
        "--resource",
        &release()?,
        "--config",
        "namespace=Istio_Lab",
    ])?;
    bench.told(
        &[],
        "blocked",
        &["option namespace: \"Istio_Lab\"", "only a-z"],
    )?;
    let right = format!("namespace={NAMESPACE}");
    for (bad, says, good) in [
        (
            "profile=nosuch",
            &["option profile: \"nosuch\"", "ambient", "minimal"][..],
            "default",
        ),
        ("values=global: [", &["option values: "], ""),
        (
            "values=global: {platform: nosuch}",
            &["option values: ", "nosuch"],
            "",
        ),
        ("gateways=- nam: edge", &["option gateways: ", "nam"], ""),
        ("revision=1.31", &["option revision: \"1.31\""], ""),
        (
            "version=1.30.9",
            &["option version: \"1.30.9\"", "1.31.0"],
            "",
        ),
        (
            "platform=moon",
            &["option platform: \"moon\"", "gke", "k3d"],
            "",
        ),
        ("components=pilot", &["option components: \"pilot\""], ""),
        ("hub=https://registry.example", &["option hub: "], ""),
        ("tag=a b", &["option tag: \"a b\""], ""),
        ("variant=slim", &["option variant: ", "distroless"], ""),
        ("image-pull-secrets=A", &["option image-pull-secrets: "], ""),
        (
            "mesh-config=accessLogFile: [a]",
            &["option mesh-config: ", "is not text"],
            "",
        ),
        ("replicas=-1", &["option replicas: ", "1 to 100"], "0"),
        ("autoscale-min=2", &["option autoscale-min: "], "0"),
        ("autoscale-max=2", &["option autoscale-max: "], "0"),
        ("crd-policy=no", &["option crd-policy: ", "keep"], "keep"),
        (
            "upgrade-strategy=fast",
            &["option upgrade-strategy: ", "in-place, canary"],
            "in-place",
        ),
        (
            "restart-proxies=auto",
            &["option restart-proxies: ", "manual, rolling"],
            "manual",
        ),
        (
            "gateway-api-crds=always",
            &["option gateway-api-crds: ", "if-absent"],
            "never",
        ),
        (
            "release-sha256=abc",
            &["option release-sha256: \"abc\""],
            "",
        ),
    ] {
        // The one before is right by now, so this is the only thing that is wrong.
        bench.told(&["config", APP, &right, bad], "blocked", says)?;
        let option = bad.split('=').next().context("an option")?;
        let mended = format!("{option}={good}");
        bench
            .juju
            .run(&["config", APP, "namespace=Istio_Lab", &mended])?;
    }
    bench.wrote_nothing(mark)?;
    bench.told(&["config", APP, &right], ACTIVE, &[])?;
    ensure!(
        !bench.asked(mark)?.is_empty(),
        "the audit log knows the application"
    );
    Ok(())
}

#[test]
fn a_release_that_is_missing_or_corrupt_is_asked_for_and_attached_it_installs() -> Result<()> {
    let bench = Bench::up()?;
    let mark = bench.mark()?;
    bench.deploy(&["--trust"])?;
    bench.told(
        &[],
        "blocked",
        &["resource istio-release is not attached", ATTACH],
    )?;
    let whole = std::fs::read(testbed::V1_31.payload()?)?;
    for (name, bytes) in [
        ("page.tar.gz", &b"<html>not found</html>"[..]),
        ("half.tar.gz", &whole[..whole.len() / 2]),
        ("empty.tar.gz", b""),
    ] {
        let path = bench.write(name, bytes)?;
        let resource = format!("istio-release={path}");
        let args = ["attach-resource", APP, &resource];
        bench.told(&args, "blocked", &["resource istio-release", ATTACH])?;
    }
    bench.wrote_nothing(mark)?;
    bench.told(&["attach-resource", APP, &release()?], ACTIVE, &[])?;
    Ok(())
}

#[test]
fn without_trust_the_status_has_the_command_and_the_command_heals() -> Result<()> {
    let bench = Bench::up()?;
    let mark = bench.mark()?;
    bench.deploy(&["--resource", &release()?])?;
    let status = bench.told(&[], "blocked", &["not permitted to list"])?;
    bench.wrote_nothing(mark)?;
    let refused = bench.asked(mark)?;
    ensure!(
        refused.iter().any(|entry| entry.response.code == 403),
        "it was refused: {refused:#?}"
    );
    let command = status
        .split("run: juju ")
        .nth(1)
        .context("a command in the status")?;
    ensure!(command == "trust mesh --scope=cluster", "{command}");
    let args: Vec<&str> = command.split(' ').collect();
    bench.told(&args, ACTIVE, &[])?;
    Ok(())
}

#[test]
fn an_api_server_that_was_away_is_caught_up_with_by_itself() -> Result<()> {
    let mut bench = Bench::running()?;
    let mut agents = bench.agents()?;
    agents.fire_update_status(APP)?;
    agents.advance()?;

    bench.cluster.stop_api_server();
    let values = json!("pilot: {resources: {requests: {cpu: 123m}}}");
    agents.set_config(APP, &[("values".to_owned(), values)].into())?;
    agents.advance()?;
    let status = &agents.status()["applications"][APP]["application-status"];
    ensure!(status["current"] == "waiting", "{status}");
    ensure!(
        status["message"] == "Kubernetes API server not reachable",
        "{status}"
    );
    drop(agents);

    bench.cluster.start_api_server()?;
    // No command but the passing of time.
    bench.told(&[], ACTIVE, &[])?;
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/istiod");
    let istiod = bench.api.get(&path)?;
    let container = &istiod["spec"]["template"]["spec"]["containers"][0];
    ensure!(
        container["resources"]["requests"]["cpu"] == "123m",
        "{container:#}"
    );
    Ok(())
}

#[test]
fn an_object_of_somebody_else_is_left_alone_until_it_is_gone() -> Result<()> {
    let bench = Bench::up()?;
    let lab = format!("/api/v1/namespaces/{NAMESPACE}");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    bench.api.apply(&lab, &namespace)?;
    let path = format!("{lab}/configmaps/istio");
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"mesh": "theirs"},
        "metadata": {"name": "istio", "namespace": NAMESPACE}});
    bench.api.apply(&path, &theirs)?;
    bench.deploy(&["--trust", "--resource", &release()?])?;
    bench.told(
        &[],
        "blocked",
        &["ConfigMap istio-lab/istio belongs to nobody known"],
    )?;
    let kept = bench.api.get(&path)?;
    ensure!(kept["data"]["mesh"] == "theirs", "{kept:#}");
    ensure!(kept["metadata"]["labels"].is_null(), "{kept:#}");
    bench.api.delete(&path)?;
    bench.told(&[], ACTIVE, &[])?;
    Ok(())
}
