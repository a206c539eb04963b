//! How long a render takes, and how much memory: the charm's `render` command (release build), `helm template` and `istioctl
//! manifest generate`, each a process from its start to its end, on the charts of the same release.
//!
//! Figures are the best of several runs; memory is the most that the kernel has seen of a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use interop::helm::{self, Payload};
use testbed::{Artifact, V1_31};

const RUNS: usize = 7;

#[expect(clippy::print_stdout, reason = "the figures are the output")]
fn main() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let needed = [Artifact::Helm, Artifact::Istioctl(V1_31)];
    let built = testbed::build::need(&needed, &mut |progress| {
        println!("building {}", progress.artifact);
    })?;
    let archive = V1_31.payload()?;
    let unpacked = Payload::open(&archive, V1_31.version, scratch.path())?;
    let render = render_program()?;
    let ours = |arguments: &[&str]| {
        let mut command = helm::command(&render);
        command.arg("--payload").arg(&archive).args(arguments);
        command
    };
    for (name, chart) in [
        ("istiod", "istio-control/istio-discovery"),
        ("base", "base"),
    ] {
        let mut template = helm::command(built.path(Artifact::Helm)?);
        let dir = unpacked.chart_dir(chart);
        template.args(["template", helm::RELEASE]).arg(dir);
        template.args(["--namespace", "istio-system"]);
        let own = best(&mut ours(&["--chart", name]))?;
        let row = row(
            &format!("chart {name}"),
            own,
            "helm template",
            best(&mut template)?,
        );
        println!("{row}");
    }
    let mut generate = helm::command(built.path(Artifact::Istioctl(V1_31))?);
    generate.args([
        "manifest",
        "generate",
        "--set",
        "profile=minimal",
        "--manifests",
    ]);
    generate.arg(unpacked.manifests());
    let own = best(&mut ours(&["--profile", "minimal"]))?;
    let theirs = best(&mut generate)?;
    println!(
        "{}",
        row(
            "profile minimal, CRDs included",
            own,
            "istioctl manifest generate",
            theirs
        )
    );
    Ok(())
}

/// What one process took.
#[derive(Clone, Copy)]
struct Cost {
    time: Duration,
    peak_kib: u64,
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn row(what: &str, ours: Cost, judge: &str, theirs: Cost) -> String {
    format!(
        "{what}: render {:.1?}, {:.1} MiB; {judge} {:.1?}, {:.1} MiB; {:.1} times as fast, {:.2} of the memory",
        ours.time,
        ours.peak_kib as f64 / 1024.0,
        theirs.time,
        theirs.peak_kib as f64 / 1024.0,
        theirs.time.as_secs_f64() / ours.time.as_secs_f64(),
        ours.peak_kib as f64 / theirs.peak_kib as f64,
    )
}

/// Builds the charm's `render`, as it is released.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo needs the whole environment, and tells itself where it is"
)]
fn render_program() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "istio-k8s",
            "--bin",
            "render",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()?;
    let messages = String::from_utf8(output.stdout)?;
    let program = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_render = message["target"]["name"] == "render";
        let path = message["executable"].as_str()?;
        is_render.then(|| PathBuf::from(path))
    });
    program.context("cargo built no render")
}

fn best(command: &mut Command) -> Result<Cost> {
    let mut best = Cost {
        time: Duration::MAX,
        peak_kib: 0,
    };
    for _ in 0..RUNS {
        let cost = run(command)?;
        best.time = best.time.min(cost.time);
        best.peak_kib = best.peak_kib.max(cost.peak_kib);
    }
    Ok(best)
}

/// Runs a process to its end. Its output goes to a file, so that nobody waits for a reader.
fn run(command: &mut Command) -> Result<Cost> {
    let output = tempfile::NamedTempFile::new()?;
    command.stdout(output.reopen()?).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().context("starting a renderer")?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak_kib = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        peak_kib = peak_kib.max(high_water(&status).unwrap_or(0));
        std::thread::yield_now();
    };
    let time = start.elapsed();
    if !ended.success() || output.as_file().metadata()?.len() == 0 {
        bail!("a renderer ended with {ended}");
    }
    Ok(Cost { time, peak_kib })
}

/// The most memory that a process has had so far, in KiB.
fn high_water(status: &Path) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
