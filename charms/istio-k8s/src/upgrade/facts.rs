//! Reads what an upgrade rests on. It costs a dozen requests, and where the application may not do
//! everything one more for each right that it needs, so only where an upgrade is due or asked about.

use std::collections::{BTreeMap, BTreeSet};

use kube_apply::{Access, Object, Query};
use mesh::control_plane::hardening::policies;
use mesh::upgrade::admission::{self, Service};
use mesh::upgrade::rights::{self, Right};
use mesh::upgrade::version::GATEWAY_API_MINIMUM;
use serde_json::Value;

use super::checks::Facts;
use crate::cluster::{Cluster, ClusterError};
use crate::desired::objects;
use crate::observe::{Release, View};

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
            missing: self.missing(view).await?,
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

    /// The rights that are missing for what is to be applied.
    async fn missing(&self, view: &View) -> Result<Vec<Right>, ClusterError> {
        let Some(Ok(release)) = &view.release else {
            return Ok(Vec::new());
        };
        let everything = self.may(&[Right::to_everything()]).await?;
        if everything.first() == Some(&true) {
            return Ok(Vec::new());
        }
        let Release {
            settings,
            control_plane,
            ..
        } = release;
        let (admit, deny) = policies(settings, self.app.as_str());
        let objects = objects(control_plane, settings);
        let all = objects.iter().chain(&admit).chain(&deny);
        let needed = rights::needed(all, settings.namespace.as_str());
        let granted = self.may(&needed).await?;
        let missing = needed.into_iter().zip(granted);
        Ok(missing
            .filter(|(_, granted)| !granted)
            .map(|(right, _)| right)
            .collect())
    }

    async fn may(&self, rights: &[Right]) -> Result<Vec<bool>, ClusterError> {
        let access = |right: &Right| Access {
            verb: right.verb.to_owned(),
            group: right.group.clone(),
            resource: right.resource.clone(),
            namespace: right.namespace.clone(),
            name: None,
        };
        let accesses: Vec<Access> = rights.iter().map(access).collect();
        let granted = self.engine.may(&accesses).await;
        granted.map_err(|error| self.failed(error))
    }
}

/// The Gateway API kinds that have a least bundle: plural and kind.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = GATEWAY_API_MINIMUM.iter();
    all.map(|(plural, kind, ..)| (*plural, *kind))
}

fn has_ready(slice: &Object) -> bool {
    let endpoints = slice.pointer("/endpoints").and_then(Value::as_array);
    // A missing condition counts as ready (`discovery.k8s.io/v1`, EndpointConditions).
    endpoints
        .into_iter()
        .flatten()
        .any(|endpoint| endpoint["conditions"]["ready"] != false)
}
