//! A client of Pebble, the service manager in workload containers; feature `pebble`.
//!
//! Only what a charm with containers cannot do without: is it up, set a layer, replan, and how the
//! services are. All is HTTP over the container's Unix socket, in this thread; a request fails after
//! [`TIMEOUT`], what starts or stops services after [`CHANGE_TIMEOUT`]. Charms without containers
//! leave the feature off.

mod http;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::context::Context;
use serde::Deserialize;
use serde_json::{Value, json};

/// How long Pebble may take over one answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a change may take. Pebble gives a service 10 s to stop, and 1 s to stay up.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long one question for a change's end waits; it has to be answered within [`TIMEOUT`].
const WAIT: Duration = Duration::from_secs(5);

/// Why Pebble did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum PebbleError {
    /// It is not there (yet), or does not answer: usual until `pebble-ready`.
    #[error("pebble not reached at {path}", path = path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It answered with something else than its protocol has.
    #[error("unreadable answer of pebble: {0}")]
    Answer(String),
    /// It refused.
    #[error("pebble refuses: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Pebble's word for the kind of error, may be empty.
        kind: String,
        /// Pebble's words.
        message: String,
    },
    /// A change it began ended in an error, or not in time.
    #[error("pebble's change {id} failed: {message}")]
    Change {
        /// The change.
        id: String,
        /// Pebble's words.
        message: String,
    },
}

/// A service as Pebble sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServiceInfo {
    /// Its name.
    pub name: String,
    /// `enabled` or `disabled`.
    pub startup: String,
    /// `active`, `inactive`, `backoff` or `error`.
    pub current: String,
}

/// The Pebble of one container.
#[derive(Debug, Clone)]
pub struct Pebble {
    socket: PathBuf,
}

impl Pebble {
    /// The Pebble of a declared container, where Juju has its socket.
    pub fn of_container(context: &Context, container: &str) -> Self {
        let dir = context.containers_dir.join(container);
        Self::at(dir.join("pebble.socket"))
    }

    /// A Pebble at another socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
        }
    }

    /// Whether it answers. Not so in every hook before `pebble-ready`, `config-changed` included.
    pub fn can_connect(&self) -> bool {
        self.call("GET", "/v1/system-info", None).is_ok()
    }

    /// Adds a layer under `label`, or combines it with the one of that label. Nothing is started
    /// before [`Self::replan`].
    pub fn add_layer(&self, label: &str, layer: &Value) -> Result<(), PebbleError> {
        let body = json!({
            "action": "add", "combine": true, "label": label, "format": "yaml",
            // JSON is YAML.
            "layer": layer.to_string(),
        });
        self.call("POST", "/v1/layers", Some(&body)).map(drop)
    }

    /// Starts what is enabled, and restarts what the plan changed; waits until that is done.
    pub fn replan(&self) -> Result<(), PebbleError> {
        self.change(&json!({"action": "replan", "services": []}))
    }

    /// Restarts services; waits until that is done.
    pub fn restart(&self, services: &[&str]) -> Result<(), PebbleError> {
        self.change(&json!({"action": "restart", "services": services}))
    }

    /// Stops services; waits until that is done.
    pub fn stop(&self, services: &[&str]) -> Result<(), PebbleError> {
        self.change(&json!({"action": "stop", "services": services}))
    }

    /// Every service, by name.
    pub fn services(&self) -> Result<BTreeMap<String, ServiceInfo>, PebbleError> {
        let answer = self.call("GET", "/v1/services", None)?;
        let listed: Vec<ServiceInfo> = serde_json::from_value(answer.result)
            .map_err(|e| PebbleError::Answer(e.to_string()))?;
        let named = listed
            .into_iter()
            .map(|service| (service.name.clone(), service));
        Ok(named.collect())
    }

    fn change(&self, action: &Value) -> Result<(), PebbleError> {
        let id = self.call("POST", "/v1/services", Some(action))?.change;
        let ended = self.ended(&id)?;
        match ended["err"].as_str().filter(|text| !text.is_empty()) {
            Some(message) => Err(PebbleError::Change {
                id,
                message: message.to_owned(),
            }),
            None if ended["ready"] == true => Ok(()),
            None => Err(PebbleError::Change {
                id,
                message: "not done in time".to_owned(),
            }),
        }
    }

    /// The change once it is ready; null if it is not so in time.
    fn ended(&self, id: &str) -> Result<Value, PebbleError> {
        const GATEWAY_TIMEOUT: u16 = 504;
        let wait = format!("/v1/changes/{id}/wait?timeout={}s", WAIT.as_secs());
        for _ in 0..CHANGE_TIMEOUT.as_secs() / WAIT.as_secs() {
            match self.call("GET", &wait, None) {
                Ok(answer) => return Ok(answer.result),
                // How Pebble says that the change goes on.
                Err(PebbleError::Refused { status, .. }) if status == GATEWAY_TIMEOUT => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Value::Null)
    }

    fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Envelope, PebbleError> {
        let text = http::call(&self.socket, method, path, body).map_err(|e| self.lost(e))?;
        let envelope: Envelope =
            serde_json::from_slice(&text).map_err(|e| PebbleError::Answer(e.to_string()))?;
        if envelope.kind == "error" {
            let words = |key: &str| envelope.result[key].as_str().unwrap_or_default().to_owned();
            return Err(PebbleError::Refused {
                status: envelope.status_code,
                kind: words("kind"),
                message: words("message"),
            });
        }
        Ok(envelope)
    }

    fn lost(&self, source: io::Error) -> PebbleError {
        if source.kind() == io::ErrorKind::InvalidData {
            return PebbleError::Answer(source.to_string());
        }
        PebbleError::Unreachable {
            path: Path::new(&self.socket).to_path_buf(),
            source,
        }
    }
}

/// What every answer of Pebble is wrapped in.
#[derive(Debug, Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "status-code", default)]
    status_code: u16,
    #[serde(default)]
    result: Value,
    /// The change that was begun.
    #[serde(default)]
    change: String,
}

#[cfg(test)]
mod tests;
