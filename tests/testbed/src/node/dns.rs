//! `CoreDNS`, so that pods find Services by name.

use anyhow::Result;
use serde_json::{Value, json};

use crate::api::Api;
use crate::image::COREDNS;

const NAMESPACE: &str = "kube-system";
const ZONES: &str = ".:53 {
  errors
  health
  ready
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
  }
  cache 5
}
";

/// Applies everything; the Deployment is `kube-system/coredns`.
pub(super) fn apply(api: &Api, address: &str) -> Result<()> {
    for (path, object) in objects(address) {
        api.apply(path, &object)?;
    }
    Ok(())
}

fn objects(address: &str) -> [(&'static str, Value); 6] {
    let labels = json!({"k8s-app": "kube-dns"});
    let meta = |name: &str| json!({"name": name, "namespace": NAMESPACE, "labels": labels});
    [
        (
            "/api/v1/namespaces/kube-system/serviceaccounts/coredns",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("coredns")}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/testbed-coredns",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "testbed-coredns"},
                "rules": [
                    {
                        "apiGroups": [""],
                        "resources": ["namespaces", "nodes", "pods", "services"],
                        "verbs": ["get", "list", "watch"],
                    },
                    {
                        "apiGroups": ["discovery.k8s.io"],
                        "resources": ["endpointslices"],
                        "verbs": ["list", "watch"],
                    },
                ],
            }),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/testbed-coredns",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "testbed-coredns"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "testbed-coredns",
                },
                "subjects": [
                    {"kind": "ServiceAccount", "name": "coredns", "namespace": NAMESPACE},
                ],
            }),
        ),
        (
            "/api/v1/namespaces/kube-system/configmaps/coredns",
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": meta("coredns"),
                "data": {"Corefile": ZONES},
            }),
        ),
        (
            "/api/v1/namespaces/kube-system/services/kube-dns",
            json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta("kube-dns"),
                "spec": {
                    "clusterIP": address,
                    "selector": labels,
                    "ports": [
                        {"name": "dns", "port": 53, "protocol": "UDP"},
                        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                    ],
                },
            }),
        ),
        (
            "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": meta("coredns"),
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod()},
                },
            }),
        ),
    ]
}

fn pod() -> Value {
    json!({
        "serviceAccountName": "coredns",
        "dnsPolicy": "Default",
        "containers": [{
            "name": "coredns",
            "image": COREDNS,
            "args": ["-conf", "/etc/coredns/Corefile"],
            "ports": [
                {"containerPort": 53, "name": "dns", "protocol": "UDP"},
                {"containerPort": 53, "name": "dns-tcp", "protocol": "TCP"},
            ],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": true}],
        }],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    })
}
