//! As much of X.509 as a root of trust needs: its fingerprint and its days.
//!
//! Reads the outer structure of RFC 5280's `Certificate` only; checks no signature.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use k8s_openapi::ByteString;
use sha2::{Digest as _, Sha256};

/// A certificate as far as it concerns us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// sha256 of the DER, in hexadecimal.
    pub(crate) fingerprint: String,
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

/// The first certificate of a PEM text.
pub(crate) fn first(pem: &str) -> Option<Certificate> {
    let body = pem.split_once("-----BEGIN CERTIFICATE-----")?.1;
    let body = body.split_once("-----END CERTIFICATE-----")?.0;
    let text: String = body.split_whitespace().collect();
    let ByteString(der) = serde_json::from_value(text.into()).ok()?;
    let (tag, certificate, _) = element(&der)?;
    let (_, mut rest, _) = (tag == SEQUENCE).then(|| element(certificate))??;
    // version [0] (optional), serial, signature, issuer, validity
    let (tag, _, after) = element(rest)?;
    if tag == VERSION {
        rest = after;
    }
    for _ in ["serial", "signature", "issuer"] {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (kind, not_before, after) = element(validity)?;
    let not_before = time(kind, not_before)?;
    let (kind, not_after, _) = element(after)?;
    let mut fingerprint = String::new();
    for byte in Sha256::digest(&der) {
        let _ = write!(fingerprint, "{byte:02x}");
    }
    Some(Certificate {
        fingerprint,
        not_before,
        not_after: time(kind, not_after)?,
    })
}

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;

/// Tag, content and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let bytes = usize::from(*first & 0x7f);
        let (length, rest) = rest.split_at_checked(bytes)?;
        let length = length.iter().try_fold(0usize, |sum, byte| {
            sum.checked_mul(256)?.checked_add(usize::from(*byte))
        })?;
        (length, rest)
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((*tag, content, after))
}

/// `YYMMDDHHMMSSZ` (years from 1950 on) or `YYYYMMDDHHMMSSZ`.
fn time(tag: u8, content: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let text = if tag == UTC_TIME {
        let century = if text.get(..2)? < "50" { "20" } else { "19" };
        format!("{century}{text}")
    } else {
        text.to_owned()
    };
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i8>().ok();
    let date = DateTime::new(
        text.get(..4)?.parse().ok()?,
        number(4, 6)?,
        number(6, 8)?,
        number(8, 10)?,
        number(10, 12)?,
        number(12, 14)?,
        0,
    );
    let zoned = date.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A self-signed root without a key that anybody has: only its days are read.
    pub(crate) fn pem(not_before: &str, not_after: &str) -> String {
        let element = |tag: u8, content: &[u8]| {
            let mut out = vec![tag, 0x82];
            out.extend(u16::try_from(content.len()).expect("short").to_be_bytes());
            out.extend_from_slice(content);
            out
        };
        let time = |text: &str| element(0x18, text.as_bytes());
        let validity = element(SEQUENCE, &[time(not_before), time(not_after)].concat());
        let parts = [
            element(VERSION, &[2, 1, 2]),
            element(2, &[7]),
            element(SEQUENCE, &[]),
            element(SEQUENCE, &[]),
            validity,
        ];
        let certificate = element(SEQUENCE, &element(SEQUENCE, &parts.concat()));
        let text = serde_json::to_value(ByteString(certificate)).expect("bytes");
        let text = text.as_str().expect("text");
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn the_days_of_a_certificate_are_read() {
        let read = first(&pem("20260101000000Z", "20360101000000Z")).expect("a certificate");
        assert_eq!(read.not_before.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(read.not_after.to_string(), "2036-01-01T00:00:00Z");
        assert_eq!(read.fingerprint.len(), 64);
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for text in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(first(text), None);
        }
    }

    #[test]
    fn short_years_are_of_this_century_until_2049() {
        let read = |text: &str| time(UTC_TIME, text.as_bytes()).map(|time| time.to_string());
        assert_eq!(
            read("260101000000Z").as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
        assert_eq!(
            read("991231235959Z").as_deref(),
            Some("1999-12-31T23:59:59Z")
        );
        assert_eq!(read("26"), None);
    }
}
