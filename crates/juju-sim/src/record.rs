//! What is written down about every hook run, for tests and measurements.

use serde::Deserialize;
use serde::Serialize;

/// One hook-tool call. Secret contents are replaced, in arguments and on standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Tool name.
    pub tool: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Standard input, when the tool asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Exit code.
    pub code: u8,
}

/// One hook or task that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Counts up over the life of the model.
    pub seq: u64,
    /// Unit.
    pub unit: String,
    /// Hook name, action name or `juju-exec`.
    pub hook: String,
    /// `JUJU_RELATION_ID`, for relation hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_id: Option<String>,
    /// `JUJU_REMOTE_UNIT`, for relation hooks about a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_unit: Option<String>,
    /// Whether the run committed; for an action, whether it completed.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
    /// Wall time in microseconds; how finely the end is seen is about a millisecond.
    #[serde(default)]
    pub wall_us: u64,
    /// Processor time of the charm process's first thread in microseconds, hook tools and other
    /// children left out; 0 where the kernel does not tell.
    #[serde(default)]
    pub cpu_us: u64,
    /// Peak resident memory of the charm process in KiB; sampled, 0 when it was too short.
    pub peak_rss_kib: u64,
    /// Tool calls in order.
    pub calls: Vec<ToolCall>,
}

/// Replaces `k=v` contents of secret tools.
pub(crate) fn without_secrets(tool: &str, args: &[String]) -> Vec<String> {
    let secret = tool == "secret-add" || tool == "secret-set";
    args.iter()
        .map(|arg| match arg.split_once('=') {
            Some((key, _)) if secret && !arg.starts_with('-') && !key.ends_with("#file") => {
                format!("{key}=[redacted]")
            }
            _ => arg.clone(),
        })
        .collect()
}
