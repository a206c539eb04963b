//! Where the API server is and who we are to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use kube::config::{Config, Kubeconfig};

use crate::error::{Error, Result};

const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How to reach an API server. Built from what the hook context holds: nothing here reads the
/// environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connect {
    /// As the `ServiceAccount` of this pod.
    InCluster {
        /// `KUBERNETES_SERVICE_HOST`.
        host: String,
        /// `KUBERNETES_SERVICE_PORT`.
        port: u16,
        /// The folder with `token` and `ca.crt`.
        account: PathBuf,
    },
    /// As the current context of a kubeconfig file says.
    Kubeconfig(PathBuf),
}

impl Connect {
    /// As the `ServiceAccount` whose files Kubernetes mounts into each pod.
    pub fn in_cluster(host: &str, port: u16) -> Self {
        Self::InCluster {
            host: host.to_owned(),
            port,
            account: PathBuf::from(SERVICE_ACCOUNT),
        }
    }

    pub(crate) fn client(&self) -> Result<Client> {
        let mut config = match self {
            Self::InCluster {
                host,
                port,
                account,
            } => in_cluster(host, *port, account)?,
            Self::Kubeconfig(path) => Kubeconfig::read_from(path)
                .and_then(Config::try_from)
                .map_err(|error| Error::Config {
                    reason: error.to_string(),
                })?,
        };
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(ANSWER_TIMEOUT);
        config.write_timeout = Some(ANSWER_TIMEOUT);
        // Otherwise the time a pooled connection sat idle counts as waiting for an answer.
        config.reset_reader_on_write = true;
        // Its delays grow to minutes; `transport` retries within a hook's patience.
        config.default_retry = false;
        Client::try_from(config).map_err(|error| Error::Config {
            reason: error.to_string(),
        })
    }
}

fn in_cluster(host: &str, port: u16, account: &Path) -> Result<Config> {
    let token = readable(account.join("token"))?;
    let authority = readable(account.join("ca.crt"))?;
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let url = format!("https://{host}:{port}")
        .parse()
        .map_err(|_| Error::Config {
            reason: format!("bad API server address {host}:{port}"),
        })?;
    let mut config = Config::new(url);
    // Files, not their content: both are rotated while a pod lives.
    config.root_cert_file = Some(authority);
    config.auth_info.token_file = Some(token.to_string_lossy().into_owned());
    Ok(config)
}

fn readable(path: PathBuf) -> Result<PathBuf> {
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(Error::Config {
            reason: format!("{}: {error}", path.display()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_credentials_are_named() {
        let account = PathBuf::from("absent");
        let connect = Connect::InCluster {
            host: "10.0.0.1".to_owned(),
            port: 443,
            account,
        };
        let error = connect.client().err().expect("refused").to_string();
        assert!(
            error.starts_with("no usable cluster configuration: absent/token: "),
            "{error}"
        );
        let error = Connect::Kubeconfig(PathBuf::from("absent"))
            .client()
            .err()
            .expect("refused");
        assert!(matches!(error, Error::Config { .. }));
    }
}
