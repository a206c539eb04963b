//! `istio-migrate`: the migration for clusters without Juju, and for whoever wants to look at one.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use kube_apply::{Connect, Engine};
use mesh::control_plane::Settings;
use mesh::payload::Payload;
use migration::execute::{Clock as _, Limits, SystemClock};
use migration::inventory::control_planes;
use migration::plan::{GatewayChoice, Split, Strategy, Target, classify};
use migration::{Executor, Plan, Progress, Request, Snapshot, Stand, plan, report};
use serde_json::Value;

/// Moves a running Istio to another namespace, revision or owner.
#[derive(Debug, Parser)]
#[command(name = "istio-migrate", version)]
struct Cli {
    /// Kubeconfig of an administrator.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Who works, for others who would work on the same migration; this process, if left out.
    #[arg(long)]
    identity: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What there is: control planes, proxies, policies, what a purge would delete.
    Inventory {
        /// Namespace that istiod is in.
        #[arg(long)]
        from: String,
    },
    /// Prints the plan; writes nothing.
    Plan {
        #[command(flatten)]
        wanted: Wanted,
        /// How to print it.
        #[arg(long, value_enum, default_value_t = Form::Text)]
        format: Form,
    },
    /// Stores a plan and a backup in the cluster, and begins.
    Begin {
        #[command(flatten)]
        wanted: Wanted,
        #[command(flatten)]
        limits: Until,
    },
    /// Goes on from wherever it stands.
    Resume(Until),
    /// Takes back what was done, up to the point of no return.
    Rollback(Until),
    /// Where it stands.
    Status {
        /// How to print it.
        #[arg(long, value_enum, default_value_t = Form::Text)]
        format: Form,
    },
    /// Whether what it was for holds.
    Verify,
    /// Creates the custom objects of the backup that are not there any more.
    Restore,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Text,
    Json,
    Html,
}

#[derive(Debug, Args)]
struct Until {
    /// Minutes after which it returns and says how to go on.
    #[arg(long, default_value_t = 8)]
    budget: u64,
    /// The last step to take.
    #[arg(long)]
    until: Option<String>,
}

impl Until {
    fn limits(&self) -> Limits {
        Limits {
            budget: Duration::from_secs(self.budget * 60),
            until: self.until.clone(),
            auto: None,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    ZeroDowntime,
    Window,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Edge {
    Stay,
    KeepAddress,
    NewAddress,
}

#[derive(Debug, Args)]
struct Wanted {
    /// Namespace that istiod is in.
    #[arg(long)]
    from: String,
    /// Namespace that it goes to.
    #[arg(long, requires = "release")]
    to: Option<String>,
    /// Revision of the new control plane.
    #[arg(long, default_value = "m1")]
    revision: String,
    /// Release archive of the version that runs (istio-<version>-linux-amd64.tar.gz).
    #[arg(long)]
    release: Option<PathBuf>,
    /// Chart values of the new control plane, a YAML file.
    #[arg(long)]
    values: Option<PathBuf>,
    /// Registry of the images.
    #[arg(long)]
    hub: Option<String>,
    /// Tag of the images.
    #[arg(long)]
    tag: Option<String>,
    /// How to move.
    #[arg(long, value_enum, default_value_t = How::ZeroDowntime)]
    strategy: How,
    /// Hand routes and authorization of istio-pilot over to istio-integrator.
    #[arg(long)]
    split: bool,
    /// The old charm's application, whose routes and authorization are handed over.
    #[arg(long, default_value = "istio-pilot")]
    pilot: String,
    /// The old gateway charm's application.
    #[arg(long, default_value = "istio-ingressgateway")]
    gateway_application: String,
    /// The application of istio-k8s.
    #[arg(long, default_value = "istio-k8s")]
    daemon: String,
    /// The application of istio-integrator.
    #[arg(long, default_value = "istio-integrator")]
    integrator: String,
    /// The authorization application, for the commands that name it.
    #[arg(long, default_value = "AUTH")]
    authorizer: String,
    /// Applications related to the old charm for ingress, where a route's name begins with another
    /// word than its application's.
    #[arg(long, value_delimiter = ',')]
    applications: Vec<String>,
    /// What becomes of the gateway.
    #[arg(long, value_enum, default_value_t = Edge::Stay)]
    gateway: Edge,
    /// Workloads restarted together.
    #[arg(long, default_value_t = 10)]
    batch: usize,
    /// Move a control plane though nothing tells who installed it.
    #[arg(long)]
    accept_unknown_owner: bool,
    /// Restart what cannot be restarted without an interruption.
    #[arg(long)]
    accept_interruption: bool,
}

impl Wanted {
    fn request(&self, snapshot: &Snapshot, server: &str) -> Result<Request> {
        if self.to.is_none() && !self.split {
            bail!("nothing is asked for: say where to (--to with --release), or --split, or both");
        }
        let strategy = match self.strategy {
            How::ZeroDowntime => Strategy::ZeroDowntime,
            How::Window => Strategy::Window,
        };
        let target = match (&self.to, &self.release) {
            (Some(to), Some(release)) => {
                Some(self.target(snapshot, to, release, server, strategy)?)
            }
            _ => None,
        };
        Ok(Request {
            from: self.from.clone(),
            target,
            strategy,
            split: self.split.then(|| Split {
                pilot: self.pilot.clone(),
                gateway: self.gateway_application.clone(),
                daemon: self.daemon.clone(),
                integrator: self.integrator.clone(),
                authorizer: self.authorizer.clone(),
                applications: self.applications.clone(),
            }),
            gateway: match self.gateway {
                Edge::Stay => GatewayChoice::Stay,
                Edge::KeepAddress => GatewayChoice::KeepAddress,
                Edge::NewAddress => GatewayChoice::NewAddress,
            },
            batch: self.batch,
            owner: None,
            accept_unknown_owner: self.accept_unknown_owner,
            accept_interruption: self.accept_interruption,
        })
    }

    fn target(
        &self,
        snapshot: &Snapshot,
        to: &str,
        release: &PathBuf,
        server: &str,
        strategy: Strategy,
    ) -> Result<Target> {
        let bytes = fs::read(release).with_context(|| format!("read {}", release.display()))?;
        let payload = Payload::from_tar_gz(&bytes)?;
        let values = match &self.values {
            Some(file) => yaml::parse(&fs::read_to_string(file)?)?,
            None => Value::Null,
        };
        let settings = Settings {
            hub: self.hub.clone(),
            tag: self.tag.clone(),
            values: if values.is_object() {
                values
            } else {
                serde_json::json!({})
            },
            kubernetes_version: Some(server.to_owned()),
            profile: "minimal".to_owned(),
            ..Settings::new(to.parse()?, self.revision.parse()?)
        };
        Ok(Target::of(
            &payload, snapshot, &self.from, &settings, strategy,
        )?)
    }
}

/// Lines on standard error.
struct Told;

impl Progress for Told {
    fn say(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(&cli)));
    match done {
        Ok(code) => code,
        Err(error) => {
            Told.say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// A name that no other process has at the same time, here or elsewhere.
fn this_process() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("istio-migrate {} {}", host.trim(), std::process::id())
}

async fn run(cli: &Cli) -> Result<ExitCode> {
    let engine = Engine::connect(&Connect::Kubeconfig(cli.kubeconfig.clone()))?;
    let identity = cli.identity.clone().unwrap_or_else(this_process);
    let executor = Executor::new(&engine, &SystemClock, &identity);
    match &cli.command {
        Command::Inventory { from } => {
            let now = SystemClock.now();
            print(&inventory(&Snapshot::read(&engine, from, from, now).await?))?;
        }
        Command::Plan { wanted, format } => {
            let snapshot = read(&engine, wanted).await?;
            let request = wanted.request(&snapshot, &engine.server_version().await?)?;
            match plan(&snapshot, &request) {
                Ok(plan) => print(&shown(&plan, None, *format)?)?,
                Err(refusals) => {
                    print(&report::refusals(&refusals))?;
                    return Ok(ExitCode::from(2));
                }
            }
        }
        Command::Begin { wanted, limits } => {
            let snapshot = read(&engine, wanted).await?;
            let request = wanted.request(&snapshot, &engine.server_version().await?)?;
            let plan = match plan(&snapshot, &request) {
                Ok(plan) => plan,
                Err(refusals) => {
                    print(&report::refusals(&refusals))?;
                    return Ok(ExitCode::from(2));
                }
            };
            let limits = limits.limits();
            limits.fit(&plan)?;
            executor.begin(&plan, &snapshot).await?;
            return stand(&executor.run(&limits, &Told).await?);
        }
        Command::Resume(limits) => return stand(&executor.run(&limits.limits(), &Told).await?),
        Command::Rollback(limits) => {
            return stand(&executor.rollback(&limits.limits(), &Told).await?);
        }
        Command::Status { format } => {
            let journal = executor.journal().await?;
            print(&shown(&executor.plan().await?, journal.as_ref(), *format)?)?;
        }
        Command::Verify => {
            let mut code = ExitCode::SUCCESS;
            for (what, why) in executor.verify(&executor.plan().await?).await? {
                match why {
                    None => print(&format!("ok   {what}\n"))?,
                    Some(why) => {
                        print(&format!("FAIL {what}: {why}\n"))?;
                        code = ExitCode::FAILURE;
                    }
                }
            }
            return Ok(code);
        }
        Command::Restore => {
            let made = executor.restore(&Told).await?;
            print(&format!("{} objects restored\n", made.len()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn read(engine: &Engine, wanted: &Wanted) -> Result<Snapshot> {
    let to = wanted.to.as_deref().unwrap_or(&wanted.from);
    Ok(Snapshot::read(engine, &wanted.from, to, SystemClock.now()).await?)
}

fn shown(plan: &Plan, journal: Option<&migration::execute::Journal>, form: Form) -> Result<String> {
    Ok(match form {
        Form::Text => report::text(plan, journal),
        Form::Json => serde_json::to_string_pretty(plan)? + "\n",
        Form::Html => report::html(plan, journal),
    })
}

fn inventory(snapshot: &Snapshot) -> String {
    let mut lines = Vec::new();
    for plane in control_planes(snapshot) {
        let version = plane.version.as_deref().unwrap_or("?");
        lines.push(format!(
            "istiod {} {version} by {}",
            plane.reference(),
            plane.owner
        ));
        for (id, class) in classify(snapshot, &plane.root_namespace) {
            lines.push(format!("  {class:?} {id}"));
        }
    }
    let (workloads, by_hand) = migration::inventory::workloads(snapshot);
    for workload in workloads {
        let revision = workload.revision.as_deref().unwrap_or("(not injected)");
        lines.push(format!("{} {revision} {:?}", workload.id, workload.rollout));
    }
    lines.extend(by_hand.iter().map(|line| format!("by hand: {line}")));
    let purged = snapshot.purgeable();
    lines.push(format!("a purge would delete {} objects", purged.len()));
    lines.extend(purged.iter().map(|id| format!("  {id}")));
    lines.join("\n") + "\n"
}

/// 0 when it is over, 3 when the next call goes on, 4 when a person has to do something.
fn stand(stand: &Stand) -> Result<ExitCode> {
    Ok(match stand {
        Stand::Done => {
            print("done\n")?;
            ExitCode::SUCCESS
        }
        Stand::RolledBack => {
            print("everything is as it was\n")?;
            ExitCode::SUCCESS
        }
        Stand::Paused { step, why } => {
            print(&format!(
                "stands before {step}: {why}\ngo on with: istio-migrate resume\n"
            ))?;
            ExitCode::from(3)
        }
        Stand::Waiting {
            step,
            why,
            commands,
        } => {
            print(&format!("waits at {step}: {why}\n"))?;
            for command in commands {
                print(&format!("  {command}\n"))?;
            }
            print("then: istio-migrate resume\n")?;
            ExitCode::from(4)
        }
    })
}
