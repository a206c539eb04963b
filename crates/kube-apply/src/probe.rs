//! Reading from inside pods, through the API server.
//!
//! Two ways, and why there are two. The API server's *pod proxy* calls the pod's address: enough
//! for metrics, readiness and versions (istiod's `:15014/metrics`, `:15014/version`, `:8080/ready`).
//! istiod's debug endpoints (`/debug/syncz` and the like, on `:8080` and `:15014`) let only
//! authenticated callers in, and those whose address is loopback
//! (`pilot/pkg/xds/debug.go`, `allowAuthenticatedOrLocalhost`, Istio 1.31): over the pod proxy
//! the caller is the API server, and the answer is 401. A *port forward* ends inside the
//! pod's network namespace, so the caller is `127.0.0.1` and needs no token. It needs the permission
//! to `create` (and on some versions `get`) `pods/portforward`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::transport::{self, Call};

/// More than this is not read through a port forward.
const LARGEST_ANSWER: u64 = 64 << 20;
const FORWARD_TIMEOUT: Duration = Duration::from_secs(30);

impl Engine {
    /// GET of a path of the API server: its status and text, whatever they are.
    pub async fn get_text(&self, path: &str) -> Result<(u16, String)> {
        let call = Call {
            accept: "*/*",
            ..Call::get(path.to_owned(), "get", path.to_owned())
        };
        let (status, body) = transport::send(&self.client, &call).await?;
        Ok((status.as_u16(), String::from_utf8_lossy(&body).into_owned()))
    }

    /// GET of `path` (with its leading `/`) at a port of a pod, through the API server's pod proxy.
    /// The status is the pod's, or 503 when the pod does not answer, or 403 without the permission
    /// to `get` `pods/proxy`.
    pub async fn pod_proxy_get(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        path: &str,
    ) -> Result<(u16, String)> {
        self.get_text(&format!(
            "/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}"
        ))
        .await
    }

    /// GET of `path` (with its leading `/`) at a port of a pod, through a port forward: to the pod,
    /// the caller is localhost. Answers over 64 MiB are cut.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without permission, [`Error::NotFound`] without the pod,
    /// [`Error::Unreachable`] when nothing listens or nothing comes within 30 s.
    pub async fn forwarded_get(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        path: &str,
    ) -> Result<(u16, String)> {
        // HTTP/1.0: the answer ends with the connection and is not chunked.
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        self.forwarded(namespace, pod, port, &request).await
    }

    /// The same in HTTP/1.1, which gateways insist on, and for `host`. A body may come in chunks, which
    /// are left as they are.
    ///
    /// # Errors
    /// As [`Engine::forwarded_get`].
    pub async fn forwarded_get_of(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        host: &str,
        path: &str,
    ) -> Result<(u16, String)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        self.forwarded(namespace, pod, port, &request).await
    }

    async fn forwarded(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        request: &str,
    ) -> Result<(u16, String)> {
        let exchange = self.exchange(namespace, pod, port, request);
        match tokio::time::timeout(FORWARD_TIMEOUT, exchange).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(Error::Unreachable {
                source: elapsed.into(),
            }),
        }
    }

    async fn exchange(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        request: &str,
    ) -> Result<(u16, String)> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let mut forward = pods
            .portforward(pod, &[port])
            .await
            .map_err(|error| refused(error, namespace, pod))?;
        let Some(mut stream) = forward.take_stream(port) else {
            return Err(Error::Malformed {
                what: "port forward".to_owned(),
                source: None,
            });
        };
        let away = |error: std::io::Error| Error::Unreachable {
            source: error.into(),
        };
        stream.write_all(request.as_bytes()).await.map_err(away)?;
        let mut answer = Vec::new();
        stream
            .take(LARGEST_ANSWER)
            .read_to_end(&mut answer)
            .await
            .map_err(away)?;
        forward.abort();
        parse_answer(&answer).ok_or_else(|| {
            let source = format!("nothing answers at port {port} of pod {namespace}/{pod}").into();
            Error::Unreachable { source }
        })
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other errors have one meaning here"
)]
fn refused(error: kube::Error, namespace: &str, pod: &str) -> Error {
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => Error::Forbidden {
            verb: "create".to_owned(),
            resource: "pods/portforward".to_owned(),
            message: status.message,
        },
        kube::Error::Api(status) if status.code == 404 => Error::NotFound {
            what: format!("Pod {namespace}/{pod}"),
        },
        error => Error::Unreachable {
            source: Box::new(error),
        },
    }
}

/// Status and body of an HTTP/1.x answer that was read to its end.
fn parse_answer(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head
        .strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let check = |answer: &str, expect: Option<(u16, &str)>| {
            let found = parse_answer(answer.as_bytes());
            assert_eq!(
                found,
                expect.map(|(status, body)| (status, body.to_owned()))
            );
        };
        check(
            "HTTP/1.0 200 OK\r\nA: b\r\n\r\n[1]\r\n\r\n2",
            Some((200, "[1]\r\n\r\n2")),
        );
        check("HTTP/1.1 401 Unauthorized\r\n\r\n", Some((401, "")));
        check("", None);
        check("HTTP/1.0 200 OK\r\nA: b\r\n", None);
    }
}
