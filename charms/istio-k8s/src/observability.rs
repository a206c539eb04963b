//! Dashboards and alert rules of istiod's own metrics. Pure.
//!
//! Metrics by their names in istiod 1.24 to 1.31: `pilot_*`, `sidecar_injection_*`, `galley_*` and
//! `citadel_*`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Juju's names of whose metrics are meant; every rule and alert carries them.
pub type Topology<'a> = BTreeMap<&'a str, &'a str>;

/// A panel: its title, its unit, and its expressions with what each line is called. `{}` stands for
/// the selector of this application's metrics.
type Panel = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const CONTROL_PLANE: &[Panel] = &[
    (
        "Connected proxies",
        "short",
        &[("sum by (instance) (pilot_xds{})", "{{instance}}")],
    ),
    (
        "Pushes per second",
        "ops",
        &[("sum by (type) (rate(pilot_xds_pushes{}[5m]))", "{{type}}")],
    ),
    (
        "Time until a proxy has a change",
        "s",
        &[
            (
                "histogram_quantile(0.5, sum by (le) (rate(pilot_proxy_convergence_time_bucket{}[5m])))",
                "half of them",
            ),
            (
                "histogram_quantile(0.99, sum by (le) (rate(pilot_proxy_convergence_time_bucket{}[5m])))",
                "99 of 100",
            ),
        ],
    ),
    (
        "Configuration that proxies refuse",
        "ops",
        &[(
            "sum by (type) (rate(pilot_total_xds_rejects{}[5m]))",
            "{{type}}",
        )],
    ),
    (
        "Injections",
        "ops",
        &[
            ("sum(rate(sidecar_injection_success_total{}[5m]))", "done"),
            ("sum(rate(sidecar_injection_failure_total{}[5m]))", "failed"),
        ],
    ),
    (
        "Objects that validation refuses",
        "ops",
        &[(
            "sum by (group) (rate(galley_validation_failed{}[5m]))",
            "{{group}}",
        )],
    ),
    (
        "Memory",
        "bytes",
        &[(
            "sum by (instance) (process_resident_memory_bytes{})",
            "{{instance}}",
        )],
    ),
    (
        "CPU",
        "short",
        &[(
            "sum by (instance) (rate(process_cpu_seconds_total{}[5m]))",
            "{{instance}}",
        )],
    ),
];

const DATA_PLANE: &[Panel] = &[
    (
        "Proxies by version",
        "short",
        &[("sum by (version) (pilot_xds{})", "{{version}}")],
    ),
    (
        "Control planes by version",
        "short",
        &[("sum by (tag) (istio_build{component=\"pilot\"})", "{{tag}}")],
    ),
    (
        "Versions in use at once",
        "short",
        &[("count(count by (version) (pilot_xds{} > 0))", "versions")],
    ),
    (
        "Writes to proxies that time out",
        "ops",
        &[("sum(rate(pilot_xds_write_timeout{}[5m]))", "time-outs")],
    ),
    (
        "Proxies that never acknowledge",
        "short",
        &[("sum by (type) (pilot_xds_expired_nonce{})", "{{type}}")],
    ),
];

const CERTIFICATES: &[Panel] = &[
    (
        "Life left of the root certificate",
        "s",
        &[("min(citadel_server_root_cert_expiry_seconds{})", "root")],
    ),
    (
        "Life left of the signing certificate",
        "s",
        &[("min(citadel_server_cert_chain_expiry_seconds{})", "chain")],
    ),
    (
        "Certificates issued",
        "ops",
        &[
            (
                "sum(rate(citadel_server_success_cert_issuance_count{}[5m]))",
                "issued",
            ),
            ("sum(rate(citadel_server_csr_count{}[5m]))", "asked for"),
        ],
    ),
    (
        "Requests that fail",
        "ops",
        &[
            (
                "sum(rate(citadel_server_csr_sign_err_count{}[5m]))",
                "signing",
            ),
            (
                "sum(rate(citadel_server_authentication_failure_count{}[5m]))",
                "authentication",
            ),
        ],
    ),
];

/// An alert: its name, its expression, how long it holds, its severity and what is going on.
type Alert = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const ALERTS: &[Alert] = &[
    (
        "IstiodDown",
        "up{} == 0",
        "5m",
        "critical",
        "istiod is not reached: proxies keep what they have, new pods are refused",
    ),
    (
        "IstioInjectionFails",
        "increase(sidecar_injection_failure_total{}[10m]) > 0",
        "5m",
        "critical",
        "pods are refused because they cannot be injected",
    ),
    (
        "IstioConfigurationRefused",
        "rate(pilot_total_xds_rejects{}[5m]) > 0",
        "10m",
        "warning",
        "proxies refuse configuration and keep an older one",
    ),
    (
        "IstioSlowPushes",
        "histogram_quantile(0.99, sum by (le) (rate(pilot_proxy_convergence_time_bucket{}[5m]))) > 30",
        "10m",
        "warning",
        "a change takes more than half a minute to reach a proxy",
    ),
    (
        "IstioProxiesBehind",
        "count(count by (version) (pilot_xds{} > 0)) > 1",
        "24h",
        "info",
        "proxies of more than one version: restart those that are behind",
    ),
    (
        "IstioRootCertificateEnds",
        "min(citadel_server_root_cert_expiry_seconds{}) < 2592000",
        "1h",
        "critical",
        "the mesh's root certificate ends within 30 days, and with it all traffic",
    ),
    (
        "IstioSigningCertificateEnds",
        "min(citadel_server_cert_chain_expiry_seconds{}) < 604800",
        "1h",
        "critical",
        "the signing certificate ends within a week",
    ),
];

/// The dashboards by name.
pub fn dashboards() -> BTreeMap<String, Value> {
    BTreeMap::from([
        (
            "control-plane".to_owned(),
            dashboard(
                "istio-k8s-control-plane",
                "Istio: control plane",
                CONTROL_PLANE,
            ),
        ),
        (
            "data-plane".to_owned(),
            dashboard(
                "istio-k8s-data-plane",
                "Istio: versions of the data plane",
                DATA_PLANE,
            ),
        ),
        (
            "certificates".to_owned(),
            dashboard(
                "istio-k8s-certificates",
                "Istio: life of certificates",
                CERTIFICATES,
            ),
        ),
    ])
}

fn dashboard(uid: &str, title: &str, panels: &[Panel]) -> Value {
    let panels: Vec<Value> = panels.iter().enumerate().map(panel).collect();
    json!({
        "uid": uid, "title": title, "tags": ["istio"], "timezone": "utc", "editable": true,
        "schemaVersion": 39, "refresh": "30s", "time": {"from": "now-3h", "to": "now"},
        "panels": panels,
    })
}

/// Two panels in a row; the data source is what Grafana's charm puts in its place.
fn panel((number, (title, unit, lines)): (usize, &Panel)) -> Value {
    const SELECTOR: &str = "{juju_model=~\"$juju_model\",juju_model_uuid=~\"$juju_model_uuid\",juju_application=~\"$juju_application\"}";
    let source = json!({"type": "prometheus", "uid": "${prometheusds}"});
    let letters = ["A", "B", "C"];
    let targets: Vec<Value> = lines
        .iter()
        .zip(letters)
        .map(|((expression, legend), letter)| {
            json!({
                "refId": letter, "datasource": source, "legendFormat": legend,
                "expr": expression.replace("{}", SELECTOR),
            })
        })
        .collect();
    json!({
        "id": number + 1, "title": title, "type": "timeseries", "datasource": source,
        "gridPos": {"h": 8, "w": 12, "x": (number % 2) * 12, "y": (number / 2) * 8},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []}, "targets": targets,
    })
}

/// The alert rules, as Prometheus reads them.
pub fn alert_rules(topology: &Topology<'_>) -> Value {
    let pairs = topology
        .iter()
        .map(|(key, value)| format!("{key}=\"{value}\""));
    let selector = format!("{{{}}}", pairs.collect::<Vec<_>>().join(","));
    let of = |key: &str| topology.get(key).copied().unwrap_or_default();
    let name = format!(
        "{}_{}_{}_istio",
        of("juju_model"),
        short(of("juju_model_uuid")),
        of("juju_application")
    );
    let rules: Vec<Value> = ALERTS
        .iter()
        .map(|(alert, expression, holds, severity, what)| {
            let mut labels = json!(topology);
            labels["severity"] = json!(severity);
            json!({
                "alert": alert, "expr": expression.replace("{}", &selector), "for": holds,
                "labels": labels,
                "annotations": {"summary": what, "description": format!("{what} (application {})", of("juju_application"))},
            })
        })
        .collect();
    json!({"groups": [{"name": name.replace('-', "_"), "rules": rules}]})
}

fn short(uuid: &str) -> &str {
    uuid.split('-').next().unwrap_or(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_is_about_this_application() {
        let topology = BTreeMap::from([
            ("juju_model", "lab"),
            ("juju_model_uuid", "0d5f-2a"),
            ("juju_application", "meshy"),
        ]);
        let rules = alert_rules(&topology);
        let group = &rules["groups"][0];
        assert_eq!(group["name"], "lab_0d5f_meshy_istio");
        for rule in group["rules"].as_array().unwrap() {
            let expression = rule["expr"].as_str().unwrap();
            assert!(
                expression.contains("juju_application=\"meshy\""),
                "{expression}"
            );
            assert_eq!(rule["labels"]["juju_model"], "lab");
            let balance = |open: char, close: char| {
                expression.matches(open).count() == expression.matches(close).count()
            };
            assert!(
                balance('(', ')') && balance('{', '}') && balance('[', ']'),
                "{expression}"
            );
        }
    }

    #[test]
    fn there_is_a_dashboard_of_the_control_plane_the_data_plane_and_certificates() {
        let dashboards = dashboards();
        let names: Vec<&str> = dashboards.keys().map(String::as_str).collect();
        assert_eq!(names, ["certificates", "control-plane", "data-plane"]);
        for dashboard in dashboards.values() {
            let panels = dashboard["panels"].as_array().unwrap();
            let ids: std::collections::BTreeSet<i64> = panels
                .iter()
                .map(|panel| panel["id"].as_i64().unwrap())
                .collect();
            assert_eq!(ids.len(), panels.len());
            for target in panels
                .iter()
                .flat_map(|panel| panel["targets"].as_array().unwrap())
            {
                assert!(!target["expr"].as_str().unwrap().contains("{}"));
            }
        }
    }
}
