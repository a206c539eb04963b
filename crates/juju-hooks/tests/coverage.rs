//! How much of Juju's vocabulary the library speaks: every hook a charm can be sent, every hook
//! tool it can call. What Juju has and the library does not fails here.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use juju_hooks::{
    ActionCall, Bag, Context, EndpointName, Event, HookTools, LegacyTools, LogLevel, NewSecret,
    PayloadId, PebbleEvent, PebbleKind, Port, ProcessTools, Protocol, Redacted, RelationEvent,
    RelationId, RelationKind, Scope, SecretEvent, SecretGrantee, SecretId, SecretKind, SecretRef,
    SecretRevision, StatusMessage, StorageEvent, StorageForm, StorageId, StorageKind, UnitAddress,
};

/// Hooks without data of their own. `JUJU_HOOK_NAME` is their whole message.
const PLAIN: [(&str, Event); 14] = [
    ("install", Event::Install),
    ("start", Event::Start),
    ("stop", Event::Stop),
    ("remove", Event::Remove),
    ("config-changed", Event::ConfigChanged),
    ("upgrade-charm", Event::UpgradeCharm),
    ("update-status", Event::UpdateStatus),
    ("leader-elected", Event::LeaderElected),
    ("leader-deposed", Event::LeaderDeposed),
    ("leader-settings-changed", Event::LeaderSettingsChanged),
    ("collect-metrics", Event::CollectMetrics),
    ("meter-status-changed", Event::MeterStatusChanged),
    ("pre-series-upgrade", Event::PreSeriesUpgrade),
    ("post-series-upgrade", Event::PostSeriesUpgrade),
];

/// The hook tools of Juju 3.6 and 4.0, those of 3.x only apart.
const TOOLS: [&str; 37] = [
    "action-fail",
    "action-get",
    "action-log",
    "action-set",
    "application-version-set",
    "close-port",
    "config-get",
    "credential-get",
    "goal-state",
    "is-leader",
    "juju-log",
    "juju-reboot",
    "network-get",
    "open-port",
    "opened-ports",
    "relation-get",
    "relation-ids",
    "relation-list",
    "relation-model-get",
    "relation-set",
    "resource-get",
    "secret-add",
    "secret-get",
    "secret-grant",
    "secret-ids",
    "secret-info-get",
    "secret-remove",
    "secret-revoke",
    "secret-set",
    "state-delete",
    "state-get",
    "state-set",
    "status-get",
    "status-set",
    "storage-add",
    "storage-get",
    "storage-list",
];
const LEGACY: [&str; 11] = [
    "add-metric",
    "k8s-raw-get",
    "k8s-raw-set",
    "leader-get",
    "leader-set",
    "payload-register",
    "payload-status-set",
    "payload-unregister",
    "pod-spec-get",
    "pod-spec-set",
    "unit-get",
];

fn tell(line: &str) {
    // A figure that cannot be shown fails no test.
    let _unshown = writeln!(std::io::stderr().lock(), "{line}");
}

fn relation(kind: RelationKind) -> RelationEvent {
    let unit = "web/0".parse().unwrap();
    RelationEvent {
        endpoint: "mesh-info".parse().unwrap(),
        id: RelationId(3),
        kind,
        remote_app: Some("web".parse().unwrap()),
        departing_unit: (kind == RelationKind::Departed).then(|| "meshy/0".parse().unwrap()),
        remote_unit: (!matches!(kind, RelationKind::Created | RelationKind::Broken))
            .then_some(unit),
    }
}

/// Every kind of event with the name Juju gives it.
fn events() -> Vec<(String, Event)> {
    let mut all: Vec<(String, Event)> = PLAIN.map(|(name, event)| (name.to_owned(), event)).into();
    for (ending, kind) in [
        ("created", RelationKind::Created),
        ("joined", RelationKind::Joined),
        ("changed", RelationKind::Changed),
        ("departed", RelationKind::Departed),
        ("broken", RelationKind::Broken),
    ] {
        let name = format!("mesh-info-relation-{ending}");
        all.push((name, Event::Relation(relation(kind))));
    }
    for (ending, kind, revision) in [
        ("changed", SecretKind::Changed, None),
        ("rotate", SecretKind::Rotate, None),
        ("expired", SecretKind::Expired, Some(2)),
        ("remove", SecretKind::Remove, Some(1)),
    ] {
        let event = SecretEvent {
            kind,
            id: secret(),
            label: Some("key".to_owned()),
            revision,
        };
        all.push((format!("secret-{ending}"), Event::Secret(event)));
    }
    for (ending, kind) in [
        ("attached", StorageKind::Attached),
        ("detaching", StorageKind::Detaching),
    ] {
        let event = StorageEvent {
            kind,
            name: "data".to_owned(),
            index: 0,
            location: Some("/data".to_owned()),
            form: Some(StorageForm::Block),
        };
        all.push((format!("data-storage-{ending}"), Event::Storage(event)));
    }
    let check = || "alive".to_owned();
    for (ending, kind) in [
        ("ready", PebbleKind::Ready),
        (
            "custom-notice",
            PebbleKind::CustomNotice {
                id: "7".to_owned(),
                kind: "custom".to_owned(),
                key: "lab.test/x".to_owned(),
            },
        ),
        ("check-failed", PebbleKind::CheckFailed { check: check() }),
        (
            "check-recovered",
            PebbleKind::CheckRecovered { check: check() },
        ),
    ] {
        let container = "proxy".to_owned();
        let event = Event::Pebble(PebbleEvent { container, kind });
        all.push((format!("proxy-pebble-{ending}"), event));
    }
    let call = ActionCall {
        name: "render".to_owned(),
        id: "7".to_owned(),
    };
    all.push(("render".to_owned(), Event::Action(call)));
    all
}

fn secret() -> SecretId {
    SecretId::new("secret:9m4e2mr0ui3e8a215n4g").unwrap()
}

#[test]
fn every_hook_and_action_is_an_event_of_its_own() {
    let all = events();
    for (name, event) in &all {
        assert_eq!(event.name(), *name);
        let unit = "meshy/0".parse().unwrap();
        let (model, uuid) = ("lab".parse().unwrap(), "0d5f-2a".parse().unwrap());
        let sent = Context::new(event.clone(), unit, model, uuid);
        let read = Context::from_vars(sent.to_vars()).unwrap();
        assert_eq!(read.event, *event, "{name}");
        assert!(!matches!(read.event, Event::Unknown(_)), "{name}");
    }
    tell(&format!(
        "juju-hooks: events covered: {} of {}",
        all.len(),
        PLAIN.len() + 5 + 4 + 2 + 4 + 1
    ));
}

/// Calls each method once; answers do not matter, only that the tool was called.
fn call_all(tools: &(impl HookTools + LegacyTools)) {
    let endpoint: EndpointName = "mesh-info".parse().unwrap();
    let key = RelationId(3).on(&endpoint);
    let unit = "meshy/0".parse().unwrap();
    let data = BTreeMap::from([("key".to_owned(), "value".to_owned())]);
    let port = Port::new(80, Protocol::Tcp).unwrap();
    let storage: StorageId = "data/0".parse().unwrap();
    let new = NewSecret {
        content: Redacted::new(data.clone()),
        ..NewSecret::default()
    };
    let named = SecretRef::Id(secret());
    let payload = PayloadId {
        kind: "docker".to_owned(),
        class: "web".to_owned(),
    };
    drop(tools.relation_ids(&endpoint));
    drop(tools.relation_list(&key));
    drop(tools.relation_app(&key));
    drop(tools.relation_get(&key, &Bag::Unit(unit)));
    drop(tools.relation_set(&key, Scope::Unit, &data));
    drop(tools.relation_model(&key));
    drop(tools.config_get());
    drop(tools.is_leader());
    drop(tools.status_set(Scope::Unit, &StatusMessage::active("")));
    drop(tools.status_get(Scope::Unit));
    drop(tools.application_version_set("1"));
    drop(tools.action_get());
    drop(tools.action_set(&data));
    drop(tools.action_fail("no"));
    drop(tools.action_log("on"));
    drop(tools.secret_get(&named, SecretRevision::Peek));
    drop(tools.secret_add(&new));
    drop(tools.secret_set(&secret(), &new));
    drop(tools.secret_info(&named));
    drop(tools.secret_ids());
    drop(tools.secret_grant(&secret(), &key, None));
    drop(tools.secret_revoke(&secret(), &SecretGrantee::Relation(key.clone())));
    drop(tools.secret_remove(&secret(), Some(1)));
    drop(tools.network_get("mesh-info", Some(&key)));
    drop(tools.open_port(port, std::slice::from_ref(&endpoint)));
    drop(tools.close_port(port, &[]));
    drop(tools.opened_ports());
    drop(tools.resource_get("payload"));
    drop(tools.goal_state());
    drop(tools.credential_get());
    drop(tools.storage_list(Some("data")));
    drop(tools.storage_get(&storage));
    drop(tools.storage_add("data", 2));
    drop(tools.juju_reboot(true));
    drop(tools.state_get());
    drop(tools.state_set(&data));
    drop(tools.state_delete("key"));
    drop(tools.juju_log(LogLevel::Info, "line"));
    drop(tools.leader_get());
    drop(tools.leader_set(&data));
    drop(tools.unit_get(UnitAddress::Private));
    drop(tools.add_metric(&data));
    drop(tools.payload_register(&payload, "1", &["tag"]));
    drop(tools.payload_unregister("web", "1"));
    drop(tools.payload_status_set("web", "1", "started"));
    drop(tools.pod_spec_get());
    drop(tools.pod_spec_set("version: 3\n"));
    drop(tools.k8s_raw_get());
    drop(tools.k8s_raw_set("{}\n"));
}

#[test]
fn every_hook_tool_is_a_method() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("tool");
    let text = "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" >>\"${0%/*}/calls\"\ncat >/dev/null\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let all: BTreeSet<&str> = TOOLS.into_iter().chain(LEGACY).collect();
    for tool in &all {
        symlink(&script, dir.path().join(tool)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    call_all(&ProcessTools::on_path(path).scratch_in(dir.path()));
    let calls = fs::read_to_string(dir.path().join("calls")).unwrap();
    let called: BTreeSet<&str> = calls.lines().collect();
    assert_eq!(called, all);
    tell(&format!(
        "juju-hooks: hook tools covered: {} of {}, {} of them gone in Juju 4",
        called.len(),
        all.len(),
        LEGACY.len()
    ));
}

#[test]
fn tools_with_choices_are_called_as_juju_documents_them() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("tool");
    let text =
        "#!/bin/sh\nprintf '%s\\n' \"${0##*/} $*\" >>\"${0%/*}/calls\"\ncat >>\"${0%/*}/calls\"\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for tool in TOOLS.into_iter().chain(LEGACY) {
        symlink(&script, dir.path().join(tool)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let tools = ProcessTools::on_path(path).scratch_in(dir.path());
    let key = RelationId(3).on(&"mesh-info".parse().unwrap());
    let port = Port::new(80, Protocol::Tcp).unwrap();
    let ends: Vec<EndpointName> = ["a", "b"].map(|name| name.parse().unwrap()).into();
    let unit = "web/1".parse().unwrap();
    tools.open_port(port, &ends).unwrap();
    tools.close_port(port, &[]).unwrap();
    tools.secret_grant(&secret(), &key, Some(&unit)).unwrap();
    for grantee in [
        SecretGrantee::Relation(key),
        SecretGrantee::App("web".parse().unwrap()),
        SecretGrantee::Unit(unit),
    ] {
        tools.secret_revoke(&secret(), &grantee).unwrap();
    }
    tools.storage_add("data", 2).unwrap();
    tools.juju_reboot(false).unwrap();
    tools.juju_reboot(true).unwrap();
    drop(tools.storage_get(&"data/4".parse().unwrap()));
    drop(tools.unit_get(UnitAddress::Public));
    let yes = BTreeMap::from([("k".to_owned(), "yes".to_owned())]);
    tools.leader_set(&yes).unwrap();
    tools.pod_spec_set("\nversion: 3\n").unwrap();
    let calls = fs::read_to_string(dir.path().join("calls")).unwrap();
    let id = secret();
    let expect = format!(
        "open-port --endpoints a,b 80/tcp\n\
         close-port 80/tcp\n\
         secret-grant --relation mesh-info:3 --unit web/1 {id}\n\
         secret-revoke --relation mesh-info:3 {id}\n\
         secret-revoke --app web {id}\n\
         secret-revoke --unit web/1 {id}\n\
         storage-add data=2\n\
         juju-reboot \n\
         juju-reboot --now\n\
         storage-get --format=json -s data/4\n\
         unit-get --format=json public-address\n\
         leader-set --file -\n{{\"k\":\"yes\"}}\
         pod-spec-set --file -\n\nversion: 3\n"
    );
    assert_eq!(calls, expect);
}
