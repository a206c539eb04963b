//! Unit and application statuses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A status a charm can set. (`error`, `unknown` and `terminated` are Juju's own.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Offers its service.
    Active,
    /// Waits for something outside, which will come without a person's doing.
    Waiting,
    /// Needs a person.
    Blocked,
    /// Busy with its own work.
    Maintenance,
}

impl Status {
    /// The word hook tools use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Maintenance => "maintenance",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A status with its message, as `status-set` takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusMessage {
    /// The status word.
    pub status: Status,
    /// What `juju status` shows beside it; may be empty.
    pub message: String,
}

impl StatusMessage {
    /// Any status with a message.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// `active` with a message (often empty).
    pub fn active(message: impl Into<String>) -> Self {
        Self::new(Status::Active, message)
    }

    /// `waiting` with a message.
    pub fn waiting(message: impl Into<String>) -> Self {
        Self::new(Status::Waiting, message)
    }

    /// `blocked` with a message.
    pub fn blocked(message: impl Into<String>) -> Self {
        Self::new(Status::Blocked, message)
    }

    /// `maintenance` with a message.
    pub fn maintenance(message: impl Into<String>) -> Self {
        Self::new(Status::Maintenance, message)
    }
}

impl fmt::Display for StatusMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "{}", self.status),
            message => write!(f, "{}: {message}", self.status),
        }
    }
}

/// A status as Juju reports it, which may be one that no charm can set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedStatus {
    /// The status word, e.g. `active`, `unknown`, `error`.
    pub status: String,
    /// The message beside it.
    #[serde(default)]
    pub message: String,
}

impl From<StatusMessage> for ReportedStatus {
    fn from(set: StatusMessage) -> Self {
        Self {
            status: set.status.as_str().to_owned(),
            message: set.message,
        }
    }
}
