//! Which workloads have to be restarted to get the proxy that their injector would give them now.
//!
//! Nothing here guesses what that proxy is: a pod of the workload's template is created as a dry run
//! and the answer compared with the pods that run. The same answer tells whether a restart would
//! take a sidecar away, which it must never do by accident.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use serde_json::{Value, json};

use crate::injection::selects;

/// Annotation that the injector leaves on a pod.
const STATUS: &str = "sidecar.istio.io/status";
/// Label of pods that istiod renders itself, for Gateway API gateways and waypoints.
const RENDERED_BY_ISTIOD: &str = "gateway.networking.k8s.io/gateway-name";
/// Name of the proxy's container.
const PROXY: &str = "istio-proxy";

/// A proxy as it was injected.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Proxy {
    /// Its image.
    pub image: String,
    /// Revision of the injector.
    pub revision: String,
}

/// What makes a pod again when it is gone.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Owner {
    /// `Deployment`, `StatefulSet`, ...; `Pod` for a pod that nobody makes again.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// How a workload is restarted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// By a new generation of its pods: a Deployment starts new pods before it stops old ones.
    Roll,
    /// By evicting its pods one after the other.
    Evict,
    /// Not by us: why.
    Person(&'static str),
}

impl Owner {
    /// How the workload is restarted.
    pub fn way(&self) -> Way {
        match self.kind.as_str() {
            "Deployment" => Way::Roll,
            "StatefulSet" | "DaemonSet" | "ReplicaSet" => Way::Evict,
            "Job" => Way::Person("a job ends by itself"),
            "Pod" => Way::Person("nobody would make the pod again"),
            _ => Way::Person("its kind is not known here"),
        }
    }
}

/// The proxy of a pod, live or as a dry run gives it.
pub fn proxy(pod: &Value) -> Option<Proxy> {
    let lists = ["initContainers", "containers"];
    let mut containers = lists
        .iter()
        .filter_map(|list| pod["spec"][list].as_array())
        .flatten();
    let container = containers.find(|c| c["name"] == PROXY)?;
    let annotations = &pod["metadata"]["annotations"];
    let status = annotations[STATUS].as_str();
    let status: Value = serde_json::from_str(status?).unwrap_or_default();
    let revision = [
        &status["revision"],
        &annotations["istio.io/rev"],
        &pod["metadata"]["labels"]["istio.io/rev"],
    ];
    let revision = revision.into_iter().find_map(Value::as_str);
    Some(Proxy {
        image: container["image"].as_str().unwrap_or_default().to_owned(),
        revision: revision.unwrap_or("default").to_owned(),
    })
}

/// The injected pods of each workload. `replica_sets` leads from a pod to its Deployment. Pods that
/// are going, that have ended and that istiod renders itself are left out.
pub fn workloads<'a>(pods: &'a [Value], replica_sets: &[Value]) -> BTreeMap<Owner, Vec<&'a Value>> {
    let mut out: BTreeMap<Owner, Vec<&Value>> = BTreeMap::new();
    for pod in pods {
        let ended = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        let going = !pod["metadata"]["deletionTimestamp"].is_null();
        let rendered = !pod["metadata"]["labels"][RENDERED_BY_ISTIOD].is_null();
        if ended || going || rendered || proxy(pod).is_none() {
            continue;
        }
        out.entry(owner(pod, replica_sets)).or_default().push(pod);
    }
    out
}

fn owner(pod: &Value, replica_sets: &[Value]) -> Owner {
    let namespace = text(&pod["metadata"]["namespace"]);
    let named = |kind: &str, name: &str| Owner {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let Some((kind, name)) = controller(pod) else {
        return named("Pod", text(&pod["metadata"]["name"]));
    };
    if kind != "ReplicaSet" {
        return named(kind, name);
    }
    let set = replica_sets
        .iter()
        .find(|set| set["metadata"]["name"] == name && set["metadata"]["namespace"] == namespace);
    match set.and_then(controller) {
        Some((kind, name)) => named(kind, name),
        None => named(kind, name),
    }
}

/// Kind and name of an object's controller.
fn controller(object: &Value) -> Option<(&str, &str)> {
    let all = object["metadata"]["ownerReferences"].as_array()?;
    let controller = all.iter().find(|r| r["controller"] == true)?;
    Some((controller["kind"].as_str()?, controller["name"].as_str()?))
}

/// A pod of the workload's template, to be created as a dry run.
pub fn probe(workload: &Value) -> Value {
    let template = &workload["spec"]["template"];
    let mut spec = template["spec"].clone();
    if !spec.is_object() {
        spec = json!({});
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "istio-restart-probe",
            "namespace": workload["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
        },
        "spec": spec,
    })
}

/// Whether the workload runs its newest generation on all its pods, and all of them are ready.
pub fn is_rolled_out(workload: &Value) -> bool {
    let (spec, status) = (&workload["spec"], &workload["status"]);
    let number = |value: &Value| value.as_i64();
    let generation = number(&workload["metadata"]["generation"]).unwrap_or_default();
    if number(&status["observedGeneration"]).unwrap_or(generation) < generation {
        return false;
    }
    let count = |key: &str| number(&status[key]).unwrap_or_default();
    match workload["kind"].as_str() {
        Some("DaemonSet") => {
            let wanted = count("desiredNumberScheduled");
            count("numberReady") == wanted
        }
        Some("Deployment") => {
            let wanted = number(&spec["replicas"]).unwrap_or(1);
            count("updatedReplicas") == wanted
                && count("replicas") == wanted
                && count("availableReplicas") == wanted
        }
        _ => count("readyReplicas") == number(&spec["replicas"]).unwrap_or(1),
    }
}

/// The budget that keeps the pods from being disturbed now, by its name. A Deployment that never has
/// less than all its pods needs no budget's leave.
pub fn budget_against<'a>(
    workload: &Value,
    pods: &[&Value],
    budgets: &'a [Value],
) -> Option<&'a str> {
    let lossless = &workload["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"];
    if workload["kind"] == "Deployment" && matches!(plain(lossless).as_str(), "0" | "0%") {
        return None;
    }
    let against = |budget: &&Value| {
        // No selector takes no pod, an empty one takes all (`policy/v1`).
        let selector: Option<LabelSelector> =
            serde_json::from_value(budget["spec"]["selector"].clone()).unwrap_or_default();
        let selected = |pod: &&&Value| {
            let labels = &pod["metadata"]["labels"];
            let label = |key: &str| labels[key].as_str();
            selector.as_ref().is_some_and(|s| selects(s, label))
        };
        budget["metadata"]["namespace"] == workload["metadata"]["namespace"]
            && budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) < 1
            && pods.iter().any(|pod| selected(&pod))
    };
    budgets
        .iter()
        .find(against)
        .map(|b| text(&b["metadata"]["name"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
    fn pod(name: &str, owner: Value, image: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "namespace": "web-lab", "ownerReferences": [owner],
                "labels": {"app": "web"},
                "annotations": {STATUS: r#"{"revision":"canary"}"#},
            },
            "spec": {"initContainers": [{"name": PROXY, "image": image}], "containers": []},
        })
    }

    fn by(kind: &str, name: &str) -> Value {
        json!({"kind": kind, "name": name, "controller": true})
    }

    #[test]
    fn a_proxy_is_found_as_a_sidecar_of_either_sort_and_by_its_revision() {
        let found = proxy(&pod("a", by("Job", "j"), "proxyv2:1.31.0")).unwrap();
        assert_eq!(
            (found.image.as_str(), found.revision.as_str()),
            ("proxyv2:1.31.0", "canary")
        );
        let classic = json!({
            "metadata": {"annotations": {STATUS: "{}", "istio.io/rev": "x"}},
            "spec": {"containers": [{"name": "app"}, {"name": PROXY, "image": "p"}]},
        });
        assert_eq!(proxy(&classic).unwrap().revision, "x");
        assert_eq!(
            proxy(&json!({"spec": {"containers": [{"name": PROXY}]}})),
            None
        );
    }

    #[test]
    fn pods_are_told_by_the_workload_that_makes_them_again() {
        let set = json!({"metadata": {
            "name": "web-1", "namespace": "web-lab", "ownerReferences": [by("Deployment", "web")],
        }});
        let mut gone = pod("gone", by("ReplicaSet", "web-1"), "p");
        gone["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut waypoint = pod("way", by("ReplicaSet", "web-1"), "p");
        waypoint["metadata"]["labels"][RENDERED_BY_ISTIOD] = json!("way");
        let mut bare = pod("bare", by("x", "y"), "p");
        bare["metadata"]["ownerReferences"] = Value::Null;
        let pods = [
            pod("a", by("ReplicaSet", "web-1"), "p"),
            pod("b", by("StatefulSet", "db"), "p"),
            pod("c", by("ReplicaSet", "loose"), "p"),
            gone,
            waypoint,
            bare,
        ];
        let found = workloads(&pods, &[set]);
        let found: Vec<_> = found
            .keys()
            .map(|owner| (owner.to_string(), owner.way()))
            .collect();
        assert_eq!(
            found,
            [
                ("Deployment web-lab/web".to_owned(), Way::Roll),
                (
                    "Pod web-lab/bare".to_owned(),
                    Way::Person("nobody would make the pod again")
                ),
                ("ReplicaSet web-lab/loose".to_owned(), Way::Evict),
                ("StatefulSet web-lab/db".to_owned(), Way::Evict),
            ]
        );
    }

    #[test]
    fn a_rollout_has_ended_when_only_new_pods_are_left_and_ready() {
        let deployment = |observed: i64, updated: i64, all: i64, available: i64| {
            json!({
                "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": {"observedGeneration": observed, "updatedReplicas": updated,
                           "replicas": all, "availableReplicas": available},
            })
        };
        assert!(is_rolled_out(&deployment(2, 2, 2, 2)));
        assert!(!is_rolled_out(&deployment(1, 2, 2, 2)));
        assert!(!is_rolled_out(&deployment(2, 2, 3, 2)));
        assert!(!is_rolled_out(&deployment(2, 2, 2, 1)));
        let set = json!({"kind": "StatefulSet", "spec": {"replicas": 1}, "status": {}});
        assert!(!is_rolled_out(&set));
    }

    #[test]
    fn a_budget_without_room_holds_a_workload_that_would_lose_a_pod() {
        let budget = |allowed: i64| {
            json!({"metadata": {"name": "keep", "namespace": "web-lab"},
                   "spec": {"selector": {"matchLabels": {"app": "web"}}},
                   "status": {"disruptionsAllowed": allowed}})
        };
        let pod = pod("a", by("StatefulSet", "db"), "p");
        let check = |workload: Value, allowed: i64, expect: Option<&str>| {
            assert_eq!(
                budget_against(&workload, &[&pod], &[budget(allowed)]),
                expect
            );
        };
        let set = json!({"kind": "StatefulSet", "metadata": {"namespace": "web-lab"}});
        check(set.clone(), 0, Some("keep"));
        check(set, 1, None);
        check(
            json!({"kind": "StatefulSet", "metadata": {"namespace": "other"}}),
            0,
            None,
        );
        check(
            json!({"kind": "Deployment", "metadata": {"namespace": "web-lab"},
                   "spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 0}}}}),
            0,
            None,
        );
    }

    #[test]
    fn a_budget_takes_the_pods_that_its_selector_takes() {
        let pod = pod("a", by("StatefulSet", "db"), "p");
        let set = json!({"kind": "StatefulSet", "metadata": {"namespace": "web-lab"}});
        let check = |selector: Value, taken: bool| {
            let budget = json!({"metadata": {"name": "keep", "namespace": "web-lab"},
                                "spec": {"selector": selector}, "status": {}});
            let found = budget_against(&set, &[&pod], std::slice::from_ref(&budget)).is_some();
            assert_eq!(found, taken, "{budget}");
        };
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        check(json!({}), true);
        check(Value::Null, false);
        check(json!({"matchLabels": {"app": "web"}}), true);
        check(json!({"matchLabels": {"app": "web", "tier": "x"}}), false);
        check(expression("app", "In", &["api", "web"]), true);
        check(expression("app", "NotIn", &["web"]), false);
        check(expression("tier", "NotIn", &["x"]), true);
        check(expression("app", "Exists", &[]), true);
        check(expression("app", "DoesNotExist", &[]), false);
    }

    #[test]
    fn a_probe_is_a_pod_of_the_template() {
        let workload = json!({
            "metadata": {"namespace": "web-lab", "name": "web"},
            "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
        });
        let probe = probe(&workload);
        assert_eq!(probe["metadata"]["namespace"], "web-lab");
        assert_eq!(probe["metadata"]["labels"], json!({"app": "web"}));
        assert_eq!(probe["spec"], json!({"containers": []}));
    }
}
