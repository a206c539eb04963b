//! Decides, from what was read, whether there is something to install and what. Pure.

mod injectors;
mod revisions;

use std::collections::BTreeSet;

use juju_charm::{Event, ModelView, Problem};
use kube_apply::Object;
use mesh::Revision;
use mesh::control_plane::{ControlPlane, Settings};
use semver::Version;
use serde_json::Value;

use self::injectors::no_second_injector;
use self::revisions::asked_revisions;
use crate::config::{Options, UpgradeStrategy};
use crate::inputs::{Inputs, inputs};
use crate::observe::{RELEASE, Release, ReleaseTrouble, View, inventory};
use crate::upgrade::assemble::assemble;
pub use crate::upgrade::assemble::{Installation, Kept, Order};
use crate::upgrade::checks;
use crate::upgrade::target::Target;
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
        Some(journal) if journal.is_unreadable() => Some(Problem::blocked(
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
