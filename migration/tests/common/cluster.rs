//! The starting point: an Istio as istio-pilot and istio-gateway make it, and users on it.

use kube_apply::testing::FakeApi;
use migration::plan::{GatewayChoice, Split, Target};
use migration::{Request, plan::NewOwner};
use serde_json::{Value, json};

use super::{NEW, play};

/// Namespace of the old control plane.
pub(crate) const OLD: &str = "kubeflow-lab";
pub(crate) const VERSION: &str = "1.31.0";
pub(crate) const REVISION: &str = "m1";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

fn operated(component: &str) -> Value {
    json!({
        "operator.istio.io/component": component, "operator.istio.io/managed": "Reconcile",
        "operator.istio.io/version": VERSION, "istio.io/rev": "default",
    })
}

/// A self-signed root of which only the days are read.
pub(crate) fn root(not_before: &str, not_after: &str, serial: u8) -> String {
    let element = |tag: u8, content: &[u8]| {
        let mut out = vec![tag, 0x82];
        out.extend(u16::try_from(content.len()).expect("short").to_be_bytes());
        out.extend_from_slice(content);
        out
    };
    let time = |text: &str| element(0x18, text.as_bytes());
    let validity = element(0x30, &[time(not_before), time(not_after)].concat());
    let parts = [
        element(0xa0, &[2, 1, 2]),
        element(2, &[serial]),
        element(0x30, &[]),
        element(0x30, &[]),
        validity,
    ];
    let certificate = element(0x30, &element(0x30, &parts.concat()));
    let text = base64(&certificate);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    let value = serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).expect("bytes");
    value.as_str().expect("text").to_owned()
}

pub(crate) fn seed_root(fake: &FakeApi, pem: &str) {
    fake.seed(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "istio.io/ca-root",
        "metadata": {"name": "istio-ca-secret", "namespace": OLD},
        "data": {"ca-cert.pem": base64(pem.as_bytes()), "ca-key.pem": base64(SECRET.as_bytes())},
    }));
    fake.seed(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "istio-ca-root-cert", "namespace": OLD}, "data": {"root-cert.pem": pem},
    }));
}

/// What must be seen nowhere.
pub(crate) const SECRET: &str = "hush-this-is-the-key-of-the-mesh";

fn istiod(namespace: &str, revision: &str, labels: Value) -> [Value; 4] {
    let name = if revision == "default" {
        "istiod".to_owned()
    } else {
        format!("istiod-{revision}")
    };
    let map = if revision == "default" {
        "istio".to_owned()
    } else {
        format!("istio-{revision}")
    };
    let mut labels = labels;
    labels["app"] = "istiod".into();
    labels["istio.io/rev"] = revision.into();
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(&name)}),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(&map),
            "data": {
                "mesh": format!("rootNamespace: {namespace}\ntrustDomain: cluster.local\n"),
                "meshNetworks": "networks: {}",
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata(&name),
            "spec": {"type": "ClusterIP", "selector": {"app": "istiod", "istio.io/rev": revision},
                     "ports": [{"name": "https-dns", "port": 15012, "protocol": "TCP"}]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&name),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "istiod", "istio.io/rev": revision}},
                "template": {
                    "metadata": {"labels": {"app": "istiod", "istio.io/rev": revision, "sidecar.istio.io/inject": "false"}},
                    "spec": {"containers": [{
                        "name": "discovery", "image": format!("hub/pilot:{VERSION}"),
                        "env": [{"name": "PILOT_CERT_PROVIDER", "value": "istiod"}],
                    }]},
                },
            },
        }),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "reads as what is built")]
fn entry(name: &str, service: &str, namespace: &str, namespaces: Value, pods: Value) -> Value {
    json!({
        "name": format!("{name}.sidecar-injector.istio.io"), "failurePolicy": "Fail",
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": service, "namespace": namespace, "path": "/inject"}},
        "namespaceSelector": {"matchExpressions": namespaces},
        "objectSelector": {"matchExpressions": pods},
    })
}

fn injector(name: &str, tag: &str, revision: &str, namespace: &str, parked: bool) -> Value {
    let service = if revision == "default" {
        "istiod".to_owned()
    } else {
        format!("istiod-{revision}")
    };
    let (has, none) = ("Exists", "DoesNotExist");
    let is = |key: &str, operator: &str| json!({"key": key, "operator": operator});
    let of = |key: &str, operator: &str, value: &str| json!({"key": key, "operator": operator, "values": [value]});
    let _ = has;
    let (injection, rev, inject) = ("istio-injection", "istio.io/rev", "sidecar.istio.io/inject");
    let entry = |name, namespaces, pods| entry(name, &service, namespace, namespaces, pods);
    let mut webhooks = vec![
        entry(
            "rev.namespace",
            json!([of(rev, "In", tag), is(injection, none)]),
            json!([of(inject, "NotIn", "false")]),
        ),
        entry(
            "rev.object",
            json!([is(rev, none), is(injection, none)]),
            json!([of(inject, "NotIn", "false"), of(rev, "In", tag)]),
        ),
    ];
    if tag == "default" {
        webhooks.push(entry(
            "namespace",
            json!([of(injection, "In", "enabled")]),
            json!([of(inject, "NotIn", "false")]),
        ));
        webhooks.push(entry(
            "object",
            json!([is(injection, none), is(rev, none)]),
            json!([of(inject, "In", "true"), is(rev, none)]),
        ));
    }
    if parked {
        for webhook in &mut webhooks {
            webhook["namespaceSelector"] =
                json!({"matchLabels": {"istio.io/deactivated": "never-match"}});
        }
    }
    let mut labels = json!({"istio.io/rev": revision, "app": "sidecar-injector"});
    if tag != revision || name.contains("revision-tag") {
        labels["istio.io/tag"] = tag.into();
    }
    json!({
        "apiVersion": ADMISSION, "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name, "labels": labels}, "webhooks": webhooks,
    })
}

fn validator(name: &str, revision: &str, namespace: &str, policy: &str) -> Value {
    let service = if revision == "default" {
        "istiod".to_owned()
    } else {
        format!("istiod-{revision}")
    };
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"istio.io/rev": revision, "app": "istiod"}},
        "webhooks": [{
            "name": "validation.istio.io", "failurePolicy": policy,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": service, "namespace": namespace, "path": "/validate"}},
        }],
    })
}

#[expect(clippy::needless_pass_by_value, reason = "reads as what is built")]
pub(crate) fn custom(
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    labels: Value,
    spec: Value,
) -> Value {
    json!({
        "apiVersion": group, "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec,
    })
}

pub(crate) fn workload(
    kind: &str,
    namespace: &str,
    name: &str,
    replicas: u64,
    labels: Value,
) -> Value {
    let mut pod_labels = labels;
    pod_labels["app"] = name.into();
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": {"containers": [{"name": "main", "image": "hub/app:1"}]},
            },
        },
    })
}

fn gateway() -> Vec<Value> {
    let base = "istio-ingressgateway-workload";
    let mut labels = operated("IngressGateways");
    labels["app"] = "istio-ingressgateway".into();
    labels["istio"] = "ingressgateway".into();
    labels
        .as_object_mut()
        .expect("labels")
        .remove("operator.istio.io/managed");
    let metadata = |name: &str| json!({"name": name, "namespace": OLD, "labels": labels});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(&format!("{base}-service-account"))}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(base), "spec": {"type": "LoadBalancer"}}),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(base),
            "spec": {
                "replicas": 2,
                "strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "25%"}},
                "selector": {"matchLabels": {"istio": "ingressgateway"}},
                "template": {
                    "metadata": {"labels": {"istio": "ingressgateway", "app": "istio-ingressgateway"}},
                    "spec": {"containers": [{
                        "name": "istio-proxy", "image": format!("hub/proxyv2:{VERSION}"),
                        "args": ["proxy", "router"],
                        "env": [
                            {"name": "CA_ADDR", "value": format!("istiod.{OLD}.svc:15012")},
                            {"name": "PILOT_CERT_PROVIDER", "value": format!("istiod.{OLD}.svc")},
                        ],
                    }]},
                },
            },
        }),
    ]
}

/// Name of the old charm's filter.
pub(crate) const FILTER: &str = "istio-pilot-authn-filter";
/// What the integrator calls its filter.
pub(crate) const GUARD: &str = "integrated.ext_authz";

/// What the old charm writes for its relations.
pub(crate) fn pilot_objects() -> Vec<Value> {
    let scope = |scope: &str| {
        json!({"app.kubernetes.io/instance": format!("istio-pilot-{OLD}"),
               "kubernetes-resource-handler-scope": scope})
    };
    let networking = "networking.istio.io/v1";
    let filter = json!({
        "workloadSelector": {"labels": {"istio": "ingressgateway"}},
        "configPatches": [{"patch": {"value": {"name": "envoy.filters.http.ext_authz"}}}],
    });
    let mut objects = vec![
        custom(
            networking,
            "Gateway",
            OLD,
            "lab-gateway",
            scope("gateway"),
            json!({
                "selector": {"istio": "ingressgateway"},
                "servers": [{"hosts": ["*"], "port": {"name": "http", "number": 8080, "protocol": "HTTP"}}],
            }),
        ),
        custom(
            "networking.istio.io/v1alpha3",
            "EnvoyFilter",
            OLD,
            FILTER,
            json!({}),
            filter,
        ),
    ];
    for name in ["notebooks", "pipelines"] {
        objects.push(custom(networking, "VirtualService", OLD, name, scope("ingress"), json!({
            "gateways": [format!("{OLD}/lab-gateway")], "hosts": ["*"],
            "http": [{
                "match": [{"uri": {"prefix": format!("/{name}/")}}], "rewrite": {"uri": "/"},
                "route": [{"destination": {"host": format!("{name}.{OLD}.svc.cluster.local"), "port": {"number": 80}}}],
            }],
        })));
    }
    objects
}

fn policies() -> Vec<Value> {
    let security = "security.istio.io/v1";
    let gateway =
        format!("cluster.local/ns/{OLD}/sa/istio-ingressgateway-workload-service-account");
    vec![
        custom(
            security,
            "PeerAuthentication",
            OLD,
            "default",
            json!({}),
            json!({"mtls": {"mode": "STRICT"}}),
        ),
        custom(
            security,
            "AuthorizationPolicy",
            OLD,
            "blocked",
            json!({}),
            json!({
                "action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/blocked"]}}]}],
            }),
        ),
        custom(
            security,
            "AuthorizationPolicy",
            OLD,
            "apps",
            json!({}),
            json!({
                "selector": {"matchLabels": {"app": "srv"}},
                "rules": [{"from": [{"source": {"principals": [gateway, "cluster.local/ns/appa/sa/cli"]}}]}],
            }),
        ),
        custom(
            security,
            "AuthorizationPolicy",
            OLD,
            "edge",
            json!({}),
            json!({
                "selector": {"matchLabels": {"istio": "ingressgateway"}}, "rules": [{}],
            }),
        ),
        custom(
            "networking.istio.io/v1alpha3",
            "EnvoyFilter",
            OLD,
            "tracer",
            json!({}),
            json!({
                "configPatches": [{"patch": {"value": {"name": "lab.tracer"}}}],
            }),
        ),
        custom(
            "networking.istio.io/v1",
            "VirtualService",
            "appb",
            "labelled",
            json!({"istio.io/rev": "default"}),
            json!({
                "hosts": ["srv"], "http": [{"route": [{"destination": {"host": "srv"}}]}],
            }),
        ),
    ]
}

/// The cluster, with all pods running.
pub(crate) fn pilot_cluster() -> FakeApi {
    let fake = FakeApi::new().with_istio_kinds();
    for (name, labels) in [
        (OLD, json!({})),
        ("appa", json!({"istio-injection": "enabled"})),
        ("appb", json!({"istio.io/rev": "default"})),
        ("appc", json!({})),
        ("empty", json!({"istio-injection": "enabled"})),
    ] {
        fake.seed(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
    }
    for name in [
        "virtualservices.networking.istio.io",
        "authorizationpolicies.security.istio.io",
    ] {
        fake.seed(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "labels": operated("Base")}, "spec": {"group": name.split_once('.').expect("dot").1},
        }));
    }
    seed_root(&fake, &root("20260101000000Z", "20360101000000Z", 7));
    for object in istiod(OLD, "default", operated("Pilot")) {
        fake.seed(object);
    }
    let metadata =
        |name: &str| json!({"name": name, "namespace": OLD, "labels": operated("Pilot")});
    for (version, kind, name) in [
        ("autoscaling/v2", "HorizontalPodAutoscaler", "istiod"),
        ("policy/v1", "PodDisruptionBudget", "istiod"),
        ("v1", "ConfigMap", "istio-sidecar-injector"),
        ("v1", "ConfigMap", "istio-leader"),
        ("v1", "ServiceAccount", "istio-reader-service-account"),
        ("v1", "Service", "istiod-revision-tag-default"),
    ] {
        fake.seed(json!({"apiVersion": version, "kind": kind, "metadata": metadata(name), "spec": {"minReplicas": 1}}));
    }
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        fake.seed(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": format!("istiod-clusterrole-{OLD}"), "labels": operated("Pilot")},
        }));
    }
    fake.seed(injector(
        &format!("istio-revision-tag-default-{OLD}"),
        "default",
        "default",
        OLD,
        false,
    ));
    fake.seed(injector(
        &format!("istio-sidecar-injector-{OLD}"),
        "default",
        "default",
        OLD,
        true,
    ));
    fake.seed(validator(
        "istiod-default-validator",
        "default",
        OLD,
        "Fail",
    ));
    fake.seed(validator(
        &format!("istio-validator-{OLD}"),
        "default",
        OLD,
        "Fail",
    ));
    for object in gateway()
        .into_iter()
        .chain(pilot_objects())
        .chain(policies())
    {
        fake.seed(object);
    }
    fake.seed(workload("Deployment", "appa", "srv", 1, json!({})));
    fake.seed(workload("Deployment", "appa", "cli", 2, json!({})));
    let mut database = workload("StatefulSet", "appb", "db", 2, json!({}));
    database["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    fake.seed(database);
    fake.seed(workload("Deployment", "appb", "srv", 1, json!({})));
    fake.seed(workload(
        "Deployment",
        "appc",
        "pick",
        1,
        json!({"sidecar.istio.io/inject": "true"}),
    ));
    // As the pods of the old charms, by whose end a person's part is known.
    for name in ["istio-pilot", "istio-ingressgateway"] {
        fake.seed(workload("StatefulSet", OLD, name, 0, json!({})));
    }
    assert_eq!(play::settle(&fake), Vec::<String>::new());
    assert_eq!(play::settle(&fake), Vec::<String>::new());
    fake
}

/// The control plane to be.
pub(crate) fn target() -> Target {
    target_in(NEW)
}

/// The control plane to be in a namespace.
pub(crate) fn target_in(namespace: &str) -> Target {
    let labels = json!({"operator.istio.io/component": "Pilot"});
    let [account, map, service, deployment] = istiod(namespace, REVISION, labels);
    let reader = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "istio-reader-service-account", "namespace": namespace},
    });
    let last = [account, map, service, deployment, reader];
    let mut transitional = last.clone();
    transitional[1]["data"]["mesh"] =
        format!("rootNamespace: {OLD}\ntrustDomain: cluster.local\n").into();
    transitional[3]["spec"]["replicas"] = 2.into();
    let webhooks = [
        injector(
            &format!("istio-sidecar-injector-{REVISION}-{namespace}"),
            REVISION,
            REVISION,
            namespace,
            false,
        ),
        validator(
            &format!("istio-validator-{REVISION}-{namespace}"),
            REVISION,
            namespace,
            "Ignore",
        ),
    ];
    let tags = [
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "istiod-revision-tag-default", "namespace": namespace, "labels": {"istio.io/rev": REVISION}},
            "spec": {"selector": {"app": "istiod", "istio.io/rev": REVISION}},
        }),
        injector(
            &format!("istio-revision-tag-default-{namespace}"),
            "default",
            REVISION,
            namespace,
            false,
        ),
    ];
    Target {
        namespace: namespace.to_owned(),
        revision: REVISION.to_owned(),
        version: VERSION.to_owned(),
        transitional: transitional.into_iter().chain(webhooks.clone()).collect(),
        last: last.into_iter().chain(webhooks).chain(tags).collect(),
    }
}

/// A zero-downtime move to it.
pub(crate) fn request() -> Request {
    let mut request = Request::moving(OLD, target());
    request.owner = Some(NewOwner {
        labels: [(
            "app.kubernetes.io/managed-by".to_owned(),
            "istio-k8s".to_owned(),
        )]
        .into(),
        manager: "istio-k8s/control-plane".to_owned(),
    });
    request
}

/// Another place and the two charms, all at once.
pub(crate) fn move_and_split(gateway: GatewayChoice) -> Request {
    Request {
        split: Some(Split {
            pilot: "istio-pilot".to_owned(),
            gateway: "istio-ingressgateway".to_owned(),
            daemon: "istio-k8s".to_owned(),
            integrator: "istio-integrator".to_owned(),
            authorizer: "AUTH".to_owned(),
            applications: Vec::new(),
        }),
        gateway,
        ..request()
    }
}

/// The two charms, the control plane where it is.
pub(crate) fn split(gateway: GatewayChoice) -> Request {
    Request {
        target: None,
        ..move_and_split(gateway)
    }
}
