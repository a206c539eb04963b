//! Where a release goes: into the revision that runs, or into one beside it; and which revision
//! answers for the default. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kube_apply::{Inventory, Object};
use mesh::Revision;
use mesh::control_plane::Settings;
use mesh::upgrade::{Way, promotion};
use serde_json::{Value, json};

use super::record::Record;
use crate::config::UpgradeStrategy;

/// What an action asks of the revisions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Intent {
    /// Everything stays with whom it is.
    #[default]
    Keep,
    /// The release's revision is to answer for the default.
    Promote,
    /// The one before is to, or the named one.
    Rollback(Option<Revision>),
    /// This revision is to go.
    Remove(Revision),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Namespace of istiod.
    pub namespace: String,
    /// The option `revision`, none if it is not set.
    pub revision: Option<Revision>,
    /// The option `upgrade-strategy`.
    pub strategy: UpgradeStrategy,
    /// What the action asks.
    pub intent: Intent,
}

/// The application's own control planes as they are.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Of each revision that has an istiod: its version.
    pub running: BTreeMap<String, String>,
    /// Of each revision that ran well: its record.
    pub records: BTreeMap<String, Record>,
    /// The injectors.
    pub injectors: Vec<Value>,
}

impl Fleet {
    /// Picks from what was read what is the inventory's owner's.
    pub fn of(
        inventory: &Inventory,
        istiods: &[Object],
        secrets: &[Object],
        mutating: &[Object],
    ) -> Self {
        let ours = |objects: &[Object]| -> Vec<Object> {
            objects
                .iter()
                .filter(|o| inventory.owns(o))
                .cloned()
                .collect()
        };
        let records: BTreeMap<String, Record> = secrets
            .iter()
            .filter_map(|secret| Record::read(secret, inventory))
            .map(|record| (record.revision.clone(), record))
            .collect();
        // What the label says is what was asked for; the record says what has come up.
        let istiods = ours(istiods);
        let running = istiods.iter().map(|istiod| {
            let revision = istiod.label("istio.io/rev").unwrap_or("default").to_owned();
            let label = istiod.label("app.kubernetes.io/version");
            let version = match records.get(&revision) {
                Some(record) => record.version.clone(),
                None => label.unwrap_or_default().to_owned(),
            };
            (revision, version)
        });
        Self {
            running: running.collect(),
            records: records.clone(),
            injectors: ours(mutating).into_iter().map(Object::into_value).collect(),
        }
    }
}

/// Where the release goes and what stays beside it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// The revision that the release goes to.
    pub revision: Revision,
    /// Over the istiod of that revision, or beside others.
    pub way: Way,
    /// Version that the release follows: that of its own revision, else of the one that answers for
    /// the default, else of any; none on a fresh installation.
    pub follows: Option<String>,
    /// Which revision is to answer for the default, none if none of ours does.
    pub holder: Option<Revision>,
    /// The one that did before, if the tag notes it.
    pub previous: Option<Revision>,
    /// Whether the tag `default` makes the holder so.
    pub by_tag: bool,
    /// The other revisions that stay.
    pub others: BTreeSet<String>,
}

impl Target {
    /// Decides. `version` is the release's.
    pub fn choose(wish: &Wish, fleet: &Fleet, version: &str) -> Self {
        let held = promotion::holder(&fleet.injectors, &wish.namespace);
        let revision = revision(wish, fleet, version, held.revision.as_ref());
        let known: BTreeSet<String> = fleet
            .running
            .keys()
            .chain(fleet.records.keys())
            .cloned()
            .collect();
        let mut others = known;
        others.remove(revision.label());
        if let Intent::Remove(gone) = &wish.intent {
            others.remove(gone.label());
        }
        let (holder, previous) = match &wish.intent {
            Intent::Keep | Intent::Remove(_) => (held.revision.clone(), held.previous.clone()),
            Intent::Promote if held.revision.as_ref() == Some(&revision) => {
                (held.revision.clone(), held.previous.clone())
            }
            Intent::Promote => (Some(revision.clone()), held.revision.clone()),
            Intent::Rollback(named) => {
                let back = named.clone().or_else(|| held.previous.clone());
                match back {
                    Some(back) => (Some(back), None),
                    None => (held.revision.clone(), None),
                }
            }
        };
        // On a fresh installation the default revision answers by itself.
        let holder = holder
            .or_else(|| (others.is_empty() && revision.is_default()).then_some(Revision::Default));
        let by_tag = holder.as_ref().is_some_and(|holder| !holder.is_default())
            && (held.by_tag || matches!(wish.intent, Intent::Promote | Intent::Rollback(_)));
        let follows = fleet
            .running
            .get(revision.label())
            .or_else(|| fleet.running.get(holder.as_ref()?.label()))
            .or_else(|| fleet.running.values().next())
            .cloned();
        let way = if others.is_empty() || fleet.running.contains_key(revision.label()) {
            Way::InPlace
        } else {
            Way::Beside
        };
        Self {
            revision,
            way,
            follows,
            holder,
            previous,
            by_tag,
            others,
        }
    }

    /// Whether tags, the default validator and the gateways are with the release's revision: it
    /// answers for the default, or there is no other.
    pub fn leads(&self) -> bool {
        self.others.is_empty() || self.holder.as_ref() == Some(&self.revision)
    }

    /// The settings to render the release's revision with.
    #[must_use]
    pub fn settings(&self, mut settings: Settings) -> Settings {
        settings.revision = self.revision.clone();
        if !settings.values.is_object() {
            settings.values = json!({});
        }
        if !self.leads() {
            settings.values["revisionTags"] = json!([]);
            settings.values["defaultRevision"] = json!("");
        } else if self.by_tag && !self.revision.is_default() {
            let tags = settings.values["revisionTags"].as_array().cloned();
            let mut tags = tags.unwrap_or_default();
            if !tags.iter().any(|tag| tag == "default") {
                tags.push(json!("default"));
            }
            settings.values["revisionTags"] = json!(tags);
        }
        settings
    }
}

fn revision(wish: &Wish, fleet: &Fleet, version: &str, holder: Option<&Revision>) -> Revision {
    if let Some(asked) = &wish.revision {
        return asked.clone();
    }
    let nothing_runs = fleet.running.is_empty() && fleet.records.is_empty();
    if wish.strategy == UpgradeStrategy::InPlace || nothing_runs {
        return Revision::Default;
    }
    let of_version: Vec<&String> = fleet
        .running
        .iter()
        .filter(|(_, running)| running.as_str() == version)
        .map(|(revision, _)| revision)
        .collect();
    let kept = of_version
        .iter()
        .find(|revision| holder.is_some_and(|holder| holder.label() == revision.as_str()))
        .or_else(|| of_version.first());
    let named = kept.map_or_else(|| derived(version), |revision| (*revision).clone());
    named.parse().unwrap_or_default()
}

/// The revision that a version names: `1-31-0`.
fn derived(version: &str) -> String {
    let dashed = version.to_ascii_lowercase().replace(['.', '+', '_'], "-");
    dashed.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(revision: Option<&str>, strategy: UpgradeStrategy, intent: Intent) -> Wish {
        Wish {
            namespace: "istio-lab".to_owned(),
            revision: revision.map(|revision| revision.parse().unwrap()),
            strategy,
            intent,
        }
    }

    fn injector(name: &str, revision: &str, previous: Option<&str>) -> Value {
        let mut config = json!({
            "metadata": {"name": format!("{name}-istio-lab"), "labels": {"istio.io/rev": revision}},
            "webhooks": [{"name": "x.sidecar-injector.istio.io", "clientConfig": {},
                          "admissionReviewVersions": ["v1"], "sideEffects": "None"}]});
        if let Some(previous) = previous {
            config["metadata"]["annotations"][promotion::PREVIOUS] = previous.into();
        }
        config
    }

    fn fleet(running: &[(&str, &str)], injectors: Vec<Value>) -> Fleet {
        Fleet {
            running: running
                .iter()
                .map(|(revision, version)| ((*revision).to_owned(), (*version).to_owned()))
                .collect(),
            records: BTreeMap::new(),
            injectors,
        }
    }

    #[test]
    fn a_release_goes_in_place_or_beside() {
        use UpgradeStrategy::{Canary, InPlace};
        let check = |asked, strategy, running: &[(&str, &str)], version, expect: (&str, Way)| {
            let found = Target::choose(
                &wish(asked, strategy, Intent::Keep),
                &fleet(running, Vec::new()),
                version,
            );
            assert_eq!((found.revision.label(), found.way), expect, "{running:?}");
        };
        check(None, InPlace, &[], "1.31.0", ("default", Way::InPlace));
        check(None, Canary, &[], "1.31.0", ("default", Way::InPlace));
        let old = [("default", "1.30.3")];
        check(None, InPlace, &old, "1.31.0", ("default", Way::InPlace));
        check(None, Canary, &old, "1.31.0", ("1-31-0", Way::Beside));
        check(None, Canary, &old, "1.30.3", ("default", Way::InPlace));
        check(Some("new"), Canary, &old, "1.31.0", ("new", Way::Beside));
        check(Some("new"), Canary, &old, "1.30.3", ("new", Way::Beside));
        let both = [("default", "1.30.3"), ("1-31-0", "1.31.0")];
        check(None, Canary, &both, "1.31.0", ("1-31-0", Way::InPlace));
        check(None, Canary, &both, "1.32.0", ("1-32-0", Way::Beside));
    }

    /// Revision, holder, holder's predecessor, whether tags and gateways are with the revision.
    type Seen = (String, Option<String>, Option<String>, bool);

    fn seen(intent: Intent, injectors: Vec<Value>) -> Seen {
        let both = [("default", "1.30.3"), ("1-31-0", "1.31.0")];
        let wish = wish(None, UpgradeStrategy::Canary, intent);
        let found = Target::choose(&wish, &fleet(&both, injectors), "1.31.0");
        let leads = found.leads();
        let label = |revision: Option<Revision>| revision.map(|r| r.label().to_owned());
        (
            found.revision.label().to_owned(),
            label(found.holder),
            label(found.previous),
            leads,
        )
    }

    fn expect(holder: &str, previous: Option<&str>, leads: bool) -> Seen {
        (
            "1-31-0".to_owned(),
            Some(holder.to_owned()),
            previous.map(str::to_owned),
            leads,
        )
    }

    #[test]
    fn a_promotion_moves_the_default_and_a_rollback_returns_it_however_often() {
        let own = || injector("istio-sidecar-injector", "default", None);
        let tag = || injector("istio-revision-tag-default", "1-31-0", Some("default"));
        assert_eq!(
            seen(Intent::Keep, vec![own()]),
            expect("default", None, false)
        );
        let promoted = expect("1-31-0", Some("default"), true);
        assert_eq!(seen(Intent::Promote, vec![own()]), promoted);
        // What is promoted stays so, and another promotion forgets nothing.
        let parked = || promotion::parked(own());
        assert_eq!(seen(Intent::Keep, vec![parked(), tag()]), promoted);
        assert_eq!(seen(Intent::Promote, vec![parked(), tag()]), promoted);
        let back = expect("default", None, false);
        assert_eq!(seen(Intent::Rollback(None), vec![parked(), tag()]), back);
        assert_eq!(seen(Intent::Rollback(None), vec![own()]), back);
        let named = Some("default".parse().unwrap());
        assert_eq!(seen(Intent::Rollback(named), vec![parked(), tag()]), back);
    }

    #[test]
    fn tags_are_rendered_where_they_are_held() {
        let both = [("default", "1.30.3"), ("1-31-0", "1.31.0")];
        let tags = |intent| {
            let wish = wish(None, UpgradeStrategy::Canary, intent);
            let injectors = vec![injector("istio-sidecar-injector", "default", None)];
            let target = Target::choose(&wish, &fleet(&both, injectors), "1.31.0");
            let mut settings = Settings::new("istio-lab".parse().unwrap(), Revision::Default);
            settings.values = json!({"revisionTags": ["prod"]});
            let values = target.settings(settings).values;
            (
                values["revisionTags"].clone(),
                values["defaultRevision"].clone(),
            )
        };
        assert_eq!(tags(Intent::Keep), (json!([]), json!("")));
        assert_eq!(
            tags(Intent::Promote),
            (json!(["prod", "default"]), Value::Null)
        );
    }

    #[test]
    fn a_version_names_a_revision() {
        assert_eq!(derived("1.31.0"), "1-31-0");
        assert_eq!(derived("1.31.0-alpha.0"), "1-31-0-alpha-0");
    }
}
