//! Readers of what comes from outside, as functions of any bytes.
//!
//! Each target panics when a law is broken; it never fails on bad input. The same functions are
//! run by the property tier, over the kept corpus and mutations of it, and by libFuzzer.

mod mutate;

use std::collections::BTreeMap;

use juju_charm::Metadata;
use juju_hooks::{
    Context, Databag, Event, NetworkInfo, ReportedStatus, SecretInfo, StorageInfo, answers,
};
use relations::{
    CertificateRequests, Certificates, Dashboards, ForwardAuth, GatewayInfo, Ingress, IngressAuth,
    IngressConfig, IstioMetadata, MeshLabels, MeshPolicies, RequestAuth, RouteConfig, RouteReply,
    ScrapeJobs,
};
use serde_json::Value;
use yaml::Duplicates;

pub use crate::mutate::Mutator;

/// A target: reads bytes, panics if a law is broken.
pub type Target = fn(&[u8]);

/// Every target by the name of its corpus.
pub const TARGETS: [(&str, Target); 5] = [
    ("answers", answers_of_tools),
    ("charmcraft", charmcraft),
    ("databags", databags),
    ("environment", environment),
    ("yaml", yaml_streams),
];

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// Lines `NAME=value`, as of `env`. Law: a context that was read is read again from what an agent
/// would set for it.
pub fn environment(data: &[u8]) {
    let text = text(data);
    let vars = text.lines().filter_map(|line| line.split_once('='));
    let Ok(context) = Context::from_vars(vars) else {
        return;
    };
    let again = Context::from_vars(context.to_vars());
    // A hook under a name of another kind is told by its name alone.
    if !matches!(context.event, Event::Unknown(_)) && context.charm_dir.is_absolute() {
        assert_eq!(again.map(|again| again.event), Ok(context.event));
    }
}

/// What a hook tool prints. Law: what was read as names prints as those names.
pub fn answers_of_tools(data: &[u8]) {
    let text = text(data);
    if let Ok(ids) = answers::relation_ids(&text) {
        assert!(ids.is_sorted());
    }
    if let Ok(units) = answers::units(&text) {
        for unit in units {
            assert_eq!(unit.to_string().parse(), Ok(unit));
        }
    }
    if let Ok(config) = answers::config(&text) {
        assert!(config.values().all(|value| !value.is_null()));
    }
    if let Ok(goal) = answers::goal(&text) {
        assert!(goal.planned_units() as usize <= goal.units.len());
    }
    if let Ok(network) = answers::read::<NetworkInfo>("network-get", &text) {
        assert_ne!(network.bind_address(), Some(""));
        assert_ne!(network.ingress_address(), Some(""));
    }
    drop(answers::databag(&text));
    drop(answers::read::<StorageInfo>("storage-get", &text));
    drop(answers::read::<ReportedStatus>("status-get", &text));
    drop(answers::read::<BTreeMap<String, SecretInfo>>(
        "secret-info-get",
        &text,
    ));
}

/// A JSON object as a databag: texts as they are, all else as JSON. Law: nothing a related
/// application writes makes a decoder panic.
pub fn databags(data: &[u8]) {
    let Ok(Value::Object(fields)) = serde_json::from_slice(data) else {
        return;
    };
    let value = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let bag: Databag = fields.into_iter().map(|(k, v)| (k, value(v))).collect();
    drop(CertificateRequests::decode(&bag));
    drop(Certificates::decode(&bag));
    drop(Dashboards::decode(&bag));
    drop(ForwardAuth::decode(&bag));
    drop(GatewayInfo::decode(&bag));
    drop(Ingress::decode(&bag, [&bag]));
    drop(IngressAuth::decode(&bag));
    drop(IngressConfig::decode(&bag));
    drop(IstioMetadata::decode(&bag));
    drop(MeshLabels::decode(&bag));
    drop(MeshPolicies::decode(&bag));
    drop(RequestAuth::decode(&bag));
    drop(RouteConfig::decode(&bag));
    drop(RouteReply::decode(&bag));
    drop(ScrapeJobs::decode(&bag));
}

/// A `charmcraft.yaml`. Law: it says the same in every layout of its YAML.
pub fn charmcraft(data: &[u8]) {
    let text = text(data);
    let Ok(metadata) = Metadata::parse(&text) else {
        return;
    };
    let value: Value = yaml::parse(&text).unwrap_or_default();
    let block = yaml::emit(&value).unwrap_or_default();
    for layout in [value.to_string(), block] {
        let again = Metadata::parse(&layout).ok();
        assert_eq!(again.as_ref(), Some(&metadata), "{layout}");
    }
}

/// A stream of YAML documents. Laws: the quick reader reads what the scanner reads, no more and no
/// less; the parts of a stream are the stream; each but the first begins a document.
pub fn yaml_streams(data: &[u8]) {
    let text = text(data);
    for duplicates in [Duplicates::Reject, Duplicates::LastWins] {
        let read = yaml::parse_all_with(&text, duplicates).ok();
        assert_eq!(read, yaml::scan_all(&text, duplicates).ok());
    }
    let parts: Vec<&str> = yaml::parts(&text).collect();
    assert_eq!(parts.concat(), text);
    assert!(parts.iter().skip(1).all(|part| part.starts_with("---")));
}
