//! The `juju` command as a process, and what happens when it is killed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::write_charm;

struct Shell {
    root: TempDir,
}

impl Shell {
    fn new() -> Self {
        let shell = Self {
            root: tempfile::tempdir().unwrap(),
        };
        shell.ok(&["add-model", "lab"]);
        shell
    }

    fn command(&self, args: &[&str]) -> Command {
        self.program(Path::new(env!("CARGO_BIN_EXE_juju")), args)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the command is the thing under test"
    )]
    fn program(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("JUJU_DATA", self.root.path())
            .current_dir(self.root.path());
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let out = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            out.status.code().unwrap(),
            text(out.stdout),
            text(out.stderr),
        )
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {stderr}");
        stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).unwrap()
    }

    fn charm(&self, name: &str, metadata: &str, script: &str) -> PathBuf {
        let dir = self.root.path().join(name);
        write_charm(&dir, name, metadata, script);
        dir
    }
}

#[test]
fn a_models_agents_are_of_the_version_it_was_made_with() {
    let juju = Shell::new();
    let charm = juju.charm(
        "meshy",
        "peers: {mates: {interface: mates}}\n",
        "state-get --format=json >state; env >env",
    );
    fs::write(charm.join("actions.yaml"), "probe: {description: d}\n").unwrap();
    let check = |flag: &str, whole: &str, meter: bool, nothing: &str, undeclared: bool| {
        let name = format!("m{}", whole.replace('.', "-"));
        juju.ok(&["add-model", &name, "--juju", flag]);
        juju.ok(&["deploy", "./meshy"]);
        let status = juju.json(&["status", "--format", "json"]);
        assert_eq!(status["model"]["version"], whole);
        let dir = juju
            .root
            .path()
            .join("models")
            .join(&name)
            .join("agents/unit-meshy-0/charm");
        let wrote = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
        assert!(wrote("env").contains(&format!("JUJU_VERSION={whole}\n")));
        assert_eq!(wrote("env").contains("JUJU_METER_STATUS="), meter);
        assert_eq!(wrote("state"), nothing);
        let (code, ..) = juju.run(&["run", "meshy/0", "probe", "more=1"]);
        assert_eq!(code == 0, undeclared, "{flag}");
    };
    check("3.6", "3.6.9", true, "{}\n", true);
    check("4.0", "4.0.0", false, "null\n", false);
    check("3.5.2", "3.5.2", true, "{}\n", true);
    let (code, _, stderr) = juju.run(&["add-model", "bad", "--juju", "later"]);
    assert_eq!(
        (code, stderr.as_str()),
        (1, "ERROR \"later\" is no version of Juju\n")
    );
    assert!(!juju.root.path().join("models/bad").exists());
}

#[test]
fn applications_of_two_models_are_related_by_an_offer() {
    let juju = Shell::new();
    juju.charm("meshy", "provides: {out: {interface: cups}}\n", "");
    let script =
        "case $hook in in-relation-joined) status-set active \"$JUJU_REMOTE_UNIT\" ;; esac";
    juju.charm("taker", "requires: {in: {interface: cups}}\n", script);
    juju.ok(&["deploy", "./meshy"]);
    assert_eq!(
        juju.ok(&["offer", "meshy:out", "cups"]),
        "Application \"meshy\" endpoints [out] available at \"admin/lab.cups\"\n"
    );
    juju.ok(&["add-model", "other"]);
    juju.ok(&["deploy", "./taker"]);
    assert_eq!(
        juju.ok(&["consume", "lab.cups", "dishes"]),
        "Added admin/lab.cups as dishes\n"
    );
    juju.ok(&["integrate", "taker", "dishes"]);
    let status = juju.json(&["status", "--format", "json"]);
    let unit = &status["applications"]["taker"]["units"]["taker/0"];
    assert_eq!(unit["workload-status"]["message"], "dishes/0");
    let offers = juju.json(&["offers", "-m", "lab", "--format", "json"]);
    assert_eq!(offers["cups"]["active-connected-count"], 1);
    let (code, _, stderr) = juju.run(&["remove-offer", "lab.cups"]);
    assert_eq!(code, 1, "{stderr}");
    juju.ok(&["remove-saas", "dishes"]);
    let offers = juju.json(&["offers", "-m", "lab", "--format", "json"]);
    assert_eq!(offers["cups"]["total-connected-count"], 0);
    juju.ok(&["remove-offer", "admin/lab.cups"]);
}

#[test]
fn an_operators_day() {
    let juju = Shell::new();
    let meshy = juju.charm(
        "meshy",
        "provides: {out: {interface: cups}}\n",
        "[ $hook != probe ] || { action-set depth=$(action-get depth); exit 0; }\n\
         status-set active \"$(config-get greeting)\"",
    );
    fs::write(
        meshy.join("config.yaml"),
        "options: {greeting: {type: string, default: hello}}\n",
    )
    .unwrap();
    fs::write(
        meshy.join("actions.yaml"),
        "probe: {params: {depth: {type: integer, default: 3}}, additionalProperties: false}\n",
    )
    .unwrap();
    juju.charm("taker", "requires: {in: {interface: cups}}\n", "");
    juju.ok(&["deploy", "./meshy", "--config", "greeting=hi", "--trust"]);
    juju.ok(&["deploy", "./taker", "drinker", "-n", "2", "-m", "lab"]);
    juju.ok(&["integrate", "meshy:out", "drinker"]);
    let status = juju.json(&["status", "--format", "json"]);
    let unit = &status["applications"]["meshy"]["units"]["meshy/0"];
    assert_eq!(unit["workload-status"]["message"], "hi");
    let table = juju.ok(&["status", "--relations"]);
    assert!(table.contains("meshy/0*"), "{table}");
    assert!(
        table.contains("meshy:out             drinker:in  cups       regular"),
        "{table}"
    );

    juju.ok(&["config", "meshy", "greeting="]);
    assert_eq!(juju.ok(&["config", "meshy", "greeting"]), "\n");
    juju.ok(&["config", "meshy", "--reset", "greeting"]);
    assert_eq!(juju.ok(&["config", "meshy", "greeting"]), "hello\n");
    let config = juju.json(&["config", "--format", "json", "meshy"]);
    assert_eq!(config["settings"]["greeting"]["source"], "default");
    assert_eq!(config["application-config"]["trust"]["value"], true);

    let run = juju.json(&[
        "run",
        "meshy/leader",
        "probe",
        "depth=7",
        "--format",
        "json",
    ]);
    assert_eq!(run["meshy/0"]["results"]["depth"], "7");
    let text = juju.ok(&["run", "meshy/0", "probe"]);
    assert!(
        text.contains("Waiting for task 4...\ndepth: \"3\"\n"),
        "{text}"
    );
    let shown = juju.json(&["show-unit", "drinker/1", "--format", "json"]);
    assert_eq!(shown["drinker/1"]["relation-info"][0]["endpoint"], "in");
    let log = juju.ok(&["debug-log", "--include", "drinker/1", "--limit", "2"]);
    assert_eq!(log.lines().count(), 2);
    assert!(
        log.lines().all(|l| l.starts_with("unit-drinker-1: ")),
        "{log}"
    );
    let exec = juju.json(&[
        "exec",
        "--unit",
        "meshy/0",
        "--format",
        "json",
        "--",
        "is-leader",
    ]);
    assert_eq!(exec["meshy/0"]["results"]["stdout"], "True\n");

    juju.ok(&["remove-unit", "--no-prompt", "drinker", "--num-units", "1"]);
    juju.ok(&["remove-relation", "meshy", "drinker"]);
    juju.ok(&["remove-application", "--no-prompt", "drinker"]);
    let status = juju.json(&["status", "--format", "json"]);
    assert!(status["applications"].get("drinker").is_none());
    juju.ok(&["destroy-model", "--no-prompt", "lab"]);
    assert!(!juju.root.path().join("models/lab").exists());
}

#[test]
fn mistakes_are_named_with_what_is_right() {
    let juju = Shell::new();
    let check = |args: &[&str], code: i32, expect: &str| {
        let (got, _, stderr) = juju.run(args);
        assert_eq!(
            (got, stderr),
            (code, format!("ERROR {expect}\n")),
            "{args:?}"
        );
    };
    check(
        &["stauts"],
        2,
        "unknown command \"stauts\"; did you mean \"juju status\"?",
    );
    check(
        &["status", "--formt", "json"],
        2,
        "option provided but not defined: --formt; did you mean --format?",
    );
    check(
        &["deploy", "meshy"],
        2,
        "only local charms can be deployed; write the path as ./meshy or from the root",
    );
    check(&["config", "meshy"], 1, "application \"meshy\" not found");
    check(
        &["status", "-m", "none"],
        1,
        "model \"none\" not found; make it with \"juju add-model none\"",
    );
    check(
        &["trust", "meshy"],
        2,
        "\"--scope=cluster\" is needed: on Kubernetes trust reaches over \
         the whole cluster",
    );
}

#[test]
fn a_failed_action_is_printed_and_fails_the_command() {
    let juju = Shell::new();
    let charm = juju.charm("meshy", "", "[ $hook != probe ] || action-fail no luck");
    fs::write(charm.join("actions.yaml"), "probe: {}\n").unwrap();
    juju.ok(&["deploy", "./meshy"]);
    let (code, stdout, stderr) = juju.run(&["run", "--format", "json", "meshy/0", "probe"]);
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 1);
    assert_eq!(result["meshy/0"]["message"], "no luck");
    assert!(stderr.contains("task failed"), "{stderr}");
    let (code, stdout, stderr) = juju.run(&["run", "meshy/0", "nothing"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("(not found)"), "{stderr}");
}

#[test]
fn a_packed_charm_runs_with_the_exec_bit_it_was_packed_with() {
    let juju = Shell::new();
    let file = fs::File::create(juju.root.path().join("meshy_amd64.charm")).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    for (name, mode, text) in [
        (
            "metadata.yaml",
            0o644,
            "name: meshy\nsummary: s\ndescription: d\n",
        ),
        (
            "manifest.yaml",
            0o644,
            "bases: [{name: ubuntu, channel: \"22.04\"}]\n",
        ),
        ("dispatch", 0o755, "#!/bin/sh\nstatus-set active packed\n"),
    ] {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(mode);
        zip.start_file(name, options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    juju.ok(&["deploy", "./meshy_amd64.charm", "packed"]);
    let status = juju.json(&["status", "--format", "json"]);
    let app = &status["applications"]["packed"];
    assert_eq!(app["base"]["channel"], "22.04");
    assert_eq!(app["application-status"]["message"], "packed");
}

#[test]
fn a_program_built_on_the_library_is_its_own_hook_tools() {
    let juju = Shell::new();
    let alone = juju.root.path().join("alone");
    fs::copy(env!("CARGO_BIN_EXE_juju"), &alone).unwrap();
    juju.charm("meshy", "", "status-set active $(is-leader)");
    juju.ok(&["deploy", "./meshy"]);
    let out = juju
        .program(&alone, &["status", "--format", "json"])
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        status["applications"]["meshy"]["application-status"]["message"],
        "True"
    );
}

#[test]
fn a_killed_simulator_resumes_the_hook_and_ends_what_was_left_of_it() {
    let juju = Shell::new();
    // The first start hook hangs on a pipe nobody writes to; later ones pass.
    juju.charm(
        "meshy",
        "peers: {mates: {interface: mates}}\n",
        "[ $hook = start ] || exit 0\n\
         relation-set -r mates:0 try=$(wc -l < ../tries 2>/dev/null || echo 0)\n\
         status-set maintenance trying\n\
         echo $$ >> ../tries\n\
         [ -e ../../again ] || { mkfifo ../hang; : > ../ready; read x < ../hang; }",
    );
    juju.ok(&["deploy", "./meshy"]);
    let agent = juju.root.path().join("models/lab/agents/unit-meshy-0");
    let mut killed = juju
        .command(&["status"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    await_file(&agent.join("ready"), &mut killed);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = fs::read_to_string(agent.join("tries"))
        .unwrap()
        .trim()
        .to_owned();
    assert!(
        Path::new("/proc").join(&left).exists(),
        "the charm outlived its agent"
    );

    fs::write(agent.join("../again"), "").unwrap();
    let status = juju.json(&["status", "--format", "json"]);
    let unit = &status["applications"]["meshy"]["units"]["meshy/0"];
    assert_eq!(unit["workload-status"]["message"], "trying");
    assert_eq!(unit["juju-status"]["current"], "idle");
    assert_eq!(
        fs::read_to_string(agent.join("tries"))
            .unwrap()
            .lines()
            .count(),
        2
    );
    assert!(is_over(&left), "the process left over was killed");
    let shown = juju.json(&["show-unit", "meshy/0", "--format", "json"]);
    let data = &shown["meshy/0"]["relation-info"][0]["local-unit"]["data"];
    assert_eq!(data["try"], "1", "only the second run's writes count");
}

#[test]
fn an_action_interrupted_by_a_kill_has_failed_and_is_not_run_again() {
    let juju = Shell::new();
    let charm = juju.charm(
        "meshy",
        "",
        "[ $hook = probe ] || exit 0\nmkfifo ../hang; echo $$ > ../pid; : > ../ready; read x < ../hang",
    );
    fs::write(charm.join("actions.yaml"), "probe: {}\n").unwrap();
    juju.ok(&["deploy", "./meshy"]);
    let agent = juju.root.path().join("models/lab/agents/unit-meshy-0");
    let mut killed = juju
        .command(&["run", "meshy/0", "probe"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    await_file(&agent.join("ready"), &mut killed);
    killed.kill().unwrap();
    killed.wait().unwrap();
    juju.ok(&["status"]);
    let state: Value = serde_json::from_str(
        &fs::read_to_string(juju.root.path().join("models/lab/state.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(state["tasks"]["2"]["status"], "failed");
    let left = fs::read_to_string(agent.join("pid")).unwrap();
    assert!(is_over(left.trim()), "the process left over was killed");
}

/// Whether a process has ended (it may wait to be reaped).
fn is_over(pid: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.is_empty()
}

/// Waits until a charm has come to the point that makes `file`; gives up when the command ends.
fn await_file(file: &Path, command: &mut Child) {
    while !file.exists() {
        assert!(
            command.try_wait().unwrap().is_none(),
            "the command ended early"
        );
        std::thread::yield_now();
    }
}
