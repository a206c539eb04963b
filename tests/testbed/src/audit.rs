//! What the API server was asked: its audit log, one JSON object per line.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::api::{Api, wait};

/// The audit log of one cluster.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in the log: everything answered before it is in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

/// One answered request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub uri: String,
    /// Who asked.
    pub user: User,
    /// The client's name for itself.
    #[serde(default)]
    pub user_agent: String,
    /// What was asked about; absent for paths that are no resources.
    #[serde(rename = "objectRef", default)]
    pub object: Object,
    /// The answer's status.
    #[serde(rename = "responseStatus", default)]
    pub response: Response,
}

/// Who asked.
#[derive(Debug, Clone, Deserialize)]
pub struct User {
    /// E.g. `system:serviceaccount:lab:meshy`.
    pub username: String,
}

/// What was asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object {
    /// Plural, e.g. `deployments`.
    pub resource: String,
    /// E.g. `status`, `proxy`, `token`.
    pub subresource: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// Empty for the core group.
    pub api_group: String,
}

/// The answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    /// HTTP status code.
    pub code: u16,
}

impl Entry {
    /// Whether the request asked for a change, dry runs included: they cost the server as much and
    /// fire the same webhooks.
    pub fn is_write(&self) -> bool {
        let reviews = self.object.api_group == "authorization.k8s.io"
            || self.object.api_group == "authentication.k8s.io";
        !reviews
            && ["create", "update", "patch", "delete", "deletecollection"]
                .contains(&self.verb.as_str())
    }

    /// Whether the request was a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.uri.contains("dryRun=")
    }

    /// Whether a service account asked.
    pub fn is_by(&self, namespace: &str, service_account: &str) -> bool {
        let name = self.user.username.strip_prefix("system:serviceaccount:");
        name.and_then(|name| name.split_once(':')) == Some((namespace, service_account))
    }
}

/// The requests among `entries` that asked for a change.
pub fn writes(entries: &[Entry]) -> Vec<&Entry> {
    entries.iter().filter(|entry| entry.is_write()).collect()
}

impl AuditLog {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The log itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Marks the present. A request of its own goes through the log first, so that no request
    /// answered before the call is still on its way there.
    pub fn mark(&self, api: &Api) -> Result<Mark> {
        let from = self.len()?;
        let probe = format!("/version?testbed-mark={from}");
        api.get(&probe)?;
        wait("mark in the audit log", Duration::from_secs(10), || {
            let found = self
                .since(Mark(from))?
                .iter()
                .any(|entry| entry.uri == probe);
            Ok(found.then_some(()))
        })?;
        Ok(Mark(self.len()?))
    }

    /// Everything since a mark.
    pub fn since(&self, mark: Mark) -> Result<Vec<Entry>> {
        let mut file = File::open(&self.path)
            .with_context(|| format!("cannot open {}", self.path.display()))?;
        file.seek(SeekFrom::Start(mark.0))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        parse(&text)
    }

    fn len(&self) -> Result<u64> {
        let metadata = std::fs::metadata(&self.path)
            .with_context(|| format!("no audit log {}", self.path.display()))?;
        Ok(metadata.len())
    }
}

/// Reads whole lines; a last line without an end is still being written.
fn parse(text: &str) -> Result<Vec<Entry>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("audit line {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str = r#"{"kind":"Event","verb":"patch","requestURI":"/api/v1/namespaces/lab/configmaps/a?fieldManager=x","user":{"username":"system:serviceaccount:lab:meshy"},"userAgent":"meshy","objectRef":{"resource":"configmaps","namespace":"lab","name":"a","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200}}"#;
    const READ: &str = r#"{"verb":"get","requestURI":"/version","user":{"username":"admin"}}"#;
    const REVIEW: &str = r#"{"verb":"create","requestURI":"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews","user":{"username":"admin"},"objectRef":{"resource":"selfsubjectaccessreviews","apiGroup":"authorization.k8s.io"}}"#;

    #[test]
    fn writes_are_told_from_reads_and_reviews() {
        let entries = parse(&format!("{WRITE}\n{READ}\n{REVIEW}\n")).unwrap();
        assert_eq!(entries.len(), 3);
        let writes = writes(&entries);
        assert_eq!(writes.len(), 1);
        assert_eq!(writes[0].object.name, "a");
        assert_eq!(writes[0].response.code, 200);
        assert!(writes[0].is_by("lab", "meshy") && !writes[0].is_by("lab", "other"));
    }

    #[test]
    fn a_line_still_being_written_is_left_for_later() {
        let text = format!("{WRITE}\n{}", &READ[..20]);
        assert_eq!(parse(&text).unwrap().len(), 1);
        assert_eq!(parse(&READ[..20]).unwrap().len(), 0);
    }
}
