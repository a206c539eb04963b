//! Gateway API's definitions: which of the attached bundle are to be installed. Pure.

use juju_charm::{ModelView, Problem};
use kube_apply::Object;
use mesh::gateway_api::{Bundle, is_newer, other_applier, version_of};
use serde_json::Value;

use crate::config::{self, GatewayApiCrds};
use crate::observe::{View, inventory};

/// The definitions to apply, and what is wrong, if anything. Something wrong costs the definitions,
/// not the control plane.
pub fn wanted(view: &ModelView, cluster: &View) -> (Vec<Value>, Option<Problem>) {
    let nothing = (Vec::new(), None);
    let app = &view.context.app;
    let Ok(options) = config::options(&view.config, app) else {
        return nothing;
    };
    let surroundings = &cluster.surroundings;
    let Some(bundle) = &surroundings.bundle else {
        return nothing;
    };
    let live = &surroundings.gateway_api;
    if options.gateway_api_crds == GatewayApiCrds::IfAbsent && has_foreign(view, live) {
        return nothing;
    }
    let Bundle {
        version,
        definitions,
    } = match bundle {
        Ok(bundle) => bundle,
        Err(why) => {
            let separator = if why.starts_with(':') { "" } else { " " };
            let problem = Problem::blocked(format!("resource gateway-api-crds{separator}{why}"))
                .with_hint(format!("juju attach-resource {app} gateway-api-crds=FILE"));
            return (Vec::new(), Some(problem));
        }
    };
    if let Some(problem) = held(view, live) {
        return (Vec::new(), Some(problem));
    }
    // A bundle of two versions would be neither.
    let newer = live
        .iter()
        .filter_map(|definition| version_of(definition.value()));
    if newer
        .into_iter()
        .any(|installed| is_newer(&installed, version))
    {
        return nothing;
    }
    (definitions.clone(), None)
}

fn has_foreign(view: &ModelView, live: &[Object]) -> bool {
    let inventory = inventory(view);
    live.iter().any(|definition| !inventory.owns(definition))
}

/// Definitions that somebody else keeps writing.
fn held(view: &ModelView, live: &[Object]) -> Option<Problem> {
    let inventory = inventory(view);
    let manager = inventory.manager();
    let mut owners = live
        .iter()
        .filter(|d| !inventory.owns(d))
        .filter_map(|definition| {
            let owner = inventory.foreign_owner(definition);
            let owner = owner.or_else(|| other_applier(definition.value(), &manager))?;
            Some((definition.name(), owner))
        });
    let (name, owner) = owners.next()?;
    Some(
        Problem::blocked(format!(
            "option gateway-api-crds: {name} belongs to {owner}"
        ))
        .with_hint(format!(
            "juju config {} gateway-api-crds=never",
            view.context.app
        )),
    )
}
