//! The databags as the Python libraries write them, and what is said about those they would not.

use juju_hooks::Databag;
use relations::{
    GatewayInfo, Ingress, IngressAuth, IstioMetadata, KubeflowIngress, Scheme, TraefikIngress,
    TraefikReply, UnitAddress, ingress, sdi,
};

fn bag(pairs: &[(&str, &str)]) -> Databag {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

#[test]
fn kubeflow_version_2_names_the_namespace() {
    let app = bag(&[
        ("_supported_versions", "- v2\n"),
        (
            "data",
            "namespace: lab\nport: 5000\nprefix: /books/\nrewrite: /\nservice: books-ui\n",
        ),
    ]);
    let expect = KubeflowIngress {
        service: "books-ui".into(),
        port: 5000,
        namespace: Some("lab".into()),
        prefix: "/books/".into(),
        rewrite: Some("/".into()),
    };
    assert_eq!(
        Ingress::decode(&app, []),
        Ok(Some(Ingress::Kubeflow(expect)))
    );
}

#[test]
fn kubeflow_version_1_may_name_a_namespace_all_the_same() {
    let data = "port: 5000\nprefix: /\nservice: books-ui\n";
    let check = |data: &str, namespace: Option<&str>| {
        let app = bag(&[("_supported_versions", "[\"v1\"]"), ("data", data)]);
        let got = KubeflowIngress::decode(&app).unwrap().unwrap();
        assert_eq!(got.namespace.as_deref(), namespace);
        assert_eq!(got.rewrite, None);
    };
    check(data, None);
    check(&format!("{data}namespace: lab\n"), Some("lab"));
    check(r#"{"service":"books-ui","port":5000,"prefix":"/"}"#, None);
}

#[test]
fn a_requirer_that_has_said_nothing_is_no_problem() {
    for app in [
        bag(&[]),
        bag(&[("_supported_versions", "- v1\n")]),
        bag(&[("data", "service: x\n")]),
        bag(&[("_supported_versions", "- v1\n"), ("data", "")]),
        bag(&[("egress-subnets", "10.0.0.0/8")]),
    ] {
        assert_eq!(Ingress::decode(&app, []), Ok(None), "{app:?}");
        assert_eq!(IngressAuth::decode(&app), Ok(None), "{app:?}");
    }
}

#[test]
fn a_bad_kubeflow_databag_is_a_problem_that_names_the_field() {
    let check = |versions: &str, data: &str, expect: &str| {
        let app = bag(&[("_supported_versions", versions), ("data", data)]);
        assert_eq!(Ingress::decode(&app, []).unwrap_err().to_string(), expect);
    };
    let ok = "namespace: lab\nport: 80\nprefix: /\n";
    check("- v2\n", ok, "databag key data: field service is missing");
    check(
        "- v2\n",
        "namespace: lab\nport: '80'\nprefix: /\nservice: x\n",
        "databag key data: field port must be an integer",
    );
    check(
        "- v2\n",
        "namespace: lab\nport: 70000\nprefix: /\nservice: x\n",
        "databag key data: field port must be 1 to 65535, is 70000",
    );
    check(
        "- v2\n",
        "port: 80\nprefix: /\nservice: x\n",
        "databag key data: field namespace is missing",
    );
    check("- v2\n", "{", "databag key data: must be a YAML mapping");
    check(
        "- v2\n",
        "- a\n",
        "databag key data: must be a YAML mapping",
    );
    check(
        "nonsense",
        ok,
        "databag key _supported_versions: must be a YAML list such as [v1]",
    );
    check(
        "- v9\n",
        ok,
        "databag key _supported_versions: no version in common, this side speaks v1, v2",
    );
}

#[test]
fn traefik_reads_the_application_and_its_units() {
    let app = bag(&[
        ("model", "\"lab\""),
        ("name", "\"books\""),
        ("port", "3000"),
        ("strip-prefix", "true"),
        ("healthcheck_params", "{\"path\": \"/api/health\"}"),
    ]);
    let ready = bag(&[
        ("host", "\"books.lab.svc.cluster.local\""),
        ("ip", "\"192.0.2.0\""),
        ("ingress-address", "10.1.1.1"),
    ]);
    let fresh = bag(&[("ingress-address", "10.1.1.2")]);
    let expect = TraefikIngress {
        model: "lab".into(),
        name: "books".into(),
        port: 3000,
        strip_prefix: true,
        redirect_https: false,
        scheme: Scheme::Http,
        units: vec![UnitAddress {
            host: "books.lab.svc.cluster.local".into(),
            ip: Some("192.0.2.0".into()),
        }],
    };
    assert_eq!(
        Ingress::decode(&app, [&ready, &fresh]),
        Ok(Some(Ingress::Traefik(expect)))
    );
}

#[test]
fn a_bad_traefik_databag_is_a_problem_that_names_the_key() {
    let check = |changed: (&str, &str), expect: &str| {
        let mut app = bag(&[
            ("model", "\"lab\""),
            ("name", "\"books\""),
            ("port", "3000"),
        ]);
        app.insert(changed.0.into(), changed.1.into());
        assert_eq!(Ingress::decode(&app, []).unwrap_err().to_string(), expect);
    };
    check(("model", "lab"), "databag key model: must be JSON");
    check(("name", "7"), "databag key name: must be a JSON string");
    check(("name", ""), "databag key name: is missing");
    check(("port", "\"3000\""), "databag key port: must be an integer");
    check(("port", "0"), "databag key port: must be 1 to 65535, is 0");
    check(
        ("strip-prefix", "1"),
        "databag key strip-prefix: must be true or false",
    );
    check(
        ("scheme", "\"ftp\""),
        "databag key scheme: must be http, https or h2c",
    );
}

#[test]
fn the_written_bytes_are_those_the_libraries_read() {
    assert_eq!(
        sdi::versions(ingress::VERSIONS),
        bag(&[("_supported_versions", "- v1\n- v2\n")])
    );
    assert_eq!(
        TraefikReply {
            url: "http://10.64.140.43/lab-books".into()
        }
        .encode(),
        bag(&[("ingress", "{\"url\":\"http://10.64.140.43/lab-books\"}")])
    );
    assert_eq!(
        GatewayInfo {
            gateway_name: "front".into(),
            gateway_namespace: "lab".into(),
            gateway_up: true
        }
        .encode(),
        bag(&[
            ("gateway_name", "front"),
            ("gateway_namespace", "lab"),
            ("gateway_up", "true")
        ])
    );
    assert_eq!(
        IngressAuth {
            service: "gatekeeper".into(),
            port: 8080,
            allowed_request_headers: vec!["cookie".into()],
            allowed_response_headers: vec!["x-user".into()],
        }
        .encode(),
        bag(&[
            ("_supported_versions", "- v1\n"),
            (
                "data",
                "{\"allowed-request-headers\":[\"cookie\"],\"allowed-response-headers\":\
                 [\"x-user\"],\"port\":8080,\"service\":\"gatekeeper\"}"
            ),
        ])
    );
}

#[test]
fn the_authorizers_header_lists_may_be_absent() {
    let app = bag(&[
        ("_supported_versions", "- v1\n"),
        ("data", "port: 8080\nservice: gate\n"),
    ]);
    let auth = IngressAuth::decode(&app).unwrap().unwrap();
    assert!(auth.allowed_request_headers.is_empty() && auth.allowed_response_headers.is_empty());
}

#[test]
fn gateway_info_reads_pythons_booleans_and_takes_silence_for_up() {
    let check = |up: Option<&str>, expect: bool| {
        let mut app = bag(&[("gateway_name", "front"), ("gateway_namespace", "lab")]);
        app.extend(up.map(|up| ("gateway_up".to_owned(), up.to_owned())));
        assert_eq!(
            GatewayInfo::decode(&app).unwrap().unwrap().gateway_up,
            expect
        );
    };
    check(None, true);
    check(Some("True"), true);
    check(Some("false"), false);
    check(Some("no"), false);
}

#[test]
fn istio_metadata_is_nothing_until_it_names_a_namespace() {
    assert_eq!(IstioMetadata::decode(&bag(&[])), Ok(None));
    assert_eq!(
        IstioMetadata::decode(&bag(&[("root_namespace", "")])),
        Ok(None)
    );
}
