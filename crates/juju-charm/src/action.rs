//! What an action answers.

use std::collections::BTreeMap;

use juju_hooks::{HookTools, MAX_ARGUMENT_BYTES, Result, check_results};

/// The answer to an action: results and progress lines, and why it failed if it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionOutcome {
    /// Results; dots in keys nest. Keys as [`juju_hooks::check_results`] wants them.
    pub results: BTreeMap<String, String>,
    /// Why it failed; `None` is success.
    pub failure: Option<String>,
    /// Lines shown before the results, in order.
    pub log: Vec<String>,
}

impl ActionOutcome {
    /// Success.
    pub fn ok(results: BTreeMap<String, String>) -> Self {
        Self {
            results,
            ..Self::default()
        }
    }

    /// Failure with a reason, and with results that explain it.
    pub fn failed(message: impl Into<String>, results: BTreeMap<String, String>) -> Self {
        Self {
            results,
            failure: Some(message.into()),
            log: Vec::new(),
        }
    }

    /// The same answer with one more progress line.
    #[must_use]
    pub fn with_log(mut self, line: impl Into<String>) -> Self {
        self.log.push(line.into());
        self
    }

    /// Hands the answer to Juju. Keys are checked before anything is sent; a value longer than a
    /// process argument is cut, with a note of its full size.
    pub(crate) fn commit(&self, tools: &dyn HookTools) -> Result<()> {
        check_results(&self.results).map_err(|error| juju_hooks::ToolError::Invalid {
            tool: "action-set",
            detail: error.to_string(),
        })?;
        for line in &self.log {
            tools.action_log(line)?;
        }
        if !self.results.is_empty() {
            let fitting = self
                .results
                .iter()
                .map(|(key, value)| (key.clone(), fit(key, value)));
            tools.action_set(&fitting.collect())?;
        }
        match &self.failure {
            Some(message) => tools.action_fail(message),
            None => Ok(()),
        }
    }
}

fn fit(key: &str, value: &str) -> String {
    let room = MAX_ARGUMENT_BYTES - key.len() - 1;
    if value.len() <= room {
        return value.to_owned();
    }
    let note = format!("\n[cut: {} bytes in full]", value.len());
    let end = value.floor_char_boundary(room - note.len());
    format!("{}{note}", &value[..end])
}
