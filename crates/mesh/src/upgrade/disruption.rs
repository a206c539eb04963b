//! Disruption budgets that allow no disruption: a node under such pods is never drained, and no
//! eviction ever restarts them.

use serde_json::Value;

use super::finding::{Code, Finding};

/// Budgets (`policy/v1`) of `namespaces` whose pods are all there and that yet allow none to go.
pub fn deadlocks(budgets: &[Value], namespaces: &[&str]) -> Vec<Finding> {
    budgets
        .iter()
        .filter_map(|b| deadlock(b, namespaces))
        .collect()
}

fn deadlock(budget: &Value, namespaces: &[&str]) -> Option<Finding> {
    let text = |key: &str| budget["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    if !namespaces.contains(&namespace) {
        return None;
    }
    let status = |key: &str| budget["status"][key].as_i64().unwrap_or_default();
    let (expected, healthy) = (status("expectedPods"), status("currentHealthy"));
    // Pods that are missing explain a refusal that passes.
    if expected == 0 || healthy < expected || status("disruptionsAllowed") > 0 {
        return None;
    }
    let spec = &budget["spec"];
    let rule = ["minAvailable", "maxUnavailable"]
        .iter()
        .find(|key| !spec[**key].is_null())
        .map_or_else(String::new, |key| {
            format!("{key} {} of ", plain(&spec[*key]))
        });
    let why = format!("{rule}{expected} pods leaves none to evict: nodes cannot be drained");
    Some(
        Finding::warning(
            Code::DisruptionDeadlock,
            format!("PodDisruptionBudget {namespace}/{name}"),
            why,
        )
        .mended_by(format!(
            "kubectl -n {namespace} get pods, and run more of them than the budget demands"
        )),
    )
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_that_never_lets_a_pod_go_is_told() {
        let check =
            |namespace: &str, [expected, healthy, allowed]: [i64; 3], expect: Option<&str>| {
                let budget = json!({
                "metadata": {"namespace": namespace, "name": "istiod"}, "spec": {"minAvailable": 1},
                "status": {"expectedPods": expected, "currentHealthy": healthy,
                           "disruptionsAllowed": allowed}});
                let found = deadlocks(&[budget], &["istio-lab"]);
                assert_eq!(found.first().map(|f| f.why.as_str()), expect);
            };
        check(
            "istio-lab",
            [1, 1, 0],
            Some("minAvailable 1 of 1 pods leaves none to evict: nodes cannot be drained"),
        );
        check("istio-lab", [2, 2, 1], None);
        check("istio-lab", [2, 1, 0], None);
        check("istio-lab", [0, 0, 0], None);
        check("other", [1, 1, 0], None);
    }
}
