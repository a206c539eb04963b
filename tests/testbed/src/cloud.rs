//! A real cluster under a simulated Juju model: what the Juju controller does on Kubernetes.
//!
//! A model is a namespace, an application a service account of its name. The objects carry the labels
//! `model.juju.is/name` and `app.kubernetes.io/managed-by=juju`, as Juju's do.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use http::{Method, Uri};
use juju_sim::cloud::{Cloud, CloudError, Credentials};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::api::{Api, wait};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// Longest wait for the end of a namespace: pods take their grace period.
const LIMIT: Duration = Duration::from_mins(3);
/// Longest wait for the API server to act on a right that was given or taken: it learns of it by a watch.
const RIGHTS: Duration = Duration::from_secs(30);
/// A token outlives any test.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;

/// The cluster of a kubeconfig that has all rights.
#[derive(Debug)]
pub struct RealCloud {
    api: Api,
    host: String,
    port: u16,
    /// Absent where the kubeconfig holds the certificate itself.
    ca_file: Option<PathBuf>,
}

impl RealCloud {
    /// Reads a kubeconfig; nothing is sent yet.
    pub fn connect(kubeconfig: &Path) -> Result<Self> {
        let config = Kubeconfig::read_from(kubeconfig)?;
        let context = config
            .contexts
            .iter()
            .find(|context| Some(&context.name) == config.current_context.as_ref())
            .and_then(|context| context.context.as_ref())
            .context("the kubeconfig has no current context")?;
        let cluster = config
            .clusters
            .iter()
            .find(|cluster| cluster.name == context.cluster)
            .and_then(|cluster| cluster.cluster.as_ref())
            .context("the kubeconfig has no cluster for its current context")?;
        let server = cluster
            .server
            .as_deref()
            .context("the kubeconfig names no API server")?;
        let uri: Uri = server
            .parse()
            .with_context(|| format!("API server {server}"))?;
        Ok(Self {
            api: Api::connect(kubeconfig)?,
            host: uri
                .host()
                .with_context(|| format!("no host in {server}"))?
                .to_owned(),
            port: uri.port_u16().unwrap_or(443),
            ca_file: cluster.certificate_authority.as_ref().map(PathBuf::from),
        })
    }

    fn ca(&self) -> Result<String> {
        if let Some(file) = &self.ca_file {
            return fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()));
        }
        let path = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt";
        let bundle = self.api.get(path)?;
        let ca = bundle["data"]["ca.crt"]
            .as_str()
            .context("kube-root-ca.crt has no ca.crt")?;
        Ok(ca.to_owned())
    }

    fn ensure(&self, app: &App<'_>, trusted: bool) -> Result<Credentials> {
        let namespace = app.model;
        self.api.apply(
            &format!("/api/v1/namespaces/{namespace}"),
            &json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": labels(namespace)},
            }),
        )?;
        for (path, object) in app.objects() {
            self.api.apply(&path, &object)?;
        }
        let pods = json!({"namespace": namespace, "resource": "pods", "verb": "list"});
        self.wait_until_allowed(app, &pods, true)?;
        self.trust(app, trusted)?;
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        });
        let path = format!("{}/token", app.account());
        let answer = self.api.call(&Method::POST, &path, Some(&request))?;
        let token = answer["status"]["token"]
            .as_str()
            .context("no token in the answer")?;
        Ok(Credentials {
            host: self.host.clone(),
            port: self.port,
            token: token.to_owned(),
            ca_crt: self.ca()?,
            namespace: namespace.to_owned(),
        })
    }

    /// Gives or takes the whole cluster, and returns when the API server's authorizer knows.
    fn trust(&self, app: &App<'_>, trusted: bool) -> Result<()> {
        if trusted {
            self.api.apply(&app.cluster_binding(), &app.trust())?;
        } else {
            self.api.delete(&app.cluster_binding())?;
        }
        let everything = json!({"group": "*", "resource": "*", "verb": "*"});
        self.wait_until_allowed(app, &everything, trusted)
    }

    fn wait_until_allowed(&self, app: &App<'_>, access: &Value, allowed: bool) -> Result<()> {
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = app.review(access);
        wait(&format!("the rights of {app}"), RIGHTS, || {
            let answer = self.api.call(&Method::POST, reviews, Some(&review))?;
            Ok((answer["status"]["allowed"] == allowed).then_some(()))
        })
    }

    fn forget(&self, app: &App<'_>) -> Result<()> {
        self.api.delete(&app.cluster_binding())?;
        for (path, _) in app.objects().into_iter().rev() {
            self.api.delete(&path)?;
        }
        Ok(())
    }

    fn destroy(&self, model: &str) -> Result<()> {
        let bindings = format!("{RBAC}/clusterrolebindings");
        self.api.delete(&format!(
            "{bindings}?labelSelector=model.juju.is/name%3D{model}"
        ))?;
        let namespace = format!("/api/v1/namespaces/{model}");
        self.api.delete(&namespace)?;
        wait(&format!("end of namespace {model}"), LIMIT, || {
            Ok(self.api.find(&namespace)?.is_none().then_some(()))
        })
    }
}

impl Cloud for RealCloud {
    fn provision(&self, model: &str, app: &str, trusted: bool) -> Result<Credentials, CloudError> {
        let app = App { model, name: app };
        self.ensure(&app, trusted)
            .map_err(|error| failed(format!("provision {app}"), error))
    }

    fn set_trust(&self, model: &str, app: &str, trusted: bool) -> Result<(), CloudError> {
        let app = App { model, name: app };
        self.trust(&app, trusted)
            .map_err(|error| failed(format!("set trust of {app}"), error))
    }

    fn remove(&self, model: &str, app: &str) -> Result<(), CloudError> {
        let app = App { model, name: app };
        self.forget(&app)
            .map_err(|error| failed(format!("remove {app}"), error))
    }

    fn destroy_model(&self, model: &str) -> Result<(), CloudError> {
        self.destroy(model)
            .map_err(|error| failed(format!("destroy namespace {model}"), error))
    }

    fn api_version(&self) -> Option<String> {
        let version = self.api.get("/version").ok()?;
        let version = version["gitVersion"].as_str()?;
        Some(version.trim_start_matches('v').to_owned())
    }
}

fn failed(action: String, error: anyhow::Error) -> CloudError {
    CloudError::Failed {
        action,
        source: error.into(),
    }
}

fn labels(model: &str) -> Value {
    json!({"app.kubernetes.io/managed-by": "juju", "model.juju.is/name": model})
}

/// One application of one model.
struct App<'a> {
    model: &'a str,
    name: &'a str,
}

impl std::fmt::Display for App<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "application {} in namespace {}", self.name, self.model)
    }
}

impl App<'_> {
    fn account(&self) -> String {
        format!(
            "/api/v1/namespaces/{}/serviceaccounts/{}",
            self.model, self.name
        )
    }

    fn cluster_binding(&self) -> String {
        format!("{RBAC}/clusterrolebindings/{}-{}", self.model, self.name)
    }

    fn subjects(&self) -> Value {
        json!([{"kind": "ServiceAccount", "name": self.name, "namespace": self.model}])
    }

    fn metadata(&self) -> Value {
        json!({"name": self.name, "namespace": self.model, "labels": labels(self.model)})
    }

    /// The service account with the few rights that Juju gives an application it does not trust.
    fn objects(&self) -> [(String, Value); 3] {
        let namespaced =
            |plural: &str| format!("{RBAC}/namespaces/{}/{plural}/{}", self.model, self.name);
        [
            (
                self.account(),
                json!({
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": self.metadata(),
                }),
            ),
            (
                namespaced("roles"),
                json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "Role",
                    "metadata": self.metadata(),
                    "rules": [
                        {
                            "apiGroups": [""],
                            "resources": ["pods", "services"],
                            "verbs": ["get", "list", "patch"],
                        },
                        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]},
                    ],
                }),
            ),
            (
                namespaced("rolebindings"),
                json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "RoleBinding",
                    "metadata": self.metadata(),
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "Role",
                        "name": self.name,
                    },
                    "subjects": self.subjects(),
                }),
            ),
        ]
    }

    /// The question whether the application may do this.
    fn review(&self, access: &Value) -> Value {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{}:{}", self.model, self.name),
                "groups": [
                    "system:serviceaccounts",
                    format!("system:serviceaccounts:{}", self.model),
                    "system:authenticated",
                ],
                "resourceAttributes": access,
            },
        })
    }

    fn trust(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {
                "name": format!("{}-{}", self.model, self.name),
                "labels": labels(self.model),
            },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": self.subjects(),
        })
    }
}
