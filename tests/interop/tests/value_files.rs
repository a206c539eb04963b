//! Files of values as operators write them, under every profile of every release: our objects are Helm's and istioctl's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use helm_chart::Chart;
use interop::helm::{self, Case, Documents, Judge, Payload, ValuesFile};
use interop::pairs::in_pairs;
use mesh::control_plane::{Settings, control_plane, render::webhooks_of};
use serde_json::{Value, json};
use testbed::{Artifact, V1_31};

/// The charts that take the values of a control plane.
const CHARTS: [&str; 4] = [
    "base",
    "istio-control/istio-discovery",
    "istio-cni",
    "ztunnel",
];

/// Cases that one process of Helm answers.
const BATCH: usize = 120;

/// A chart of a release, with what is asked about it.
struct Subject {
    label: String,
    chart: Chart,
    dir: std::path::PathBuf,
    cases: Vec<Case>,
}

#[derive(Default)]
struct Tally {
    compared: usize,
    objects: usize,
    refused: usize,
    different: Vec<String>,
}

/// Each file under each set of values that a profile has. Profiles with the same values are one.
fn cases(profiles: &[&Value], files: &[Arc<ValuesFile>]) -> Vec<Case> {
    let mut cases = Vec::new();
    for values in profiles {
        for file in files {
            let mut case = Case::new(format!("{} over {values}", file.name), Value::clone(values));
            case.file = Some(Arc::clone(file));
            cases.push(case);
        }
    }
    cases
}

/// Whether it depends on these values which CRDs there are.
fn names_crds(values: &Value) -> bool {
    let scope = values.pointer("/global/resourceScope");
    values.get("base").is_some() || scope.is_some()
}

#[test]
fn every_file_under_every_profile_of_every_release_renders_to_helms_objects() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let judge = Judge::build()?;
    let files = ValuesFile::all()?;
    ensure!(files.len() >= 40, "only {} files of values", files.len());
    let (mut subjects, mut combinations) = (Vec::new(), 0);
    for istio in testbed::ALL {
        let payload = Payload::open(&istio.payload()?, istio.version, scratch.path())?;
        let few = payload.with_few_crds(&scratch.path().join("few"))?;
        let profiles = payload.profiles()?;
        combinations += profiles.len() * files.len();
        let mut distinct: Vec<&Value> = Vec::new();
        for (_, values) in &profiles {
            if !distinct.contains(&values) {
                distinct.push(values);
            }
        }
        let own = profiles.iter().find(|(name, _)| name == "default");
        let (_, default) = own.context("no profile default")?;
        let mut add = |payload: &Payload, chart: &str, cases: Vec<Case>| -> Result<()> {
            subjects.push(Subject {
                label: format!("{} {chart}", payload.version),
                chart: payload.chart(chart)?,
                dir: payload.chart_dir(chart),
                cases,
            });
            Ok(())
        };
        for chart in CHARTS {
            if chart != "base" {
                add(&payload, chart, cases(&distinct, &files))?;
                continue;
            }
            // Few values have a say in the CRDs, which take Helm ten times as long as all the rest.
            add(&few, chart, cases(&distinct, &files))?;
            let about_crds = files.iter().filter(|file| names_crds(&file.values));
            let about_crds: Vec<_> = about_crds.cloned().collect();
            ensure!(about_crds.len() >= 2, "no file of values names CRDs");
            let mut whole = cases(&[default], &about_crds);
            whole.push(Case::new("every CRD", default.clone()));
            add(&payload, chart, whole)?;
        }
    }
    let batches: Vec<(&Subject, &[Case])> = subjects
        .iter()
        .flat_map(|subject| {
            subject
                .cases
                .chunks(BATCH)
                .map(move |cases| (subject, cases))
        })
        .collect();
    let mut sum = Tally::default();
    for part in in_pairs(&batches, |(subject, cases)| compare(subject, cases, &judge))? {
        sum.compared += part.compared;
        sum.objects += part.objects;
        sum.refused += part.refused;
        sum.different.extend(part.different);
    }
    testbed::tell(&format!(
        "{} files of values, {combinations} combinations of release, profile and file: {} comparisons with helm, \
         {} objects equal, {} refused by both, {} differences",
        files.len(),
        sum.compared,
        sum.objects,
        sum.refused,
        sum.different.len()
    ));
    assert!(sum.different.is_empty(), "{}", sum.different.join("\n"));
    ensure!(
        sum.objects > 50_000,
        "only {} objects were compared",
        sum.objects
    );
    Ok(())
}

fn compare(subject: &Subject, cases: &[Case], judge: &Judge) -> Result<Tally> {
    let scratch = tempfile::tempdir()?;
    let mut tally = Tally::default();
    let mut documents = Documents::default();
    let mut batch = judge.ask(&subject.dir, helm::RELEASE, cases, scratch.path())?;
    while let Some(answered) = batch.next_answer()? {
        let case = answered.case;
        let helms = answered.reply.answer(&mut documents)?;
        let ours = helm::ours(&subject.chart, case);
        tally.compared += 1;
        match &helms {
            Ok(objects) => tally.objects += objects.len(),
            Err(_) => tally.refused += 1,
        }
        let found = helm::differences(&ours, &helms).into_iter();
        tally
            .different
            .extend(found.map(|d| format!("{} [{}]: {d}", subject.label, case.name)));
    }
    Ok(tally)
}

#[test]
fn the_charms_control_plane_has_the_objects_that_istioctl_generates() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let istioctl = testbed::build::program(Artifact::Istioctl(V1_31))?;
    let archive = V1_31.payload()?;
    let unpacked = Payload::open(&archive, V1_31.version, scratch.path())?;
    let payload = mesh::payload::Payload::from_tar_gz(&std::fs::read(&archive)?)?;
    let mut questions: Vec<(String, String, Value)> = Vec::new();
    for file in ValuesFile::all()? {
        questions.push((file.name.clone(), "default".to_owned(), file.values.clone()));
    }
    for (profile, _) in unpacked.profiles()? {
        questions.push((format!("profile {profile}"), profile, json!({})));
    }
    let chart = unpacked.chart("istio-control/istio-discovery")?;
    let defaults = chart.default_values();
    let profiles = unpacked.profiles()?;
    let own = profiles.iter().find(|(name, _)| name == "default");
    let (_, profile) = own.context("no profile default")?;
    for (_, _, values) in &mut questions {
        said(values, profile, &defaults);
    }
    let answers = in_pairs(&questions, |(name, profile, values)| {
        let theirs = generated(&istioctl, &unpacked.manifests(), profile, values)
            .with_context(|| name.clone())?;
        let ours = ours(&payload, profile, values).with_context(|| name.clone())?;
        Ok((theirs.len(), differences(name, &ours, &theirs)))
    })?;
    let objects: usize = answers.iter().map(|(objects, _)| objects).sum();
    let different: Vec<String> = answers.into_iter().flat_map(|(_, found)| found).collect();
    testbed::tell(&format!(
        "{} questions to istioctl, {objects} objects, {} differences",
        questions.len(),
        different.len()
    ));
    assert!(different.is_empty(), "{}", different.join("\n"));
    ensure!(objects > 1_000, "only {objects} objects were compared");
    Ok(())
}

/// Says what the two decide differently where no value says it: which images a program that was built here means, who
/// answers the default validator, and what the profile `default` repeats of the charts' defaults.
fn said(values: &mut Value, profile: &Value, defaults: &Value) {
    let defaults = &defaults["_internal_defaults_do_not_set"]["global"];
    let mut silent = profile.clone();
    silent["defaultRevision"] = json!("");
    silent["global"]["hub"] = defaults["hub"].clone();
    silent["global"]["tag"] = defaults["tag"].clone();
    helm_chart::values::layer(&mut silent, values.take());
    *values = silent;
}

/// What istioctl generates, gateways apart: the charm's come from an option of its own.
fn generated(
    istioctl: &Path,
    manifests: &Path,
    profile: &str,
    values: &Value,
) -> Result<BTreeMap<String, Value>> {
    let mut values = values.clone();
    let revision = take_revision(&mut values);
    let none = |kind: &str| json!([{"name": format!("istio-{kind}gateway"), "enabled": false}]);
    let operator = json!({
        "apiVersion": "install.istio.io/v1alpha1",
        "kind": "IstioOperator",
        "spec": {
            "profile": profile,
            "revision": revision,
            "values": values,
            "components": {"ingressGateways": none("ingress"), "egressGateways": none("egress")},
        },
    });
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), operator.to_string())?;
    let output = helm::command(istioctl)
        .env(helm::GARBAGE.0, helm::GARBAGE.1)
        .args(["manifest", "generate", "--force", "--filename"])
        .arg(file.path())
        .arg("--manifests")
        .arg(manifests)
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    Ok(by_identity(yaml::parse_all_with(
        &text,
        yaml::Duplicates::LastWins,
    )?))
}

fn ours(
    payload: &mesh::payload::Payload,
    profile: &str,
    values: &Value,
) -> Result<BTreeMap<String, Value>> {
    let mut values = values.clone();
    let revision = take_revision(&mut values);
    let mut settings = Settings::new("istio-system".parse()?, revision.parse()?);
    profile.clone_into(&mut settings.profile);
    settings.values = values;
    settings.kubernetes_version = Some(helm::KUBE_VERSION.to_owned());
    let plane = control_plane(payload, &settings)?;
    let webhooks = webhooks_of(&plane, &settings, &BTreeMap::new());
    let parts = [
        plane.crds,
        plane.config,
        plane.injector_config,
        plane.istiod,
        plane.cni,
        plane.ztunnel,
        webhooks,
    ];
    Ok(by_identity(parts.into_iter().flatten().collect()))
}

fn take_revision(values: &mut Value) -> String {
    let taken = values
        .as_object_mut()
        .and_then(|values| values.remove("revision"));
    taken
        .and_then(|revision| revision.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Objects by what they are, without what istioctl does for reasons of its own: one name of a Helm release for all charts,
/// and no line break where a document ends.
fn by_identity(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let named = objects.into_iter().map(|mut object| {
        for at in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(labels) = object.pointer_mut(at).and_then(Value::as_object_mut) {
                labels.remove("app.kubernetes.io/instance");
                labels.remove("release");
            }
        }
        let rules = object.pointer_mut("/spec/validations");
        let rules = rules.and_then(Value::as_array_mut).into_iter().flatten();
        rules.for_each(|rule| trim(&mut rule["expression"]));
        let data = object.pointer_mut("/data").and_then(Value::as_object_mut);
        data.into_iter().flatten().for_each(|(_, text)| trim(text));
        (helm::identity(&object), object)
    });
    named.collect()
}

fn trim(text: &mut Value) {
    if let Value::String(text) = text {
        text.truncate(text.trim_end().len());
    }
}

fn differences(
    name: &str,
    ours: &BTreeMap<String, Value>,
    theirs: &BTreeMap<String, Value>,
) -> Vec<String> {
    let answer =
        |objects: &BTreeMap<String, Value>| Ok(objects.values().cloned().map(Arc::new).collect());
    let found = helm::differences(&answer(ours), &answer(theirs));
    found.into_iter().map(|d| format!("{name}: {d}")).collect()
}
