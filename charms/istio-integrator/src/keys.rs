//! Keys and requests to sign them. Needs random numbers, so it is no pure code; see [`crate::cluster`].

use std::collections::BTreeSet;

use juju_hooks::Redacted;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _};

use crate::tls::KeyRequest;

/// Longest common name, in characters (RFC 5280, appendix A.1).
const COMMON_NAME: usize = 64;

/// A request for `hosts`, with the key of an earlier one if there is a good one.
///
/// # Errors
/// The words of the cryptographic library; never the key.
pub(crate) fn key_request(
    hosts: &BTreeSet<String>,
    earlier: Option<&KeyRequest>,
) -> Result<KeyRequest, String> {
    let kept = earlier.and_then(|request| KeyPair::from_pem(request.key.expose()).ok());
    let key = match kept {
        Some(key) => key,
        None => KeyPair::generate().map_err(|error| error.to_string())?,
    };
    let names: Vec<String> = hosts.iter().cloned().collect();
    let mut params = CertificateParams::new(names).map_err(|error| error.to_string())?;
    params.distinguished_name = DistinguishedName::new();
    if let Some(host) = hosts.iter().find(|host| host.len() <= COMMON_NAME) {
        params
            .distinguished_name
            .push(DnType::CommonName, host.as_str());
    }
    let csr = params
        .serialize_request(&key)
        .and_then(|request| request.pem())
        .map_err(|error| error.to_string())?;
    Ok(KeyRequest {
        key: Redacted::new(key.serialize_pem()),
        csr: csr.trim().replace("\r\n", "\n"),
        hosts: hosts.clone(),
    })
}

/// The public key to a private one, as it stands in certificates (DER); none for keys that the library
/// does not know.
pub(crate) fn public_key(pem: &str) -> Option<Vec<u8>> {
    let key = KeyPair::from_pem(pem).ok()?;
    Some(key.subject_public_key_info())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_when_the_hosts_change() {
        let hosts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let first = key_request(&hosts(&["a.example.org"]), None).unwrap();
        let second =
            key_request(&hosts(&["a.example.org", "b.example.org"]), Some(&first)).unwrap();
        assert_eq!(first.key, second.key);
        assert_ne!(first.csr, second.csr);
        assert!(
            first
                .csr
                .starts_with("-----BEGIN CERTIFICATE REQUEST-----\n")
        );
        assert!(!format!("{first:?}").contains("PRIVATE"));
        let broken = KeyRequest {
            key: Redacted::new("none".to_owned()),
            ..first
        };
        assert!(key_request(&hosts(&["a.example.org"]), Some(&broken)).is_ok());
    }

    #[test]
    fn a_request_has_its_host_as_subject_and_as_alternative_name() {
        let hosts = BTreeSet::from(["apps.example.org".to_owned()]);
        let request = key_request(&hosts, None).unwrap();
        let base64: String = request
            .csr
            .lines()
            .filter(|line| !line.starts_with('-'))
            .collect();
        let der: k8s_openapi::ByteString = serde_json::from_value(base64.into()).unwrap();
        let name = b"apps.example.org";
        let named = der.0.windows(name.len()).filter(|part| part == name);
        assert_eq!(named.count(), 2);
    }
}
