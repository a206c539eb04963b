//! From what was read to what is asked of the charm, and what is wrong. Pure.

use std::collections::BTreeMap;

use juju_charm::{ModelView, Problem, RelationId};
use mesh::auth::{Gate, Mechanism, covered_elsewhere, is_open_by_path};
use mesh::routes::{Edge, Route, Tls, Tokens};

use crate::auth::{self, Auth};
use crate::config;
use crate::findings;
use crate::gateway_api;
use crate::ingress::{IngressState, ingresses};
use crate::observe::{Names, View};
use crate::policies::{self, Permission};
use crate::target::{Target, target, target_problems};
use crate::tls::{self, TlsState};

/// What is asked of the charm.
#[derive(Clone, Debug)]
pub struct Validated {
    /// Where to route; `None` if that is not clear.
    pub target: Option<Target>,
    /// Where routes are attached; `None` without a target.
    pub edge: Option<Edge>,
    /// What is asked about authorization.
    pub auth: Auth,
    /// The gateway's certificate.
    pub tls: TlsState,
    /// The routes that can be served.
    pub routes: Vec<Route>,
    /// Who may call whom, as related applications ask.
    pub permissions: Vec<Permission>,
    /// One entry for each relation that asks for routes.
    pub ingresses: BTreeMap<RelationId, IngressState>,
}

/// Checks everything.
pub fn validate(view: &ModelView, cluster: &View) -> (Validated, Vec<Problem>) {
    let mut problems = Vec::new();
    let app = view.context.app.to_string();
    if !cluster.forbidden.is_empty() {
        let what = cluster.forbidden.join(", ");
        problems.push(
            Problem::blocked(format!("not permitted to {what}"))
                .with_hint(format!("juju trust {app} --scope=cluster")),
        );
    }
    let settings = match config::read(&app, &view.config) {
        Ok(settings) => Some(settings),
        Err(problem) => {
            problems.push(problem);
            None
        }
    };
    // An option that cannot be read does not say that none is wanted.
    let mode = config::auth(&view.config).unwrap_or_default();
    let mut auth = auth::auth(view, cluster, mode, &mut problems);
    let mut tls = tls::tls(view, settings.as_ref(), cluster, &mut problems);
    let target = settings.and_then(|settings| {
        target(view, cluster, settings, tls.pair.is_some())
            .map_err(|problem| problems.push(problem))
            .ok()
    });
    problems.extend(target.as_ref().into_iter().flat_map(target_problems));
    let api = target.as_ref().and_then(|target| target.api.as_ref());
    if let Some(choice) = api.filter(|choice| !choice.own)
        && tls.pair.take().is_some()
    {
        let (namespace, name) = (&choice.gateway.workload.namespace, &choice.gateway.name);
        problems.push(Problem::blocked(format!(
            "Gateway {namespace}/{name} is not ours: its owner decides about TLS"
        )));
    }
    if let (Some(target), Some(_)) = (&target, &tls.pair)
        && target.tls_port.is_none()
    {
        problems.push(Problem::blocked(format!(
            "gateway {} has no Service port for HTTPS: plain HTTP only",
            target.gateway.reference()
        )));
        tls.pair = None;
    }
    if api.is_some() {
        gateway_api::adapt_auth(&mut auth, cluster, &mut problems);
    }
    let (mut routes, mut ingresses) = ingresses(view, cluster, target.as_ref(), &mut problems);
    if api.is_some() {
        gateway_api::refuse(&mut routes, &mut ingresses, &mut problems);
    }
    let permissions = policies::permissions(view, cluster, &mut problems);
    let edge = target
        .as_ref()
        .map(|target| edge(view, target, &auth, &tls));
    if let (Some(edge), Some(target)) = (&edge, &target) {
        problems.extend(not_open(&auth, edge, &routes));
        problems.extend(findings::gateways(edge, target, cluster, &routes));
        if let Some(choice) = &target.api {
            let states = &mut ingresses;
            gateway_api::problems(edge, choice, cluster, &auth, &routes, states, &mut problems);
        }
    }
    (
        Validated {
            target,
            edge,
            auth,
            tls,
            routes,
            permissions,
            ingresses,
        },
        problems,
    )
}

fn edge(view: &ModelView, target: &Target, auth: &Auth, tls: &TlsState) -> Edge {
    let model = view.context.model_name.as_str();
    let app = view.context.app.as_str();
    let names = Names::new(model, view.context.model_uuid.as_str(), app);
    let tls = tls.pair.as_ref().and(target.tls_port).map(|port| Tls {
        port,
        credential: names.credential(),
        redirect: target.settings.https_redirect,
    });
    let host = target.settings.external_hostname.clone();
    Edge {
        namespace: model.to_owned(),
        gateway: target.settings.gateway_name.clone(),
        name: format!("{}-routes", names.app),
        hosts: vec![host.unwrap_or_else(|| "*".to_owned())],
        guard: auth.guard.clone(),
        http: target.port,
        tls,
        tokens: auth.gate.as_ref().and_then(tokens),
    }
}

fn tokens(gate: &Gate) -> Option<Tokens> {
    let issuers = gate.tokens.iter().map(|rule| rule.issuer.clone());
    Some(Tokens {
        issuers: issuers.collect(),
        only: gate.mechanism() == Some(Mechanism::Tokens),
    })
    .filter(|tokens| !tokens.issuers.is_empty())
}

/// Where an extension provider is asked, paths decide: routes that are open under further conditions
/// cannot be told from others, nor those whose path is guarded on another host.
fn not_open(auth: &Auth, edge: &Edge, routes: &[Route]) -> Vec<Problem> {
    let gate = auth.gate.as_ref();
    if gate.and_then(Gate::mechanism) != Some(Mechanism::Provider) {
        return Vec::new();
    }
    let conditions = routes
        .iter()
        .filter(|route| route.open && !is_open_by_path(route))
        .map(|route| (route, "has conditions besides its path"));
    let covered = covered_elsewhere(edge, routes)
        .into_iter()
        .map(|route| (route, "has a path that is guarded on another host"));
    conditions
        .chain(covered)
        .map(|(Route { name, app, .. }, why)| {
            Problem::blocked(format!(
                "route {name} of {app} {why}: it cannot be open here"
            ))
        })
        .collect()
}
