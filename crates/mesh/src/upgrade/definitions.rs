//! Custom resource definitions that stand in the way of a release: Istio's own and the Gateway API's.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finding::{Code, Finding};
use super::version::{self, GATEWAY_API_MINIMUM, Minor};

/// The annotation by which a Gateway API definition tells its bundle.
const BUNDLE: &str = "gateway.networking.k8s.io/bundle-version";
const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// The versions istiod reads Gateway API kinds in: plural, must be served, should be served.
const GATEWAY_API_VERSIONS: [(&str, Option<&str>, Option<&str>); 5] = [
    ("gateways", Some("v1beta1"), Some("v1")),
    ("gatewayclasses", Some("v1beta1"), Some("v1")),
    ("httproutes", Some("v1beta1"), Some("v1")),
    ("referencegrants", Some("v1beta1"), None),
    ("grpcroutes", None, Some("v1")),
];

/// Definitions of the release against those of the cluster, by name. The API server refuses one that
/// drops a version in which objects are stored.
pub fn istio(live: &[Value], release: &[Value]) -> Vec<Finding> {
    let wanted: BTreeMap<&str, &Value> = release.iter().map(|crd| (name(crd), crd)).collect();
    let mut out = Vec::new();
    for crd in live {
        let Some(wanted) = wanted.get(name(crd)) else {
            continue;
        };
        if is_newer(crd, wanted) {
            // The newest stays: nothing of it is taken away.
            continue;
        }
        let object = format!("CustomResourceDefinition {}", name(crd));
        let versions = versions(wanted, |_| true);
        let stored = crd["status"]["storedVersions"].as_array();
        for stored in stored.into_iter().flatten().filter_map(Value::as_str) {
            if !versions.contains(&stored) {
                let why = format!("objects may be stored as {stored}, which this release lacks");
                let mend = format!(
                    "kubectl get {name} -A -o json | kubectl replace -f - && kubectl patch crd \
                     {name} --subresource=status --type=json -p \
                     '[{{\"op\":\"replace\",\"path\":\"/status/storedVersions\",\"value\":[\"{new}\"]}}]'",
                    name = name(crd),
                    new = storage(wanted),
                );
                out.push(Finding::error(Code::StoredVersion, &object, why).mended_by(mend));
            }
        }
        let served = self::versions(wanted, is_served);
        for version in self::versions(crd, is_served) {
            if !served.contains(&version) {
                let why = format!("{version} is served now and not by this release");
                let mend = format!("write {} in {} instead", name(crd), storage(wanted));
                out.push(Finding::warning(Code::ServedVersion, &object, why).mended_by(mend));
            }
        }
    }
    out
}

/// Gateway API definitions against what istiod of `target` reads. `used` has, by plural, how many
/// objects there are: what nobody uses is only told.
pub fn gateway_api(target: &str, live: &[Value], used: &BTreeMap<String, usize>) -> Vec<Finding> {
    let Some(target) = Minor::of(target) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for crd in live {
        if crd["spec"]["group"] != GATEWAY_API {
            continue;
        }
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let object = format!("CustomResourceDefinition {}", name(crd));
        let mend = "kubectl apply --server-side -f standard-install.yaml, of a Gateway API release \
                    that is new enough";
        out.extend(bundle(target, crd, plural, &object, used).map(|f| f.mended_by(mend)));
        let served = versions(crd, is_served);
        for (_, must, should) in GATEWAY_API_VERSIONS.iter().filter(|row| row.0 == plural) {
            if let Some(must) = must.filter(|version| !served.contains(version)) {
                let why = format!("istiod reads {must}, which is not served");
                out.push(Finding::error(Code::GatewayApiVersion, &object, why).mended_by(mend));
            }
            if let Some(should) = should.filter(|version| !served.contains(version)) {
                let why = format!("{should} is not served");
                out.push(Finding::warning(Code::GatewayApiVersion, &object, why).mended_by(mend));
            }
        }
    }
    out
}

fn bundle(
    target: Minor,
    crd: &Value,
    plural: &str,
    object: &str,
    used: &BTreeMap<String, usize>,
) -> Option<Finding> {
    let (_, _, least, _) = GATEWAY_API_MINIMUM
        .iter()
        .find(|(of, _, _, since)| *of == plural && target >= *since)?;
    let found = crd["metadata"]["annotations"][BUNDLE].as_str();
    if found.is_some_and(|found| version::order(found) >= version::order(least)) {
        return None;
    }
    let found = found.unwrap_or("none");
    let why = |rest: &str| {
        format!("its bundle is {found}, Istio {target} ignores those before v{least}{rest}")
    };
    let count = used.get(plural).copied().unwrap_or_default();
    Some(if count == 0 {
        Finding::info(Code::GatewayApiTooOld, object, why(""))
    } else {
        let rest = format!(": {count} {plural} would be dropped");
        Finding::error(Code::GatewayApiTooOld, object, why(&rest))
    })
}

/// Whether the live definition is of a later release, by the label that the charts write.
fn is_newer(live: &Value, wanted: &Value) -> bool {
    let version = |crd: &Value| {
        let label = &crd["metadata"]["labels"]["app.kubernetes.io/version"];
        label.as_str().map(version::order)
    };
    matches!((version(live), version(wanted)), (Some(live), Some(wanted)) if live > wanted)
}

fn name(crd: &Value) -> &str {
    crd["metadata"]["name"].as_str().unwrap_or_default()
}

fn versions(crd: &Value, which: impl Fn(&Value) -> bool) -> Vec<&str> {
    let all = crd["spec"]["versions"].as_array().into_iter().flatten();
    all.filter(|version| which(version))
        .filter_map(|version| version["name"].as_str())
        .collect()
}

fn is_served(version: &Value) -> bool {
    version["served"] == true
}

fn storage(crd: &Value) -> &str {
    versions(crd, |version| version["storage"] == true)
        .first()
        .copied()
        .unwrap_or("v1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn crd(version: &str, served: &[&str], stored: &[&str]) -> Value {
        let versions: Vec<_> = served
            .iter()
            .map(|name| json!({"name": name, "served": true, "storage": *name == "v1"}))
            .collect();
        json!({
            "metadata": {"name": "virtualservices.networking.istio.io",
                         "labels": {"app.kubernetes.io/version": version}},
            "spec": {"versions": versions},
            "status": {"storedVersions": stored},
        })
    }

    #[test]
    fn a_version_in_which_objects_are_stored_must_stay() {
        let check = |live: Value, release: Value, expect: &[Code]| {
            let found: Vec<Code> = istio(&[live], &[release]).iter().map(|f| f.code).collect();
            assert_eq!(found, expect);
        };
        let new = || crd("1.31.0", &["v1", "v1beta1"], &[]);
        check(
            crd("1.30.0", &["v1", "v1beta1"], &["v1beta1", "v1"]),
            new(),
            &[],
        );
        check(
            crd(
                "1.20.0",
                &["v1", "v1beta1", "v1alpha3"],
                &["v1alpha3", "v1"],
            ),
            new(),
            &[Code::StoredVersion, Code::ServedVersion],
        );
        // A later definition is left as it is.
        check(crd("1.32.0", &["v1", "v2"], &["v2"]), new(), &[]);
    }

    fn gateway_crd(plural: &str, bundle: Option<&str>, served: &[&str]) -> Value {
        let mut crd = crd("", served, &[]);
        crd["metadata"]["name"] = format!("{plural}.{GATEWAY_API}").into();
        crd["spec"]["group"] = GATEWAY_API.into();
        crd["spec"]["names"]["plural"] = plural.into();
        if let Some(bundle) = bundle {
            crd["metadata"]["annotations"][BUNDLE] = bundle.into();
        }
        crd
    }

    #[test]
    fn an_old_bundle_matters_when_its_kind_is_used() {
        let check = |target, plural: &str, bundle, count, expect: &[bool]| {
            let crd = gateway_crd(plural, bundle, &["v1"]);
            let used = BTreeMap::from([(plural.to_owned(), count)]);
            let found = gateway_api(target, &[crd], &used);
            let blocks: Vec<bool> = found.iter().map(Finding::blocks).collect();
            assert_eq!(blocks, expect, "{target} {plural} {bundle:?} {count}");
        };
        check("1.30.3", "tlsroutes", Some("v1.4.1"), 2, &[true]);
        check("1.30.3", "tlsroutes", Some("v1.4.1"), 0, &[false]);
        check("1.30.3", "tlsroutes", None, 1, &[true]);
        check("1.30.3", "tlsroutes", Some("v1.5.0"), 2, &[]);
        check("1.29.0", "tlsroutes", Some("v1.4.1"), 2, &[]);
        check("1.30.3", "tcproutes", Some("v1.5.0"), 2, &[]);
        check("1.31.0", "tcproutes", Some("v1.5.0"), 2, &[true]);
        check("1.31.0", "udproutes", None, 2, &[]);
    }

    #[test]
    fn a_version_that_istiod_reads_must_be_served() {
        let check = |plural, served: &[&str], expect: &[bool]| {
            let crd = gateway_crd(plural, Some("v1.6.0"), served);
            let found = gateway_api("1.31.0", &[crd], &BTreeMap::new());
            let blocks: Vec<bool> = found.iter().map(Finding::blocks).collect();
            assert_eq!(blocks, expect, "{plural} {served:?}");
        };
        check("gateways", &["v1", "v1beta1"], &[]);
        check("gateways", &["v1"], &[true]);
        check("gateways", &["v1beta1"], &[false]);
        check("referencegrants", &["v1beta1"], &[]);
        check("grpcroutes", &["v1alpha2"], &[false]);
    }
}
