//! What a hook's writes come to: kept at exit 0, dropped otherwise, and what is refused at once.

use juju_sim::DeployRequest;
use juju_sim::Fault;

use crate::lab::Lab;
use crate::lab::bag;

const PEERS: &str = "peers: {mates: {interface: mates}}\n";

#[test]
fn writes_of_a_failed_hook_are_dropped_but_statuses_stay() {
    let mut lab = Lab::new();
    let script = r#"
[ $hook = start ] || exit 0
relation-set -r mates:0 colour=red
relation-set -r mates:0 --app shape=round
state-set kept=1
open-port 80/tcp
status-set blocked "on purpose"
relation-get -r 0 --format=json colour meshy/0 > ../own.txt
exit 3
"#;
    lab.deploy("meshy", PEERS, script);
    assert_eq!(lab.bag(0, "meshy/0"), bag(&[]));
    assert_eq!(lab.bag(0, "meshy"), bag(&[]));
    assert_eq!(
        lab.wrote("meshy/0", "../own.txt"),
        "\"red\"\n",
        "own writes are seen at once"
    );
    assert_eq!(lab.status("meshy/0"), "error: hook failed: \"start\"");
    lab.model.resolve("meshy/0", false).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.status("meshy/0"), "blocked: on purpose");
}

#[test]
fn writes_of_a_hook_that_exits_0_are_kept() {
    let mut lab = Lab::new();
    let script = r#"
[ $hook = start ] || exit 0
printf '{"colour": "red", "text": " a: b\\n<&> ü ", "yes": "yes"}' | relation-set -r mates:0 --file -
relation-set -r mates:0 --app shape=round gone=
state-set --file - <<END
{"kept": "1"}
END
open-port 443/tcp
close-port 80/tcp
application-version-set -- 1.2.3
state-get --format=json > ../state.txt
opened-ports --format=json > ../ports.txt
"#;
    lab.deploy("meshy", PEERS, script);
    let unit = bag(&[("colour", "red"), ("text", " a: b\n<&> ü "), ("yes", "yes")]);
    assert_eq!(lab.bag(0, "meshy/0"), unit);
    assert_eq!(lab.bag(0, "meshy"), bag(&[("shape", "round")]));
    assert_eq!(lab.wrote("meshy/0", "../state.txt"), "{\"kept\":\"1\"}\n");
    assert_eq!(lab.wrote("meshy/0", "../ports.txt"), "[\"443/tcp\"]\n");
    let status = lab.model.status();
    let app = &status["applications"]["meshy"];
    assert_eq!(app["version"], "1.2.3");
    assert_eq!(app["units"]["meshy/0"]["open-ports"][0], "443/tcp");
}

#[test]
fn values_larger_than_an_argument_pass_through_standard_input() {
    let mut lab = Lab::new();
    let script = r#"
[ $hook = start ] || exit 0
{ printf '{"big": "'; head -c 200000 /dev/zero | tr '\0' x; printf '"}'; } |
  relation-set -r mates:0 --file -
"#;
    lab.deploy("meshy", PEERS, script);
    assert_eq!(lab.bag(0, "meshy/0")["big"].len(), 200_000);
}

#[test]
fn leadership_lost_during_a_hook_refuses_its_application_writes() {
    let mut lab = Lab::new();
    let script = "[ $hook != start ] || relation-set -r mates:0 --app owner=$JUJU_UNIT_NAME";
    lab.model.inject(Fault::LoseLeadership("start".into()));
    lab.deploy("meshy", PEERS, script);
    let failed = lab.records("meshy/0").pop().unwrap();
    assert_eq!(
        (failed.hook.as_str(), failed.failure.as_str()),
        (
            "start",
            "committing requested changes failed: cannot write relation settings: the unit is not \
             the leader"
        )
    );
    assert_eq!(failed.calls[0].code, 0, "the call itself was accepted");
    assert_eq!(lab.bag(0, "meshy"), bag(&[]));
    lab.wait(5);
    assert_eq!(
        lab.bag(0, "meshy"),
        bag(&[("owner", "meshy/0")]),
        "leader again by then"
    );
}

#[test]
fn a_refused_flush_is_a_failed_hook() {
    let mut lab = Lab::new();
    lab.model.inject(Fault::FailFlush("start".into()));
    lab.deploy(
        "meshy",
        PEERS,
        "[ $hook != start ] || relation-set -r mates:0 a=b",
    );
    assert_eq!(lab.status("meshy/0"), "error: hook failed: \"start\"");
    assert_eq!(lab.bag(0, "meshy/0"), bag(&[]));
    lab.wait(5);
    assert_eq!(lab.bag(0, "meshy/0"), bag(&[("a", "b")]));
}

#[test]
fn charm_state_has_quotas() {
    let mut lab = Lab::new();
    let script = r#"
[ $hook = start ] || exit 0
{ printf '{"k": "'; head -c 65537 /dev/zero | tr '\0' x; printf '"}'; } | state-set --file - \
  2> ../value.txt || true
for i in $(seq 33); do
  { printf '{"k%s": "' $i; head -c 65000 /dev/zero | tr '\0' x; printf '"}'; } | state-set --file -
done
"#;
    lab.deploy("meshy", "", script);
    assert!(
        lab.wrote("meshy/0", "../value.txt")
            .contains("max allowed value length")
    );
    let last = lab.records("meshy/0").pop().unwrap();
    assert!(
        last.failure.contains("quota limit exceeded"),
        "{}",
        last.failure
    );
}

/// Two related applications, the first with two units that run `agents/call.sh` when asked.
fn callers() -> Lab {
    let mut lab = Lab::new();
    let giver = "provides: {out: {interface: cups}}\npeers: {mates: {interface: mates}}\n";
    let script = r"[ $hook != update-status ] || { set +e; sh ../../call.sh > ../out 2> ../err; echo $? > ../code; }";
    let charm = lab.charm("giver", giver, script);
    std::fs::write(
        charm.join("config.yaml"),
        "options: {size: {type: int}, tall: {type: boolean, default: true}}\n",
    )
    .unwrap();
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.deploy("taker", "requires: {in: {interface: cups}}\n", "");
    lab.model.integrate("giver", "taker").unwrap();
    lab.model.advance().unwrap();
    lab
}

/// Shell text in an update-status hook: exit code, standard output and standard error.
#[track_caller]
fn check_call(lab: &mut Lab, unit: &str, call: &str, expect: (i32, &str, &str)) {
    let script = format!("[ $JUJU_UNIT_NAME = {unit} ] || exit 0\n{call}");
    std::fs::write(lab.model.dir().join("agents/call.sh"), script).unwrap();
    lab.model.fire_update_status("giver").unwrap();
    lab.model.advance().unwrap();
    let read = |file: &str| lab.wrote(unit, &format!("../{file}"));
    let code: i32 = read("code").trim().parse().unwrap();
    assert_eq!(
        (code, read("out").as_str(), read("err").as_str()),
        expect,
        "{call}"
    );
}

#[test]
fn tools_answer_in_jujus_words() {
    let mut lab = callers();
    let mut check = |unit: &str, call: &str, expect| check_call(&mut lab, unit, call, expect);
    let leader = "giver/0";
    let other = "giver/1";
    check(
        other,
        "relation-set -r 1 --app a=b",
        (1, "", "ERROR cannot write relation settings\n"),
    );
    check(
        other,
        "relation-get -r out:1 --app - giver",
        (1, "", "ERROR permission denied\n"),
    );
    check(
        leader,
        "relation-get --format=json -r 1 --app - giver",
        (0, "{}\n", ""),
    );
    check(
        other,
        "relation-get --format=json -r mates:0 --app - giver",
        (0, "{}\n", ""),
    );
    check(
        other,
        "relation-get --format=json -r 1 missing taker/0",
        (0, "null\n", ""),
    );
    check(
        leader,
        "relation-get -r 9 - giver/0",
        (
            2,
            "",
            "ERROR invalid value \"9\" for option -r: relation not found\n",
        ),
    );
    check(
        leader,
        "relation-get -r in:1 - giver/0",
        (
            2,
            "",
            "ERROR invalid value \"in:1\" for option -r: relation not found\n",
        ),
    );
    check(
        leader,
        "relation-get -r 1 - taker",
        (
            2,
            "",
            "ERROR expected unit name, got application name \"taker\"\n",
        ),
    );
    check(
        leader,
        "relation-get -r 1",
        (2, "", "ERROR no unit or application specified\n"),
    );
    check(
        leader,
        "relation-set -r 1 oops",
        (2, "", "ERROR expected \"key=value\", got \"oops\"\n"),
    );
    check(
        leader,
        "relation-ids --format=json out",
        (0, "[\"out:1\"]\n", ""),
    );
    check(
        leader,
        "relation-ids",
        (2, "", "ERROR no endpoint name specified\n"),
    );
    check(
        leader,
        "relation-list -r 1 --format=json",
        (0, "[\"taker/0\"]\n", ""),
    );
    check(
        leader,
        "relation-list -r mates:0 --format=json",
        (0, "[\"giver/1\"]\n", ""),
    );
    check(
        leader,
        "relation-list -r 1 --app --format=json",
        (0, "\"taker\"\n", ""),
    );
    check(
        leader,
        "config-get --format=json",
        (0, "{\"tall\":true}\n", ""),
    );
    check(leader, "config-get --format=json size", (0, "null\n", ""));
    check(leader, "config-get tall", (0, "True\n", ""));
    check(other, "is-leader --format=json", (0, "false\n", ""));
    check(
        other,
        "status-set --application=True active",
        (1, "", "ERROR this unit is not the leader\n"),
    );
    check(
        leader,
        "status-set error",
        (
            2,
            "",
            "ERROR invalid status \"error\", expected one of [maintenance blocked waiting active]\n",
        ),
    );
    check(
        leader,
        "status-set",
        (2, "", "ERROR invalid args, require <status> [message]\n"),
    );
    check(
        leader,
        "status-set waiting -- a b; status-get --include-data --format=json --application=false",
        (
            0,
            "{\"message\":\"a b\",\"status\":\"waiting\",\"status-data\":{}}\n",
            "",
        ),
    );
    check(
        leader,
        "is-leader --foo",
        (2, "", "ERROR option provided but not defined: --foo\n"),
    );
    check(
        leader,
        "is-leader x",
        (2, "", "ERROR unrecognized args: [\"x\"]\n"),
    );
    check(
        leader,
        "resource-get image",
        (
            1,
            "",
            "ERROR could not download resource: resource \"image\" not found\n",
        ),
    );
    check(
        leader,
        "action-get",
        (1, "", "ERROR not running an action\n"),
    );
    check(leader, "juju-log", (2, "", "ERROR no message specified\n"));
    check(
        leader,
        "open-port 1-9/udp",
        (
            1,
            "",
            "ERROR port ranges are not supported for k8s applications, please specify a single port\n",
        ),
    );
    check(
        leader,
        "network-get nowhere",
        (
            1,
            "",
            "ERROR no network config found for binding \"nowhere\"\n",
        ),
    );
    check(
        leader,
        "network-get out --bind-address",
        (0, "10.1.0.4\n", ""),
    );
    check(
        leader,
        "unset JUJU_CONTEXT_ID; is-leader",
        (1, "", "ERROR JUJU_CONTEXT_ID not set\n"),
    );
    check(
        leader,
        "JUJU_CONTEXT_ID=old is-leader 2>&1 | sed 's/-[0-9a-f]*\", got/\", got/'",
        (
            0,
            "ERROR bad request: expected context id \"giver/0-update-status\", got \"old\"\n",
            "",
        ),
    );
    check(
        leader,
        "relation-ids --format=json out | relation-set -r 1 --file - 2>&1",
        (1, "ERROR expected a map of settings\n", ""),
    );
}
