//! What a relation may wish, and what becomes of it once it is checked.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::StringMatch;

use super::pattern::{InvalidPattern, Pattern};
use super::{InvalidPrefix, Prefix};

/// Where requests go: a Service port.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Backend {
    /// Name of the Service.
    pub service: String,
    /// Its namespace.
    pub namespace: String,
    /// Its port.
    pub port: u16,
}

impl Backend {
    /// The Service's full name, independent of the namespace it is resolved in.
    pub fn host(&self) -> String {
        format!("{}.{}.svc.cluster.local", self.service, self.namespace)
    }
}

/// A backend and its share of the requests, relative to its siblings'.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Weighted {
    /// Where to.
    pub backend: Backend,
    /// Its share, 0 to 1,000,000.
    pub weight: u32,
}

/// A condition on a path.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PathRequest {
    /// Equal.
    Exact(String),
    /// Equal, or below it at a segment border.
    Prefix(String),
    /// RE2 expression over the whole path.
    Regex(String),
}

/// A condition on a request: everything must hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MatchRequest {
    /// On the path.
    pub path: PathRequest,
    /// On the method; `None`: any.
    pub method: Option<String>,
    /// On headers.
    pub headers: Vec<(String, StringMatch)>,
}

/// A new path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PathChange {
    /// Of the whole.
    Whole(String),
    /// Of the prefix that matched.
    Prefix(String),
}

/// What becomes of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ActionRequest {
    /// It is sent on.
    Forward {
        /// Where to.
        backends: Vec<Weighted>,
        /// With what path; `None`: as it came.
        rewrite: Option<PathChange>,
        /// With what host; `None`: as it came.
        host: Option<String>,
    },
    /// The client is sent elsewhere.
    Redirect {
        /// `http` or `https`; `None`: as it came.
        scheme: Option<String>,
        /// `None`: as it came.
        host: Option<String>,
        /// `None`: as it came.
        path: Option<PathChange>,
        /// `None`: the scheme's.
        port: Option<u16>,
        /// 301, 302, 303, 307 or 308.
        code: u16,
    },
}

/// One wish of a relation, not yet checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RouteRequest {
    /// Relation id: the lower claims first.
    pub relation: u32,
    /// Its name inside the relation; empty where there is only one.
    pub name: String,
    /// The related application, for messages.
    pub app: String,
    /// For which hosts; none: those of the gateway.
    pub hosts: Vec<String>,
    /// For which requests: any of these.
    pub matches: Vec<MatchRequest>,
    /// What becomes of them.
    pub action: ActionRequest,
    /// Whether nobody is asked who sends them.
    pub open: bool,
    /// Whether backends are spoken to as the client speaks (HTTP/2, gRPC); else in HTTP/1.1.
    pub client_protocol: bool,
}

impl RouteRequest {
    /// Everything under a path prefix to one Service.
    pub fn prefix(
        relation: u32,
        app: &str,
        prefix: &str,
        rewrite: Option<String>,
        backend: Backend,
    ) -> Self {
        Self {
            relation,
            name: String::new(),
            app: app.to_owned(),
            hosts: Vec::new(),
            matches: vec![MatchRequest {
                path: PathRequest::Prefix(prefix.to_owned()),
                method: None,
                headers: Vec::new(),
            }],
            action: ActionRequest::Forward {
                backends: vec![Weighted { backend, weight: 1 }],
                rewrite: rewrite.map(PathChange::Prefix),
                host: None,
            },
            open: false,
            client_protocol: false,
        }
    }

    /// The Services it leads to.
    pub fn backends(&self) -> &[Weighted] {
        match &self.action {
            ActionRequest::Forward { backends, .. } => backends,
            ActionRequest::Redirect { .. } => &[],
        }
    }

    /// The paths, as people read them: `/app`, `=/app` for exactly that, `~/a.*` for an expression.
    pub fn paths(&self) -> Vec<String> {
        let shown = |matched: &MatchRequest| match &matched.path {
            PathRequest::Prefix(path) => path.clone(),
            PathRequest::Exact(path) => format!("={path}"),
            PathRequest::Regex(path) => format!("~{path}"),
        };
        self.matches.iter().map(shown).collect()
    }
}

/// A checked condition on a path. Ordered by text.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Path {
    /// Equal.
    Exact(String),
    /// Equal, or below it at a segment border.
    Prefix(Prefix),
    /// Expression over the whole path.
    Regex(Pattern),
}

impl Path {
    /// What every path that fits begins with, as far as it is known.
    pub fn beginning(&self) -> &str {
        match self {
            Self::Exact(path) => path,
            Self::Prefix(prefix) => prefix.as_str(),
            Self::Regex(pattern) => pattern.literal(),
        }
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(path) => write!(f, "path {path}"),
            Self::Prefix(prefix) => write!(f, "prefix {prefix}"),
            Self::Regex(pattern) => write!(f, "expression {pattern}"),
        }
    }
}

/// A checked condition on a request.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Match {
    /// On the path.
    pub path: Path,
    /// On the method.
    pub method: Option<String>,
    /// On headers, lower case.
    pub headers: BTreeMap<String, StringMatch>,
}

/// A checked new path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rewrite {
    /// Of the whole.
    Whole(String),
    /// Of the prefix that matched.
    Prefix(Prefix),
}

/// What becomes of a request, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// It is sent on.
    Forward {
        /// Where to; never empty.
        backends: Vec<Weighted>,
        /// With what path.
        rewrite: Option<Rewrite>,
        /// With what host.
        host: Option<String>,
    },
    /// The client is sent elsewhere.
    Redirect {
        /// `http` or `https`.
        scheme: Option<String>,
        /// Where to.
        host: Option<String>,
        /// The whole path.
        path: Option<String>,
        /// The port.
        port: Option<u16>,
        /// The status.
        code: u16,
    },
}

/// A checked route.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Route {
    /// Relation id.
    pub relation: u32,
    /// Its name inside the relation.
    pub name: String,
    /// The related application.
    pub app: String,
    /// For which hosts; none: those of the gateway.
    pub hosts: BTreeSet<String>,
    /// For which requests; never empty.
    pub matches: Vec<Match>,
    /// What becomes of them.
    pub action: Action,
    /// Whether nobody is asked who sends them.
    pub open: bool,
    /// Whether backends are spoken to as the client speaks.
    pub client_protocol: bool,
}

impl Route {
    /// The Services it leads to.
    pub fn backends(&self) -> &[Weighted] {
        match &self.action {
            Action::Forward { backends, .. } => backends,
            Action::Redirect { .. } => &[],
        }
    }
}

/// Why a request gets no route.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RouteProblem {
    /// The prefix cannot be served.
    #[error("prefix {0:?} {1}")]
    Prefix(String, InvalidPrefix),
    /// The exact path cannot be served.
    #[error("path {0:?} {1}")]
    Path(String, InvalidPrefix),
    /// The expression cannot be used.
    #[error("expression {0:?} {1}")]
    Pattern(String, InvalidPattern),
    /// The rewrite cannot be used.
    #[error("rewrite {0:?} {1}")]
    Rewrite(String, InvalidPrefix),
    /// The Service's name or namespace is none.
    #[error("{what} {name:?} {why}")]
    Backend {
        /// `service` or `namespace`.
        what: &'static str,
        /// The offending name.
        name: String,
        /// Why it is none.
        why: crate::InvalidName,
    },
    /// Something else about it cannot be served.
    #[error("{what} {value:?} {why}")]
    Field {
        /// The field.
        what: &'static str,
        /// Its value.
        value: String,
        /// Why it cannot be used.
        why: &'static str,
    },
    /// Another relation has claimed the requests.
    #[error("{what} is taken by {holder}")]
    Taken {
        /// What is claimed.
        what: String,
        /// The application that keeps it.
        holder: String,
    },
}
