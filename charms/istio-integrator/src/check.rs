//! The action `check-auth`: requests of nobody, through the gateway itself. What they are is decided
//! here, which is pure; [`crate::cluster`] sends them.
//!
//! An application may refuse or redirect strangers, too. So an answer counts as the gate's only if it
//! has the status with which the gate answers where no application can: at the charm's own paths.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::ActionOutcome;
use mesh::discovery::{GatewayPort, GatewayService};
use mesh::routes::{Path, Route};

use crate::observe;
use crate::validate::Validated;

/// Most requests of one run; they are sent one after another.
const MAX: usize = 200;

/// A request of nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The relation whose route it is for.
    pub relation: u32,
    /// The host asked for; `*` for any.
    pub host: String,
    /// The path asked for.
    pub path: String,
    /// Whether it may pass.
    pub open: bool,
}

/// The requests to send, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Whether over HTTPS, where plain HTTP only leads there.
    pub secure: bool,
    /// Whether tokens alone decide: then nobody is asked, and who has none gets 401.
    pub tokens_only: bool,
    /// How many requests are left out, since there are too many.
    pub cut: usize,
    /// Namespace of the gateway's pods.
    pub namespace: String,
    /// Their labels.
    pub labels: BTreeMap<String, String>,
    /// The port that is asked.
    pub port: Option<GatewayPort>,
    /// The requests.
    pub probes: Vec<Probe>,
}

/// What a pod answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The request.
    pub probe: Probe,
    /// The pod.
    pub pod: String,
    /// The status, or why there is none.
    pub status: Result<u16, String>,
    /// The statuses with which that pod refuses whom it does not know.
    pub refusals: BTreeSet<u16>,
}

impl Answered {
    /// Whether something other than what refuses answered a request that nobody may make.
    fn passed(&self) -> bool {
        let status = self.status.as_ref();
        !self.probe.open && status.is_ok_and(|status| !self.refusals.contains(status))
    }
}

/// What is to be checked: each path of each route, and a path below it.
pub fn check(validated: &Validated) -> Option<Check> {
    let (target, edge) = (validated.target.as_ref()?, validated.edge.as_ref()?);
    let of_route = |route: &Route| {
        let hosts: Vec<String> = if route.hosts.is_empty() {
            edge.hosts.clone()
        } else {
            route
                .hosts
                .iter()
                .map(|host| host.replace('*', "any"))
                .collect()
        };
        let mut probes = Vec::new();
        for host in hosts {
            for matched in &route.matches {
                let paths = match &matched.path {
                    Path::Prefix(prefix) => vec![
                        prefix.as_str().to_owned(),
                        format!("{}check-auth", prefix.with_slash()),
                    ],
                    Path::Exact(path) => vec![path.clone()],
                    Path::Regex(pattern) => vec![pattern.literal().to_owned()],
                };
                probes.extend(paths.into_iter().map(|path| Probe {
                    relation: route.relation,
                    host: host.clone(),
                    path,
                    open: route.open,
                }));
            }
        }
        probes
    };
    let mut probes: Vec<Probe> = validated.routes.iter().flat_map(of_route).collect();
    let cut = probes.len().saturating_sub(MAX);
    probes.truncate(MAX);
    let secure = edge.tls.as_ref().is_some_and(|tls| tls.redirect);
    let service = target.gateway.service.as_ref();
    let port = if secure {
        service.and_then(GatewayService::https_port)
    } else {
        observe::http_port(&target.gateway)
    };
    Some(Check {
        secure,
        tokens_only: edge.tokens.as_ref().is_some_and(|tokens| tokens.only),
        cut,
        namespace: target.gateway.namespace.clone(),
        labels: target.gateway.labels.clone(),
        port: port.cloned(),
        probes,
    })
}

/// The action's answer: it fails if anything passed that should not, and if nothing can be told.
pub fn told(validated: &Validated, answers: Option<&Vec<Answered>>) -> ActionOutcome {
    let (Some(answers), Some(check)) = (answers, check(validated)) else {
        return ActionOutcome::failed("no gateway to ask", BTreeMap::new());
    };
    let scheme = if check.secure { "https" } else { "http" };
    let line = |answered: &Answered| {
        let Answered {
            probe, pod, status, ..
        } = answered;
        let status = match status {
            Ok(status) => status.to_string(),
            Err(why) => format!("no answer: {why}"),
        };
        format!("{pod} {scheme}://{}{}: {status}", probe.host, probe.path)
    };
    let lines = |of: &dyn Fn(&&Answered) -> bool| -> Vec<String> {
        answers.iter().filter(of).map(line).collect()
    };
    let silent = lines(&|answered| answered.status.is_err()).len();
    let passed = lines(&|answered| answered.passed());
    let results = BTreeMap::from([
        ("answers".to_owned(), lines(&|_| true).join("\n")),
        ("asked".to_owned(), answers.len().to_string()),
        ("not-asked".to_owned(), check.cut.to_string()),
        ("unanswered".to_owned(), silent.to_string()),
        ("passed".to_owned(), passed.join("\n")),
    ]);
    if !validated.auth.wanted {
        return ActionOutcome::ok(results).with_log("authorization is not wanted");
    }
    if !passed.is_empty() {
        let message = format!(
            "{} answers are not from what refuses strangers",
            passed.len()
        );
        return ActionOutcome::failed(message, results);
    }
    if answers.is_empty() || silent > 0 {
        let message = format!("{silent} of {} requests have no answer", answers.len());
        return ActionOutcome::failed(message, results);
    }
    let outcome = ActionOutcome::ok(results);
    if check.cut == 0 {
        return outcome;
    }
    outcome.with_log(format!("{} further requests were not sent", check.cut))
}
