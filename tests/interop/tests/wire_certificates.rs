//! `tls-certificates` (version 4 of its library, one key for the application) and
//! `certificate_transfer`, as their libraries write and read them, and as we do.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::OnceLock;

use interop::peers::{Heard, ask};
use juju_hooks::Databag;
use relations::certificates::RefusedRequest;
use relations::{
    CertificateRequest, CertificateRequests, CertificateTransfer, Certificates,
    certificate_transfer,
};
use serde_json::{Value, json};

fn one(library: &str, question: Value) -> Heard {
    ask(library, &[question]).unwrap().remove(0)
}

/// A requirer of the library: its key, what it asks for and its databag.
struct Requirer {
    key: Value,
    attributes: Value,
    app: Databag,
}

/// Asks for the certificate of a host and for an authority's.
fn requirer() -> &'static Requirer {
    static REQUIRER: OnceLock<Requirer> = OnceLock::new();
    REQUIRER.get_or_init(|| {
        let key = one("certificates", json!({"side": "new-key"})).read;
        let attributes = json!([
            {"common_name": "front.example", "sans_dns": ["front.example", "*.front.example"],
             "sans_ip": ["192.0.2.7", "2001:db8::7"], "organization": "B\u{fc}cher \"& more\""},
            {"common_name": "lab root", "is_ca": true},
        ]);
        let question = json!({"side": "requirer", "key": key, "attributes": attributes});
        let heard = one("certificates", question);
        assert_eq!(heard.error, None);
        Requirer {
            key,
            attributes,
            app: heard.app,
        }
    })
}

impl Requirer {
    /// What it makes of a provider's databag.
    fn hears(&self, provider: &Databag) -> Value {
        let heard = one(
            "certificates",
            json!({
                "side": "requirer", "key": self.key, "attributes": self.attributes,
                "local_app": self.app, "remote_app": provider,
            }),
        );
        assert_eq!(heard.error, None);
        assert_eq!(heard.app, self.app, "it asks for nothing new");
        heard.read
    }

    fn requests(&self) -> CertificateRequests {
        CertificateRequests::decode(&self.app).unwrap().unwrap()
    }
}

/// A provider of the library, related to that databag.
fn provider(requirer: &Databag, before: &Databag, send: &Value) -> Heard {
    let question = json!({
        "side": "provider", "remote_app": requirer, "local_app": before, "send": send,
    });
    one("certificates", question)
}

#[test]
fn requests_of_the_library_are_read_with_their_values() {
    let requests = requirer().requests().0;
    assert_eq!(requests.len(), 2);
    assert_eq!(requests.iter().filter(|request| request.ca).count(), 1);
    for request in &requests {
        let csr = request.csr.trim();
        assert!(
            csr.starts_with("-----BEGIN CERTIFICATE REQUEST-----\n"),
            "{csr}"
        );
        assert!(
            csr.ends_with("\n-----END CERTIFICATE REQUEST-----"),
            "{csr}"
        );
    }
}

#[test]
fn requests_of_ours_are_read_by_the_library_with_their_values() {
    let requests = requirer().requests();
    // Line ends around a request are somebody's habit.
    let ours = CertificateRequests(
        requests
            .0
            .iter()
            .map(|request| CertificateRequest {
                csr: format!("{}\n", request.csr.trim()),
                ca: request.ca,
            })
            .collect(),
    );
    let heard = provider(&ours.encode(), &Databag::new(), &Value::Null);
    assert_eq!(heard.error, None);
    let read = heard.read.as_array().unwrap();
    assert_eq!(read.len(), 2);
    for (read, ours) in read.iter().zip(&ours.0) {
        assert_eq!(read["csr"].as_str().unwrap().trim(), ours.csr.trim());
        assert_eq!(read["ca"], ours.ca);
        let name = if ours.ca { "lab root" } else { "front.example" };
        assert_eq!(read["common_name"], name);
        if !ours.ca {
            assert_eq!(
                read["sans_dns"],
                json!(["*.front.example", "front.example"])
            );
            assert_eq!(read["sans_ip"], json!(["192.0.2.7", "2001:db8::7"]));
        }
    }
}

#[test]
fn certificates_of_the_library_answer_our_requests() {
    let ours = requirer().requests();
    let signed = provider(&ours.encode(), &Databag::new(), &json!("sign"));
    assert_eq!(signed.error, None);
    let read = Certificates::decode(&signed.app).unwrap();
    assert_eq!((read.issued.len(), read.refused.len()), (2, 0));
    for request in &ours.0 {
        let answer = read.answer(&request.csr).unwrap();
        assert_eq!(
            answer.chain,
            [answer.certificate.clone(), answer.ca.clone()]
        );
        let bundle = answer.bundle();
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2, "{bundle}");
    }
    let revoked = provider(&ours.encode(), &signed.app, &json!("revoke"));
    let read = Certificates::decode(&revoked.app).unwrap();
    assert_eq!(read.issued.len(), 2);
    for request in &ours.0 {
        assert_eq!(read.answer(&request.csr), None);
    }
}

#[test]
fn certificates_of_ours_are_those_that_the_library_takes() {
    let requirer = requirer();
    let theirs = provider(&requirer.app, &Databag::new(), &json!("sign")).app;
    let mut ours = Certificates::decode(&theirs).unwrap();
    let read = requirer.hears(&ours.encode());
    assert_eq!(read["certificates"].as_array().unwrap().len(), 2);
    assert_eq!(read, requirer.hears(&theirs));
    ours.issued[0].revoked = true;
    let read = requirer.hears(&ours.encode());
    for certificate in read["certificates"].as_array().unwrap() {
        let csr = certificate["csr"].as_str().unwrap();
        let revoked = csr.trim() == ours.issued[0].csr.trim();
        assert_eq!(certificate["revoked"], revoked);
        assert_eq!(ours.answer(csr).is_none(), revoked);
    }
    assert_eq!(requirer.hears(&Databag::new())["certificates"], json!([]));
}

#[test]
fn a_refusal_is_read_both_ways() {
    let requirer = requirer();
    let error = json!({"code": 102, "name": "DOMAIN_NOT_ALLOWED", "message": "not \"here\" \u{fc}",
        "reason": "policy", "provider": "lab", "endpoint": null});
    let theirs = provider(&requirer.app, &Databag::new(), &error);
    assert_eq!(theirs.error, None);
    let ours = Certificates::decode(&theirs.app).unwrap();
    assert_eq!(ours.refused.len(), 2);
    for request in requirer.requests().0 {
        let refusal = ours.refusal(&request.csr).unwrap();
        assert_eq!(
            (
                refusal.code,
                refusal.name.as_str(),
                refusal.message.as_str()
            ),
            (102, "DOMAIN_NOT_ALLOWED", "not \"here\" \u{fc}")
        );
    }
    let read = requirer.hears(&ours.encode());
    assert_eq!(read["errors"], requirer.hears(&theirs.app)["errors"]);
    assert_eq!(read["errors"][0]["code"], 102);
    // Once it is signed, a refusal is forgotten.
    let signed = provider(&requirer.app, &theirs.app, &json!("sign"));
    let read = Certificates::decode(&signed.app).unwrap();
    assert_eq!(
        (read.issued.len(), read.refused),
        (2, Vec::<RefusedRequest>::new())
    );
}

#[test]
fn what_the_library_refuses_we_refuse_too() {
    let key = "certificate_signing_requests";
    for requests in [
        "{",
        "{}",
        "[{}]",
        "[7]",
        r#"[{"certificate_signing_request": 1, "ca": false}]"#,
    ] {
        let bag = Databag::from([(key.to_owned(), requests.to_owned())]);
        let heard = provider(&bag, &Databag::new(), &Value::Null);
        assert_eq!(heard.read, json!([]), "{requests}");
        assert!(CertificateRequests::decode(&bag).is_err(), "{requests}");
    }
    let requirer = requirer();
    let signed = provider(&requirer.app, &Databag::new(), &json!("sign")).app;
    let whole: Value = serde_json::from_str(&signed["certificates"]).unwrap();
    for (field, value) in [
        ("certificate", Value::Null),
        ("ca", json!(7)),
        ("certificate_signing_request", json!([])),
        ("chain", json!("leaf")),
        ("chain", json!([1])),
        ("revoked", json!("perhaps")),
    ] {
        let mut broken = whole.clone();
        broken[0][field] = value;
        let bag = Databag::from([("certificates".to_owned(), broken.to_string())]);
        assert_eq!(requirer.hears(&bag)["certificates"], json!([]), "{field}");
        assert!(Certificates::decode(&bag).is_err(), "{field}");
    }
}

#[test]
fn a_certificate_without_a_chain_or_whose_state_is_open_is_read_by_both() {
    let requirer = requirer();
    let signed = provider(&requirer.app, &Databag::new(), &json!("sign")).app;
    let mut whole: Value = serde_json::from_str(&signed["certificates"]).unwrap();
    whole[0]["chain"] = Value::Null;
    whole[0]["revoked"] = Value::Null;
    whole[1].as_object_mut().unwrap().remove("chain");
    let bag = Databag::from([("certificates".to_owned(), whole.to_string())]);
    let read = requirer.hears(&bag);
    assert_eq!(read["certificates"].as_array().unwrap().len(), 2);
    let read = Certificates::decode(&bag).unwrap();
    for request in requirer.requests().0 {
        let answer = read.answer(&request.csr).unwrap();
        assert!(answer.chain.is_empty());
    }
}

/// Texts that stand for certificates; neither side looks into them.
const TRUSTED: [&str; 2] = ["-----BEGIN CERTIFICATE-----\nA\n", "1e3 \"\u{fc}\""];

fn trusted() -> CertificateTransfer {
    CertificateTransfer {
        certificates: TRUSTED.map(str::to_owned).into(),
    }
}

#[test]
fn certificates_to_trust_are_read_both_ways() {
    let told = one("certificate_transfer", json!({"side": "created"})).app;
    assert_eq!(told, certificate_transfer::request());

    let question = json!({
        "side": "provider", "send": TRUSTED, "remote_app": certificate_transfer::request(),
    });
    let theirs = one("certificate_transfer", question);
    let read = CertificateTransfer::decode(&theirs.app, []);
    assert_eq!(read, Ok(Some(trusted())));
    assert!(!theirs.unit.contains_key("ca"), "{theirs:?}");

    let question = json!({"side": "requirer", "remote_app": trusted().encode()});
    let heard = one("certificate_transfer", question);
    assert_eq!((heard.read, heard.error), (json!(TRUSTED), None));
}

#[test]
fn certificates_to_trust_of_version_0_are_read_both_ways() {
    let question = json!({"side": "provider", "send": TRUSTED, "remote_app": {}});
    let theirs = one("certificate_transfer", question);
    assert!(theirs.unit.contains_key("ca"), "{theirs:?}");
    for app in [&theirs.app, &Databag::new()] {
        let read = CertificateTransfer::decode(app, [&theirs.unit]);
        assert_eq!(read, Ok(Some(trusted())));
    }
    let unit = CertificateTransfer::encode_unit(TRUSTED[0]);
    let question = json!({"side": "requirer", "remote_app": {}, "remote_unit": unit});
    let heard = one("certificate_transfer", question);
    assert_eq!((heard.read, heard.error), (json!([TRUSTED[0]]), None));
}
