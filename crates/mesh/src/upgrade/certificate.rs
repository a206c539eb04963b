//! When the mesh's root certificate ends. Every proxy trusts nothing else, so its end is the end of
//! all traffic; an upgrade is the time to look.

use k8s_openapi::ByteString;
use serde_json::Value;

use super::finding::{Code, Finding};

const DAY: i64 = 86_400;
/// A root that ends sooner than this is told.
const SOON: i64 = 90 * DAY;

/// What is to be said of the root in `pem` (the first certificate of it) at `now`, in seconds since
/// 1970; `object` is where it was read.
pub fn root(pem: &str, now: i64, object: &str) -> Option<Finding> {
    let left = end(pem)? - now;
    if left > SOON {
        return None;
    }
    let mend = "see https://istio.io/latest/docs/tasks/security/cert-management/plugin-ca-cert/";
    let finding = if left <= 0 {
        let why = "it has ended: no proxy trusts another";
        Finding::error(Code::RootCertificate, object, why)
    } else {
        let why = format!("it ends in {} days, and with it all traffic", left / DAY);
        Finding::warning(Code::RootCertificate, object, why)
    };
    Some(finding.mended_by(mend))
}

/// As much of a certificate as a root of trust needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// All of it, by which it is known.
    pub der: Vec<u8>,
    /// Its first second, since 1970.
    pub not_before: i64,
    /// Its last second, since 1970.
    pub not_after: i64,
}

/// The end of the first certificate of a PEM text, in seconds since 1970; none if it is no
/// certificate.
pub fn end(pem: &str) -> Option<i64> {
    first(pem).map(|certificate| certificate.not_after)
}

/// The first certificate of a PEM text.
pub fn first(pem: &str) -> Option<Certificate> {
    let body = pem.split_once("-----BEGIN CERTIFICATE-----")?.1;
    let body = body.split_once("-----END CERTIFICATE-----")?.0;
    let base64: String = body.split_whitespace().collect();
    let der: ByteString = serde_json::from_value(Value::String(base64)).ok()?;
    let (not_before, not_after) = validity(&der.0)?;
    Some(Certificate {
        der: der.0,
        not_before,
        not_after,
    })
}

/// Certificate ::= SEQUENCE { tbsCertificate SEQUENCE { \[0\] version, serialNumber, signature, issuer,
/// validity SEQUENCE { notBefore, notAfter }, … }, … } (RFC 5280, 4.1).
fn validity(der: &[u8]) -> Option<(i64, i64)> {
    let (_, certificate, _) = element(der)?;
    let (_, mut tbs, _) = element(certificate)?;
    let (tag, _, rest) = element(tbs)?;
    if tag == 0xa0 {
        tbs = rest;
    }
    for _ in ["serialNumber", "signature", "issuer"] {
        tbs = element(tbs)?.2;
    }
    let (_, validity, _) = element(tbs)?;
    let (first_tag, first, after_first) = element(validity)?;
    let (last_tag, last, _) = element(after_first)?;
    let time = |tag, text| seconds(tag, std::str::from_utf8(text).ok()?);
    Some((time(first_tag, first)?, time(last_tag, last)?))
}

/// One DER element: its tag, its content and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if bytes.len() > 4 {
            return None;
        }
        let length = bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `UTCTime` (tag 23, two digits of the year, 1950 to 2049) or `GeneralizedTime` (tag 24), in UTC.
fn seconds(tag: u8, text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, at) = match tag {
        23 => {
            let year = number(0, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        24 => (number(0, 4)?, 4),
        _ => return None,
    };
    let [month, day, hour, minute, second] =
        [0, 2, 4, 6, 8].map(|offset| number(at + offset, at + offset + 2));
    let days = days(year, month?, day?);
    Some(((days * 24 + hour?) * 60 + minute?) * 60 + second?)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March,
/// so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        assert_eq!(days(2026, 11, 30), 20_787);
        assert_eq!(days(2100, 3, 1), 47_541);
    }

    #[test]
    fn a_time_is_in_either_form() {
        assert_eq!(seconds(23, "700101000001Z"), Some(1));
        assert_eq!(seconds(24, "20261130010203Z"), Some(20_787 * DAY + 3_723));
        assert_eq!(seconds(23, "500101000000Z"), Some(-7_305 * DAY));
        assert_eq!(seconds(12, "700101000001Z"), None);
        assert_eq!(seconds(23, "7001"), None);
    }

    /// A certificate of nothing but what is read of it.
    fn pem(not_after: &str) -> String {
        fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
            let mut out = vec![tag];
            match u8::try_from(content.len()) {
                Ok(short) if short < 0x80 => out.push(short),
                _ => {
                    out.push(0x82);
                    out.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
                }
            }
            out.extend(content);
            out
        }
        let validity = [wrap(23, b"200101000000Z"), wrap(23, not_after.as_bytes())].concat();
        let tbs = [
            wrap(0xa0, &wrap(2, &[2])),
            wrap(2, &[1]),
            wrap(0x30, &[]),
            wrap(0x30, &[0; 200]),
            wrap(0x30, &validity),
        ];
        let der = wrap(0x30, &wrap(0x30, &tbs.concat()));
        let base64 = serde_json::to_value(ByteString(der)).unwrap();
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            base64.as_str().unwrap()
        )
    }

    #[test]
    fn a_root_near_its_end_is_told_and_one_past_it_blocks() {
        let now = 20_787 * DAY;
        let check = |not_after: &str, expect: Option<bool>| {
            let found = root(
                &pem(not_after),
                now,
                "ConfigMap istio-lab/istio-ca-root-cert",
            );
            assert_eq!(found.map(|f| f.blocks()), expect, "{not_after}");
        };
        check("361128000000Z", None);
        check("261230000000Z", Some(false));
        check("261129000000Z", Some(true));
    }

    #[test]
    fn what_is_no_certificate_says_nothing() {
        for text in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMIL/////\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(end(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_certificate_tells_its_first_second_as_well_as_its_last() {
        let read = first(&pem("200102000000Z")).unwrap();
        assert_eq!(read.not_after - read.not_before, DAY);
    }
}
