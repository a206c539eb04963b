//! Jubilant, the Python library that charm authors test with, drives the simulator's `juju` command
//! unchanged.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;

use interop::charm_files::pack_python;
use interop::venv::{Venv, command, feed, scripts};
use serde_json::{Value, json};

#[test]
fn jubilant_deploys_integrates_configures_runs_and_waits() {
    let venv = Venv::ready().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let charm = |name| pack_python(name, &venv).unwrap();
    let ask = json!({
        "model": "lab",
        "charms": {"witness": charm("witness"), "listener": charm("listener")},
    });
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_simulator"), bin.join("juju")).unwrap();
    let path = env::var_os("PATH").unwrap();
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&path))).unwrap();
    let mut drive = command(venv.python());
    drive
        .arg(scripts().join("drive_with_jubilant.py"))
        .env("PATH", path)
        .env("JUJU_DATA", dir.path().join("data"));
    let seen: Value = serde_json::from_str(&feed(&mut drive, &ask.to_string()).unwrap()).unwrap();

    assert_eq!(seen["config"], json!({"greeting": "hey"}));
    assert_eq!(
        seen["status"],
        json!({
            "model": "lab", "type": "caas", "base": "ubuntu@24.04", "charm": "witness",
            "origin": "local", "relations": {"circle": ["witness"], "greeting": ["listener"]},
            "leader": true, "agent": "idle",
        })
    );
    assert_eq!(seen["task"]["status"], "completed");
    assert_eq!(seen["task"]["code"], 0);
    assert_eq!(
        (&seen["task"]["log"], &seen["task"]["succeeded"]),
        (&json!(1), &json!(true))
    );
    let events = seen["task"]["events"].as_array().unwrap();
    assert_eq!(
        events[..3],
        [
            json!("leader-elected"),
            json!("config-changed"),
            json!("start")
        ]
    );
    assert_eq!(
        events
            .iter()
            .filter(|event| *event == "config-changed")
            .count(),
        3
    );
    assert_eq!(
        seen["refused"],
        json!({"message": "refused", "reason": "asked to"})
    );
    assert_eq!(seen["unknown-action"], true);
    assert_eq!(
        seen["unknown-option"],
        "ERROR unknown option \"no-such-option\""
    );
    assert_eq!(seen["exec"], "true");
    assert_eq!(seen["speakers"], json!(["witness/0"]));
    assert_eq!(seen["log"], true);
}
