//! Discovery over objects as the installers leave them.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::revision::Revision;

fn read<T: DeserializeOwned>(values: &[Value]) -> Vec<T> {
    values
        .iter()
        .map(|value| serde_json::from_value(value.clone()).unwrap())
        .collect()
}

fn istiod(namespace: &str, revision: &str, labels: &Value) -> Value {
    let mut all = json!({"app": "istiod", "istio.io/rev": revision});
    for (key, value) in labels.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({
        "metadata": {"name": "istiod", "namespace": namespace, "labels": all},
        "spec": {
            "selector": {"matchLabels": {"app": "istiod"}},
            "template": {"spec": {"containers": [
                {"name": "discovery", "image": "registry.example/pilot:1.30.3-distroless"}]}},
        },
        "status": {"readyReplicas": 1},
    })
}

fn injector(name: &str, namespace: &str, revision: &str, tag: Option<&str>) -> Value {
    let mut labels = json!({"istio.io/rev": revision});
    if let Some(tag) = tag {
        labels["istio.io/tag"] = json!(tag);
    }
    json!({
        "metadata": {"name": name, "labels": labels},
        "webhooks": [{
            "name": "rev.namespace.sidecar-injector.istio.io", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "istiod", "namespace": namespace}},
        }],
    })
}

fn gateway(namespace: &str, name: &str, istio: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": name, "istio": istio}},
            "template": {
                "metadata": {
                    "labels": {"app": name, "istio": istio, "extra": "x"},
                    "annotations": {"inject.istio.io/templates": "gateway"},
                },
                "spec": {"containers": [{"name": "istio-proxy", "image": "auto"}]},
            },
        },
        "status": {"readyReplicas": 1},
    })
}

fn service(namespace: &str, istio: &str, kind: &str, ingress: &Value) -> Value {
    json!({
        "metadata": {"name": format!("{istio}-svc"), "namespace": namespace},
        "spec": {
            "type": kind, "clusterIP": "10.96.0.7", "selector": {"istio": istio},
            "ports": [
                {"name": "status-port", "port": 15021},
                {"name": "http2", "port": 80, "targetPort": 8080},
                {"name": "https", "port": 443, "targetPort": "https"},
            ],
        },
        "status": {"loadBalancer": {"ingress": ingress}},
    })
}

fn live(deployments: &[Value]) -> Live {
    Live {
        deployments: read(deployments),
        ..Live::default()
    }
}

#[test]
fn an_istiod_is_found_in_any_namespace_with_its_mesh_config_and_tags() {
    let mut live = live(&[istiod("istio-lab", "canary", &json!({}))]);
    live.webhooks = read(&[
        injector(
            "istio-sidecar-injector-canary-istio-lab",
            "istio-lab",
            "canary",
            None,
        ),
        injector(
            "istio-revision-tag-prod-istio-lab",
            "istio-lab",
            "canary",
            Some("prod"),
        ),
        injector("istio-revision-tag-old", "elsewhere", "canary", Some("old")),
    ]);
    live.config_maps = read(&[json!({
        "metadata": {"name": "istio-canary", "namespace": "istio-lab"},
        "data": {"mesh": "rootNamespace: mesh-root\ntrustDomain: lab.example\nextensionProviders:\n\
            - name: otel\n\
            - name: gate\n  envoyExtAuthzHttp: {service: lab/gate.lab.svc.cluster.local, port: 8080}\n"},
    })]);
    let planes = control_planes(&live);
    assert_eq!(
        planes,
        [ControlPlane {
            namespace: "istio-lab".into(),
            revision: Revision::Named("canary".into()),
            version: Some("1.30.3".into()),
            root_namespace: "mesh-root".into(),
            tags: vec!["prod".into()],
            extension_providers: vec!["otel".into(), "gate".into()],
            authorizers: [(
                "gate".into(),
                AskedByMesh {
                    host: "gate.lab.svc.cluster.local".into(),
                    port: 8080,
                    ..AskedByMesh::default()
                }
            )]
            .into(),
            trust_domain: "lab.example".into(),
            ambient: false,
            owner: Owner::Unknown,
            ready: true,
            external: false,
        }]
    );
    assert!(planes[0].answers_to("prod") && planes[0].answers_to("canary"));
    assert!(!planes[0].answers_to("") && !planes[0].answers_to("old"));
}

#[test]
fn how_an_extension_provider_asks_is_read_in_either_spelling() {
    let check = |fields: &str, fails_open: bool, headers: &[&str]| {
        let mut live = live(&[istiod("istio-lab", "default", &json!({}))]);
        live.config_maps = read(&[json!({
            "metadata": {"name": "istio", "namespace": "istio-lab"},
            "data": {"mesh": format!(
                "extensionProviders:\n- name: gate\n  envoyExtAuthzHttp: \
                 {{service: gate.lab.svc.cluster.local, port: 8080, {fields}}}\n"
            )},
        })]);
        let planes = control_planes(&live);
        let asked = &planes[0].authorizers["gate"];
        assert_eq!(asked.fails_open, fails_open, "{fields}");
        let got: Vec<&str> = asked.upstream_headers.iter().map(String::as_str).collect();
        assert_eq!(got, headers, "{fields}");
    };
    check("failOpen: false", false, &[]);
    check("failOpen: true", true, &[]);
    check("fail_open: true", true, &[]);
    check(
        "headersToUpstreamOnAllow: [X-User, x-b*]",
        false,
        &["x-b*", "x-user"],
    );
    check("headers_to_upstream_on_allow: [x-user]", false, &["x-user"]);
}

#[test]
fn the_owner_is_read_from_labels_and_the_root_namespace_defaults_to_istiods() {
    let check = |labels: Value, expect: Owner| {
        let planes = control_planes(&live(&[istiod("istio-lab", "default", &labels)]));
        assert_eq!(planes[0].owner, expect);
        assert_eq!(planes[0].root_namespace, "istio-lab");
        assert_eq!(planes[0].revision, Revision::Default);
    };
    check(json!({}), Owner::Unknown);
    check(json!({"app.kubernetes.io/managed-by": "Helm"}), Owner::Helm);
    check(
        json!({"app.kubernetes.io/managed-by": "Helm", "operator.istio.io/managed": "Reconcile"}),
        Owner::Istioctl,
    );
    check(
        json!({"charms.istio-operators.dev/app": "meshy", "charms.istio-operators.dev/model": "u-1"}),
        Owner::Charm {
            app: "meshy".into(),
            model: "u-1".into(),
        },
    );
}

#[test]
fn a_webhook_with_a_url_is_an_external_control_plane_and_a_dead_one_is_none() {
    let mut live = live(&[]);
    live.webhooks = read(&[injector("left-over", "gone", "default", None)]);
    assert!(control_planes(&live).is_empty());
    let mut external = injector("remote", "", "default", None);
    external["webhooks"][0]["clientConfig"] = json!({"url": "https://istiod.example/inject"});
    live.webhooks = read(&[external]);
    let planes = control_planes(&live);
    assert!(planes.len() == 1 && planes[0].external);
    assert_eq!(planes[0].reference(), "external/default");
}

#[test]
fn gateways_are_found_by_template_or_arguments_and_roles_by_label() {
    let classic = json!({
        "metadata": {"name": "old-gateway", "namespace": "lab"},
        "spec": {
            "selector": {"matchLabels": {"istio": "ingressgateway"}},
            "template": {
                "metadata": {"labels": {"istio": "ingressgateway", "istio.io/rev": "default"}},
                "spec": {"containers": [
                    {"name": "istio-proxy", "args": ["proxy", "router", "--domain", "x"]}]},
            },
        },
    });
    let sidecar = json!({
        "metadata": {"name": "books", "namespace": "lab"},
        "spec": {
            "selector": {"matchLabels": {"app": "books"}},
            "template": {"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy", "sidecar"]}]}},
        },
    });
    let mut api = gateway("lab", "api-istio", "x");
    api["spec"]["template"]["metadata"]["labels"]["gateway.networking.k8s.io/gateway-name"] =
        json!("api");
    let found = gateways(&live(&[
        gateway("edge-lab", "edge", "edge"),
        gateway("edge-lab", "istio-egressgateway", "egressgateway"),
        classic,
        sidecar,
        api,
    ]));
    let told: Vec<(String, Role, bool, Option<&str>)> = found
        .iter()
        .map(|g| (g.reference(), g.role, g.ready, g.revision.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("edge-lab/edge".into(), Role::Ingress, true, None),
            (
                "edge-lab/istio-egressgateway".into(),
                Role::Egress,
                true,
                None
            ),
            (
                "lab/old-gateway".into(),
                Role::Ingress,
                false,
                Some("default")
            ),
        ]
    );
    let labels: Vec<(&str, &str)> = found[0]
        .labels
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(labels, [("app", "edge"), ("istio", "edge")]);
}

#[test]
fn the_services_type_says_whether_an_address_is_still_to_come() {
    let check = |kind: &str, ingress: Value, expect: Option<&str>| {
        let mut live = live(&[gateway("lab", "edge", "edge")]);
        live.services = read(&[
            service(
                "elsewhere",
                "edge",
                "LoadBalancer",
                &json!([{"ip": "9.9.9.9"}]),
            ),
            service("lab", "edge", kind, &ingress),
        ]);
        let found = gateways(&live);
        assert_eq!(found[0].service.as_ref().unwrap().host(), expect, "{kind}");
    };
    check(
        "LoadBalancer",
        json!([{"ip": "192.0.2.7"}]),
        Some("192.0.2.7"),
    );
    check(
        "LoadBalancer",
        json!([{"ip": "192.0.2.7"}, {"ip": "2001:db8::7"}]),
        Some("192.0.2.7"),
    );
    check(
        "LoadBalancer",
        json!([{"hostname": "lb.example", "ip": "192.0.2.7"}]),
        Some("lb.example"),
    );
    check("LoadBalancer", json!([]), None);
    check("LoadBalancer", Value::Null, None);
    check("NodePort", Value::Null, Some("10.96.0.7"));
    check("ClusterIP", Value::Null, Some("10.96.0.7"));
}

#[test]
fn pods_that_run_no_router_are_no_gateway_pods() {
    let pod = |name: &str, mode: &str, ready: &str| {
        json!({
            "metadata": {"name": name, "namespace": "lab"},
            "spec": {"containers": [{
                "name": "istio-proxy", "args": ["proxy", mode],
                "ports": [{"name": "web", "containerPort": 8081}],
            }]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    };
    let pods = read(&[
        pod("b", "router", "True"),
        pod("a", "router", "False"),
        pod("c", "sidecar", "True"),
    ]);
    let check = |target: TargetPort, expect: Option<u16>| {
        let port = GatewayPort {
            name: "http2".into(),
            port: 80,
            target,
        };
        let found = gateway_pods(&pods, Some(&port));
        let told: Vec<_> = found
            .iter()
            .map(|p| (p.name.as_str(), p.ready, p.http_port))
            .collect();
        assert_eq!(told, [("a", false, expect), ("b", true, expect)]);
    };
    check(TargetPort::Number(8080), Some(8080));
    check(TargetPort::Name("web".into()), Some(8081));
    check(TargetPort::Name("none".into()), None);
}

#[test]
fn one_answer_is_taken_and_several_are_named() {
    let planes = control_planes(&live(&[
        istiod("istio-lab", "default", &json!({})),
        istiod("istio-lab", "canary", &json!({})),
        istiod("other-lab", "default", &json!({})),
    ]));
    let check = |namespace: &str, revision: &str, root: &str, expect: Selected<&str>| {
        let choice = Choice {
            namespace,
            revision,
            root_namespace: root,
        };
        let got = match select_control_plane(&planes, &choice) {
            Selected::One(plane) => Selected::One(plane.reference()),
            Selected::None { looked_for } => Selected::None { looked_for },
            Selected::Several { candidates } => Selected::Several { candidates },
        };
        let expect = match expect {
            Selected::One(text) => Selected::One(text.to_owned()),
            Selected::None { looked_for } => Selected::None { looked_for },
            Selected::Several { candidates } => Selected::Several { candidates },
        };
        assert_eq!(got, expect);
    };
    let several = |names: &[&str]| Selected::Several {
        candidates: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    check(
        "",
        "",
        "",
        several(&["istio-lab/canary", "istio-lab/default", "other-lab/default"]),
    );
    check(
        "istio-lab",
        "",
        "",
        several(&["istio-lab/canary", "istio-lab/default"]),
    );
    check(
        "istio-lab",
        "default",
        "",
        Selected::One("istio-lab/default"),
    );
    check("", "canary", "", Selected::One("istio-lab/canary"));
    check("", "", "other-lab", Selected::One("other-lab/default"));
    let looked_for =
        "istiod (label app=istiod) in namespace istio-lab with revision or tag stable".to_owned();
    check("istio-lab", "stable", "", Selected::None { looked_for });
}

#[test]
fn the_only_ingress_gateway_of_the_revision_is_meant_unless_one_is_named() {
    let mut canary = gateway("istio-lab", "canary-gateway", "canary");
    canary["spec"]["template"]["metadata"]["labels"]["istio.io/rev"] = json!("canary");
    let live = live(&[
        istiod("istio-lab", "default", &json!({})),
        gateway("edge-lab", "edge", "front"),
        gateway("edge-lab", "istio-egressgateway", "egressgateway"),
        canary,
    ]);
    let (planes, gateways) = (control_planes(&live), gateways(&live));
    let check = |wanted: &str, expect: Option<&str>| {
        let got = select_gateway(&gateways, wanted, &planes[0]).one();
        assert_eq!(
            got.map(GatewayWorkload::reference).as_deref(),
            expect,
            "{wanted:?}"
        );
    };
    check("", Some("edge-lab/edge"));
    check("edge", Some("edge-lab/edge"));
    check("front", Some("edge-lab/edge"));
    check("edge-lab/edge", Some("edge-lab/edge"));
    check("istio-lab/canary-gateway", Some("istio-lab/canary-gateway"));
    check("istio-egressgateway", Some("edge-lab/istio-egressgateway"));
    check("istio-lab/edge", None);
}
