//! Tokens (JWT) that requests may carry: who issues them, and what becomes of their claims.
//!
//! A route for token holders asks for the issuer that Istio's own filter found in a *verified* token
//! (`@request.auth.claims.iss`). So it is closed by itself: while that filter is missing, or not yet
//! in force, nothing fits.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::StringMatch;
use istio_api::security::{
    ClaimToHeader, JwtHeader, JwtRule, RequestAuthentication, RequestAuthenticationSpec, Selector,
};

use super::objects::{InvalidAuthorizer, headers, spellings};

/// The name under which a route asks for the issuer of a verified token.
pub const ISSUER_CLAIM: &str = "@request.auth.claims.iss";

const MAX_TEXT: usize = 1024;

/// Tokens of one issuer, checked.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TokenRule {
    /// Equal to the token's `iss`.
    pub issuer: String,
    /// Any of these must be in its `aud`.
    pub audiences: Vec<String>,
    /// Where its keys are; istiod fetches them.
    pub jwks_uri: Option<String>,
    /// The keys themselves.
    pub jwks: Option<String>,
    /// Headers that carry it, and what stands before it.
    pub from_headers: Vec<(String, Option<String>)>,
    /// Whether the workload gets it, too.
    pub forward: bool,
    /// Headers that tell who the user is, and the claims they are made of.
    pub claims: Vec<(String, String)>,
}

/// Why tokens cannot be accepted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidToken {
    /// The text cannot be used.
    #[error("{what} of issuer {issuer:?} cannot be used")]
    Text {
        /// The field.
        what: &'static str,
        /// The issuer.
        issuer: String,
    },
    /// A header's name is none, or one that the gateway needs itself.
    #[error(transparent)]
    Header(#[from] InvalidAuthorizer),
}

impl TokenRule {
    /// Checks the rule.
    ///
    /// # Errors
    /// A field that istiod or Envoy would refuse, or a header that tells nobody's identity.
    pub fn checked(self) -> Result<Self, InvalidToken> {
        let wrong = |what| InvalidToken::Text {
            what,
            issuer: self.issuer.clone(),
        };
        let text = |text: &str| {
            !text.is_empty()
                && text.len() <= MAX_TEXT
                && text.chars().all(|c| ('!'..='~').contains(&c))
        };
        if !text(&self.issuer) {
            return Err(wrong("the name"));
        }
        if !self.audiences.iter().all(|audience| text(audience)) {
            return Err(wrong("an audience"));
        }
        if let Some(uri) = &self.jwks_uri
            && !(text(uri) && (uri.starts_with("https://") || uri.starts_with("http://")))
        {
            return Err(wrong("the address of the keys"));
        }
        if !self.claims.iter().all(|(_, claim)| text(claim)) {
            return Err(wrong("a claim"));
        }
        let prefixes = self
            .from_headers
            .iter()
            .filter_map(|(_, prefix)| prefix.as_ref());
        if !prefixes
            .into_iter()
            .all(|prefix| prefix.len() <= 64 && prefix.chars().all(|c| (' '..='~').contains(&c)))
        {
            return Err(wrong("a header's prefix"));
        }
        let names = |headers: Vec<&String>| headers.into_iter().cloned().collect::<Vec<_>>();
        headers(
            &names(self.claims.iter().map(|(header, _)| header).collect()),
            super::objects::PROXY_HEADERS,
        )?;
        headers(
            &names(self.from_headers.iter().map(|(header, _)| header).collect()),
            &[],
        )?;
        Ok(self)
    }

    /// Every spelling of the headers that tell who the user is.
    pub(super) fn stripped(&self) -> BTreeSet<String> {
        let headers = self
            .claims
            .iter()
            .map(|(header, _)| header.to_ascii_lowercase());
        headers.flat_map(|header| spellings(&header)).collect()
    }
}

/// What a route asks of a token: one condition for each issuer.
pub fn issuer_conditions(issuers: &BTreeSet<String>) -> Vec<(String, StringMatch)> {
    issuers
        .iter()
        .map(|issuer| (ISSUER_CLAIM.to_owned(), StringMatch::Exact(issuer.clone())))
        .collect()
}

/// The object that makes the pods with `labels` verify tokens. A request with a bad one is refused;
/// one without any passes on as nobody.
pub fn request_authentication(
    name: &str,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    rules: &[TokenRule],
) -> RequestAuthentication {
    let rule = |rule: &TokenRule| JwtRule {
        issuer: rule.issuer.clone(),
        audiences: rule.audiences.clone(),
        jwks_uri: rule.jwks_uri.clone(),
        jwks: rule.jwks.clone(),
        from_headers: rule
            .from_headers
            .iter()
            .map(|(name, prefix)| JwtHeader {
                name: name.clone(),
                prefix: prefix.clone(),
            })
            .collect(),
        forward_original_token: Some(rule.forward),
        output_payload_to_header: None,
        output_claim_to_headers: rule
            .claims
            .iter()
            .map(|(header, claim)| ClaimToHeader {
                header: header.clone(),
                claim: claim.clone(),
            })
            .collect(),
    };
    let spec = RequestAuthenticationSpec {
        selector: Some(Selector {
            match_labels: labels.clone(),
        }),
        target_refs: Vec::new(),
        jwt_rules: rules.iter().map(rule).collect(),
    };
    RequestAuthentication::new(namespace, name, spec)
}
