//! Renders a release payload the way the charm does, manifests alone on stdout.

#![expect(
    clippy::print_stderr,
    reason = "a command line tool tells its errors there"
)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use mesh::control_plane::render::chart_with_webhooks;
use mesh::control_plane::{Settings, control_plane, profile};
use mesh::payload::{ChartName, Payload};
use serde_json::{Map, Value, json};

/// Renders a release payload the way the charm does.
///
/// With --chart, the objects of that chart alone, from exactly the values given, as
/// `helm template` has them. Without, the whole control plane as the charm would apply it.
#[derive(Debug, Parser)]
#[command(name = "render")]
struct Arguments {
    /// The release payload, a tar.gz with manifests/charts and manifests/profiles.
    #[arg(long)]
    payload: PathBuf,
    /// One chart instead of the whole control plane.
    #[arg(long)]
    chart: Option<Chart>,
    /// A profile of the release.
    #[arg(long)]
    profile: Option<String>,
    /// The namespace.
    #[arg(long, default_value = "istio-system")]
    namespace: String,
    /// The revision.
    #[arg(long, default_value = "")]
    revision: String,
    /// A YAML file of values; given again, the later one wins.
    #[arg(long)]
    values: Vec<PathBuf>,
    /// One value, KEY=VALUE, over those of the files.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Chart {
    Base,
    Istiod,
    Gateway,
    Default,
    Cni,
    Ztunnel,
}

impl From<Chart> for ChartName {
    fn from(chart: Chart) -> Self {
        match chart {
            Chart::Base => Self::Base,
            Chart::Istiod => Self::Istiod,
            Chart::Gateway => Self::Gateway,
            Chart::Default => Self::Default,
            Chart::Cni => Self::Cni,
            Chart::Ztunnel => Self::Ztunnel,
        }
    }
}

fn main() -> ExitCode {
    match render(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn render(arguments: &Arguments) -> Result<()> {
    let bytes = std::fs::read(&arguments.payload)
        .with_context(|| format!("--payload {}", arguments.payload.display()))?;
    let payload = Payload::from_tar_gz(&bytes)
        .with_context(|| format!("--payload {}", arguments.payload.display()))?;
    let settings = settings(arguments)?;
    let objects = match arguments.chart {
        Some(chart) => {
            let mut values = of_profile(&payload, chart.into(), &settings.profile)?;
            helm_chart::values::layer(&mut values, settings.values.clone());
            if !settings.revision.is_default() {
                let revision = settings.revision.chart_value();
                helm_chart::values::layer(&mut values, json!({"revision": revision}));
            }
            chart_with_webhooks(&payload, chart.into(), &values, &settings)?
        }
        None => istio_k8s::desired::objects(&control_plane(&payload, &settings)?, &settings),
    };
    let mut out = std::io::stdout().lock();
    for object in objects {
        writeln!(out, "---\n{}", yaml::emit(&object)?.trim_end())?;
    }
    Ok(())
}

/// The values by which one chart takes a profile: its own of that name, as Helm would, else what the release's profile says.
fn of_profile(payload: &Payload, chart: ChartName, name: &str) -> Result<Value> {
    let own = format!("files/profile-{name}.yaml");
    if payload.chart(chart).file_names().any(|file| file == own) {
        return Ok(json!({"profile": name}));
    }
    let Some(profile) = payload.profile(name) else {
        let known: Vec<&str> = payload.profile_names().collect();
        bail!(
            "--profile: {name:?} is unknown, this release has {}",
            known.join(", ")
        );
    };
    Ok(profile::chart_values(&profile))
}

fn settings(arguments: &Arguments) -> Result<Settings> {
    let mut values = Value::Object(Map::new());
    for path in &arguments.values {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("--values {}", path.display()))?;
        let file = yaml::parse(&text).with_context(|| format!("--values {}", path.display()))?;
        if !file.is_object() && !file.is_null() {
            bail!("--values {}: not a YAML mapping", path.display());
        }
        helm_chart::values::layer(&mut values, file);
    }
    for set in &arguments.set {
        helm_chart::values::set(&mut values, set).with_context(|| format!("--set {set}"))?;
    }
    let profile = arguments.profile.as_deref().unwrap_or("default");
    Ok(Settings {
        profile: profile.to_owned(),
        values,
        ..Settings::new(
            arguments.namespace.parse().context("--namespace")?,
            arguments.revision.parse().context("--revision")?,
        )
    })
}
