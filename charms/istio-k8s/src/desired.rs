//! The objects the cluster should hold, in the order in which they may come. Pure.
//!
//! The order is what makes an upgrade invisible: a running istiod that reads the injector's `ConfigMap`
//! of another version may deny every injection, so on a replacement that `ConfigMap` waits for the
//! new istiod; webhooks follow istiod, for a webhook without a server behind it refuses pods; gateways
//! come after the webhooks, for their pods get their image from the injector.

use std::collections::BTreeMap;
use std::time::Duration;

use juju_charm::ModelView;
use kube_apply::{Gate, Object, ObjectsSet, Stage};
use mesh::control_plane::hardening::policies;
use mesh::control_plane::render::{Gateway, webhooks_of};
use mesh::control_plane::{ControlPlane, Settings};
use serde_json::{Value, json};

use crate::observe::inventory;
use crate::validate::{Installation, Validated};

/// How long one hook waits for rollouts, all together. What is not there by then is waited for by
/// the next hook.
const WAIT: Duration = Duration::from_secs(90);

/// Labels by which `istioctl uninstall --purge` finds what to delete; ours are not its to delete.
const PURGE_LABELS: [&str; 2] = [
    "operator.istio.io/component",
    "install.operator.istio.io/owning-resource",
];

/// The objects to apply, or none where nothing may be touched.
pub fn desired(view: &ModelView, validated: &Validated) -> Option<ObjectsSet> {
    let stages = match validated {
        Validated::Standby | Validated::Stay(_) => return None,
        Validated::Leave => Vec::new(),
        Validated::Run(installation) => {
            let Installation {
                settings,
                control_plane,
                webhooks,
                version: _,
                replaces,
            } = &**installation;
            let mut stages = stages(settings, control_plane, webhooks, *replaces);
            let owner = format!("{}-{}", view.context.model_name, view.context.app);
            stages.extend(hardening(settings, &owner));
            stages
        }
    };
    Some(ObjectsSet {
        inventory: inventory(view),
        stages,
        retain: Vec::new(),
        wait: WAIT,
        // Half a control plane is worse than none.
        whole: true,
    })
}

/// All objects of a fresh installation, in the order in which they are applied.
pub fn objects(control_plane: &ControlPlane, settings: &Settings) -> Vec<Value> {
    let webhooks = webhooks_of(control_plane, settings, &BTreeMap::new());
    let stages = stages(settings, control_plane, &webhooks, false);
    stages
        .iter()
        .flat_map(|s| &s.objects)
        .map(|o| o.value().clone())
        .collect()
}

fn stages(
    settings: &Settings,
    control_plane: &ControlPlane,
    webhooks: &[Value],
    replaces: bool,
) -> Vec<Stage> {
    let ControlPlane {
        crds,
        config,
        injector_config,
        istiod,
        cni,
        ztunnel,
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
    let control_plane = config.iter().chain(istiod).cloned();
    if replaces {
        out.push(stage("istiod", control_plane, &[Gate::RolledOut]));
        out.push(stage(
            "injector templates",
            injector_config.iter().cloned(),
            &[],
        ));
    } else {
        let all = control_plane.chain(injector_config.iter().cloned());
        out.push(stage("istiod", all, &[Gate::RolledOut]));
    }
    out.push(stage(
        "webhooks",
        webhooks.iter().cloned(),
        &[Gate::CaBundle],
    ));
    if !cni.is_empty() {
        out.push(stage("node agent", cni.iter().cloned(), &[Gate::RolledOut]));
    }
    if !ztunnel.is_empty() {
        out.push(stage(
            "ztunnel",
            ztunnel.iter().cloned(),
            &[Gate::RolledOut],
        ));
    }
    let objects = gateways
        .iter()
        .flat_map(|Gateway { objects, .. }| objects)
        .cloned();
    let mut gateways = stage("gateways", objects, &[]);
    gateways.advisory.push(Gate::RolledOut);
    out.push(gateways);
    out.retain(|stage| !stage.objects.is_empty());
    out
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
