//! The action `check-auth`: requests of nobody, through the gateway itself. What they are is decided
//! here, which is pure; [`crate::cluster`] sends them.

use std::collections::BTreeMap;

use juju_charm::ActionOutcome;
use mesh::discovery::GatewayPort;
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
    probes.truncate(MAX);
    Some(Check {
        namespace: target.gateway.namespace.clone(),
        labels: target.gateway.labels.clone(),
        port: observe::http_port(&target.gateway).cloned(),
        probes,
    })
}

/// The action's answer: it fails if anything passed that should not.
pub fn told(wanted: bool, answers: Option<&Vec<Answered>>) -> ActionOutcome {
    let Some(answers) = answers else {
        return ActionOutcome::failed("no gateway to ask", BTreeMap::new());
    };
    let line = |answered: &Answered| {
        let Answered { probe, pod, status } = answered;
        let status = match status {
            Ok(status) => status.to_string(),
            Err(why) => format!("no answer: {why}"),
        };
        format!("{pod} http://{}{}: {status}", probe.host, probe.path)
    };
    let passed =
        |answered: &&Answered| matches!(answered.status, Ok(200..=299)) && !answered.probe.open;
    let silent = answers
        .iter()
        .filter(|answered| answered.status.is_err())
        .count();
    let open: Vec<String> = answers.iter().filter(passed).map(line).collect();
    let results = BTreeMap::from([
        (
            "answers".to_owned(),
            answers.iter().map(line).collect::<Vec<_>>().join("\n"),
        ),
        ("asked".to_owned(), answers.len().to_string()),
        ("unanswered".to_owned(), silent.to_string()),
        ("passed".to_owned(), open.join("\n")),
    ]);
    if !wanted {
        return ActionOutcome::ok(results).with_log("authorization is not wanted");
    }
    if !open.is_empty() {
        let message = format!("{} requests of nobody passed", open.len());
        return ActionOutcome::failed(message, results);
    }
    if answers.is_empty() || silent == answers.len() {
        return ActionOutcome::failed("no pod of the gateway answered", results);
    }
    ActionOutcome::ok(results)
}
