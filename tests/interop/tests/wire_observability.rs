//! `prometheus_scrape`, `grafana_dashboard` and `tracing`, as their libraries write and read them,
//! and as we do.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use interop::peers::{Heard, ask};
use juju_hooks::Databag;
use relations::grafana_dashboard::Topology;
use relations::tracing::{Protocol, Receivers, TracingRequest};
use relations::{
    Dashboards, ScrapeJob, ScrapeJobs, ScrapeMetadata, StaticConfig, metrics_endpoint,
};
use serde_json::{Value, json};

const MODEL_UUID: &str = "407f2068-b5ee-4c88-88e5-8727d83764ce";

fn one(library: &str, question: Value) -> Heard {
    ask(library, &[question]).unwrap().remove(0)
}

fn job(path: &str, target: &str) -> ScrapeJob {
    ScrapeJob {
        metrics_path: path.into(),
        static_configs: vec![StaticConfig {
            targets: vec![target.into()],
        }],
    }
}

#[test]
fn jobs_of_the_library_are_read_with_their_values() {
    let jobs = json!([
        {"metrics_path": "/stats/prometheus", "static_configs": [{"targets": ["*:15090"]}]},
        {"metrics_path": "/m \"\u{fc}\"", "static_configs": [{"targets": ["istiod.istio-lab.svc:15014"]}]},
    ]);
    let heard = one(
        "metrics_endpoint",
        json!({"side": "provider", "send": jobs}),
    );
    assert_eq!(heard.error, None);
    let read = ScrapeJobs::decode(&heard.app).unwrap().unwrap();
    assert_eq!(
        read.jobs,
        [
            job("/stats/prometheus", "*:15090"),
            job("/m \"\u{fc}\"", "istiod.istio-lab.svc:15014"),
        ]
    );
    assert_eq!(
        (read.metadata.model.as_str(), read.metadata.unit.as_str()),
        ("lab", "meshy/0")
    );
    assert!(read.alert_rules["groups"].is_array());
    let ours = metrics_endpoint::unit("meshy/0", "192.0.2.0");
    for (key, value) in ours {
        assert_eq!(heard.unit.get(&key), Some(&value), "{key}");
    }
}

#[test]
fn jobs_of_ours_are_what_the_library_scrapes() {
    let rules = json!({"groups": [{"name": "books", "rules": [
        {"alert": "Gone", "expr": "up == 0", "for": "5m", "labels": {"severity": "critical"}},
    ]}]});
    let ours = ScrapeJobs {
        metadata: ScrapeMetadata {
            model: "lab".into(),
            model_uuid: MODEL_UUID.into(),
            application: "books".into(),
            unit: "books/0".into(),
            charm_name: "istio-k8s".into(),
        },
        jobs: vec![
            job("/stats/prometheus", "*:15020"),
            job("/metrics", "istiod.istio-lab.svc:15014"),
        ],
        alert_rules: rules,
    };
    let heard = one(
        "metrics_endpoint",
        json!({
            "side": "requirer", "remote_app": ours.encode(),
            "remote_unit": metrics_endpoint::unit("books/0", "192.0.2.7"),
        }),
    );
    assert_eq!(heard.error, None);
    let jobs = heard.read["jobs"].as_array().unwrap();
    let mut scraped: Vec<(&str, &str)> = jobs
        .iter()
        .map(|job| {
            let target = &job["static_configs"][0]["targets"][0];
            (
                target.as_str().unwrap(),
                job["metrics_path"].as_str().unwrap(),
            )
        })
        .collect();
    scraped.sort_unstable();
    assert_eq!(
        scraped,
        [
            ("192.0.2.7:15020", "/stats/prometheus"),
            ("istiod.istio-lab.svc:15014", "/metrics"),
        ]
    );
    for job in jobs {
        let labels = &job["static_configs"][0]["labels"];
        assert_eq!(
            (&labels["juju_model"], &labels["juju_application"]),
            (&json!("lab"), &json!("books"))
        );
        assert_eq!(labels["juju_charm"], "istio-k8s");
    }
    let alerts = heard.read["alerts"].to_string();
    assert!(
        alerts.contains("up == 0") || alerts.contains("Gone"),
        "{alerts}"
    );
}

#[test]
fn dashboards_are_read_both_ways() {
    let dashboard =
        json!({"title": "Books \"\u{fc}\"", "uid": "books", "version": 3, "panels": []});
    let ours = Dashboards {
        charm: "istio-k8s".into(),
        topology: Topology {
            model: "lab".into(),
            model_uuid: MODEL_UUID.into(),
            application: "books".into(),
            unit: "books/0".into(),
        },
        dashboards: BTreeMap::from([("books".to_owned(), dashboard.clone())]),
    };
    let question = json!({"side": "requirer", "remote_app": ours.encode("1")});
    let heard = one("grafana_dashboard", question);
    assert_eq!(heard.error, None);
    let read = &heard.read["Books \"\u{fc}\""];
    assert_eq!(
        (&read["charm"], &read["uid"]),
        (&json!("istio-k8s"), &json!("books"))
    );
    let content: Value = serde_json::from_str(read["content"].as_str().unwrap()).unwrap();
    assert_eq!(content["version"], 3);

    let question = json!({"side": "provider", "send": [dashboard.to_string()]});
    let theirs = one("grafana_dashboard", question);
    assert_eq!(theirs.error, None);
    let read = Dashboards::decode(&theirs.app).unwrap().unwrap();
    assert_eq!(read.charm, "meshy");
    assert_eq!(read.topology.unit, "meshy/0");
    assert_eq!(
        read.dashboards.into_values().collect::<Vec<_>>(),
        [dashboard]
    );
}

#[test]
fn protocols_of_traces_that_are_wanted_are_read_both_ways() {
    let ours = TracingRequest(vec![
        Protocol::OtlpGrpc,
        Protocol::OtlpHttp,
        Protocol::Zipkin,
    ]);
    let send = json!(["otlp_grpc", "otlp_http", "zipkin"]);
    let heard = one("tracing", json!({"side": "requirer", "send": send}));
    assert_eq!(TracingRequest::decode(&heard.app), Ok(Some(ours.clone())));
    let heard = one(
        "tracing",
        json!({"side": "provider", "remote_app": ours.encode()}),
    );
    assert_eq!((heard.read, heard.error), (send, None));
}

#[test]
fn addresses_for_traces_are_read_both_ways() {
    let pairs = [
        (Protocol::OtlpHttp, "http://tempo.lab.svc:4318/\"\u{fc}\""),
        (Protocol::OtlpGrpc, "tempo.lab.svc:4317"),
        (Protocol::JaegerThriftHttp, "http://tempo.lab.svc:14268"),
    ];
    let ours = Receivers(
        pairs
            .map(|(protocol, url)| (protocol, url.to_owned()))
            .into(),
    );
    let send = json!([
        ["otlp_http", pairs[0].1],
        ["otlp_grpc", pairs[1].1],
        ["jaeger_thrift_http", pairs[2].1],
    ]);
    let wanted = TracingRequest(vec![Protocol::OtlpHttp]).encode();
    let heard = one(
        "tracing",
        json!({"side": "provider", "send": send, "remote_app": wanted}),
    );
    assert_eq!(Receivers::decode(&heard.app), Ok(Some(ours.clone())));
    let heard = one(
        "tracing",
        json!({"side": "requirer", "remote_app": ours.encode()}),
    );
    assert_eq!(
        heard.read,
        json!({
            "otlp_http": pairs[0].1, "otlp_grpc": pairs[1].1, "jaeger_thrift_http": pairs[2].1,
        })
    );
}

#[test]
fn what_the_library_refuses_we_refuse_too() {
    for receivers in ["{", "{}", "\"otlp_http\"", "[7]"] {
        let bag = Databag::from([("receivers".to_owned(), receivers.to_owned())]);
        let heard = one("tracing", json!({"side": "provider", "remote_app": bag}));
        assert!(heard.error.is_some(), "{receivers}: {heard:?}");
        assert!(TracingRequest::decode(&bag).is_err(), "{receivers}");
    }
    for receivers in [
        "{",
        "[\"otlp_http\"]",
        r#"[{"url": "a"}]"#,
        r#"[{"protocol": {"name": "otlp_http", "type": "http"}}]"#,
        r#"[{"protocol": "otlp_http", "url": "a"}]"#,
        r#"[{"protocol": {"name": "otlp_http", "type": "http"}, "url": 7}]"#,
    ] {
        let bag = Databag::from([("receivers".to_owned(), receivers.to_owned())]);
        let heard = one("tracing", json!({"side": "requirer", "remote_app": bag}));
        assert!(heard.read.is_null(), "{receivers}: {heard:?}");
        assert!(Receivers::decode(&bag).is_err(), "{receivers}");
    }
}
