//! Shows the pair at work: a real node, both charms, requests through the gateway.
#![expect(clippy::print_stderr, reason = "a command tells its errors there")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::Result;
use clap::Parser;
use e2e::demo::{Demo, Images};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Shows both charms at work, on a real one-node Kubernetes of its own or on the cluster of
/// KUBECONFIG.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Arguments {
    /// Leave everything up at the end and print the lines to explore it.
    #[arg(long)]
    keep: bool,
    /// Registry and path of Istio's images, for a cluster that is not the testbed's.
    #[arg(long, default_value = e2e::lab::HUB)]
    hub: String,
    /// Tag of Istio's images.
    #[arg(long, default_value = testbed::V1_31.version)]
    tag: String,
    /// Image of the sample workloads; it must be the testbed's `testapp`.
    #[arg(long)]
    workload_image: Option<String>,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments {
        keep,
        hub,
        tag,
        workload_image,
    } = arguments;
    let images = Images {
        hub,
        tag,
        workload: workload_image,
    };
    let mut demo = Demo::up(kubeconfig(), keep, images)?;
    let cleanup = demo.cleanup();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            eprintln!("interrupted, cleaning up");
            cleanup.run();
            // The node, if there is one, ends with this process.
            signal_hook::low_level::exit(128 + signal);
        }
    });
    let played = demo.play();
    let code = demo.end();
    played?;
    Ok(code)
}

#[expect(
    clippy::disallowed_methods,
    reason = "KUBECONFIG is how a user names their cluster"
)]
fn kubeconfig() -> Option<PathBuf> {
    std::env::var("KUBECONFIG")
        .ok()
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}
