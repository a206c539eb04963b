//! Shows the pair at work: a real node, both charms, requests through the gateway.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use e2e::demo::Demo;

/// Shows both charms at work on a real one-node Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Arguments {
    /// Leave everything up at the end and print the lines to explore it.
    #[arg(long)]
    keep: bool,
}

fn main() -> Result<ExitCode> {
    let Arguments { keep } = Arguments::parse();
    let mut demo = Demo::up(kubeconfig(), keep)?;
    demo.play()?;
    Ok(demo.end())
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
