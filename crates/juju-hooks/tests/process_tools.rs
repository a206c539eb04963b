//! The hook tools as processes: what a tool is called with, fed and answers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use juju_hooks::{
    Bag, Databag, EndpointName, HookTools as _, LogLevel, NewSecret, ProcessTools, Redacted,
    RelationId, RelationKey, Scope, SecretId, SecretOwner, SecretRef, SecretRevision, Status,
    StatusMessage, ToolError,
};
use tempfile::TempDir;

/// Plays every hook tool: notes its arguments (each ended by US, the call by RS), its input and
/// the files it is pointed to; answers what the test laid down.
const TOOL: &str = r#"#!/bin/sh
tool=${0##*/}
dir=${0%/*}
printf '%s\037' "$tool" "$@" >>"$dir/log/calls"
printf '\036' >>"$dir/log/calls"
cat >"$dir/log/stdin"
for arg in "$@"; do
  case $arg in
  *'#file='*) stat -c '%a' "${arg#*=}" "$(dirname "${arg#*=}")" >>"$dir/log/files"
              cat "${arg#*=}" >>"$dir/log/files" ;;
  esac
done
[ -f "$dir/log/$tool.err" ] && cat "$dir/log/$tool.err" >&2
[ -f "$dir/log/$tool.out" ] && cat "$dir/log/$tool.out"
[ -f "$dir/log/$tool.rc" ] && exit "$(cat "$dir/log/$tool.rc")"
[ -f "$dir/log/$tool.kill" ] && kill -9 $$
exit 0
"#;

const TOOLS: [&str; 24] = [
    "action-fail",
    "action-get",
    "action-log",
    "action-set",
    "application-version-set",
    "close-port",
    "config-get",
    "goal-state",
    "is-leader",
    "juju-log",
    "network-get",
    "open-port",
    "opened-ports",
    "relation-get",
    "relation-ids",
    "relation-list",
    "relation-set",
    "resource-get",
    "secret-add",
    "secret-get",
    "secret-set",
    "state-get",
    "status-get",
    "status-set",
];

struct Agent {
    dir: TempDir,
}

impl Agent {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("log")).unwrap();
        fs::create_dir(dir.path().join("scratch")).unwrap();
        let script = dir.path().join("tool");
        fs::write(&script, TOOL).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        for tool in TOOLS {
            symlink(&script, dir.path().join(tool)).unwrap();
        }
        Self { dir }
    }

    fn tools(&self) -> ProcessTools {
        ProcessTools::on_path(format!("{}:/usr/bin:/bin", self.dir.path().display()))
            .scratch_in(self.dir.path().join("scratch"))
    }

    fn answers(self, tool: &str, text: &str) -> Self {
        self.lay(&format!("{tool}.out"), text)
    }

    fn fails(self, tool: &str, code: i32, stderr: &str) -> Self {
        self.lay(&format!("{tool}.rc"), &code.to_string())
            .lay(&format!("{tool}.err"), stderr)
    }

    fn lay(self, file: &str, text: &str) -> Self {
        fs::write(self.dir.path().join("log").join(file), text).unwrap();
        self
    }

    fn logged(&self, file: &str) -> String {
        fs::read_to_string(self.dir.path().join("log").join(file)).unwrap_or_default()
    }

    /// Each call with its arguments, the tool's name first.
    fn calls(&self) -> Vec<Vec<String>> {
        let log = self.logged("calls");
        let calls = log.split_terminator('\u{1e}');
        calls
            .map(|call| call.split_terminator('\u{1f}').map(str::to_owned).collect())
            .collect()
    }
}

fn key() -> RelationKey {
    RelationId(3).on(&EndpointName::new("ingress").unwrap())
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

#[test]
fn reading_tools_are_called_as_juju_documents_them() {
    let check =
        |tool: &str, answer: &str, call: &dyn Fn(&ProcessTools) -> String, expect: (&str, &str)| {
            let agent = Agent::new().answers(tool, answer);
            let got = call(&agent.tools());
            let argv: Vec<String> = agent.calls().iter().map(|call| call.join(" ")).collect();
            assert_eq!((argv.join("\n").as_str(), got.as_str()), expect);
        };
    check(
        "relation-ids",
        "[\"ingress:12\",\"ingress:3\"]\n",
        &|t| format!("{:?}", t.relation_ids(&key().endpoint).unwrap()),
        (
            "relation-ids --format=json ingress",
            "[RelationId(3), RelationId(12)]",
        ),
    );
    check(
        "relation-list",
        "[\"web/10\",\"web/2\"]\n",
        &|t| {
            let units = t.relation_list(&key()).unwrap();
            units
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        },
        ("relation-list --format=json -r ingress:3", "web/2 web/10"),
    );
    check(
        "relation-list",
        "\"web\"\n",
        &|t| {
            format!(
                "{:?}",
                t.relation_app(&key()).unwrap().map(|app| app.to_string())
            )
        },
        (
            "relation-list --format=json --app -r ingress:3",
            "Some(\"web\")",
        ),
    );
    check(
        "relation-get",
        "{\"host\":\"\\u003ca\\u003e \\u2028\"}\n",
        &|t| {
            format!(
                "{:?}",
                t.relation_get(&key(), &Bag::App("web".parse().unwrap()))
                    .unwrap()
            )
        },
        (
            "relation-get --format=json -r ingress:3 --app - web",
            r#"{"host": "<a> \u{2028}"}"#,
        ),
    );
    check(
        "relation-get",
        "null\n",
        &|t| {
            format!(
                "{:?}",
                t.relation_get(&key(), &Bag::Unit("web/0".parse().unwrap()))
                    .unwrap()
            )
        },
        ("relation-get --format=json -r ingress:3 - web/0", "{}"),
    );
    check(
        "config-get",
        "{\"ratio\":5,\"unset\":null}\n",
        &|t| {
            format!(
                "{:?}",
                t.config_get().unwrap().into_iter().collect::<Vec<_>>()
            )
        },
        ("config-get --format=json", "[(\"ratio\", Number(5))]"),
    );
    check(
        "is-leader",
        "true\n",
        &|t| t.is_leader().unwrap().to_string(),
        ("is-leader --format=json", "true"),
    );
    check(
        "status-get",
        "{\"application-status\":{\"status\":\"waiting\",\"message\":\"x\",\"units\":{}}}\n",
        &|t| t.status_get(Scope::App).unwrap().status,
        (
            "status-get --include-data --format=json --application=true",
            "waiting",
        ),
    );
    check(
        "state-get",
        "null\n",
        &|t| format!("{:?}", t.state_get().unwrap()),
        ("state-get --format=json", "{}"),
    );
    check(
        "action-get",
        "",
        &|t| t.action_get().unwrap().len().to_string(),
        ("action-get --format=json", "0"),
    );
    check(
        "resource-get",
        "/var/lib/juju/payload.tgz",
        &|t| t.resource_get("payload").unwrap().display().to_string(),
        ("resource-get payload", "/var/lib/juju/payload.tgz"),
    );
    check(
        "opened-ports",
        "[\"80/tcp\",\"icmp\",\"1-9/udp\",\"53/udp\"]\n",
        &|t| {
            format!(
                "{:?}",
                t.opened_ports()
                    .unwrap()
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
            )
        },
        ("opened-ports --format=json", r#"["53/udp", "80/tcp"]"#),
    );
    check(
        "goal-state",
        r#"{"units":{"meshy/0":{"status":"active","since":"2026-01-02 15:04:05Z"}},"relations":{}}"#,
        &|t| t.goal_state().unwrap().planned_units().to_string(),
        ("goal-state --format=json", "1"),
    );
    check(
        "network-get",
        r#"{"ingress-addresses":["10.0.0.7"]}"#,
        &|t| {
            format!(
                "{:?}",
                t.network_get("ingress", Some(&key()))
                    .unwrap()
                    .ingress_address()
            )
        },
        (
            "network-get --format=json -r ingress:3 ingress",
            "Some(\"10.0.0.7\")",
        ),
    );
}

#[test]
fn relation_data_goes_through_standard_input_whatever_it_holds() {
    let agent = Agent::new();
    let large = "x".repeat(200 * 1024);
    let data = texts(&[
        ("large", large.as_str()),
        ("bool", "true"),
        ("float", "1e3"),
        ("null", "~"),
        ("map", "a: b"),
        ("spaces", "  padded\t"),
        ("lines", "one\ntwo\n"),
        ("emoji", "🦀\u{2028}<&>"),
        ("gone", ""),
    ]);
    agent
        .tools()
        .relation_set(&key(), Scope::App, &data)
        .unwrap();
    assert_eq!(
        agent.calls(),
        [["relation-set", "-r", "ingress:3", "--app", "--file", "-"]]
    );
    let sent: Databag = serde_json::from_str(&agent.logged("stdin")).unwrap();
    assert_eq!(sent, data);
    let sent: Databag = yaml::parse_as(&agent.logged("stdin")).unwrap();
    assert_eq!(sent, data);
}

#[test]
fn a_status_message_is_never_taken_for_a_flag() {
    let agent = Agent::new();
    let tools = agent.tools();
    tools
        .status_set(Scope::Unit, &StatusMessage::blocked("--format is unknown"))
        .unwrap();
    tools
        .status_set(Scope::App, &StatusMessage::new(Status::Active, ""))
        .unwrap();
    tools.application_version_set("-1").unwrap();
    tools.action_fail("-x").unwrap();
    let expect: [&[&str]; 4] = [
        &["status-set", "blocked", "--", "--format is unknown"],
        &["status-set", "--application=true", "active"],
        &["application-version-set", "--", "-1"],
        &["action-fail", "--", "-x"],
    ];
    assert_eq!(agent.calls(), expect);
}

#[test]
fn secret_content_is_in_no_argument_and_its_files_are_private_and_gone() {
    let agent = Agent::new().answers("secret-add", "secret:9m4e2mr0ui3e8a215n4g\n");
    let secret = NewSecret {
        content: Redacted::new(texts(&[("password", "hunter2"), ("token", "-----BEGIN")])),
        label: Some("db".to_owned()),
        owner: SecretOwner::Unit,
        ..NewSecret::default()
    };
    let tools = agent.tools();
    let id = tools.secret_add(&secret).unwrap();
    assert_eq!(id.as_str(), "secret:9m4e2mr0ui3e8a215n4g");
    tools.secret_set(&id, &secret).unwrap();
    let log = agent.logged("calls");
    assert!(!log.contains("hunter2") && !log.contains("BEGIN"), "{log}");
    assert!(
        log.contains("--label\u{1f}db\u{1f}--owner\u{1f}unit\u{1f}password#file="),
        "{log}"
    );
    assert_eq!(
        agent.logged("files"),
        "600\n700\nhunter2600\n700\n-----BEGIN".repeat(2)
    );
    assert_eq!(
        fs::read_dir(agent.dir.path().join("scratch"))
            .unwrap()
            .count(),
        0
    );
    assert!(!format!("{secret:?}").contains("hunter2"));
}

#[test]
fn a_secret_key_that_is_a_path_is_refused_here() {
    let agent = Agent::new();
    let content = Redacted::new(texts(&[("../evil", "x")]));
    let secret = NewSecret {
        content,
        ..NewSecret::default()
    };
    assert!(matches!(
        agent.tools().secret_add(&secret),
        Err(ToolError::Invalid { .. })
    ));
    assert!(agent.calls().is_empty());
}

#[test]
fn a_secret_is_named_by_id_or_by_label_never_by_both() {
    let agent = Agent::new().answers("secret-get", r#"{"password":"hunter2"}"#);
    let tools = agent.tools();
    let id = SecretRef::Id(SecretId::new("secret:9m4e2mr0ui3e8a215n4g").unwrap());
    let content = tools.secret_get(&id, SecretRevision::Refresh).unwrap();
    assert_eq!(content.expose()["password"], "hunter2");
    tools
        .secret_get(&SecretRef::Label("db".to_owned()), SecretRevision::Peek)
        .unwrap();
    let expect: [&[&str]; 2] = [
        &[
            "secret-get",
            "--format=json",
            "secret:9m4e2mr0ui3e8a215n4g",
            "--refresh",
        ],
        &["secret-get", "--format=json", "--label", "db", "--peek"],
    ];
    assert_eq!(agent.calls(), expect);
}

#[test]
fn long_log_messages_are_split_below_the_argument_limit() {
    let agent = Agent::new();
    let message = "é".repeat(100_000);
    agent.tools().juju_log(LogLevel::Warning, &message).unwrap();
    let calls = agent.calls();
    assert_eq!(calls.len(), 2);
    for call in &calls {
        assert_eq!(call[..4], ["juju-log", "--log-level", "WARNING", "--"]);
        assert!(call[4].len() <= 131_071);
    }
    assert_eq!(calls[0][4].clone() + &calls[1][4], message);
}

#[test]
fn a_message_with_nul_is_still_logged() {
    let agent = Agent::new();
    agent.tools().juju_log(LogLevel::Info, "a\0b").unwrap();
    assert_eq!(
        agent.calls(),
        [["juju-log", "--log-level", "INFO", "--", "a b"]]
    );
}

#[test]
fn many_results_are_sent_in_several_calls() {
    let agent = Agent::new();
    let value = "v".repeat(100_000);
    let results: BTreeMap<String, String> = (0..12)
        .map(|n| (format!("part.{n}"), value.clone()))
        .collect();
    agent.tools().action_set(&results).unwrap();
    let calls = agent.calls();
    assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [11, 3]);
    assert!(calls[0][1].starts_with("part.0=vv"));
}

#[test]
fn reserved_and_malformed_result_keys_reach_no_tool() {
    for key in [
        "stdout",
        "stderr-encoding",
        "return-code",
        "Upper",
        "under_score",
        "a..b",
    ] {
        let agent = Agent::new();
        let sent = agent
            .tools()
            .action_set(&texts(&[("fine", "x"), (key, "x")]));
        assert!(matches!(sent, Err(ToolError::Invalid { .. })), "{key}");
        assert!(agent.calls().is_empty(), "{key}");
    }
}

#[test]
fn an_argument_too_long_is_refused_before_the_call() {
    let agent = Agent::new();
    let sent = agent
        .tools()
        .action_set(&texts(&[("log", "x".repeat(131_072).as_str())]));
    assert!(matches!(
        sent,
        Err(ToolError::TooLarge { bytes: 131_076, .. })
    ));
    let limit = "x".repeat(131_071 - "log=".len());
    agent
        .tools()
        .action_set(&texts(&[("log", limit.as_str())]))
        .unwrap();
    assert_eq!(agent.calls().len(), 1);
}

#[test]
fn failures_are_typed_by_what_the_tool_says() {
    let check = |code: i32, stderr: &str, expect: fn(&ToolError) -> bool| {
        let agent = Agent::new().fails("relation-get", code, stderr);
        let bag = Bag::App("meshy".parse().unwrap());
        let error = agent.tools().relation_get(&key(), &bag).unwrap_err();
        assert!(expect(&error), "{error:?}");
    };
    check(1, "ERROR permission denied\n", ToolError::is_access);
    check(
        2,
        "ERROR invalid value \"x:9\" for option -r: relation not found\n",
        ToolError::is_not_found,
    );
    check(2, "ERROR unrecognized args: [\"x\"]\n", |e| {
        matches!(e, ToolError::Invalid { .. })
    });
    check(1, "ERROR JUJU_CONTEXT_ID not set\n", |e| {
        matches!(e, ToolError::Transport { .. })
    });
    check(
        1,
        "ERROR boom\n",
        |e| matches!(e, ToolError::Failed { code: 1, detail, .. } if detail == "boom"),
    );
}

#[test]
fn a_missing_killed_or_babbling_tool_is_told_apart() {
    let nowhere = ProcessTools::on_path("/nonexistent");
    assert!(matches!(
        nowhere.is_leader(),
        Err(ToolError::Transport {
            source: Some(_),
            ..
        })
    ));
    let agent = Agent::new().lay("is-leader.kill", "");
    assert!(matches!(
        agent.tools().is_leader(),
        Err(ToolError::Transport { source: None, .. })
    ));
    let agent = Agent::new().answers("is-leader", "maybe\n");
    assert!(matches!(
        agent.tools().is_leader(),
        Err(ToolError::Answer { .. })
    ));
}

#[test]
fn a_tool_that_fails_without_reading_its_input_reports_its_own_error() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("relation-set");
    fs::write(
        &script,
        "#!/bin/sh\necho 'ERROR cannot write relation settings' >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let tools = ProcessTools::on_path(dir.path());
    let data = texts(&[("large", "x".repeat(1 << 20).as_str())]);
    assert!(
        tools
            .relation_set(&key(), Scope::App, &data)
            .unwrap_err()
            .is_access()
    );
}

#[test]
fn every_question_is_asked_again() {
    let agent = Agent::new().answers("is-leader", "true");
    let tools = agent.tools();
    assert!(tools.is_leader().unwrap());
    let agent = agent.answers("is-leader", "false");
    assert!(!tools.is_leader().unwrap());
    assert_eq!(agent.calls().len(), 2);
}
