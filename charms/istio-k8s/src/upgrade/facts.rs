//! Reads what an upgrade rests on. It costs a dozen requests, so only where one is due or asked about.

use std::collections::{BTreeMap, BTreeSet};

use kube_apply::{Access, Object, Query};
use mesh::upgrade::admission::{self, Service};
use mesh::upgrade::rights::{self, Right};
use mesh::upgrade::version::GATEWAY_API_MINIMUM;
use serde_json::Value;

use super::checks::Facts;
use crate::cluster::{Cluster, ClusterError};
use crate::observe::View;

const GATEWAY_API: &str = "gateway.networking.k8s.io";
const ENDPOINTS: &str = "discovery.k8s.io";

impl Cluster {
    /// Reads what an upgrade rests on.
    ///
    /// # Errors
    /// An API server that does not answer, or refuses a read.
    pub(crate) async fn facts(&self, view: &View) -> Result<Facts, ClusterError> {
        let namespace = view.namespace.as_str();
        let mut queries = vec![
            Query::list("apiextensions.k8s.io", "CustomResourceDefinition"),
            Query::list("policy", "PodDisruptionBudget"),
            Query::get("", "ConfigMap", Some(namespace), "istio-ca-root-cert"),
        ];
        queries.extend(kinds().map(|(_, kind)| Query::list(GATEWAY_API, kind).metadata_only()));
        let observed = self.read(&queries).await?;
        let values = |group, kind| -> Vec<Value> {
            observed
                .list(group, kind)
                .map(|o| o.value().clone())
                .collect()
        };
        let used = kinds().map(|(plural, kind)| {
            let count = observed.list(GATEWAY_API, kind).count();
            (plural.to_owned(), count)
        });
        let root = observed.get("", "ConfigMap", Some(namespace), "istio-ca-root-cert");
        let root = root.and_then(|map| map.pointer("/data/root-cert.pem")?.as_str());
        Ok(Facts {
            definitions: values("apiextensions.k8s.io", "CustomResourceDefinition"),
            used: used.collect::<BTreeMap<_, _>>(),
            budgets: values("policy", "PodDisruptionBudget"),
            answered: self.answered(view).await?,
            root: root.map(str::to_owned),
            missing: self.missing(namespace).await?,
        })
    }

    /// The Services behind webhooks that have somebody ready.
    async fn answered(&self, view: &View) -> Result<BTreeSet<Service>, ClusterError> {
        let configs = view.mutating.iter().chain(&view.validating);
        let configs: Vec<Value> = configs.map(|config| config.value().clone()).collect();
        let services = admission::services(&configs);
        let queries: Vec<Query> = services
            .iter()
            .map(|(namespace, name)| {
                Query::list(ENDPOINTS, "EndpointSlice")
                    .in_namespace(namespace)
                    .with_labels(&format!("kubernetes.io/service-name={name}"))
            })
            .collect();
        let observed = self.read(&queries).await?;
        let slices = observed.list(ENDPOINTS, "EndpointSlice");
        let answered = slices.filter(|slice| has_ready(slice)).filter_map(|slice| {
            let service = slice.label("kubernetes.io/service-name")?;
            Some((slice.namespace()?.to_owned(), service.to_owned()))
        });
        Ok(answered.collect())
    }

    async fn missing(&self, namespace: &str) -> Result<Vec<Right>, ClusterError> {
        let needed = rights::needed();
        let accesses: Vec<Access> = needed
            .iter()
            .map(|right| Access {
                verb: right.verb.to_owned(),
                group: right.group.to_owned(),
                resource: right.resource.to_owned(),
                namespace: right.namespaced.then(|| namespace.to_owned()),
                name: None,
            })
            .collect();
        let granted = self
            .engine
            .may(&accesses)
            .await
            .map_err(|e| self.failed(e))?;
        let missing = needed.into_iter().zip(granted);
        Ok(missing
            .filter(|(_, granted)| !granted)
            .map(|(right, _)| right)
            .collect())
    }
}

/// The Gateway API kinds that have a least bundle: plural and kind.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    GATEWAY_API_MINIMUM.iter().map(|(plural, _, _)| {
        let kind = match *plural {
            "grpcroutes" => "GRPCRoute",
            "backendtlspolicies" => "BackendTLSPolicy",
            "tlsroutes" => "TLSRoute",
            _ => "TCPRoute",
        };
        (*plural, kind)
    })
}

fn has_ready(slice: &Object) -> bool {
    let endpoints = slice.pointer("/endpoints").and_then(Value::as_array);
    // A missing condition counts as ready (`discovery.k8s.io/v1`, EndpointConditions).
    endpoints
        .into_iter()
        .flatten()
        .any(|endpoint| endpoint["conditions"]["ready"] != false)
}
