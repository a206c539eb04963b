//! The charm's one place that does I/O: reads the cluster, writes pass after pass, asks the
//! gateway's pods what stands in front of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use istio_api::CustomObject as _;
use istio_api::networking::Gateway;
use istio_api::security::AuthorizationPolicy;
use juju_charm::{EffectError, Effects, Problem, Progress};
use juju_hooks::Context;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube_apply::{
    Advice, Applied, Connect, Engine, Error, Note, Object, ObjectRef, ObjectsSet, Observed, Plan,
    Query as Read, Remedy,
};
use mesh::auth::{Answer, AuthState, DENIED_PATH, Evidence, PROBE_PATH, PodEvidence, read_answer};
use mesh::discovery::{
    self, ControlPlane, GatewayPod, GatewayPort, GatewayWorkload, Selected, gateway_pods,
    mesh_config_name,
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::check::{Answered, Check};
use crate::desired::{Objects, Serve};
use crate::gateway_api::{self, observed as api};
use crate::keys;
use crate::observe::{self, Live, Query, ServiceInfo, View};
use crate::pass::{Done, ELSEWHERE, close, pass};
use crate::tls::{self, KeyRequest, Pair};

const NETWORKING: &str = "networking.istio.io";
const SECURITY: &str = "security.istio.io";

/// How long a hook waits for what it wrote to show at the gateway's pods. istiod pushes within a
/// second or two; what takes longer is left to the next hook.
const PROOF_BUDGET: Duration = Duration::from_secs(20);
/// How long between two looks at the pods.
const PROOF_INTERVAL: Duration = Duration::from_millis(500);

/// The cluster, as this charm sees it.
#[derive(Debug)]
pub struct Cluster {
    engine: Engine,
}

/// Connects to the API server that Juju names.
///
/// # Errors
/// No API server in the environment, or unreadable credentials.
pub fn connect(context: &Context) -> Result<Cluster, ClusterError> {
    let Some((host, port)) = &context.kubernetes else {
        let reason = "the hook names no API server".to_owned();
        return Err(ClusterError(Error::Config { reason }));
    };
    Ok(Cluster::new(Engine::connect(&Connect::in_cluster(
        host, *port,
    ))?))
}

/// What can go wrong with the cluster.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ClusterError(#[from] Error);

impl EffectError for ClusterError {
    fn problem(&self) -> Option<Problem> {
        let Advice { message, remedy } = self.0.advice()?;
        Some(match remedy {
            Remedy::Wait => Problem::waiting(message),
            Remedy::Act => Problem::blocked(message),
            Remedy::Permit => Problem::blocked(message).with_hint("juju trust APP --scope=cluster"),
        })
    }
}

impl Cluster {
    /// Effects over an engine.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    async fn view(&self, query: Query) -> Result<View, ClusterError> {
        let ours = query.inventory.selector();
        let mut reads = vec![
            Read::list("apps", "Deployment").with_labels("app=istiod"),
            Read::list("apps", "Deployment").with_labels("istio"),
            Read::list("apps", "DaemonSet").with_labels("istio"),
            Read::list(
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
            ),
            Read::list(NETWORKING, "Gateway"),
            Read::list(NETWORKING, "VirtualService").with_labels(&ours),
            Read::list(NETWORKING, "EnvoyFilter"),
            Read::list(SECURITY, "AuthorizationPolicy").with_labels(&ours),
            Read::list(NETWORKING, "DestinationRule").with_labels(&ours),
            Read::list(SECURITY, "RequestAuthentication").with_labels(&ours),
            Read::list("", "Secret").with_labels(&ours),
            Read::list("", "Service").in_namespace(&query.namespace),
        ];
        reads.extend(api::reads(&ours));
        reads.extend(
            query
                .authorizers
                .iter()
                .map(|(namespace, name)| Read::get("", "Service", Some(namespace), name)),
        );
        let mut observed = self.engine.observe(&reads).await?;
        let services: BTreeMap<(String, String), ServiceInfo> =
            typed::<Service>(&observed, "", "Service")
                .iter()
                .filter_map(observe::service_info)
                .collect();

        let mut gateways = found_gateways(&observed);
        let wanted = query
            .settings
            .as_ref()
            .map_or("", |settings| settings.gateway.as_str());
        if gateways.is_empty() || !wanted.is_empty() {
            // A gateway need not carry the label `istio`: look at all workloads then.
            let all = [
                Read::list("apps", "Deployment"),
                Read::list("apps", "DaemonSet"),
            ];
            merge(&mut observed, &self.engine.observe(&all).await?);
            gateways = found_gateways(&observed);
        }
        let control_planes = self.details(&mut observed, &gateways).await?;
        let live = found(&observed, control_planes.config_maps);
        let planes = discovery::control_planes(&live);
        let gateways = discovery::gateways(&live);
        let (plane, mut gateway) = observe::select(&query, &planes, &gateways);
        let facts = api::facts(&query, &observed, &live);
        let namespace = query.namespace.as_str();
        let chosen = query.settings.as_ref().and_then(|settings| {
            gateway_api::choose(settings, namespace, &plane, gateway.as_ref(), &facts, &live)
        });
        let mut api_choice = None;
        if let Some(chosen) = chosen {
            gateway = Some(chosen.clone().map(|choice| choice.gateway.workload));
            api_choice = chosen.one();
        }

        let names = (&query.names.guard, query.names.custom());
        let (mut policies, mut customs) = (Vec::new(), Vec::new());
        let mut others: BTreeSet<ObjectRef> = BTreeSet::new();
        for policy in typed::<AuthorizationPolicy>(&observed, SECURITY, "AuthorizationPolicy") {
            match policy.metadata.name.as_ref() {
                name if name == Some(names.0) => policies.push(policy),
                name if name == Some(&names.1) => customs.push(policy),
                name if name == Some(&query.names.api()) => policies.push(policy),
                _ => drop(others.insert(Object::new(policy.to_object())?.id())),
            }
        }
        let kinds = [
            (NETWORKING, "DestinationRule"),
            (SECURITY, "RequestAuthentication"),
            ("", "Secret"),
        ];
        others.extend(
            kinds
                .iter()
                .flat_map(|(group, kind)| observed.list(group, kind))
                .map(Object::id),
        );
        let own = |object: &&Object| query.inventory.owns(object);
        let (mut our_gateways, mut other_gateways) = (Vec::new(), Vec::new());
        for object in observed.list(NETWORKING, "Gateway") {
            match object.typed::<Gateway>() {
                Ok(gateway) if own(&object) => our_gateways.push(gateway),
                Ok(gateway) => other_gateways.push(gateway),
                Err(error) => tracing::warn!("{error}, left out"),
            }
        }
        let (own_filters, other_filters): (Vec<_>, Vec<_>) =
            observed.list(NETWORKING, "EnvoyFilter").partition(own);
        let mut filters = read_typed(own_filters.into_iter());
        let others_guard = match &gateway {
            Some(Selected::One(gateway)) => other_filters
                .into_iter()
                .any(|filter| observe::guards(filter, &gateway.namespace, &gateway.labels)),
            _ => false,
        };
        let ours = Live {
            api: api::live(&query, &observed, &mut filters, &mut policies),
            gateways: our_gateways,
            virtual_services: typed(&observed, NETWORKING, "VirtualService"),
            filters,
            policies,
            customs,
            others,
        };
        let pods = match &gateway {
            Some(Selected::One(gateway)) => {
                let port = observe::http_port(gateway);
                self.pods(&selector(&gateway.labels), port).await?
            }
            _ => BTreeSet::new(),
        };
        let terminating = match &gateway {
            Some(Selected::One(gateway)) => self.terminating(gateway, &gateways, &pods).await?,
            _ => BTreeSet::new(),
        };
        let evidence = if query.wants_auth(ours.guarded()) {
            let home = match &gateway {
                Some(Selected::One(gateway)) => gateway.namespace.as_str(),
                _ => "",
            };
            self.evidence(&pods, home).await
        } else {
            Evidence::default()
        };
        let served = |group, kind| {
            let versions = observed.served().versions(group, kind);
            versions
                .iter()
                .map(|served| served.version.clone())
                .collect()
        };
        let guard = match ours.guard() {
            Some(guard) => guard.to_owned(),
            None => random_guard()?,
        };
        let mut view = View {
            guard,
            networking: served(NETWORKING, "VirtualService"),
            security: served(SECURITY, "AuthorizationPolicy"),
            forbidden: observed.notes().filter_map(forbidden).collect(),
            control_planes: planes,
            gateways,
            plane,
            gateway,
            api: api_choice,
            api_gateways: facts.gateways,
            acceptances: gateway_api::acceptances(api::routes(&observed)),
            pods,
            terminating,
            evidence,
            others_guard,
            services,
            request: None,
            live_pair: live_pair(&query, &observed),
            other_gateways,
            groups: served_groups(&observed),
            live: ours,
        };
        view.request = request(&query, &observed, &view)?;
        Ok(view)
    }

    /// Mesh configs of the control planes and Services of the gateways.
    async fn details(
        &self,
        observed: &mut Observed,
        gateways: &[GatewayWorkload],
    ) -> Result<Details, ClusterError> {
        let planes = discovery::control_planes(&found(observed, Vec::new()));
        let config = |plane: &ControlPlane| {
            let name = mesh_config_name(&plane.revision);
            Read::get("", "ConfigMap", Some(&plane.namespace), &name)
        };
        let mut namespaces = api::namespaces(observed);
        namespaces.extend(gateways.iter().map(|gateway| gateway.namespace.clone()));
        let services = namespaces
            .into_iter()
            .map(|ns| Read::list("", "Service").in_namespace(&ns));
        let reads: Vec<Read> = planes
            .iter()
            .filter(|plane| !plane.external)
            .map(config)
            .chain(services)
            .collect();
        let details = self.engine.observe(&reads).await?;
        merge(observed, &details);
        Ok(Details {
            config_maps: typed(&details, "", "ConfigMap"),
        })
    }

    /// The gateway pods that carry the labels, in any namespace: that is where Istio looks.
    async fn pods(
        &self,
        labels: &str,
        port: Option<&GatewayPort>,
    ) -> Result<BTreeSet<GatewayPod>, ClusterError> {
        let read = Read::list("", "Pod").with_labels(labels);
        let observed = self.engine.observe(&[read]).await?;
        Ok(gateway_pods(&typed::<Pod>(&observed, "", "Pod"), port))
    }

    /// The namespaces that are being deleted; not asked for where only the gateway's own matters.
    async fn terminating(
        &self,
        gateway: &GatewayWorkload,
        gateways: &[GatewayWorkload],
        pods: &BTreeSet<GatewayPod>,
    ) -> Result<BTreeSet<String>, ClusterError> {
        let mut used = gateways
            .iter()
            .map(|other| &other.namespace)
            .chain(pods.iter().map(|pod| &pod.namespace));
        if used.all(|namespace| *namespace == gateway.namespace) {
            return Ok(BTreeSet::new());
        }
        let observed = self.engine.observe(&[Read::list("", "Namespace")]).await?;
        Ok(observed
            .list("", "Namespace")
            .filter(|namespace| namespace.is_terminating())
            .map(|namespace| namespace.name().to_owned())
            .collect())
    }

    /// What the ready pods in the namespace `home` answer to requests of nobody in particular. Pods
    /// elsewhere may be anybody's: they are guarded too, but have no say in what is proven.
    async fn evidence(&self, pods: &BTreeSet<GatewayPod>, home: &str) -> Evidence {
        let mut evidence = Evidence::default();
        let asked = |pod: &&GatewayPod| pod.ready && pod.namespace == home;
        for pod in pods.iter().filter(asked) {
            evidence.pods.push(PodEvidence {
                probe: self.ask(pod, PROBE_PATH).await,
                denied: self.ask(pod, DENIED_PATH).await,
            });
        }
        evidence
    }

    /// What a pod answers to a request of nobody.
    async fn request_of_nobody(
        &self,
        pod: &GatewayPod,
        secure: bool,
        host: &str,
        path: &str,
    ) -> Result<(u16, String), String> {
        let Some(port) = pod.http_port else {
            return Err("the pod has no such port".to_owned());
        };
        let (namespace, name) = (pod.namespace.as_str(), pod.name.as_str());
        let answer = match (host, secure) {
            ("*", false) => self.engine.pod_proxy_get(namespace, name, port, path).await,
            ("*", true) => {
                let name = format!("https:{name}");
                self.engine
                    .pod_proxy_get(namespace, &name, port, path)
                    .await
            }
            (_, true) => return Err("HTTPS is asked without a host name only".to_owned()),
            (host, false) => {
                self.engine
                    .forwarded_get_of(namespace, name, port, host, path)
                    .await
            }
        };
        answer.map_err(|error| error.to_string())
    }

    /// The statuses with which a pod refuses whom it does not know: seen where no application is.
    async fn refusals(&self, pod: &GatewayPod, check: &Check, host: &str) -> BTreeSet<u16> {
        let mut refusals = BTreeSet::new();
        if check.tokens_only {
            refusals.insert(401);
        }
        for (path, expect) in [
            (PROBE_PATH, Answer::Authorizer),
            (DENIED_PATH, Answer::Denied),
        ] {
            let answer = self.request_of_nobody(pod, check.secure, host, path).await;
            if let Ok((status, body)) = answer
                && read_answer(status, &body) == expect
            {
                refusals.insert(status);
            }
        }
        refusals
    }

    async fn ask(&self, pod: &GatewayPod, path: &str) -> Answer {
        let Some(port) = pod.http_port else {
            return Answer::Nobody;
        };
        match self
            .engine
            .pod_proxy_get(&pod.namespace, &pod.name, port, path)
            .await
        {
            Ok((status, body)) => {
                let answer = read_answer(status, &body);
                tracing::debug!(
                    "{}/{} {path}: {status}, {answer:?}",
                    pod.namespace,
                    pod.name
                );
                answer
            }
            Err(error) => {
                tracing::debug!("{}/{} {path}: {error}", pod.namespace, pod.name);
                Answer::Nobody
            }
        }
    }

    async fn serve(&self, serve: &Serve) -> Result<Done, ClusterError> {
        let end = Instant::now() + PROOF_BUDGET;
        let mut next = pass(serve, &serve.live, &serve.evidence)?;
        let mut refused = Vec::new();
        let mut total = self.apply_set(&next.set, serve, &mut refused).await?;
        // Without a write there is nothing new to be seen at the pods.
        let wrote = !(total.written.is_empty() && total.pruned.is_empty());
        while wrote && next.more && total.is_complete() && Instant::now() < end {
            sleep(PROOF_INTERVAL).await;
            let labels = selector(&serve.labels);
            let pods = self.pods(&labels, serve.port.as_ref()).await?;
            let evidence = self.evidence(&pods, &serve.home).await;
            let further = pass(serve, &next.live, &evidence)?;
            if further.live != next.live {
                add(
                    &mut total,
                    self.apply_set(&further.set, serve, &mut refused).await?,
                );
            }
            next = further;
        }
        Ok(Done {
            applied: total,
            served: next.served,
            state: next.state,
            refused,
        })
    }

    /// Applies a set. What of its optional stage is refused costs only what the same relation asks
    /// for: it is told, kept from being pruned, and the rest is written.
    async fn apply_set(
        &self,
        set: &ObjectsSet,
        serve: &Serve,
        refused: &mut Vec<Problem>,
    ) -> Result<Applied, ClusterError> {
        let mut set = set.clone();
        loop {
            let error = match self.engine.apply(&set).await {
                Ok(applied) => return Ok(applied),
                Err(error) => ClusterError(error),
            };
            let Some(stage) = set.stages.iter_mut().find(|stage| stage.name == ELSEWHERE) else {
                return Err(error);
            };
            let asked_by = |id: &ObjectRef| serve.asked_by.get(id);
            let is_refused = |object: &Object| match &error.0 {
                // Permissions are told by kind, not by object.
                Error::Forbidden { .. } => true,
                Error::NotFound { what } => object
                    .namespace()
                    .is_some_and(|namespace| *what == format!("namespace {namespace}")),
                other => other.object().is_some_and(|refused| {
                    let relation = asked_by(refused);
                    object.id() == *refused
                        || (relation.is_some() && asked_by(&object.id()) == relation)
                }),
            };
            let (dropped, kept): (Vec<Object>, Vec<Object>) =
                stage.objects.drain(..).partition(is_refused);
            stage.objects = kept;
            if dropped.is_empty() {
                return Err(error);
            }
            set.retain.extend(dropped.iter().map(Object::id));
            refused.extend(error.problem());
        }
    }
}

impl Effects for Cluster {
    type Applied = Done;
    type Error = ClusterError;
    type Objects = Objects;
    type Plan = Plan;
    type Work = Check;
    type Done = Vec<Answered>;
    type Query = Query;
    type View = View;

    async fn observe(&self, query: Query) -> Result<View, ClusterError> {
        Box::pin(self.view(query)).await
    }

    async fn apply(&self, objects: Objects) -> Result<Done, ClusterError> {
        match objects {
            Objects::Nothing(inventory) => {
                let set = ObjectsSet {
                    inventory,
                    stages: Vec::new(),
                    retain: Vec::new(),
                    wait: Duration::ZERO,
                    whole: false,
                };
                let applied = self.engine.apply(&set).await?;
                Ok(Done {
                    applied,
                    served: BTreeSet::new(),
                    state: AuthState::Off,
                    refused: Vec::new(),
                })
            }
            Objects::Serve(serve) => Box::pin(self.serve(&serve)).await,
            Objects::Close(inventory, live) => {
                let closed = close(&inventory, &live)?;
                Ok(Done {
                    applied: self.engine.apply(&closed.set).await?,
                    served: closed.served,
                    state: closed.state,
                    refused: Vec::new(),
                })
            }
        }
    }

    async fn plan(&self, objects: Objects) -> Result<Plan, ClusterError> {
        let set = match objects {
            Objects::Nothing(inventory) => ObjectsSet {
                inventory,
                stages: Vec::new(),
                retain: Vec::new(),
                wait: Duration::ZERO,
                whole: false,
            },
            Objects::Serve(serve) => pass(&serve, &serve.live, &serve.evidence)?.set,
            Objects::Close(inventory, live) => close(&inventory, &live)?.set,
        };
        Ok(self.engine.plan(&set).await?)
    }

    async fn work(
        &self,
        work: Check,
        progress: &dyn Progress,
    ) -> Result<Vec<Answered>, ClusterError> {
        let pods = self
            .pods(&selector(&work.labels), work.port.as_ref())
            .await?;
        let asked = |pod: &&GatewayPod| pod.ready && pod.namespace == work.namespace;
        let mut answers = Vec::new();
        for pod in pods.iter().filter(asked) {
            progress.say(&format!(
                "{} requests through {}/{}",
                work.probes.len(),
                pod.namespace,
                pod.name
            ));
            let mut known: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
            for probe in &work.probes {
                let host = probe.host.as_str();
                if !known.contains_key(host) {
                    known.insert(host, self.refusals(pod, &work, host).await);
                }
                let answer = self.request_of_nobody(pod, work.secure, &probe.host, &probe.path);
                answers.push(Answered {
                    pod: pod.name.clone(),
                    status: answer.await.map(|(status, _)| status),
                    probe: probe.clone(),
                    refusals: known.get(host).cloned().unwrap_or_default(),
                });
            }
        }
        Ok(answers)
    }
}

/// The API groups that tell of an Istio or of who runs it.
fn served_groups(observed: &Observed) -> BTreeSet<String> {
    let groups = observed.served().api_versions();
    let groups = groups
        .iter()
        .filter_map(|version| Some(version.split_once('/')?.0.to_owned()));
    groups.filter(|group| group.contains('.')).collect()
}

struct Details {
    config_maps: Vec<k8s_openapi::api::core::v1::ConfigMap>,
}

/// The objects of a kind that have its shape; others are others' business.
fn typed<T: DeserializeOwned>(observed: &Observed, group: &str, kind: &str) -> Vec<T> {
    read_typed(observed.list(group, kind))
}

fn read_typed<'a, T: DeserializeOwned>(objects: impl Iterator<Item = &'a Object>) -> Vec<T> {
    objects
        .filter_map(|object| match object.typed() {
            Ok(typed) => Some(typed),
            Err(error) => {
                tracing::warn!("{error}, left out");
                None
            }
        })
        .collect()
}

fn found(
    observed: &Observed,
    config_maps: Vec<k8s_openapi::api::core::v1::ConfigMap>,
) -> discovery::Live {
    discovery::Live {
        deployments: typed(observed, "apps", "Deployment"),
        daemon_sets: typed(observed, "apps", "DaemonSet"),
        webhooks: typed(
            observed,
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
        ),
        config_maps,
        services: typed(observed, "", "Service"),
    }
}

fn found_gateways(observed: &Observed) -> Vec<GatewayWorkload> {
    discovery::gateways(&found(observed, Vec::new()))
}

fn merge(into: &mut Observed, from: &Observed) {
    for object in from.objects() {
        into.insert(object.clone());
    }
}

fn add(total: &mut Applied, applied: Applied) {
    let Applied {
        written,
        unchanged,
        pruned,
        conflicts,
        pending,
        advisory,
        not_permitted,
    } = applied;
    total.written.extend(written);
    total.unchanged = unchanged;
    total.pruned.extend(pruned);
    total.conflicts = conflicts;
    total.pending = pending;
    total.advisory = advisory;
    total.not_permitted = not_permitted;
}

fn selector(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

/// The pair that the gateway's pods show.
fn live_pair(query: &Query, observed: &Observed) -> Option<Pair> {
    let name = query.names.credential();
    let mut shown = observed
        .list("", "Secret")
        .filter(|secret| secret.name() == name && query.inventory.owns(secret));
    shown.find_map(|secret| tls::read_pair(&secret.typed().ok()?))
}

/// Key and request for a certificate: the kept ones while they are for the same hosts and what was
/// issued to them lasts, else a new request with the same key.
fn request(
    query: &Query,
    observed: &Observed,
    view: &View,
) -> Result<Option<KeyRequest>, ClusterError> {
    let (Some(model), Some(settings)) = (&query.certificate_for, &query.settings) else {
        return Ok(None);
    };
    let hosts = tls::requested_hosts(model, settings, view);
    if hosts.is_empty() {
        return Ok(None);
    }
    let name = query.names.request();
    let kept = observed
        .get("", "Secret", Some(&query.namespace), &name)
        .and_then(|secret| tls::read_request(&secret.typed().ok()?));
    let is_due = |request: &KeyRequest| {
        let mut issued = query
            .issued
            .iter()
            .filter(|(csr, _)| csr.trim() == request.csr.trim());
        issued.any(|(_, certificate)| tls::is_due(certificate, query.now))
    };
    match kept {
        Some(kept) if kept.hosts == hosts && !is_due(&kept) => Ok(Some(kept)),
        kept => keys::key_request(&hosts, kept.as_ref())
            .map(Some)
            .map_err(|reason| ClusterError(Error::Config { reason })),
    }
}

fn random_guard() -> Result<String, ClusterError> {
    let mut bytes = [0; observe::GUARD_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        let reason = format!("no random numbers: {error}");
        ClusterError(Error::Config { reason })
    })?;
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hex.concat())
}

fn forbidden(note: &Note) -> Option<String> {
    match note {
        Note::Forbidden { verb, resource } => Some(format!("{verb} {resource}")),
        Note::NotInstalled { .. } => None,
    }
}
