//! Each rule, with a state that keeps it and one that breaks it.

use juju_hooks::{
    ActionCall, NetworkInfo, PebbleEvent, PebbleKind, SecretEvent, StorageEvent, StorageKind,
};
use serde_json::json;

use super::super::state::{Secret, databag};
use super::*;

const METADATA: &str = "\
name: meshy
provides: {mesh-info: {interface: mesh_info}}
requires: {ingress: {interface: ingress, limit: 1}}
peers: {cluster: {interface: meshy_peers}}
config:
  options:
    text: {type: string}
    count: {type: int}
    ratio: {type: float}
    flag: {type: boolean}
    token: {type: secret}
actions:
  plan:
    params:
      depth: {type: integer}
      scale: {type: number}
      names: {type: array}
    required: [depth]
resources: {payload: {type: file}, image: {type: oci-image}}
containers: {proxy: {}}
storage: {data: {}}
extra-bindings: {admin: {}}
";

const SECRET: &str = "secret:9m4e2mr0ui3e8a215n4g";

fn metadata() -> Metadata {
    Metadata::parse(METADATA).unwrap()
}

fn state() -> State {
    State::new("meshy/0").with_peers(&metadata())
}

fn web() -> Relation {
    Relation::new("mesh-info", 7, "web").remote_unit(0, databag([("port", "80")]))
}

fn found(state: &State, event: &Event, params: Value) -> Vec<String> {
    let Value::Object(params) = params else {
        panic!("parameters are a map")
    };
    mistakes(&metadata(), state, event, &params)
}

fn check(state: &State, event: &Event, expect: &[&str]) {
    assert_eq!(found(state, event, json!({})), expect, "{event}");
}

#[test]
fn a_state_juju_can_be_in_is_accepted() {
    let state = state()
        .leader()
        .planned_units(2)
        .config("text", "")
        .config("count", 3)
        .config("ratio", 1)
        .config("flag", false)
        .config("token", SECRET)
        .resource("payload", "/payload.tgz")
        .relation(web())
        .relation(Relation::new("mesh-info", 8, "web"))
        .relation(Relation::new("ingress", 9, "gate"));
    check(&state, &Event::LeaderElected, &[]);
    check(&state, &Event::Unknown("later".to_owned()), &[]);
}

#[test]
fn options_are_declared_and_of_their_type() {
    let check = |option: &str, value: Value, expect: &[&str]| {
        check(
            &state().config(option, value),
            &Event::ConfigChanged,
            expect,
        );
    };
    check("colour", json!("red"), &["option colour is not declared"]);
    check("text", json!(1), &["option text is String, not 1"]);
    check("count", json!(1.5), &["option count is Int, not 1.5"]);
    check("count", json!(true), &["option count is Int, not true"]);
    check(
        "flag",
        json!("true"),
        &[r#"option flag is Boolean, not "true""#],
    );
    check("ratio", json!("1"), &[r#"option ratio is Float, not "1""#]);
    check(
        "token",
        json!("secret:short"),
        &[r#"option token is Secret, not "secret:short""#],
    );
}

#[test]
fn only_declared_files_are_resources() {
    let wrong = |name: &str| format!("resource {name} is not declared as a file");
    for name in ["unheard", "image"] {
        check(
            &state().resource(name, "/x"),
            &Event::Start,
            &[&wrong(name)],
        );
    }
}

#[test]
fn relations_fit_their_endpoints() {
    let check = |relation: Relation, expect: &[&str]| {
        check(&state().relation(relation), &Event::Start, expect);
    };
    check(
        Relation::new("nowhere", 7, "web"),
        &["endpoint nowhere is not declared"],
    );
    check(
        Relation::new("mesh-info", 0, "web"),
        &["relation number 0 is used twice"],
    );
    check(
        Relation::new("mesh-info", 7, "meshy"),
        &["endpoint mesh-info of role Provides is related to meshy"],
    );
    check(
        Relation::new("cluster", 7, "meshy"),
        &["peer endpoint cluster has 2 relations; juju makes exactly one"],
    );
    let mut foreign = web();
    foreign.remote_units = Relation::new("mesh-info", 7, "shop")
        .remote_unit(1, databag([("", "")]))
        .remote_units;
    check(foreign, &["endpoint mesh-info: unit shop/1 is not of web"]);
    let mut bare = web();
    bare.local_unit_data.remove("private-address");
    check(
        bare,
        &["relation 7: this unit lacks juju's own key private-address"],
    );
}

#[test]
fn a_limited_endpoint_takes_no_more_relations() {
    let state = state()
        .relation(Relation::new("ingress", 7, "gate"))
        .relation(Relation::new("ingress", 8, "port"));
    check(
        &state,
        &Event::Start,
        &["endpoint ingress has 2 relations, its limit is 1"],
    );
}

#[test]
fn peers_are_always_there_and_others() {
    check(
        &State::new("meshy/0"),
        &Event::Start,
        &["peer endpoint cluster has 0 relations; juju makes exactly one"],
    );
    let mut crowded = state();
    let peers = crowded.get_mut(0).unwrap();
    *peers = peers.clone().remote_unit(0, databag([("a", "b")]));
    check(
        &crowded,
        &Event::Start,
        &["endpoint cluster has this unit among the others"],
    );
    let mut doubled = state();
    doubled.get_mut(0).unwrap().remote_app_data = databag([("a", "b")]);
    check(
        &doubled,
        &Event::Start,
        &["peer endpoint cluster: the application's data is local data"],
    );
}

#[test]
fn bindings_are_declared() {
    let mut state = state();
    for binding in ["admin", "ingress", "juju-info"] {
        state
            .networks
            .insert(binding.to_owned(), NetworkInfo::default());
    }
    check(&state, &Event::Start, &[]);
    state
        .networks
        .insert("moon".to_owned(), NetworkInfo::default());
    check(&state, &Event::Start, &["binding moon is not declared"]);
}

#[test]
fn relation_hooks_are_about_what_is_there() {
    use RelationKind::{Broken, Changed, Created, Departed, Joined};
    let state = state().relation(web());
    let relation = web();
    let check = |kind, unit, expect: &[&str]| check(&state, &relation.event(kind, unit), expect);
    check(Created, None, &[]);
    check(Joined, Some(0), &[]);
    check(Changed, Some(0), &[]);
    check(Changed, None, &[]);
    check(Departed, Some(1), &[]);
    check(Created, Some(0), &["created is about no unit"]);
    check(Joined, None, &["joined is about a unit that is there"]);
    check(Joined, Some(1), &["joined is about a unit that is there"]);
    check(Changed, Some(1), &["changed is about a unit there is"]);
    check(
        Departed,
        Some(0),
        &["departed is about a unit that is no longer there"],
    );
    check(
        Departed,
        None,
        &[
            "departed is about a unit that is no longer there",
            "departed, and only it, names who departs",
        ],
    );
    check(
        Broken,
        None,
        &["broken comes when no unit is left, and never to peers"],
    );
}

#[test]
fn relation_hooks_name_a_relation_of_the_state() {
    let state = state().relation(web());
    let event = |relation: Relation| relation.event(RelationKind::Created, None);
    check(
        &state,
        &event(Relation::new("mesh-info", 9, "web")),
        &["relation 9 is not in the state"],
    );
    check(
        &state,
        &event(Relation::new("ingress", 7, "web")),
        &["relation 7 is on mesh-info, not ingress"],
    );
    check(
        &state,
        &event(Relation::new("mesh-info", 7, "shop")),
        &["relation 7 is with web, not shop"],
    );
    let broken = state.get(0).unwrap().event(RelationKind::Broken, None);
    check(
        &state,
        &broken,
        &["broken comes when no unit is left, and never to peers"],
    );
}

#[test]
fn only_a_leader_is_told_it_was_elected() {
    check(
        &state(),
        &Event::LeaderElected,
        &["leader-elected on a unit that does not lead"],
    );
}

#[test]
fn other_hooks_are_about_declared_things() {
    let ready = |container: &str| {
        Event::Pebble(PebbleEvent {
            container: container.to_owned(),
            kind: PebbleKind::Ready,
        })
    };
    let silent = "container proxy does not answer in the state";
    check(
        &state(),
        &ready("moon"),
        &["container moon is not declared"],
    );
    check(&state(), &ready("proxy"), &[silent]);
    let starting = state().container("proxy", false);
    check(&starting, &ready("proxy"), &[silent]);
    check(&state().container("proxy", true), &ready("proxy"), &[]);
    let attached = |name: &str| {
        Event::Storage(StorageEvent {
            kind: StorageKind::Attached,
            name: name.to_owned(),
            index: 0,
            location: None,
            form: None,
        })
    };
    let undeclared = "storage moon is not declared";
    check(&state(), &attached("moon"), &[undeclared]);
    check(
        &state(),
        &attached("data"),
        &["storage data/0 is not in the state"],
    );
    check(&state().storage("data/0", "/data"), &attached("data"), &[]);
    check(
        &state().storage("moon/0", "/data"),
        &Event::Start,
        &[undeclared],
    );
    let stray = state().container("moon", true);
    check(&stray, &Event::Start, &["container moon is not declared"]);
    let secret = |kind, revision| {
        Event::Secret(SecretEvent {
            kind,
            id: SecretId::new(SECRET).unwrap(),
            label: None,
            revision,
        })
    };
    check(
        &state(),
        &secret(SecretKind::Changed, None),
        &[&format!("secret {SECRET} is not in the state")],
    );
    let mut known = state();
    known
        .secrets
        .insert(SecretId::new(SECRET).unwrap(), Secret::default());
    check(&known, &secret(SecretKind::Changed, None), &[]);
    check(&known, &secret(SecretKind::Remove, Some(1)), &[]);
    let dated = "a secret has its revision named when it expired or is to go";
    check(&known, &secret(SecretKind::Expired, None), &[dated]);
    known.juju_version = "2.9.50".parse().unwrap();
    check(
        &known,
        &secret(SecretKind::Changed, None),
        &["secrets need juju 3"],
    );
}

#[test]
fn the_clouds_credentials_are_told_by_agents_that_know_how() {
    let mut state = state();
    state.credential = Some(Map::new());
    let early = "on kubernetes juju tells the cloud's credentials from 3.6.10 on";
    check(&state, &Event::Start, &[early]);
    state.juju_version = JujuVersion::release(3, 6, 10);
    check(&state, &Event::Start, &[]);
}

#[test]
fn actions_and_their_parameters_are_declared_and_strictly_typed() {
    let check = |name: &str, params: Value, expect: &[&str]| {
        let event = Event::Action(ActionCall {
            name: name.to_owned(),
            id: "1".to_owned(),
        });
        assert_eq!(found(&state(), &event, params), expect);
    };
    check(
        "plan",
        json!({ "depth": 1, "scale": 2, "names": ["a"] }),
        &[],
    );
    check("fly", json!({}), &["action fly is not declared"]);
    check("plan", json!({}), &["parameter depth is required"]);
    check(
        "plan",
        json!({ "depth": 1.0 }),
        &["parameter depth cannot be 1.0"],
    );
    check(
        "plan",
        json!({ "depth": true }),
        &["parameter depth cannot be true"],
    );
    check(
        "plan",
        json!({ "depth": 1, "names": "a" }),
        &[r#"parameter names cannot be "a""#],
    );
    check(
        "plan",
        json!({ "depth": 1, "more": 2 }),
        &["parameter more is not declared"],
    );
    let stray = found(&state(), &Event::Start, json!({ "depth": 1 }));
    assert_eq!(stray, ["parameters for something that is no action"]);
}
