//! Which proxy is on which control plane, from istiod's own account (`/debug/syncz`).

use serde::{Deserialize, Serialize};

/// One entry of istiod's `/debug/syncz`; of each pair, the nonce sent and the nonce acknowledged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Syncz {
    proxy: String,
    proxy_type: String,
    istio_version: String,
    cluster_sent: String,
    cluster_acked: String,
    listener_sent: String,
    listener_acked: String,
    route_sent: String,
    route_acked: String,
    endpoint_sent: String,
    endpoint_acked: String,
}

/// How far a proxy has followed its control plane.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Everything sent was acknowledged.
    Synced,
    /// Something was sent that is not acknowledged yet, or was refused.
    Stale,
    /// Nothing of this kind was sent: the proxy does not need it. A ztunnel needs none of the four.
    Unsent,
}

/// One proxy's line.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ProxyStatus {
    /// `<pod>.<namespace>`.
    pub proxy: String,
    /// `sidecar`, `router`, `waypoint` or `ztunnel`.
    pub kind: String,
    /// Version of the proxy's agent.
    pub version: String,
    /// The istiod pod that serves it, `<pod>.<namespace>`.
    pub istiod: String,
    /// Revision of that istiod, as its label has it.
    pub revision: String,
    /// Clusters.
    pub cds: Sync,
    /// Listeners.
    pub lds: Sync,
    /// Endpoints.
    pub eds: Sync,
    /// Routes.
    pub rds: Sync,
}

/// istiod's answer is not what this reads.
#[derive(Debug, thiserror::Error)]
#[error("istiod {istiod} answered something other than a list of proxies")]
pub struct NotSyncz {
    /// The istiod pod.
    pub istiod: String,
    /// What the parser stumbled on.
    #[source]
    pub source: serde_json::Error,
}

/// The proxies in one istiod's answer, sorted.
///
/// # Errors
/// An answer that is not istiod's.
pub fn parse(istiod: &str, revision: &str, body: &str) -> Result<Vec<ProxyStatus>, NotSyncz> {
    let entries: Option<Vec<Syncz>> = serde_json::from_str(body).map_err(|source| NotSyncz {
        istiod: istiod.to_owned(),
        source,
    })?;
    let mut out: Vec<_> = entries
        .unwrap_or_default()
        .into_iter()
        .map(|entry| ProxyStatus {
            cds: sync(&entry.cluster_sent, &entry.cluster_acked),
            lds: sync(&entry.listener_sent, &entry.listener_acked),
            eds: sync(&entry.endpoint_sent, &entry.endpoint_acked),
            rds: sync(&entry.route_sent, &entry.route_acked),
            proxy: entry.proxy,
            kind: entry.proxy_type,
            version: entry.istio_version,
            istiod: istiod.to_owned(),
            revision: revision.to_owned(),
        })
        .collect();
    out.sort();
    Ok(out)
}

fn sync(sent: &str, acked: &str) -> Sync {
    if sent.is_empty() {
        Sync::Unsent
    } else if sent == acked {
        Sync::Synced
    } else {
        Sync::Stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_synced_when_it_acknowledged_the_last_nonce() {
        let body = r#"[
          {"cluster_id":"Kubernetes","proxy":"web-1.meshy","proxy_type":"sidecar",
           "istio_version":"1.31.0","cluster_sent":"a","cluster_acked":"a",
           "listener_sent":"b","listener_acked":"old","route_sent":"","endpoint_sent":"c",
           "endpoint_acked":"c"}]"#;
        let found = parse("istiod-0.istio-lab", "default", body).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].proxy, "web-1.meshy");
        assert_eq!(
            (found[0].cds, found[0].lds, found[0].rds, found[0].eds),
            (Sync::Synced, Sync::Stale, Sync::Unsent, Sync::Synced)
        );
    }

    #[test]
    fn waypoints_and_ztunnels_are_told_apart_from_sidecars_and_gateways() {
        let body = r#"[
          {"proxy":"ztunnel-a.node-lab","proxy_type":"ztunnel","istio_version":"1.31.0"},
          {"proxy":"way-1.web-lab","proxy_type":"waypoint","istio_version":"1.31.0",
           "cluster_sent":"a","cluster_acked":"a"},
          {"proxy":"edge-1.edge-lab","proxy_type":"router","istio_version":"1.30.3"}]"#;
        let found = parse("istiod-0.istio-lab", "default", body).unwrap();
        let kinds: Vec<_> = found
            .iter()
            .map(|p| (p.kind.as_str(), p.cds, p.version.as_str()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("router", Sync::Unsent, "1.30.3"),
                ("waypoint", Sync::Synced, "1.31.0"),
                ("ztunnel", Sync::Unsent, "1.31.0"),
            ]
        );
    }

    #[test]
    fn no_proxies_is_an_empty_list() {
        assert_eq!(parse("i", "default", "null").unwrap(), []);
        assert_eq!(parse("i", "default", "[]").unwrap(), []);
    }

    #[test]
    fn another_answer_is_an_error_that_names_the_istiod() {
        let error = parse("istiod-0.istio-lab", "default", "<html>").unwrap_err();
        assert!(error.to_string().contains("istiod-0.istio-lab"));
    }
}
