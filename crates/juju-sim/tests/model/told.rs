//! Hooks that are told: secrets that fall due, storage, Pebble, what only old agents send; and how
//! agents of different versions differ.

use juju_hooks::{
    Event, PebbleEvent, PebbleKind, SecretEvent, SecretId, SecretKind, StorageEvent, StorageForm,
    StorageKind,
};
use juju_sim::Options;
use juju_sim::cloud::NoCloud;
use std::sync::Arc;

use crate::lab::Lab;
use crate::lab::options;

fn tell(lab: &mut Lab, event: &Event) {
    lab.model.fire("meshy/0", event).unwrap();
    lab.model.advance().unwrap();
}

fn pebble(kind: PebbleKind) -> Event {
    Event::Pebble(PebbleEvent {
        container: "proxy".to_owned(),
        kind,
    })
}

fn storage(kind: StorageKind) -> Event {
    Event::Storage(StorageEvent {
        kind,
        name: "data".to_owned(),
        index: 0,
        location: Some("/data".to_owned()),
        form: Some(StorageForm::Filesystem),
    })
}

#[test]
fn each_told_hook_runs_once_with_its_variables() {
    let mut lab = Lab::new();
    let script = "env | grep -E '^JUJU_(WORKLOAD|NOTICE|PEBBLE|STORAGE)' | sort >last";
    lab.deploy("meshy", "", script);
    let notice = PebbleKind::CustomNotice {
        id: "7".to_owned(),
        kind: "custom".to_owned(),
        key: "lab.test/x".to_owned(),
    };
    let check = "alive".to_owned();
    let mut told = |event: &Event, expect: &str| {
        tell(&mut lab, event);
        assert_eq!(lab.hooks("meshy/0").last(), Some(&event.name()));
        assert_eq!(lab.wrote("meshy/0", "last"), expect, "{event}");
        let before = lab.hooks("meshy/0").len();
        lab.model.advance().unwrap();
        assert_eq!(lab.hooks("meshy/0").len(), before);
    };
    told(&pebble(PebbleKind::Ready), "JUJU_WORKLOAD_NAME=proxy\n");
    told(
        &pebble(notice),
        "JUJU_NOTICE_ID=7\nJUJU_NOTICE_KEY=lab.test/x\nJUJU_NOTICE_TYPE=custom\n\
         JUJU_WORKLOAD_NAME=proxy\n",
    );
    told(
        &pebble(PebbleKind::CheckFailed { check }),
        "JUJU_PEBBLE_CHECK_NAME=alive\nJUJU_WORKLOAD_NAME=proxy\n",
    );
    told(
        &storage(StorageKind::Attached),
        "JUJU_STORAGE_ID=data/0\nJUJU_STORAGE_KIND=filesystem\nJUJU_STORAGE_LOCATION=/data\n",
    );
    told(&Event::LeaderSettingsChanged, "");
    told(&Event::MeterStatusChanged, "");
    told(&Event::Unknown("invented-later".to_owned()), "");
}

#[test]
fn storage_is_there_from_attached_to_the_end_of_detaching() {
    let mut lab = Lab::new();
    let script = "case $hook in data-*) storage-get location >last; storage-list --format=json >>last ;; \
                  update-status) storage-list --format=json >last ;; esac";
    lab.deploy("meshy", "", script);
    for kind in [StorageKind::Attached, StorageKind::Detaching] {
        tell(&mut lab, &storage(kind));
        assert_eq!(lab.wrote("meshy/0", "last"), "/data\n[\"data/0\"]\n");
    }
    lab.model.fire_update_status("meshy").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.wrote("meshy/0", "last"), "[]\n");
}

#[test]
fn an_owner_is_told_of_its_secret_and_only_while_it_leads() {
    let mut lab = Lab::new();
    let script = "case $hook in \
                  leader-elected) secret-add --label key token=one >id ;; \
                  secret-*) echo $JUJU_SECRET_ID $JUJU_SECRET_LABEL $JUJU_SECRET_REVISION >last ;; esac";
    lab.deploy("meshy", "", script);
    lab.model.add_units("meshy", 1).unwrap();
    lab.model.advance().unwrap();
    let id = SecretId::new(lab.wrote("meshy/0", "id").trim()).unwrap();
    let event = |kind, revision| {
        Event::Secret(SecretEvent {
            kind,
            id: id.clone(),
            label: Some("key".to_owned()),
            revision,
        })
    };
    tell(&mut lab, &event(SecretKind::Rotate, None));
    assert_eq!(lab.wrote("meshy/0", "last"), format!("{id} key\n"));
    tell(&mut lab, &event(SecretKind::Expired, Some(1)));
    assert_eq!(lab.wrote("meshy/0", "last"), format!("{id} key 1\n"));
    let rotate = event(SecretKind::Rotate, None);
    lab.model.fire("meshy/1", &rotate).unwrap();
    lab.model.advance().unwrap();
    assert!(!lab.hooks("meshy/1").contains(&"secret-rotate".to_owned()));
}

#[test]
fn a_dying_unit_is_told_no_settings_of_its_leader() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", "");
    lab.model.remove_application("meshy", false).unwrap();
    lab.model
        .fire("meshy/0", &Event::LeaderSettingsChanged)
        .unwrap();
    lab.model.advance().unwrap();
    let told = lab.hooks("meshy/0");
    assert!(
        !told.contains(&"leader-settings-changed".to_owned()),
        "{told:?}"
    );
}

#[test]
fn what_the_agent_itself_decides_cannot_be_told() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", "");
    for event in [Event::Install, Event::ConfigChanged, Event::LeaderElected] {
        let refused = lab.model.fire("meshy/0", &event).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("{event} is the agent's own business")
        );
    }
}

#[test]
fn agents_of_juju_4_differ_where_juju_4_does() {
    let saw = |version: &str| {
        let options = Options {
            juju_version: version.to_owned(),
            ..options()
        };
        let mut lab = Lab::with(options, Arc::new(NoCloud));
        let script = "[ $hook = start ] || exit 0\n\
                      state-get --format=json >seen; echo \"meter:$JUJU_METER_INFO\" >>seen\n\
                      relation-get -r cluster:0 - web/0 2>>seen || true";
        lab.deploy("meshy", "peers: {cluster: {interface: p}}", script);
        lab.wrote("meshy/0", "seen")
    };
    assert_eq!(saw("3.6.9"), "{}\nmeter:not set\nERROR permission denied\n");
    assert_eq!(
        saw("4.0.1"),
        "null\nmeter:\nERROR permission denied (unauthorized access)\n"
    );
}

#[test]
fn dispatch_runs_once_even_beside_a_hook_file_of_the_same_name() {
    let mut lab = Lab::new();
    let charm = lab.charm(
        "meshy",
        "",
        "[ $hook = install ] && echo dispatch >>../ran || true",
    );
    std::fs::create_dir(charm.join("hooks")).unwrap();
    std::os::unix::fs::symlink("../dispatch", charm.join("hooks/install")).unwrap();
    lab.model
        .deploy(&juju_sim::DeployRequest::new(charm))
        .unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.wrote("meshy/0", "../ran"), "dispatch\n");
}

#[test]
fn a_label_and_a_content_set_in_one_hook_both_land() {
    let mut lab = Lab::new();
    let script = "case $hook in \
                  leader-elected) secret-add token=one >id ;; \
                  update-status) secret-set $(cat id) --label key; secret-set $(cat id) token=two ;; esac";
    lab.deploy("meshy", "", script);
    lab.model.fire_update_status("meshy").unwrap();
    lab.model.advance().unwrap();
    let script = "secret-get --label key --format=json --refresh";
    let told = lab.model.exec("meshy/0", script).unwrap();
    assert_eq!(told.results["stdout"], "{\"token\":\"two\"}\n");
}

#[test]
fn a_failed_relation_created_is_run_again_and_no_other_hook_before_it() {
    let mut lab = Lab::new();
    let script = "[ $hook != cluster-relation-created ] || [ -e ../healed ]";
    lab.deploy("meshy", "peers: {cluster: {interface: p}}", script);
    assert_eq!(
        lab.status("meshy/0"),
        "error: hook failed: \"cluster-relation-created\""
    );
    let heal = lab.model.charm_dir("meshy/0").join("../healed");
    std::fs::write(heal, "").unwrap();
    lab.wait(5);
    let hooks = lab.hooks("meshy/0");
    let created = "cluster-relation-created".to_owned();
    assert_eq!(hooks[..3], ["install".to_owned(), created.clone(), created]);
    assert!(hooks.contains(&"start".to_owned()), "{hooks:?}");
}
