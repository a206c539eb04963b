//! From the document of `istio-ingress-route` to requests for routes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::StringMatch;
use juju_charm::Problem;
use mesh::name::check_label;
use mesh::routes::{
    ActionRequest, Backend, MatchRequest, PathChange, PathRequest, RouteRequest, Weighted,
};
use relations::RouteConfig;
use relations::ingress_route::{
    GrpcFilter, GrpcMatch, GrpcRoute, HttpFilter, HttpMatch, HttpRoute, PathKind, PathModifier,
    RequestRedirect, RouteBackend,
};

/// Most routes of one relation.
const MAX_ROUTES: usize = 500;

/// The requests of a relation.
///
/// # Errors
/// A route without a name, or one that cannot be understood: then the document means something that
/// is not known, and none of it is served.
pub(crate) fn requests(
    relation: u32,
    app: &str,
    config: &RouteConfig,
) -> Result<Vec<RouteRequest>, Problem> {
    let names = config
        .http_routes
        .iter()
        .map(|route| &route.name)
        .chain(config.grpc_routes.iter().map(|route| &route.name));
    let mut seen = BTreeSet::new();
    for name in names {
        check_label(name).map_err(|why| Problem::blocked(format!("route name {name:?} {why}")))?;
        if !seen.insert(name) {
            return Err(Problem::blocked(format!("two routes are named {name:?}")));
        }
    }
    if seen.len() > MAX_ROUTES {
        return Err(Problem::blocked(format!("more than {MAX_ROUTES} routes")));
    }
    let http = config
        .http_routes
        .iter()
        .map(|route| http(relation, app, &config.model, route));
    let grpc = config
        .grpc_routes
        .iter()
        .map(|route| grpc(relation, app, &config.model, route));
    http.chain(grpc).collect()
}

fn http(relation: u32, app: &str, model: &str, route: &HttpRoute) -> Result<RouteRequest, Problem> {
    let twice = || Problem::blocked(format!("route {}: a filter is there twice", route.name));
    let (mut rewrite, mut redirect) = (None, None);
    for filter in &route.filters {
        let earlier = match filter {
            HttpFilter::UrlRewrite { rewrite: new } => rewrite.replace(new).map(drop),
            HttpFilter::RequestRedirect { redirect: new } => redirect.replace(new).map(drop),
        };
        if earlier.is_some() {
            return Err(twice());
        }
    }
    let action = match (redirect, rewrite) {
        (Some(_), Some(_)) => {
            let message = format!("route {}: it both rewrites and redirects", route.name);
            return Err(Problem::blocked(message));
        }
        (Some(redirect), None) => elsewhere(redirect),
        (None, rewrite) => ActionRequest::Forward {
            backends: backends(model, &route.backends),
            rewrite: rewrite
                .and_then(|rewrite| rewrite.path.as_ref())
                .map(change),
            host: rewrite.and_then(|rewrite| rewrite.hostname.clone()),
        },
    };
    let matches = if route.matches.is_empty() {
        vec![everything()]
    } else {
        route.matches.iter().map(condition).collect()
    };
    Ok(RouteRequest {
        relation,
        name: route.name.clone(),
        app: app.to_owned(),
        hosts: route.hostnames.clone(),
        matches,
        action,
        open: false,
        client_protocol: false,
    })
}

fn grpc(relation: u32, app: &str, model: &str, route: &GrpcRoute) -> Result<RouteRequest, Problem> {
    let action = match route.filters.as_slice() {
        [] => ActionRequest::Forward {
            backends: backends(model, &route.backends),
            rewrite: None,
            host: None,
        },
        [GrpcFilter::RequestRedirect { redirect }] => elsewhere(redirect),
        _ => {
            let message = format!("route {}: a filter is there twice", route.name);
            return Err(Problem::blocked(message));
        }
    };
    let matches = if route.matches.is_empty() {
        vec![everything()]
    } else {
        route.matches.iter().map(call).collect()
    };
    Ok(RouteRequest {
        relation,
        name: route.name.clone(),
        app: app.to_owned(),
        hosts: route.hostnames.clone(),
        matches,
        action,
        open: false,
        client_protocol: true,
    })
}

fn elsewhere(redirect: &RequestRedirect) -> ActionRequest {
    ActionRequest::Redirect {
        scheme: redirect.scheme.clone(),
        host: redirect.hostname.clone(),
        path: redirect.path.as_ref().map(change),
        port: redirect.port,
        code: redirect.status_code.unwrap_or(301),
    }
}

fn everything() -> MatchRequest {
    MatchRequest {
        path: PathRequest::Prefix("/".to_owned()),
        method: None,
        headers: Vec::new(),
    }
}

fn condition(matched: &HttpMatch) -> MatchRequest {
    let path = matched.path.as_ref().map(|path| {
        let value = path.value.clone();
        match path.kind {
            PathKind::Exact => PathRequest::Exact(value),
            PathKind::PathPrefix => PathRequest::Prefix(value),
            PathKind::RegularExpression => PathRequest::Regex(value),
        }
    });
    MatchRequest {
        path: path.unwrap_or_else(|| PathRequest::Prefix("/".to_owned())),
        method: matched.method.clone(),
        headers: headers(&matched.headers),
    }
}

/// A gRPC call is a request for `/service/method`.
fn call(matched: &GrpcMatch) -> MatchRequest {
    let path = match &matched.method {
        None => PathRequest::Prefix("/".to_owned()),
        Some(called) => match &called.method {
            Some(method) => PathRequest::Exact(format!("/{}/{method}", called.service)),
            None => PathRequest::Prefix(format!("/{}", called.service)),
        },
    };
    MatchRequest {
        path,
        method: None,
        headers: headers(&matched.headers),
    }
}

fn headers(headers: &BTreeMap<String, String>) -> Vec<(String, StringMatch)> {
    let read =
        |(name, value): (&String, &String)| (name.clone(), StringMatch::Exact(value.clone()));
    headers.iter().map(read).collect()
}

fn change(modifier: &PathModifier) -> PathChange {
    match modifier {
        PathModifier::ReplaceFullPath { value } => PathChange::Whole(value.clone()),
        PathModifier::ReplacePrefixMatch { value } => PathChange::Prefix(value.clone()),
    }
}

fn backends(model: &str, backends: &[RouteBackend]) -> Vec<Weighted> {
    let read = |backend: &RouteBackend| Weighted {
        backend: Backend {
            service: backend.service.clone(),
            namespace: model.to_owned(),
            port: backend.port,
        },
        weight: backend.weight.unwrap_or(1),
    };
    backends.iter().map(read).collect()
}
