//! What the pair does for users, asserted on the wire. The same story holds on every Istio.
//!
//! Each function says which state it needs and brings it about, so that none relies on another.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Lab;
use crate::lab::{Gateway, received};
use crate::wait::until;

/// A cookie that the sample gatekeeper accepts.
pub const SESSION: (&str, &str) = ("Cookie", "session=lab");

/// The identity that the sample gatekeeper gives to whoever has a session.
const USER: &str = "lab";

/// Two applications behind one gateway, and a gatekeeper that comes and goes.
#[derive(Debug)]
pub struct Story {
    /// Cluster, model and charms.
    pub lab: Lab,
    /// The gateway.
    pub gateway: Gateway,
    /// The model's name.
    pub model: String,
}

impl Story {
    /// Deploys the integrator and the sample applications into `lab` and relates them.
    ///
    /// # Errors
    /// Anything that does not become active.
    pub fn deploy(lab: Lab, model: &str, gateway: (&str, &str)) -> Result<Self> {
        let juju = &lab.juju;
        juju.run(&["deploy", &Lab::charm("istio-integrator"), "--trust"])?;
        juju.run(&["deploy", &Lab::charm("echo-k8s"), "echo", "--trust"])?;
        let dashboard = Lab::charm("dashboard-k8s");
        let prefix = "prefix=/dash/";
        juju.run(&[
            "deploy",
            &dashboard,
            "dashboard",
            "--trust",
            "--config",
            prefix,
        ])?;
        juju.run(&["integrate", "echo:ingress", "istio-integrator:ingress"])?;
        juju.run(&["integrate", "dashboard:ingress", "istio-integrator:ingress"])?;
        juju.wait_active(&["echo", "dashboard", "istio-integrator"])?;
        let address = lab.service(gateway.0, gateway.1, 80)?;
        let gateway = Gateway {
            address,
            host: "apps.example.com".to_owned(),
        };
        Ok(Self {
            lab,
            gateway,
            model: model.to_owned(),
        })
    }

    /// A path of the application that speaks the traefik dialect.
    pub fn echo(&self) -> String {
        format!("/{}-echo/anything", self.model)
    }

    /// A path of the application that speaks the Kubeflow dialect.
    pub fn dashboard(&self) -> String {
        "/dash/view".to_owned()
    }

    /// No authentication is asked for.
    ///
    /// # Errors
    /// It does not come about.
    pub fn open(&self) -> Result<()> {
        let juju = &self.lab.juju;
        if self.has("gate")? {
            juju.run(&["remove-application", "--no-prompt", "gate"])?;
        }
        self.related()?;
        juju.run(&["config", "istio-integrator", "auth=none"])?;
        juju.wait_active(&["istio-integrator"])?;
        self.gateway.expect(&self.echo(), &[], 200).map(drop)
    }

    /// The gatekeeper is related and its protection is in force.
    ///
    /// # Errors
    /// It does not come about.
    pub fn guarded(&self) -> Result<()> {
        let juju = &self.lab.juju;
        self.related()?;
        juju.run(&["config", "istio-integrator", "auth=auto"])?;
        if !self.has("gate")? {
            juju.run(&["deploy", &Lab::charm("gatekeeper-k8s"), "gate", "--trust"])?;
            juju.run(&[
                "integrate",
                "gate:ingress-auth",
                "istio-integrator:ingress-auth",
            ])?;
        }
        juju.wait_active(&["gate", "istio-integrator"])?;
        self.gateway.expect(&self.echo(), &[], 401).map(drop)
    }

    /// Both applications have ingress; a test that failed may have left one without.
    fn related(&self) -> Result<()> {
        for app in ["echo", "dashboard"] {
            if self.lab.juju.status()?["applications"][app]["relations"]["ingress"].is_null() {
                let endpoint = format!("{app}:ingress");
                self.lab
                    .juju
                    .run(&["integrate", &endpoint, "istio-integrator:ingress"])?;
            }
        }
        Ok(())
    }

    fn has(&self, app: &str) -> Result<bool> {
        Ok(self.lab.juju.status()?["applications"].get(app).is_some())
    }

    /// Every answer of a row has `status`: for what must not slip through even once.
    ///
    /// # Errors
    /// One answer has not.
    pub fn steady(&self, path: &str, headers: &[(&str, &str)], status: u16) -> Result<()> {
        for turn in 0..40 {
            let answer = self.gateway.get(path, headers)?;
            ensure!(
                answer.status == status,
                "answer {turn} to {path} was {} {}",
                answer.status,
                answer.body
            );
        }
        Ok(())
    }

    /// Requests reach both applications, with the prefix stripped or rewritten.
    ///
    /// # Errors
    /// They do not.
    pub fn routed_and_rewritten(&self) -> Result<()> {
        self.open()?;
        for (path, seen) in [(self.echo(), "/anything"), (self.dashboard(), "/view")] {
            let answer = received(&self.gateway.expect(&path, &[], 200)?)?;
            ensure!(answer["path"] == seen, "{path} arrived as {answer}");
        }
        Ok(())
    }

    /// What no relation asked for is not found, nor is what only begins like a prefix.
    ///
    /// # Errors
    /// It is found.
    pub fn unknown_is_not_found(&self) -> Result<()> {
        self.open()?;
        let longer = format!("/{}-echoes", self.model);
        for path in ["/nowhere", &longer, "/dashing"] {
            self.steady(path, &[], 404)?;
        }
        Ok(())
    }

    /// With the gatekeeper a request needs a session, and then carries the identity.
    ///
    /// # Errors
    /// A request without a session passes, or one with a session carries none.
    pub fn a_session_is_needed(&self) -> Result<()> {
        self.guarded()?;
        for path in [self.echo(), self.dashboard()] {
            self.steady(&path, &[], 401)?;
        }
        let answer = received(&self.gateway.expect(&self.echo(), &[SESSION], 200)?)?;
        ensure!(identity(&answer) == [USER], "no identity in {answer}");
        Ok(())
    }

    /// An identity that the client claims is taken off, with auth and without.
    ///
    /// # Errors
    /// It reaches an application.
    pub fn a_forged_identity_is_stripped(&self) -> Result<()> {
        self.guarded()?;
        let forged = ("kubeflow-userid", "mallory");
        let answer = received(&self.gateway.expect(&self.echo(), &[SESSION, forged], 200)?)?;
        ensure!(identity(&answer) == [USER], "forged: {answer}");
        self.steady(&self.echo(), &[forged], 401)
    }

    /// With the provider's pods gone everything is denied, and comes back with them.
    ///
    /// # Errors
    /// A request passes meanwhile.
    pub fn provider_down_denies(&self) -> Result<()> {
        self.guarded()?;
        self.scale("gate", 0)?;
        self.gateway.expect(&self.echo(), &[SESSION], 403)?;
        self.steady(&self.echo(), &[SESSION], 403)?;
        self.steady(&self.echo(), &[], 403)?;
        self.scale("gate", 1)?;
        self.gateway.expect(&self.echo(), &[SESSION], 200).map(drop)
    }

    /// With the auth application removed everything is denied until an administrator decides.
    ///
    /// # Errors
    /// A request passes meanwhile.
    pub fn auth_application_gone_denies(&self) -> Result<()> {
        self.guarded()?;
        let juju = &self.lab.juju;
        juju.run(&["remove-application", "--no-prompt", "gate"])?;
        let status = juju.wait_status("istio-integrator", "blocked")?;
        ensure!(
            status.contains("auth"),
            "the status does not say why: {status}"
        );
        self.gateway.expect(&self.echo(), &[SESSION], 403)?;
        self.steady(&self.echo(), &[SESSION], 403)?;
        self.steady(&self.dashboard(), &[], 403)?;
        self.open()
    }

    /// Removing a relation removes its route and no other.
    ///
    /// # Errors
    /// The route stays, or another goes.
    pub fn relation_removed_removes_its_route(&self) -> Result<()> {
        self.open()?;
        let juju = &self.lab.juju;
        juju.run(&[
            "remove-relation",
            "echo:ingress",
            "istio-integrator:ingress",
        ])?;
        // A model moves on when it is looked at.
        juju.wait_active(&["istio-integrator"])?;
        self.gateway.expect(&self.echo(), &[], 404)?;
        self.steady(&self.dashboard(), &[], 200)?;
        juju.run(&["integrate", "echo:ingress", "istio-integrator:ingress"])?;
        juju.wait_active(&["istio-integrator", "echo"])?;
        self.gateway.expect(&self.echo(), &[], 200).map(drop)
    }

    /// The action tells each relation's URL.
    ///
    /// # Errors
    /// One is missing.
    pub fn routes_are_listed(&self) -> Result<()> {
        self.open()?;
        let unit = "istio-integrator/leader";
        let results = self
            .lab
            .juju
            .action(unit, "list-routes", &["format=json"])?;
        let text = results["routes"].as_str().context("no routes")?;
        let echo = format!("/{}-echo", self.model);
        ensure!(
            text.contains(&echo) && text.contains("/dash/"),
            "missing in {text}"
        );
        Ok(())
    }

    /// Gives a deployment so many pods, and waits for them to be ready.
    ///
    /// # Errors
    /// They are not.
    pub fn scale(&self, deployment: &str, replicas: u64) -> Result<()> {
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{deployment}",
            self.model
        );
        let scale = format!("{path}/scale");
        let mut object = self.lab.api.get(&scale)?;
        object["spec"]["replicas"] = replicas.into();
        self.lab
            .api
            .call(&http::Method::PUT, &scale, Some(&object))?;
        until(
            &format!("{replicas} replicas of {deployment}"),
            Duration::from_mins(1),
            || {
                let live = self.lab.api.get(&path)?;
                Ok(
                    (live["status"]["readyReplicas"].as_u64().unwrap_or(0) == replicas)
                        .then_some(()),
                )
            },
        )
    }
}

/// The identities that arrived, however the header is spelt.
pub fn identity(answer: &Value) -> Vec<&str> {
    let headers = answer["headers"].as_object();
    let named = headers
        .into_iter()
        .flatten()
        .filter(|(k, _)| k.eq_ignore_ascii_case("kubeflow-userid"));
    named
        .filter_map(|(_, v)| v.as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
