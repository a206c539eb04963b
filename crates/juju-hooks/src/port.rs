//! Ports a unit opens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::IdError;

/// Transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// One port, `80/tcp`. Kubernetes applications cannot open ranges, so there is no range here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Port {
    /// 1 to 65535.
    number: u16,
    protocol: Protocol,
}

impl Port {
    /// A port with its protocol; 0 is none.
    pub fn new(number: u16, protocol: Protocol) -> Result<Self, IdError> {
        if number == 0 {
            return Err(IdError {
                what: "port",
                text: "0".to_owned(),
            });
        }
        Ok(Self { number, protocol })
    }

    /// The number, 1 to 65535.
    pub fn number(self) -> u16 {
        self.number
    }

    /// The protocol.
    pub fn protocol(self) -> Protocol {
        self.protocol
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        write!(f, "{}/{protocol}", self.number)
    }
}

impl FromStr for Port {
    type Err = IdError;

    /// `80`, `80/tcp`, `53/udp`.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || IdError {
            what: "port",
            text: text.to_owned(),
        };
        let (number, protocol) = match text.split_once('/') {
            None | Some((_, "tcp")) => (text.trim_end_matches("/tcp"), Protocol::Tcp),
            Some((number, "udp")) => (number, Protocol::Udp),
            Some(_) => return Err(invalid()),
        };
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        let number = number.parse().ok().filter(|_| digits).ok_or_else(invalid)?;
        Self::new(number, protocol).map_err(|_| invalid())
    }
}

impl TryFrom<String> for Port {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Port> for String {
    fn from(port: Port) -> Self {
        port.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_parse_as_juju_prints_them() {
        let check = |text: &str, expect: Option<&str>| {
            let got = text.parse::<Port>().ok().map(|p| p.to_string());
            assert_eq!(got.as_deref(), expect, "{text:?}");
        };
        check("80/tcp", Some("80/tcp"));
        check("80", Some("80/tcp"));
        check("53/udp", Some("53/udp"));
        for bad in [
            "0/tcp",
            "65536",
            "icmp",
            "1-9/udp",
            "80/sctp",
            "+80",
            "",
            "80/tcp/tcp",
        ] {
            check(bad, None);
        }
    }
}
