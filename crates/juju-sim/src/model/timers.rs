//! When secrets fall due: rotation policies and expiries against the model's clock, and revisions
//! that nobody tracks any more.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, ToSpan as _};

use crate::hook::{Hook, Told};
use crate::state::{Secret, State};

/// An expired revision that is still there is told of again after so many seconds. How often Juju
/// does so is not documented.
const EXPIRED_AGAIN_SECS: i64 = 300;

/// The time after `now` at which a new content is asked for; none for a policy that never does.
pub(crate) fn next_rotation(policy: &str, now: Timestamp) -> Option<Timestamp> {
    let span: Span = match policy {
        "hourly" => 1.hour(),
        "daily" => 1.day(),
        "weekly" => 1.week(),
        "monthly" => 1.month(),
        "quarterly" => 3.months(),
        "yearly" => 1.year(),
        _ => return None,
    };
    let then = now.to_zoned(TimeZone::UTC).checked_add(span).ok()?;
    Some(then.timestamp())
}

/// Reads `--expire`: RFC 3339, the same without a zone, or a duration such as `1h30m`.
pub(crate) fn expiry(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp());
    }
    now.checked_add(duration(text)?).ok()
}

/// A duration as Go writes it, in whole hours, minutes and seconds.
fn duration(text: &str) -> Option<SignedDuration> {
    let mut total: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = rest.split_at(digits);
        let seconds = match unit.bytes().next()? {
            b'h' => 3600,
            b'm' => 60,
            b's' => 1,
            _ => return None,
        };
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(seconds)?)?;
        rest = &unit[1..];
    }
    (!text.is_empty()).then(|| SignedDuration::from_secs(total))
}

/// The hook about a secret of its own that is due for `unit`, if one is. For an application's secret
/// it is the leader's.
pub(crate) fn due(state: &State, unit: &str, now: Timestamp) -> Option<Hook> {
    let owns = |secret: &Secret| match secret.owner.split_once(':') {
        Some(("unit", owner)) => owner == unit,
        Some(("application", app)) => {
            let own = unit.split('/').next() == Some(app);
            own && state.is_leader(unit)
        }
        _ => false,
    };
    state.secrets.iter().find_map(|(id, secret)| {
        if !owns(secret) {
            return None;
        }
        let told = |name: &str, revision: Option<u32>| {
            let mut vars = vec![
                ("JUJU_SECRET_ID", format!("secret:{id}")),
                ("JUJU_SECRET_LABEL", secret.label.clone()),
            ];
            vars.extend(revision.map(|number| ("JUJU_SECRET_REVISION", number.to_string())));
            Hook::Told(Told {
                name: name.to_owned(),
                vars: vars
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                leader_only: secret.owner.starts_with("application:"),
            })
        };
        let expired = secret.expires.as_ref().filter(|expires| {
            expires.at <= now && secret.revisions.contains_key(&expires.revision)
        });
        if let Some(expires) = expired {
            return Some(told("secret-expired", Some(expires.revision)));
        }
        if let Some(revision) = secret.dropped() {
            return Some(told("secret-remove", Some(revision)));
        }
        let rotates = secret.rotates.is_some_and(|at| at <= now);
        rotates.then(|| told("secret-rotate", None))
    })
}

/// What a hook that ended well means for the timers.
pub(crate) fn told(state: &mut State, hook: &Hook, now: Timestamp) {
    let Hook::Told(told) = hook else {
        return;
    };
    let id = told.vars.get("JUJU_SECRET_ID").map(String::as_str);
    let id = id
        .and_then(|id| id.strip_prefix("secret:"))
        .unwrap_or_default();
    let Some(secret) = state.secrets.get_mut(id) else {
        return;
    };
    match told.name.as_str() {
        "secret-remove" => {
            let revision = told.vars.get("JUJU_SECRET_REVISION");
            secret
                .obsolete
                .extend(revision.and_then(|text| text.parse::<u32>().ok()));
        }
        "secret-rotate" => secret.rotates = next_rotation(&secret.rotate, now),
        "secret-expired" => {
            if let Some(expires) = &mut secret.expires {
                let again = SignedDuration::from_secs(EXPIRED_AGAIN_SECS);
                expires.at = expires.at.max(now).saturating_add(again).unwrap_or(now);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn policies_ask_again_by_the_calendar() {
        let check = |policy: &str, expect: Option<&str>| {
            let next = next_rotation(policy, at("2026-01-31T10:00:00Z"));
            assert_eq!(next, expect.map(at), "{policy}");
        };
        check("never", None);
        check("hourly", Some("2026-01-31T11:00:00Z"));
        check("daily", Some("2026-02-01T10:00:00Z"));
        check("weekly", Some("2026-02-07T10:00:00Z"));
        check("monthly", Some("2026-02-28T10:00:00Z"));
        check("quarterly", Some("2026-04-30T10:00:00Z"));
        check("yearly", Some("2027-01-31T10:00:00Z"));
    }

    #[test]
    fn expiries_are_times_or_durations() {
        let check = |text: &str, expect: Option<&str>| {
            let read = expiry(text, at("2026-01-01T00:00:00Z"));
            assert_eq!(read, expect.map(at), "{text}");
        };
        check("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z"));
        check("2026-01-02T03:04:05+01:00", Some("2026-01-02T02:04:05Z"));
        check("2026-01-02T03:04:05", Some("2026-01-02T03:04:05Z"));
        check("24h", Some("2026-01-02T00:00:00Z"));
        check("1h30m15s", Some("2026-01-01T01:30:15Z"));
        for bad in ["", "soon", "24", "h", "1d", "-1h"] {
            check(bad, None);
        }
    }
}
