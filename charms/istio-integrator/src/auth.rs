//! Who decides on requests, as related applications offer it. Pure.

use std::collections::BTreeMap;

use juju_charm::{ModelView, Problem, RelationView};
use mesh::auth::{AuthMode, Authorizer, Gate, TokenRule, wanted};
use mesh::discovery::{AskedByMesh, Selected};
use relations::request_auth::JwtRule;
use relations::{ExtAuthzProvider, ForwardAuth, IngressAuth, RequestAuth};

use crate::ingress::remote;
use crate::observe::{ServiceInfo, View};

/// The endpoints over which an authorizer is offered.
pub const ENDPOINTS: [&str; 2] = ["ingress-auth", "forward-auth"];

/// The endpoint over which tokens are accepted.
pub const TOKENS: &str = "istio-request-auth";

/// What an authorizer of `forward-auth`, which names none, is shown of a request.
const SHOWN: &[&str] = &[
    "authorization",
    "cookie",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-uri",
];

/// What is asked about authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// Whether it is wanted.
    pub wanted: bool,
    /// Who decides; `None` if that is not clear.
    pub gate: Option<Gate>,
    /// What routes ask for, see [`mesh::auth::GUARD_HEADER`]; `None` unless wanted.
    pub guard: Option<String>,
}

/// An offer, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Service that decides.
    pub service: String,
    /// Its namespace.
    pub namespace: String,
    /// Its port.
    pub port: u16,
    /// What it is shown.
    pub shown: Vec<String>,
    /// Headers of its answer that tell who the user is.
    pub identity: Vec<String>,
}

/// The offer of a relation on one of [`ENDPOINTS`].
///
/// # Errors
/// What is wrong with it, or that there is none yet.
pub fn offer(relation: &RelationView, model: &str) -> Result<Offer, Problem> {
    let waiting = || Problem::waiting("no data yet");
    let data = &relation.remote_app_data;
    if relation.endpoint == *"ingress-auth" {
        let IngressAuth {
            service,
            port,
            allowed_request_headers,
            allowed_response_headers,
        } = IngressAuth::decode(data)
            .map_err(|problem| Problem::blocked(problem.to_string()))?
            .ok_or_else(waiting)?;
        return Ok(Offer {
            service,
            namespace: model.to_owned(),
            port,
            shown: allowed_request_headers,
            identity: allowed_response_headers,
        });
    }
    let auth = ForwardAuth::decode(data)
        .map_err(|problem| Problem::blocked(problem.to_string()))?
        .ok_or_else(waiting)?;
    let (scheme, host, port) = auth
        .address()
        .map_err(|problem| Problem::blocked(problem.to_string()))?;
    let refuse = |why: &str| Problem::blocked(format!("decisions address {why}"));
    if scheme != "http" {
        return Err(refuse("must be plain HTTP"));
    }
    let path = auth
        .decisions_address
        .splitn(4, '/')
        .nth(3)
        .unwrap_or_default();
    if !path.is_empty() {
        return Err(refuse("must have no path"));
    }
    let mut parts = host.split('.');
    let (service, namespace) = match (parts.next(), parts.next(), parts.next()) {
        (Some(service), None, None) => (service, model),
        (Some(service), Some(namespace), None | Some("svc")) => (service, namespace),
        _ => {
            return Err(refuse(
                "must be a Service's, as in http://gate.lab.svc:8080",
            ));
        }
    };
    Ok(Offer {
        service: service.to_owned(),
        namespace: namespace.to_owned(),
        port,
        shown: SHOWN.iter().map(|name| (*name).to_owned()).collect(),
        identity: auth.headers,
    })
}

/// The relations that offer an authorizer.
pub fn offers(view: &ModelView) -> impl Iterator<Item = &RelationView> {
    ENDPOINTS
        .iter()
        .flat_map(|endpoint| view.relations_of(endpoint))
}

/// What is asked about authorization, and what is wrong with it.
pub fn auth(view: &ModelView, cluster: &View, mode: AuthMode, problems: &mut Vec<Problem>) -> Auth {
    let related: Vec<&RelationView> = offers(view).collect();
    let holders: Vec<&RelationView> = view.relations_of(TOKENS).collect();
    let any = !related.is_empty() || !holders.is_empty();
    let wanted = wanted(mode, any, cluster.live.guarded());
    let mut auth = Auth {
        wanted,
        ..Auth::default()
    };
    if !wanted {
        return auth;
    }
    auth.guard = Some(cluster.guard.clone());
    let app = view.context.app.as_str();
    if !any {
        problems.push(
            Problem::blocked("authorization is wanted but none is related: all is denied")
                .with_hint(format!("juju config {app} auth=none")),
        );
        return auth;
    }
    let mut gate = Gate::default();
    for relation in holders {
        match tokens(relation) {
            Ok(rules) => gate.tokens.extend(rules),
            Err(problem) => problems.push(Problem::new(
                problem.severity,
                format!(
                    "no token passes: {TOKENS} of {}: {}",
                    remote(relation),
                    problem.message
                ),
            )),
        }
    }
    match related.as_slice() {
        [] => {}
        [one] => match offered(view, cluster, one, problems) {
            Some(authorizer) => {
                // Nobody but the provider is asked where it is: no token would pass there.
                if gate.tokens.is_empty() {
                    gate.provider = provider(view, cluster, &authorizer, problems);
                }
                gate.authorizer = Some(authorizer);
            }
            // What decides is not known, so nothing passes, tokens neither.
            None => return auth,
        },
        several => {
            let names: Vec<String> = several.iter().map(|r| remote(r)).collect();
            problems.push(Problem::blocked(format!(
                "several applications offer authorization, all is denied: {}",
                names.join(", ")
            )));
            return auth;
        }
    }
    if gate.mechanism().is_some() {
        auth.guard = Some(gate.guard(&cluster.guard));
        auth.gate = Some(gate);
    }
    auth
}

/// The authorizer that a relation offers, or what is wrong with it.
fn offered(
    view: &ModelView,
    cluster: &View,
    relation: &RelationView,
    problems: &mut Vec<Problem>,
) -> Option<Authorizer> {
    let name = remote(relation);
    let endpoint = &relation.endpoint;
    match authorizer(
        relation,
        view.context.model_name.as_str(),
        &cluster.services,
    ) {
        Ok(authorizer) => {
            for header in authorizer.unseen() {
                problems.push(Problem::blocked(format!(
                    "{endpoint} of {name}: it sets header {header}, so it is not shown what \
                     clients send in it"
                )));
            }
            Some(authorizer)
        }
        Err(problem) => {
            problems.push(Problem::new(
                problem.severity,
                format!("all is denied: {endpoint} of {name}: {}", problem.message),
            ));
            None
        }
    }
}

/// The extension provider of the gateway's control plane that asks just this authorizer: the one that
/// the control plane's charm named, or one that an administrator added under our name. One that lets
/// more pass than our own filter would is told and not used.
fn provider(
    view: &ModelView,
    cluster: &View,
    authorizer: &Authorizer,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let Selected::One(plane) = &cluster.plane else {
        return None;
    };
    let told = view
        .relations_of("istio-ingress-config")
        .filter_map(|relation| {
            ExtAuthzProvider::decode(&relation.remote_app_data)
                .ok()
                .flatten()
        });
    let names = told
        .map(|provider| provider.name)
        .chain([provider_name(view)]);
    for name in names {
        let Some(asked) = plane.authorizers.get(&name) else {
            continue;
        };
        if (&asked.host, asked.port) != (&authorizer.host(), authorizer.port) {
            continue;
        }
        match unlike(asked, authorizer) {
            None => return Some(name),
            Some(why) => problems.push(Problem::blocked(format!(
                "extension provider {name} is not used: {why}"
            ))),
        }
    }
    None
}

/// Why a provider is not as good as a filter of ours.
fn unlike(asked: &AskedByMesh, authorizer: &Authorizer) -> Option<String> {
    if asked.fails_open {
        return Some("it lets everything pass while the authorizer is away".to_owned());
    }
    // What clients send in these is not taken off.
    let mut headers = asked.upstream_headers.iter();
    let odd = headers.find(|name| !authorizer.identity_headers.contains(*name))?;
    Some(format!(
        "it hands on header {odd}, which is not the authorizer's"
    ))
}

/// The name under which an administrator may add the authorizer to the mesh config.
pub fn provider_name(view: &ModelView) -> String {
    format!(
        "istio-integrator-{}-{}",
        view.context.model_name, view.context.app
    )
}

/// The tokens that a relation accepts. One that says nothing accepts none.
fn tokens(relation: &RelationView) -> Result<Vec<TokenRule>, Problem> {
    let RequestAuth { rules } = RequestAuth::decode(&relation.remote_app_data)
        .map_err(|problem| Problem::blocked(problem.to_string()))?
        .ok_or_else(|| Problem::waiting("no data yet"))?;
    if rules.is_empty() {
        return Err(Problem::blocked("it accepts no issuer"));
    }
    let read = |rule: JwtRule| {
        let JwtRule {
            issuer,
            jwks_uri,
            jwks,
            audiences,
            forward_original_token,
            claim_to_headers,
            from_headers,
        } = rule;
        TokenRule {
            issuer,
            audiences,
            jwks_uri,
            jwks,
            forward: forward_original_token.unwrap_or(false),
            claims: claim_to_headers
                .into_iter()
                .map(|c| (c.header, c.claim))
                .collect(),
            from_headers: from_headers
                .into_iter()
                .map(|h| (h.name, h.prefix))
                .collect(),
        }
        .checked()
        .map_err(|error| Problem::blocked(error.to_string()))
    };
    rules.into_iter().map(read).collect()
}

fn authorizer(
    relation: &RelationView,
    model: &str,
    services: &BTreeMap<(String, String), ServiceInfo>,
) -> Result<Authorizer, Problem> {
    let Offer {
        service,
        namespace,
        port,
        shown,
        identity,
    } = offer(relation, model)?;
    let authorizer = Authorizer::new(&service, &namespace, port, &shown, &identity)
        .map_err(|error| Problem::blocked(error.to_string()))?;
    match services.get(&(namespace.clone(), service.clone())) {
        None => Err(Problem::waiting(format!(
            "Service {namespace}/{service} does not exist"
        ))),
        Some(known) if !known.ports.iter().any(|known| known.number == port) => Err(
            Problem::waiting(format!("Service {namespace}/{service} has no port {port}")),
        ),
        Some(_) => Ok(authorizer),
    }
}
