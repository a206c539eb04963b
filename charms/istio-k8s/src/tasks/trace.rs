//! The trace of a hook, sent to the related backend as OpenTelemetry's JSON over HTTP.
//!
//! One span per dispatch. It is sent best effort: a backend that does not answer costs two seconds
//! and a line in the log, never the hook.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use juju_charm::ModelView;
use relations::tracing::{Protocol, Receivers};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::Report;
use crate::inputs::CHARM_TRACING;

const PATIENCE: Duration = Duration::from_secs(2);

/// A span to send.
#[derive(Debug)]
pub struct Trace {
    /// Host and port, and path.
    target: (String, String),
    /// Attributes of the resource.
    attributes: Value,
    began: Instant,
    since_epoch: Duration,
}

/// The span of this dispatch, where a backend takes it.
pub(super) fn task(view: &ModelView) -> Option<Trace> {
    let relation = view.relations_of(CHARM_TRACING).next()?;
    let receivers = Receivers::decode(&relation.remote_app_data).ok()??;
    let target = address(receivers.url(Protocol::OtlpHttp)?)?;
    let since_epoch = view.now.duration_since(UNIX_EPOCH).ok()?;
    Some(Trace {
        target,
        attributes: resource(view),
        began: Instant::now(),
        since_epoch,
    })
}

/// `http://host:port/path` as host and port, and the path of traces. TLS is not spoken.
fn address(url: &str) -> Option<(String, String)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let path = path.trim_end_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    Some((host, format!("{slash}{path}/v1/traces")))
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn resource(view: &ModelView) -> Value {
    let context = &view.context;
    json!([
        attribute("service.name", &format!("{}-charm", context.app)),
        attribute("juju_model", context.model_name.as_str()),
        attribute("juju_model_uuid", context.model_uuid.as_ref()),
        attribute("juju_application", context.app.as_ref()),
        attribute("juju_unit", &context.unit.to_string()),
        attribute("juju_charm", "istio-k8s"),
        attribute("juju_event", &context.event.to_string()),
    ])
}

impl Trace {
    /// Sends it.
    pub(super) async fn run(self) -> Report {
        let host = self.target.0.clone();
        match timeout(PATIENCE, self.send()).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::info!("no trace sent to {host}: {why}"),
            Err(_) => tracing::info!("no trace sent to {host}: it does not answer"),
        }
        Report::default()
    }

    fn body(&self) -> String {
        let nanos = |at: Duration| at.as_nanos().to_string();
        let end = self.since_epoch + self.began.elapsed();
        let attributes = &self.attributes;
        let seed = format!("{attributes}{}", nanos(self.since_epoch));
        let id = Sha256::digest(seed.as_bytes());
        let hex = id.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let name = attributes[6]["value"]["stringValue"]
            .as_str()
            .unwrap_or("hook");
        json!({"resourceSpans": [{
            "resource": {"attributes": attributes},
            "scopeSpans": [{"scope": {"name": "istio-k8s"}, "spans": [{
                "traceId": &hex[..32], "spanId": &hex[32..48], "name": name, "kind": 1,
                "startTimeUnixNano": nanos(self.since_epoch), "endTimeUnixNano": nanos(end),
            }]}],
        }]})
        .to_string()
    }

    async fn send(self) -> std::io::Result<()> {
        let body = self.body();
        let (host, path) = &self.target;
        let mut stream = TcpStream::connect(host.as_str()).await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        let status = String::from_utf8_lossy(&answer[9..]).into_owned();
        if status.starts_with('2') {
            return Ok(());
        }
        Err(std::io::Error::other(format!("it answers {status}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_to_the_path_of_the_protocol() {
        let check = |url: &str, expect: Option<(&str, &str)>| {
            let found = address(url);
            let found = found
                .as_ref()
                .map(|(host, path)| (host.as_str(), path.as_str()));
            assert_eq!(found, expect, "{url}");
        };
        check(
            "http://tempo.lab:4318",
            Some(("tempo.lab:4318", "/v1/traces")),
        );
        check(
            "http://tempo.lab/otlp/",
            Some(("tempo.lab:80", "/otlp/v1/traces")),
        );
        check("https://tempo.lab:4318", None);
    }
}
