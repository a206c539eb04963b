//! Interface `istio_request_auth`: which tokens (JWT) requests may carry instead of a session. One
//! JSON list in the requirer's application databag.

use juju_hooks::Databag;
use serde::{Deserialize, Serialize};

use crate::{Result, json};

const RULES: &str = "jwt_rules";

/// The accepted tokens. Nobody's: the relation is there and says nothing, which must not mean that
/// anything is accepted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestAuth {
    /// Any of these.
    pub rules: Vec<JwtRule>,
}

/// Tokens of one issuer.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct JwtRule {
    /// Equal to the token's `iss`.
    pub issuer: String,
    /// Where its keys are; absent: the issuer's discovery document tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The keys themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<String>,
    /// Any of these must be in the token's `aud`; none: any.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub audiences: Vec<String>,
    /// Whether the workload gets the token, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_original_token: Option<bool>,
    /// Headers that tell the workload who the user is.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub claim_to_headers: Vec<ClaimToHeader>,
    /// Where requests carry the token; none: `Authorization: Bearer`.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub from_headers: Vec<TokenHeader>,
}

/// A claim that becomes a header.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ClaimToHeader {
    /// The header.
    pub header: String,
    /// The claim.
    pub claim: String,
}

/// A header that carries a token.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TokenHeader {
    /// The header.
    pub name: String,
    /// What stands before the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl RequestAuth {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(RULES.to_owned(), json::encoded(&self.rules))])
    }

    /// Reads the requirer's application databag; `None` until it has said something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        Ok(json::document(bag, RULES)?.map(|rules| Self { rules }))
    }
}
