//! What stands in front of the routes, and the ways to put it there.

use std::collections::BTreeSet;

use super::objects::Authorizer;
use super::tokens::TokenRule;

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
