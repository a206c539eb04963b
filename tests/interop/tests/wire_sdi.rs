//! Kubeflow's `ingress` and `ingress-auth`: the databags of serialized-data-interface itself, read
//! by ours, and ours read by it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use interop::peers::ask;
use juju_hooks::Databag;
use relations::{Ingress, IngressAuth, KubeflowIngress, TraefikReply, ingress, ingress_auth, sdi};
use serde::Deserialize;
use serde_json::{Value, json};

/// What one side of the real library did in a hook.
#[derive(Debug, Deserialize)]
struct Did {
    sent: Databag,
    received: Value,
    error: Option<String>,
}

/// One side of the real library, its databags and what it is asked to send.
fn side(endpoint: &str, role: &str, versions: &[&str], remote: &Databag, send: &Value) -> Value {
    json!({
        "endpoint": endpoint, "role": role, "versions": versions, "remote_app": remote, "send": send
    })
}

/// Runs a hook of each.
fn run(sides: &[Value]) -> Vec<Did> {
    ask("sdi", sides).unwrap()
}

/// What the real requirers write, related to our provider.
fn requirers(endpoint: &str, asks: &[(&[&str], Value)], ours: &Databag) -> Vec<Databag> {
    let sides = asks
        .iter()
        .map(|(versions, send)| side(endpoint, "requires", versions, ours, send));
    run(&sides.collect::<Vec<_>>())
        .into_iter()
        .map(|did| {
            assert_eq!(did.error, None);
            did.sent
        })
        .collect()
}

/// What the real providers read, related to our requirers.
fn providers(endpoint: &str, versions: &[&str], ours: &[Databag]) -> Vec<Value> {
    let sides = ours
        .iter()
        .map(|bag| side(endpoint, "provides", versions, bag, &Value::Null));
    run(&sides.collect::<Vec<_>>())
        .into_iter()
        .map(|did| {
            assert_eq!(did.error, None);
            did.received
        })
        .collect()
}

fn route(namespace: Option<&str>, rewrite: Option<&str>) -> KubeflowIngress {
    KubeflowIngress {
        service: "books-ui".into(),
        port: 5000,
        namespace: namespace.map(Into::into),
        prefix: "/books/".into(),
        rewrite: rewrite.map(Into::into),
    }
}

#[test]
fn a_route_of_the_library_is_read_with_its_values() {
    let plain = json!({"service": "books-ui", "port": 5000, "prefix": "/books/"});
    let mut rewritten = plain.clone();
    rewritten["rewrite"] = json!("/");
    // A charm of version 1 may send the field of version 2 all the same.
    let mut full = rewritten.clone();
    full["namespace"] = json!("lab");
    let cases: [(&[&str], Value, KubeflowIngress); 5] = [
        (&["v1"], plain, route(None, None)),
        (&["v1"], rewritten, route(None, Some("/"))),
        (&["v1"], full.clone(), route(Some("lab"), Some("/"))),
        (&["v2"], full.clone(), route(Some("lab"), Some("/"))),
        (&["v1", "v2"], full, route(Some("lab"), Some("/"))),
    ];
    let asks = cases.clone().map(|(versions, send, _)| (versions, send));
    let bags = requirers("ingress", &asks, &sdi::versions(ingress::VERSIONS));
    for (bag, (.., expect)) in bags.iter().zip(cases) {
        assert_eq!(
            Ingress::decode(bag, []),
            Ok(Some(Ingress::Kubeflow(expect))),
            "{bag:?}"
        );
    }
}

/// A route in each of these namespaces: as the library writes it, and as ours.
fn in_namespaces(texts: &[&str]) -> Vec<(Databag, KubeflowIngress)> {
    let rewrite = "/~: #é\u{1f4d6}";
    let ask = |text: &&str| {
        let send = json!({
            "service": "books-ui", "port": 5000, "prefix": "/books/", "namespace": text,
            "rewrite": rewrite
        });
        (["v2"].as_slice(), send)
    };
    let asks: Vec<_> = texts.iter().map(ask).collect();
    let theirs = requirers("ingress", &asks, &sdi::versions(ingress::VERSIONS));
    let ours = texts.iter().map(|text| route(Some(text), Some(rewrite)));
    theirs.into_iter().zip(ours).collect()
}

#[test]
fn a_text_that_looks_like_something_else_in_yaml_stays_a_text() {
    let texts = [
        "017",
        "0x1f",
        "1-2",
        "1.5",
        "on",
        "no",
        "null",
        "2001-01-01",
        "12",
        "-",
    ];
    let routes = in_namespaces(&texts);
    for (bag, ours) in &routes {
        assert_eq!(
            KubeflowIngress::decode(bag),
            Ok(Some(ours.clone())),
            "{bag:?}"
        );
    }
    let ours: Vec<_> = routes.iter().map(|(_, ours)| ours.encode()).collect();
    for (read, (_, ours)) in providers("ingress", &["v1", "v2"], &ours)
        .iter()
        .zip(&routes)
    {
        let expect = (&json!(ours.namespace), &json!(ours.rewrite));
        assert_eq!((&read["namespace"], &read["rewrite"]), expect);
    }
}

#[test]
fn a_text_of_pythons_that_is_a_number_elsewhere_is_refused_and_never_misread() {
    for (bag, _) in in_namespaces(&["1e3", "12e03", "0o17", "y"]) {
        let error = KubeflowIngress::decode(&bag).unwrap_err().to_string();
        assert!(
            error.contains("namespace must be text, quote it"),
            "{bag:?}: {error}"
        );
    }
}

#[test]
fn a_route_of_ours_is_read_by_the_library_with_its_values() {
    let ours = [
        route(None, None).encode(),
        route(Some("lab"), Some("/")).encode(),
    ];
    let expect = [
        json!({"service": "books-ui", "port": 5000, "prefix": "/books/"}),
        json!({
            "service": "books-ui", "port": 5000, "prefix": "/books/", "namespace": "lab",
            "rewrite": "/"
        }),
    ];
    assert_eq!(providers("ingress", &["v1", "v2"], &ours), expect);
}

#[test]
fn an_authorizer_is_read_both_ways() {
    let data = json!({
        "service": "gatekeeper", "port": 8080,
        "allowed-request-headers": ["cookie", "X-Auth-Token"],
        "allowed-response-headers": ["kubeflow-userid"],
    });
    let ours = IngressAuth {
        service: "gatekeeper".into(),
        port: 8080,
        allowed_request_headers: vec!["cookie".into(), "X-Auth-Token".into()],
        allowed_response_headers: vec!["kubeflow-userid".into()],
    };
    let asks: [(&[&str], Value); 1] = [(&["v1"], data.clone())];
    let bags = requirers(
        "ingress-auth",
        &asks,
        &sdi::versions(ingress_auth::VERSIONS),
    );
    assert_eq!(IngressAuth::decode(&bags[0]), Ok(Some(ours.clone())));
    assert_eq!(providers("ingress-auth", &["v1"], &[ours.encode()]), [data]);
}

#[test]
fn the_library_sends_nothing_before_it_has_our_versions() {
    let send = json!({"service": "books-ui", "port": 5000, "prefix": "/"});
    let early = run(&[side("ingress", "requires", &["v1"], &Databag::new(), &send)]);
    let error = early[0].error.as_deref().unwrap();
    assert!(error.starts_with("UnversionedRelation"), "{error}");
    assert_eq!(
        Ingress::decode(&early[0].sent, []),
        Ok(None),
        "versions alone are no route"
    );
}

#[test]
fn the_library_ignores_the_url_that_stands_beside_our_versions() {
    let mut ours = sdi::versions(ingress::VERSIONS);
    ours.extend(
        TraefikReply {
            url: "http://192.0.2.1/lab-books".into(),
        }
        .encode(),
    );
    let send = json!({"service": "books-ui", "port": 5000, "prefix": "/books/"});
    let bags = requirers("ingress", &[(["v1"].as_slice(), send)], &ours);
    assert_eq!(
        Ingress::decode(&bags[0], []),
        Ok(Some(Ingress::Kubeflow(route(None, None))))
    );
}

#[test]
fn both_sides_see_that_they_have_no_version_in_common() {
    let send = json!({"service": "books-ui", "port": 5000, "prefix": "/books/"});
    let ours = sdi::versions(&[7]);
    let theirs = run(&[side("ingress", "requires", &["v1"], &ours, &send)]);
    let error = theirs[0].error.as_deref().unwrap();
    assert!(error.starts_with("IncompatibleVersionsError"), "{error}");

    let mut newer = ours;
    newer.insert(sdi::DATA_KEY.to_owned(), send.to_string());
    let error = Ingress::decode(&newer, []).unwrap_err().to_string();
    assert!(error.contains("no version in common"), "{error}");
}

#[test]
fn what_the_library_refuses_we_refuse_too() {
    let bags = [
        json!({"service": "books-ui", "port": "5000", "prefix": "/"}),
        json!({"service": "books-ui", "prefix": "/"}),
        json!({"service": 7, "port": 5000, "prefix": "/"}),
        json!({"service": "books-ui", "port": 5000, "prefix": ["/"]}),
        json!([1]),
        json!("books"),
    ]
    .map(|data| {
        Databag::from([
            (sdi::VERSIONS_KEY.to_owned(), "- v1\n".to_owned()),
            (sdi::DATA_KEY.to_owned(), data.to_string()),
        ])
    });
    let sides = bags
        .clone()
        .map(|bag| side("ingress", "provides", &["v1"], &bag, &Value::Null));
    for (theirs, bag) in run(&sides).iter().zip(bags) {
        let error = theirs.error.as_deref().unwrap_or_default();
        assert!(error.starts_with("RelationDataError"), "{bag:?}: {error}");
        assert!(Ingress::decode(&bag, []).is_err(), "{bag:?}");
    }
}
