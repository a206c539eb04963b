//! What a model needs from the Kubernetes cluster under it.
//!
//! The simulator itself knows no Kubernetes client: whoever has a cluster implements [`Cloud`] and
//! hands it to [`crate::Model::open`]. Every call must be idempotent, because a `juju` command that
//! is killed is simply run again, and because each `juju` process asks anew.

use std::error::Error;
use std::fmt;

/// What a charm pod finds under `/var/run/secrets/kubernetes.io/serviceaccount` and in
/// `KUBERNETES_SERVICE_HOST`/`_PORT`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Host name or address of the API server, without scheme.
    pub host: String,
    /// TCP port of the API server.
    pub port: u16,
    /// Bearer token of the application's `ServiceAccount`.
    pub token: String,
    /// PEM bundle that signs the API server's certificate.
    pub ca_crt: String,
    /// Namespace of the model.
    pub namespace: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("namespace", &self.namespace)
            .field("token", &"[redacted]")
            .finish_non_exhaustive()
    }
}

/// Why a cluster call failed.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// The model has no cluster: charms run without Kubernetes credentials.
    #[error("the model has no Kubernetes cluster")]
    NoCluster,
    /// A call to the cluster failed.
    #[error("cannot {action}")]
    Failed {
        /// What was attempted, e.g. `create service account meshy in namespace lab`.
        action: String,
        /// The client's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// The cluster under a model: namespaces and service accounts, nothing a charm does itself.
pub trait Cloud: Send + Sync {
    /// Ensures namespace `model`, the `ServiceAccount` `app` in it and its rights, and returns
    /// credentials valid for at least one hour.
    ///
    /// Without trust an application has rights inside its namespace only; with it, on the whole
    /// cluster.
    ///
    /// # Errors
    /// [`CloudError::NoCluster`] makes the charm run without credentials; anything else fails the
    /// hook before it starts.
    fn provision(&self, model: &str, app: &str, trusted: bool) -> Result<Credentials, CloudError>;

    /// Grants or withdraws the cluster-wide rights of an application (`juju trust`).
    fn set_trust(&self, model: &str, app: &str, trusted: bool) -> Result<(), CloudError>;

    /// Removes what [`Cloud::provision`] made for one application, once its last unit is gone.
    /// What the charm itself created stays.
    fn remove(&self, model: &str, app: &str) -> Result<(), CloudError>;

    /// Removes the model's namespace and everything in it.
    fn destroy_model(&self, model: &str) -> Result<(), CloudError>;

    /// The API server's version as in `CLOUD_API_VERSION`, e.g. `1.33.2`.
    fn api_version(&self) -> Option<String>;

    /// Whether every hook must ask for credentials again (short-lived or revocable tokens). When
    /// false they are asked for once per application and process, and after a change of trust.
    fn rotates_tokens(&self) -> bool {
        false
    }
}

/// A model without Kubernetes: charms get no credentials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoCloud;

impl Cloud for NoCloud {
    fn provision(&self, _: &str, _: &str, _: bool) -> Result<Credentials, CloudError> {
        Err(CloudError::NoCluster)
    }

    fn set_trust(&self, _: &str, _: &str, _: bool) -> Result<(), CloudError> {
        Ok(())
    }

    fn remove(&self, _: &str, _: &str) -> Result<(), CloudError> {
        Ok(())
    }

    fn destroy_model(&self, _: &str) -> Result<(), CloudError> {
        Ok(())
    }

    fn api_version(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_credentials_has_no_token() {
        let credentials = Credentials {
            host: "127.0.0.1".into(),
            port: 6443,
            token: "s3cr3t".into(),
            ca_crt: "-----BEGIN".into(),
            namespace: "lab".into(),
        };
        let text = format!("{credentials:?}");
        assert!(
            text.contains("127.0.0.1") && !text.contains("s3cr3t"),
            "{text}"
        );
    }
}
