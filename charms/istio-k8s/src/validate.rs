//! Decides, from what was read, whether there is something to install and what. Pure.

use std::collections::BTreeSet;

use juju_charm::{Event, ModelView, Problem};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube_apply::{Inventory, Object};
use mesh::Revision;
use mesh::control_plane::{ControlPlane, Settings};
use mesh::injection::{is_injector, overlaps};
use mesh::upgrade::finding;
use semver::Version;
use serde_json::Value;

use crate::actions;
use crate::config::{Options, UpgradeStrategy};
use crate::inputs::{Inputs, inputs};
use crate::observe::{Proxies, RELEASE, Release, ReleaseTrouble, View, inventory};
use crate::upgrade::assemble::assemble;
pub use crate::upgrade::assemble::{Installation, Kept, Order};
use crate::upgrade::checks;
use crate::upgrade::target::{Intent, Target};
use crate::{authority, gateway_api, singletons};

/// What to do.
#[derive(Debug)]
pub enum Validated {
    /// This unit does not lead: it touches nothing.
    Standby,
    /// The application goes: everything of its own goes with it, CRDs and namespaces stay.
    Leave,
    /// Something is wrong and everything stays as it is; what is known of the settings.
    Stay(Option<Box<Settings>>),
    /// A migration is under way, or awaited: until its end the application touches nothing.
    Aside(Box<Settings>),
    /// Install or keep this.
    Run(Box<Installation>),
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
    if let Some(problem) = migrating(view, cluster) {
        return (Validated::Aside(Box::new(options.settings)), vec![problem]);
    }
    let installation = asked_version(view, cluster, options.version.as_ref())
        .and_then(|()| installation(view, cluster, &options));
    match installation {
        Ok(installation) => {
            let authority = authority::problem(view, cluster);
            let (_, gateway_api) = gateway_api::wanted(view, cluster);
            let problems = degraded
                .into_iter()
                .chain(authority)
                .chain(gateway_api)
                .collect();
            (Validated::Run(Box::new(installation)), problems)
        }
        Err(problem) => {
            let settings = Box::new(options.settings);
            (Validated::Stay(Some(settings)), vec![problem])
        }
    }
}

/// Why the application stands aside: a migration has begun that has not ended, or the option
/// `migrate-from` names an Istio that has not been moved yet.
fn migrating(view: &ModelView, cluster: &View) -> Option<Problem> {
    let app = &view.context.app;
    let hint = format!("juju run {app}/leader migrate");
    match &cluster.migration {
        Some(journal) if journal.unreadable => Some(Problem::blocked(
            "ConfigMap istio-migration/journal of a migration cannot be read",
        )),
        Some(journal) if !journal.has_ended() => {
            let way = if journal.back {
                "is being taken back"
            } else {
                "is under way"
            };
            Some(Problem::waiting(format!("migration {} {way}", journal.plan)).with_hint(hint))
        }
        Some(journal) if !journal.back => None,
        _ => {
            let from = view.config.str("migrate-from").map(str::trim);
            let from = from.filter(|from| !from.is_empty())?;
            let message = format!("waits for the migration of the Istio in {from}");
            Some(Problem::blocked(message).with_hint(hint))
        }
    }
}

fn installation(
    view: &ModelView,
    cluster: &View,
    options: &Options,
) -> Result<Installation, Problem> {
    let release = release(view, cluster)?;
    let target = cluster
        .target
        .as_ref()
        .ok_or_else(|| Problem::waiting("where the release goes is not known"))?;
    let inventory = inventory(view);
    let runs = !cluster.fleet.running.is_empty();
    for istiod in cluster.istiods.iter().filter(|d| inventory.owns(d)) {
        stays_in_place(view, istiod, &release.settings)?;
    }
    stays_its_revision(view, cluster, target, options.upgrade_strategy)?;
    if runs {
        stays_whole(view, &release.control_plane)?;
    }
    asked_revisions(view, cluster, target)?;
    let installation = assemble(view, cluster, release, target, retries(view));
    if installation.failed.is_none() {
        let findings = checks::findings(view, cluster, target, release);
        if let Some(refusal) = checks::refusal(&findings) {
            return Err(refusal);
        }
    }
    each_object_once(&installation.control_plane, &installation.webhooks)?;
    singletons::check(
        view,
        cluster,
        &installation.settings,
        &installation.control_plane,
        &installation.webhooks,
    )?;
    no_second_injector(view, cluster, &inventory, &installation.webhooks, runs)?;
    Ok(installation)
}

/// Whether what failed before is to be tried again.
fn retries(view: &ModelView) -> bool {
    view.action
        .as_ref()
        .is_some_and(|action| action.name == "upgrade")
}

/// What an action asks of a revision is about one of ours, and one that may go.
fn asked_revisions(view: &ModelView, cluster: &View, target: &Target) -> Result<(), Problem> {
    let app = &view.context.app;
    let fleet = &cluster.fleet;
    let known = |revision: &str| {
        fleet.running.contains_key(revision) || fleet.records.contains_key(revision)
    };
    let intent = view
        .action
        .as_ref()
        .map_or(Ok(Intent::Keep), actions::intent);
    match intent.map_err(Problem::blocked)? {
        Intent::Rollback(Some(revision)) if !known(revision.label()) => {
            return Err(Problem::blocked(format!(
                "parameter revision: {revision} is no revision of {app}"
            )));
        }
        Intent::Remove(revision) => removable(view, cluster, target, &revision)?,
        Intent::Promote if !fleet.records.contains_key(target.revision.label()) => {
            let revision = &target.revision;
            let why = format!("revision {revision} has not come up, so it is not promoted");
            return Err(Problem::waiting(why));
        }
        Intent::Keep | Intent::Promote | Intent::Rollback(_) => {}
    }
    // What is not recorded cannot be kept: it would be pruned under its proxies.
    let unknown = target
        .others
        .iter()
        .find(|other| !fleet.records.contains_key(*other));
    match unknown {
        Some(other) => Err(Problem::blocked(format!(
            "revision {other} has not come up, so it cannot be kept beside {}",
            target.revision
        ))
        .with_hint(format!(
            "juju run {app}/leader remove-revision revision={other}"
        ))),
        None => Ok(()),
    }
}

/// A revision goes when nothing depends on it.
fn removable(
    view: &ModelView,
    cluster: &View,
    target: &Target,
    revision: &Revision,
) -> Result<(), Problem> {
    let app = &view.context.app;
    if *revision == target.revision {
        let why = format!("revision {revision} is what the attached release runs as");
        return Err(Problem::blocked(why));
    }
    if target.holder.as_ref() == Some(revision) {
        let why = format!("revision {revision} answers for the default");
        return Err(Problem::blocked(why).with_hint(format!("juju run {app}/leader promote")));
    }
    let Some(Proxies { proxies, failures }) = &cluster.proxies else {
        return Err(Problem::waiting("the proxies were not read"));
    };
    let left: Vec<String> = proxies
        .iter()
        .filter(|proxy| proxy.revision == revision.label())
        .map(|proxy| proxy.proxy.clone())
        .collect();
    if !left.is_empty() {
        let why = format!("revision {revision} still serves {}", finding::few(&left));
        let hint = format!("juju run {app}/leader proxy-status revision={revision}");
        return Err(Problem::blocked(why).with_hint(hint));
    }
    if let Some(failure) = failures.first() {
        return Err(Problem::blocked(format!(
            "which proxies are left is not known: {failure}"
        )));
    }
    Ok(())
}

/// The option `version` and the attached release are to agree.
fn asked_version(view: &ModelView, cluster: &View, asked: Option<&Version>) -> Result<(), Problem> {
    let release = release(view, cluster)?;
    let goal = cluster.goal.as_ref();
    let attached = goal.map_or(&release.version, |goal| &goal.version);
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
    match &cluster.release {
        Some(Ok(release)) => Ok(release),
        Some(Err(ReleaseTrouble::Unrenderable(why))) => Err(Problem::blocked(why.clone())),
        Some(Err(trouble)) => {
            let message = format!("resource {RELEASE}{}", trouble.why());
            let hint = format!("juju attach-resource {app} {RELEASE}=FILE");
            Err(Problem::blocked(message).with_hint(hint))
        }
        // The options are in order, or this would not be asked.
        None => Err(Problem::blocked(
            "only the leader renders the release: run it on the unit that leads",
        )),
    }
}

/// A running control plane does not move by an option: that would start a second one and take the
/// first away under its proxies.
fn stays_in_place(view: &ModelView, istiod: &Object, settings: &Settings) -> Result<(), Problem> {
    let app = &view.context.app;
    let namespace = istiod.namespace().unwrap_or_default();
    if namespace == settings.namespace.as_str() {
        return Ok(());
    }
    Err(Problem::blocked(format!(
        "option namespace: istiod runs in {namespace}, it is not moved by an option"
    ))
    .with_hint(format!("juju config {app} namespace={namespace}")))
}

/// Another revision comes up beside the running one only where that is asked for.
fn stays_its_revision(
    view: &ModelView,
    cluster: &View,
    target: &Target,
    strategy: UpgradeStrategy,
) -> Result<(), Problem> {
    let running = &cluster.fleet.running;
    if strategy == UpgradeStrategy::Canary || running.contains_key(target.revision.label()) {
        return Ok(());
    }
    let held = target.holder.as_ref().map(Revision::label);
    let held = held.filter(|held| running.contains_key(*held));
    let Some(revision) = held.or_else(|| running.keys().next().map(String::as_str)) else {
        return Ok(());
    };
    let app = &view.context.app;
    Err(Problem::blocked(format!(
        "option revision: istiod runs as {revision}, its revision does not change"
    ))
    .with_hint(format!("juju config {app} revision={revision}")))
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
        .filter(|c| !inventory.owns(c) && !is_adopted(view, c, webhooks))
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

/// Whether the action `adopt` would take the configuration over: it is one of ours by its name, or
/// leads to the same istiod.
fn is_adopted(view: &ModelView, config: &Object, webhooks: &[Value]) -> bool {
    let adopts = view.action.as_ref().is_some_and(|a| a.name == "adopt");
    let service = |config: &Value| config["webhooks"][0]["clientConfig"]["service"].clone();
    adopts
        && webhooks.iter().any(|ours| {
            let (theirs, ours_leads_to) = (service(config.value()), service(ours));
            ours["metadata"]["name"] == config.name()
                || (theirs["name"].is_string()
                    && theirs["name"] == ours_leads_to["name"]
                    && theirs["namespace"] == ours_leads_to["namespace"])
        })
}
