//! The answer of `network-get`.

use serde::{Deserialize, Deserializer, Serialize};

/// How a binding is reached. Juju leaves out what is empty, and 4.0 may send placeholders on
/// Kubernetes: everything defaults to empty, and empty entries are dropped by the accessors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NetworkInfo {
    /// Interfaces with their addresses.
    #[serde(deserialize_with = "null_as_default")]
    pub bind_addresses: Vec<BindAddress>,
    /// Where traffic leaves from, CIDRs.
    #[serde(deserialize_with = "null_as_default")]
    pub egress_subnets: Vec<String>,
    /// Addresses others use to reach the unit.
    #[serde(deserialize_with = "null_as_default")]
    pub ingress_addresses: Vec<String>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct BindAddress {
    /// Its name, may be empty.
    pub interface_name: String,
    /// Its addresses.
    #[serde(deserialize_with = "null_as_default")]
    pub addresses: Vec<InterfaceAddress>,
}

/// One address of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct InterfaceAddress {
    /// Host name, may be empty.
    pub hostname: String,
    /// The address, in older answers under `address`.
    #[serde(alias = "address")]
    pub value: String,
    /// The subnet, may be empty.
    pub cidr: String,
}

impl NetworkInfo {
    /// The first address to bind to, if Juju knows one.
    pub fn bind_address(&self) -> Option<&str> {
        let all = self.bind_addresses.iter().flat_map(|bind| &bind.addresses);
        all.map(|address| address.value.as_str())
            .find(|value| !value.is_empty())
    }

    /// The first address others use, if Juju knows one.
    pub fn ingress_address(&self) -> Option<&str> {
        self.ingress_addresses
            .iter()
            .map(String::as_str)
            .find(|value| !value.is_empty())
    }
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_gaps_in_network_answers_are_tolerated() {
        let check = |json: &str, bind: Option<&str>, ingress: Option<&str>| {
            let info: NetworkInfo = serde_json::from_str(json).unwrap();
            assert_eq!(
                (info.bind_address(), info.ingress_address()),
                (bind, ingress),
                "{json}"
            );
        };
        check("{}", None, None);
        check(
            r#"{"bind-addresses":null,"ingress-addresses":[""]}"#,
            None,
            None,
        );
        check(
            r#"{"bind-addresses":[{"addresses":null},{"interface-name":"eth0","mac-address":"x",
                "addresses":[{"hostname":"","value":"","cidr":""},{"value":"10.1.2.3"}]}],
                "ingress-addresses":["10.0.0.7"],"added-later":1}"#,
            Some("10.1.2.3"),
            Some("10.0.0.7"),
        );
        check(
            r#"{"bind-addresses":[{"addresses":[{"address":"10.9.9.9"}]}]}"#,
            Some("10.9.9.9"),
            None,
        );
    }
}
