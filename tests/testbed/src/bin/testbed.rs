//! `testbed`: the test cluster by hand.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use testbed::build::{Artifact, need};
use testbed::{Istio, Node, node};

/// A real one-node Kubernetes with real Istio, built from sources.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a node, leave it running and print the path of its kubeconfig
    Up {
        /// Keep the node only for as long as this command runs
        #[arg(long)]
        foreground: bool,
        /// Releases whose images the node can pull, e.g. 1.31,1.30; empty for none
        #[arg(long, value_delimiter = ',', default_value = "1.31")]
        istio: Vec<String>,
        /// Releases long out of support, too
        #[arg(long)]
        full: bool,
    },
    /// End the node and remove everything it left
    Down,
    /// Print the path of the node's kubeconfig
    Kubeconfig,
    /// Write a release payload and print its path
    Payload {
        /// A release, e.g. 1.31.0 or 1.31
        version: String,
    },
    /// Build programs (all that a usual run needs) and print their paths
    Build {
        /// Names as printed, e.g. helm or istioctl-1.31.0
        names: Vec<String>,
        /// Programs of releases long out of support, too
        #[arg(long)]
        full: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Up {
            foreground,
            istio,
            full,
        } => {
            let mut istio = istio
                .iter()
                .filter(|name| !name.is_empty())
                .map(|name| Istio::find(name))
                .collect::<Result<Vec<_>>>()?;
            if full {
                istio.push(testbed::V1_26);
            }
            let node = Node::up(
                &node::Options {
                    istio,
                    keep: !foreground,
                },
                &mut say,
            )?;
            print(&node.kubeconfig().display().to_string());
            if foreground {
                // Whatever ends this process ends the node.
                loop {
                    std::thread::park();
                }
            }
            Ok(())
        }
        Command::Down => node::down(),
        Command::Kubeconfig => {
            let node = Node::kept()?.context("no node is running")?;
            print(&node.kubeconfig().display().to_string());
            Ok(())
        }
        Command::Payload { version } => {
            print(&Istio::find(&version)?.payload()?.display().to_string());
            Ok(())
        }
        Command::Build { names, full } => {
            let wanted = if names.is_empty() {
                Artifact::all(full)
            } else {
                let find = |name: &String| {
                    Artifact::find(name).with_context(|| format!("unknown program {name}"))
                };
                names.iter().map(find).collect::<Result<_>>()?
            };
            let built = need(&wanted, &mut |step| say(&step.to_string()))?;
            for artifact in wanted {
                print(&format!("{artifact} {}", built.path(artifact)?.display()));
            }
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "the answer of a command line program")]
fn print(line: &str) {
    println!("{line}");
}

#[expect(clippy::print_stderr, reason = "progress of a command line program")]
fn say(line: &str) {
    eprintln!("{line}");
}
