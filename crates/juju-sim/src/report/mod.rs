//! What `juju status` and `juju show-unit` show.

pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod unit;

use jiff::Timestamp;

/// A status time, e.g. `24 Feb 2025 12:03:17Z`.
fn since(time: Timestamp) -> String {
    time.strftime("%d %b %Y %H:%M:%SZ").to_string()
}

/// A unit's ports, sorted by number.
fn ports(unit: &crate::state::Unit) -> Vec<String> {
    let mut ports: Vec<&String> = unit.ports.keys().collect();
    ports.sort_by_key(|p| (p.split('/').next().and_then(|n| n.parse::<u16>().ok()), *p));
    ports.into_iter().cloned().collect()
}
