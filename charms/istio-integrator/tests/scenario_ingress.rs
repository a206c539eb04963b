//! Ingress relations, from databag to routes and back.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::*;
use juju_charm::Event;
use juju_hooks::RelationKind;
use juju_sim::scenario::{Relation, databag};
use serde_json::json;

#[test]
fn both_dialects_are_served_and_answered_on_one_endpoint() {
    let api = cluster();
    let state = leader()
        .relation(kubeflow(1, "books", "/books/"))
        .relation(traefik(2, "echo"))
        .relation(empty_relation("gateway-info", 3, "notebook"));
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "2 routes at http://192.0.2.7");
    assert_eq!(after.app_status.status, "active");
    assert_eq!(
        routed(&api),
        [
            ("exact /lab-echo", "echo.lab.svc.cluster.local"),
            ("prefix /lab-echo/", "echo.lab.svc.cluster.local"),
            ("exact /books", "books-ui.lab.svc.cluster.local"),
            ("prefix /books/", "books-ui.lab.svc.cluster.local"),
        ]
        .map(|(path, host)| (path.to_owned(), host.to_owned()))
    );
    for id in [1, 2] {
        assert_eq!(
            app_data(&after, id, "_supported_versions"),
            Some("- v1\n- v2\n")
        );
    }
    assert_eq!(app_data(&after, 1, "ingress"), None);
    assert_eq!(
        app_data(&after, 2, "ingress"),
        Some(r#"{"url":"http://192.0.2.7/lab-echo"}"#)
    );
    assert_eq!(app_data(&after, 3, "gateway_name"), Some("istio-gateway"));
    assert_eq!(app_data(&after, 3, "gateway_namespace"), Some("lab"));
    assert_eq!(app_data(&after, 3, "gateway_up"), Some("true"));
    assert_eq!(
        ours(&api),
        [
            "Gateway lab/istio-gateway",
            "VirtualService lab/meshy-routes"
        ]
    );
}

#[test]
fn a_hook_in_which_nothing_changed_writes_nothing() {
    let api = cluster();
    let state = leader()
        .relation(kubeflow(1, "books", "/books"))
        .relation(traefik(2, "echo"));
    let after = config_changed(&api, &state);
    api.forget_requests();
    let again = hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
    assert_eq!(again.record.count("relation-set"), 0);
    assert_eq!(again.unit_status, after.unit_status);
}

#[test]
fn the_number_of_reads_does_not_depend_on_the_relations() {
    let reads = |count: u32| {
        let api = cluster();
        let mut state = leader();
        for id in 1..=count {
            state = state.relation(kubeflow(id, &format!("app-{id}"), &format!("/app-{id}")));
        }
        let after = config_changed(&api, &state);
        api.forget_requests();
        hook(&api, Event::UpdateStatus, &after);
        api.requests().len()
    };
    assert_eq!(reads(1), reads(50));
}

#[test]
fn a_bad_relation_is_told_and_disturbs_no_other() {
    let bad = Relation::new("ingress", 2, "broken").remote_app_data(databag([
        ("_supported_versions", "- v2\n"),
        (
            "data",
            "service: x\nnamespace: lab\nprefix: /\nport: '80'\n",
        ),
    ]));
    let api = cluster();
    let state = leader()
        .relation(kubeflow(1, "books", "/books"))
        .relation(bad);
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "blocked",
        "ingress of broken: databag key data: field port must be an integer",
    );
    assert_eq!(routed(&api).len(), 2);
}

#[test]
fn the_second_claimant_of_a_prefix_is_told_and_gets_no_url() {
    let api = cluster();
    let claimed = kubeflow(1, "books", "/lab-echo");
    let late = traefik(2, "echo").local_app_data(databag([("ingress", r#"{"url":"http://old"}"#)]));
    let after = config_changed(&api, &leader().relation(claimed).relation(late));
    assert_status(
        &after,
        "blocked",
        "ingress of echo: prefix /lab-echo is taken by books",
    );
    assert_eq!(app_data(&after, 2, "ingress"), None);
    assert_eq!(routed(&api)[0].1, "books-ui.lab.svc.cluster.local");
}

#[test]
fn a_requirer_without_data_or_units_is_waited_for() {
    let check = |relation: Relation, message: &str| {
        let after = config_changed(&cluster(), &leader().relation(relation));
        assert_status(&after, "waiting", message);
        assert_eq!(
            app_data(&after, 1, "_supported_versions"),
            Some("- v1\n- v2\n")
        );
        assert_eq!(app_data(&after, 1, "ingress"), None);
    };
    check(
        empty_relation("ingress", 1, "echo"),
        "ingress of echo: no data yet",
    );
    let mut unready = traefik(1, "echo");
    unready.remote_units.clear();
    check(unready, "ingress of echo: no unit is ready");
}

#[test]
fn the_route_of_a_broken_relation_is_gone_when_its_hook_is() {
    let api = cluster();
    let books = kubeflow(1, "books", "/books");
    let state = leader()
        .relation(books.clone())
        .relation(traefik(2, "echo"));
    let after = config_changed(&api, &state);
    assert_eq!(routed(&api).len(), 4);
    let after = hook(&api, books.event(RelationKind::Broken, None), &after);
    assert_status(&after, "active", "1 route at http://192.0.2.7");
    assert_eq!(routed(&api).len(), 2);
}

#[test]
fn a_units_host_that_is_a_service_is_the_backend_and_a_pods_is_not() {
    let check = |host: &str, expect: &str| {
        let api = cluster();
        let unit = relations::UnitAddress {
            host: host.to_owned(),
            ip: None,
        };
        let mut relation = traefik(1, "echo");
        relation.remote_units.clear();
        config_changed(
            &api,
            &leader().relation(relation.remote_unit(0, unit.encode())),
        );
        assert_eq!(routed(&api)[0].1, expect, "{host}");
    };
    check(
        "echo-web.other.svc.cluster.local",
        "echo-web.other.svc.cluster.local",
    );
    check(
        "echo-0.echo-endpoints.lab.svc.cluster.local",
        "echo.lab.svc.cluster.local",
    );
    check("10.1.2.3", "echo.lab.svc.cluster.local");
}

/// A relation of traefik's dialect that says it is `name` of `model`.
fn called(remote_app: &str, model: &str, name: &str) -> Relation {
    let unit = relations::UnitAddress {
        host: "10.1.2.3".to_owned(),
        ip: None,
    };
    let ingress = relations::TraefikIngress {
        model: model.to_owned(),
        name: name.to_owned(),
        port: 8080,
        strip_prefix: true,
        redirect_https: false,
        scheme: relations::Scheme::Http,
        units: vec![unit.clone()],
    };
    Relation::new("ingress", 1, remote_app)
        .remote_app_data(ingress.encode())
        .remote_unit(0, unit.encode())
}

#[test]
fn an_application_speaks_for_itself_only() {
    let check = |model: &str, name: &str, why: &str| {
        let api = cluster();
        api.seed(service("lab", "echo", 8080));
        let after = config_changed(&api, &leader().relation(called("echo", model, name)));
        assert_status(&after, "blocked", &format!("ingress of echo: {why}"));
        assert!(routed(&api).is_empty());
        assert_eq!(app_data(&after, 1, "ingress"), None);
    };
    check("lab", "books", "name \"books\" is not its own");
    check("back-lab", "echo", "model \"back-lab\" is not its own");
    let odd = "has '/', only a-z, 0-9 and - are allowed";
    check("lab", "echo/admin", &format!("name \"echo/admin\" {odd}"));
    check("lab/x", "echo", &format!("model \"lab/x\" {odd}"));
}

#[test]
fn an_application_of_another_model_is_believed_and_shown_as_what_it_says() {
    let api = cluster();
    let remote = "remote-0123456789abcdef0123456789abcdef";
    let after = config_changed(&api, &leader().relation(called(remote, "back-lab", "echo")));
    assert_status(&after, "active", "1 route at http://192.0.2.7");
    assert_eq!(routed(&api)[0].1, "echo.back-lab.svc.cluster.local");
    let table = &action(&api, "list-routes", &json!({}), &after)["routes"];
    let shown = format!("{remote} (echo of model back-lab)");
    assert!(table.contains(&shown), "{table}");

    // An offer that this model consumed under a name of its own: no application here has it.
    let after = config_changed(
        &api,
        &leader().relation(called("alias", "back-lab", "echo")),
    );
    assert_status(&after, "active", "1 route at http://192.0.2.7");

    let odd = called(remote, "back-lab", "echo/x");
    let after = config_changed(&api, &leader().relation(odd));
    assert_eq!(status(&after).0, "blocked");
    assert!(routed(&api).is_empty());
}

#[test]
fn while_services_cannot_be_read_no_application_is_of_another_model() {
    let api = cluster();
    api.seed(service("lab", "echo", 8080));
    api.forbid("list", "services");
    let after = config_changed(
        &api,
        &leader().relation(called("echo", "back-lab", "books")),
    );
    assert_eq!(status(&after).0, "blocked");
    assert!(routed(&api).is_empty());
}

/// The relation on the endpoint about whose requests nobody is asked.
fn opened(mut relation: Relation) -> Relation {
    let endpoint = format!("{}-unauthenticated", relation.endpoint);
    relation.endpoint = juju_hooks::EndpointName::new(&endpoint).expect("a name");
    relation
}

#[test]
fn nobody_opens_a_service_that_is_not_its_own() {
    let check = |relation: Relation, refused: Option<&str>| {
        let api = cluster();
        for name in ["echo", "books", "books-ui"] {
            let mut service = service("lab", name, 8080);
            let app = name.split('-').next().expect("a word");
            service["spec"]["selector"] = json!({"app.kubernetes.io/name": app});
            api.seed(service);
        }
        let app = relation.remote_app.clone();
        let endpoint = relation.endpoint.clone();
        let after = config_changed(&api, &leader().relation(relation));
        match refused {
            None => assert_eq!(status(&after).0, "active"),
            Some(name) => {
                let (text, message) = status(&after);
                assert_eq!(text, "blocked");
                assert!(
                    message.starts_with(&format!("{endpoint} of {app}")),
                    "{message}"
                );
                assert!(
                    message.contains(&format!(": Service {name} is not")),
                    "{message}"
                );
                assert!(routed(&api).is_empty());
            }
        }
    };
    let at = |host: &str| {
        let mut relation = opened(traefik(1, "echo"));
        let unit = relations::UnitAddress {
            host: host.to_owned(),
            ip: None,
        };
        relation.remote_units.clear();
        relation.remote_unit(0, unit.encode())
    };
    check(at("echo.lab.svc.cluster.local"), None);
    check(at("10.1.2.3"), None);
    check(at("books.lab.svc.cluster.local"), Some("lab/books"));
    check(
        at("books.back-lab.svc.cluster.local"),
        Some("back-lab/books"),
    );
    // Its Service may have another name, if it leads to its pods.
    check(opened(kubeflow(1, "books", "/books")), None);
    let mut another = opened(kubeflow(1, "books", "/books"));
    another.remote_app = traefik(1, "echo").remote_app;
    check(another, Some("lab/books-ui"));
    let made_up = "remote-0123456789abcdef0123456789abcdef";
    check(opened(called(made_up, "back-lab", "echo")), None);
    check(opened(called(made_up, "lab", "echo")), Some("lab/echo"));
    let rule = json!({"model": "lab", "http_routes": [{
        "name": "a", "listener": {"port": 80, "protocol": "HTTP"},
        "backends": [{"service": "books", "port": 80}]}]});
    check(
        routes("istio-ingress-route-unauthenticated", 1, "echo", &rule),
        Some("lab/books"),
    );
}

#[test]
fn nobody_of_another_model_opens_what_another_relation_guards() {
    let (one, other) = (
        "remote-0123456789abcdef0123456789abcdef",
        "remote-ffff456789abcdef0123456789abcdef",
    );
    let api = cluster();
    let mut opening = opened(called(other, "back-lab", "echo"));
    opening.id = juju_hooks::RelationId(2);
    let state = leader()
        .relation(called(one, "back-lab", "echo"))
        .relation(opening);
    let after = config_changed(&api, &state);
    let message = status(&after).1;
    assert!(message.contains(&format!(
        "of {other} (echo of model back-lab): Service back-lab/echo is"
    )));
    assert_eq!(routed(&api).len(), 2);
}

#[test]
fn a_route_back_to_the_gateway_is_refused() {
    let api = cluster();
    let looped = relations::KubeflowIngress {
        service: "edge".to_owned(),
        port: 80,
        namespace: Some("edge-lab".to_owned()),
        prefix: "/loop".to_owned(),
        rewrite: None,
    };
    let looped = Relation::new("ingress", 1, "turn").remote_app_data(looped.encode());
    let state = leader()
        .relation(looped)
        .relation(kubeflow(2, "books", "/books"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "blocked",
        "ingress of turn: edge.edge-lab.svc.cluster.local is the gateway itself",
    );
    assert_eq!(routed(&api)[0].1, "books-ui.lab.svc.cluster.local");
    assert_eq!(routed(&api).len(), 2);
}

#[test]
fn urls_name_the_external_host_and_only_it_is_routed() {
    let api = cluster();
    let state = leader()
        .config("external-hostname", "apps.example.org")
        .relation(traefik(1, "echo"));
    let after = config_changed(&api, &state);
    assert_status(&after, "active", "1 route at http://apps.example.org");
    let url = r#"{"url":"http://apps.example.org/lab-echo"}"#;
    assert_eq!(app_data(&after, 1, "ingress"), Some(url));
    let routes = api
        .objects()
        .into_iter()
        .find(|object| object["kind"] == "VirtualService")
        .expect("a VirtualService");
    assert_eq!(routes["spec"]["hosts"], json!(["apps.example.org"]));
}

#[test]
fn objects_are_written_in_the_version_an_older_istio_serves() {
    let api = kube_apply::testing::FakeApi::new();
    api.seed_namespace("lab");
    for (group, version, kind, plural) in [
        ("networking.istio.io", "v1beta1", "Gateway", "gateways"),
        (
            "networking.istio.io",
            "v1beta1",
            "VirtualService",
            "virtualservices",
        ),
        (
            "networking.istio.io",
            "v1alpha3",
            "EnvoyFilter",
            "envoyfilters",
        ),
        (
            "security.istio.io",
            "v1beta1",
            "AuthorizationPolicy",
            "authorizationpolicies",
        ),
    ] {
        api.serve(group, version, kind, plural, true);
    }
    api.seed(istiod("istio-lab", "default"));
    for object in edge("edge-lab", "edge") {
        api.seed(object);
    }
    let after = config_changed(&api, &leader().relation(traefik(1, "echo")));
    assert_status(&after, "active", "1 route at http://192.0.2.7");
    let writes = api.writes();
    assert!(!writes.is_empty());
    assert!(
        writes
            .iter()
            .all(|write| write.contains("/apis/networking.istio.io/v1beta1/"))
    );
}

#[test]
fn a_unit_that_does_not_lead_writes_nothing() {
    let api = cluster();
    let after = config_changed(
        &api,
        &juju_sim::scenario::State::new(UNIT).relation(traefik(1, "echo")),
    );
    assert_status(&after, "active", "standby: the leader acts");
    assert_eq!(api.writes(), Vec::<String>::new());
    assert_eq!(app_data(&after, 1, "ingress"), None);
}

#[test]
fn everything_goes_with_the_application_and_nothing_with_one_of_its_units() {
    let api = cluster();
    let state = leader().relation(traefik(1, "echo"));
    let mut after = config_changed(&api, &state);
    after.relations.clear();
    hook(&api, Event::Remove, &after.clone().planned_units(1));
    assert!(!ours(&api).is_empty());
    // The last unit may not lead any more.
    after.leader = false;
    hook(&api, Event::Remove, &after.planned_units(0));
    assert_eq!(ours(&api), Vec::<String>::new());
}

#[test]
fn anothers_object_of_the_same_name_is_left_alone_and_told() {
    let api = cluster();
    api.seed(json!({
        "apiVersion": "networking.istio.io/v1", "kind": "Gateway",
        "metadata": {"name": "istio-gateway", "namespace": "lab"},
        "spec": {"selector": {"istio": "theirs"}},
    }));
    let after = config_changed(&api, &leader().relation(traefik(1, "echo")));
    let (status, message) = status(&after);
    assert_eq!(status, "blocked");
    assert!(
        message.starts_with("Gateway lab/istio-gateway belongs to"),
        "{message}"
    );
    assert!(!ours(&api).iter().any(|name| name.starts_with("Gateway")));
}

#[test]
fn list_routes_tells_each_relations_state() {
    let api = cluster();
    api.seed(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "books-ui", "namespace": "lab"},
        "spec": {"clusterIP": "10.96.0.9", "ports": [{"name": "tcp-ui", "port": 5000}]},
    }));
    let state = leader()
        .relation(kubeflow(1, "books", "/books"))
        .relation(traefik(2, "echo"))
        .relation(kubeflow(3, "late", "/books"));
    let after = config_changed(&api, &state);
    let table = &action(&api, "list-routes", &json!({}), &after)["routes"];
    insta(
        table,
        "\
RELATION   APP    DIALECT   KIND            PREFIX     BACKEND            URL                        GATEWAY        AUTH  TLS  STATE                            FINDING
ingress:1  books  kubeflow  VirtualService  /books     books-ui.lab:5000  http://192.0.2.7/books     edge-lab/edge  off   off  served                           port 5000 of Service lab/books-ui says it is tcp, not HTTP
ingress:2  echo   traefik   VirtualService  /lab-echo  echo.lab:8080      http://192.0.2.7/lab-echo  edge-lab/edge  off   off  served                           Service lab/echo does not exist
ingress:3  late   kubeflow  -               /books     late-ui.lab:5000   -                          edge-lab/edge  off   off  prefix /books is taken by books  -",
    );
    let json = &action(&api, "list-routes", &json!({"format": "json"}), &after)["routes"];
    let rows: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(rows[1]["url"], "http://192.0.2.7/lab-echo");
}

#[track_caller]
fn insta(got: &str, expect: &str) {
    assert_eq!(got, expect, "\n{got}\n");
}
