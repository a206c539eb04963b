//! Everything in a cluster by name, to compare before with after.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use testbed::Api;

/// What comes and goes by itself, and says nothing about who owns the cluster.
const PASSING: [&str; 11] = [
    "events",
    "leases",
    "pods",
    "replicasets",
    "controllerrevisions",
    "endpointslices",
    "endpoints",
    "ipaddresses",
    "componentstatuses",
    "podmetrics",
    "nodes",
];

/// Every object as `resource namespace/name`, without what comes and goes by itself.
///
/// # Errors
/// An API server that does not answer.
pub fn listing(api: &Api) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for path in collections(api)? {
        let resource = path.rsplit('/').next().unwrap_or_default();
        if PASSING.contains(&resource) {
            continue;
        }
        let list = api.get(&path)?;
        for item in list["items"].as_array().into_iter().flatten() {
            let metadata = &item["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or("-");
            let name = metadata["name"].as_str().unwrap_or_default();
            found.insert(format!("{resource} {namespace}/{name}"));
        }
    }
    Ok(found)
}

/// The path of every kind that the server lists, each in its preferred version.
///
/// # Errors
/// An API server that does not answer, or not with groups.
pub fn collections(api: &Api) -> Result<Vec<String>> {
    let groups = api.get("/apis")?;
    let groups = groups["groups"].as_array().context("groups")?.iter();
    let preferred = groups.filter_map(|g| g["preferredVersion"]["groupVersion"].as_str());
    let mut bases = vec!["/api/v1".to_owned()];
    bases.extend(preferred.map(|version| format!("/apis/{version}")));
    let mut paths = Vec::new();
    for base in bases {
        let served = api.get(&base)?;
        for resource in served["resources"].as_array().into_iter().flatten() {
            let verbs = resource["verbs"].as_array().into_iter().flatten();
            let name = resource["name"].as_str().unwrap_or_default();
            if !name.contains('/') && verbs.into_iter().any(|verb| verb == "list") {
                paths.push(format!("{base}/{name}"));
            }
        }
    }
    Ok(paths)
}
