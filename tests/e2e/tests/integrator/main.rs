//! The integrator's routes on the wire, on both kinds of gateway that one Istio runs: a workload of
//! Istio's own API, and what istiod makes of a `Gateway` of the Gateway API. The same requests get the same
//! answers on both.

#![allow(clippy::print_stdout, reason = "what was measured is worth to be seen")]

mod wire;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::{Context as _, Result, anyhow, ensure};
use wire::{HOST, Kind, Wire};

/// Deployed once and used by each test. What does not deploy is not tried again for the next one.
fn wire() -> Result<MutexGuard<'static, Wire>> {
    static WIRE: OnceLock<Result<Mutex<Wire>, String>> = OnceLock::new();
    let wire = WIRE.get_or_init(|| Wire::up().map(Mutex::new).map_err(|e| format!("{e:?}")));
    let wire = wire.as_ref().map_err(|e| anyhow!("not deployed: {e}"))?;
    Ok(wire.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn a_classic_gateway_serves_every_field_of_a_route() -> Result<()> {
    every_field(Kind::Istio)
}

#[test]
fn a_gateway_api_gateway_serves_every_field_of_a_route() -> Result<()> {
    every_field(Kind::GatewayApi)
}

#[test]
fn a_certificate_is_shown_and_plain_http_sent_there_by_both_kinds() -> Result<()> {
    let wire = wire()?;
    for kind in [Kind::Istio, Kind::GatewayApi] {
        wire.serve(kind)?;
        wire.certificate(true)?;
        let path = "/ingress-lab-echo/secret";
        let plain = wire.until(&format!("http://{HOST}{path}"), &[], 301)?;
        ensure!(
            plain["location"] == format!("https://{HOST}{path}"),
            "{kind:?}: {plain}"
        );
        let shown = wire.until(&format!("https://{HOST}{path}"), &[], 200)?;
        ensure!(
            shown["names"][0] == HOST && wire::seen(&shown)?["path"] == "/secret",
            "{kind:?}: {shown}"
        );
        let call = wire.call(&format!("grpcs://{HOST}/lab.Echo/Say"))?;
        ensure!(call["grpc"] == "0", "{kind:?}: {call}");
        wire.certificate(false)?;
        wire.until(&format!("http://{HOST}{path}"), &[], 200)?;
    }
    Ok(())
}

#[test]
fn authorization_fails_closed_on_a_gateway_api_gateway() -> Result<()> {
    let wire = wire()?;
    wire.serve(Kind::GatewayApi)?;
    wire.gatekeeper(true)?;
    let (guarded, open) = ("/ingress-lab-echo/x", "/ingress-lab-guest/x");
    wire.until(&format!("http://{HOST}{open}"), &[], 200)?;
    wire.until(&format!("http://{HOST}{guarded}"), &[], 401)?;
    wire.steady(guarded, &[], 401)?;
    // Only what was asked for is open.
    for path in [
        "/split",
        "/pre/x",
        "/exact",
        "/ingress-lab-guest/../ingress-lab-echo/x",
    ] {
        let answer = wire.get(path, &[("x-lab", "yes")])?;
        ensure!(answer.status != 200, "{path}: {answer:?}");
    }
    let session = ("Cookie", "session=lab");
    let answer = wire.get(guarded, &[session, ("kubeflow-userid", "mallory")])?;
    ensure!(answer.status == 200, "{answer:?}");
    let told = answer.json()?;
    ensure!(
        told["headers"]["Kubeflow-Userid"] == serde_json::json!(["lab"]),
        "{told}"
    );
    let leaked = told["headers"].as_object().context("headers")?;
    ensure!(
        !leaked.keys().any(|name| name.contains("Guard")),
        "the guard reaches the workload: {told}"
    );
    let call = wire.call(&format!("grpc://{HOST}/lab.Echo/Say"))?;
    ensure!(call["grpc"] != "0", "a call of nobody: {call}");

    // Without the provider nothing passes, and not without the application either.
    wire.scale("gate", 0)?;
    wire.until(&format!("http://{HOST}{guarded}"), &[session], 403)?;
    wire.steady(guarded, &[session], 403)?;
    wire.scale("gate", 1)?;
    wire.until(&format!("http://{HOST}{guarded}"), &[session], 200)?;
    wire.juju
        .run(&["remove-application", "--no-prompt", "gate"])?;
    wire.juju.wait_status("istio-integrator", "blocked")?;
    wire.until(&format!("http://{HOST}{guarded}"), &[session], 403)?;
    wire.steady(guarded, &[session], 403)?;
    wire.steady(open, &[], 403)?;
    wire.gatekeeper(false)
}

fn every_field(kind: Kind) -> Result<()> {
    let wire = wire()?;
    wire.serve(kind)?;
    let at = |path: &str| format!("http://{HOST}{path}");
    let told = |path: &str, headers: &[(&str, &str)]| -> Result<serde_json::Value> {
        wire::seen(&wire.until(&at(path), headers, 200)?)
    };
    ensure!(told("/ingress-lab-echo/a", &[])?["path"] == "/a");
    ensure!(told("/pre/x", &[])?["path"] == "/post/x");
    ensure!(told("/pre", &[])?["path"] == "/post");
    wire.steady("/prefer", &[], 404)?;
    let whole = told("/exact", &[("x-lab", "yes")])?;
    ensure!(
        whole["path"] == "/whole" && whole["host"] == "inner.example.com",
        "{whole}"
    );
    wire.steady("/exact", &[], 404)?;
    wire.steady("/exact/x", &[("x-lab", "yes")], 404)?;
    let away = wire.until(&at("/away"), &[], 302)?;
    ensure!(
        away["location"] == "http://new.example.com/here",
        "{kind:?}: {away}"
    );
    let other = wire.until("http://other.example.com/anything", &[], 200)?;
    ensure!(wire::pod(&other)?.starts_with("twin"), "{other}");
    wire.steady("/anything", &[], 404)?;
    let call = wire.call(&at("/lab.Echo/Say").replacen("http", "grpc", 1))?;
    ensure!(
        call["grpc"] == "0" && wire::seen(&call)?["path"] == "/lab.Echo/Say",
        "{kind:?}: {call}"
    );

    let mut counts: BTreeMap<bool, u32> = BTreeMap::new();
    for _ in 0..400 {
        let answer = wire.get("/split", &[])?;
        ensure!(answer.status == 200, "{answer:?}");
        let pod = answer.json()?["pod"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        *counts.entry(pod.starts_with("echo")).or_default() += 1;
    }
    let first = counts.get(&true).copied().unwrap_or(0);
    println!("{kind:?}: {first} of 400 requests with a share of 75 %");
    // Six standard deviations: once in a thousand million runs by chance.
    ensure!((248..=352).contains(&first), "{counts:?}");
    let listed = wire.listed()?;
    ensure!(
        listed
            .iter()
            .all(|row| row["kind"].as_str().is_some_and(|k| kind.carries(k))),
        "{listed:?}"
    );
    Ok(())
}
