//! What authorization needs on a Gateway API gateway besides its filter.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::gateway_api::{HTTPRoute, HttpMatch, HttpRouteRule, HttpRouteSpec, PathMatchType};
use istio_api::networking::{
    ApplyTo, EnvoyConfigPatch, EnvoyFilter, EnvoyFilterSpec, EnvoyPatch, PatchContext,
    PatchOperation, WorkloadSelector,
};
use serde_json::{Value, json};

use super::super::Edge;
use super::http::path_match;
use super::{MAX_OPEN_RULES, Objects, Parent};
use crate::auth::{DENIED_PATH, PROBE_BODY, PROBE_PATH, open_route_name};

/// The names that Istio gives to the rules nobody is asked about.
pub fn open_rules(edge: &Edge, objects: &Objects) -> BTreeSet<String> {
    let Some(guard) = &edge.guard else {
        return BTreeSet::new();
    };
    let beginning = format!("{}-", open_route_name(guard));
    let http = objects
        .http
        .iter()
        .map(|route| (&route.metadata, route.spec.rules.len()));
    let grpc = objects
        .grpc
        .iter()
        .map(|route| (&route.metadata, route.spec.rules.len()));
    let open = http.chain(grpc).filter_map(|(metadata, rules)| {
        let name = metadata.name.as_deref()?;
        name.starts_with(&beginning).then_some((name, rules))
    });
    let of_object = |(name, rules): (&str, usize)| {
        (0..rules)
            .map(move |index| format!("{name}.{index}"))
            .collect::<Vec<_>>()
    };
    open.flat_map(of_object)
        .map(|name| format!("{}.{name}", edge.namespace))
        .take(MAX_OPEN_RULES)
        .collect()
}

/// A filter of [`crate::auth::envoy_filter`] that does not ask about the rules of these names. The
/// name by which it would know them on a gateway of Istio's own API is no route's here.
pub fn filter_with_names(mut filter: EnvoyFilter, names: &BTreeSet<String>) -> EnvoyFilter {
    let patches = std::mem::take(&mut filter.spec.config_patches);
    for patch in patches {
        let Some(name) = route_name(&patch) else {
            filter.spec.config_patches.push(patch);
            continue;
        };
        let all = names.iter().map(|own| {
            let mut patch = patch.clone();
            if let Some(field) = patch
                .matches
                .as_mut()
                .and_then(|m| m.pointer_mut(ROUTE_NAME))
            {
                *field = Value::from(own.as_str());
            }
            patch
        });
        debug_assert!(!names.contains(name), "Istio's names have dots");
        filter.spec.config_patches.extend(all);
    }
    filter
}

const ROUTE_NAME: &str = "/routeConfiguration/vhost/route/name";

fn route_name(patch: &EnvoyConfigPatch) -> Option<&str> {
    patch.matches.as_ref()?.pointer(ROUTE_NAME)?.as_str()
}

/// Whether two filters ask the same, but perhaps not about rules of the same names: then one may
/// take the other's place at any time.
pub fn same_but_names(a: &EnvoyFilterSpec, b: &EnvoyFilterSpec) -> bool {
    let rest = |spec: &EnvoyFilterSpec| {
        let mut spec = spec.clone();
        spec.config_patches
            .retain(|patch| route_name(patch).is_none());
        spec
    };
    rest(a) == rest(b)
}

/// The filter by which the pods with `labels` answer at the charm's own paths by themselves, whatever
/// is routed there: it puts two rules before all others of every host.
pub fn probe_filter(name: &str, namespace: &str, labels: &BTreeMap<String, String>) -> EnvoyFilter {
    let denied = json!({"status": 404});
    let probe = json!({"status": 200, "body": {"inline_string": PROBE_BODY}});
    let patches = [(DENIED_PATH, denied), (PROBE_PATH, probe)].map(|(path, answer)| {
        EnvoyConfigPatch {
            apply_to: ApplyTo::HttpRoute,
            matches: Some(json!({"proxy": {"metadata": {"NAMESPACE": namespace}}})),
            patch: EnvoyPatch {
                operation: PatchOperation::InsertFirst,
                value: Some(json!({"match": {"path": path}, "direct_response": answer})),
            },
        }
        .with_context(PatchContext::Gateway)
    });
    let spec = EnvoyFilterSpec {
        workload_selector: Some(WorkloadSelector {
            labels: labels.clone(),
        }),
        config_patches: patches.into(),
        priority: None,
    };
    EnvoyFilter::new(namespace, name, spec)
}

/// The route that makes the gateway know of requests for no particular host: what it has rules for
/// is where [`probe_filter`] puts its own. Without that it leads to an error, which proves nothing.
pub fn probe_route(edge: &Edge, parent: &Parent, name: &str) -> HTTPRoute {
    let own = |path: &str| HttpMatch {
        path: path_match(PathMatchType::Exact, path),
        method: None,
        headers: Vec::new(),
    };
    let rule = HttpRouteRule {
        matches: vec![own(PROBE_PATH), own(DENIED_PATH)],
        ..HttpRouteRule::default()
    };
    let spec = HttpRouteSpec {
        parent_refs: vec![parent.reference(None)],
        hostnames: Vec::new(),
        rules: vec![rule],
    };
    HTTPRoute::new(&edge.namespace, name, spec)
}
