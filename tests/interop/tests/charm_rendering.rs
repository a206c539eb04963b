//! The charm's own rendering path, typed webhooks included, gives the objects that Helm gives.

use anyhow::{Context, Result, ensure};
use interop::helm::{self, Case, Documents, Judge, identity};
use interop::pairs::in_pairs;
use mesh::control_plane::Settings;
use mesh::control_plane::render::chart_with_webhooks;
use mesh::payload::{ChartName, Payload};
use serde_json::{Value, json};
use testbed::{Istio, tell};

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

/// What one case of one chart is, for both sides.
struct Question {
    case: Case,
    revision: &'static str,
}

fn questions(version: &str) -> Vec<Question> {
    let known = cases()
        .into_iter()
        .enumerate()
        .filter(|(_, (_, values))| is_known(version, values));
    let question = |(turn, (revision, mut values)): (usize, (&'static str, Value))| {
        if !revision.is_empty() {
            values["revision"] = json!(revision);
        }
        let mut case = Case::new(format!("{revision:?} {values}"), values);
        // Names of webhooks depend on the namespace and on little else.
        ["istio-system", "istio-lab"][turn % 2].clone_into(&mut case.namespace);
        Question { case, revision }
    };
    known.map(question).collect()
}

#[test]
fn base_and_istiod_are_object_by_object_what_helm_gives() -> Result<()> {
    let judge = Judge::build()?;
    let mut work = Vec::new();
    for istio in testbed::ALL {
        for chart in [ChartName::Base, ChartName::Istiod] {
            work.push((istio, chart));
        }
    }
    let compared: usize = in_pairs(&work, |(istio, chart)| compare(istio, *chart, &judge))?
        .into_iter()
        .sum();
    tell(&format!("{compared} objects compared, 0 differences"));
    ensure!(compared > 4_000, "only {compared} objects were compared");
    Ok(())
}

/// Compares one chart of one release under every case; how many objects were equal.
fn compare(istio: &Istio, chart: ChartName, judge: &Judge) -> Result<usize> {
    let scratch = tempfile::tempdir()?;
    let archive = istio.payload()?;
    let payload = Payload::from_tar_gz(&std::fs::read(&archive)?)?;
    let unpacked = helm::Payload::open(&archive, istio.version, scratch.path())?;
    let questions = questions(istio.version);
    let cases: Vec<Case> = questions.iter().map(|q| q.case.clone()).collect();
    let mut documents = Documents::default();
    let mut compared = 0;
    let dir = unpacked.chart_dir(chart.path());
    let mut batch = judge.ask(&dir, chart.release(), &cases, scratch.path())?;
    let mut asked = questions.iter();
    while let (Some(answered), Some(question)) = (batch.next_answer()?, asked.next()) {
        let case = answered.case;
        let what = format!(
            "{} {} -n {} {}",
            istio.version,
            chart.path(),
            case.namespace,
            case.name
        );
        if compared == 0 {
            let command = judge.command(&answered.arguments)?;
            assert!(answered.reply.is_as(&command), "{what}");
        }
        let theirs = answered.reply.answer(&mut documents)?;
        let settings = settings(&case.namespace, question.revision)?;
        let ours = chart_with_webhooks(&payload, chart, &case.values, &settings);
        let Ok(theirs) = theirs else {
            ensure!(ours.is_err(), "{what}: Helm refuses it");
            continue;
        };
        let ours = sorted(ours.with_context(|| what.clone())?);
        let names = |all: &mut dyn Iterator<Item = &Value>| all.map(identity).collect::<Vec<_>>();
        assert_eq!(
            names(&mut ours.iter()),
            names(&mut theirs.iter().map(|object| &**object)),
            "{what}"
        );
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, &**theirs, "{what}: {}", identity(ours));
        }
        compared += ours.len();
    }
    Ok(compared)
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

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(identity);
    objects
}
