//! The integrator on an Istio that Helm installed, in a namespace of its own.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::{Result, anyhow};
use e2e::Lab;
use e2e::story::Story;
use testbed::V1_31;

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
    e2e::helm::install(&lab, ISTIO, EDGE)?;
    Story::deploy(lab, MODEL, (EDGE, "edge"))
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
