//! What comes of a program that ended: results of tasks, error and retry, log lines, commit.

use jiff::SignedDuration;
use serde_json::json;

use crate::Model;
use crate::ModelError;
use crate::agent::commit;
use crate::agent::context::ActionSaid;
use crate::agent::process::End;
use crate::agent::process::Ran;
use crate::hook::Hook;
use crate::model::Level;
use crate::model::status;
use crate::model::timers;
use crate::state::HookError;

/// First wait before a failed hook is tried again, doubled each time up to [`RETRY_MAX_SECS`].
const RETRY_FIRST_SECS: i64 = 5;
const RETRY_MAX_SECS: i64 = 300;

/// What a hook or action says whose writes were refused.
pub(super) const COMMITTING: &str = "committing requested changes failed";

/// What came of the charm's program.
pub(super) enum Verdict {
    /// Exit 0 and everything written.
    Done,
    /// To be run again, without an error.
    Again,
    /// Failed, in Juju's words.
    Failed(String),
}

/// Results and status of an action or exec.
pub(super) fn finish_task(
    model: &mut Model,
    id: u64,
    ran: &Ran,
    verdict: &Verdict,
    said: ActionSaid,
    out: &[u8],
    err: &[u8],
) {
    let Some(task) = model.state.tasks.get_mut(&id) else {
        return;
    };
    let mut results = said.results;
    let code = match (ran.end, verdict) {
        (End::Exit(0), Verdict::Failed(_)) => 1,
        (End::Exit(code), _) => code,
        (End::Signal(_) | End::TimedOut, _) => -1,
    };
    let mut err = err.to_vec();
    if let (End::Exit(0), Verdict::Failed(text)) = (ran.end, verdict) {
        err.extend_from_slice(text.as_bytes());
        err.push(b'\n');
    }
    for (name, bytes) in [("stdout", out), ("stderr", err.as_slice())] {
        if bytes.is_empty() {
            continue;
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            results.insert(name.into(), json!(text));
        } else {
            results.insert(name.into(), json!(base64(bytes)));
            results.insert(format!("{name}-encoding"), json!("base64"));
        }
    }
    results.insert("return-code".into(), json!(code));
    task.results = results;
    task.log = said.log;
    let (word, message) = match (verdict, said.failed) {
        (Verdict::Failed(text), _) => (
            "failed",
            if text.starts_with(COMMITTING) {
                COMMITTING.into()
            } else {
                text.clone()
            },
        ),
        (Verdict::Again, _) => ("failed", "action terminated".to_owned()),
        (Verdict::Done, Some(message)) => ("failed", message),
        (Verdict::Done, None) => ("completed", String::new()),
    };
    word.clone_into(&mut task.status);
    task.message = message;
}

/// What the agent remembers of the run, and its log lines.
pub(super) fn conclude(
    model: &mut Model,
    unit: &str,
    hook: &Hook,
    label: &str,
    how: &str,
    verdict: &Verdict,
) -> Result<(), ModelError> {
    let now = model.clock.now();
    let logger = "juju.worker.uniter.operation";
    if let Some(u) = model.state.unit_mut(unit) {
        u.uniter.running = None;
    }
    if let Hook::Task(_) = hook {
        let text = format!("ran {label:?} action (via {how})");
        model.log(unit, Level::Info, logger, &text);
        return Ok(());
    }
    match verdict {
        Verdict::Done => {
            let text = if how == "missing" {
                format!("skipped {label:?} hook (missing)")
            } else {
                format!("ran {label:?} hook (via {how})")
            };
            model.log(unit, Level::Info, logger, &text);
            if let Some(u) = model.state.unit_mut(unit) {
                u.uniter.error = None;
                u.uniter.last_update_status = match hook {
                    Hook::UpdateStatus => Some(now),
                    _ => u.uniter.last_update_status,
                };
            }
            commit_hook(model, unit, hook)
        }
        Verdict::Again => {
            let text = format!("hook {label:?} was terminated; it is queued again");
            model.log(unit, Level::Warning, logger, &text);
            if let Some(u) = model.state.unit_mut(unit)
                && u.uniter.error.is_none()
            {
                u.uniter.queued = Some(hook.clone());
            }
            Ok(())
        }
        Verdict::Failed(why) => {
            let text = format!("hook {label:?} (via {how}) failed: {why}");
            model.log(unit, Level::Error, logger, &text);
            let awaiting = format!("awaiting error resolution for {label:?} hook");
            model.log(unit, Level::Info, "juju.worker.uniter", &awaiting);
            if let Some(u) = model.state.unit_mut(unit) {
                let before = u.uniter.error.take().filter(|e| e.hook == *hook);
                let attempts = before.map_or(0, |e| e.attempts) + 1;
                let wait = RETRY_FIRST_SECS
                    .saturating_mul(1 << (attempts - 1).min(10))
                    .min(RETRY_MAX_SECS);
                u.uniter.error = Some(HookError {
                    hook: hook.clone(),
                    attempts,
                    since: now,
                    next_retry: now
                        .saturating_add(SignedDuration::from_secs(wait))
                        .unwrap_or(now),
                    resolved: None,
                });
            }
            Ok(())
        }
    }
}

pub(super) fn commit_hook(model: &mut Model, unit: &str, hook: &Hook) -> Result<(), ModelError> {
    commit::done(&mut model.state, unit, hook);
    timers::told(&mut model.state, hook, model.clock.now());
    if *hook == Hook::Remove {
        return model.vanish(unit);
    }
    if *hook == Hook::Start {
        let now = model.clock.now();
        if let Some(u) = model.state.unit_mut(unit).filter(|u| !u.status_set) {
            u.workload = status("unknown", "", now);
        }
    }
    model.reap()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |w, b| (w << 8) | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                let index = (word >> (18 - 6 * i)) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}
