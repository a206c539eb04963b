//! Control planes: istiod Deployments, and webhooks that point to an istiod outside the cluster.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::Live;
use super::workload::{Workload, annotation, label};
use crate::revision::Revision;

const DEFAULT_TRUST_DOMAIN: &str = "cluster.local";
const CHARM_APP: &str = "charms.istio-operators.dev/app";
const CHARM_MODEL: &str = "charms.istio-operators.dev/model";

/// Who installed a control plane, as far as its labels tell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Owner {
    /// Helm, or manifests rendered by it.
    Helm,
    /// `istioctl install`.
    Istioctl,
    /// A charm of this family.
    Charm {
        /// The application.
        app: String,
        /// The model's UUID.
        model: String,
    },
    /// Nothing recognised.
    Unknown,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Helm => f.write_str("helm"),
            Self::Istioctl => f.write_str("istioctl"),
            Self::Charm { app, .. } => write!(f, "charm {app}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// One istiod, whatever its number of replicas.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ControlPlane {
    /// Namespace of istiod; of the webhook's service or, for an external one, empty.
    pub namespace: String,
    /// Its revision.
    pub revision: Revision,
    /// Version of Istio, e.g. `1.30.3`, where image tag or labels tell.
    pub version: Option<String>,
    /// Root namespace of its mesh.
    pub root_namespace: String,
    /// Tags that select this revision, sorted.
    pub tags: Vec<String>,
    /// Names of the mesh config's extension providers, in its order.
    pub extension_providers: Vec<String>,
    /// Those of them that ask an external authorizer over HTTP.
    pub authorizers: BTreeMap<String, AskedByMesh>,
    /// Trust domain of its mesh.
    pub trust_domain: String,
    /// Whether it serves proxies that are shared by a node's pods (ambient).
    pub ambient: bool,
    /// Who installed it.
    pub owner: Owner,
    /// Whether at least one pod of istiod is ready. An external istiod counts as ready.
    pub ready: bool,
    /// Whether istiod runs outside this cluster.
    pub external: bool,
}

/// An authorizer that an extension provider asks over HTTP, and how.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AskedByMesh {
    /// Full name of its Service.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether requests pass while it does not answer.
    pub fails_open: bool,
    /// Headers of its answer that the workload gets, lower case; `*` at an end stands for anything.
    pub upstream_headers: BTreeSet<String>,
}

impl ControlPlane {
    /// `namespace/revision`, as candidates are named to the user.
    pub fn reference(&self) -> String {
        let namespace = if self.external {
            "external"
        } else {
            &self.namespace
        };
        format!("{namespace}/{}", self.revision)
    }

    /// Whether `text` is the revision or one of its tags.
    pub fn answers_to(&self, text: &str) -> bool {
        let text = if text.is_empty() { "default" } else { text };
        self.revision.label() == text || self.tags.iter().any(|tag| tag == text)
    }
}

pub(super) fn discover(live: &Live) -> Vec<ControlPlane> {
    let injectors: Vec<Injector<'_>> = live.webhooks.iter().filter_map(Injector::read).collect();
    let mut found: BTreeMap<(String, String), ControlPlane> = BTreeMap::new();
    for workload in live.deployments.iter().filter_map(Workload::of_deployment) {
        if let Some(plane) = of_deployment(&workload, live, &injectors) {
            found.insert(
                (plane.namespace.clone(), plane.revision.label().to_owned()),
                plane,
            );
        }
    }
    for injector in injectors.iter().filter(|injector| injector.url.is_some()) {
        let Some(revision) = injector.revision() else {
            continue;
        };
        let key = (String::new(), revision.label().to_owned());
        found.entry(key).or_insert_with(|| ControlPlane {
            namespace: String::new(),
            root_namespace: "istio-system".to_owned(),
            tags: tags(&injectors, "", &revision),
            revision,
            version: None,
            extension_providers: Vec::new(),
            authorizers: BTreeMap::new(),
            trust_domain: DEFAULT_TRUST_DOMAIN.to_owned(),
            ambient: false,
            owner: Owner::Unknown,
            ready: true,
            external: true,
        });
    }
    found.into_values().collect()
}

fn of_deployment(
    workload: &Workload<'_>,
    live: &Live,
    injectors: &[Injector<'_>],
) -> Option<ControlPlane> {
    if workload.label("app") != Some("istiod") && workload.pod_label("app") != Some("istiod") {
        return None;
    }
    let namespace = workload.namespace();
    let revision: Revision = workload
        .label("istio.io/rev")
        .or_else(|| workload.pod_label("istio.io/rev"))
        .unwrap_or_default()
        .parse()
        .ok()?;
    let config = mesh_config(&live.config_maps, namespace, &revision);
    let text = |key: &str| {
        config
            .get(key)
            .and_then(Value::as_str)
            .filter(|s| !s.is_empty())
    };
    Some(ControlPlane {
        namespace: namespace.to_owned(),
        version: version(workload),
        root_namespace: text("rootNamespace").unwrap_or(namespace).to_owned(),
        tags: tags(injectors, namespace, &revision),
        extension_providers: providers(&config),
        authorizers: authorizers(&config),
        trust_domain: text("trustDomain")
            .unwrap_or(DEFAULT_TRUST_DOMAIN)
            .to_owned(),
        ambient: is_ambient(workload),
        owner: owner(workload),
        ready: workload.pods.1 > 0,
        external: false,
        revision,
    })
}

fn owner(workload: &Workload<'_>) -> Owner {
    if let Some(app) = workload.label(CHARM_APP) {
        let model = workload.label(CHARM_MODEL).unwrap_or_default().to_owned();
        return Owner::Charm {
            app: app.to_owned(),
            model,
        };
    }
    // istioctl renders the same charts and so says "Helm" too: its own label decides first.
    if workload.label("operator.istio.io/managed").is_some() {
        return Owner::Istioctl;
    }
    let release = annotation(workload.metadata, "meta.helm.sh/release-name");
    if release.is_some() || workload.label("app.kubernetes.io/managed-by") == Some("Helm") {
        return Owner::Helm;
    }
    Owner::Unknown
}

/// The image tag where it is a version, else what the labels say.
fn version(workload: &Workload<'_>) -> Option<String> {
    let image = workload
        .container("discovery")
        .and_then(|container| container.image.as_deref());
    let tag = image.and_then(|image| {
        let name = image.split('@').next().unwrap_or(image);
        let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
        tag.starts_with(|c: char| c.is_ascii_digit()).then_some(tag)
    });
    tag.or_else(|| workload.label("operator.istio.io/version"))
        .or_else(|| workload.label("app.kubernetes.io/version"))
        .map(|version| version.trim_end_matches("-distroless").to_owned())
}

/// The name of the `ConfigMap` with the mesh config of `revision`.
pub fn mesh_config_name(revision: &Revision) -> String {
    revision.suffixed("istio")
}

fn mesh_config(config_maps: &[ConfigMap], namespace: &str, revision: &Revision) -> Value {
    let name = mesh_config_name(revision);
    config_maps
        .iter()
        .find(|map| {
            map.metadata.namespace.as_deref() == Some(namespace)
                && map.metadata.name.as_deref() == Some(name.as_str())
        })
        .and_then(|map| map.data.as_ref()?.get("mesh"))
        .and_then(|text| yaml::parse(text).ok())
        .unwrap_or(Value::Null)
}

fn providers(config: &Value) -> Vec<String> {
    let listed = config.get("extensionProviders").and_then(Value::as_array);
    let names = listed
        .into_iter()
        .flatten()
        .filter_map(|provider| provider.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

/// `service` may be written `namespace/host`.
fn authorizers(config: &Value) -> BTreeMap<String, AskedByMesh> {
    let listed = config.get("extensionProviders").and_then(Value::as_array);
    let read = |provider: &Value| {
        let asked = provider.get("envoyExtAuthzHttp")?;
        // Istio reads either spelling of a field.
        let field = |names: [&str; 2]| names.iter().find_map(|name| asked.get(name));
        let service = asked.get("service")?.as_str()?;
        let headers = field(["headersToUpstreamOnAllow", "headers_to_upstream_on_allow"]);
        let headers = headers.and_then(Value::as_array);
        let fail_open = field(["failOpen", "fail_open"]);
        let read = AskedByMesh {
            host: service.rsplit('/').next().unwrap_or(service).to_owned(),
            port: u16::try_from(asked.get("port")?.as_u64()?).ok()?,
            fails_open: fail_open
                .is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false))),
            upstream_headers: headers
                .into_iter()
                .flatten()
                .filter_map(|name| Some(name.as_str()?.to_ascii_lowercase()))
                .collect(),
        };
        Some((provider.get("name")?.as_str()?.to_owned(), read))
    };
    listed.into_iter().flatten().filter_map(read).collect()
}

fn is_ambient(workload: &Workload<'_>) -> bool {
    let env = workload
        .container("discovery")
        .and_then(|container| container.env.as_ref());
    env.into_iter().flatten().any(|variable| {
        variable.name == "PILOT_ENABLE_AMBIENT" && variable.value.as_deref() == Some("true")
    })
}

/// A webhook configuration that injects sidecars.
struct Injector<'a> {
    metadata_rev: Option<&'a str>,
    tag: Option<&'a str>,
    namespace: Option<&'a str>,
    url: Option<&'a str>,
}

impl<'a> Injector<'a> {
    fn read(configuration: &'a MutatingWebhookConfiguration) -> Option<Self> {
        let hooks = configuration.webhooks.as_deref().unwrap_or_default();
        let hook = hooks
            .iter()
            .find(|hook| hook.name.ends_with("sidecar-injector.istio.io"))?;
        let client = &hook.client_config;
        Some(Self {
            metadata_rev: label(&configuration.metadata, "istio.io/rev"),
            tag: label(&configuration.metadata, "istio.io/tag"),
            namespace: client
                .service
                .as_ref()
                .map(|service| service.namespace.as_str()),
            url: client.url.as_deref(),
        })
    }

    fn revision(&self) -> Option<Revision> {
        self.metadata_rev.unwrap_or_default().parse().ok()
    }
}

fn tags(injectors: &[Injector<'_>], namespace: &str, revision: &Revision) -> Vec<String> {
    let mut tags: Vec<String> = injectors
        .iter()
        .filter(|i| i.namespace.unwrap_or_default() == namespace)
        .filter(|i| i.revision().as_ref() == Some(revision))
        .filter_map(|i| i.tag.map(str::to_owned))
        .collect();
    tags.sort();
    tags.dedup();
    tags
}
