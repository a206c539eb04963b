//! Actions: parameters, results, how they end.

use juju_sim::DeployRequest;
use juju_sim::TaskResult;
use serde_json::Value;
use serde_json::json;

use crate::lab::Lab;
use crate::lab::bag;

const ACTIONS: &str = "
probe:
  params:
    depth: {type: integer, default: 3}
    mode: {type: string}
  required: [mode]
  additionalProperties: false
";

fn lab(script: &str) -> Lab {
    let mut lab = Lab::new();
    let charm = lab.charm(
        "meshy",
        "peers: {mates: {interface: mates}}\n",
        &format!("[ $hook = probe ] || exit 0\n{script}"),
    );
    std::fs::write(charm.join("actions.yaml"), ACTIONS).unwrap();
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.advance().unwrap();
    lab
}

fn run(lab: &mut Lab, params: &Value) -> Result<TaskResult, String> {
    let params = params.as_object().unwrap().clone();
    lab.model
        .run("meshy/leader", "probe", params)
        .map_err(|e| e.to_string())
}

#[track_caller]
fn check(script: &str, status: &str, message: &str, results: &Value) {
    let mut lab = lab(script);
    let result = run(&mut lab, &json!({"mode": "fast"})).unwrap();
    assert_eq!(
        (result.status.as_str(), result.message.as_str()),
        (status, message)
    );
    assert_eq!(Value::Object(result.results), *results);
}

#[test]
fn an_action_ends_as_juju_says() {
    check(
        "action-set plan.create=2 plan.keep=1 done=yes; echo out; echo err >&2",
        "completed",
        "",
        &json!({
            "plan": {"create": "2", "keep": "1"}, "done": "yes",
            "stdout": "out\n", "stderr": "err\n", "return-code": 0,
        }),
    );
    check(
        "action-set a=1; action-fail -- not now",
        "failed",
        "not now",
        &json!({"a": "1", "return-code": 0}),
    );
    check(
        "action-set a=1; exit 3",
        "failed",
        "exit status 3",
        &json!({"a": "1", "return-code": 3}),
    );
    check(
        "action-set stdout=x",
        "failed",
        "exit status 2",
        &json!({"return-code": 2, "stderr": "ERROR cannot set reserved action key \"stdout\"\n"}),
    );
    check(
        "printf '\\377'",
        "completed",
        "",
        &json!({
            "return-code": 0, "stdout": "/wo=", "stdout-encoding": "base64",
        }),
    );
}

#[test]
fn parameters_reach_the_charm_complete_or_not_at_all() {
    let mut lab = lab("action-get --format=json; action-get depth");
    let result = run(&mut lab, &json!({"mode": "fast"})).unwrap();
    assert_eq!(
        result.results["stdout"],
        "{\"depth\":3,\"mode\":\"fast\"}\n3\n"
    );
    let refused = run(&mut lab, &json!({"mode": "fast", "depht": 1})).unwrap_err();
    assert!(
        refused.contains("additional property \"depht\" is not allowed"),
        "{refused}"
    );
    let refused = run(&mut lab, &json!({})).unwrap_err();
    assert!(refused.starts_with("validation failed: "), "{refused}");
    let unknown = lab
        .model
        .run("meshy/0", "nothing", serde_json::Map::new())
        .unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "action \"nothing\" not defined for unit \"meshy/0\". (not found)"
    );
}

#[test]
fn a_failed_action_keeps_its_writes_and_a_crashed_one_does_not() {
    let mut failed = lab("relation-set -r mates:0 a=1; action-fail no");
    run(&mut failed, &json!({"mode": "fast"})).unwrap();
    assert_eq!(failed.bag(0, "meshy/0"), bag(&[("a", "1")]));
    let mut crashed = lab("relation-set -r mates:0 a=1; exit 1");
    run(&mut crashed, &json!({"mode": "fast"})).unwrap();
    assert_eq!(crashed.bag(0, "meshy/0"), bag(&[]));
    assert!(
        crashed.model.failed_units().is_empty(),
        "an action never puts a unit in error"
    );
}

#[test]
fn log_lines_of_an_action_are_part_of_its_result() {
    let mut lab = lab("action-log -- step one");
    let result = run(&mut lab, &json!({"mode": "fast"})).unwrap();
    assert!(result.log[0].ends_with("step one"), "{:?}", result.log);
}

#[test]
fn exec_runs_shell_in_a_hook_context() {
    let mut lab = lab("");
    let result = lab
        .model
        .exec("meshy/0", "relation-set -r mates:0 x=1; is-leader; exit 4")
        .unwrap();
    assert_eq!(result.results["stdout"], "True\n");
    assert_eq!(result.results["return-code"], 4);
    assert_eq!(lab.bag(0, "meshy/0"), bag(&[]));
    lab.model
        .exec("meshy/0", "relation-set -r mates:0 x=1")
        .unwrap();
    assert_eq!(lab.bag(0, "meshy/0"), bag(&[("x", "1")]));
}
