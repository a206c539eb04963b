//! What a migration asks of a cluster. The engine of `kube-apply` does it; tests put themselves in
//! between, to cut the line at every call.

use std::future::Future;

use kube_apply::{
    Access, Delete, Engine, Error, Evicted, Object, ObjectRef, Observed, Query, Result,
};
use mesh::proxy_status::{self, ProxyStatus};
use serde_json::Value;

/// Field manager of everything that a migration writes in its own name.
pub const MANAGER: &str = "istio-migrate";

/// istiod's plaintext debug port: a caller on its own loopback needs no token, and a port forward is one.
const DEBUG_PORT: u16 = 15014;
/// Envoy's administration port in every proxy's pod.
const ENVOY_PORT: u16 = 15000;

/// The operations. Writes are recorded under [`MANAGER`].
pub trait Api {
    /// Reads what the queries ask for.
    fn read(&self, queries: &[Query]) -> impl Future<Output = Result<Observed>>;
    /// One object.
    fn get(&self, id: &ObjectRef) -> impl Future<Output = Result<Option<Object>>>;
    /// Creates an object.
    fn create(&self, object: &Object, dry_run: bool) -> impl Future<Output = Result<Object>>;
    /// One server-side apply by force.
    fn apply(&self, object: &Object, manager: &str) -> impl Future<Output = Result<Object>>;
    /// Replaces the object that has the `resourceVersion`.
    fn replace(&self, object: &Object) -> impl Future<Output = Result<Object>>;
    /// Merge patch.
    fn merge(&self, id: &ObjectRef, patch: &Value) -> impl Future<Output = Result<Object>>;
    /// Deletes an object; `false` when it was gone.
    fn delete(&self, id: &ObjectRef, options: &Delete) -> impl Future<Output = Result<bool>>;
    /// Evicts a pod.
    fn evict(&self, namespace: &str, pod: &str) -> impl Future<Output = Result<Evicted>>;
    /// Whether we may do each of these.
    fn may(&self, accesses: &[Access]) -> impl Future<Output = Result<Vec<bool>>>;
    /// The proxies that the istiods of the cluster serve, all their pods added up.
    fn proxies(&self) -> impl Future<Output = Result<Vec<ProxyStatus>>>;
    /// The root namespace that each running istiod of a namespace and revision works with.
    fn mesh_roots(
        &self,
        namespace: &str,
        revision: &str,
    ) -> impl Future<Output = Result<Vec<String>>>;
    /// What a proxy is running with: Envoy's configuration dump.
    fn proxy_config(&self, namespace: &str, pod: &str) -> impl Future<Output = Result<String>>;
}

impl Api for Engine {
    async fn read(&self, queries: &[Query]) -> Result<Observed> {
        self.observe(queries).await
    }

    async fn get(&self, id: &ObjectRef) -> Result<Option<Object>> {
        Self::get(self, id).await
    }

    async fn create(&self, object: &Object, dry_run: bool) -> Result<Object> {
        Self::create(self, object, MANAGER, dry_run).await
    }

    async fn apply(&self, object: &Object, manager: &str) -> Result<Object> {
        self.apply_as(object, manager, true, false).await
    }

    async fn replace(&self, object: &Object) -> Result<Object> {
        Self::replace(self, object, MANAGER).await
    }

    async fn merge(&self, id: &ObjectRef, patch: &Value) -> Result<Object> {
        self.merge_patch(id, patch, MANAGER).await
    }

    async fn delete(&self, id: &ObjectRef, options: &Delete) -> Result<bool> {
        Self::delete(self, id, options).await
    }

    async fn evict(&self, namespace: &str, pod: &str) -> Result<Evicted> {
        Self::evict(self, namespace, pod, false).await
    }

    async fn may(&self, accesses: &[Access]) -> Result<Vec<bool>> {
        Self::may(self, accesses).await
    }

    async fn proxies(&self) -> Result<Vec<ProxyStatus>> {
        let query = Query::list("", "Pod").with_labels("app=istiod");
        let pods = self.observe(&[query]).await?;
        let mut found = Vec::new();
        for pod in pods.list("", "Pod").filter(|pod| !pod.is_terminating()) {
            let (name, namespace) = (pod.name(), pod.namespace().unwrap_or_default());
            let running = pod.pointer("/status/phase").and_then(Value::as_str) == Some("Running");
            if !running {
                continue;
            }
            let asked = self.forwarded_get(namespace, name, DEBUG_PORT, "/debug/syncz");
            let (status, body) = match asked.await {
                // It ended since it was listed: whom it served, another serves by now.
                Err(Error::NotFound { .. }) => continue,
                answer => answer?,
            };
            let istiod = format!("{name}.{namespace}");
            let revision = pod.label("istio.io/rev").unwrap_or("default");
            let away = |source| Error::Unreachable { source };
            if status != 200 {
                return Err(away(format!("istiod {istiod} answered {status}").into()));
            }
            let parsed = proxy_status::parse(&istiod, revision, &body);
            found.extend(parsed.map_err(|error| away(error.into()))?);
        }
        found.sort();
        Ok(found)
    }

    async fn mesh_roots(&self, namespace: &str, revision: &str) -> Result<Vec<String>> {
        let selector = format!("app=istiod,istio.io/rev={revision}");
        let query = Query::list("", "Pod").in_namespace(namespace);
        let pods = self.observe(&[query.with_labels(&selector)]).await?;
        let mut found = Vec::new();
        for pod in pods.list("", "Pod").filter(|pod| !pod.is_terminating()) {
            let (status, body) = self
                .forwarded_get(namespace, pod.name(), DEBUG_PORT, "/debug/mesh")
                .await?;
            let mesh: Value = serde_json::from_str(&body).unwrap_or_default();
            match mesh["rootNamespace"].as_str() {
                Some(root) if status == 200 => found.push(root.to_owned()),
                _ => {
                    let source = format!("istiod {} answered {status}", pod.name()).into();
                    return Err(Error::Unreachable { source });
                }
            }
        }
        Ok(found)
    }

    async fn proxy_config(&self, namespace: &str, pod: &str) -> Result<String> {
        // Envoy answers no HTTP/1.0.
        let asked = self.forwarded_get_of(namespace, pod, ENVOY_PORT, "localhost", "/config_dump");
        let (status, body) = asked.await?;
        if status == 200 {
            return Ok(unchunked(&body).unwrap_or(body));
        }
        Err(Error::Unreachable {
            source: format!("proxy {pod}.{namespace} answered {status}").into(),
        })
    }
}

/// An object as it is created again, without what the server and controllers have written.
pub(crate) fn fresh(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for owned_by_server in [
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "managedFields",
            ] {
                metadata.remove(owned_by_server);
            }
        }
    }
    value
}

/// A body without the sizes of its chunks; `None` when it does not come in chunks.
fn unchunked(body: &str) -> Option<String> {
    let (mut rest, mut whole) = (body.as_bytes(), Vec::new());
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return String::from_utf8(whole).ok();
        }
        whole.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 4 + size..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together() {
        let check = |body: &str, expect: Option<&str>| {
            assert_eq!(unchunked(body).as_deref(), expect, "{body:?}");
        };
        check("2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", Some("abc"));
        check("{\"a\": 1}", None);
        check("5\r\nab", None);
    }
}
