//! What the charm process gets and what operators see.

use juju_sim::DeployRequest;
use serde_json::Value;

use crate::lab::Lab;

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn the_environment_is_jujus_list_and_nothing_else() {
    let mut lab = Lab::new();
    lab.deploy("giver", "provides: {out: {interface: cups}}\n", "");
    let script =
        r"tr '\0' '\n' < /proc/$$/environ | sort > ../env-$hook; readlink /proc/$$/fd/0 > ../stdin";
    lab.deploy("taker", "requires: {in: {interface: cups}}\n", script);
    lab.model.integrate("giver", "taker").unwrap();
    lab.model.advance().unwrap();
    let names = |file: &str| -> Vec<String> {
        let text = lab.wrote("taker/0", file);
        text.lines()
            .filter_map(|l| l.split_once('='))
            .map(|(k, _)| k.to_owned())
            .collect()
    };
    let always = [
        "APT_LISTCHANGES_FRONTEND",
        "CHARM_DIR",
        "CLOUD_API_VERSION",
        "DEBIAN_FRONTEND",
        "JUJU_AGENT_SOCKET_ADDRESS",
        "JUJU_AGENT_SOCKET_NETWORK",
        "JUJU_API_ADDRESSES",
        "JUJU_AVAILABILITY_ZONE",
        "JUJU_CHARM_DIR",
        "JUJU_CHARM_FTP_PROXY",
        "JUJU_CHARM_HTTPS_PROXY",
        "JUJU_CHARM_HTTP_PROXY",
        "JUJU_CHARM_NO_PROXY",
        "JUJU_CONTEXT_ID",
        "JUJU_DISPATCH_PATH",
        "JUJU_HOOK_NAME",
        "JUJU_MACHINE_ID",
        "JUJU_METER_INFO",
        "JUJU_METER_STATUS",
        "JUJU_MODEL_NAME",
        "JUJU_MODEL_UUID",
        "JUJU_PRINCIPAL_UNIT",
        "JUJU_SLA",
        "JUJU_UNIT_NAME",
        "JUJU_VERSION",
        "LANG",
        "PATH",
        "TERM",
    ];
    assert_eq!(names("../env-install"), always);
    let of_relations = [
        "JUJU_RELATION",
        "JUJU_RELATION_ID",
        "JUJU_REMOTE_APP",
        "JUJU_REMOTE_UNIT",
    ];
    let mut joined: Vec<&str> = always.into_iter().chain(of_relations).collect();
    joined.sort_unstable();
    let mut seen = names("../env-in-relation-joined");
    seen.sort_unstable();
    assert_eq!(seen, joined);
    let created = lab.wrote("taker/0", "../env-in-relation-created");
    assert!(
        created.contains("\nJUJU_REMOTE_UNIT=\n"),
        "present but empty: {created}"
    );
    assert!(created.contains("\nJUJU_RELATION_ID=in:0\n"), "{created}");
    assert_eq!(lab.wrote("taker/0", "../stdin"), "/dev/null\n");
}

#[test]
fn the_status_document_has_jujus_keys() {
    let mut lab = Lab::new();
    lab.deploy(
        "meshy",
        "provides: {out: {interface: cups}}\n",
        "status-set active ready",
    );
    lab.deploy("taker", "requires: {in: {interface: cups}}\n", "");
    lab.model.integrate("meshy", "taker").unwrap();
    lab.model.advance().unwrap();
    let status = lab.model.status();
    assert_eq!(
        keys(&status),
        ["applications", "controller", "machines", "model", "storage"]
    );
    let app = &status["applications"]["meshy"];
    assert_eq!(
        keys(app),
        [
            "address",
            "application-status",
            "base",
            "charm",
            "charm-name",
            "charm-origin",
            "charm-rev",
            "endpoint-bindings",
            "exposed",
            "provider-id",
            "relations",
            "scale",
            "units",
        ]
    );
    assert_eq!(app["application-status"]["current"], "active");
    assert_eq!(app["application-status"]["message"], "ready");
    assert_eq!(app["relations"]["out"][0]["related-application"], "taker");
    let unit = &app["units"]["meshy/0"];
    assert_eq!(
        keys(unit),
        [
            "address",
            "juju-status",
            "leader",
            "provider-id",
            "workload-status"
        ]
    );
    assert_eq!(unit["juju-status"]["current"], "idle");
    assert_eq!(unit["workload-status"]["since"], "19 Feb 2025 21:20:00Z");
    assert_eq!(
        status["applications"]["taker"]["units"]["taker/0"]["workload-status"]["current"],
        "unknown",
        "a charm that never set a status"
    );
}

#[test]
fn show_unit_has_jujus_keys_and_hides_the_own_application_databag() {
    let mut lab = Lab::new();
    let script =
        "[ $hook != out-relation-created ] || { relation-set u=1; relation-set --app a=2; }";
    lab.deploy("meshy", "provides: {out: {interface: cups}}\n", script);
    lab.deploy("taker", "requires: {in: {interface: cups}}\n", "");
    lab.model.integrate("meshy", "taker").unwrap();
    lab.model.advance().unwrap();
    let own = lab.model.show_unit("meshy/0").unwrap();
    let own = &own["meshy/0"]["relation-info"][0];
    assert_eq!(
        keys(own),
        [
            "application-data",
            "endpoint",
            "local-unit",
            "related-endpoint",
            "related-units",
            "relation-id",
        ]
    );
    assert_eq!(own["application-data"], serde_json::json!({}));
    assert_eq!(own["local-unit"]["data"]["u"], "1");
    let other = lab.model.show_unit("taker/0").unwrap();
    let other = &other["taker/0"]["relation-info"][0];
    assert_eq!(other["application-data"]["a"], "2");
    assert_eq!(other["related-units"]["meshy/0"]["data"]["u"], "1");
    assert!(lab.model.show_unit("meshy/7").is_err());
}

#[test]
fn the_application_status_is_the_leaders_word_or_the_gravest_unit() {
    let mut lab = Lab::new();
    let script = r#"
if [ $JUJU_UNIT_NAME = meshy/0 ]; then status-set active; else status-set blocked "no room"; fi
if [ $hook = update-status ] && [ $(is-leader) = True ]; then
  status-set --application=True waiting "for the rest"
fi"#;
    let charm = lab.charm("meshy", "", script);
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.model.advance().unwrap();
    let shown = |lab: &Lab| {
        let status = lab.model.status();
        let app = &status["applications"]["meshy"]["application-status"];
        format!(
            "{} {}",
            app["current"].as_str().unwrap(),
            app["message"].as_str().unwrap()
        )
    };
    assert_eq!(shown(&lab), "blocked no room");
    lab.model.fire_update_status("meshy").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(shown(&lab), "waiting for the rest");
}

#[test]
fn both_streams_and_the_charms_words_are_in_the_debug_log() {
    let mut lab = Lab::new();
    lab.deploy(
        "meshy",
        "",
        "[ $hook != install ] || { echo out; echo err >&2; juju-log -l WARNING -- careful; exit 1; }",
    );
    let log = lab.model.debug_log().unwrap();
    for line in [
        "DEBUG unit.meshy/0.install out\n",
        "WARNING unit.meshy/0.install err\n",
        "WARNING unit.meshy/0.juju-log careful\n",
        "ERROR juju.worker.uniter.operation hook \"install\" (via hook dispatching script: dispatch) \
         failed: exit status 1\n",
        "INFO juju.worker.uniter awaiting error resolution for \"install\" hook\n",
    ] {
        assert!(
            log.contains(&format!("unit-meshy-0: 21:20:00 {line}")),
            "{line} in {log}"
        );
    }
}

#[test]
fn tool_calls_are_recorded_with_standard_input() {
    let mut lab = Lab::new();
    let script = "[ $hook != start ] || printf '{\"a\":\"1\"}' | relation-set -r mates:0 --file -";
    lab.deploy("meshy", "peers: {mates: {interface: mates}}\n", script);
    let record = lab.records("meshy/0").pop().unwrap();
    assert_eq!(record.calls.len(), 1);
    let call = &record.calls[0];
    assert_eq!((call.tool.as_str(), call.code), ("relation-set", 0));
    assert_eq!(call.args, ["-r", "mates:0", "--file", "-"]);
    assert_eq!(call.stdin.as_deref(), Some("{\"a\":\"1\"}"));
}

#[test]
fn peak_memory_is_that_of_the_program_dispatch_became() {
    let mut lab = Lab::new();
    lab.deploy(
        "meshy",
        "",
        "[ $hook != start ] || exec head -c 30000000 /dev/zero | tail -c 30000000 > /dev/null",
    );
    lab.deploy(
        "hog",
        "",
        "[ $hook != start ] || { x=$(head -c 40000000 /dev/zero | tr '\\0' x); : $x; }",
    );
    let peak = lab.records("hog/0").pop().unwrap().peak_rss_kib;
    assert!(peak > 30_000, "{peak} KiB for a shell that holds 40 MB");
}
