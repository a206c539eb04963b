//! Renders the release's charts and leaves the webhooks to [`super::webhooks`].

use std::collections::BTreeMap;

use helm_chart::{Capabilities, Release, RenderOptions};
use istio_api::kinds::{Kind, lookup};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chart_labels::ChartLabels;
use super::profile::{Components, Placement};
use super::webhooks::{self, WebhookInput};
use super::{Settings, profile, values};
use crate::Revision;
use crate::payload::{ChartName, Payload};

/// The kinds that are built here and not taken from a chart.
const TYPED: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The version taken where the cluster's is not known: the oldest that is supported.
const OLDEST_KUBERNETES: &str = "v1.33.0";

/// A control plane as objects, grouped by what has to be there before what. The objects are as the
/// charts have them; who owns them is the caller's to add.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ControlPlane {
    /// Istio's CRDs.
    pub crds: Vec<Value>,
    /// All of base and istiod but the CRDs, the injector's `ConfigMap`, workloads and webhooks.
    pub config: Vec<Value>,
    /// The injector's `ConfigMap`. A running istiod of another version that reads it may deny every
    /// injection, so on an upgrade it follows the rollout.
    pub injector_config: Vec<Value>,
    /// The istiod Deployment.
    pub istiod: Vec<Value>,
    /// The node agent's objects.
    pub cni: Vec<Value>,
    /// The ambient node proxy's objects.
    pub ztunnel: Vec<Value>,
    /// Each gateway's objects.
    pub gateways: Vec<Gateway>,
    /// Namespace of the cni and ztunnel objects where it is not istiod's.
    pub node_namespaces: Vec<String>,
    /// What the webhooks are built from.
    pub webhook_sources: Vec<WebhookSource>,
}

/// One gateway's objects.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Gateway {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its objects.
    pub objects: Vec<Value>,
}

/// What one chart knows of the webhooks that belong to it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WebhookSource {
    /// Which chart.
    chart: WebhookChart,
    /// The chart's values as its templates saw them at the end, profile merged in.
    effective: Value,
    /// The labels of the chart's objects.
    labels: ChartLabels,
}

/// The charts that have webhooks.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum WebhookChart {
    Base,
    Istiod,
}

impl ControlPlane {
    /// Lets `revision`, whose control plane this is, answer for the default, or takes that from it:
    /// revision tags with their Services, and the cluster's default validator.
    pub fn answer_for_default(&mut self, revision: &Revision, answers: bool) {
        for WebhookSource {
            chart, effective, ..
        } in &mut self.webhook_sources
        {
            let (key, value) = match (chart, answers) {
                (WebhookChart::Istiod, true) if revision.is_default() => continue,
                (WebhookChart::Istiod, true) => {
                    let mut tags = values::revision_tags(effective);
                    if !tags.iter().any(|tag| tag == "default") {
                        tags.push("default".to_owned());
                    }
                    ("revisionTags", json!(tags))
                }
                (WebhookChart::Istiod, false) => ("revisionTags", json!([])),
                (WebhookChart::Base, true) => ("defaultRevision", json!(revision.label())),
                (WebhookChart::Base, false) => ("defaultRevision", json!("")),
            };
            if effective.is_object() {
                effective[key] = value;
            }
        }
        if !answers {
            let is_tag = |o: &Value| !o["metadata"]["labels"]["istio.io/tag"].is_null();
            self.config.retain(|object| !is_tag(object));
        }
    }
}

/// Why the settings do not render.
#[derive(Debug, thiserror::Error)]
pub enum RenderProblem {
    /// The release has no such profile.
    #[error("option profile: {name:?} is unknown, this release has {known}")]
    UnknownProfile {
        /// The name asked for.
        name: String,
        /// What there is, comma separated.
        known: String,
    },
    /// The release has no such platform.
    #[error("option platform: {name:?} is unknown, this release has {known}")]
    UnknownPlatform {
        /// The name asked for.
        name: String,
        /// What there is, comma separated.
        known: String,
    },
    /// A chart refuses the values.
    #[error("option values: chart {chart}")]
    Chart {
        /// The chart's path in the payload.
        chart: &'static str,
        /// The renderer's account of it.
        #[source]
        source: Box<helm_chart::RenderError>,
    },
    /// A gateway's values are refused.
    #[error("option gateways: {name:?}")]
    Gateway {
        /// The gateway.
        name: String,
        /// The renderer's account of it.
        #[source]
        source: Box<helm_chart::RenderError>,
    },
}

/// All objects of the control plane that `settings` ask for, webhooks apart.
///
/// # Errors
/// A profile that the release lacks, or values that a chart refuses.
pub fn control_plane(
    payload: &Payload,
    settings: &Settings,
) -> Result<ControlPlane, RenderProblem> {
    let profile =
        payload
            .profile(&settings.profile)
            .ok_or_else(|| RenderProblem::UnknownProfile {
                name: settings.profile.clone(),
                known: payload.profile_names().collect::<Vec<_>>().join(", "),
            })?;
    let Components {
        base,
        istiod,
        cni,
        ztunnel,
    } = match &settings.components {
        Some(chosen) => profile::components(&profile).only(chosen, &profile),
        None => profile::components(&profile),
    };
    known_platform(payload, settings)?;
    let values = values::chart_values(&profile, settings);
    let mut out = ControlPlane::default();
    for (enabled, name, chart) in [
        (base, ChartName::Base, WebhookChart::Base),
        (istiod, ChartName::Istiod, WebhookChart::Istiod),
    ] {
        if enabled {
            let (objects, source) = webhook_chart(payload, name, chart, &values, settings)?;
            sort_into(&mut out, objects);
            out.webhook_sources.push(source);
        }
    }
    if let Some(placement) = cni {
        out.cni = node_component(
            payload,
            ChartName::Cni,
            &values,
            settings,
            placement,
            &mut out,
        )?;
    }
    if let Some(placement) = ztunnel {
        out.ztunnel = node_component(
            payload,
            ChartName::Ztunnel,
            &values,
            settings,
            placement,
            &mut out,
        )?;
    }
    for gateway in &settings.gateways {
        let namespace = gateway
            .namespace
            .as_deref()
            .unwrap_or(settings.namespace.as_str());
        let mut values = gateway.chart_values(settings.revision.chart_value());
        if !settings.image_pull_secrets.is_empty() && values.get("imagePullSecrets").is_none() {
            let named = settings.image_pull_secrets.iter();
            values["imagePullSecrets"] = named.map(|name| json!({"name": name})).collect();
        }
        let rendered = render(
            payload,
            ChartName::Gateway,
            &gateway.name,
            namespace,
            &values,
            settings,
        )
        .map_err(|source| RenderProblem::Gateway {
            name: gateway.name.clone(),
            source,
        })?;
        out.gateways.push(Gateway {
            namespace: namespace.to_owned(),
            name: gateway.name.clone(),
            objects: rendered.objects,
        });
    }
    Ok(out)
}

/// Refuses a platform that the charts do not know, by the names they do know.
fn known_platform(payload: &Payload, settings: &Settings) -> Result<(), RenderProblem> {
    let Some(name) = &settings.platform else {
        return Ok(());
    };
    let known = payload.platforms();
    if known.contains(name.as_str()) {
        return Ok(());
    }
    Err(RenderProblem::UnknownPlatform {
        name: name.clone(),
        known: known.into_iter().collect::<Vec<_>>().join(", "),
    })
}

/// The control plane's injectors and validators. `live_failure_policies` has the `failurePolicy` of
/// each validator that exists, by the name of its configuration.
pub fn webhooks_of(
    control_plane: &ControlPlane,
    settings: &Settings,
    live_failure_policies: &BTreeMap<String, String>,
) -> Vec<Value> {
    let sources = &control_plane.webhook_sources;
    sources
        .iter()
        .flat_map(|s| typed_webhooks(s, settings, live_failure_policies))
        .collect()
}

/// The objects that `helm template` gives for one chart, typed webhooks in place of the chart's.
///
/// # Errors
/// Values that the chart refuses.
pub fn chart_with_webhooks(
    payload: &Payload,
    name: ChartName,
    values: &Value,
    settings: &Settings,
) -> Result<Vec<Value>, RenderProblem> {
    let chart = match name {
        ChartName::Base => WebhookChart::Base,
        ChartName::Istiod => WebhookChart::Istiod,
        ChartName::Default | ChartName::Gateway | ChartName::Cni | ChartName::Ztunnel => {
            let namespace = settings.namespace.as_str();
            return render(payload, name, name.release(), namespace, values, settings)
                .map(|rendered| rendered.objects)
                .map_err(|source| RenderProblem::Chart {
                    chart: name.path(),
                    source,
                });
        }
    };
    let (mut objects, source) = webhook_chart(payload, name, chart, values, settings)?;
    objects.extend(typed_webhooks(&source, settings, &BTreeMap::new()));
    Ok(objects)
}

/// One chart's objects without its webhooks, and what those are built from.
fn webhook_chart(
    payload: &Payload,
    name: ChartName,
    chart: WebhookChart,
    values: &Value,
    settings: &Settings,
) -> Result<(Vec<Value>, WebhookSource), RenderProblem> {
    let release = name.release();
    let rendered = render(
        payload,
        name,
        release,
        settings.namespace.as_str(),
        values,
        settings,
    )
    .map_err(|source| RenderProblem::Chart {
        chart: name.path(),
        source,
    })?;
    let loaded = payload.chart(name);
    let source = WebhookSource {
        chart,
        effective: rendered.values,
        labels: ChartLabels::new(release, &loaded.name, &loaded.version, &loaded.app_version),
    };
    let objects = rendered
        .objects
        .into_iter()
        .filter(|o| !is_typed(o))
        .collect();
    Ok((objects, source))
}

/// The webhooks that belong to one chart.
fn typed_webhooks(
    source: &WebhookSource,
    settings: &Settings,
    live_failure_policies: &BTreeMap<String, String>,
) -> Vec<Value> {
    let WebhookSource {
        chart,
        effective,
        labels,
    } = source;
    let input = &WebhookInput {
        namespace: settings.namespace.as_str(),
        revision: &settings.revision,
        values: effective,
        labels,
        live_failure_policies,
    };
    let scope = effective["global"]["resourceScope"]
        .as_str()
        .unwrap_or("all");
    if !matches!(scope, "all" | "cluster") {
        return Vec::new();
    }
    let mut out = Vec::new();
    match chart {
        WebhookChart::Base => {
            let default_revision = effective["defaultRevision"].as_str().unwrap_or_default();
            if !default_revision.is_empty() {
                out.push(object(&webhooks::default_validator(
                    input,
                    default_revision,
                )));
            }
        }
        WebhookChart::Istiod => {
            if effective["global"]["operatorManageWebhooks"].as_bool() != Some(true) {
                out.push(object(&webhooks::injector(input)));
                for tag in values::revision_tags(effective) {
                    out.push(object(&webhooks::tag_injector(input, &tag)));
                }
            }
            let remote = &effective["istiodRemote"];
            let here = remote["enabled"].as_bool() != Some(true)
                || effective["global"]["configCluster"].as_bool() == Some(true)
                || remote["enabledLocalInjectorIstiod"].as_bool() == Some(true);
            if here && effective["global"]["configValidation"].as_bool() == Some(true) {
                out.push(object(&webhooks::validator(input)));
            }
        }
    }
    out
}

fn node_component(
    payload: &Payload,
    name: ChartName,
    values: &Value,
    settings: &Settings,
    placement: Placement,
    out: &mut ControlPlane,
) -> Result<Vec<Value>, RenderProblem> {
    let namespace = match placement {
        Placement::WithIstiod => settings.namespace.as_str().to_owned(),
        Placement::Namespace(namespace) => {
            if !out.node_namespaces.contains(&namespace) {
                out.node_namespaces.push(namespace.clone());
            }
            namespace
        }
    };
    render(payload, name, name.release(), &namespace, values, settings)
        .map(|rendered| rendered.objects)
        .map_err(|source| RenderProblem::Chart {
            chart: name.path(),
            source,
        })
}

struct Rendered {
    objects: Vec<Value>,
    /// The chart's values as its templates saw them at the end.
    values: Value,
}

fn render(
    payload: &Payload,
    name: ChartName,
    release: &str,
    namespace: &str,
    values: &Value,
    settings: &Settings,
) -> Result<Rendered, Box<helm_chart::RenderError>> {
    let version = settings
        .kubernetes_version
        .as_deref()
        .unwrap_or(OLDEST_KUBERNETES);
    let capabilities = Capabilities::of_version(version);
    let mut options = RenderOptions::new(Release::install(release, namespace), capabilities);
    let chart = payload.chart(name);
    let rendered = match chart.render(values, &options) {
        Err(refusal) if is_of_schema(&refusal) && refuses_every_value(chart, &options) => {
            options.skip_schema_validation = true;
            chart.render(values, &options)
        }
        rendered => rendered,
    }?;
    let mut objects = rendered.objects()?;
    for object in &mut objects {
        fill_namespace(object, namespace);
    }
    Ok(Rendered {
        objects,
        values: rendered.values,
    })
}

fn is_of_schema(error: &helm_chart::RenderError) -> bool {
    matches!(error, helm_chart::RenderError::Schema { .. })
}

/// Whether the chart's schema is one that takes no value at all, as those of gateway charts up to
/// Istio 1.26 do where it is read as its draft says: such a schema says nothing about the values.
fn refuses_every_value(chart: &helm_chart::Chart, options: &RenderOptions) -> bool {
    let harmless = json!({"name": "gateway"});
    let refusal = chart.render(&harmless, options).err();
    refusal.is_some_and(|refusal| is_of_schema(&refusal))
}

/// Helm gives the release's namespace to a namespaced object that names none.
fn fill_namespace(object: &mut Value, namespace: &str) {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = object["kind"].as_str().unwrap_or_default();
    let namespaced = lookup(group, kind).is_some_and(Kind::is_namespaced);
    if namespaced && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = Value::String(namespace.to_owned());
    }
}

fn is_typed(object: &Value) -> bool {
    object["kind"]
        .as_str()
        .is_some_and(|kind| TYPED.contains(&kind))
}

fn object<T: Serialize>(typed: &T) -> Value {
    // The typed objects hold only strings, lists and ordered maps of them: nothing that could fail.
    serde_json::to_value(typed).unwrap_or_default()
}

fn sort_into(out: &mut ControlPlane, objects: Vec<Value>) {
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match object["kind"].as_str().unwrap_or_default() {
            "CustomResourceDefinition" => out.crds.push(object),
            "Deployment" => out.istiod.push(object),
            "ConfigMap" if name.starts_with("istio-sidecar-injector") => {
                out.injector_config.push(object);
            }
            _ => out.config.push(object),
        }
    }
}
