//! The charm's own rendering path, typed webhooks included, gives the objects that Helm gives.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use interop::helm::{command, identity};
use mesh::control_plane::Settings;
use mesh::control_plane::render::chart_with_webhooks;
use mesh::payload::{ChartName, Payload};
use serde_json::{Value, json};
use testbed::{Artifact, tell};

/// What the webhooks depend on, one at a time: revision, and values.
fn cases() -> Vec<(&'static str, Value)> {
    vec![
        ("", json!({})),
        ("canary", json!({})),
        ("", json!({"revisionTags": ["default", "prod"]})),
        ("canary", json!({"revisionTags": ["default"]})),
        (
            "",
            json!({"sidecarInjectorWebhook": {"enableNamespacesByDefault": true}}),
        ),
        (
            "",
            json!({"sidecarInjectorWebhook": {"reinvocationPolicy": "IfNeeded"}}),
        ),
        (
            "",
            json!({"sidecarInjectorWebhookAnnotations": {"a/b": "c"}}),
        ),
        ("", json!({"global": {"configValidation": false}})),
        ("", json!({"global": {"operatorManageWebhooks": true}})),
        ("", json!({"global": {"istioNamespace": "istio-lab"}})),
        (
            "",
            json!({"base": {"validationURL": "https://lab.example.com/validate"}}),
        ),
        ("", json!({"base": {"validationCABundle": "YWJj"}})),
        ("", json!({"base": {"validationFailurePolicy": "Fail"}})),
        (
            "",
            json!({"istiodRemote": {"injectionPath": "/inject/cluster/lab"}}),
        ),
        (
            "",
            json!({"istiodRemote": {"injectionURL": "https://lab.example.com/inject"}}),
        ),
        ("", json!({"istiodRemote": {"injectionCABundle": "YWJj"}})),
        ("", json!({"defaultRevision": "canary"})),
        ("", json!({"defaultRevision": ""})),
        ("", json!({"ownerName": "lab"})),
        ("", json!({"profile": "ambient"})),
        ("", json!({"profile": "demo"})),
        ("", json!({"profile": "remote"})),
        ("", json!({"profile": "stable"})),
        ("", json!({"global": {"platform": "openshift"}})),
        ("", json!({"global": {"resourceScope": "cluster"}})),
        ("", json!({"global": {"resourceScope": "namespace"}})),
    ]
}

#[test]
fn base_and_istiod_are_object_by_object_what_helm_gives() -> Result<()> {
    let helm = testbed::build::program(Artifact::Helm)?;
    let scratch = tempfile::tempdir()?;
    let mut compared = 0;
    for istio in testbed::ALL {
        let archive = std::fs::read(istio.payload()?)?;
        let payload = Payload::from_tar_gz(&archive)?;
        let dir = unpack(&archive, &scratch.path().join(istio.version))?;
        for (turn, (revision, values)) in cases().into_iter().enumerate() {
            // Names of webhooks depend on the namespace and on little else.
            for namespace in [["istio-system", "istio-lab"][turn % 2]] {
                for chart in [ChartName::Base, ChartName::Istiod] {
                    if !is_known(istio.version, &values) {
                        continue;
                    }
                    let what = format!(
                        "{} {} -n {namespace} {revision:?} {values}",
                        istio.version,
                        chart.path()
                    );
                    let mut values = values.clone();
                    if !revision.is_empty() {
                        values["revision"] = json!(revision);
                    }
                    let theirs = helms(&helm, &dir.join(chart.path()), chart, namespace, &values)?;
                    let ours = chart_with_webhooks(
                        &payload,
                        chart,
                        &values,
                        &settings(namespace, revision)?,
                    );
                    let Some(theirs) = theirs else {
                        ensure!(ours.is_err(), "{what}: Helm refuses it");
                        continue;
                    };
                    let ours = sorted(ours.with_context(|| what.clone())?);
                    let names = |all: &[Value]| all.iter().map(identity).collect::<Vec<_>>();
                    assert_eq!(names(&ours), names(&theirs), "{what}");
                    for (ours, theirs) in ours.iter().zip(&theirs) {
                        assert_eq!(ours, theirs, "{what}: {}", identity(ours));
                    }
                    compared += ours.len();
                }
            }
        }
    }
    tell(&format!("{compared} objects compared, 0 differences"));
    ensure!(compared > 4_000, "only {compared} objects were compared");
    Ok(())
}

/// Whether the release's charts know the value. What older ones ignore, the typed webhooks honour
/// under every release.
fn is_known(version: &str, values: &Value) -> bool {
    let new = values["base"]["validationFailurePolicy"].is_string()
        || values["global"]["resourceScope"].is_string();
    !new || version.starts_with("1.3")
}

fn settings(namespace: &str, revision: &str) -> Result<Settings> {
    Ok(Settings::new(namespace.parse()?, revision.parse()?))
}

/// Helm's objects, or none where it refuses the values.
fn helms(
    helm: &Path,
    dir: &Path,
    chart: ChartName,
    namespace: &str,
    values: &Value,
) -> Result<Option<Vec<Value>>> {
    let file = dir.join("../case.json");
    std::fs::write(&file, values.to_string())?;
    let output = command(helm)
        .args(["template", chart.release()])
        .arg(dir)
        .args(["--namespace", namespace, "--values"])
        .arg(&file)
        .output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(Some(sorted(yaml::parse_all_with(
        &text,
        yaml::Duplicates::LastWins,
    )?)))
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(identity);
    objects
}

fn unpack(archive: &[u8], to: &Path) -> Result<std::path::PathBuf> {
    let tree = helm_chart::FileTree::from_tar_gz(archive, &helm_chart::ArchiveLimits::default())?;
    let root = tree.single_root().context("no single root")?.to_owned();
    for path in tree.paths().filter(|p| p.contains("/manifests/charts/")) {
        let file = to.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&file, tree.get(path).unwrap_or_default())?;
    }
    Ok(to.join(root).join("manifests/charts"))
}
