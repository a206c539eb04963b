//! Each option, good and bad, and what is said of a bad one.

use std::collections::BTreeMap;

use mesh::control_plane::Scale;
use serde_json::{Value, json};

use super::*;

const METADATA: &str = include_str!("../../charmcraft.yaml");

fn config(values: &Value) -> Config {
    Config::new(values.as_object().unwrap().clone())
}

fn meshy() -> AppName {
    "meshy".parse().unwrap()
}

fn read_all(values: &Value) -> Result<Options, Vec<Problem>> {
    options(&config(values), &meshy())
}

#[track_caller]
fn refused(values: &Value, expect: &[&str]) {
    let problems = read_all(values).unwrap_err();
    assert_eq!(problems.len(), expect.len(), "{problems:?}");
    for (problem, expect) in problems.iter().zip(expect) {
        let message = &problem.message;
        assert!(
            message.starts_with(expect),
            "{message:?} does not start with {expect:?}"
        );
        let option = message
            .strip_prefix("option ")
            .unwrap()
            .split(':')
            .next()
            .unwrap();
        let command = format!("juju config meshy --reset {option}");
        assert_eq!(problem.hint.as_deref(), Some(command.as_str()));
    }
}

#[test]
fn the_charms_metadata_has_exactly_these_options_of_these_types() {
    let metadata = yaml::parse(METADATA).unwrap();
    let declared = metadata["config"]["options"].as_object().unwrap();
    let declared: BTreeMap<&str, &str> = declared
        .iter()
        .map(|(name, option)| (name.as_str(), option["type"].as_str().unwrap()))
        .collect();
    assert_eq!(declared, BTreeMap::from(OPTIONS));
}

#[test]
fn the_defaults_of_the_metadata_are_in_order() {
    let metadata = yaml::parse(METADATA).unwrap();
    let declared = metadata["config"]["options"].as_object().unwrap();
    let defaults = declared
        .iter()
        .filter_map(|(name, option)| Some((name.clone(), option.get("default")?.clone())));
    let options = read_all(&Value::Object(defaults.collect())).unwrap();
    let unset =
        read_all(&json!({"gateways": "[{name: istio-ingressgateway, namespace: istio-ingress}]"}));
    assert_eq!(format!("{options:?}"), format!("{:?}", unset.unwrap()));
}

#[test]
fn the_defaults_are_the_default_revision_in_istio_system() {
    let Options {
        settings,
        version,
        crd_policy,
        upgrade_strategy,
        restart_proxies,
        gateway_api_crds,
    } = read_all(&json!({})).unwrap();
    assert_eq!(settings.namespace.as_str(), "istio-system");
    assert!(settings.revision.is_default());
    assert_eq!(settings.profile, "default");
    assert_eq!(settings.values, json!({}));
    assert_eq!((version, settings.components), (None, None));
    assert_eq!(crd_policy, CrdPolicy::Keep);
    assert_eq!(upgrade_strategy, UpgradeStrategy::InPlace);
    assert_eq!(restart_proxies, RestartProxies::Manual);
    assert_eq!(gateway_api_crds, GatewayApiCrds::Never);
}

#[test]
fn a_bad_option_is_told_with_its_value_and_what_is_allowed() {
    let check = |option: &str, value: Value, expect: &str| {
        refused(
            &json!({ option: value }),
            &[&format!("option {option}: {expect}")],
        );
    };
    check(
        "namespace",
        json!("Istio_System"),
        r#""Istio_System" has 'I', only a-z, 0-9 and - are"#,
    );
    check(
        "namespace",
        json!("kube-system"),
        r#""kube-system" is the cluster's own"#,
    );
    check("revision", json!("1.31"), r#""1.31" has '.'"#);
    check("revision", json!("n"), r#""n" is no text in YAML"#);
    check("revision", json!("131"), r#""131" is no text in YAML"#);
    check("namespace", json!("1e3"), r#""1e3" is no text in YAML"#);
    check(
        "version",
        json!("1.31"),
        r#""1.31" is no version such as 1.31.0"#,
    );
    check("platform", json!("K3D"), r#""K3D" has 'K'"#);
    check(
        "hub",
        json!("https://registry.example"),
        r#""https://registry.example" has a scheme"#,
    );
    check(
        "hub",
        json!("registry example"),
        r#""registry example" has ' '"#,
    );
    check("tag", json!("a:b"), r#""a:b" is no image tag"#);
    check(
        "variant",
        json!("slim"),
        r#""slim", allowed: empty, distroless, debug"#,
    );
    check("image-pull-secrets", json!("a, B"), r#""B" has 'B'"#);
    check("values", json!("global: [\n"), "");
    check("values", json!("- a\n"), "not a YAML mapping");
    check(
        "values",
        json!("global: {resourceScope: cluster}"),
        "global.resourceScope",
    );
    check(
        "values",
        json!("base: {validationCABundle: '?'}"),
        "base.validationCABundle is not base64",
    );
    check(
        "values",
        json!("istiodRemote: {injectionCABundle: '?'}"),
        "istiodRemote.injectionCABundle",
    );
    check(
        "values",
        json!("meshConfig: {enableTracing: 'yes'}"),
        "meshConfig: enableTracing: ",
    );
    check(
        "mesh-config",
        json!("accessLogFile: [a]"),
        r#"accessLogFile: "[\"a\"]" is not text"#,
    );
    check("mesh-config", json!("rootNamespace: A"), "rootNamespace: ");
    check(
        "mesh-config",
        json!("defaultConfig: {discoveryAddress: a}"),
        "defaultConfig.discoveryAddress",
    );
    check(
        "mesh-config",
        json!("extensionProviders: [{name: a}, {name: a}]"),
        "extensionProviders: name",
    );
    check(
        "components",
        json!("base, pilot"),
        r#""pilot", allowed: base, istiod, cni, ztunnel, none"#,
    );
    check("replicas", json!(101), r#""101", allowed: 1 to 100"#);
    check("replicas", json!(-1), r#""-1", allowed: 1 to 100"#);
    check("autoscale-min", json!(2), r#""2" needs autoscale-max"#);
    check("autoscale-max", json!(2), r#""2" needs autoscale-min"#);
    check(
        "crd-policy",
        json!("delete"),
        r#""delete", allowed: keep, remove"#,
    );
    check(
        "upgrade-strategy",
        json!("fast"),
        r#""fast", allowed: in-place, canary"#,
    );
    check(
        "restart-proxies",
        json!("auto"),
        r#""auto", allowed: manual, rolling"#,
    );
    check(
        "gateway-api-crds",
        json!("always"),
        r#""always", allowed: never, if-absent, manage"#,
    );
    check(
        "release-sha256",
        json!("abc"),
        r#""abc" is not 64 hexadecimal digits"#,
    );
}

#[test]
fn a_bad_gateway_is_told_with_the_field() {
    let check = |gateway: &str, expect: &str| {
        let gateways = format!("[{gateway}]");
        refused(
            &json!({"gateways": gateways}),
            &[&format!("option gateways: {expect}")],
        );
    };
    check("{nam: edge}", "");
    check("{name: Edge}", r#"name: "Edge" has"#);
    check(
        "{name: a, namespace: kube-system}",
        r#"namespace: "kube-system" is the cluster's own"#,
    );
    check("{name: a, kind: out}", "");
    check("{name: my-egress}", r#"name: "my-egress" names an egress"#);
    check("{name: a, revision: '1.31'}", r#"revision: "1.31" has '.'"#);
    check(
        "{name: a, replicas: 0}",
        r#"replicas: "0" leaves no gateway"#,
    );
    check(
        "{name: a, replicas: 1, autoscaling: {min: 1, max: 2}}",
        r#"replicas: "a" has auto"#,
    );
    check(
        "{name: a, autoscaling: {min: 3, max: 2}}",
        r#"autoscaling: "a" needs 1 <= min"#,
    );
    check(
        "{name: a, autoscaling: {min: 1, max: 2, cpu: 0}}",
        r#"autoscaling: "a" needs"#,
    );
    check("{name: a, ports: []}", r#"ports: "a" has none"#);
    check(
        "{name: a, ports: [{name: http, port: 0}]}",
        r#"port: "http" must be 1 to"#,
    );
    check(
        "{name: a}, {name: a}",
        r#"name: "a" is there twice in one namespace"#,
    );
}

#[test]
fn bounds_and_a_fixed_number_do_not_go_together() {
    refused(
        &json!({"replicas": 2, "autoscale-min": 1, "autoscale-max": 3}),
        &[r#"option replicas: "2" goes without"#],
    );
    refused(
        &json!({"autoscale-min": 4, "autoscale-max": 3}),
        &[r#"option autoscale-min: "4" is more than autoscale-max 3"#],
    );
    let bounds = read_all(&json!({"autoscale-min": 2, "autoscale-max": 3})).unwrap();
    assert_eq!(bounds.settings.scale, Scale::Between { min: 2, max: 3 });
}

#[test]
fn good_options_are_read() {
    let options = read_all(&json!({
        "version": "1.31.0", "components": "base,istiod cni", "hub": "registry.example:5000/mesh/",
        "tag": "1.31.0", "variant": "distroless", "image-pull-secrets": "a, b.c",
        "platform": "k3d", "mesh-config": "accessLogFile: /dev/stdout", "replicas": 3,
        "crd-policy": "remove", "upgrade-strategy": "canary", "restart-proxies": "rolling",
        "hardened-mode": true, "gateway-api-crds": "manage",
        "values": "base: {validationCABundle: YWJj}",
    }))
    .unwrap();
    let settings = options.settings;
    let components = [Component::Base, Component::Istiod, Component::Cni];
    assert_eq!(settings.components, Some(BTreeSet::from(components)));
    assert_eq!(settings.hub.as_deref(), Some("registry.example:5000/mesh"));
    assert_eq!(settings.image_pull_secrets, ["a", "b.c"]);
    assert_eq!(settings.scale, Scale::Fixed(3));
    assert!(settings.hardened);
    assert_eq!(options.version, Some(Version::new(1, 31, 0)));
    assert_eq!(options.crd_policy, CrdPolicy::Remove);
    assert_eq!(options.upgrade_strategy, UpgradeStrategy::Canary);
    assert_eq!(options.restart_proxies, RestartProxies::Rolling);
    assert_eq!(options.gateway_api_crds, GatewayApiCrds::Manage);
    let none = read_all(&json!({"components": "none"})).unwrap();
    assert_eq!(none.settings.components, Some(BTreeSet::new()));
}

#[test]
fn all_bad_options_are_told_at_once() {
    refused(
        &json!({"namespace": "-", "revision": "A", "values": "3"}),
        &["option namespace", "option revision", "option values"],
    );
}

#[test]
fn one_gateway_twice_is_refused_but_not_the_same_name_in_two_namespaces() {
    refused(
        &json!({"namespace": "a", "gateways": "[{name: edge}, {name: edge, namespace: a}]"}),
        &[r#"option gateways: name: "edge" is there twice in one namespace"#],
    );
    let two = json!({"gateways": "[{name: edge, namespace: a}, {name: edge, namespace: b}]"});
    assert_eq!(read_all(&two).unwrap().settings.gateways.len(), 2);
}

#[test]
fn a_pin_that_is_not_in_order_accepts_no_payload() {
    let pins = |text: &str| release_sha256(&config(&json!({"release-sha256": text})));
    assert!(pins("").is_empty());
    let typed = pins("abc");
    assert!(!typed.is_empty() && typed.iter().all(|pin| pin.len() != 64));
}
