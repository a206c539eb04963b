//! Which version may follow which: control plane after control plane, and over its proxies.
//!
//! In place, one minor at a time: a control plane serves proxies of its own minor and of the one
//! before, and no newer ones. Beside (a new revision), two minors, because each proxy stays with the
//! istiod of its own version until its workload moves. Back, one minor, if no proxy is newer than that.

use std::collections::BTreeMap;

use super::finding::{Code, Finding, few};
use super::version::{self, Minor};
use crate::proxy_status::ProxyStatus;

/// How a release comes to a cluster that runs another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// The running istiod is replaced.
    InPlace,
    /// A new revision comes up beside it.
    Beside,
}

impl Way {
    /// How many minors forward one step may take.
    fn reach(self) -> i64 {
        match self {
            Self::InPlace => 1,
            Self::Beside => 2,
        }
    }
}

/// Whether `target` may follow `running` in one step; `app` and `resource` are for the command.
pub fn step(running: &str, target: &str, way: Way, app: &str) -> Option<Finding> {
    let object = format!("Istio {running} to {target}");
    let attach = format!("juju attach-resource {app} istio-release=FILE");
    let (Some(from), Some(to)) = (Minor::of(running), Minor::of(target)) else {
        return Some(
            Finding::info(
                Code::VersionUnknown,
                object,
                "one of the versions is not a number, so the step cannot be judged",
            )
            .mended_by(attach),
        );
    };
    let Some(minors) = to.after(from) else {
        let why = "a step between major versions is not known";
        return Some(Finding::error(Code::MinorsSkipped, object, why).mended_by(attach));
    };
    if minors < -1 {
        let why = format!("{} minors back, at most one is possible", -minors);
        return Some(Finding::error(Code::DowngradeTooFar, object, why).mended_by(attach));
    }
    if minors <= way.reach() {
        return None;
    }
    let missing: Vec<String> = from.until(to).iter().map(ToString::to_string).collect();
    let how = match way {
        Way::InPlace => "goes one minor at a time",
        Way::Beside => "goes two minors at most",
    };
    let why = format!("{how}, not attached: {}", missing.join(", "));
    let stage = format!("juju attach-resource {app} istio-release-stage-1=FILE");
    Some(Finding::error(Code::MinorsSkipped, object, why).mended_by(stage))
}

/// The version to go to next, of those whose payloads are attached: the target if it is within one
/// step, else the latest payload that is. None: the target cannot be reached from here.
fn next<'a>(running: &str, target: &'a str, stages: &'a [String], way: Way) -> Option<&'a str> {
    if step(running, target, way, "").is_none_or(|finding| !finding.blocks()) {
        return Some(target);
    }
    let forward = |version: &&String| {
        version::order(version) > version::order(running)
            && version::order(version) < version::order(target)
            && step(running, version, way, "").is_none()
    };
    stages
        .iter()
        .filter(forward)
        .max_by_key(|version| version::order(version))
        .map(String::as_str)
}

/// The steps from `running` to `target` over the attached payloads, the target last; or the minors
/// for which none is attached.
///
/// # Errors
/// The minors, in order, whose payloads are missing.
pub fn path(
    running: &str,
    target: &str,
    stages: &[String],
    way: Way,
) -> Result<Vec<String>, Vec<Minor>> {
    let mut steps: Vec<String> = Vec::new();
    let mut at = running.to_owned();
    loop {
        let Some(version) = next(&at, target, stages, way) else {
            let (Some(from), Some(to)) = (Minor::of(&at), Minor::of(target)) else {
                return Err(Vec::new());
            };
            let has = |minor: &Minor| stages.iter().any(|s| Minor::of(s) == Some(*minor));
            return Err(from.until(to).into_iter().filter(|m| !has(m)).collect());
        };
        steps.push(version.to_owned());
        if version == target {
            return Ok(steps);
        }
        version.clone_into(&mut at);
    }
}

/// Proxies that a control plane of `target` must not serve. `ours` tells a gateway that the same
/// upgrade replaces: on the way back it goes first.
pub fn proxies(
    target: &str,
    proxies: &[ProxyStatus],
    ours: impl Fn(&ProxyStatus) -> bool,
) -> Vec<Finding> {
    let Some(target) = Minor::of(target) else {
        return Vec::new();
    };
    let mut groups: BTreeMap<(Code, Minor), Vec<String>> = BTreeMap::new();
    for proxy in proxies {
        let Some(minor) = Minor::of(&proxy.version) else {
            continue;
        };
        let code = match minor.after(target) {
            Some(1..) if ours(proxy) => continue,
            Some(1..) => Code::ProxyAhead,
            Some(-1..=0) | None => continue,
            Some(_) => Code::ProxyBehind,
        };
        groups
            .entry((code, minor))
            .or_default()
            .push(proxy.proxy.clone());
    }
    let finding = |((code, minor), names): ((Code, Minor), Vec<String>)| {
        let why = match code {
            Code::ProxyAhead => {
                format!("{minor} proxies under istiod {target}: they must not be newer than it")
            }
            _ => format!("{minor} proxies under istiod {target}: at most one minor behind it"),
        };
        let namespace = names
            .first()
            .and_then(|name| name.split_once('.'))
            .map_or("NAMESPACE", |(_, namespace)| namespace);
        let restart = format!("kubectl -n {namespace} rollout restart deployment");
        Finding::error(code, few(&names), why).mended_by(restart)
    };
    groups.into_iter().map(finding).collect()
}

/// Whether the release may run on this Kubernetes; an unknown version is not judged.
pub fn kubernetes(target: &str, server: Option<&str>) -> Option<Finding> {
    let (istio, server) = (Minor::of(target)?, server?);
    let (found, least) = (Minor::of(server)?, version::kubernetes_minimum(istio));
    (found < least).then(|| {
        let why = format!("Istio {istio} starts on Kubernetes {least} and later only");
        Finding::error(Code::KubernetesTooOld, format!("Kubernetes {server}"), why)
            .mended_by(format!("upgrade the cluster to Kubernetes {least}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy_status::Sync;
    use Way::{Beside, InPlace};

    #[test]
    fn one_minor_in_place_two_beside_one_back() {
        let check = |from, to, way, expect: Option<Code>| {
            let found = step(from, to, way, "meshy");
            assert_eq!(found.map(|f| f.code), expect, "{from} to {to} {way:?}");
        };
        check("1.30.3", "1.31.0", InPlace, None);
        check("1.30.3", "1.30.4", InPlace, None);
        check("1.30.4", "1.30.3", InPlace, None);
        check("1.31.0", "1.30.3", InPlace, None);
        check("1.31.0", "1.29.9", InPlace, Some(Code::DowngradeTooFar));
        check("1.29.9", "1.31.0", InPlace, Some(Code::MinorsSkipped));
        check("1.29.9", "1.31.0", Beside, None);
        check("1.28.0", "1.31.0", Beside, Some(Code::MinorsSkipped));
        check("1.31.0", "1.29.0", Beside, Some(Code::DowngradeTooFar));
        check("1.31.0", "2.0.0", InPlace, Some(Code::MinorsSkipped));
        check("unknown", "1.31.0", InPlace, Some(Code::VersionUnknown));
    }

    #[test]
    fn a_skip_names_the_minors_that_are_missing() {
        let found = step("1.26.0", "1.30.3", InPlace, "meshy").unwrap();
        assert!(found.blocks());
        assert_eq!(
            found.why,
            "goes one minor at a time, not attached: 1.27, 1.28, 1.29"
        );
    }

    #[test]
    fn a_jump_goes_over_what_is_attached() {
        let check =
            |from: &str, to: &str, stages: &[&str], way, expect: Result<&[&str], &[&str]>| {
                let stages: Vec<String> = stages.iter().map(|s| (*s).to_owned()).collect();
                let found = path(from, to, &stages, way)
                    .map_err(|missing| missing.iter().map(ToString::to_string).collect::<Vec<_>>());
                let expect = expect
                    .map(|steps| steps.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
                    .map_err(|missing| missing.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
                assert_eq!(found, expect, "{from} to {to} over {stages:?}");
            };
        check("1.30.3", "1.31.0", &[], InPlace, Ok(&["1.31.0"]));
        check(
            "1.28.1",
            "1.31.0",
            &["1.30.3", "1.29.2"],
            InPlace,
            Ok(&["1.29.2", "1.30.3", "1.31.0"]),
        );
        check("1.28.1", "1.31.0", &["1.30.3"], InPlace, Err(&["1.29"]));
        check(
            "1.26.0",
            "1.31.0",
            &["1.27.9", "1.30.0"],
            InPlace,
            Err(&["1.28", "1.29"]),
        );
        check(
            "1.28.1",
            "1.31.0",
            &["1.29.2", "1.30.3"],
            Beside,
            Ok(&["1.30.3", "1.31.0"]),
        );
        // The latest patch of a minor wins, and what lies behind is no stage.
        check(
            "1.29.0",
            "1.31.0",
            &["1.30.1", "1.30.3", "1.28.0"],
            InPlace,
            Ok(&["1.30.3", "1.31.0"]),
        );
    }

    fn proxy(name: &str, version: &str) -> ProxyStatus {
        ProxyStatus {
            proxy: name.to_owned(),
            kind: "sidecar".to_owned(),
            version: version.to_owned(),
            istiod: "istiod-0.istio-lab".to_owned(),
            revision: "default".to_owned(),
            cds: Sync::Synced,
            lds: Sync::Synced,
            eds: Sync::Synced,
            rds: Sync::Synced,
        }
    }

    #[test]
    fn no_proxy_is_ahead_of_its_control_plane_nor_two_minors_behind() {
        let check = |target, version, expect: Option<Code>| {
            let found = proxies(target, &[proxy("web-1.meshy", version)], |_| false);
            let codes: Vec<_> = found.iter().map(|f| f.code).collect();
            assert_eq!(
                codes,
                expect.into_iter().collect::<Vec<_>>(),
                "{version} under {target}"
            );
        };
        check("1.31.0", "1.31.2", None);
        check("1.31.0", "1.30.3", None);
        check("1.31.0", "1.29.3", Some(Code::ProxyBehind));
        check("1.30.3", "1.31.0", Some(Code::ProxyAhead));
        check("1.30.3", "unknown", None);
        check("unknown", "1.31.0", None);
    }

    #[test]
    fn our_own_gateway_may_be_ahead_for_it_goes_first() {
        let list = [proxy("edge-1.edge-lab", "1.31.0")];
        assert_eq!(
            proxies("1.30.3", &list, |p| p.proxy.ends_with("edge-lab")),
            []
        );
    }

    #[test]
    fn a_cluster_that_is_too_old_is_refused() {
        let refused = |target, server| kubernetes(target, server).is_some();
        assert!(refused("1.30.3", Some("v1.31.9")));
        assert!(!refused("1.30.3", Some("v1.32.0")));
        assert!(!refused("1.30.3", None));
        assert!(!refused("1.29.0", Some("v1.30.0")));
        assert!(refused("1.29.0", Some("v1.29.0")));
    }
}
