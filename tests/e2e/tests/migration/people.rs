//! People, who type what a step asks for. Applications, authorizer and integrator are real charms in a
//! model; the old charms, which are no part of this repository, are played: what theirs write and delete.

use anyhow::{Context as _, Result, ensure};
use e2e::{Juju, lab};
use http::Method;

use crate::pilot::{APPS, GATE, GATEWAY, Lab, OLD, charm_pods};

const INTEGRATOR: &str = "istio-integrator";

/// A model of the namespace, and whoever has its keyboard.
#[derive(Debug)]
pub(crate) struct People {
    juju: Juju,
}

impl People {
    /// The model with its applications.
    pub(crate) fn arrive(lab: &Lab) -> Result<Self> {
        lab::pack()?;
        let program = lab::program("testbed-juju")?;
        let juju = Juju::new(program, lab.scratch()?, lab.kubeconfig());
        juju.run(&["add-model", OLD])?;
        let two = ["--trust", "--config", "replicas=2"];
        let gatekeeper = e2e::Lab::charm("gatekeeper-k8s");
        juju.run(&[&["deploy", &gatekeeper, GATE], &two[..]].concat())?;
        for app in APPS {
            let prefix = format!("prefix=/{app}/");
            let charm = e2e::Lab::charm("dashboard-k8s");
            let args = [&["deploy", &charm, app, "--config", &prefix], &two[..]];
            juju.run(&args.concat())?;
        }
        juju.wait_active(&[GATE, APPS[0], APPS[1]])?;
        Ok(Self { juju })
    }

    /// Does what a step asks for.
    pub(crate) fn act(&self, lab: &Lab, commands: &[String]) -> Result<()> {
        for command in commands {
            println!("        $ {command}");
            let words: Vec<&str> = command.split_whitespace().collect();
            self.type_in(lab, &words).with_context(|| command.clone())?;
        }
        Ok(())
    }

    fn type_in(&self, lab: &Lab, words: &[&str]) -> Result<()> {
        match words {
            ["juju", "deploy", INTEGRATOR, rest @ ..] => {
                let charm = e2e::Lab::charm(INTEGRATOR);
                let mut args = vec!["deploy", charm.as_str()];
                args.extend(rest);
                self.juju.run(&args)?;
                lab.apply([charm_pods(INTEGRATOR)])?;
                self.juju.wait_active(&[INTEGRATOR])
            }
            ["juju", "remove-relation", "istio-pilot:ingress", app] => lab.delete(&route_path(app)),
            ["juju", "remove-relation", "istio-pilot:ingress-auth", _] => {
                lab.delete(&filter_path())
            }
            ["juju", "integrate", one, other] if one.starts_with(INTEGRATOR) => {
                self.juju.run(&["integrate", one, other])?;
                self.juju.wait_active(&[INTEGRATOR])
            }
            ["juju", "remove-application", "istio-pilot", ..] => {
                // Its remove hook: everything of its relations once more, then the purge.
                lab.pilot_writes()?;
                let purged = lab.purge()?;
                println!("purge: {purged}");
                ensure!(!purged.contains("Removed"), "the purge found something");
                lab.delete(&pods_path("istio-pilot"))
            }
            ["juju", "remove-application", "istio-ingressgateway", ..] => {
                // Its remove hook deletes by name, and fails at the first that it may not.
                for path in [
                    format!("/apis/apps/v1/namespaces/{OLD}/deployments/{GATEWAY}"),
                    format!("/api/v1/namespaces/{OLD}/services/{GATEWAY}"),
                ] {
                    let refused = lab.api.call(&Method::DELETE, &path, None);
                    ensure!(refused.is_err(), "{path} was deleted");
                }
                lab.delete(&pods_path("istio-ingressgateway"))
            }
            // The daemon comes after the move; nothing else is a command.
            _ => Ok(()),
        }
    }
}

fn pods_path(application: &str) -> String {
    format!("/apis/apps/v1/namespaces/{OLD}/statefulsets/{application}")
}

fn filter_path() -> String {
    let group = "/apis/networking.istio.io/v1alpha3";
    format!("{group}/namespaces/{OLD}/envoyfilters/istio-pilot-authn-filter")
}

fn route_path(endpoint: &str) -> String {
    let app = endpoint.split(':').next().unwrap_or_default();
    format!("/apis/networking.istio.io/v1/namespaces/{OLD}/virtualservices/{app}-web")
}
