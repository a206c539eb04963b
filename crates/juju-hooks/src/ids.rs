//! Names and numbers Juju gives to things. Every type is checked when parsed and prints as Juju
//! writes it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not the name or number it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {text:?}")]
pub struct IdError {
    /// What was expected, e.g. `unit name`.
    pub what: &'static str,
    /// The offending text.
    pub text: String,
}

impl IdError {
    fn new(what: &'static str, text: &str) -> Self {
        Self {
            what,
            text: text.to_owned(),
        }
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $valid:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The checked name.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                if $valid(&text) { Ok(Self(text)) } else { Err(IdError::new($what, &text)) }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    };
}

text_id!(
    /// An application's name. Remote applications of another model may carry a generated name
    /// (`remote-` and 32 hex digits), so only the characters are checked, not the grammar.
    AppName, "application name", plain_name
);
text_id!(
    /// A relation endpoint's name, as declared in the charm's metadata.
    EndpointName, "endpoint name", plain_name
);
text_id!(
    /// A model's name; on Kubernetes also the model's namespace.
    ModelName, "model name", plain_name
);
text_id!(
    /// A model's UUID, as Juju writes it. Names repeat across controllers, UUIDs do not.
    ModelUuid, "model UUID", plain_name
);
text_id!(
    /// A secret's identifier as Juju gave it: `secret:<xid>` or `secret://<model-uuid>/<xid>`, or
    /// the bare xid.
    SecretId, "secret id", secret_id
);

fn plain_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn secret_id(text: &str) -> bool {
    let rest = text.strip_prefix("secret:").unwrap_or(text);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let xid = path.rsplit('/').next().unwrap_or(path);
    !xid.is_empty()
        && path
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '/'))
}

impl SecretId {
    /// The last part, which identifies the secret inside its model.
    pub fn xid(&self) -> &str {
        self.0.rsplit(['/', ':']).next().unwrap_or(&self.0)
    }
}

/// A unit's name, `app/0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnitName {
    app: AppName,
    number: u32,
}

impl UnitName {
    /// The unit `number` of `app`.
    pub fn of(app: AppName, number: u32) -> Self {
        Self { app, number }
    }

    /// The application the unit belongs to.
    pub fn app(&self) -> &AppName {
        &self.app
    }

    /// The unit's number inside its application.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.app, self.number)
    }
}

impl FromStr for UnitName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || IdError::new("unit name", text);
        let (app, number) = text.rsplit_once('/').ok_or_else(invalid)?;
        Ok(Self {
            app: AppName::new(app).map_err(|_| invalid())?,
            number: decimal(number).ok_or_else(invalid)?,
        })
    }
}

impl TryFrom<String> for UnitName {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<UnitName> for String {
    fn from(unit: UnitName) -> Self {
        unit.to_string()
    }
}

/// A relation's number, unique in its model. Parsed from `3` or `endpoint:3`; prints as `3`.
/// [`RelationKey`] prints the form with the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RelationId(pub u32);

impl RelationId {
    /// This relation seen from `endpoint`.
    pub fn on(self, endpoint: &EndpointName) -> RelationKey {
        RelationKey {
            endpoint: endpoint.clone(),
            id: self,
        }
    }
}

impl fmt::Display for RelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RelationId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.rsplit(':').next().unwrap_or(text);
        decimal(number)
            .map(Self)
            .ok_or_else(|| IdError::new("relation id", text))
    }
}

/// A relation as this side's endpoint knows it; prints as `endpoint:3`, the form hook tools take.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationKey {
    /// The endpoint of this charm.
    pub endpoint: EndpointName,
    /// The relation's number.
    pub id: RelationId,
}

impl fmt::Display for RelationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.endpoint, self.id)
    }
}

/// `u32` from digits only: `str::parse` would also take `+1`.
fn decimal(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_name_splits_into_application_and_number() {
        let check = |text: &str, expect: Option<(&str, u32)>| {
            let got = text.parse::<UnitName>().ok();
            let got = got.as_ref().map(|u| (u.app().as_str(), u.number()));
            assert_eq!(got, expect, "{text:?}");
        };
        check("meshy/0", Some(("meshy", 0)));
        check("remote-0a1b/12", Some(("remote-0a1b", 12)));
        check("meshy", None);
        check("meshy/", None);
        check("/0", None);
        check("meshy/+1", None);
        check("meshy/-1", None);
        check("a/b/0", None);
        check("", None);
    }

    #[test]
    fn a_relation_id_is_the_number_after_the_last_colon() {
        let check = |text: &str, expect: Option<u32>| {
            assert_eq!(
                text.parse::<RelationId>().ok().map(|id| id.0),
                expect,
                "{text:?}"
            );
        };
        check("db:3", Some(3));
        check("3", Some(3));
        check("a:b:7", Some(7));
        check("db:", None);
        check("", None);
        check("db:x", None);
        check("db:4294967296", None);
    }

    #[test]
    fn a_secret_id_keeps_its_form_and_knows_its_xid() {
        let check = |text: &str, xid: &str| {
            let id = SecretId::new(text).unwrap();
            assert_eq!((id.as_str(), id.xid()), (text, xid));
        };
        check("secret:9m4e2mr0ui3e8a215n4g", "9m4e2mr0ui3e8a215n4g");
        check("9m4e2mr0ui3e8a215n4g", "9m4e2mr0ui3e8a215n4g");
        check(
            "secret://0a-1b/9m4e2mr0ui3e8a215n4g",
            "9m4e2mr0ui3e8a215n4g",
        );
        assert!(SecretId::new("").is_err());
        assert!(SecretId::new("secret:").is_err());
        assert!(SecretId::new("secret:with space").is_err());
    }
}
