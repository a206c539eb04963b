//! Our renderer against real Helm 4: every chart of five Istio releases, object by object.

use anyhow::Result;
use helm_chart::Chart;
use interop::helm::{self, Answered, CHARTS, Case, Documents, Judge, Payload, cases};
use interop::pairs::in_pairs;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Releases whose every default is varied one by one.
const ONE_BY_ONE: [&str; 2] = ["1.31.0", "1.24.0"];

/// What is asked about a chart, and what about the chart with few CRDs. All CRDs take Helm ten times as long as the rest
/// of a release, and it is few values that they depend on.
fn cases_of(
    payload: &Payload,
    chart: &str,
    defaults: &serde_json::Value,
) -> (Vec<Case>, Vec<Case>) {
    let mut all = cases::profiles();
    let mut few = Vec::new();
    if chart == "base" {
        few = all.split_off(1);
    }
    all.extend(cases::circumstances());
    all.extend(cases::of_chart(chart));
    if ONE_BY_ONE.contains(&payload.version.as_str()) {
        let of_many = if chart == "base" { &mut few } else { &mut all };
        of_many.extend(cases::one_by_one(defaults));
    }
    if chart == "gateway" {
        // With the schema, old gateway charts are refused outright.
        let unchecked: Vec<Case> = all
            .iter()
            .map(|case| Case {
                skip_schema: true,
                ..case.clone()
            })
            .collect();
        all.extend(unchecked);
    }
    (all, few)
}

/// Cases that one process of Helm answers.
const BATCH: usize = 100;

#[derive(Default)]
struct Tally {
    compared: usize,
    objects: usize,
    refused: usize,
    proven: usize,
    different: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        let Self {
            compared,
            objects,
            refused,
            proven,
            different,
        } = other;
        self.compared += compared;
        self.objects += objects;
        self.refused += refused;
        self.proven += proven;
        self.different.extend(different);
    }
}

/// A chart of a release, with what is asked about it.
struct Subject {
    label: String,
    chart: Chart,
    dir: PathBuf,
    cases: Vec<Case>,
}

fn check(name: &str) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let judge = Judge::build()?;
    let mut subjects = Vec::new();
    for istio in testbed::ALL {
        let payload = Payload::open(&istio.payload()?, istio.version, scratch.path())?;
        let (all, few) = cases_of(&payload, name, &payload.chart(name)?.default_values());
        let mut add = |payload: &Payload, cases: Vec<Case>| -> Result<()> {
            subjects.push(Subject {
                label: format!("{} {name}", payload.version),
                chart: payload.chart(name)?,
                dir: payload.chart_dir(name),
                cases,
            });
            Ok(())
        };
        add(&payload, all)?;
        if !few.is_empty() {
            add(&payload.with_few_crds(&scratch.path().join("few"))?, few)?;
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
    let parts = in_pairs(&batches, |(subject, cases)| compare(subject, cases, &judge))?;
    let mut tally = Tally::default();
    for part in parts {
        tally.add(part);
    }
    testbed::tell(&format!(
        "{name}: {} comparisons with helm, {} objects equal, {} refused by both, {} differences; \
         {} answers proven to be the command's",
        tally.compared,
        tally.objects,
        tally.refused,
        tally.different.len(),
        tally.proven
    ));
    assert!(tally.objects > 0);
    assert!(tally.proven >= subjects.len());
    assert!(tally.different.is_empty(), "{}", tally.different.join("\n"));
    Ok(())
}

#[test]
fn every_chart_of_every_release_is_compared() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for istio in testbed::ALL {
        let payload = Payload::open(&istio.payload()?, istio.version, scratch.path())?;
        assert_eq!(payload.charts(), CHARTS, "{}", istio.version);
    }
    Ok(())
}

#[test]
fn base_renders_to_helms_objects() -> Result<()> {
    check("base")
}

#[test]
fn default_renders_to_helms_objects() -> Result<()> {
    check("default")
}

#[test]
fn gateway_renders_to_helms_objects() -> Result<()> {
    check("gateway")
}

#[test]
fn egress_renders_to_helms_objects() -> Result<()> {
    check("gateways/istio-egress")
}

#[test]
fn ingress_renders_to_helms_objects() -> Result<()> {
    check("gateways/istio-ingress")
}

#[test]
fn cni_renders_to_helms_objects() -> Result<()> {
    check("istio-cni")
}

#[test]
fn istiod_renders_to_helms_objects() -> Result<()> {
    check("istio-control/istio-discovery")
}

#[test]
fn ztunnel_renders_to_helms_objects() -> Result<()> {
    check("ztunnel")
}

/// Compares our answers with those of Helm's code. That its first answer, and the first of each kind of complaint, are the command's own is
/// proven on the way.
fn compare(subject: &Subject, cases: &[Case], judge: &Judge) -> Result<Tally> {
    let scratch = tempfile::tempdir()?;
    let mut tally = Tally::default();
    let mut documents = Documents::default();
    let mut complaints = BTreeSet::new();
    let mut batch = judge.ask(&subject.dir, helm::RELEASE, cases, scratch.path())?;
    while let Some(answered) = batch.next_answer()? {
        let Answered {
            case,
            arguments,
            reply,
        } = answered;
        let label = |d: String| format!("{} [{}]: {d}", subject.label, case.name);
        let is_new = reply.failed && complaints.insert(reply.kind());
        if tally.compared == 0 || is_new {
            let command = judge.command(&arguments)?;
            assert!(
                reply.is_as(&command),
                "{}",
                label(format!("helm says {command:?}, its code {reply:?}"))
            );
            tally.proven += 1;
        }
        let helms = reply.answer(&mut documents)?;
        let ours = helm::ours(&subject.chart, case);
        tally.compared += 1;
        match &helms {
            Ok(objects) => tally.objects += objects.len(),
            Err(_) => tally.refused += 1,
        }
        let found = helm::differences(&ours, &helms);
        tally.different.extend(found.into_iter().map(label));
    }
    Ok(tally)
}
