//! An application from its first unit to its removal, on a real API server: who writes what, when,
//! and what is left.

mod common;

use std::time::Duration;

use anyhow::{Result, ensure};
use common::{ACTIVE, APP, Bench, MODEL, NAMESPACE, release};
use e2e::Lab;
use e2e::wait::until;
use serde_json::json;
use testbed::audit::writes;

/// A gateway without pods: an injector that is only played could not admit any.
const GATEWAY: &str = "gateways=- {name: edge, namespace: edge-lab, \
    values: {replicaCount: 0, autoscaling: {enabled: false}}}";

#[test]
fn removal_deletes_what_it_owns_and_no_definition_and_no_namespace() -> Result<()> {
    let bench = Bench::running()?;
    bench.told(&["config", APP, GATEWAY], ACTIVE, &[])?;
    let owned = bench.owned()?;
    for expect in [
        "deployments istio-lab/istiod",
        "mutatingwebhookconfigurations -/istio-sidecar-injector-istio-lab",
        "services edge-lab/edge",
        "customresourcedefinitions -/virtualservices.networking.istio.io",
    ] {
        ensure!(
            owned.iter().any(|name| name == expect),
            "{expect} is not among {owned:#?}"
        );
    }
    let definitions: Vec<_> = owned
        .iter()
        .filter(|name| name.starts_with("customresourcedefinitions "))
        .collect();
    let theirs = [
        (
            "/apis/networking.istio.io/v1/namespaces/edge-lab/virtualservices/theirs",
            json!({
                "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
                "metadata": {"name": "theirs", "namespace": "edge-lab"},
                "spec": {"hosts": ["lab.test"], "http": [{"route": [{"destination": {"host": "a"}}]}]},
            }),
        ),
        (
            "/api/v1/namespaces/istio-lab/configmaps/theirs",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "theirs", "namespace": "istio-lab"},
            }),
        ),
    ];
    for (path, object) in &theirs {
        bench.api.apply(path, object)?;
    }

    let mark = bench.mark()?;
    bench
        .juju
        .run(&["remove-application", APP, "--no-prompt"])?;
    until("end of the application", Duration::from_mins(2), || {
        Ok(bench.juju.status()?["applications"][APP]
            .is_null()
            .then_some(()))
    })?;

    let left = bench.owned()?;
    ensure!(
        left.iter().collect::<Vec<_>>() == definitions,
        "left: {left:#?}"
    );
    for (path, _) in &theirs {
        ensure!(bench.api.find(path)?.is_some(), "{path} is gone");
    }
    for namespace in [NAMESPACE, "edge-lab"] {
        let namespace = bench.api.get(&format!("/api/v1/namespaces/{namespace}"))?;
        ensure!(namespace["status"]["phase"] == "Active", "{namespace:#}");
    }
    let entries = bench.asked(mark)?;
    for write in writes(&entries) {
        let object = &write.object;
        ensure!(write.verb == "delete", "{write:#?}");
        ensure!(
            !["namespaces", "customresourcedefinitions"].contains(&object.resource.as_str()),
            "{write:#?}"
        );
    }
    Ok(())
}

#[test]
fn after_a_removal_the_same_can_be_deployed_again() -> Result<()> {
    let bench = Bench::running()?;
    bench
        .juju
        .run(&["remove-application", APP, "--no-prompt"])?;
    until("end of the application", Duration::from_mins(2), || {
        Ok(bench.juju.status()?["applications"][APP]
            .is_null()
            .then_some(()))
    })?;
    bench.deploy(&["--trust", "--resource", &release()?])?;
    bench.told(&[], ACTIVE, &[])?;
    Ok(())
}

#[test]
fn a_refresh_to_the_same_charm_writes_nothing() -> Result<()> {
    let bench = Bench::running()?;
    bench.juju.run(&["update-status", APP])?;
    let mark = bench.mark()?;
    bench.told(
        &["refresh", APP, "--path", &Lab::charm("istio-k8s")],
        ACTIVE,
        &[],
    )?;
    bench.told(&["update-status", APP], ACTIVE, &[])?;
    ensure!(
        !bench.asked(mark)?.is_empty(),
        "the refreshed charm looked at the cluster"
    );
    bench.wrote_nothing(mark)
}

#[test]
fn units_come_and_go_without_a_write() -> Result<()> {
    let bench = Bench::running()?;
    bench.juju.run(&["update-status", APP])?;
    let mark = bench.mark()?;
    let units = |count: usize| {
        let what = format!("{count} active units of {APP}");
        until(&what, Duration::from_mins(2), || {
            let status = bench.juju.status()?;
            let units = status["applications"][APP]["units"].as_object().cloned();
            let units = units.unwrap_or_default();
            let active = units
                .values()
                .filter(|unit| unit["workload-status"]["current"] == "active");
            Ok((units.len() == count && active.count() == count).then_some(()))
        })
    };
    bench.juju.run(&["add-unit", APP, "-n", "2"])?;
    units(3)?;
    bench.juju.run(&["remove-unit", APP, "--num-units", "2"])?;
    units(1)?;
    bench.told(&[], ACTIVE, &[])?;
    bench.wrote_nothing(mark)?;
    let account = format!("/api/v1/namespaces/{MODEL}/serviceaccounts/{APP}");
    ensure!(
        bench.api.find(&account)?.is_some(),
        "the application keeps its account"
    );
    Ok(())
}
