//! How a hook tool fails. Juju answers with text only; the classes are read from it.

/// The result of a hook tool.
pub type Result<T, E = ToolError> = std::result::Result<T, E>;

/// A hook tool that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Juju refuses: not the leader, or not this unit's data.
    #[error("{tool}: access refused: {detail}")]
    Access {
        /// The hook tool.
        tool: &'static str,
        /// What it wrote.
        detail: String,
    },
    /// The relation, secret, binding or resource does not exist (any more).
    #[error("{tool}: not found: {detail}")]
    NotFound {
        /// The hook tool.
        tool: &'static str,
        /// What it wrote.
        detail: String,
    },
    /// The call was wrong: a bad flag or argument, found by the tool or already here.
    #[error("{tool}: invalid call: {detail}")]
    Invalid {
        /// The hook tool.
        tool: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The agent was not reached: no tool on `PATH`, a stale context, a lost socket, a signal.
    #[error("{tool}: agent not reached: {detail}")]
    Transport {
        /// The hook tool.
        tool: &'static str,
        /// What happened.
        detail: String,
        /// The operating system's word on it.
        #[source]
        source: Option<std::io::Error>,
    },
    /// An argument no process can be given.
    #[error("{tool}: argument of {bytes} bytes is too long")]
    TooLarge {
        /// The hook tool.
        tool: &'static str,
        /// The argument's size.
        bytes: usize,
    },
    /// The tool answered with something that cannot be read.
    #[error("{tool}: unreadable answer")]
    Answer {
        /// The hook tool.
        tool: &'static str,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// Any other failure.
    #[error("{tool}: exit code {code}: {detail}")]
    Failed {
        /// The hook tool.
        tool: &'static str,
        /// Its exit code.
        code: i32,
        /// What it wrote.
        detail: String,
    },
}

const ACCESS: [&str; 6] = [
    "permission denied",
    "access denied",
    "unauthorized",
    "not the leader",
    "cannot write relation settings",
    "is not leader",
];
const NOT_FOUND: [&str; 2] = ["not found", "no network config found"];
const TRANSPORT: [&str; 5] = [
    "JUJU_CONTEXT_ID not set",
    "JUJU_AGENT_SOCKET",
    "expected context id",
    "connection is shut down",
    "dial unix",
];

impl ToolError {
    /// The class of a failure by its text and exit code. Refusals come before everything else,
    /// since their texts also mention what was not found.
    pub fn classify(tool: &'static str, code: i32, stderr: &str) -> Self {
        let text = stderr.trim();
        let detail = text.strip_prefix("ERROR ").unwrap_or(text).to_owned();
        let has = |phrases: &[&str]| phrases.iter().any(|phrase| detail.contains(phrase));
        if has(&TRANSPORT) {
            Self::Transport {
                tool,
                detail,
                source: None,
            }
        } else if has(&ACCESS) {
            Self::Access { tool, detail }
        } else if has(&NOT_FOUND) {
            Self::NotFound { tool, detail }
        } else if code == 2 {
            Self::Invalid { tool, detail }
        } else {
            Self::Failed { tool, code, detail }
        }
    }

    /// Whether Juju refused.
    pub fn is_access(&self) -> bool {
        matches!(self, Self::Access { .. })
    }

    /// Whether the thing asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_classed_by_their_text_and_exit_code() {
        let check = |code: i32, stderr: &str, expect: &str| {
            let error = ToolError::classify("relation-get", code, stderr);
            let debug = format!("{error:?}");
            assert_eq!(debug.split([' ', '{']).next(), Some(expect), "{stderr}");
        };
        check(1, "ERROR permission denied\n", "Access");
        check(
            1,
            "ERROR permission denied (unauthorized access)\n",
            "Access",
        );
        check(
            1,
            "ERROR cannot read relation application settings: permission denied (unauthorized access)",
            "Access",
        );
        check(1, "ERROR cannot write relation settings", "Access");
        check(
            1,
            "ERROR finding application status: this unit is not the leader",
            "Access",
        );
        check(
            2,
            r#"ERROR invalid value "9" for option -r: relation not found"#,
            "NotFound",
        );
        check(1, r#"ERROR secret "x" not found"#, "NotFound");
        check(
            1,
            r#"ERROR no network config found for binding "x""#,
            "NotFound",
        );
        check(2, "ERROR option provided but not defined: --foo", "Invalid");
        check(2, "ERROR no unit or application specified", "Invalid");
        check(1, "ERROR JUJU_CONTEXT_ID not set", "Transport");
        check(
            1,
            r#"ERROR bad request: expected context id "a", got "b""#,
            "Transport",
        );
        check(1, "ERROR could not download resource: boom", "Failed");
        check(3, "", "Failed");
    }
}
