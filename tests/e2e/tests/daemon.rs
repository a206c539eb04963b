//! The life of a control plane on a real node, with two minors of real Istio: installed, refused what
//! is wrong, rolled back, upgraded in place and back, canaried, promoted, removed. Meanwhile requests go
//! through the gateway and pods are tried, and none of them notices.

mod daemon_lab;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use daemon_lab::{APP, Life, NAMESPACE};
use e2e::listing::listing;
use e2e::wait::until;
use serde_json::Value;
use testbed::{V1_26, V1_30, V1_31, tell};

#[test]
fn daemon_lives_its_whole_life_unnoticed() -> Result<()> {
    let life = Life::begin()?;
    let loops = life.loops()?;
    wrong_releases_are_refused(&life)?;
    what_does_not_run_is_rolled_back(&life)?;
    loops.undisturbed("refusals and failed rollouts")?;
    the_next_minor_comes_in_place_and_goes_back(&life)?;
    loops.undisturbed("in place forward and back")?;
    two_revisions_run_side_by_side(&life)?;
    loops.undisturbed("canary")?;
    for turn in ["first", "second"] {
        promoted(&life)?;
        let tally = loops.undisturbed(&format!("{turn} promotion"))?;
        ensure!(
            tally.revisions.last().is_some_and(|r| r == "1-31-0 1.31.0"),
            "{:?}",
            tally.revisions
        );
        if turn == "first" {
            rolled_back(&life)?;
            let tally = loops.undisturbed("rollback")?;
            ensure!(
                tally
                    .revisions
                    .last()
                    .is_some_and(|r| r == "default 1.30.3"),
                "{:?}",
                tally.revisions
            );
        }
    }
    the_old_revision_goes_when_nobody_needs_it(&life)?;
    loops.undisturbed("removal of the old revision")?;
    drop(loops);
    the_application_goes_and_leaves_what_is_not_its_own(&life)
}

fn wrong_releases_are_refused(life: &Life) -> Result<()> {
    let before = life.istiod("istiod")?;
    for (payload, says) in [
        (V1_31.payload_as("1.32.0")?, "not attached: 1.31"),
        (V1_26.payload()?, "at most one"),
    ] {
        let status = life.attach(&payload, "blocked")?;
        ensure!(status.contains(says), "{status}");
    }
    let answer = life.action("precheck", &["format=json"])?;
    let findings: Value = serde_json::from_str(answer["findings"].as_str().context("findings")?)?;
    let refusal = &findings[0];
    ensure!(
        refusal["severity"] == "error" && refusal["code"] == "downgrade-too-far",
        "{findings:#}"
    );
    ensure!(life.istiod("istiod")? == before, "a refused release wrote");
    life.attach(&V1_30.payload()?, "active: Istio 1.30.3")
        .map(drop)
}

fn what_does_not_run_is_rolled_back(life: &Life) -> Result<()> {
    let before = life.istiod("istiod")?;
    // An image that does not exist is found out before anything is written.
    life.config("tag=9.9.9-none")?;
    let status = life.attach(&V1_31.payload()?, "blocked")?;
    ensure!(status.contains("pilot:9.9.9-none"), "{status}");
    ensure!(
        life.istiod("istiod")? == before,
        "the image was to be proven first"
    );
    tell(&format!("an image that does not exist: {status}"));
    // An istiod that ends at once is found out by its rollout.
    life.config(&Life::crashing_values())?;
    life.config("tag=")?;
    let status = life.told("blocked: Istio 1.31.0 failed")?;
    ensure!(status.contains("1.30.3 serves"), "{status}");
    tell(&format!("an istiod that ends at once: {status}"));
    let istiod = life.istiod("istiod")?;
    ensure!(istiod["image"] == before["image"], "{istiod:#}");
    life.api()
        .wait_deployment(NAMESPACE, "istiod", Duration::from_mins(2))?;
    // What failed is not tried again by itself.
    life.juju().run(&["update-status", APP])?;
    ensure!(
        life.istiod("istiod")?["image"] == before["image"],
        "it was tried again"
    );
    life.config(&Life::values())?;
    life.told("active: Istio 1.31.0").map(drop)
}

fn the_next_minor_comes_in_place_and_goes_back(life: &Life) -> Result<()> {
    // 1.31 has come in place, after what did not run was put right.
    ensure!(
        life.injects("web-lab")? == "default 1.31.0",
        "{}",
        life.injects("web-lab")?
    );
    // A workload of the new version keeps the old istiod from coming back.
    life.workload("late", "late-lab", "istio-injection=enabled")?;
    life.serves("late-lab", "1.31.0")?;
    let status = life.attach(&V1_30.payload()?, "blocked")?;
    ensure!(
        status.contains("late") && status.contains("1.31 proxies"),
        "{status}"
    );
    tell(&format!("a downgrade under newer proxies: {status}"));
    life.api().delete("/api/v1/namespaces/late-lab")?;
    until("end of the late workload", Duration::from_mins(2), || {
        Ok(life
            .api()
            .find("/api/v1/namespaces/late-lab")?
            .is_none()
            .then_some(()))
    })?;
    life.told("active: Istio 1.30.3")?;
    ensure!(
        life.injects("web-lab")? == "default 1.30.3",
        "{}",
        life.injects("web-lab")?
    );
    Ok(())
}

fn two_revisions_run_side_by_side(life: &Life) -> Result<()> {
    let before = life.istiod("istiod")?;
    life.config("upgrade-strategy=canary")?;
    life.attach(&V1_31.payload()?, "active: Istio 1.31.0")?;
    ensure!(
        life.istiod("istiod")? == before,
        "the old revision was changed"
    );
    life.workload("new", "new-lab", "istio.io/rev=1-31-0")?;
    life.serves("web-lab", "1.30.3")?;
    life.serves("new-lab", "1.31.0")?;
    ensure!(
        life.injects("web-lab")? == "default 1.30.3",
        "{}",
        life.injects("web-lab")?
    );
    ensure!(
        life.injects("new-lab")? == "1-31-0 1.31.0",
        "{}",
        life.injects("new-lab")?
    );
    life.gateway().expect("/new", &[], 200).map(drop)
}

fn promoted(life: &Life) -> Result<()> {
    let plan = life.action("promote", &["dry-run=true"])?;
    ensure!(plan["changes"] != "0", "{plan:#}");
    life.action("promote", &[])?;
    let again = life.action("promote", &[])?;
    ensure!(again["default"] == "1-31-0", "{again:#}");
    ensure!(
        life.validator()? == "istiod-1-31-0",
        "{}",
        life.validator()?
    );
    life.refuses_nonsense()
}

fn rolled_back(life: &Life) -> Result<()> {
    life.action("rollback", &[])?;
    let again = life.action("rollback", &[])?;
    ensure!(again["default"] == "default", "{again:#}");
    ensure!(life.validator()? == "istiod", "{}", life.validator()?);
    life.refuses_nonsense()
}

fn the_old_revision_goes_when_nobody_needs_it(life: &Life) -> Result<()> {
    let refused = life.action("remove-revision", &["revision=default"]);
    let refused = format!(
        "{:#}",
        refused.err().context("it still serves the workload")?
    );
    ensure!(refused.contains("still serves "), "{refused}");
    ensure!(refused.contains("web-"), "{refused}");
    life.restart("edge-lab", "edge")?;
    life.restart("web-lab", "web")?;
    life.serves("web-lab", "1.31.0")?;
    until(
        "no proxy on the old revision",
        Duration::from_mins(2),
        || {
            let answer = life.action("proxy-status", &["revision=default", "format=json"])?;
            Ok((answer["count"] == "0").then_some(()))
        },
    )?;
    let before = listing(life.api())?;
    let answer = life.action("remove-revision", &["revision=default"])?;
    let after = listing(life.api())?;
    let gone: Vec<_> = before.difference(&after).collect();
    let come: Vec<_> = after.difference(&before).collect();
    tell(&format!(
        "removed with the old revision: {gone:#?}; {answer}"
    ));
    ensure!(come.is_empty(), "{come:#?}");
    for expect in [
        "deployments mesh-lab/istiod",
        "serviceaccounts mesh-lab/istiod",
        "clusterroles -/istiod-clusterrole-mesh-lab",
        "mutatingwebhookconfigurations -/istio-sidecar-injector-mesh-lab",
    ] {
        ensure!(gone.iter().any(|name| *name == expect), "{expect} is left");
    }
    for name in &gone {
        let of_the_old =
            !name.contains("1-31-0") && (name.contains("mesh-lab/") || name.ends_with("mesh-lab"));
        ensure!(of_the_old, "{name} was not the old revision's");
    }
    life.gateway().expect("/web", &[], 200).map(drop)
}

fn the_application_goes_and_leaves_what_is_not_its_own(life: &Life) -> Result<()> {
    let before = listing(life.api())?;
    life.juju()
        .run(&["remove-application", APP, "--no-prompt"])?;
    until("end of the application", Duration::from_mins(3), || {
        let status = life.juju().status()?;
        Ok(status["applications"][APP].is_null().then_some(()))
    })?;
    let after = listing(life.api())?;
    let kept = |prefix: &str| after.iter().filter(|name| name.starts_with(prefix)).count();
    ensure!(
        kept("customresourcedefinitions") > 10,
        "the definitions are gone"
    );
    ensure!(kept("virtualservices") == 2, "the user's routes are gone");
    let left: Vec<_> = after
        .iter()
        .filter(|name| name.contains("istiod") || name.contains("sidecar-injector"))
        .collect();
    ensure!(left.is_empty(), "left: {left:#?}");
    tell(&format!(
        "removed with the application: {} objects; {} are left",
        before.difference(&after).count(),
        after.len()
    ));
    Ok(())
}
