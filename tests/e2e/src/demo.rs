//! The demo: what a user would type, what comes back, and a table of what was proven.

#![expect(clippy::print_stdout, reason = "the demo is what it prints")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Juju;
use crate::Lab;
use crate::lab::{Gateway, istio_config, received};
use crate::story::{SESSION, identity};
use crate::wait::until;
use testbed::V1_31;

/// The model's name; on the cluster, the namespace of the applications.
const MODEL: &str = "demo";
/// Where the control plane goes.
const ISTIO: &str = "istio-system";
/// Where the gateway goes.
const EDGE: &str = "istio-ingress";

/// The applications, in the order in which they go.
const APPLICATIONS: [&str; 5] = ["gate", "dashboard", "echo", "istio-integrator", "istio-k8s"];

/// Where the images come from.
#[derive(Clone, Debug)]
pub struct Images {
    /// Registry and path of Istio's.
    pub hub: String,
    /// Tag of Istio's.
    pub tag: String,
    /// The sample workloads', if not the testbed's.
    pub workload: Option<String>,
}

/// Takes the demo off a cluster that goes on living.
#[derive(Clone, Debug)]
pub struct Cleanup {
    juju: Juju,
    wanted: bool,
}

impl Cleanup {
    /// Removes the applications, which remove what is theirs, and then the model. Whatever does not
    /// go is said.
    pub fn run(&self) {
        if !self.wanted {
            return;
        }
        for app in APPLICATIONS {
            // Some of them may not be there yet, or not any more.
            let _absent = self.juju.run(&["remove-application", "--no-prompt", app]);
        }
        let gone = until("an empty model", Duration::from_mins(2), || {
            let status = self.juju.status()?;
            Ok(status["applications"]
                .as_object()
                .is_none_or(serde_json::Map::is_empty)
                .then_some(()))
        });
        let destroyed = gone.and_then(|()| {
            self.juju
                .run(&["destroy-model", MODEL, "--no-prompt"])
                .map(drop)
        });
        if let Err(error) = destroyed {
            println!("not cleaned up: {error:#}\n  juju destroy-model {MODEL} --force");
        }
    }
}

/// A running demo.
#[derive(Debug)]
pub struct Demo {
    lab: Lab,
    keep: bool,
    images: Images,
    proven: Vec<(String, bool)>,
}

impl Demo {
    /// Brings up the cluster, or takes the one of `KUBECONFIG`.
    ///
    /// # Errors
    /// Anything that does not build or start.
    pub fn up(kubeconfig: Option<PathBuf>, keep: bool, images: Images) -> Result<Self> {
        let lab = Lab::up_or_use(MODEL, &[V1_31], kubeconfig, keep)?;
        Ok(Self {
            lab,
            keep,
            images,
            proven: Vec::new(),
        })
    }

    /// Plays it.
    ///
    /// # Errors
    /// A command fails or an application does not settle. What is merely not as it should be goes
    /// into the table.
    pub fn play(&mut self) -> Result<()> {
        self.install()?;
        let gateway = self.relate()?;
        self.route(&gateway)?;
        self.guard(&gateway)?;
        self.look()?;
        self.table();
        Ok(())
    }

    /// What takes the demo off its cluster: nothing where the node ends with the process, or is kept.
    pub fn cleanup(&self) -> Cleanup {
        Cleanup {
            juju: self.lab.juju.clone(),
            wanted: !self.keep && !self.lab.owns_cluster(),
        }
    }

    /// Cleans up or says how to explore. Success if everything was proven.
    pub fn end(self) -> ExitCode {
        self.cleanup().run();
        let failed = self.proven.iter().any(|(_, held)| !held);
        if self.keep {
            self.explore();
        }
        if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    fn install(&mut self) -> Result<()> {
        heading("Install Istio and the integrator");
        let payload = V1_31.payload()?;
        let options = istio_config("istio-k8s", &self.images.hub, &self.images.tag, EDGE)?;
        let options = self.lab.write("istio-k8s.yaml", options)?;
        self.juju(&[
            "deploy",
            &Lab::charm("istio-k8s"),
            "--trust",
            "--config",
            &format!("namespace={ISTIO}"),
            "--config",
            &options,
            "--resource",
            &format!("istio-release={}", payload.display()),
        ])?;
        self.juju(&["deploy", &Lab::charm("istio-integrator"), "--trust"])?;
        self.workload("echo-k8s", "echo", &[])?;
        self.workload("dashboard-k8s", "dashboard", &["--config", "prefix=/dash/"])?;
        self.wait(&["istio-k8s", "echo", "dashboard"])?;
        let namespace = self.lab.api.get(&format!("/api/v1/namespaces/{ISTIO}"));
        self.prove(
            "Istio runs in the namespace that was asked for",
            namespace.is_ok(),
        );
        Ok(())
    }

    fn relate(&self) -> Result<Gateway> {
        heading("Give two applications ingress");
        self.juju(&["integrate", "echo:ingress", "istio-integrator:ingress"])?;
        self.juju(&["integrate", "dashboard:ingress", "istio-integrator:ingress"])?;
        self.wait(&["istio-integrator"])?;
        let address = self.lab.service(EDGE, "istio-ingressgateway", 80)?;
        Ok(Gateway {
            address,
            host: "apps.example.com".to_owned(),
        })
    }

    fn route(&mut self, gateway: &Gateway) -> Result<()> {
        heading("Send requests through the gateway");
        let echo = format!("/{MODEL}-echo/anything");
        let answer = show(gateway, &echo, &[], 200)?;
        self.prove(
            &format!("{echo} is routed, its prefix stripped"),
            answer == Some("/anything".to_owned()),
        );
        let answer = show(gateway, "/dash/view", &[], 200)?;
        self.prove(
            "/dash/view is routed, its prefix rewritten",
            answer == Some("/view".to_owned()),
        );
        let answer = show(gateway, "/nowhere", &[], 404)?;
        self.prove("/nowhere is not found", answer.is_some());
        Ok(())
    }

    fn guard(&mut self, gateway: &Gateway) -> Result<()> {
        let echo = format!("/{MODEL}-echo/anything");
        heading("Put a gatekeeper in front");
        self.workload("gatekeeper-k8s", "gate", &[])?;
        self.juju(&[
            "integrate",
            "gate:ingress-auth",
            "istio-integrator:ingress-auth",
        ])?;
        self.wait(&["gate", "istio-integrator"])?;
        let answer = show(gateway, &echo, &[], 401)?;
        self.prove("without a session the request is denied", answer.is_some());
        let answer = gateway.expect(&echo, &[SESSION], 200)?;
        let received = received(&answer)?;
        let user = identity(&received);
        println!(
            "GET {echo} with a session -> {}, as {}",
            answer.status,
            user.join(", ")
        );
        self.prove(
            "with a session it passes and carries the identity",
            user == ["lab"],
        );
        heading("Take the gatekeeper away");
        self.juju(&["remove-application", "--no-prompt", "gate"])?;
        println!(
            "... istio-integrator is {}",
            self.lab.juju.wait_status("istio-integrator", "blocked")?
        );
        let answer = show(gateway, &echo, &[SESSION], 403)?;
        self.prove(
            "without the gatekeeper everything is denied",
            answer.is_some(),
        );
        self.juju(&["config", "istio-integrator", "auth=none"])?;
        self.wait(&["istio-integrator"])?;
        let answer = show(gateway, &echo, &[], 200)?;
        self.prove(
            "until an administrator says that no auth is wanted",
            answer.is_some(),
        );
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        heading("Look at it");
        let proxies = self.juju(&["run", "istio-k8s/leader", "proxy-status"])?;
        self.prove(
            "the gateway is on the control plane",
            proxies.contains("istio-ingressgateway-"),
        );
        self.juju(&["status"])?;
        Ok(())
    }

    /// Deploys a sample workload.
    fn workload(&self, charm: &str, app: &str, more: &[&str]) -> Result<()> {
        let charm = Lab::charm(charm);
        let image = self
            .images
            .workload
            .as_ref()
            .map(|image| format!("image={image}"));
        let mut args = vec!["deploy", &charm, app, "--trust"];
        args.extend(more);
        if let Some(image) = &image {
            args.extend(["--config", image]);
        }
        self.juju(&args).map(drop)
    }

    /// Runs a command as a user types it, and shows both.
    fn juju(&self, args: &[&str]) -> Result<String> {
        println!("\n$ juju {}", typed(args));
        let out = self.lab.juju.run(args)?;
        print!("{out}");
        Ok(out)
    }

    fn wait(&self, apps: &[&str]) -> Result<()> {
        for app in apps {
            let status = self.lab.juju.wait_status(app, "active")?;
            println!("... {app} is {}", status.trim_end_matches([' ', ':']));
        }
        Ok(())
    }

    fn prove(&mut self, what: &str, held: bool) {
        self.proven.push((what.to_owned(), held));
    }

    fn table(&self) {
        heading("Proven");
        for (what, held) in &self.proven {
            println!("  {}  {what}", if *held { "yes" } else { "NO " });
        }
    }

    fn explore(&self) {
        heading("It stays up");
        println!("  cargo xtask juju status");
        println!("  cargo xtask juju run istio-k8s/leader proxy-status");
        println!("  export KUBECONFIG={}", self.lab.kubeconfig().display());
        println!("  cargo xtask testbed down");
    }
}

/// One request; what the application saw of the path, if the status is the expected one.
fn show(
    gateway: &Gateway,
    path: &str,
    headers: &[(&str, &str)],
    status: u16,
) -> Result<Option<String>> {
    let answer = match gateway.expect(path, headers, status) {
        Ok(answer) => answer,
        Err(error) => {
            println!("GET {path} -> {error:#}");
            return Ok(None);
        }
    };
    if answer.status != 200 {
        println!("GET {path} -> {}", answer.status);
        return Ok(Some(String::new()));
    }
    let seen = received(&answer)?["path"]
        .as_str()
        .context("no path in the answer")?
        .to_owned();
    println!(
        "GET {path} -> {} , the application saw {seen}",
        answer.status
    );
    Ok(Some(seen))
}

fn heading(text: &str) {
    println!("\n== {text}");
}

/// The arguments with paths shortened to what a user in their directory would type.
fn typed(args: &[&str]) -> String {
    let shorten = |arg: &&str| match arg.rsplit_once('/') {
        Some((dir, file)) if dir.contains("target/") => match dir.split_once('=') {
            Some((key, _)) => format!("{key}=./{file}"),
            None => format!("./{file}"),
        },
        _ => (*arg).to_owned(),
    };
    args.iter().map(shorten).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn paths_are_shown_as_a_user_types_them() {
        assert_eq!(
            typed(&[
                "deploy",
                "/x/target/charms/a.charm",
                "--resource",
                "r=/x/target/b/c.tar.gz"
            ]),
            "deploy ./a.charm --resource r=./c.tar.gz"
        );
        assert_eq!(typed(&["run", "a/leader", "plan"]), "run a/leader plan");
    }
}
