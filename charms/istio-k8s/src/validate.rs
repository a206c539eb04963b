//! Decides, from what was read, whether there is something to install and what. Pure.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{Event, ModelView, Problem};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube_apply::{Inventory, Object};
use mesh::control_plane::render::webhooks_of;
use mesh::control_plane::{ControlPlane, Settings};
use mesh::injection::{is_injector, overlaps};
use semver::Version;
use serde_json::Value;

use crate::inputs::{Inputs, inputs};
use crate::observe::{Release, ReleaseTrouble, View, inventory};

/// What to do.
#[derive(Debug)]
pub enum Validated {
    /// This unit does not lead: it touches nothing.
    Standby,
    /// The application goes: everything of its own goes with it, CRDs and namespaces stay.
    Leave,
    /// Something is wrong and everything stays as it is; what is known of the settings.
    Stay(Option<Box<Settings>>),
    /// Install or keep this.
    Run(Box<Installation>),
}

/// A control plane to install or keep.
#[derive(Debug)]
pub struct Installation {
    /// The settings it was rendered from.
    pub settings: Settings,
    /// Its objects, webhooks apart.
    pub control_plane: ControlPlane,
    /// Its webhooks.
    pub webhooks: Vec<Value>,
    /// Version of the release.
    pub version: String,
    /// Whether an istiod of another image runs in its place now, or may still: a rollout that an
    /// earlier hook began is not over while pods of the old istiod are left.
    pub replaces: bool,
}

/// Checks everything that can be checked before the first write.
pub fn validate(view: &ModelView, cluster: &View) -> (Validated, Vec<Problem>) {
    if view.context.event == Event::Remove && view.planned_units == 0 {
        return (Validated::Leave, Vec::new());
    }
    let acting = view.leader || view.action.is_some();
    if !acting {
        return (Validated::Standby, Vec::new());
    }
    let Inputs {
        options,
        degraded,
        authorizers: _,
    } = inputs(view);
    let options = match options {
        Ok(options) => options,
        Err(problems) => return (Validated::Stay(None), problems),
    };
    let installation = asked_version(view, cluster, options.version.as_ref())
        .and_then(|()| installation(view, cluster, &options.settings));
    let settings = options.settings;
    match installation {
        Ok(installation) => (Validated::Run(Box::new(installation)), degraded),
        Err(problem) => (Validated::Stay(Some(Box::new(settings))), vec![problem]),
    }
}

fn installation(
    view: &ModelView,
    cluster: &View,
    settings: &Settings,
) -> Result<Installation, Problem> {
    let release = release(view, cluster)?;
    let inventory = inventory(view);
    let ours = cluster.istiods.iter().find(|d| inventory.owns(d));
    let control_plane = &release.control_plane;
    let webhooks = webhooks_of(control_plane, settings, &live_failure_policies(cluster));
    if let Some(deployment) = ours {
        stays_in_place(view, deployment, settings)?;
        stays_whole(view, control_plane)?;
        not_older(view, deployment, &release.version)?;
    }
    each_object_once(control_plane, &webhooks)?;
    no_second_injector(view, cluster, &inventory, &webhooks, ours.is_some())?;
    let wanted = control_plane
        .istiod
        .first()
        .map(|d| image(&d["spec"]["template"]["spec"]));
    let running = ours.map(|d| image(&d.value()["spec"]["template"]["spec"]));
    let replaces = ours.is_some_and(has_old_pods) || (running.is_some() && running != wanted);
    Ok(Installation {
        settings: settings.clone(),
        control_plane: control_plane.clone(),
        webhooks,
        version: release.version.clone(),
        replaces,
    })
}

/// The option `version` and the attached release are to agree.
fn asked_version(view: &ModelView, cluster: &View, asked: Option<&Version>) -> Result<(), Problem> {
    let attached = &release(view, cluster)?.version;
    match asked {
        Some(asked) if asked.to_string() != *attached => Err(Problem::blocked(format!(
            "option version: \"{asked}\" is asked for, the resource istio-release is {attached}"
        ))
        .with_hint(format!("juju config {} --reset version", view.context.app))),
        _ => Ok(()),
    }
}

fn release<'a>(view: &ModelView, cluster: &'a View) -> Result<&'a Release, Problem> {
    let app = &view.context.app;
    let resource = |what: String| {
        Problem::blocked(format!("resource istio-release{what}"))
            .with_hint(format!("juju attach-resource {app} istio-release=FILE"))
    };
    let release = match &cluster.release {
        Some(Ok(release)) => release,
        None | Some(Err(ReleaseTrouble::Missing)) => {
            return Err(resource(" is not attached".to_owned()));
        }
        Some(Err(ReleaseTrouble::Unrenderable(why))) => {
            return Err(Problem::blocked(why.clone()));
        }
        Some(Err(ReleaseTrouble::Damaged(why))) => return Err(resource(format!(": {why}"))),
        Some(Err(ReleaseTrouble::Pinned(found))) => {
            return Err(resource(format!(
                " is sha256 {found:.8}…, not release-sha256"
            )));
        }
    };
    Ok(release)
}

/// A running control plane neither moves nor changes its revision by an option: that would start
/// a second one and take the first away under its proxies.
fn stays_in_place(view: &ModelView, istiod: &Object, settings: &Settings) -> Result<(), Problem> {
    let app = &view.context.app;
    let namespace = istiod.namespace().unwrap_or_default();
    if namespace != settings.namespace.as_str() {
        return Err(Problem::blocked(format!(
            "option namespace: istiod runs in {namespace}, it is not moved by an option"
        ))
        .with_hint(format!("juju config {app} namespace={namespace}")));
    }
    match istiod.label("istio.io/rev") {
        Some(revision) if revision != settings.revision.label() => Err(Problem::blocked(format!(
            "option revision: istiod runs as {revision}, its revision does not change"
        ))
        .with_hint(format!("juju config {app} revision={revision}"))),
        _ => Ok(()),
    }
}

/// Options under which nothing of istiod is rendered would prune the running one, under its proxies
/// and behind webhooks that refuse every pod without it.
fn stays_whole(view: &ModelView, control_plane: &ControlPlane) -> Result<(), Problem> {
    if !control_plane.istiod.is_empty() {
        return Ok(());
    }
    let app = &view.context.app;
    Err(Problem::blocked(
        "options profile and values leave out the istiod that runs; remove the application instead",
    )
    .with_hint(format!("juju config {app} profile=default")))
}

/// An older release lacks fields of the newer one's definitions, and the API server drops what it
/// does not know from everybody's objects.
fn not_older(view: &ModelView, istiod: &Object, release: &str) -> Result<(), Problem> {
    let running = istiod
        .label("app.kubernetes.io/version")
        .unwrap_or_default();
    let (Ok(ours), Ok(live)) = (Version::parse(release), Version::parse(running)) else {
        return Ok(());
    };
    if (ours.major, ours.minor) >= (live.major, live.minor) {
        return Ok(());
    }
    Err(Problem::blocked(format!(
        "Istio {running} runs, the resource istio-release is {release}"
    ))
    .with_hint(format!(
        "juju attach-resource {} istio-release=FILE",
        view.context.app
    )))
}

/// Two objects of one name would overwrite each other in every hook; one without a name is no
/// object.
fn each_object_once(control_plane: &ControlPlane, webhooks: &[Value]) -> Result<(), Problem> {
    let ControlPlane {
        crds,
        config,
        injector_config,
        istiod,
        cni,
        ztunnel,
        gateways,
        node_namespaces: _,
        webhook_sources: _,
    } = control_plane;
    let parts = [crds, config, injector_config, istiod, cni, ztunnel];
    let of_gateways = gateways.iter().flat_map(|gateway| &gateway.objects);
    let mut seen = BTreeSet::new();
    for object in parts
        .into_iter()
        .flatten()
        .chain(webhooks)
        .chain(of_gateways)
    {
        let id = Object::new(object.clone())
            .map_err(|why| Problem::blocked(format!("option values: the charts render {why}")))?
            .id();
        if !seen.insert(id.clone()) {
            return Err(Problem::blocked(format!(
                "option gateways: {id} would be there twice, give the gateway another name"
            )));
        }
    }
    Ok(())
}

/// A pod that two injectors take is injected twice, so ours does not come beside a foreign one.
fn no_second_injector(
    view: &ModelView,
    cluster: &View,
    inventory: &Inventory,
    webhooks: &[Value],
    running: bool,
) -> Result<(), Problem> {
    let foreign: Vec<MutatingWebhookConfiguration> = cluster
        .mutating
        .iter()
        .filter(|c| !inventory.owns(c))
        .filter_map(|c| c.typed().ok())
        .filter(is_injector)
        .collect();
    let ours: Vec<MutatingWebhookConfiguration> = webhooks
        .iter()
        .filter(|o| o["kind"] == "MutatingWebhookConfiguration")
        .filter_map(|o| serde_json::from_value(o.clone()).ok())
        .collect();
    let Some(overlap) = overlaps(&ours, &foreign).into_iter().next() else {
        return Ok(());
    };
    let problem = Problem::blocked(format!(
        "{} of another Istio injects the same pods",
        overlap.other
    ));
    if running {
        // Its revision does not change; which of the two gives way is a person's decision.
        return Err(problem);
    }
    Err(problem.with_hint(format!("juju config {} revision=NAME", view.context.app)))
}

/// `failurePolicy` of every validator: istiod closes it once it answers, and a reconcile must not
/// open it again.
fn live_failure_policies(cluster: &View) -> BTreeMap<String, String> {
    let policy = |config: &Object| {
        let policy = config.value()["webhooks"][0]["failurePolicy"].as_str()?;
        Some((config.name().to_owned(), policy.to_owned()))
    };
    cluster.validating.iter().filter_map(policy).collect()
}

/// Whether pods of an older generation may run.
fn has_old_pods(deployment: &Object) -> bool {
    let number = |pointer| {
        deployment
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    number("/status/observedGeneration") < number("/metadata/generation")
        || number("/status/updatedReplicas") < number("/status/replicas")
}

fn image(pod_spec: &Value) -> Option<String> {
    pod_spec["containers"][0]["image"]
        .as_str()
        .map(str::to_owned)
}
