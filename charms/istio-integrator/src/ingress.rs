//! What related applications ask to be routed: from the databags of all ingress endpoints to requests
//! for routes. Pure. A bad relation is a problem of its own and costs no other relation anything.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{ModelView, Problem, RelationId, RelationView};
use mesh::name::check_label;
use mesh::routes::{Backend, OwnHosts, Route, RouteRequest, is_host, routes_at};
use relations::{Ingress, KubeflowIngress, RouteConfig, Scheme, TraefikIngress};

use crate::observe::{APP_LABEL, View};
use crate::route_config;
use crate::target::Target;

/// The endpoints that ask for routes, and whether nobody is asked about their requests.
pub const ENDPOINTS: &[(&str, bool)] = &[
    ("ingress", false),
    ("ingress-unauthenticated", true),
    ("istio-ingress-route", false),
    ("istio-ingress-route-unauthenticated", true),
];

/// How far one relation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressState {
    /// The endpoint.
    pub endpoint: &'static str,
    /// The related application.
    pub app: String,
    /// `kubeflow`, `traefik` or `route`; `None` until it has said anything.
    pub dialect: Option<&'static str>,
    /// Whether it is of another model.
    pub foreign: bool,
    /// The routes asked for, not yet checked.
    pub requests: Vec<RouteRequest>,
    /// Why it gets none, or not all.
    pub problem: Option<String>,
}

/// The routes that can be served, and one state for each relation.
pub fn ingresses(
    view: &ModelView,
    cluster: &View,
    target: Option<&Target>,
    problems: &mut Vec<Problem>,
) -> (Vec<Route>, BTreeMap<RelationId, IngressState>) {
    let mut states: BTreeMap<RelationId, IngressState> = BTreeMap::new();
    for (endpoint, open) in ENDPOINTS {
        for relation in view.relations_of(endpoint) {
            let (mut state, problem) = read(view, cluster, endpoint, relation);
            for request in &mut state.requests {
                request.open = *open;
            }
            if let Some(problem) = problem {
                state.problem = Some(problem.message.clone());
                problems.push(told(&state, &problem));
            }
            states.insert(relation.id, state);
        }
    }
    for state in states.values_mut() {
        let looped = target.and_then(|target| {
            let backends = state.requests.iter().flat_map(RouteRequest::backends);
            let mut backends = backends.map(|weighted| &weighted.backend);
            backends
                .find(|backend| is_gateway(backend, target))
                .cloned()
        });
        if let Some(backend) = looped {
            let message = format!("{} is the gateway itself", backend.host());
            problems.push(told(state, &Problem::blocked(message.clone())));
            state.problem = Some(message);
            state.requests.clear();
        }
    }
    refuse_others_services(view, cluster, &mut states, problems);
    let requests: Vec<RouteRequest> = states
        .values()
        .flat_map(|state| state.requests.clone())
        .collect();
    let (routes, refused) = routes_at(&own_hosts(target), &requests);
    for ((id, name), refusal) in refused {
        if let Some(state) = states.get_mut(&RelationId(id)) {
            let message = if name.is_empty() {
                refusal.to_string()
            } else {
                format!("route {name}: {refusal}")
            };
            problems.push(told(state, &Problem::blocked(message.clone())));
            state.problem.get_or_insert(message);
        }
    }
    (routes, states)
}

/// What the gateway is called. Where routes that name no host are for any, one that names the host of
/// the gateway's own URL means the same: alone with that name it would keep the others from it.
fn own_hosts(target: Option<&Target>) -> OwnHosts {
    let external = target.and_then(|target| target.settings.external_hostname.clone());
    let known = target.filter(|_| external.is_none()).and_then(Target::host);
    let name = known.map(|host| host.split(':').next().unwrap_or(host).to_ascii_lowercase());
    OwnHosts {
        default: Some(external.unwrap_or_else(|| "*".to_owned())),
        names: name.into_iter().filter(|name| is_host(name)).collect(),
    }
}

/// Nobody opens what is another's: of an open endpoint, backends are the requirer's own.
fn refuse_others_services(
    view: &ModelView,
    cluster: &View,
    states: &mut BTreeMap<RelationId, IngressState>,
    problems: &mut Vec<Problem>,
) {
    let model = view.context.model_name.as_str();
    let names: BTreeMap<RelationId, String> = ENDPOINTS
        .iter()
        .flat_map(|(endpoint, _)| view.relations_of(endpoint))
        .map(|relation| (relation.id, remote(relation)))
        .collect();
    let mut guarded: BTreeMap<Backend, BTreeSet<&String>> = BTreeMap::new();
    for (id, state) in states.iter() {
        for request in state.requests.iter().filter(|request| !request.open) {
            for weighted in request.backends() {
                let apps = guarded.entry(service_only(&weighted.backend)).or_default();
                apps.extend(names.get(id));
            }
        }
    }
    for (id, state) in states.iter_mut() {
        let Some(app) = names.get(id) else { continue };
        let is_others = |backend: &&Backend| {
            let of_another = guarded
                .get(&service_only(backend))
                .is_some_and(|apps| apps.iter().any(|guarding| *guarding != app));
            // Services of other models are not read.
            of_another
                || (backend.namespace == model && !is_own(cluster, app, backend))
                || (backend.namespace != model && !state.foreign)
        };
        let open = state.requests.iter().filter(|request| request.open);
        let mut backends = open
            .flat_map(RouteRequest::backends)
            .map(|weighted| &weighted.backend);
        if let Some(backend) = backends.find(is_others) {
            let Backend {
                service, namespace, ..
            } = backend;
            let message = format!("Service {namespace}/{service} is not its own");
            problems.push(told(state, &Problem::blocked(message.clone())));
            state.problem = Some(message);
            state.requests.clear();
        }
    }
}

/// A Service whatever the port.
fn service_only(backend: &Backend) -> Backend {
    Backend {
        port: 0,
        ..backend.clone()
    }
}

/// Whether a Service of the own model is that of an application: Juju's by its name, or one that leads
/// to its pods.
fn is_own(cluster: &View, app: &str, backend: &Backend) -> bool {
    let key = (backend.namespace.clone(), backend.service.clone());
    let selector = cluster.services.get(&key).map(|service| &service.selector);
    backend.service == app
        || selector.is_some_and(|selector| selector.get(APP_LABEL).is_some_and(|of| of == app))
}

fn told(state: &IngressState, problem: &Problem) -> Problem {
    Problem::new(
        problem.severity,
        format!("{} of {}: {}", state.endpoint, state.app, problem.message),
    )
}

fn read(
    view: &ModelView,
    cluster: &View,
    endpoint: &'static str,
    relation: &RelationView,
) -> (IngressState, Option<Problem>) {
    let app = remote(relation);
    let mut state = IngressState {
        endpoint,
        app: app.clone(),
        dialect: None,
        foreign: false,
        requests: Vec::new(),
        problem: None,
    };
    let result = if endpoint.starts_with("istio-ingress-route") {
        routed(view, cluster, relation, &app, &mut state)
    } else {
        ingressed(view, cluster, relation, &app, &mut state)
    };
    let problem = match result {
        Ok(requests) => {
            state.requests = requests;
            None
        }
        Err(problem) => Some(problem),
    };
    (state, problem)
}

fn routed(
    view: &ModelView,
    cluster: &View,
    relation: &RelationView,
    app: &str,
    state: &mut IngressState,
) -> Result<Vec<RouteRequest>, Problem> {
    let config = RouteConfig::decode(&relation.remote_app_data)
        .map_err(|problem| Problem::blocked(problem.to_string()))?
        .ok_or_else(|| Problem::waiting("no data yet"))?;
    state.dialect = Some("route");
    let own = view.context.model_name.as_str();
    state.foreign = is_foreign(app, own, &config.model, cluster);
    if state.foreign {
        state.app = format!("{app} (of model {})", config.model);
    } else {
        own_word("model", &config.model, own)?;
    }
    check_label(&config.model)
        .map_err(|why| Problem::blocked(format!("model {:?} {why}", config.model)))?;
    route_config::requests(relation.id.0, &state.app, &config)
}

fn ingressed(
    view: &ModelView,
    cluster: &View,
    relation: &RelationView,
    app: &str,
    state: &mut IngressState,
) -> Result<Vec<RouteRequest>, Problem> {
    let model = view.context.model_name.as_str();
    let ingress = Ingress::decode(&relation.remote_app_data, relation.remote_units.values())
        .map_err(|problem| Problem::blocked(problem.to_string()))?
        .ok_or_else(|| Problem::waiting("no data yet"))?;
    match ingress {
        Ingress::Kubeflow(ingress) => {
            state.dialect = Some("kubeflow");
            let namespace = ingress.namespace.as_deref().unwrap_or(model);
            state.foreign = is_foreign(app, model, namespace, cluster);
            Ok(vec![kubeflow(relation.id, app, model, ingress)])
        }
        Ingress::Traefik(ingress) => {
            state.dialect = Some("traefik");
            let foreign = is_foreign(app, model, &ingress.model, cluster);
            state.foreign = foreign;
            if foreign {
                state.app = format!("{app} ({} of model {})", ingress.name, ingress.model);
            }
            speaks_for_itself(app, model, &ingress, foreign)?;
            Ok(vec![traefik(relation.id, app, ingress)?])
        }
    }
}

/// Whether requests would come back to where they are from, for ever.
fn is_gateway(backend: &Backend, target: &Target) -> bool {
    let service = target.gateway.service.as_ref();
    backend.namespace == target.gateway.namespace
        && service.is_some_and(|service| service.name == backend.service)
}

/// Whether an application is of another model: Juju made up its name (that is how it calls those
/// that relate to an offer of ours), or it is an offer that was consumed under some name, says that
/// it is of another model, and this model has no application of that name (Juju gives each a Service).
pub(crate) fn is_foreign(app: &str, own_model: &str, says: &str, cluster: &View) -> bool {
    let made_up = app.strip_prefix("remote-").is_some_and(|token| {
        token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let here = cluster.is_blind_to(&["services"])
        || cluster
            .services
            .contains_key(&(own_model.to_owned(), app.to_owned()));
    made_up || (says != own_model && !here)
}

fn own_word(what: &str, text: &str, own: &str) -> Result<(), Problem> {
    if text == own {
        return Ok(());
    }
    Err(Problem::blocked(format!("{what} {text:?} is not its own")))
}

/// Model and name make the prefix, and perhaps the backend: an application speaks for itself only.
/// What one of another model is called there, it alone can tell.
fn speaks_for_itself(
    app: &str,
    own_model: &str,
    ingress: &TraefikIngress,
    foreign: bool,
) -> Result<(), Problem> {
    for (what, text, own) in [
        ("model", &ingress.model, own_model),
        ("name", &ingress.name, app),
    ] {
        check_label(text).map_err(|why| Problem::blocked(format!("{what} {text:?} {why}")))?;
        if !foreign {
            own_word(what, text, own)?;
        }
    }
    Ok(())
}

fn kubeflow(id: RelationId, app: &str, model: &str, ingress: KubeflowIngress) -> RouteRequest {
    let KubeflowIngress {
        service,
        port,
        namespace,
        prefix,
        rewrite,
    } = ingress;
    let backend = Backend {
        service,
        namespace: namespace.unwrap_or_else(|| model.to_owned()),
        port,
    };
    RouteRequest::prefix(id.0, app, &prefix, rewrite, backend)
}

fn traefik(id: RelationId, app: &str, ingress: TraefikIngress) -> Result<RouteRequest, Problem> {
    if ingress.units.is_empty() {
        return Err(Problem::waiting("no unit is ready"));
    }
    if ingress.scheme == Scheme::Https {
        let scheme = ingress.scheme.as_str();
        return Err(Problem::blocked(format!(
            "scheme {scheme} of the application is not served"
        )));
    }
    let (service, namespace) = service_of(&ingress);
    let TraefikIngress {
        model,
        name,
        port,
        strip_prefix,
        scheme,
        ..
    } = ingress;
    let backend = Backend {
        service,
        namespace,
        port,
    };
    let rewrite = strip_prefix.then(|| "/".to_owned());
    let mut request =
        RouteRequest::prefix(id.0, app, &format!("/{model}-{name}"), rewrite, backend);
    request.client_protocol = scheme == Scheme::H2c;
    Ok(request)
}

/// The Service behind a requirer: the one all its units name as their host, else the one Juju makes
/// for the application. (Most units name their pod, which is no Service.)
fn service_of(ingress: &TraefikIngress) -> (String, String) {
    let hosts: BTreeSet<&str> = ingress
        .units
        .iter()
        .map(|unit| unit.host.as_str())
        .collect();
    let mut hosts = hosts.into_iter();
    if let (Some(host), None) = (hosts.next(), hosts.next()) {
        let mut parts = host.split('.');
        if let (Some(service), Some(namespace), Some("svc")) =
            (parts.next(), parts.next(), parts.next())
        {
            return (service.to_owned(), namespace.to_owned());
        }
    }
    (ingress.name.clone(), ingress.model.clone())
}

/// What a relation's other side is called.
pub fn remote(relation: &RelationView) -> String {
    match &relation.remote_app {
        Some(app) => app.to_string(),
        None => format!("relation {}", relation.id),
    }
}
