//! Both charms and sample workloads on a real node, asserted on the wire.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::{Context, Result, anyhow};
use e2e::Lab;
use e2e::lab::{HUB, istio_config};
use e2e::story::Story;
use serde_json::Value;
use testbed::{V1_31, audit, tell};

const MODEL: &str = "charmed-lab";

/// Deployed once and used by each test. What does not deploy is not tried again for the next one.
fn story() -> Result<MutexGuard<'static, Story>> {
    static STORY: OnceLock<Result<Mutex<Story>, String>> = OnceLock::new();
    let story = STORY.get_or_init(|| deploy().map(Mutex::new).map_err(|e| format!("{e:?}")));
    let story = story.as_ref().map_err(|e| anyhow!("not deployed: {e}"))?;
    Ok(story.lock().unwrap_or_else(PoisonError::into_inner))
}

fn deploy() -> Result<Story> {
    let lab = Lab::up(MODEL, &[V1_31])?;
    let release = format!("istio-release={}", V1_31.payload()?.display());
    let options = istio_config("istio-k8s", HUB, V1_31.version, "istio-ingress")?;
    let options = lab.write("istio-k8s.yaml", options)?;
    lab.juju.run(&[
        "deploy",
        &Lab::charm("istio-k8s"),
        "--trust",
        "--config",
        "namespace=istio-system",
        "--config",
        &options,
        "--resource",
        &release,
    ])?;
    lab.juju.wait_active(&["istio-k8s"])?;
    Story::deploy(lab, MODEL, ("istio-ingress", "istio-ingressgateway"))
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

#[test]
fn list_routes_tells_each_relations_url() -> Result<()> {
    story()?.routes_are_listed()
}

#[test]
fn a_hook_with_nothing_to_do_writes_nothing() -> Result<()> {
    let story = story()?;
    story.open()?;
    let Lab { juju, api, .. } = &story.lab;
    for app in ["istio-k8s", "istio-integrator"] {
        juju.wait_active(&[app])?;
        juju.run(&["update-status", app])?;
        let log = story.lab.audit()?;
        let mark = log.mark(api)?;
        juju.run(&["update-status", app])?;
        let entries: Vec<_> = log
            .since(mark)?
            .into_iter()
            .filter(|e| e.is_by(MODEL, app))
            .collect();
        let writes = audit::writes(&entries);
        assert!(!entries.is_empty(), "{app} did not look at the cluster");
        assert!(writes.is_empty(), "{app} wrote {writes:#?}");
        tell(&format!(
            "{app}: a hook with nothing to do made {} requests, no write",
            entries.len()
        ));
    }
    Ok(())
}

#[test]
fn proxy_status_tells_which_proxy_is_on_which_control_plane() -> Result<()> {
    let story = story()?;
    let juju = &story.lab.juju;
    let results = juju.action("istio-k8s/leader", "proxy-status", &["format=json"])?;
    let proxies: Value = serde_json::from_str(results["proxies"].as_str().context("no proxies")?)?;
    let gateway = &proxies[0];
    assert!(
        gateway["proxy"]
            .as_str()
            .is_some_and(|p| p.ends_with(".istio-ingress")),
        "{proxies}"
    );
    assert_eq!(gateway["kind"], "router");
    assert_eq!(gateway["version"], "1.31.0");
    assert_eq!(gateway["revision"], "default");
    let table = juju.run(&["run", "istio-k8s/leader", "proxy-status"])?;
    assert!(
        table.contains("PROXY") && table.contains("istio-ingressgateway-"),
        "{table}"
    );
    Ok(())
}
