//! What stands in front of the routes, and the ways to put it there.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::security::{
    Action, AuthorizationPolicy, AuthorizationPolicySpec, Operation, Provider, Rule, Selector, To,
};

use super::objects::Authorizer;
use super::probe::{DENIED_PATH, PROBE_PATH};
use super::tokens::TokenRule;
use crate::routes::{Path, Route};

/// Who decides on requests.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Gate {
    /// The service that is asked.
    pub authorizer: Option<Authorizer>,
    /// The mesh config's extension provider that asks it; `None`: a filter of our own does.
    pub provider: Option<String>,
    /// Tokens that are as good as its consent.
    pub tokens: Vec<TokenRule>,
}

/// The way in which a gate is put up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mechanism {
    /// An `EnvoyFilter` asks.
    Filter,
    /// A CUSTOM policy asks, by way of the mesh config.
    Provider,
    /// Nobody is asked: a token decides.
    Tokens,
}

impl Gate {
    /// A gate that asks an authorizer by a filter.
    pub fn asking(authorizer: Authorizer) -> Self {
        Self {
            authorizer: Some(authorizer),
            ..Self::default()
        }
    }

    /// How it is put up; `None`: nobody decides.
    pub fn mechanism(&self) -> Option<Mechanism> {
        match (&self.authorizer, &self.provider) {
            (Some(_), Some(_)) => Some(Mechanism::Provider),
            (Some(_), None) => Some(Mechanism::Filter),
            (None, _) if !self.tokens.is_empty() => Some(Mechanism::Tokens),
            (None, _) => None,
        }
    }

    /// The guard's value for this gate. It differs by mechanism: what was written for one finds no way
    /// past another, so that no change of it opens anything.
    pub fn guard(&self, base: &str) -> String {
        let mark = match self.mechanism() {
            Some(Mechanism::Filter) | None => "",
            Some(Mechanism::Provider) => PROVIDER_MARK,
            Some(Mechanism::Tokens) => TOKENS_MARK,
        };
        format!("{base}{mark}")
    }

    /// The authorizer that a filter of ours is to ask.
    pub(super) fn asked(&self) -> Option<&Authorizer> {
        self.authorizer.as_ref().filter(|_| self.provider.is_none())
    }

    /// Every spelling of headers that tell who the user is: they are taken off what comes in.
    pub(super) fn stripped(&self) -> BTreeSet<String> {
        let mut stripped: BTreeSet<String> =
            self.tokens.iter().flat_map(TokenRule::stripped).collect();
        stripped.extend(self.authorizer.iter().flat_map(Authorizer::stripped));
        stripped
    }
}

const PROVIDER_MARK: &str = "p";
const TOKENS_MARK: &str = "t";

/// The guard's value without the mark of its mechanism.
pub fn unmarked(guard: &str) -> &str {
    let unmarked = guard.strip_suffix(PROVIDER_MARK);
    unmarked
        .or_else(|| guard.strip_suffix(TOKENS_MARK))
        .unwrap_or(guard)
}

/// Whether nobody can be asked about a route's requests in a CUSTOM policy, which knows paths only.
pub fn is_open_by_path(route: &Route) -> bool {
    route.matches.iter().all(|matched| {
        matched.method.is_none()
            && matched.headers.is_empty()
            && !matches!(matched.path, Path::Regex(_))
    })
}

/// The policy that asks `provider` about everything but open routes. What is under an open path and
/// is not itself open is asked about, and so is what could be both: in doubt, somebody is asked.
pub fn custom_policy(
    name: &str,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    provider: &str,
    routes: &[Route],
) -> AuthorizationPolicy {
    let open: BTreeSet<&Path> = routes
        .iter()
        .filter(|route| route.open && is_open_by_path(route))
        .flat_map(|route| route.matches.iter().map(|matched| &matched.path))
        .collect();
    let guarded = routes
        .iter()
        .filter(|route| !(route.open && is_open_by_path(route)));
    let inside = |path: &&Path| {
        open.iter()
            .any(|open| path.beginning().starts_with(open.beginning()))
    };
    let nested: BTreeSet<String> = guarded
        .flat_map(|route| route.matches.iter().map(|matched| &matched.path))
        .filter(inside)
        .flat_map(patterns)
        .collect();
    let rule = |operation: Operation| Rule {
        to: vec![To { operation }],
        ..Rule::default()
    };
    let mut rules = Vec::new();
    if open.is_empty() {
        // A rule without conditions is about every request.
        rules.push(Rule::default());
    } else {
        rules.push(rule(Operation {
            not_paths: open.iter().flat_map(|path| patterns(path)).collect(),
            ..Operation::default()
        }));
        let own = [PROBE_PATH, DENIED_PATH].map(str::to_owned);
        rules.push(rule(Operation {
            paths: own.into_iter().chain(nested).collect(),
            ..Operation::default()
        }));
    }
    let spec = AuthorizationPolicySpec {
        selector: Some(Selector {
            match_labels: labels.clone(),
        }),
        action: Some(Action::Custom),
        rules,
        provider: Some(Provider {
            name: provider.to_owned(),
        }),
        ..AuthorizationPolicySpec::default()
    };
    AuthorizationPolicy::new(namespace, name, spec)
}

/// A path as policies spell it.
fn patterns(path: &Path) -> Vec<String> {
    match path {
        Path::Exact(path) => vec![path.clone()],
        Path::Prefix(prefix) if prefix.is_root() => vec!["/*".to_owned()],
        Path::Prefix(prefix) => vec![
            prefix.as_str().to_owned(),
            format!("{}*", prefix.with_slash()),
        ],
        Path::Regex(pattern) => vec![format!("{}*", pattern.literal())],
    }
}
