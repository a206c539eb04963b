//! The project's own commands: `cargo xtask demo`, `test`, `tidy`, `pack`, `new-charm` and thin delegations.
//!
//! Invariants: depends on no crate of the workspace but `yaml`; everything else is reached by
//! running cargo. Results go to standard output, progress to standard error.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "running cargo and the built binaries is what this tool is for"
)]

mod delegate;
mod fuzz;
mod new_charm;
mod pack;
mod preflight;
mod process;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::{test::Tier, workspace::Workspace};

/// Commands of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything CI runs, or one tier of it.
    Test(TestArgs),
    /// Check the rules of the repository that the compiler does not know.
    Tidy,
    /// Build the charms and write them to target/charms.
    Pack {
        /// One charm; all of them when left out.
        charm: Option<String>,
    },
    /// Write a charm to begin with to charms/NAME.
    NewCharm {
        /// Its name: lower-case words with inner dashes.
        name: String,
    },
    /// Hold the readers of outside data against random bytes, with libFuzzer.
    Fuzz {
        /// One target; each in turn when left out.
        target: Option<String>,
        /// How long each runs.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
    /// Show the product at work on a real cluster.
    Demo {
        /// Leave everything up afterwards.
        #[arg(long)]
        keep: bool,
        /// With KUBECONFIG: registry and path of Istio's images.
        #[arg(long)]
        hub: Option<String>,
        /// With KUBECONFIG: tag of Istio's images.
        #[arg(long)]
        tag: Option<String>,
        /// With KUBECONFIG: where the testbed's image `testapp` was pushed to.
        #[arg(long)]
        workload_image: Option<String>,
    },
    /// The simulator's juju command on the model that `demo --keep` left.
    #[command(disable_help_flag = true)]
    Juju(Passed),
    /// The one-node cluster: up, down, kubeconfig.
    #[command(disable_help_flag = true)]
    Testbed(Passed),
    /// Print the manifests that the charm would apply.
    #[command(disable_help_flag = true)]
    Render(Passed),
}

#[derive(Debug, Args)]
struct TestArgs {
    /// The tier to run; all of them when left out.
    tier: Option<Tier>,
    /// Only this crate; for work on the runner itself.
    #[arg(long, short, hide = true)]
    package: Vec<String>,
    /// Run only the tests whose name contains one of these.
    #[arg(last = true)]
    filter: Vec<String>,
}

/// Arguments that another program of the workspace understands.
#[derive(Debug, Args)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let workspace = Workspace::locate()?;
    match cli.command {
        Command::Test(args) => {
            process::forward_signals()?;
            let selection = test::Selection {
                tier: args.tier,
                packages: args.package,
                filters: args.filter,
            };
            test::run(&workspace, &selection)
        }
        Command::Tidy => tidy::run(&workspace),
        Command::Pack { charm } => {
            process::forward_signals()?;
            preflight::ensure(&[preflight::Need::Build])?;
            for packed in pack::pack(&workspace, charm.as_deref())? {
                println!("{}", packed.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::NewCharm { name } => {
            let folder = new_charm::new_charm(&workspace, &name)?;
            println!("{}", folder.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Fuzz { target, seconds } => {
            process::forward_signals()?;
            fuzz::run(&workspace, target.as_deref(), seconds)
        }
        Command::Demo {
            keep,
            hub,
            tag,
            workload_image,
        } => {
            let mut args = Vec::new();
            if keep {
                args.push("--keep".to_owned());
            }
            let given = [
                ("--hub", hub),
                ("--tag", tag),
                ("--workload-image", workload_image),
            ];
            for (flag, value) in given {
                if let Some(value) = value {
                    args.extend([flag.to_owned(), value]);
                }
            }
            delegate::demo(&workspace, &args)
        }
        Command::Juju(passed) => delegate::juju(&workspace, &passed.args),
        Command::Testbed(passed) => delegate::testbed(&workspace, &passed.args),
        Command::Render(passed) => delegate::render(&workspace, &passed.args),
    }
}
