//! The workload that proves a mesh: a server that only one identity may ask, and clients with and
//! without that identity, with and without a sidecar. Pure.

use serde_json::{Value, json};

/// Label of the scratch namespace: only a namespace with it is deleted.
pub(super) const SCRATCH: &str = "charms.istio-operators.dev/verify";
/// The server's port.
const PORT: u16 = 8080;

/// What is to be proven, in order. What may be refused is tried after the same was allowed, so that a
/// refusal is the mesh's and nothing else.
pub(super) const CHECKS: [Check; 4] = [
    Check {
        name: "mtls",
        what: "an injected client with an allowed identity is answered under strict mutual TLS",
        host: "server",
        account: "friend",
        injected: true,
        answered: true,
    },
    Check {
        name: "routing",
        what: "a VirtualService leads a host without pods to the server",
        host: "routed",
        account: "friend",
        injected: true,
        answered: true,
    },
    Check {
        name: "no-plaintext",
        what: "a client without a sidecar is refused",
        host: "server",
        account: "friend",
        injected: false,
        answered: false,
    },
    Check {
        name: "denial",
        what: "an injected client with another identity is refused",
        host: "server",
        account: "stranger",
        injected: true,
        answered: false,
    },
];

/// One request and what is to become of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    host: &'static str,
    account: &'static str,
    injected: bool,
    pub(super) answered: bool,
}

/// Images and commands.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) namespace: String,
    pub(super) revision: String,
    pub(super) server_image: String,
    pub(super) server_args: Vec<String>,
    pub(super) client_image: String,
    /// The URL is added at its end.
    pub(super) client_command: Vec<String>,
}

impl Workload {
    pub(super) fn namespace_object(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": {
                "istio.io/rev": self.revision, SCRATCH: "true",
            }},
        })
    }

    /// Everything but the namespace and the clients.
    pub(super) fn objects(&self) -> Vec<Value> {
        let namespace = &self.namespace;
        let object = |api_version: &str, kind: &str, name: &str, rest: Value| {
            let mut object = json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {"name": name, "namespace": namespace},
            });
            for (key, value) in rest.as_object().into_iter().flatten() {
                object[key] = value.clone();
            }
            object
        };
        let account = |name: &str| object("v1", "ServiceAccount", name, json!({}));
        let service = |name: &str| {
            let spec = json!({
                "selector": {"app": name},
                "ports": [{"name": "http", "port": PORT, "targetPort": PORT}],
            });
            object("v1", "Service", name, json!({"spec": spec}))
        };
        let friend = format!("*/ns/{namespace}/sa/friend");
        vec![
            account("server"),
            account("friend"),
            account("stranger"),
            service("server"),
            service("routed"),
            object(
                "security.istio.io/v1beta1",
                "PeerAuthentication",
                "strict",
                json!({"spec": {"mtls": {"mode": "STRICT"}}}),
            ),
            object(
                "security.istio.io/v1beta1",
                "AuthorizationPolicy",
                "friends",
                json!({"spec": {"action": "ALLOW", "rules": [
                    {"from": [{"source": {"principals": [friend]}}]},
                ]}}),
            ),
            object(
                "networking.istio.io/v1beta1",
                "VirtualService",
                "routed",
                json!({"spec": {"hosts": ["routed"], "http": [
                    {"route": [{"destination": {"host": "server", "port": {"number": PORT}}}]},
                ]}}),
            ),
            self.pod(
                "server",
                "server",
                true,
                &json!({
                    "name": "server", "image": self.server_image, "args": self.server_args,
                    "ports": [{"containerPort": PORT}],
                    "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2},
                }),
                "Always",
            ),
        ]
    }

    /// A client that asks once; its exit code is the answer.
    pub(super) fn client(&self, check: &Check, attempt: usize) -> Value {
        let mut command = self.client_command.clone();
        command.push(format!("http://{}.{}:{PORT}/", check.host, self.namespace));
        self.pod(
            &format!("{}-{attempt}", check.name),
            check.account,
            check.injected,
            &json!({"name": "client", "image": self.client_image, "command": command}),
            "Never",
        )
    }

    fn pod(
        &self,
        name: &str,
        account: &str,
        injected: bool,
        container: &Value,
        restart: &str,
    ) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": self.namespace,
                "labels": {"app": name, "sidecar.istio.io/inject": injected.to_string()},
                "annotations": {
                    "proxy.istio.io/config": "holdApplicationUntilProxyStarts: true\n",
                },
            },
            "spec": {
                "serviceAccountName": account, "restartPolicy": restart,
                "terminationGracePeriodSeconds": 1, "containers": [container],
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        Workload {
            namespace: "meshy-verify".to_owned(),
            revision: "canary".to_owned(),
            server_image: "server:1".to_owned(),
            server_args: Vec::new(),
            client_image: "client:1".to_owned(),
            client_command: vec!["get".to_owned()],
        }
    }

    #[test]
    fn a_client_asks_one_host_by_one_identity() {
        let pod = workload().client(&CHECKS[1], 2);
        assert_eq!(pod["metadata"]["name"], "routing-2");
        assert_eq!(pod["spec"]["serviceAccountName"], "friend");
        let command = json!(["get", "http://routed.meshy-verify:8080/"]);
        assert_eq!(pod["spec"]["containers"][0]["command"], command);
        let plain = workload().client(&CHECKS[2], 0);
        assert_eq!(
            plain["metadata"]["labels"]["sidecar.istio.io/inject"],
            "false"
        );
    }

    #[test]
    fn everything_is_in_the_scratch_namespace_of_the_revision() {
        let workload = workload();
        let namespace = workload.namespace_object();
        assert_eq!(namespace["metadata"]["labels"]["istio.io/rev"], "canary");
        let objects = workload.objects();
        assert!(
            objects
                .iter()
                .all(|o| o["metadata"]["namespace"] == "meshy-verify")
        );
        assert_eq!(objects.len(), 9);
    }

    #[test]
    fn what_may_be_refused_is_tried_after_the_same_was_allowed() {
        let answered: Vec<bool> = CHECKS.iter().map(|check| check.answered).collect();
        assert_eq!(answered, [true, true, false, false]);
    }
}
