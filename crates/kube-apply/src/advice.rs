//! What a failure means for who waits for the result: one wording for all charms.

use crate::error::Error;

/// A failure in words for a status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What is the matter.
    pub message: String,
    /// Who has to act.
    pub remedy: Remedy,
}

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nobody: it is tried again.
    Wait,
    /// Somebody: it does not mend itself.
    Act,
    /// Somebody who may give permissions.
    Permit,
}

impl Error {
    /// What to tell and whom; `None` if it is a bug.
    pub fn advice(&self) -> Option<Advice> {
        let (remedy, message) = match self {
            Self::Unreachable { .. } => (
                Remedy::Wait,
                "Kubernetes API server not reachable".to_owned(),
            ),
            Self::Terminating { object } => (
                Remedy::Wait,
                format!("{object} is being deleted, waiting for its end"),
            ),
            Self::Raced { object } => (Remedy::Wait, format!("{object} changed meanwhile")),
            Self::NotFound { what } => (Remedy::Wait, format!("{what} is gone meanwhile")),
            Self::WebhookUnavailable { object, message } => (
                Remedy::Wait,
                format!("the webhook that admits {object} does not answer: {message}"),
            ),
            Self::Server { code, action, .. } => (
                Remedy::Wait,
                format!("Kubernetes API server answers {code} to {action}"),
            ),
            Self::Forbidden { verb, resource, .. } => (
                Remedy::Permit,
                format!("not permitted to {verb} {resource}"),
            ),
            Self::Invalid { object, message } => (
                Remedy::Act,
                format!("the cluster refuses {object}: {message}"),
            ),
            Self::Denied { object, message } => (
                Remedy::Act,
                format!("admission refuses {object}: {message}"),
            ),
            Self::NotServed {
                object,
                api_version,
            } => (
                Remedy::Act,
                format!("{object}: the cluster does not serve {api_version}"),
            ),
            Self::Config { reason } => (Remedy::Act, format!("no cluster: {reason}")),
            Self::Malformed { .. } => return None,
        };
        Some(Advice { message, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_who_has_to_act() {
        let forbidden = Error::Forbidden {
            verb: "list".to_owned(),
            resource: "pods".to_owned(),
            message: String::new(),
        };
        let expect = Advice {
            message: "not permitted to list pods".to_owned(),
            remedy: Remedy::Permit,
        };
        assert_eq!(forbidden.advice(), Some(expect));
        let bug = Error::Malformed {
            what: "x".to_owned(),
            source: None,
        };
        assert_eq!(bug.advice(), None);
    }
}
