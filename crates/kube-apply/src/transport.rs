//! One request to the API server: sending, patience, and what a refusal means.

use std::fmt::Write as _;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use istio_api::ObjectRef;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

use crate::error::{Error, Result};

/// How often a request is sent when the server says that it cannot now.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// A request. All our requests may be repeated: reads, applies, and deletes of one uid.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// `list`, `patch`: for messages.
    pub(crate) verb: &'static str,
    /// `deployments.apps`: for messages.
    pub(crate) resource: String,
    /// The object that is written or read, if it is one.
    pub(crate) object: Option<&'a ObjectRef>,
}

pub(crate) const JSON: &str = "application/json";

impl Call<'_> {
    pub(crate) fn get(path: String, verb: &'static str, resource: String) -> Self {
        Self {
            method: Method::GET,
            path,
            accept: JSON,
            content_type: JSON,
            body: Vec::new(),
            verb,
            resource,
            object: None,
        }
    }
}

/// Sends a call and reads the whole answer, whatever its status.
pub(crate) async fn send(client: &Client, call: &Call<'_>) -> Result<(StatusCode, Vec<u8>)> {
    let request = Request::builder()
        .method(call.method.clone())
        .uri(&call.path)
        .header(http::header::ACCEPT, call.accept)
        .header(http::header::CONTENT_TYPE, call.content_type)
        .body(Body::from(call.body.clone()))
        .map_err(|error| Error::Config {
            reason: format!("bad path {}: {error}", call.path),
        })?;
    let answer = client.send(request).await.map_err(unreachable)?;
    let status = answer.status();
    let body = answer
        .into_body()
        .collect_bytes()
        .await
        .map_err(unreachable)?;
    // A hook reads some forty lists and writes next to nothing: only writes are worth a log line.
    if call.method == Method::GET {
        tracing::trace!(method = %call.method, path = %call.path, status = status.as_u16(), "API");
    } else {
        tracing::debug!(method = %call.method, path = %call.path, status = status.as_u16(), "API");
    }
    Ok((status, body.to_vec()))
}

/// Sends a call, a few times if the server is busy, and parses the answer. A refusal is an error.
pub(crate) async fn json(client: &Client, call: &Call<'_>) -> Result<Value, Refusal> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        let (status, body) = send(client, call).await?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|source| {
                let what = format!("answer to {} {}", call.method, call.path);
                Refusal::Error(Error::Malformed {
                    what,
                    source: Some(source),
                })
            });
        }
        if !is_busy(status.as_u16()) || attempt == ATTEMPTS {
            return Err(refusal(call, status.as_u16(), &body));
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
        attempt += 1;
    }
}

/// Why a call did not succeed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// 404 of a single object or of a whole kind.
    Absent(Error),
    /// 409 of an apply: `(manager, field)` pairs.
    Managers(Vec<(String, String)>),
    /// Anything else.
    Error(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Absent(error) | Refusal::Error(error) => error,
            Refusal::Managers(managers) => Self::Server {
                code: 409,
                action: "apply".to_owned(),
                message: format!("{managers:?}"),
            },
        }
    }
}

fn is_busy(code: u16) -> bool {
    matches!(code, 429 | 503 | 504)
}

/// Everything below HTTP: no route, refused, timed out, TLS, expired credentials plugin.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other errors have one meaning here"
)]
fn unreachable(error: kube::Error) -> Error {
    match error {
        kube::Error::Auth(error) => Error::Config {
            reason: error.to_string(),
        },
        error => Error::Unreachable {
            source: Box::new(error),
        },
    }
}

pub(crate) fn refusal(call: &Call<'_>, code: u16, body: &[u8]) -> Refusal {
    let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
        code,
        message: String::from_utf8_lossy(body).chars().take(200).collect(),
        ..Status::default()
    });
    let message = status.message.clone();
    let causes = status
        .details
        .as_ref()
        .map_or(&[][..], |details| &details.causes);
    if is_busy(code) {
        return Refusal::Error(Error::Unreachable {
            source: format!("{code} {message}").into(),
        });
    }
    if code == 404 {
        return Refusal::Absent(Error::NotFound {
            what: not_found(call, &status),
        });
    }
    let managers: Vec<(String, String)> = causes
        .iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| (manager_of(&cause.message), cause.field.clone()))
        .collect();
    if code == 409 && !managers.is_empty() {
        return Refusal::Managers(managers);
    }
    let Some(object) = call.object else {
        return Refusal::Error(if matches!(code, 401 | 403) {
            forbidden(call, message)
        } else {
            server(call, code, message)
        });
    };
    let object = Box::new(object.clone());
    let terminating = message.contains("is being terminated")
        || message.contains("object is being deleted")
        || causes
            .iter()
            .any(|cause| cause.reason == "NamespaceTerminating");
    let admission = message.contains("admission webhook")
        || message.contains("ValidatingAdmissionPolicy")
        || message.contains("denied request");
    let shown = if object.kind == "Secret" && object.group.is_empty() {
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        format!("{} [redacted]", fields.join(", "))
            .trim_start()
            .to_owned()
    } else {
        message.clone()
    };
    Refusal::Error(match code {
        403 | 409 if terminating => Error::Terminating { object },
        400..=499 if admission => Error::Denied {
            object,
            message: shown,
        },
        401 | 403 => forbidden(call, message),
        // A built-in kind's unknown field is found before validation, and is a 500.
        500 if message.starts_with("failed to create typed patch object") => Error::Invalid {
            object,
            message: shown,
        },
        400 | 413 | 415 | 422 => Error::Invalid {
            object,
            message: shown,
        },
        409 => Error::Raced { object },
        500 if message.contains("failed calling webhook") => Error::WebhookUnavailable {
            object,
            message: shown,
        },
        _ => server(call, code, shown),
    })
}

fn forbidden(call: &Call<'_>, message: String) -> Error {
    Error::Forbidden {
        verb: call.verb.to_owned(),
        resource: call.resource.clone(),
        message,
    }
}

fn server(call: &Call<'_>, code: u16, message: String) -> Error {
    let path = call.path.split('?').next().unwrap_or_default();
    Error::Server {
        code,
        action: format!("{} {path}", call.method),
        message,
    }
}

/// What is missing: the server names the namespace when that is why an object cannot be made.
fn not_found(call: &Call<'_>, status: &Status) -> String {
    if let Some(details) = &status.details
        && details.kind == "namespaces"
    {
        return format!("namespace {}", details.name);
    }
    match call.object {
        Some(object) => object.to_string(),
        None => call.path.split('?').next().unwrap_or_default().to_owned(),
    }
}

/// The manager in `conflict with "pilot-discovery" using admissionregistration.k8s.io/v1`.
fn manager_of(message: &str) -> String {
    message.split('"').nth(1).unwrap_or(message).to_owned()
}

/// Percent-encodes a query value.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(code: u16, kind: &str, status: &Value, expect: &str) {
        let object = ObjectRef::namespaced("v1", kind, "lab", "meshy");
        let call = Call {
            verb: "patch",
            method: Method::PATCH,
            object: Some(&object),
            ..Call::get(
                "/api/v1/x?force=true".to_owned(),
                "patch",
                "things".to_owned(),
            )
        };
        let refusal = refusal(&call, code, status.to_string().as_bytes());
        assert_eq!(Error::from(refusal).to_string(), expect);
    }

    #[test]
    fn a_refusal_has_one_meaning() {
        let message = |text: &str| json!({"message": text});
        check(
            401,
            "Service",
            &message("Unauthorized"),
            "not allowed to patch things",
        );
        check(
            403,
            "Service",
            &message("nope"),
            "not allowed to patch things",
        );
        check(
            404,
            "Service",
            &message("gone"),
            "Service lab/meshy not found",
        );
        check(
            404,
            "Service",
            &json!({"message": "namespaces \"lab\" not found", "details": {"kind": "namespaces", "name": "lab"}}),
            "namespace lab not found",
        );
        check(
            403,
            "Service",
            &message(
                "unable to create new content in namespace lab because it is being terminated",
            ),
            "Service lab/meshy: being deleted",
        );
        check(
            400,
            "Service",
            &message("admission webhook \"v.example.org\" denied the request: no"),
            "Service lab/meshy was refused by admission: admission webhook \"v.example.org\" denied the request: no",
        );
        check(
            500,
            "Service",
            &message("Internal error occurred: failed calling webhook \"v\": refused"),
            "a webhook that must admit Service lab/meshy does not answer",
        );
        check(
            400,
            "Service",
            &message("unknown field \"spec.x\""),
            "Service lab/meshy is invalid: unknown field \"spec.x\"",
        );
        check(
            500,
            "Service",
            &message("failed to create typed patch object: .spec.x: field not declared in schema"),
            "Service lab/meshy is invalid: failed to create typed patch object: .spec.x: field not declared in schema",
        );
        check(
            409,
            "Service",
            &message("modified"),
            "Service lab/meshy changed while it was being written",
        );
        check(
            503,
            "Service",
            &message("starting"),
            "API server not reachable",
        );
        check(
            500,
            "Service",
            &message("etcd"),
            "API server answered 500 to PATCH /api/v1/x: etcd",
        );
    }

    #[test]
    fn secret_values_do_not_reach_messages() {
        check(
            422,
            "Secret",
            &json!({
                "message": "Secret is invalid: data[key]: Invalid value: \"hush\"",
                "details": {"causes": [{"reason": "FieldValueInvalid", "field": "data[key]", "message": "hush"}]},
            }),
            "Secret lab/meshy is invalid: data[key] [redacted]",
        );
    }

    #[test]
    fn field_managers_are_read_from_a_conflict() {
        let status = json!({"message": "conflict", "details": {"causes": [{
            "reason": "FieldManagerConflict", "field": ".webhooks[name=\"w\"].failurePolicy",
            "message": "conflict with \"pilot-discovery\" using admissionregistration.k8s.io/v1",
        }]}});
        let call = Call::get("/x".to_owned(), "patch", "things".to_owned());
        let Refusal::Managers(managers) = refusal(&call, 409, status.to_string().as_bytes()) else {
            panic!("not a conflict of managers");
        };
        let expect = (
            "pilot-discovery".to_owned(),
            ".webhooks[name=\"w\"].failurePolicy".to_owned(),
        );
        assert_eq!(managers, [expect]);
    }

    #[test]
    fn query_values_are_encoded() {
        assert_eq!(encode("a/b=c, d~e"), "a%2Fb%3Dc%2C%20d~e");
    }
}
