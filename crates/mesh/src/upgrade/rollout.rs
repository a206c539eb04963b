//! How a Deployment's rollout stands. `Available` says nothing while an old pod serves, so this reads
//! generations, counts and what keeps the new pods from starting.

use serde_json::Value;

/// Reasons for which a container that waits does not start by itself.
const FATAL: [&str; 7] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "CrashLoopBackOff",
];

/// How a rollout stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rollout {
    /// Only pods of the newest generation are left, all of them ready.
    Done,
    /// On its way.
    Going,
    /// It does not go on by itself: why.
    Failed(String),
}

/// How the rollout of `deployment` stands; `pods` are those of its namespace that may be its own.
pub fn rollout(deployment: &Value, pods: &[Value]) -> Rollout {
    let status = |key: &str| deployment["status"][key].as_i64().unwrap_or_default();
    let generation = deployment["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default();
    if status("observedGeneration") < generation {
        return Rollout::Going;
    }
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let counts = ["replicas", "updatedReplicas", "readyReplicas"];
    if counts.iter().all(|count| status(count) == wanted) {
        return Rollout::Done;
    }
    let conditions = deployment["status"]["conditions"].as_array();
    let overdue = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Progressing" && condition["status"] == "False");
    let reason = |value: &Value| value["reason"].as_str().unwrap_or("unknown").to_owned();
    let fatal = pods
        .iter()
        .filter(|pod| is_of(pod, deployment))
        .find_map(|pod| {
            let statuses = ["initContainerStatuses", "containerStatuses"];
            let mut all = statuses
                .iter()
                .flat_map(|key| pod["status"][*key].as_array().into_iter().flatten());
            all.find_map(|container| {
                let waiting = &container["state"]["waiting"];
                let reason = waiting["reason"].as_str()?;
                FATAL.contains(&reason).then(|| {
                    let image = container["image"].as_str().unwrap_or_default();
                    let name = container["name"].as_str().unwrap_or_default();
                    match reason {
                        "CrashLoopBackOff"
                        | "CreateContainerConfigError"
                        | "CreateContainerError" => {
                            format!("{reason} of {name}")
                        }
                        _ => format!("{reason} of {image}"),
                    }
                })
            })
        });
    match (fatal, overdue) {
        (Some(why), _) => Rollout::Failed(why),
        (None, Some(condition)) => Rollout::Failed(reason(condition)),
        (None, None) => Rollout::Going,
    }
}

/// Whether the pod has all labels that the Deployment selects by.
fn is_of(pod: &Value, deployment: &Value) -> bool {
    let wanted = deployment["spec"]["selector"]["matchLabels"].as_object();
    let labels = &pod["metadata"]["labels"];
    pod["metadata"]["namespace"] == deployment["metadata"]["namespace"]
        && wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment([observed, all, updated, ready]: [i64; 4], conditions: &Value) -> Value {
        json!({
            "metadata": {"name": "istiod", "namespace": "istio-lab", "generation": 2},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "istiod"}}},
            "status": {"observedGeneration": observed, "replicas": all, "updatedReplicas": updated,
                       "readyReplicas": ready, "conditions": conditions}})
    }

    fn pod(app: &str, reason: &str) -> Value {
        json!({"metadata": {"namespace": "istio-lab", "labels": {"app": app}}, "status": {
            "containerStatuses": [{"name": "discovery", "image": "registry.example/pilot:9",
                                   "state": {"waiting": {"reason": reason}}}]}})
    }

    #[test]
    fn a_rollout_is_done_when_no_old_pod_is_left_and_failed_when_it_cannot_go_on() {
        let check = |counts, conditions: Value, pods: &[Value], expect: &Rollout| {
            assert_eq!(&rollout(&deployment(counts, &conditions), pods), expect);
        };
        let none = json!([]);
        let available = json!([{"type": "Available", "status": "True"}]);
        let failed = |why: &str| Rollout::Failed(why.to_owned());
        check([2, 1, 1, 1], none.clone(), &[], &Rollout::Done);
        check([1, 1, 1, 1], none.clone(), &[], &Rollout::Going);
        check([2, 2, 1, 1], available.clone(), &[], &Rollout::Going);
        check(
            [2, 2, 1, 2],
            none.clone(),
            &[pod("istiod", "ContainerCreating")],
            &Rollout::Going,
        );
        check(
            [2, 2, 1, 1],
            available.clone(),
            &[pod("istiod", "ImagePullBackOff")],
            &failed("ImagePullBackOff of registry.example/pilot:9"),
        );
        check(
            [2, 2, 1, 1],
            available.clone(),
            &[pod("istiod", "CrashLoopBackOff")],
            &failed("CrashLoopBackOff of discovery"),
        );
        check(
            [2, 2, 1, 1],
            available,
            &[pod("other", "ImagePullBackOff")],
            &Rollout::Going,
        );
        let overdue = json!([{"type": "Progressing", "status": "False",
                              "reason": "ProgressDeadlineExceeded"}]);
        check(
            [2, 2, 1, 1],
            overdue,
            &[],
            &failed("ProgressDeadlineExceeded"),
        );
    }
}
