//! What a hook does with the model, from the charm's side.

use crate::meshy::{Cluster, Failure, Meshy};
use juju_charm::{Event, RelationId, UnitName};
use juju_hooks::{LogLevel, RelationKind, ReportedStatus};
use juju_sim::scenario::{Quirks, Relation, Scenario, ScenarioError, State, databag};

const HINT: &str = "option text is bad; run: juju config meshy text=good";

fn scenario() -> Scenario<Meshy> {
    Scenario::new().unwrap()
}

fn run(event: Event, state: &State) -> (State, Cluster) {
    let cluster = Cluster::default();
    let after = scenario().run(event, state, &cluster).unwrap();
    (after, cluster)
}

fn leader() -> State {
    scenario()
        .state("meshy/0")
        .leader()
        .resource("payload", "/payload.tgz")
}

fn web() -> Relation {
    Relation::new("mesh-info", 7, "web")
        .remote_app_data(databag([("wants", "mesh")]))
        .remote_unit(0, databag([("port", "80")]))
}

fn status(status: &str, message: &str) -> ReportedStatus {
    ReportedStatus {
        status: status.to_owned(),
        message: message.to_owned(),
    }
}

/// What was applied, over all calls.
fn applied(cluster: &Cluster) -> Vec<String> {
    cluster.applied.borrow().iter().flatten().cloned().collect()
}

fn error_lines(state: &State) -> Vec<&str> {
    let graver = state
        .record
        .log
        .iter()
        .filter(|(level, _)| *level >= LogLevel::Warning);
    graver.map(|(_, line)| line.as_str()).collect()
}

#[test]
fn the_leader_applies_writes_and_tells_both_statuses() {
    let (after, cluster) = run(Event::ConfigChanged, &leader().relation(web()));
    assert_eq!(applied(&cluster), ["web"]);
    assert_eq!(after.unit_status, status("active", "1 objects"));
    assert_eq!(after.app_status, status("active", "1 objects"));
    assert_eq!(after.workload_version, "1.27.3");
    assert_eq!(
        after
            .opened_ports
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["8080/tcp"]
    );
    let relation = after.get(7).unwrap();
    assert_eq!(relation.local_app_data, databag([("for", "web")]));
    assert_eq!(relation.local_unit_data["unit"], "meshy/0");
    assert_eq!(relation.local_unit_data["private-address"], "192.0.2.0");
}

#[test]
fn no_tool_is_asked_twice_for_one_answer() {
    let (after, _) = run(Event::UpdateStatus, &leader().relation(web()));
    let mut reads = after.record.calls.clone();
    // Leadership is asked again before the application is written to: it may be lost by then.
    assert_eq!(after.record.count("is-leader"), 2);
    reads.retain(|call| call != "is-leader");
    let count = reads.len();
    reads.sort();
    reads.dedup();
    assert_eq!(reads.len(), count, "{:?}", after.record.calls);
}

#[test]
fn what_juju_keeps_until_exit_is_written_before_what_it_shows_at_once() {
    let (after, _) = run(Event::ConfigChanged, &leader().relation(web()));
    let writes = [
        "relation-set",
        "open-port",
        "application-version-set",
        "status-set",
    ];
    let tools = after
        .record
        .calls
        .iter()
        .filter_map(|call| call.split(' ').next());
    let order: Vec<&str> = tools.filter(|tool| writes.contains(tool)).collect();
    let sets = ["relation-set"; 4];
    let rest = [
        "open-port",
        "application-version-set",
        "status-set",
        "status-set",
    ];
    assert_eq!(order, [sets, rest].concat());
    assert_eq!(after.record.calls.last().unwrap(), "status-set unit");
}

#[test]
fn a_second_run_writes_nothing_but_the_status() {
    let (once, _) = run(Event::ConfigChanged, &leader().relation(web()));
    let (twice, _) = run(Event::UpdateStatus, &once);
    assert_eq!(twice.record.count("relation-set"), 0);
    assert_eq!(
        twice.record.count("open-port") + twice.record.count("close-port"),
        0
    );
    assert_eq!(twice.record.count("status-set"), 2);
    assert_eq!(
        State {
            record: once.record.clone(),
            ..twice
        },
        once
    );
}

#[test]
fn an_empty_value_deletes_and_deleting_what_is_absent_is_no_write() {
    let (set, _) = run(
        Event::ConfigChanged,
        &leader().config("text", "hi").relation(web()),
    );
    assert_eq!(set.get(7).unwrap().local_app_data["text"], "hi");
    let mut unset = set;
    unset.config.clear();
    let (deleted, _) = run(Event::ConfigChanged, &unset);
    assert!(!deleted.get(7).unwrap().local_app_data.contains_key("text"));
    let (again, _) = run(Event::ConfigChanged, &deleted);
    assert_eq!(again.record.count("relation-set"), 0);
}

#[test]
fn a_unit_that_does_not_lead_writes_only_its_own_data() {
    let state = scenario().state("meshy/1").planned_units(2).relation(web());
    let (after, cluster) = run(Event::ConfigChanged, &state);
    assert!(cluster.applied.borrow().is_empty());
    assert!(after.get(7).unwrap().local_app_data.is_empty());
    assert_eq!(after.get(7).unwrap().local_unit_data["unit"], "meshy/1");
    assert_eq!(after.app_status, state.app_status);
    assert_eq!(after.record.count("is-leader"), 1);
    let own_app = |call: &&String| **call == "relation-get mesh-info:7 meshy";
    assert_eq!(after.record.calls.iter().filter(own_app).count(), 0);
}

#[test]
fn every_unit_reads_the_application_data_of_its_peers() {
    let mut state = scenario().state("meshy/1").planned_units(2);
    let peers = state.get_mut(0).unwrap();
    peers.local_app_data = databag([("epoch", "4")]);
    *peers = peers.clone().remote_unit(0, databag([("up", "yes")]));
    let (_, cluster) = run(Event::UpdateStatus, &state);
    let view = cluster.view();
    let peers = view.relations_of("cluster").next().unwrap();
    assert_eq!(peers.local_app_data["epoch"], "4");
    assert_eq!(peers.remote_app_data["epoch"], "4");
    assert_eq!(
        peers.remote_units[&"meshy/0".parse::<UnitName>().unwrap()]["up"],
        "yes"
    );
}

#[test]
fn a_relation_being_broken_is_seen_as_such_however_the_agent_tells_it() {
    let quirks = [
        Quirks::default(),
        Quirks {
            lists_broken: true,
            ..Quirks::default()
        },
        Quirks {
            hides_app_of_broken: true,
            ..Quirks::default()
        },
        Quirks {
            denies_broken: true,
            lists_broken: true,
            ..Quirks::default()
        },
    ];
    for quirks in quirks {
        let mut gone = web();
        gone.remote_units.clear();
        let event = gone.event(RelationKind::Broken, None);
        let other = Relation::new("mesh-info", 8, "shop");
        let (after, cluster) = run(
            event,
            &leader().relation(gone).relation(other).quirks(quirks),
        );
        let view = cluster.view();
        assert_eq!(
            view.relations_of("mesh-info")
                .map(|r| r.id.0)
                .collect::<Vec<_>>(),
            [8]
        );
        let broken = view.relation(RelationId(7)).unwrap();
        assert!(broken.broken && broken.remote_units.is_empty());
        assert_eq!(broken.remote_app_data.is_empty(), quirks.denies_broken);
        assert_eq!(applied(&cluster), ["shop"]);
        assert!(
            after.get(7).unwrap().local_app_data.is_empty(),
            "nothing is written to it"
        );
    }
}

#[test]
fn application_data_may_change_before_any_unit_joined() {
    let mut early = web();
    early.remote_units.clear();
    let event = early.event(RelationKind::Changed, None);
    let (_, cluster) = run(event, &leader().relation(early));
    let view = cluster.view();
    let relation = view.relations_of("mesh-info").next().unwrap();
    assert_eq!(relation.remote_app.as_ref().unwrap(), &"web");
    assert_eq!(relation.remote_app_data["wants"], "mesh");
}

#[test]
fn the_remote_application_of_another_relation_is_not_taken_from_the_event() {
    let state = leader()
        .relation(web())
        .relation(Relation::new("mesh-info", 8, "shop"));
    let event = state.get(7).unwrap().event(RelationKind::Changed, Some(0));
    let (_, cluster) = run(event, &state);
    assert_eq!(
        cluster
            .view()
            .relation(RelationId(8))
            .unwrap()
            .remote_app
            .as_ref()
            .unwrap(),
        &"shop"
    );
}

#[test]
fn leadership_lost_during_the_hook_costs_the_application_writes_only() {
    let quirks = Quirks {
        leads_for: Some(1),
        ..Quirks::default()
    };
    let state = leader().relation(web()).quirks(quirks);
    let (after, _) = run(Event::LeaderElected, &state);
    assert!(after.get(7).unwrap().local_app_data.is_empty());
    assert_eq!(after.app_status, state.app_status);
    assert_eq!(after.get(7).unwrap().local_unit_data["unit"], "meshy/0");
    assert_eq!(after.unit_status.status, "active");
    assert!(error_lines(&after)[0].starts_with("no longer the leader"));
}

#[test]
fn leadership_lost_at_exit_drops_all_that_was_kept() {
    let quirks = Quirks {
        loses_lead_at_exit: true,
        ..Quirks::default()
    };
    let state = leader().relation(web()).quirks(quirks);
    let failed = scenario()
        .run(Event::ConfigChanged, &state, Cluster::default())
        .unwrap_err();
    assert!(matches!(failed, ScenarioError::Flush { .. }));
    assert_eq!(failed.state().unwrap().relations, state.relations);
    assert!(failed.state().unwrap().opened_ports.is_empty());
}

#[test]
fn what_the_cluster_cannot_do_becomes_a_status_not_a_failure() {
    let check = |cluster: Cluster, expect: ReportedStatus, text: Option<&str>| {
        let mut state = leader();
        if let Some(text) = text {
            state = state.config("text", text);
        }
        let after = scenario()
            .run(Event::ConfigChanged, &state, &cluster)
            .unwrap();
        assert_eq!((&after.unit_status, &after.app_status), (&expect, &expect));
        assert_eq!(after.record.calls.last().unwrap(), "status-set unit");
    };
    let away = || Some(Failure::Away);
    let waiting = || status("waiting", "cluster not reachable");
    check(
        Cluster {
            observe_fails: away(),
            ..Cluster::default()
        },
        waiting(),
        None,
    );
    check(
        Cluster {
            apply_fails: away(),
            ..Cluster::default()
        },
        waiting(),
        None,
    );
    check(Cluster::default(), status("blocked", HINT), Some("bad"));
}

#[test]
fn an_unforeseen_effect_error_fails_the_hook_and_writes_nothing() {
    for cluster in [
        Cluster {
            observe_fails: Some(Failure::Bug),
            ..Cluster::default()
        },
        Cluster {
            apply_fails: Some(Failure::Bug),
            ..Cluster::default()
        },
    ] {
        let state = leader().relation(web());
        let failed = scenario()
            .run(Event::ConfigChanged, &state, cluster)
            .unwrap_err();
        assert!(
            failed.to_string().ends_with("nobody thought of this"),
            "{failed}"
        );
        let after = failed.state().unwrap();
        assert_eq!(after.relations, state.relations);
        assert_eq!(
            (&after.unit_status, after.record.count("status-set")),
            (&state.unit_status, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_too_long_waits_for_the_next_hook() {
    let cluster = Cluster {
        apply_hangs: true,
        ..Cluster::default()
    };
    let none = serde_json::Map::new();
    let run = scenario();
    let after = run
        .run_async(Event::ConfigChanged, none, &leader(), &cluster)
        .await
        .unwrap();
    let late = status(
        "waiting",
        "cannot apply within 120 s; the next hook goes on",
    );
    assert_eq!(after.unit_status, late);
}

#[test]
fn hooks_of_later_or_older_jujus_end_well_and_touch_nothing() {
    for event in [
        Event::Unknown("invented-later".to_owned()),
        Event::CollectMetrics,
        Event::MeterStatusChanged,
    ] {
        let (after, cluster) = run(event, &leader());
        assert!(after.record.calls.is_empty());
        assert!(cluster.seen.borrow().is_none());
    }
}

#[test]
fn the_last_unit_to_go_knows_it() {
    let state = leader().relation(web()).planned_units(0);
    let (_, cluster) = run(Event::Remove, &state);
    assert_eq!(cluster.view().planned_units, 0);
    assert_eq!(
        *cluster.applied.borrow(),
        [std::collections::BTreeSet::new()]
    );
}

#[test]
fn how_many_units_are_planned_is_asked_in_remove_only() {
    for (event, asked) in [
        (Event::Remove, 1),
        (Event::Stop, 0),
        (Event::ConfigChanged, 0),
        (Event::UpdateStatus, 0),
    ] {
        let (after, _) = run(event.clone(), &leader());
        assert_eq!(after.record.count("goal-state"), asked, "{event}");
    }
}

#[test]
fn config_defaults_numbers_and_gaps_arrive_as_declared() {
    let (_, cluster) = run(Event::ConfigChanged, &leader());
    let config = cluster.view().config;
    assert_eq!(config.float("ratio"), Some(1.0));
    assert_eq!(
        config.values()["ratio"].to_string(),
        "1",
        "as juju writes 1.0"
    );
    assert_eq!((config.str("blank"), config.str("text")), (Some(""), None));
    assert_eq!(config.int("count"), None);
}

#[test]
fn secrets_named_by_config_are_read_or_said_why_not() {
    let id = "secret:9m4e2mr0ui3e8a215n4g";
    let known = leader()
        .granted_secret(id, databag([("password", "hunter2")]))
        .config("token", id);
    let (after, cluster) = run(Event::ConfigChanged, &known);
    let view = cluster.view();
    let content = view.secrets[&view.config.secret("token").unwrap()]
        .as_ref()
        .unwrap();
    assert_eq!(content.expose()["password"], "hunter2");
    assert!(!format!("{view:?} {:?}", after.record).contains("hunter2"));

    let mut refused = known;
    refused
        .secrets
        .values_mut()
        .for_each(|secret| secret.granted = false);
    let (_, cluster) = run(Event::ConfigChanged, &refused);
    let view = cluster.view();
    assert!(
        view.secrets
            .values()
            .next()
            .unwrap()
            .as_ref()
            .unwrap_err()
            .contains("permission denied")
    );
}

#[test]
fn a_resource_is_a_path_or_a_reason() {
    let (_, cluster) = run(Event::ConfigChanged, &leader());
    assert_eq!(
        cluster.view().resources["payload"]
            .as_ref()
            .unwrap()
            .to_str(),
        Some("/payload.tgz")
    );
    let (_, cluster) = run(Event::ConfigChanged, &scenario().state("meshy/0"));
    assert!(
        cluster.view().resources["payload"]
            .as_ref()
            .unwrap_err()
            .contains("not found")
    );
}

#[test]
fn problems_are_logged_and_the_result_too() {
    let (after, _) = run(Event::ConfigChanged, &leader().config("text", "bad"));
    assert_eq!(error_lines(&after), [format!("blocked: {HINT}")]);
    let done = format!("config-changed done: blocked: {HINT}");
    assert!(after.record.log.contains(&(LogLevel::Info, done)));
}

#[test]
fn a_write_to_a_relation_the_charm_was_not_shown_fails_before_anything_is_written() {
    let state = leader().config("text", "stray").relation(web());
    let failed = scenario()
        .run(Event::ConfigChanged, &state, Cluster::default())
        .unwrap_err();
    assert!(
        failed
            .to_string()
            .ends_with("the charm wrote to unknown relation 99"),
        "{failed}"
    );
    assert_eq!(failed.state().unwrap().record.count("relation-set"), 0);
}
