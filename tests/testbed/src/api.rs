//! A small blocking client of the test cluster, for what the testbed itself applies and waits for.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// A connection. Every call runs on a thread of its own, so that callers may be async themselves.
pub struct Api {
    /// Present until dropped.
    runtime: Option<Runtime>,
    client: Client,
}

impl Drop for Api {
    fn drop(&mut self) {
        // Waiting for a runtime's threads is forbidden where the caller is async.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// Reads a kubeconfig; nothing is sent yet.
    pub fn connect(kubeconfig: &Path) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let connect = async {
            let mut config =
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            config.connect_timeout = Some(Duration::from_secs(2));
            config.read_timeout = Some(Duration::from_secs(30));
            anyhow::Ok(Client::try_from(config)?)
        };
        let client = block_on(&runtime, connect)?;
        Ok(Self {
            runtime: Some(runtime),
            client,
        })
    }

    /// One request; the answer is JSON, or text as a JSON string.
    pub fn call(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let content = if *method == Method::PATCH {
            "application/apply-patch+yaml"
        } else {
            "application/json"
        };
        let body = body
            .map(serde_json::to_vec)
            .transpose()?
            .unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content)
            .body(body)?;
        let runtime = self.runtime.as_ref().context("the connection is closed")?;
        let text = block_on(runtime, self.client.request_text(request))
            .with_context(|| format!("{method} {path}"))?;
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// GET.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.call(&Method::GET, path, None)
    }

    /// GET of what may be missing.
    pub fn find(&self, path: &str) -> Result<Option<Value>> {
        match self.get(path) {
            Ok(object) => Ok(Some(object)),
            Err(error) if code(&error) == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Server-side apply of one object at its own path.
    pub fn apply(&self, path: &str, object: &Value) -> Result<Value> {
        let path = format!("{path}?fieldManager=testbed&force=true");
        self.call(&Method::PATCH, &path, Some(object))
    }

    /// DELETE of what may be missing.
    pub fn delete(&self, path: &str) -> Result<()> {
        match self.call(&Method::DELETE, path, None) {
            Err(error) if code(&error) != Some(404) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the API server says it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.get("/readyz").is_ok_and(|answer| answer == "ok")
    }

    /// Waits until a Deployment has all its replicas.
    pub fn wait_deployment(&self, namespace: &str, name: &str, limit: Duration) -> Result<()> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        wait(
            &format!("deployment {namespace}/{name} ready"),
            limit,
            || Ok(self.find(&path)?.filter(rolled_out).map(|_| ())),
        )
    }
}

fn block_on<F>(runtime: &Runtime, future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    thread::scope(
        |scope| match scope.spawn(|| runtime.block_on(future)).join() {
            Ok(output) => output,
            Err(panic) => std::panic::resume_unwind(panic),
        },
    )
}

/// Status code of the API server's answer, when the error is one.
pub(crate) fn code(error: &anyhow::Error) -> Option<u16> {
    match error.downcast_ref::<kube::Error>()? {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

fn rolled_out(deployment: &Value) -> bool {
    let number = |pointer: &str| {
        deployment
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or(0)
    };
    let wanted = number("/spec/replicas");
    number("/status/observedGeneration") >= number("/metadata/generation")
        && number("/status/updatedReplicas") == wanted
        && number("/status/readyReplicas") == wanted
}

/// Asks again and again until there is an answer. An error of a probe is no end: it is reported
/// when time runs out.
pub(crate) fn wait<T>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        let answer = probe();
        if let Ok(Some(found)) = answer {
            return Ok(found);
        }
        if start.elapsed() > limit {
            match answer {
                Err(error) => return Err(error.context(format!("no {what} in {limit:?}"))),
                Ok(_) => bail!("no {what} in {limit:?}"),
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
}
