//! A charm as Juju starts it: a process with nothing but its environment and the hook tools.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

/// Plays every hook tool: notes its call, answers what lies beside it.
const TOOL: &str = r#"#!/bin/sh
tool=${0##*/}
dir=${0%/*}
printf '%s\n' "$tool $*" >>"$dir/calls"
[ -f "$dir/$tool.out" ] && cat "$dir/$tool.out"
[ -f "$dir/$tool.err" ] && cat "$dir/$tool.err" >&2 && exit 1
exit 0
"#;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    calls: Vec<String>,
}

/// Runs the charm for one dispatch. `mode` is the value of its option, `broken` a tool that fails.
fn dispatch(path: &str, mode: &str, broken: Option<&str>) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("tool"), TOOL).unwrap();
    fs::set_permissions(at("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    for tool in [
        "action-get",
        "action-set",
        "config-get",
        "is-leader",
        "juju-log",
        "status-set",
    ] {
        symlink(at("tool"), at(tool)).unwrap();
    }
    fs::write(at("config-get.out"), format!("{{\"mode\":\"{mode}\"}}\n")).unwrap();
    fs::write(at("is-leader.out"), "true\n").unwrap();
    fs::write(at("action-get.out"), "{}\n").unwrap();
    if let Some(tool) = broken {
        fs::write(at(&format!("{tool}.err")), "ERROR it is broken\n").unwrap();
    }
    #[expect(clippy::disallowed_methods, reason = "this test is the agent")]
    let output = Command::new(env!("CARGO_BIN_EXE_probe-charm"))
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()))
        .env("JUJU_DISPATCH_PATH", path)
        .env(
            "JUJU_HOOK_NAME",
            path.strip_prefix("hooks/").unwrap_or_default(),
        )
        .env("JUJU_UNIT_NAME", "meshy/0")
        .env("JUJU_MODEL_NAME", "lab")
        .env("JUJU_MODEL_UUID", "0d5f2a7c-8a57-4d3e-9b21-6f1c5a0e7d42")
        .env("JUJU_CHARM_DIR", dir.path())
        .env("JUJU_VERSION", "3.6.9")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let calls = fs::read_to_string(at("calls")).unwrap_or_default();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        calls: calls.lines().map(str::to_owned).collect(),
    }
}

#[test]
fn a_hook_reads_then_applies_then_tells() {
    let ended = dispatch("hooks/config-changed", "fine", None);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (Some(0), "", "")
    );
    let expect = [
        "config-get --format=json",
        "is-leader --format=json",
        "juju-log --log-level INFO -- applied",
        "counted objects=0",
        "status-set --application=true active",
        "status-set active",
        "juju-log --log-level INFO -- config-changed done: active",
    ];
    // What is asked, or shown, at the same time comes in any order.
    let steps = |calls: &[String]| -> Vec<Vec<String>> {
        let steps = [&calls[..2], &calls[2..4], &calls[4..6], &calls[6..]];
        let sorted = |step: &[String]| {
            let mut step = step.to_vec();
            step.sort();
            step
        };
        steps.map(sorted).to_vec()
    };
    let expect = expect.map(str::to_owned);
    assert_eq!(steps(&ended.calls), steps(&expect));
}

#[test]
fn an_action_answers() {
    let ended = dispatch("actions/describe", "fine", None);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(ended.calls.last().unwrap(), "action-set unit=meshy/0");
}

#[test]
fn an_unknown_hook_ends_well() {
    let ended = dispatch("hooks/invented-later", "panic", None);
    assert_eq!(ended.code, Some(0));
    let told = "juju-log --log-level DEBUG -- nothing to do in hook invented-later";
    assert_eq!(ended.calls, [told]);
}

#[test]
fn a_panic_is_logged_with_its_place_and_fails_the_hook() {
    let ended = dispatch("hooks/start", "panic", None);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    let log = ended.calls.join("\n");
    assert!(
        log.contains("juju-log --log-level ERROR -- panic in charm code at "),
        "{log}"
    );
    assert!(log.contains("tests/process/probe.rs:"), "{log}");
    assert!(log.contains("the option said so"), "{log}");
    assert!(
        log.ends_with("start failed: the charm panicked, see the log"),
        "{log}"
    );
    assert!(!log.contains("status-set"), "{log}");
}

#[test]
fn a_failure_is_logged_with_its_causes() {
    let ended = dispatch("hooks/start", "bug", None);
    assert_eq!(ended.code, Some(1));
    let told =
        "juju-log --log-level ERROR -- start failed: cannot observe: nobody thought of mode bug";
    assert_eq!(ended.calls.last().unwrap(), told);
}

#[test]
fn whoever_runs_a_failing_action_sees_why() {
    let ended = dispatch("actions/describe", "bug", None);
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr, "cannot observe: nobody thought of mode bug\n");
}

#[test]
fn a_hook_tool_that_fails_fails_the_hook() {
    let ended = dispatch("hooks/start", "fine", Some("status-set"));
    assert_eq!(ended.code, Some(1));
    let log = ended.calls.join("\n");
    assert!(
        log.ends_with("cannot write the outcome: status-set: exit code 1: it is broken"),
        "{log}"
    );
}

#[test]
fn started_by_hand_it_says_so() {
    #[expect(clippy::disallowed_methods, reason = "this test is a person")]
    let output = Command::new(env!("CARGO_BIN_EXE_probe-charm"))
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        stderr,
        "JUJU_UNIT_NAME is not set; this program is started by a juju agent only\n"
    );
}
