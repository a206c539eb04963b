//! Policies in front of workloads, and what is found beside the desired objects.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::*;
use juju_charm::Event;
use juju_sim::scenario::{Relation, databag};
use kube_apply::testing::FakeApi;
use serde_json::{Value, json};

fn policies(api: &FakeApi) -> Vec<Value> {
    let objects = api.objects().into_iter();
    objects
        .filter(|object| object["kind"] == "AuthorizationPolicy")
        .collect()
}

fn mesh(id: u32, app: &str, policies: &Value) -> Relation {
    Relation::new("service-mesh", id, app)
        .remote_app_data(databag([("policies", policies.to_string())]))
}

fn policy(change: impl FnOnce(&mut Value)) -> Value {
    let mut policy = json!({
        "source_namespace": "back-lab", "source_app_name": "prometheus",
        "target_namespace": "lab", "target_app_name": "books", "target_type": "app",
        "endpoints": [{"ports": [9090], "methods": ["GET"], "paths": ["/metrics"]}],
    });
    change(&mut policy);
    json!([policy])
}

#[test]
fn the_gateway_is_let_in_on_exactly_the_routed_ports() {
    let api = cluster();
    let mut books = service("lab", "books-ui", 5000);
    books["spec"]["selector"] = json!({"app": "books"});
    books["spec"]["ports"][0]["targetPort"] = json!(5001);
    api.seed(books);
    let state = leader()
        .config("workload-policies", true)
        .relation(kubeflow(1, "books", "/books"))
        .relation(traefik(2, "echo"));
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "active");
    let specs: Vec<Value> = policies(&api)
        .into_iter()
        .map(|policy| policy["spec"].clone())
        .collect();
    let spec = |labels: Value, port: &str| {
        json!({
            "selector": {"matchLabels": labels}, "action": "ALLOW",
            "rules": [{"from": [{"source": {"principals": ["cluster.local/ns/edge-lab/sa/default"]}}],
                "to": [{"operation": {"ports": [port]}}]}],
        })
    };
    assert_eq!(specs.len(), 2);
    assert!(
        specs.contains(&spec(json!({"app": "books"}), "5001")),
        "{specs:?}"
    );
    assert!(specs.contains(&spec(json!({"app.kubernetes.io/name": "echo"}), "8080")));
    api.forget_requests();
    let after = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
    assert!(
        !after.unit_status.message.contains("authorization"),
        "these are not the gateway's"
    );

    config_changed(&api, &after.config("workload-policies", false));
    assert!(policies(&api).is_empty());
}

#[test]
fn everything_else_may_be_denied_or_only_logged() {
    let api = cluster();
    let state = leader()
        .config("deny-by-default", true)
        .config("policy-mode", "audit");
    config_changed(&api, &state);
    let policy = &policies(&api)[0];
    assert_eq!(policy["spec"], json!({"action": "ALLOW"}));
    assert_eq!(
        policy["metadata"]["annotations"]["istio.io/dry-run"],
        "true"
    );
    assert_eq!(policy["metadata"]["namespace"], "lab");
}

#[test]
fn an_application_opens_itself_to_exactly_whom_it_names() {
    let api = cluster();
    let state = leader().relation(mesh(1, "books", &policy(|_| ())));
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "active");
    assert_eq!(
        app_data(&after, 1, "labels"),
        Some(r#"{"sidecar.istio.io/inject":"true"}"#)
    );
    assert_eq!(
        policies(&api)[0]["spec"],
        json!({
            "selector": {"matchLabels": {"app.kubernetes.io/name": "books"}}, "action": "ALLOW",
            "rules": [{"from": [{"source": {"principals": ["cluster.local/ns/back-lab/sa/prometheus"]}}],
                "to": [{"operation": {"ports": ["9090"], "methods": ["GET"], "paths": ["/metrics"]}}]}],
        })
    );
    let unit = policy(|policy| policy["target_type"] = json!("unit"));
    let api = cluster();
    config_changed(&api, &leader().relation(mesh(1, "books", &unit)));
    let to = policies(&api)[0]["spec"]["rules"][0]["to"].clone();
    assert_eq!(
        to,
        json!([{"operation": {"ports": ["9090"]}}]),
        "what is about pods is about ports"
    );
}

#[test]
fn an_application_opens_no_other_and_a_bad_one_costs_only_itself() {
    let check = |policies_of: Value, why: &str| {
        let api = cluster();
        let good = policy(|policy| policy["target_app_name"] = json!("echo"));
        let state = leader()
            .relation(mesh(1, "books", &policies_of))
            .relation(mesh(2, "echo", &good));
        let after = config_changed(&api, &state);
        assert_status(&after, "blocked", &format!("service-mesh of books: {why}"));
        assert_eq!(policies(&api).len(), 1);
    };
    check(
        policy(|p| p["target_app_name"] = json!("echo")),
        "lab/echo is not its own",
    );
    check(
        policy(|p| p["target_namespace"] = json!("back-lab")),
        "back-lab/books is not its own",
    );
    check(
        policy(|p| {
            p["target_type"] = json!("unit");
            p["target_app_name"] = json!(null);
            p["target_selector_labels"] = json!({"app.kubernetes.io/name": "echo"});
        }),
        "pods of echo are not its own",
    );
    check(
        policy(|p| p["source_app_name"] = json!("*")),
        "\"*\" has '*', only a-z, 0-9 and - are allowed",
    );
    check(
        policy(|p| p["endpoints"][0]["methods"] = json!(["GIVE"])),
        "databag key policies: \"GIVE\" is no method of HTTP",
    );
    let pods = |p: &mut Value| {
        p["target_type"] = json!("unit");
        p["target_app_name"] = json!(null);
    };
    check(
        policy(|p| {
            pods(p);
            p["target_selector_labels"] = json!({"a/b/c": "x"});
        }),
        "\"a/b/c\": \"x\" is no label",
    );
    check(
        policy(|p| {
            pods(p);
            p["target_selector_labels"] = json!({"part": "a b"});
        }),
        "\"part\": \"a b\" is no label",
    );
    check(
        policy(|p| {
            pods(p);
            p["endpoints"][0]["ports"] = json!([]);
        }),
        "an endpoint without any condition that can be used",
    );
    check(
        policy(|p| p["endpoints"] = json!([{}])),
        "an endpoint without any condition that can be used",
    );
    for path in ["/a/{x}", "/a/{**}/b", "/{*}/b*", "/a{*}", "/a b"] {
        check(
            policy(|p| p["endpoints"][0]["paths"] = json!([path])),
            &format!("{path:?} is no host or path"),
        );
    }
    check(
        json!({}),
        "databag key policies: invalid type: map, expected a sequence",
    );
}

#[test]
fn what_istio_refuses_of_a_relation_costs_that_relation_only() {
    let ask = |app: &str, ports: &[u16]| -> Value {
        let one = |port: &u16| {
            policy(|policy| {
                policy["target_app_name"] = json!(app);
                policy["endpoints"][0]["ports"] = json!([port]);
            })[0]
                .clone()
        };
        ports.iter().map(one).collect()
    };
    // What the refused policy is called.
    let api = cluster();
    config_changed(
        &api,
        &leader().relation(mesh(1, "books", &ask("books", &[1]))),
    );
    let name = policies(&api)[0]["metadata"]["name"].clone();

    let api = cluster();
    let path = format!(
        "/apis/security.istio.io/v1/namespaces/lab/authorizationpolicies/{}",
        name.as_str().expect("a name")
    );
    let body = json!({"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden",
        "message": "admission webhook \"validation.istio.io\" denied the request: no"});
    api.script("PATCH", &path, 403, &body.to_string(), None);
    let state = leader()
        .relation(mesh(1, "books", &ask("books", &[1, 2, 3])))
        .relation(mesh(2, "echo", &ask("echo", &[1])))
        .relation(traefik(3, "echo"));
    api.forget_requests();
    let after = config_changed(&api, &state);
    let (text, message) = status(&after);
    assert_eq!(text, "blocked");
    assert!(
        message.starts_with("admission refuses AuthorizationPolicy"),
        "{message}"
    );
    assert_eq!(routed(&api).len(), 2);
    let of: Vec<Value> = policies(&api)
        .iter()
        .map(|policy| policy["spec"]["selector"]["matchLabels"].clone())
        .collect();
    let echo = json!({"app.kubernetes.io/name": "echo"});
    assert!(of.contains(&echo), "{of:?}");
    let refusals = api
        .writes()
        .iter()
        .filter(|write| write.contains(&path))
        .count();
    assert_eq!(refusals, 1, "its others are dropped with it, at once");
}

#[test]
fn callers_of_other_models_are_called_what_they_say() {
    let remote = "remote-0123456789abcdef0123456789abcdef";
    let alias = Relation::new("provide-cmr-mesh", 2, remote).remote_app_data(databag([(
        "cmr_data",
        r#"{"app_name": "grafana", "juju_model_name": "cos"}"#,
    )]));
    let asks = policy(|policy| policy["source_app_name"] = json!(remote));
    let api = cluster();
    config_changed(
        &api,
        &leader().relation(mesh(1, "books", &asks)).relation(alias),
    );
    let who = policies(&api)[0]["spec"]["rules"][0]["from"][0]["source"]["principals"][0].clone();
    assert_eq!(who, "cluster.local/ns/cos/sa/grafana");
}

#[test]
fn an_application_of_this_model_cannot_take_anothers_name_by_saying_it_is_elsewhere() {
    let check = |says: Value| {
        let api = cluster();
        api.seed(service("lab", "books", 80));
        let alias = Relation::new("provide-cmr-mesh", 2, "books")
            .remote_app_data(databag([("cmr_data", says.to_string())]));
        let opens = policy(|policy| {
            policy["target_namespace"] = says["juju_model_name"].clone();
            policy["target_app_name"] = says["app_name"].clone();
        });
        let state = leader().relation(mesh(1, "books", &opens)).relation(alias);
        let after = config_changed(&api, &state);
        let message = status(&after).1;
        assert!(message.contains("is not its own"), "{message}");
        assert!(policies(&api).is_empty());
    };
    check(json!({"app_name": "echo", "juju_model_name": "lab"}));
    check(json!({"app_name": "echo", "juju_model_name": "back-lab"}));
}

#[test]
fn a_gateway_in_the_way_is_named() {
    let api = cluster();
    with_tls(&api);
    let certificate = include_str!("common/certificate.pem");
    let key = "-----BEGIN PRIVATE KEY-----\nbm9uZQ==\n-----END PRIVATE KEY-----\n";
    api.seed(json!({
        "apiVersion": "networking.istio.io/v1", "kind": "Gateway",
        "metadata": {"name": "theirs", "namespace": "back-lab"},
        "spec": {"selector": {"istio": "edge"}, "servers": [{
            "hosts": ["*"], "port": {"name": "https", "number": 443, "protocol": "HTTPS"},
            "tls": {"mode": "SIMPLE", "credentialName": "x"}}]},
    }));
    let id = "secret:9m4e2mr0ui3e8a215n4g";
    let state = leader()
        .config("tls-secret-id", id)
        .granted_secret(id, databag([("tls-crt", certificate), ("tls-key", key)]))
        .relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "blocked",
        "Gateway back-lab/theirs has hosts of ours on port 443: the older one keeps them",
    );
    let secret = api
        .objects()
        .into_iter()
        .find(|object| object["type"] == "kubernetes.io/tls");
    assert!(secret.is_some(), "the granted certificate is used");
}

#[test]
fn discover_tells_what_is_chosen_and_what_to_add_to_the_mesh_config() {
    let api = cluster();
    api.seed(gate_service());
    denying(&api);
    let after = config_changed(&api, &leader().relation(gate(1, "gatekeeper")));
    let told = action(&api, "discover", &json!({}), &after);
    assert!(told["choice"].contains("edge-lab/edge"), "{told:?}");
    assert!(told["signals"].contains("definitions of Istio"));
    let line = &told["extension-provider"];
    assert!(
        line.contains("service: gate.lab.svc.cluster.local, port: 8080"),
        "{line}"
    );
    let json = action(&api, "discover", &json!({"format": "json"}), &after);
    let planes: Value = serde_json::from_str(&json["control-planes"]).expect("JSON");
    assert_eq!(planes[0]["trust-domain"], "cluster.local");
}

#[test]
fn a_dry_run_tells_what_would_be_written_and_writes_nothing() {
    let api = cluster();
    let state = leader().relation(traefik(1, "echo"));
    let told = action(&api, "dry-run", &json!({}), &state);
    assert!(
        told["plan"].contains("VirtualService lab/meshy-routes"),
        "{told:?}"
    );
    assert!(
        api.objects()
            .iter()
            .all(|object| object["metadata"]["name"] != "meshy-routes")
    );
}

#[test]
fn requests_of_nobody_that_pass_fail_the_check() {
    let api = cluster();
    let state = leader().relation(traefik(1, "echo")).config("auth", "none");
    let after = config_changed(&api, &state);
    for (path, code) in [("/lab-echo", 200), ("/lab-echo/check-auth", 401)] {
        answers(&api, path, code, "", None);
    }
    let told = action(&api, "check-auth", &json!({}), &after);
    assert_eq!(told["asked"], "2", "{told:?}");
    assert!(
        told["passed"].contains("http://*/lab-echo: 200"),
        "{told:?}"
    );
}
