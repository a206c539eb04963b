//! What hook tools print, read.
//!
//! Apart from the processes, so that it can be tried with any text: nothing an agent prints makes
//! a reader panic.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::databag::Databag;
use crate::error::{Result, ToolError};
use crate::ids::{RelationId, UnitName};
use crate::tools::GoalState;

/// `relation-ids`: `["db:3"]`, ascending here.
pub fn relation_ids(text: &str) -> Result<Vec<RelationId>> {
    listed("relation-ids", text)
}

/// `relation-list`: `["web/0"]`, ascending here.
pub fn units(text: &str) -> Result<Vec<UnitName>> {
    listed("relation-list", text)
}

/// `relation-get` of a whole databag.
pub fn databag(text: &str) -> Result<Databag> {
    Ok(read::<Option<Databag>>("relation-get", text)?.unwrap_or_default())
}

/// `config-get`; options that are not set are left out.
pub fn config(text: &str) -> Result<Map<String, Value>> {
    let mut config = read::<Option<Map<String, Value>>>("config-get", text)?.unwrap_or_default();
    config.retain(|_, value| !value.is_null());
    Ok(config)
}

/// `goal-state`.
pub fn goal(text: &str) -> Result<GoalState> {
    Ok(read::<Option<GoalState>>("goal-state", text)?.unwrap_or_default())
}

/// A list of names, ascending.
fn listed<T>(tool: &'static str, text: &str) -> Result<Vec<T>>
where
    T: std::str::FromStr + Ord,
    T::Err: std::fmt::Display,
{
    let texts: Option<Vec<String>> = read(tool, text)?;
    let mut names = Vec::new();
    for text in texts.unwrap_or_default() {
        names.push(parse(tool, &text)?);
    }
    names.sort_unstable();
    Ok(names)
}

/// An answer as JSON; no answer at all counts as `null`.
pub fn read<T: DeserializeOwned>(tool: &'static str, text: &str) -> Result<T> {
    let text = if text.trim().is_empty() { "null" } else { text };
    serde_json::from_str(text).map_err(|source| ToolError::Answer { tool, source })
}

/// One name in an answer.
pub(crate) fn parse<T>(tool: &'static str, text: &str) -> Result<T>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| ToolError::Answer {
        tool,
        source: serde::de::Error::custom(error),
    })
}
