//! What a cluster has once, and who has it. Pure.
//!
//! The default validator, the node agent and the node proxy are one per cluster, and so is the name
//! under which istiod hands out the mesh's root. An application that would take one of them from
//! another says whose it is and stops there.

use juju_charm::{ModelView, Problem};
use kube_apply::{Inventory, Object};
use mesh::control_plane::webhooks::DEFAULT_VALIDATOR;
use mesh::control_plane::{Component, ControlPlane, Settings};
use serde_json::Value;

use crate::authority;
use crate::observe::{View, inventory};
use crate::surroundings::loses;

/// Checks everything that there is one of.
///
/// # Errors
/// The first that somebody else has, or that would be taken away under its users.
pub fn check(
    view: &ModelView,
    cluster: &View,
    settings: &Settings,
    control_plane: &ControlPlane,
    webhooks: &[Value],
) -> Result<(), Problem> {
    let inventory = inventory(view);
    default_validator(view, cluster, &inventory, webhooks)?;
    node_component(view, cluster, &inventory, control_plane)?;
    nobody_loses_the_node_component(view, cluster, &inventory, control_plane)?;
    definitions(view, cluster, settings, control_plane)?;
    bound_gateways(view, cluster, settings, webhooks)?;
    one_root(view, cluster, &inventory, settings, control_plane)
}

fn default_validator(
    view: &ModelView,
    cluster: &View,
    inventory: &Inventory,
    webhooks: &[Value],
) -> Result<(), Problem> {
    let wanted = webhooks
        .iter()
        .any(|w| w["metadata"]["name"] == DEFAULT_VALIDATOR);
    let live = cluster
        .validating
        .iter()
        .find(|c| c.name() == DEFAULT_VALIDATOR);
    let sibling = live
        .filter(|_| wanted)
        .and_then(|live| sibling(inventory, live));
    match sibling {
        Some(owner) => Err(Problem::blocked(format!(
            "{DEFAULT_VALIDATOR} belongs to {owner}, a cluster has one"
        ))
        .with_hint(format!("juju config {} revision=NAME", view.context.app))),
        None => Ok(()),
    }
}

/// Another application of this charm as the owner of an object.
fn sibling(inventory: &Inventory, live: &Object) -> Option<String> {
    let owner = inventory.foreign_owner(live)?;
    owner.starts_with("application ").then_some(owner)
}

fn node_component(
    view: &ModelView,
    cluster: &View,
    inventory: &Inventory,
    control_plane: &ControlPlane,
) -> Result<(), Problem> {
    let wanted = control_plane.cni.iter().chain(&control_plane.ztunnel);
    for set in wanted.into_iter().filter(|o| o["kind"] == "DaemonSet") {
        let name = set["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = set["metadata"]["namespace"].as_str();
        let others = cluster.surroundings.node_components.iter();
        let mut others = others.filter(|o| is_same_component(o, set) && !inventory.owns(o));
        // One of the same name and namespace is told by the engine, for it may be taken over.
        let other = others.find(|o| {
            (o.name(), o.namespace()) != (name, namespace) || sibling(inventory, o).is_some()
        });
        let Some(other) = other else { continue };
        let owner = inventory.foreign_owner(other).unwrap_or_default();
        return Err(Problem::blocked(format!(
            "{name}: a cluster has one, that in {} belongs to {owner}",
            other.namespace().unwrap_or_default()
        ))
        .with_hint(format!(
            "juju config {} components=base,istiod",
            view.context.app
        )));
    }
    Ok(())
}

fn is_same_component(live: &Object, rendered: &Value) -> bool {
    let labels = &rendered["spec"]["selector"]["matchLabels"];
    let name = rendered["metadata"]["name"].as_str();
    Some(live.name()) == name
        || ["k8s-app", "app"].iter().any(|key| {
            live.pointer("/spec/selector/matchLabels")
                .and_then(|of_live| of_live[*key].as_str())
                .is_some_and(|value| labels[*key] == value)
        })
}

/// Options that leave out a node component would cut pods off that run through it.
fn nobody_loses_the_node_component(
    view: &ModelView,
    cluster: &View,
    inventory: &Inventory,
    control_plane: &ControlPlane,
) -> Result<(), Problem> {
    let surroundings = &cluster.surroundings;
    let lost = loses(&surroundings.node_components, control_plane, |o| {
        inventory.owns(o)
    });
    let Some(first) = surroundings.dependants.first().filter(|_| lost) else {
        return Ok(());
    };
    let more = match surroundings.dependants.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more pods"),
    };
    Err(Problem::blocked(format!(
        "options profile and components leave out the node component that {first}{more} needs"
    ))
    .with_hint(format!("juju config {} profile=ambient", view.context.app)))
}

fn definitions(
    view: &ModelView,
    cluster: &View,
    settings: &Settings,
    control_plane: &ControlPlane,
) -> Result<(), Problem> {
    let without = settings.components.as_ref().is_some_and(|chosen| {
        chosen.contains(&Component::Istiod) && !chosen.contains(&Component::Base)
    });
    if !without || cluster.surroundings.definitions || control_plane.istiod.is_empty() {
        return Ok(());
    }
    Err(Problem::blocked(
        "option components: leaves out base, and nobody has installed Istio's definitions",
    )
    .with_hint(format!(
        "juju config {} components=base,istiod",
        view.context.app
    )))
}

/// A gateway's pods get their image from the injector of its revision; without one they never start.
fn bound_gateways(
    view: &ModelView,
    cluster: &View,
    settings: &Settings,
    webhooks: &[Value],
) -> Result<(), Problem> {
    let label = |config: &Value, key: &str| {
        config["metadata"]["labels"][key]
            .as_str()
            .map(str::to_owned)
    };
    let injectors = cluster.mutating.iter().map(Object::value).chain(webhooks);
    let known: Vec<String> = injectors
        .flat_map(|config| [label(config, "istio.io/rev"), label(config, "istio.io/tag")])
        .flatten()
        .collect();
    for gateway in &settings.gateways {
        let Some(revision) = gateway.revision.as_deref() else {
            continue;
        };
        if !known.iter().any(|known| known == revision) {
            return Err(Problem::blocked(format!(
                "option gateways: {:?} is bound to revision {revision:?}, which no injector serves",
                gateway.name
            ))
            .with_hint(format!("juju config {} --reset gateways", view.context.app)));
        }
    }
    Ok(())
}

/// Two istiods in two namespaces, each with an authority of its own, overwrite each other's root
/// certificate in every namespace, forever.
fn one_root(
    view: &ModelView,
    cluster: &View,
    inventory: &Inventory,
    settings: &Settings,
    control_plane: &ControlPlane,
) -> Result<(), Problem> {
    let runs = cluster.istiods.iter().any(|istiod| inventory.owns(istiod));
    if runs || control_plane.istiod.is_empty() {
        return Ok(());
    }
    let elsewhere = cluster.istiods.iter().find(|istiod| {
        !inventory.owns(istiod) && istiod.namespace() != Some(settings.namespace.as_str())
    });
    let Some(other) = elsewhere else {
        return Ok(());
    };
    let surroundings = &cluster.surroundings;
    let related = view.relations_of(authority::ENDPOINT).next().is_some();
    let given = surroundings.cacerts.is_some() || surroundings.self_signed || related;
    let apart = settings.values["global"]["trustBundleName"].is_string();
    let selected = [&settings.mesh_config, &settings.values["meshConfig"]]
        .iter()
        .any(|config| config["discoverySelectors"].is_array());
    if given || apart || selected {
        return Ok(());
    }
    let namespace = &settings.namespace;
    Err(Problem::blocked(format!(
        "{} hands out another root under the same name",
        other.id()
    ))
    .with_hint(format!(
        "juju config {} values='global: {{trustBundleName: istio-ca-{namespace}}}'",
        view.context.app
    )))
}
