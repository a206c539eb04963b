//! Checks of one wish. Everything that is written was checked here: the objects are shared, so one
//! bad field would take all routes down with it.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::StringMatch;

use super::model::{
    Action, ActionRequest, Match, MatchRequest, Path, PathChange, PathRequest, Rewrite, Route,
    RouteProblem, RouteRequest, Weighted,
};
use super::{InvalidPrefix, Prefix, pattern};
use crate::auth::GUARD_HEADER;
use crate::name::check_label;

/// Most conditions, hosts and backends of one route.
const MAX_ITEMS: usize = 64;
const MAX_WEIGHT: u32 = 1_000_000;
const METHODS: &[&str] = &[
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE",
];
const REDIRECTS: &[u16] = &[301, 302, 303, 307, 308];

pub(super) fn checked(request: &RouteRequest) -> Result<Route, RouteProblem> {
    for (what, count) in [
        ("matches", request.matches.len()),
        ("hostnames", request.hosts.len()),
        ("backends", request.backends().len()),
    ] {
        if count > MAX_ITEMS {
            return Err(field(what, &count.to_string(), "are more than 64"));
        }
    }
    let hosts: BTreeSet<String> = request
        .hosts
        .iter()
        .map(|name| host(name))
        .collect::<Result<_, _>>()?;
    let mut matches: Vec<Match> = request
        .matches
        .iter()
        .map(condition)
        .collect::<Result<_, _>>()?;
    matches.sort();
    matches.dedup();
    if matches.is_empty() {
        return Err(field("matches", "", "must not be empty"));
    }
    Ok(Route {
        relation: request.relation,
        name: request.name.clone(),
        app: request.app.clone(),
        hosts,
        action: action(request, &matches)?,
        matches,
        open: request.open,
        client_protocol: request.client_protocol,
    })
}

fn action(request: &RouteRequest, matches: &[Match]) -> Result<Action, RouteProblem> {
    Ok(match &request.action {
        ActionRequest::Forward {
            backends,
            rewrite,
            host: name,
        } => {
            if backends.is_empty() {
                return Err(field("backends", "", "must not be empty"));
            }
            for backend in backends {
                weighted(backend)?;
            }
            if backends.iter().all(|backend| backend.weight == 0) {
                return Err(field("weight", "0", "must not be that of all backends"));
            }
            Action::Forward {
                backends: backends.clone(),
                rewrite: change(rewrite.as_ref(), matches)?,
                host: name.as_deref().map(host).transpose()?,
            }
        }
        ActionRequest::Redirect {
            scheme,
            host: name,
            path,
            port,
            code,
        } => {
            if !REDIRECTS.contains(code) {
                return Err(field("statusCode", &code.to_string(), "is no redirect"));
            }
            if let Some(scheme) = scheme
                .as_ref()
                .filter(|s| !["http", "https"].contains(&s.as_str()))
            {
                return Err(field("scheme", scheme, "must be http or https"));
            }
            let path = match change(path.as_ref(), matches)? {
                None => None,
                Some(Rewrite::Whole(path)) => Some(path),
                Some(Rewrite::Prefix(prefix)) => {
                    let why = "cannot replace a prefix in a redirect";
                    return Err(field("path", prefix.as_str(), why));
                }
            };
            Action::Redirect {
                scheme: scheme.clone(),
                host: name.as_deref().map(host).transpose()?,
                path,
                port: *port,
                code: *code,
            }
        }
    })
}

fn change(change: Option<&PathChange>, matches: &[Match]) -> Result<Option<Rewrite>, RouteProblem> {
    let wrong = |text: &str, why| RouteProblem::Rewrite(text.to_owned(), why);
    match change {
        None => Ok(None),
        Some(PathChange::Prefix(text)) => {
            if matches
                .iter()
                .any(|matched| !matches!(matched.path, Path::Prefix(_)))
            {
                return Err(field(
                    "rewrite",
                    text,
                    "replaces a prefix, but not all matches have one",
                ));
            }
            let prefix = text.parse().map_err(|why| wrong(text, why))?;
            Ok(Some(Rewrite::Prefix(prefix)))
        }
        Some(PathChange::Whole(text)) => {
            // A slash at the end counts in a whole path, so it is checked but not normalised.
            text.parse::<Prefix>().map_err(|why| wrong(text, why))?;
            Ok(Some(Rewrite::Whole(text.clone())))
        }
    }
}

fn condition(request: &MatchRequest) -> Result<Match, RouteProblem> {
    if let Some(method) = request
        .method
        .as_ref()
        .filter(|m| !METHODS.contains(&m.as_str()))
    {
        return Err(field("method", method, "is none"));
    }
    let mut headers = BTreeMap::new();
    for (name, value) in &request.headers {
        let lower = name.to_ascii_lowercase();
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if lower.is_empty() || !lower.chars().all(token) || lower.replace('_', "-") == GUARD_HEADER
        {
            return Err(field("header", name, "cannot be matched"));
        }
        match value {
            StringMatch::Exact(text) | StringMatch::Prefix(text) => {
                if text.is_empty()
                    || text.len() > 1024
                    || !text.chars().all(|c| (' '..='~').contains(&c))
                {
                    return Err(field("header value", text, "cannot be matched"));
                }
            }
            StringMatch::Regex(text) => pattern::check_value(text)
                .map_err(|why| RouteProblem::Pattern(text.clone(), why))?,
        }
        headers.insert(lower, value.clone());
    }
    Ok(Match {
        path: path(&request.path)?,
        method: request.method.clone(),
        headers,
    })
}

fn path(request: &PathRequest) -> Result<Path, RouteProblem> {
    let parsed = |text: &str| -> Result<Prefix, InvalidPrefix> {
        let prefix: Prefix = text.parse()?;
        if prefix.is_reserved() {
            return Err(InvalidPrefix::Reserved);
        }
        Ok(prefix)
    };
    match request {
        PathRequest::Prefix(text) => parsed(text)
            .map(Path::Prefix)
            .map_err(|why| RouteProblem::Prefix(text.clone(), why)),
        PathRequest::Exact(text) => {
            parsed(text).map_err(|why| RouteProblem::Path(text.clone(), why))?;
            if text.contains("//") {
                return Err(field("path", text, "has an empty segment"));
            }
            Ok(Path::Exact(text.clone()))
        }
        PathRequest::Regex(text) => text
            .parse()
            .map(Path::Regex)
            .map_err(|why| RouteProblem::Pattern(text.clone(), why)),
    }
}

fn weighted(weighted: &Weighted) -> Result<(), RouteProblem> {
    let backend = &weighted.backend;
    for (what, name) in [
        ("service", &backend.service),
        ("namespace", &backend.namespace),
    ] {
        check_label(name).map_err(|why| RouteProblem::Backend {
            what,
            name: name.clone(),
            why,
        })?;
    }
    if weighted.weight > MAX_WEIGHT {
        return Err(field(
            "weight",
            &weighted.weight.to_string(),
            "is more than 1000000",
        ));
    }
    if backend.port == 0 {
        return Err(field("port", "0", "is none"));
    }
    Ok(())
}

/// Whether a text can be the host of a route.
pub fn is_host(name: &str) -> bool {
    host(name).is_ok()
}

/// A host of RFC 1123 labels, the first of which may be `*`, in lower case.
fn host(name: &str) -> Result<String, RouteProblem> {
    let lower = name.to_ascii_lowercase();
    let rest = lower.strip_prefix("*.").unwrap_or(&lower);
    let labels = rest.split('.').all(|label| check_label(label).is_ok());
    let address = rest.parse::<std::net::IpAddr>().is_ok();
    if lower.len() > 253 || !labels || address {
        return Err(field("hostname", name, "is no host name"));
    }
    Ok(lower)
}

fn field(what: &'static str, value: &str, why: &'static str) -> RouteProblem {
    RouteProblem::Field {
        what,
        value: value.to_owned(),
        why,
    }
}
