//! Our renderer against real Helm 4: every chart of five Istio releases, object by object.

use anyhow::Result;
use helm_chart::Chart;
use interop::helm::{self, Answered, CHARTS, Case, Documents, Judge, Payload, cases};
use interop::pairs::in_pairs;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Releases whose every default is varied one by one.
const ONE_BY_ONE: [&str; 2] = ["1.31.0", "1.24.0"];

fn cases_of(payload: &Payload, chart: &str, defaults: &serde_json::Value) -> Vec<Case> {
    let mut all = cases::profiles();
    all.extend(cases::circumstances());
    all.extend(cases::of_chart(chart));
    if ONE_BY_ONE.contains(&payload.version.as_str()) {
        all.extend(cases::one_by_one(defaults));
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
    all
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
        let chart = payload.chart(name)?;
        subjects.push(Subject {
            label: format!("{} {name}", payload.version),
            cases: cases_of(&payload, name, &chart.default_values()),
            dir: payload.chart_dir(name),
            chart,
        });
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

/// How long a render takes, beside the programs that do the same.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the measuring program builds what it lacks, so it needs the whole environment"
)]
fn the_time_of_a_render_is_told_beside_helm_and_istioctl() -> Result<()> {
    let program = env!("CARGO_BIN_EXE_render-ratio");
    let output = std::process::Command::new(program).output()?;
    let figures = String::from_utf8(output.stdout)?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for judge in ["helm template", "istioctl manifest generate"] {
        assert!(figures.contains(judge), "no {judge} in {figures}");
    }
    testbed::tell(figures.trim_end());
    Ok(())
}
