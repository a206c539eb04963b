//! How long a render takes: ours, `helm template` and `istioctl manifest generate`, on the charts of istiod and base.
//!
//! Ours is what a hook does: take the archive, load the chart, render, read the objects. The others are processes, as nobody
//! links them. Figures are the best of several runs.

use anyhow::{Context, Result, bail};
use interop::helm::{self, Case, Payload};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testbed::{Artifact, V1_31};

const RUNS: usize = 5;

#[expect(clippy::print_stdout, reason = "the figures are the output")]
fn main() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let needed = [Artifact::Helm, Artifact::Istioctl(V1_31)];
    let built = testbed::build::need(&needed, &mut |progress| {
        println!("building {}", progress.artifact);
    })?;
    let archive = V1_31.payload()?;
    let case = Case::new("defaults", serde_json::json!({}));
    let profile = if cfg!(debug_assertions) {
        "dev"
    } else {
        "release"
    };
    for chart in ["istio-control/istio-discovery", "base"] {
        let cold = best(|| {
            let payload = Payload::open(&archive, V1_31.version, scratch.path())?;
            objects(helm::ours(&payload.chart(chart)?, &case))
        })?;
        let payload = Payload::open(&archive, V1_31.version, scratch.path())?;
        let loaded = payload.chart(chart)?;
        let warm = best(|| objects(helm::ours(&loaded, &case)))?;
        let dir = payload.chart_dir(chart);
        let helms = best(|| {
            let path = built.path(Artifact::Helm)?;
            run(helm::command(path)
                .args(["template", helm::RELEASE])
                .arg(&dir)
                .args(["--namespace", &case.namespace]))
        })?;
        println!(
            "{chart} ({profile} profile): ours {cold:.1?} from the archive, {warm:.1?} once loaded; helm template {helms:.1?}; \
             ratio {:.1} and {:.1}",
            ratio(helms, cold),
            ratio(helms, warm)
        );
    }
    let istioctl = built.path(Artifact::Istioctl(V1_31))?;
    let generated = best(|| run(&mut istioctl_generate(istioctl)))?;
    println!("istioctl manifest generate, base and istiod: {generated:.1?}");
    Ok(())
}

fn istioctl_generate(istioctl: &Path) -> Command {
    let mut command = helm::command(istioctl);
    command.args(["manifest", "generate", "--set", "profile=minimal"]);
    command
}

fn objects(answer: helm::Answer) -> Result<()> {
    match answer {
        Ok(objects) if !objects.is_empty() => Ok(()),
        Ok(_) => bail!("nothing rendered"),
        Err(error) => bail!(error),
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context("running the other renderer")?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn best(mut action: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        action()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn ratio(theirs: Duration, ours: Duration) -> f64 {
    theirs.as_secs_f64() / ours.as_secs_f64()
}
