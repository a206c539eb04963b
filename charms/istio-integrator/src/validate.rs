//! From what was read to what is asked of the charm, and what is wrong. Pure.
//!
//! A bad relation is a problem of its own and costs no other relation anything.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{ModelView, Problem, RelationId, RelationView};
use mesh::auth::{AuthMode, Authorizer, wanted};
use mesh::discovery::{ControlPlane, GatewayService, GatewayWorkload, Selected, ServiceKind};
use mesh::name::check_label;
use mesh::routes::{Backend, Route, RouteRequest, routes};
use relations::{Ingress, IngressAuth, KubeflowIngress, Scheme, TraefikIngress};

use crate::config::{self, Settings};
use crate::observe::{self, View};

/// What is asked of the charm.
#[derive(Clone, Debug)]
pub struct Validated {
    /// Where to route; `None` if that is not clear.
    pub target: Option<Target>,
    /// What is asked about authorization.
    pub auth: Auth,
    /// The routes that can be served, longest prefix first.
    pub routes: Vec<Route>,
    /// One entry for each `ingress` relation.
    pub ingresses: BTreeMap<RelationId, IngressState>,
}

/// Where to route.
#[derive(Clone, Debug)]
pub struct Target {
    /// The options.
    pub settings: Settings,
    /// The control plane.
    pub plane: ControlPlane,
    /// The gateway.
    pub gateway: GatewayWorkload,
    /// The port of its Service for plain HTTP.
    pub port: u16,
    /// The namespaces where a `Gateway` with its labels has pods.
    pub namespaces: BTreeSet<String>,
    /// Scheme, host and port of URLs; `None` while the gateway has no address.
    pub base_url: Option<String>,
    /// Whether a pod of the gateway is ready.
    pub ready: bool,
}

/// What is asked about authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// Whether it is wanted.
    pub wanted: bool,
    /// Who decides; `None` if that is not clear.
    pub authorizer: Option<Authorizer>,
    /// The application that offers it.
    pub app: Option<String>,
    /// What routes ask for, see [`mesh::auth::GUARD_HEADER`]; `None` unless wanted.
    pub guard: Option<String>,
}

/// How far one `ingress` relation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressState {
    /// The related application.
    pub app: String,
    /// `kubeflow` or `traefik`; `None` until it has said anything.
    pub dialect: Option<&'static str>,
    /// The route asked for, not yet checked.
    pub request: Option<RouteRequest>,
    /// Why it gets none.
    pub problem: Option<String>,
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
    let auth = auth(view, cluster, mode, &mut problems);
    let target = settings.and_then(|settings| {
        target(view, cluster, settings)
            .map_err(|problem| problems.push(problem))
            .ok()
    });
    problems.extend(target.as_ref().into_iter().flat_map(target_problems));
    let (routes, ingresses) = ingresses(view, target.as_ref(), &mut problems);
    (
        Validated {
            target,
            auth,
            routes,
            ingresses,
        },
        problems,
    )
}

fn target(view: &ModelView, cluster: &View, settings: Settings) -> Result<Target, Problem> {
    let app = view.context.app.as_str();
    if cluster.networking.is_empty() {
        return Err(Problem::blocked(
            "no Istio found: the cluster does not serve virtualservices.networking.istio.io",
        ));
    }
    let plane = match &cluster.plane {
        Selected::One(plane) => plane.clone(),
        Selected::None { looked_for } => {
            let text = format!("no Istio found: looked for {looked_for}");
            // The related charm says where its Istio will be.
            let awaited = observe::root_namespace(view).is_some();
            return Err(if awaited {
                Problem::waiting(text)
            } else {
                Problem::blocked(text)
            });
        }
        Selected::Several { candidates } => {
            let namespaces: BTreeSet<&str> = candidates
                .iter()
                .filter_map(|name| Some(name.split_once('/')?.0))
                .collect();
            let option = if namespaces.len() > 1 {
                "istio-namespace"
            } else {
                "revision"
            };
            return Err(several("control planes", candidates, app, option));
        }
    };
    let gateway = match &cluster.gateway {
        Some(Selected::One(gateway)) => gateway.clone(),
        Some(Selected::None { looked_for }) => {
            return Err(Problem::blocked(format!(
                "no gateway found: looked for {looked_for}"
            )));
        }
        Some(Selected::Several { candidates }) => {
            return Err(several("gateways", candidates, app, "gateway"));
        }
        None => return Err(Problem::blocked("no gateway found")),
    };
    let Some(port) = observe::http_port(&gateway).map(|port| port.port) else {
        return Err(Problem::blocked(format!(
            "gateway {} has no Service with a port for HTTP",
            gateway.reference()
        )));
    };
    let mut namespaces: BTreeSet<String> = cluster
        .pods
        .iter()
        .map(|pod| pod.namespace.clone())
        .collect();
    namespaces.insert(gateway.namespace.clone());
    // Workloads that are scaled to nothing may come back.
    let shares = |other: &&GatewayWorkload| {
        gateway
            .labels
            .iter()
            .all(|(key, value)| other.labels.get(key) == Some(value))
    };
    namespaces.extend(
        cluster
            .gateways
            .iter()
            .filter(shares)
            .map(|other| other.namespace.clone()),
    );
    // Nothing can be written there, and its pods go.
    namespaces.retain(|ns| *ns == gateway.namespace || !cluster.terminating.contains(ns));
    Ok(Target {
        base_url: base_url(&settings, gateway.service.as_ref(), port),
        ready: cluster
            .pods
            .iter()
            .any(|pod| pod.ready && pod.namespace == gateway.namespace),
        settings,
        plane,
        port,
        namespaces,
        gateway,
    })
}

fn several(what: &str, candidates: &[String], app: &str, option: &str) -> Problem {
    Problem::blocked(format!("several {what}: {}", candidates.join(", ")))
        .with_hint(format!("juju config {app} {option}=…"))
}

fn base_url(settings: &Settings, service: Option<&GatewayService>, port: u16) -> Option<String> {
    let host = match &settings.external_hostname {
        Some(host) => host.as_str(),
        None => service?.host()?,
    };
    // IPv6 addresses stand in brackets in URLs.
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    Some(if port == 80 {
        format!("http://{host}")
    } else {
        format!("http://{host}:{port}")
    })
}

fn target_problems(target: &Target) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !target.ready {
        let name = target.gateway.reference();
        problems.push(Problem::waiting(format!("gateway {name} has no ready pod")));
    }
    if let (None, Some(service)) = (&target.base_url, &target.gateway.service) {
        let name = format!("{}/{}", target.gateway.namespace, service.name);
        problems.push(if service.kind == ServiceKind::LoadBalancer {
            Problem::waiting(format!(
                "load balancer of Service {name} has no address yet"
            ))
        } else {
            Problem::waiting(format!("Service {name} has no address"))
        });
    }
    problems
}

fn auth(view: &ModelView, cluster: &View, mode: AuthMode, problems: &mut Vec<Problem>) -> Auth {
    let related: Vec<&RelationView> = view.relations_of("ingress-auth").collect();
    let wanted = wanted(mode, !related.is_empty(), cluster.live.guarded());
    let mut auth = Auth {
        wanted,
        ..Auth::default()
    };
    if !wanted {
        return auth;
    }
    auth.guard = Some(cluster.guard.clone());
    let app = view.context.app.as_str();
    let relation = match related.as_slice() {
        [] => {
            problems.push(
                Problem::blocked("authorization is wanted but none is related: all is denied")
                    .with_hint(format!("juju config {app} auth=none")),
            );
            return auth;
        }
        [one] => *one,
        several => {
            let names: Vec<String> = several.iter().map(|r| remote(r)).collect();
            problems.push(Problem::blocked(format!(
                "several applications offer authorization, all is denied: {}",
                names.join(", ")
            )));
            return auth;
        }
    };
    let name = remote(relation);
    let namespace = view.context.model_name.as_str();
    match authorizer(relation, namespace, cluster) {
        Ok(authorizer) => {
            for header in authorizer.unseen() {
                problems.push(Problem::blocked(format!(
                    "ingress-auth of {name}: it sets header {header}, so it is not shown what \
                     clients send in it"
                )));
            }
            auth.authorizer = Some(authorizer);
        }
        Err(problem) => problems.push(Problem::new(
            problem.severity,
            format!("all is denied: ingress-auth of {name}: {}", problem.message),
        )),
    }
    auth.app = Some(name);
    auth
}

fn authorizer(
    relation: &RelationView,
    namespace: &str,
    cluster: &View,
) -> Result<Authorizer, Problem> {
    let IngressAuth {
        service,
        port,
        allowed_request_headers,
        allowed_response_headers,
    } = IngressAuth::decode(&relation.remote_app_data)
        .map_err(|problem| Problem::blocked(problem.to_string()))?
        .ok_or_else(|| Problem::waiting("no data yet"))?;
    let authorizer = Authorizer::new(
        &service,
        namespace,
        port,
        &allowed_request_headers,
        &allowed_response_headers,
    )
    .map_err(|error| Problem::blocked(error.to_string()))?;
    match cluster.authorizers.get(&service) {
        None => Err(Problem::waiting(format!(
            "Service {namespace}/{service} does not exist"
        ))),
        Some(ports) if !ports.contains(&port) => Err(Problem::waiting(format!(
            "Service {namespace}/{service} has no port {port}"
        ))),
        Some(_) => Ok(authorizer),
    }
}

fn ingresses(
    view: &ModelView,
    target: Option<&Target>,
    problems: &mut Vec<Problem>,
) -> (Vec<Route>, BTreeMap<RelationId, IngressState>) {
    let model = view.context.model_name.as_str();
    let mut states: BTreeMap<RelationId, IngressState> = BTreeMap::new();
    for relation in view.relations_of("ingress") {
        let name = remote(relation);
        let decoded = Ingress::decode(&relation.remote_app_data, relation.remote_units.values());
        let mut state = IngressState {
            app: name,
            dialect: None,
            request: None,
            problem: None,
        };
        match decoded {
            Err(problem) => {
                problems.push(Problem::blocked(format!(
                    "ingress of {}: {problem}",
                    state.app
                )));
                state.problem = Some(problem.to_string());
            }
            Ok(None) => {
                problems.push(Problem::waiting(format!(
                    "ingress of {}: no data yet",
                    state.app
                )));
                state.problem = Some("no data yet".to_owned());
            }
            Ok(Some(Ingress::Kubeflow(ingress))) => {
                state.dialect = Some("kubeflow");
                state.request = Some(kubeflow(relation.id, &state.app, model, ingress));
            }
            Ok(Some(Ingress::Traefik(ingress))) => {
                state.dialect = Some("traefik");
                let remote = state.app.clone();
                if is_cross_model(&remote) {
                    state.app = format!("{remote} ({} of model {})", ingress.name, ingress.model);
                }
                match traefik(relation.id, &remote, model, ingress) {
                    Ok(request) => state.request = Some(request),
                    Err(problem) => {
                        state.problem = Some(problem.message.clone());
                        problems.push(Problem::new(
                            problem.severity,
                            format!("ingress of {}: {}", state.app, problem.message),
                        ));
                    }
                }
            }
        }
        states.insert(relation.id, state);
    }
    for state in states.values_mut() {
        let gateway = state
            .request
            .as_ref()
            .zip(target)
            .filter(|(request, target)| is_gateway(&request.backend, target));
        if let Some((request, _)) = gateway {
            let problem = format!("{} is the gateway itself", request.backend.host());
            problems.push(Problem::blocked(format!(
                "ingress of {}: {problem}",
                state.app
            )));
            state.problem = Some(problem);
        }
    }
    let requests: Vec<RouteRequest> = states
        .values()
        .filter(|state| state.problem.is_none())
        .filter_map(|state| state.request.clone())
        .collect();
    let (routes, refused) = routes(&requests);
    for (id, refusal) in refused {
        if let Some(state) = states.get_mut(&RelationId(id)) {
            problems.push(Problem::blocked(format!(
                "ingress of {}: {refusal}",
                state.app
            )));
            state.problem = Some(refusal.to_string());
        }
    }
    (routes, states)
}

/// Whether requests would come back to where they are from, for ever.
fn is_gateway(backend: &Backend, target: &Target) -> bool {
    let service = target.gateway.service.as_ref();
    backend.namespace == target.gateway.namespace
        && service.is_some_and(|service| service.name == backend.service)
}

/// Whether Juju made up the name: that is how it calls applications of other models that relate to
/// an offer.
fn is_cross_model(app: &str) -> bool {
    app.strip_prefix("remote-").is_some_and(|token| {
        token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Model and name make the prefix, and perhaps the backend: an application speaks for itself only.
/// What one of another model is called there, it alone can tell.
fn speaks_for_itself(app: &str, own_model: &str, ingress: &TraefikIngress) -> Result<(), Problem> {
    for (what, text, own) in [
        ("model", &ingress.model, own_model),
        ("name", &ingress.name, app),
    ] {
        check_label(text).map_err(|why| Problem::blocked(format!("{what} {text:?} {why}")))?;
        if text != own && !is_cross_model(app) {
            return Err(Problem::blocked(format!("{what} {text:?} is not its own")));
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
    RouteRequest {
        relation: id.0,
        app: app.to_owned(),
        prefix,
        rewrite,
        backend: Backend {
            service,
            namespace: namespace.unwrap_or_else(|| model.to_owned()),
            port,
        },
    }
}

fn traefik(
    id: RelationId,
    app: &str,
    own_model: &str,
    ingress: TraefikIngress,
) -> Result<RouteRequest, Problem> {
    speaks_for_itself(app, own_model, &ingress)?;
    if ingress.units.is_empty() {
        return Err(Problem::waiting("no unit is ready"));
    }
    if ingress.scheme != Scheme::Http {
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
        ..
    } = ingress;
    Ok(RouteRequest {
        relation: id.0,
        app: app.to_owned(),
        prefix: format!("/{model}-{name}"),
        rewrite: strip_prefix.then(|| "/".to_owned()),
        backend: Backend {
            service,
            namespace,
            port,
        },
    })
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

fn remote(relation: &RelationView) -> String {
    match &relation.remote_app {
        Some(app) => app.to_string(),
        None => format!("relation {}", relation.id),
    }
}
