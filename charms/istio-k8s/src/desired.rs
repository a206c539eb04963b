//! The objects the cluster should hold, in the order in which they may come. Pure.
//!
//! The order is what makes an upgrade invisible: a running istiod that reads the injector's `ConfigMap`
//! of another version may deny every injection, so going forward that `ConfigMap` waits for the new
//! istiod, and going back it comes before it; webhooks follow istiod, for a webhook without a server
//! behind it refuses pods; gateways come after the webhooks, for their pods get their image from the
//! injector. A promotion gives before it takes: for a moment both revisions inject, never none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use juju_charm::ModelView;
use kube_apply::{Gate, Object, ObjectRef, ObjectsSet, Stage};
use mesh::control_plane::hardening::policies;
use mesh::control_plane::render::{Gateway, webhooks_of};
use mesh::control_plane::{ControlPlane, Settings};
use mesh::upgrade::promotion;
use serde_json::{Value, json};

use crate::observe::inventory;
use crate::upgrade::flow::{Fallback, Replacement};
use crate::upgrade::images;
use crate::validate::{Installation, Kept, Order, Validated};
use crate::work::Objects;

/// How long one hook waits for rollouts, all together. What is not there by then is waited for by
/// the next hook.
const WAIT: Duration = Duration::from_secs(90);

/// Labels by which `istioctl uninstall --purge` finds what to delete; ours are not its to delete.
const PURGE_LABELS: [&str; 2] = [
    "operator.istio.io/component",
    "install.operator.istio.io/owning-resource",
];

/// Name of the last of the stages that are judged before anything else follows.
const LAST_JUDGED: &str = "webhooks";
/// Name of the stage that holds what is remembered of the revision.
pub(crate) const RECORD: &str = "record";
/// Name of the stage in which new tags come parked. What has been through it must not go again.
pub(crate) const NEW_TAGS: &str = "new tags";

/// The objects to apply, or none where nothing may be touched.
pub fn desired(view: &ModelView, validated: &Validated) -> Option<Objects> {
    match validated {
        Validated::Standby | Validated::Stay(_) => None,
        Validated::Aside(_) => view.action.is_none().then(|| Objects {
            set: set(view, Vec::new(), Vec::new()),
            replacement: None,
            partial: false,
            aside: true,
        }),
        Validated::Leave => Some(Objects {
            set: set(view, Vec::new(), Vec::new()),
            replacement: None,
            partial: false,
            aside: false,
        }),
        Validated::Run(installation) => {
            let stages = all_stages(view, installation);
            Some(Objects {
                replacement: replacement(view, installation, &stages),
                set: set(view, stages, installation.retain.clone()),
                partial: false,
                aside: false,
            })
        }
    }
}

fn set(view: &ModelView, stages: Vec<Stage>, retain: Vec<ObjectRef>) -> ObjectsSet {
    ObjectsSet {
        inventory: inventory(view),
        stages,
        retain,
        wait: WAIT,
        // Half a control plane is worse than none.
        whole: true,
    }
}

/// What is proven and judged where another istiod comes in.
fn replacement(view: &ModelView, of: &Installation, stages: &[Stage]) -> Option<Replacement> {
    let change = of.change.as_ref()?;
    let judged = stages
        .iter()
        .rposition(|stage| stage.name == LAST_JUDGED)
        .map_or(stages.len(), |last| last + 1);
    let fallback = change.fallback.as_ref().map(|before| Fallback {
        version: before.version.clone(),
        set: set(view, all_stages(view, before), before.retain.clone()),
    });
    let istiod = of.control_plane.istiod.first();
    Some(Replacement {
        version: of.version.clone(),
        digest: change.digest.clone(),
        judged: set(view, stages[..judged].to_vec(), Vec::new()),
        pulling: change.pulling.clone(),
        control: change.control.clone(),
        injects: change.injects.then(|| {
            (
                of.settings.revision.clone(),
                images::proxy_image(&of.control_plane),
            )
        }),
        namespace: of.settings.namespace.to_string(),
        istiod: istiod.and_then(crate::upgrade::record::id),
        fallback,
    })
}

/// All objects of a fresh installation, in the order in which they are applied.
pub fn objects(control_plane: &ControlPlane, settings: &Settings) -> Vec<Value> {
    let webhooks = webhooks_of(control_plane, settings, &BTreeMap::new());
    let mut stages = before_webhooks(settings, control_plane, Order::Fresh);
    stages.push(webhooks_stage(&webhooks));
    stages.extend(after_webhooks(control_plane));
    stages
        .iter()
        .flat_map(|s| &s.objects)
        .map(|o| o.value().clone())
        .collect()
}

fn all_stages(view: &ModelView, of: &Installation) -> Vec<Stage> {
    let Installation {
        settings,
        control_plane,
        webhooks,
        version: _,
        order,
        kept,
        new_tags,
        record,
        retain: _,
        failed,
        change: _,
        on_the_way: _,
        answers: _,
    } = of;
    let app = view.context.app.as_str();
    let record = record.as_ref().map(|record| {
        let mut record = record.clone();
        record.failed.clone_from(failed);
        record.object(app)
    });
    let record = |when: bool| {
        let object = record.clone().filter(|_| when);
        stage(RECORD, object.into_iter(), &[])
    };
    // That an attempt failed is noted before anything is put back, so that a hook that is cut off is
    // followed by one that goes on putting back.
    let mut out = vec![record(failed.is_some() || *order == Order::Restored)];
    out.extend(before_webhooks(settings, control_plane, *order));
    let parked = webhooks
        .iter()
        .filter(|webhook| {
            let name = webhook["metadata"]["name"].as_str().unwrap_or_default();
            new_tags.contains(name)
        })
        .cloned()
        .map(promotion::parked);
    out.push(stage(NEW_TAGS, parked, &[Gate::CaBundle]));
    out.push(webhooks_stage(webhooks));
    out.extend(kept_stages(control_plane, webhooks, kept));
    out.extend(after_webhooks(control_plane));
    let owner = format!("{}-{}", view.context.model_name, app);
    out.extend(hardening(settings, &owner));
    out.push(record(failed.is_none() && *order != Order::Restored));
    out.retain(|stage| !stage.objects.is_empty());
    out
}

/// What has to be there before the webhooks.
fn before_webhooks(settings: &Settings, control_plane: &ControlPlane, order: Order) -> Vec<Stage> {
    let ControlPlane {
        crds,
        config,
        injector_config,
        istiod,
        cni: _,
        ztunnel: _,
        gateways,
        node_namespaces,
        webhook_sources: _,
    } = control_plane;
    let mut namespaces = vec![settings.namespace.as_str().to_owned()];
    namespaces.extend(node_namespaces.iter().cloned());
    namespaces.extend(gateways.iter().map(|g| g.namespace.clone()));
    namespaces.sort();
    namespaces.dedup();
    let mut out = vec![
        stage(
            "namespaces",
            namespaces.iter().map(|n| namespace(n)),
            &[Gate::NamespaceActive],
        ),
        stage(
            "custom resource definitions",
            crds.iter().cloned(),
            &[Gate::CrdEstablished],
        ),
    ];
    let main = config.iter().chain(istiod).cloned();
    let templates = || {
        let templates = injector_config.iter().cloned();
        stage("injector templates", templates, &[])
    };
    match order {
        Order::Fresh => {
            let all = main.chain(injector_config.iter().cloned());
            out.push(stage("istiod", all, &[Gate::RolledOut]));
        }
        Order::Forward => {
            out.push(stage("istiod", main, &[Gate::RolledOut]));
            out.push(templates());
        }
        Order::Restored => {
            out.push(templates());
            out.push(stage("istiod", main, &[Gate::RolledOut]));
        }
        // No proxy may be newer than its istiod, so our own go first.
        Order::Back => {
            out.push(templates());
            out.push(stage(
                "gateways first",
                gateway_objects(gateways),
                &[Gate::RolledOut],
            ));
            out.push(stage("istiod", main, &[Gate::RolledOut]));
        }
    }
    out.retain(|stage| !stage.objects.is_empty());
    out
}

fn webhooks_stage(webhooks: &[Value]) -> Stage {
    stage(LAST_JUDGED, webhooks.iter().cloned(), &[Gate::CaBundle])
}

/// The revisions beside: as they ran last, without what the release's own revision has as well.
fn kept_stages(own: &ControlPlane, webhooks: &[Value], kept: &[Kept]) -> Vec<Stage> {
    let ControlPlane {
        crds: _,
        config,
        injector_config,
        istiod,
        cni: _,
        ztunnel: _,
        gateways: _,
        node_namespaces: _,
        webhook_sources: _,
    } = own;
    let parts = [config, injector_config, istiod];
    let own = parts.into_iter().flatten().chain(webhooks);
    let mut taken: BTreeSet<String> = own.map(name).collect();
    let mut out = Vec::new();
    for Kept {
        revision,
        objects,
        webhooks,
    } in kept
    {
        let mut fresh = |object: &&Value| taken.insert(name(object));
        let rest: Vec<Value> = objects.iter().filter(&mut fresh).cloned().collect();
        let hooks: Vec<Value> = webhooks.iter().filter(&mut fresh).cloned().collect();
        out.push(stage(
            &format!("revision {revision}"),
            rest.into_iter(),
            &[],
        ));
        out.push(stage(
            &format!("webhooks of revision {revision}"),
            hooks.into_iter(),
            &[],
        ));
    }
    out
}

/// Kind, namespace and name in one text.
fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!(
        "{} {} {}",
        object["kind"], metadata["namespace"], metadata["name"]
    )
}

/// What follows the webhooks.
fn after_webhooks(control_plane: &ControlPlane) -> Vec<Stage> {
    let ControlPlane {
        crds: _,
        config: _,
        injector_config: _,
        istiod: _,
        cni,
        ztunnel,
        gateways,
        node_namespaces: _,
        webhook_sources: _,
    } = control_plane;
    let mut out = vec![
        stage("node agent", cni.iter().cloned(), &[Gate::RolledOut]),
        stage("ztunnel", ztunnel.iter().cloned(), &[Gate::RolledOut]),
    ];
    let mut gateways = stage("gateways", gateway_objects(gateways), &[]);
    gateways.advisory.push(Gate::RolledOut);
    out.push(gateways);
    out.retain(|stage| !stage.objects.is_empty());
    out
}

fn gateway_objects(gateways: &[Gateway]) -> impl Iterator<Item = Value> {
    gateways
        .iter()
        .flat_map(|Gateway { objects, .. }| objects)
        .cloned()
}

/// What admits comes before what denies: in between, nothing is refused that should not be.
fn hardening(settings: &Settings, owner: &str) -> impl Iterator<Item = Stage> {
    let (admit, deny) = policies(settings, owner);
    let stages = [
        stage("policies of open gateways", admit.into_iter(), &[]),
        stage("policies of hardened mode", deny.into_iter(), &[]),
    ];
    stages.into_iter().filter(|stage| !stage.objects.is_empty())
}

fn stage(name: &str, objects: impl Iterator<Item = Value>, gate: &[Gate]) -> Stage {
    Stage {
        name: name.to_owned(),
        // What has no kind or name was refused before.
        objects: objects
            .map(unpurgeable)
            .filter_map(|o| Object::new(o).ok())
            .collect(),
        gate: gate.to_vec(),
        advisory: Vec::new(),
    }
}

/// Takes off what would let another tool delete the object. The engine adds our own labels.
fn unpurgeable(mut object: Value) -> Value {
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        for label in PURGE_LABELS {
            labels.remove(label);
        }
    }
    object
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}
