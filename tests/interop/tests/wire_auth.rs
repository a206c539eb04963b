//! Who is asked about requests: `istio_ingress_config`, `forward_auth` and `istio_request_auth`, as
//! their libraries write and read them, and as we do.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use interop::peers::{Heard, ask};
use juju_hooks::Databag;
use relations::request_auth::{ClaimToHeader, JwtRule, TokenHeader};
use relations::{ExtAuthzProvider, ForwardAuth, IngressConfig, IngressedApps, RequestAuth};
use serde_json::{Value, json};

fn side(side: &str, remote: &Databag, send: &Value) -> Value {
    json!({"side": side, "remote_app": remote, "send": send})
}

fn one(library: &str, question: Value) -> Heard {
    ask(library, &[question]).unwrap().remove(0)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn bag(entries: &[(&str, &str)]) -> Databag {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    entries.iter().map(own).collect()
}

fn authorizers() -> [(IngressConfig, Value); 3] {
    let plain = IngressConfig {
        service: "gate.lab.svc.cluster.local".into(),
        port: 4180,
        ..IngressConfig::default()
    };
    let odd = ["x-\u{fc}", "a\"b", "1e3", "[]"];
    [
        (
            plain.clone(),
            json!({"ext_authz_service_name": plain.service, "ext_authz_port": "4180"}),
        ),
        (
            IngressConfig {
                grpc: true,
                port: 65535,
                include_headers_in_check: texts(&["cookie", "authorization"]),
                headers_to_upstream_on_allow: texts(&odd),
                headers_to_downstream_on_allow: texts(&["set-cookie"]),
                headers_to_downstream_on_deny: texts(&["location"]),
                ..plain.clone()
            },
            json!({
                "ext_authz_service_name": plain.service, "ext_authz_port": "65535",
                "ext_authz_protocol": "grpc",
                "include_headers_in_check": ["cookie", "authorization"],
                "headers_to_upstream_on_allow": odd,
                "headers_to_downstream_on_allow": ["set-cookie"],
                "headers_to_downstream_on_deny": ["location"],
            }),
        ),
        // A service whose name is that of the stand-in, on a port of its own.
        (
            IngressConfig {
                service: "fake_host".into(),
                port: 80,
                ..IngressConfig::default()
            },
            json!({"ext_authz_service_name": "fake_host", "ext_authz_port": "80"}),
        ),
    ]
}

#[test]
fn an_authorizer_that_an_ingress_of_the_library_wants_is_read_with_its_values() {
    for (ours, theirs) in authorizers() {
        let heard = one("ingress_config", side("provider", &Databag::new(), &theirs));
        assert_eq!(IngressConfig::decode(&heard.app), Ok(Some(ours)));
    }
}

#[test]
fn an_authorizer_that_we_want_is_read_by_the_library_with_its_values() {
    for (ours, theirs) in authorizers() {
        let remote = ours.encode();
        let heard = one("ingress_config", side("requirer", &remote, &Value::Null));
        assert_eq!(heard.error, None);
        for (key, value) in theirs.as_object().unwrap() {
            assert_eq!(&heard.read[key], value, "{key}");
        }
        let protocol = if ours.grpc { "grpc" } else { "http" };
        assert_eq!(heard.read["ext_authz_protocol"], protocol);
        assert_eq!(
            (&heard.read["ready"], &heard.read["nobody"]),
            (&json!(true), &json!(false))
        );
    }
}

#[test]
fn both_say_and_read_that_there_is_no_authorizer_even_over_what_was_said_before() {
    let (before, _) = authorizers()[1].clone();
    let mut ours = before.encode();
    ours.extend(IngressConfig::nobody());
    let heard = one("ingress_config", side("requirer", &ours, &Value::Null));
    assert_eq!(heard.read["nobody"], true);
    let mut question = side("provider", &Databag::new(), &json!("nobody"));
    question["local_app"] = json!(before.encode());
    let heard = one("ingress_config", question);
    assert!(heard.app.len() > 3, "the old keys stay: {heard:?}");
    assert_eq!(IngressConfig::decode(&heard.app), Ok(None));
}

#[test]
fn the_name_of_an_authorizer_is_read_both_ways() {
    for name in ["ext_authz-meshy", "1e3", "null"] {
        let ours = ExtAuthzProvider { name: name.into() };
        let (config, theirs) = authorizers()[0].clone();
        let remote = config.encode();
        let heard = one("ingress_config", side("requirer", &remote, &json!(name)));
        assert_eq!(ExtAuthzProvider::decode(&heard.app), Ok(Some(ours.clone())));
        let remote = ours.encode();
        let heard = one("ingress_config", side("provider", &remote, &theirs));
        assert_eq!(heard.read, name);
    }
    let heard = one(
        "ingress_config",
        side("provider", &Databag::new(), &Value::Null),
    );
    assert_eq!(heard.read, Value::Null);
    assert_eq!(ExtAuthzProvider::decode(&Databag::new()), Ok(None));
}

#[test]
fn an_authorizer_that_the_library_refuses_we_refuse_too() {
    let (config, _) = authorizers()[1].clone();
    for (key, value) in [
        ("ext_authz_port", "http"),
        ("ext_authz_port", "[80]"),
        ("ext_authz_protocol", "tcp"),
        ("ext_authz_protocol", "GRPC"),
        ("include_headers_in_check", "cookie"),
        ("include_headers_in_check", "{\"cookie\": 1}"),
        ("headers_to_upstream_on_allow", "[1]"),
        ("headers_to_downstream_on_allow", "\"a\""),
        ("headers_to_downstream_on_deny", "[null]"),
    ] {
        let mut bag = config.encode();
        bag.insert(key.to_owned(), value.to_owned());
        let heard = one("ingress_config", side("requirer", &bag, &Value::Null));
        assert!(heard.error.is_some(), "{key} {value}: {heard:?}");
        assert!(IngressConfig::decode(&bag).is_err(), "{key} {value}");
    }
    // No port, or half of the stand-in: not ready for the library, an error for us.
    for (missing, ready) in [("ext_authz_port", false), ("ext_authz_service_name", false)] {
        let mut bag = config.encode();
        bag.remove(missing);
        let heard = one("ingress_config", side("requirer", &bag, &Value::Null));
        assert_eq!(heard.read["ready"], ready);
        assert!(!matches!(IngressConfig::decode(&bag), Ok(Some(_))));
    }
}

#[test]
fn a_service_that_decides_is_read_both_ways() {
    for (address, names, headers) in [
        (
            "http://gate.lab.svc.cluster.local:4180/",
            vec!["books"],
            vec!["X-User", "x-\u{fc}"],
        ),
        ("https://gate.example", vec![], vec![]),
        (
            "http://192.0.2.1:80/decide?a=\"b\"",
            vec!["1e3", "true"],
            vec!["null"],
        ),
    ] {
        let ours = ForwardAuth {
            decisions_address: address.into(),
            app_names: texts(&names),
            headers: texts(&headers),
        };
        let theirs = json!({"decisions_address": address, "app_names": names, "headers": headers});
        let told = one("forward_auth", side("created", &Databag::new(), &theirs));
        assert_eq!(ForwardAuth::decode(&told.app), Ok(Some(ours.clone())));
        let heard = one(
            "forward_auth",
            side("requirer", &ours.encode(), &Value::Null),
        );
        assert_eq!((heard.read, heard.error), (theirs, None));
    }
}

#[test]
fn the_applications_we_give_ingress_to_are_those_that_the_library_may_guard() {
    let theirs = json!({"decisions_address": "http://gate:80", "app_names": ["books", "shelves"]});
    let told = one("forward_auth", side("created", &Databag::new(), &theirs)).app;
    for (ours, expect) in [
        (vec!["books", "more", "shelves"], json!(["set", "set"])),
        (
            vec!["books"],
            json!(["set", "shelves is not related via ingress"]),
        ),
        (vec![], json!(["books is not related via ingress"])),
    ] {
        let ours = IngressedApps(texts(&ours));
        let mut question = side("provider", &ours.encode(), &Value::Null);
        question["local_app"] = json!(told);
        assert_eq!(one("forward_auth", question).read, expect);

        let heard = one("forward_auth", side("requirer", &told, &json!(ours.0)));
        assert_eq!(IngressedApps::decode(&heard.app), Ok(Some(ours)));
    }
}

#[test]
fn a_service_that_decides_which_the_library_refuses_we_refuse_too() {
    let whole = ForwardAuth {
        decisions_address: "http://gate:80".into(),
        app_names: texts(&["books"]),
        headers: texts(&["X-User"]),
    };
    let mut bags: Vec<Databag> = [
        ("app_names", "\"books\""),
        ("app_names", "books"),
        ("app_names", "[7]"),
        ("headers", "[null]"),
        ("headers", "{}"),
    ]
    .map(|(key, value)| {
        let mut bag = whole.encode();
        bag.insert(key.to_owned(), value.to_owned());
        bag
    })
    .into();
    bags.push(whole.encode());
    bags[5].remove("app_names");
    for bag in bags {
        let heard = one("forward_auth", side("requirer", &bag, &Value::Null));
        let error = heard.error.unwrap_or_default();
        assert!(error.starts_with("DataValidationError"), "{bag:?}: {error}");
        assert!(ForwardAuth::decode(&bag).is_err(), "{bag:?}");
    }
}

fn rules() -> (RequestAuth, Value) {
    let ours = RequestAuth {
        rules: vec![
            JwtRule {
                issuer: "https://issuer.example".into(),
                jwks_uri: Some("https://issuer.example/keys".into()),
                audiences: texts(&["books", "1e3", "a \"b\" \u{fc}"]),
                forward_original_token: Some(false),
                claim_to_headers: vec![ClaimToHeader {
                    header: "x-user".into(),
                    claim: "sub".into(),
                }],
                from_headers: vec![
                    TokenHeader {
                        name: "authorization".into(),
                        prefix: Some("Bearer ".into()),
                    },
                    TokenHeader {
                        name: "x-token".into(),
                        prefix: None,
                    },
                ],
                ..JwtRule::default()
            },
            JwtRule {
                issuer: "plain".into(),
                ..JwtRule::default()
            },
        ],
    };
    let theirs = json!([
        {
            "issuer": "https://issuer.example", "jwks_uri": "https://issuer.example/keys",
            "audiences": ["books", "1e3", "a \"b\" \u{fc}"], "forward_original_token": false,
            "claim_to_headers": [{"header": "x-user", "claim": "sub"}],
            "from_headers": [
                {"name": "authorization", "prefix": "Bearer "},
                {"name": "x-token", "prefix": null},
            ],
        },
        {
            "issuer": "plain", "jwks_uri": null, "audiences": null, "forward_original_token": null,
            "claim_to_headers": null, "from_headers": null,
        },
    ]);
    (ours, theirs)
}

#[test]
fn rules_of_tokens_are_read_both_ways() {
    let (ours, theirs) = rules();
    let heard = one("request_auth", side("requirer", &Databag::new(), &theirs));
    assert_eq!(RequestAuth::decode(&heard.app), Ok(Some(ours.clone())));
    let heard = one(
        "request_auth",
        side("provider", &ours.encode(), &Value::Null),
    );
    assert_eq!((heard.read, heard.error), (theirs, None));
}

#[test]
fn no_rules_are_no_rules_on_both_sides_and_never_all_tokens() {
    let empty = one(
        "request_auth",
        side("requirer", &Databag::new(), &json!([])),
    )
    .app;
    for bag in [
        empty,
        Databag::new(),
        RequestAuth::default().encode(),
        bag(&[("jwt_rules", "null")]),
    ] {
        let heard = one("request_auth", side("provider", &bag, &Value::Null));
        assert_eq!((heard.read, heard.error), (Value::Null, None));
        let read = RequestAuth::decode(&bag).unwrap().unwrap_or_default();
        assert!(read.rules.is_empty(), "{bag:?}: {read:?}");
    }
}

#[test]
fn rules_that_the_library_refuses_we_refuse_too() {
    for rules in [
        "{",
        "{}",
        "[{}]",
        "[\"https://issuer.example\"]",
        r#"[{"issuer": 7}]"#,
        r#"[{"issuer": null}]"#,
        r#"[{"issuer": "a", "audiences": "books"}]"#,
        r#"[{"issuer": "a", "audiences": [1]}]"#,
        r#"[{"issuer": "a", "forward_original_token": []}]"#,
        r#"[{"issuer": "a", "claim_to_headers": [{"header": "a"}]}]"#,
        r#"[{"issuer": "a", "claim_to_headers": {"a": "b"}}]"#,
        r#"[{"issuer": "a", "from_headers": ["authorization"]}]"#,
        r#"[{"issuer": "a", "from_headers": [{"prefix": "Bearer "}]}]"#,
        r#"[{"issuer": "good"}, {"issuer": []}]"#,
    ] {
        let bag = bag(&[("jwt_rules", rules)]);
        let heard = one("request_auth", side("provider", &bag, &Value::Null));
        assert_eq!(heard.read, Value::Null, "{rules}");
        assert!(RequestAuth::decode(&bag).is_err(), "{rules}");
    }
}
