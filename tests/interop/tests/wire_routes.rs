//! `istio_ingress_route`: the databags of the library itself, read by ours, and ours read by it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use interop::peers::{Heard, ask};
use juju_hooks::Databag;
use relations::ingress_route::{
    GrpcFilter, GrpcMatch, GrpcMethod, GrpcRoute, HttpFilter, HttpMatch, HttpRoute, Listener,
    PathKind, PathMatch, PathModifier, Protocol, RequestRedirect, RouteBackend, UrlRewrite,
};
use relations::{RouteConfig, RouteReply};
use serde_json::{Value, json};

fn requirers(routes: &[Value], ours: &Databag) -> Vec<Heard> {
    let question = |send: &Value| json!({"side": "requirer", "send": send, "remote_app": ours});
    let questions: Vec<Value> = routes.iter().map(question).collect();
    ask("ingress_route", &questions).unwrap()
}

fn providers(ours: &[Databag], send: &Value) -> Vec<Heard> {
    let question = |ours: &Databag| json!({"side": "provider", "send": send, "remote_app": ours});
    let questions: Vec<Value> = ours.iter().map(question).collect();
    ask("ingress_route", &questions).unwrap()
}

fn listener(port: u16, protocol: Protocol) -> Listener {
    Listener { port, protocol }
}

fn backend(service: &str, port: u16, weight: Option<u32>) -> RouteBackend {
    RouteBackend {
        service: service.to_owned(),
        port,
        weight,
    }
}

fn redirect() -> RequestRedirect {
    RequestRedirect {
        scheme: Some("https".to_owned()),
        hostname: Some("new.example".to_owned()),
        path: Some(PathModifier::ReplaceFullPath {
            value: "/a \"b\" ü".to_owned(),
        }),
        port: Some(65535),
        status_code: Some(302),
    }
}

/// Every field of the interface, in ours and as the library takes it.
fn everything() -> (RouteConfig, Value) {
    let (web, calls) = (listener(8080, Protocol::Http), listener(1, Protocol::Grpc));
    let headers = [("X-Team", "blue"), ("x-\u{fc}", "1e3 *a"), ("empty", "")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let path = |kind, value: &str| {
        Some(PathMatch {
            kind,
            value: value.to_owned(),
        })
    };
    let ours = RouteConfig {
        model: "lab".to_owned(),
        listeners: vec![web, calls],
        http_routes: vec![
            HttpRoute {
                name: "api".to_owned(),
                listener: web,
                backends: vec![backend("books", 80, Some(100)), backend("new", 65535, None)],
                hostnames: vec![
                    "books.example".to_owned(),
                    "*.b\u{fc}cher.example".to_owned(),
                ],
                matches: vec![
                    HttpMatch {
                        path: path(PathKind::PathPrefix, "/api"),
                        method: Some("GET".to_owned()),
                        headers: headers.clone().into(),
                    },
                    HttpMatch {
                        path: path(PathKind::RegularExpression, "/v[0-9]+/\\w*"),
                        ..HttpMatch::default()
                    },
                    HttpMatch {
                        path: path(PathKind::Exact, "/a%2Fb?c"),
                        ..HttpMatch::default()
                    },
                ],
                filters: vec![HttpFilter::UrlRewrite {
                    rewrite: UrlRewrite {
                        hostname: Some("inner.example".to_owned()),
                        path: Some(PathModifier::ReplacePrefixMatch {
                            value: "/".to_owned(),
                        }),
                    },
                }],
            },
            HttpRoute {
                name: "moved".to_owned(),
                listener: web,
                backends: Vec::new(),
                hostnames: Vec::new(),
                matches: Vec::new(),
                filters: vec![HttpFilter::RequestRedirect {
                    redirect: redirect(),
                }],
            },
        ],
        grpc_routes: vec![
            GrpcRoute {
                name: "calls".to_owned(),
                listener: calls,
                backends: vec![backend("books", 4317, Some(1))],
                hostnames: vec!["calls.example".to_owned()],
                matches: vec![
                    GrpcMatch {
                        method: Some(GrpcMethod {
                            service: "lab.Books".to_owned(),
                            method: Some("Lend".to_owned()),
                        }),
                        headers: headers.into(),
                    },
                    GrpcMatch {
                        method: Some(GrpcMethod {
                            service: "lab.Books".to_owned(),
                            method: None,
                        }),
                        ..GrpcMatch::default()
                    },
                ],
                filters: Vec::new(),
            },
            GrpcRoute {
                name: "calls-moved".to_owned(),
                listener: calls,
                backends: Vec::new(),
                hostnames: Vec::new(),
                matches: Vec::new(),
                filters: vec![GrpcFilter::RequestRedirect {
                    redirect: redirect(),
                }],
            },
        ],
    };
    let (web, calls) = (
        json!({"port": 8080, "protocol": "HTTP"}),
        json!({"port": 1, "protocol": "GRPC"}),
    );
    let headers = json!({"X-Team": "blue", "x-\u{fc}": "1e3 *a", "empty": ""});
    let redirect = json!({"requestRedirect": {
        "scheme": "https", "hostname": "new.example", "port": 65535, "statusCode": 302,
        "path": {"type": "ReplaceFullPath", "value": "/a \"b\" ü"},
    }});
    let theirs = json!({
        "model": "lab",
        "listeners": [web, calls],
        "http_routes": [
            {
                "name": "api",
                "listener": web,
                "backends": [
                    {"service": "books", "port": 80, "weight": 100},
                    {"service": "new", "port": 65535},
                ],
                "hostnames": ["books.example", "*.b\u{fc}cher.example"],
                "matches": [
                    {"path": {"value": "/api"}, "method": "GET", "headers": headers},
                    {"path": {"type": "RegularExpression", "value": "/v[0-9]+/\\w*"}},
                    {"path": {"type": "Exact", "value": "/a%2Fb?c"}},
                ],
                "filters": [{"urlRewrite": {
                    "hostname": "inner.example",
                    "path": {"type": "ReplacePrefixMatch", "value": "/"},
                }}],
            },
            {"name": "moved", "listener": web, "backends": [], "filters": [redirect]},
        ],
        "grpc_routes": [
            {
                "name": "calls",
                "listener": calls,
                "backends": [{"service": "books", "port": 4317, "weight": 1}],
                "hostnames": ["calls.example"],
                "matches": [
                    {"method": {"service": "lab.Books", "method": "Lend"}, "headers": headers},
                    {"method": {"service": "lab.Books"}},
                ],
            },
            {"name": "calls-moved", "listener": calls, "backends": [], "filters": [redirect]},
        ],
    });
    (ours, theirs)
}

#[test]
fn routes_of_the_library_are_read_with_every_value() {
    let (ours, theirs) = everything();
    let nothing = json!({"model": "lab"});
    let heard = requirers(&[theirs, nothing], &Databag::new());
    assert_eq!(RouteConfig::decode(&heard[0].app), Ok(Some(ours)));
    let nothing = RouteConfig {
        model: "lab".to_owned(),
        ..RouteConfig::default()
    };
    assert_eq!(RouteConfig::decode(&heard[1].app), Ok(Some(nothing)));
}

#[test]
fn routes_of_ours_are_read_by_the_library_with_every_value() {
    let (ours, theirs) = everything();
    let written = requirers(&[theirs], &Databag::new()).remove(0).app;
    let heard = providers(&[ours.encode(), written], &Value::Null);
    assert_eq!(heard[0].error, None);
    assert_eq!(heard[0].read["http_routes"][0]["name"], "api");
    // It makes the same of ours as of its own.
    assert_eq!(heard[0].read, heard[1].read);
}

#[test]
fn the_answer_is_read_both_ways() {
    for (host, tls) in [
        ("192.0.2.1", false),
        ("front.example", true),
        ("2001:db8::7", true),
    ] {
        let ours = RouteReply {
            external_host: host.to_owned(),
            tls_enabled: tls,
        };
        let heard = requirers(&[Value::Null], &ours.encode());
        assert_eq!(heard[0].read, json!({"host": host, "tls": tls}));

        let config = RouteConfig::default().encode();
        let heard = providers(&[config], &json!({"host": host, "tls": tls}));
        assert_eq!(RouteReply::decode(&heard[0].app), Ok(Some(ours)));
    }
}

#[test]
fn an_answer_that_is_taken_back_is_none_on_both_sides() {
    // Juju takes an empty value for no value.
    let mut withdrawn = RouteReply::withdrawn();
    withdrawn.retain(|_, value| !value.is_empty());
    let heard = requirers(&[Value::Null], &withdrawn);
    assert_eq!(heard[0].read, json!({"host": "", "tls": false}));

    let question = json!({
        "side": "provider", "send": "wiped", "remote_app": {},
        "local_app": RouteReply { external_host: "a".into(), tls_enabled: true }.encode(),
    });
    let heard: Vec<Heard> = ask("ingress_route", &[question]).unwrap();
    assert_eq!(RouteReply::decode(&heard[0].app), Ok(None));
}

#[test]
fn what_the_library_refuses_we_refuse_too() {
    let (ours, _) = everything();
    let whole: Value = serde_json::from_str(&ours.encode()["config"]).unwrap();
    let broken = [
        ("/model", json!(7)),
        ("/model", Value::Null),
        ("/listeners", Value::Null),
        ("/http_routes", Value::Null),
        ("/http_routes", json!({})),
        ("/grpc_routes/0/name", Value::Null),
        ("/http_routes/0/listener", json!("http-80")),
        ("/http_routes/0/listener/port", json!(0)),
        ("/http_routes/0/listener/port", json!(70000)),
        ("/http_routes/0/listener/protocol", json!("TCP")),
        ("/http_routes/0/listener/protocol", json!("http")),
        ("/http_routes/0/backends", Value::Null),
        ("/http_routes/0/backends/0/port", json!(0)),
        ("/http_routes/0/backends/0/port", json!("http")),
        ("/http_routes/0/backends/0/weight", json!(0)),
        ("/http_routes/0/backends/0/weight", json!(101)),
        ("/http_routes/0/backends/0/weight", json!(-1)),
        ("/http_routes/0/backends/0/weight", json!(1.5)),
        ("/http_routes/0/backends/0/service", json!(["a"])),
        ("/http_routes/0/hostnames", json!("books.example")),
        ("/http_routes/0/hostnames", json!([1])),
        ("/http_routes/0/matches/0/method", json!("FETCH")),
        ("/http_routes/0/matches/0/method", json!("get")),
        (
            "/http_routes/0/matches/0/headers",
            json!([{"name": "a", "value": "b"}]),
        ),
        ("/http_routes/0/matches/0/headers/X-Team", json!(1)),
        ("/http_routes/0/matches/0/path/type", json!("Prefix")),
        ("/http_routes/0/matches/0/path/value", Value::Null),
        ("/http_routes/0/filters/0", json!({"type": "URLRewrite"})),
        (
            "/http_routes/0/filters/0",
            json!({"type": "RequestMirror", "requestMirror": {}}),
        ),
        (
            "/http_routes/0/filters/0/urlRewrite/path/type",
            json!("ReplaceAll"),
        ),
        ("/http_routes/1/filters/0/requestRedirect/port", json!(0)),
        (
            "/http_routes/1/filters/0/requestRedirect/statusCode",
            json!("moved"),
        ),
        ("/grpc_routes/0/matches/0/method", json!({"method": "Lend"})),
        ("/grpc_routes/0/matches/0/method", json!("Lend")),
        (
            "/grpc_routes/1/filters/0",
            json!({"type": "URLRewrite", "urlRewrite": {}}),
        ),
    ];
    let mut bags: Vec<Databag> = Vec::new();
    for (at, value) in &broken {
        let mut config = whole.clone();
        *config.pointer_mut(at).unwrap() = value.clone();
        bags.push([("config".to_owned(), config.to_string())].into());
    }
    for text in ["{", "[]", "7", "\"lab\"", "null"] {
        bags.push([("config".to_owned(), text.to_owned())].into());
    }
    for (heard, bag) in providers(&bags, &Value::Null).iter().zip(&bags) {
        let config = &bag["config"];
        assert!(heard.error.is_some(), "{config}: {heard:?}");
        // A document that says nothing is one that is not there yet.
        let read = RouteConfig::decode(bag);
        assert!(read.is_err() || config == "null", "{config}: {read:?}");
    }
}
