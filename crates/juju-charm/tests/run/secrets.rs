//! Secrets of the charm's own, from the charm's side.

use crate::meshy::{Cluster, Meshy};
use juju_charm::{Event, HookError, SecretContent, SecretId, SecretOwner};
use juju_hooks::{SecretEvent, SecretKind};
use juju_sim::scenario::{Quirks, Relation, Scenario, ScenarioError, Secret, State, databag};

fn scenario() -> Scenario<Meshy> {
    Scenario::new().unwrap()
}

/// The leader with option `text`, related to two.
fn leader(text: &str) -> State {
    let related = |id| Relation::new("mesh-info", id, "web").remote_unit(0, databag([("a", "b")]));
    let state = scenario().state("meshy/0").leader().config("text", text);
    state.relation(related(7)).relation(related(8))
}

fn run(event: Event, state: &State) -> State {
    scenario().run(event, state, &Cluster::default()).unwrap()
}

fn with(state: &State, text: &str) -> State {
    run(Event::ConfigChanged, &state.clone().config("text", text))
}

fn secret(state: &State) -> (&SecretId, &Secret) {
    let secrets: Vec<_> = state.secrets.iter().collect();
    assert_eq!(secrets.len(), 1, "{secrets:?}");
    secrets[0]
}

/// Writes about secrets, in order.
fn writes(state: &State) -> Vec<&str> {
    let reads = ["secret-get", "secret-info-get"];
    let calls = state.record.calls.iter().map(String::as_str);
    calls
        .filter(|call| call.starts_with("secret-") && !reads.contains(call))
        .collect()
}

#[test]
fn a_secret_is_made_granted_and_named_to_the_other_side() {
    let after = run(Event::ConfigChanged, &leader("share hunter2"));
    let (id, secret) = secret(&after);
    assert_eq!(secret.latest, databag([("password", "hunter2")]));
    assert_eq!(secret.label.as_deref(), Some("mesh"));
    assert_eq!(secret.description.as_deref(), Some("of the mesh"));
    assert_eq!(secret.owner, Some(SecretOwner::Application));
    assert_eq!(secret.grants.len(), 2);
    for relation in [7, 8] {
        let data = &after.get(relation).unwrap().local_app_data;
        assert_eq!(data["credentials"], id.as_str());
    }
}

#[test]
fn a_secret_that_is_so_already_is_read_and_not_written() {
    let once = run(Event::ConfigChanged, &leader("share hunter2"));
    let twice = run(Event::UpdateStatus, &once);
    assert_eq!(writes(&twice), [""; 0]);
    assert_eq!(twice.record.count("relation-set"), 0);
    assert_eq!(twice.record.count("secret-info-get"), 1);
    assert_eq!(twice.record.count("secret-get"), 1);
    assert_eq!(twice.secrets, once.secrets);
}

#[test]
fn another_content_is_another_revision_and_nothing_else() {
    let once = run(Event::ConfigChanged, &leader("share hunter2"));
    let after = with(&once, "share hunter3");
    assert_eq!(writes(&after), ["secret-set"]);
    for id in [7, 8] {
        let name = |state: &State| state.get(id).unwrap().local_app_data["credentials"].clone();
        assert_eq!(name(&after), name(&once));
    }
    let (_, secret) = secret(&after);
    assert_eq!(
        (secret.revision, &secret.latest["password"][..]),
        (2, "hunter3")
    );
}

#[test]
fn a_later_relation_is_granted_and_the_others_are_not_again() {
    let mut before = leader("share hunter2");
    let later = before.relations.pop().unwrap();
    let once = run(Event::ConfigChanged, &before);
    let after = run(Event::UpdateStatus, &once.relation(later));
    assert_eq!(writes(&after), ["secret-grant mesh-info:8"]);
}

#[test]
fn what_is_not_shared_any_more_is_revoked() {
    let once = run(Event::ConfigChanged, &leader("share hunter2"));
    let after = with(&once, "keep hunter2");
    assert_eq!(writes(&after), ["secret-revoke"; 2]);
    assert!(secret(&after).1.grants.is_empty());
    for relation in [7, 8] {
        let data = &after.get(relation).unwrap().local_app_data;
        assert!(!data.contains_key("credentials"), "{data:?}");
    }
}

#[test]
fn an_empty_content_removes_the_secret_and_its_names() {
    let once = run(Event::ConfigChanged, &leader("share hunter2"));
    let after = with(&once, "drop it");
    assert_eq!(writes(&after), ["secret-remove"]);
    assert!(after.secrets.is_empty());
    assert!(
        !after
            .get(7)
            .unwrap()
            .local_app_data
            .contains_key("credentials")
    );
    let again = run(Event::UpdateStatus, &after);
    assert_eq!(writes(&again), [""; 0]);
}

#[test]
fn the_applications_secret_is_the_leaders_and_a_units_is_its_own() {
    let mut state = leader("share hunter2");
    state.leader = false;
    let after = run(Event::ConfigChanged, &state);
    assert!(after.secrets.is_empty());
    assert_eq!(after.record.count("secret-info-get"), 0);
    let after = with(&state, "own hunter2");
    let (id, secret) = secret(&after);
    assert_eq!(secret.owner, Some(SecretOwner::Unit));
    let relation = after.get(7).unwrap();
    assert_eq!(relation.local_unit_data["credentials"], id.as_str());
    assert!(relation.local_app_data.is_empty());
}

#[test]
fn a_unit_that_lost_the_lead_writes_no_secret_of_the_application() {
    let quirks = Quirks {
        leads_for: Some(1),
        ..Quirks::default()
    };
    let after = run(
        Event::ConfigChanged,
        &leader("share hunter2").quirks(quirks),
    );
    assert!(after.secrets.is_empty());
    assert_eq!(writes(&after), [""; 0]);
}

#[test]
fn a_revision_nobody_reads_any_more_is_removed() {
    let once = run(Event::ConfigChanged, &leader("share hunter2"));
    let twice = with(&once, "share hunter3");
    let event = |revision| {
        Event::Secret(SecretEvent {
            kind: SecretKind::Remove,
            id: secret(&twice).0.clone(),
            label: None,
            revision: Some(revision),
        })
    };
    assert_eq!(writes(&run(event(1), &twice)), ["secret-remove"]);
    let latest = run(event(2), &twice);
    assert_eq!(writes(&latest), [""; 0]);
    assert_eq!(latest.secrets.len(), 1);
}

#[test]
fn content_is_in_no_log_and_no_debug_text() {
    let after = run(Event::ConfigChanged, &leader("share hunter2"));
    let shown = format!("{:?}", after.record);
    assert!(!shown.contains("hunter2"), "{shown}");
    let content = SecretContent::new(databag([("password", "hunter2")]));
    assert_eq!(format!("{content:?} {content}"), "[redacted] [redacted]");
}

#[test]
fn a_secret_for_a_relation_that_is_not_there_is_the_charms_mistake() {
    let failed = scenario().run(
        Event::ConfigChanged,
        &leader("stray hunter2"),
        &Cluster::default(),
    );
    let Err(ScenarioError::Hook { source, state }) = failed else {
        panic!("{failed:?}");
    };
    assert!(matches!(source, HookError::Commit(_)));
    assert!(state.secrets.is_empty());
}
