//! What can go wrong when talking to the API server.

use istio_api::ObjectRef;

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed action. Messages never contain the content of Secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No usable credentials or address for the API server.
    #[error("no usable cluster configuration: {reason}")]
    Config {
        /// What is missing or unreadable.
        reason: String,
    },
    /// The API server did not answer, or answered that it cannot now (429, 503, 504).
    #[error("API server not reachable")]
    Unreachable {
        /// What the connection said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// 401 or 403: the `ServiceAccount` may not do this.
    #[error("not allowed to {verb} {resource}")]
    Forbidden {
        /// `get`, `list`, `patch`, `delete`.
        verb: String,
        /// `deployments.apps`.
        resource: String,
        /// The server's words.
        message: String,
    },
    /// The object, its namespace or its kind does not exist.
    #[error("{what} not found")]
    NotFound {
        /// An object, or the path that was read.
        what: String,
    },
    /// The cluster does not serve the kind (its CRD is not installed).
    #[error("{object}: the cluster does not serve {api_version}")]
    NotServed {
        /// The object that could not be applied.
        object: Box<ObjectRef>,
        /// `group/version` of the object.
        api_version: String,
    },
    /// The object cannot be written because it or its namespace is being deleted.
    #[error("{object}: being deleted")]
    Terminating {
        /// The object that could not be applied.
        object: Box<ObjectRef>,
    },
    /// The server's validation refused the object (unknown field, bad value, immutable field).
    #[error("{object} is invalid: {message}")]
    Invalid {
        /// The object that was refused.
        object: Box<ObjectRef>,
        /// The server's words; for Secrets only the field names.
        message: String,
    },
    /// An admission webhook or policy refused the object.
    #[error("{object} was refused by admission: {message}")]
    Denied {
        /// The object that was refused.
        object: Box<ObjectRef>,
        /// The server's words.
        message: String,
    },
    /// An admission webhook that must be asked does not answer.
    #[error("a webhook that must admit {object} does not answer")]
    WebhookUnavailable {
        /// The object that could not be written.
        object: Box<ObjectRef>,
        /// The server's words; they name the webhook.
        message: String,
    },
    /// Somebody changed the object between our read and our write.
    #[error("{object} changed while it was being written")]
    Raced {
        /// The object.
        object: Box<ObjectRef>,
    },
    /// Any other answer of the API server.
    #[error("API server answered {code} to {action}: {message}")]
    Server {
        /// HTTP status.
        code: u16,
        /// `PATCH /api/v1/…`.
        action: String,
        /// The server's words.
        message: String,
    },
    /// JSON that is not what it should be.
    #[error("malformed {what}")]
    Malformed {
        /// What was read.
        what: String,
        /// Where it went wrong.
        #[source]
        source: Option<serde_json::Error>,
    },
}

impl Error {
    /// The object that could not be written, where the failure is about one.
    pub fn object(&self) -> Option<&ObjectRef> {
        match self {
            Self::NotServed { object, .. }
            | Self::Terminating { object }
            | Self::Invalid { object, .. }
            | Self::Denied { object, .. }
            | Self::WebhookUnavailable { object, .. }
            | Self::Raced { object } => Some(object),
            Self::Config { .. }
            | Self::Unreachable { .. }
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Server { .. }
            | Self::Malformed { .. } => None,
        }
    }

    /// Whether waiting may help: the server is away or something is being deleted.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Terminating { .. } | Self::Raced { .. }
        )
    }
}
