//! Everything a model remembers, as plain data.
//!
//! One value of [`State`] is one consistent moment; [`crate::store`] writes it as a whole. Ordered
//! maps only, so the same moment has the same bytes.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use crate::charm::CharmMeta;
use crate::charm::Endpoint;
use crate::charm::Role;
use crate::hook::Hook;
use crate::pebble::Container;

/// Key and value pairs shared over a relation.
pub type Databag = BTreeMap<String, String>;

/// A whole model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// Layout of this file; a simulator refuses one it does not know.
    pub(crate) format: u32,
    /// Model name.
    pub(crate) name: String,
    /// Model UUID.
    pub(crate) uuid: String,
    /// State of the random generator behind every order Juju does not fix.
    pub(crate) rng: u64,
    /// When the model was made.
    pub(crate) created: Timestamp,
    /// Version of its agents, if it has one of its own.
    #[serde(default)]
    pub(crate) juju_version: Option<String>,
    /// Model configuration.
    pub(crate) config: ModelConfig,
    /// Applications by name.
    pub(crate) applications: BTreeMap<String, Application>,
    /// Relations by id.
    pub(crate) relations: BTreeMap<u32, Relation>,
    /// Secrets by bare id.
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// Action and exec tasks by id.
    pub(crate) tasks: BTreeMap<u64, Task>,
    /// What other models may use, by offer.
    #[serde(default)]
    pub(crate) offers: BTreeMap<String, Offer>,
    /// Applications of other models, by their name here.
    #[serde(default)]
    pub(crate) saas: BTreeMap<String, Saas>,
    /// What applications are called in other models, behind `remote-`.
    #[serde(default)]
    pub(crate) tokens: BTreeMap<String, String>,
    /// Next relation id.
    pub(crate) next_relation: u32,
    /// Next operation and task number.
    pub(crate) next_task: u64,
    /// Next unit address.
    pub(crate) next_address: u32,
    /// Number of hooks run so far.
    pub(crate) hooks_run: u64,
}

/// Model configuration this simulator honours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelConfig {
    /// Seconds between two update-status hooks.
    pub(crate) update_status_interval_secs: u32,
    /// Whether failed hooks are retried by themselves.
    pub(crate) automatically_retry_hooks: bool,
}

/// Whether something still lives, as in Juju.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Life {
    /// In use.
    Alive,
    /// Being taken down.
    Dying,
}

/// A status with its message and the time it was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StatusInfo {
    /// Status word, e.g. `active`.
    pub(crate) status: String,
    /// Message, may be empty.
    pub(crate) message: String,
    /// When it was set.
    pub(crate) since: Timestamp,
}

/// A deployed application.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Application {
    /// What its charm declares.
    pub(crate) charm: CharmMeta,
    /// Directory name of the charm under the model's `charms`.
    pub(crate) charm_dir: String,
    /// Revision of the local charm.
    pub(crate) charm_rev: u32,
    /// Values the operator set.
    pub(crate) config: BTreeMap<String, Value>,
    /// Whether it has cluster-wide rights.
    pub(crate) trusted: bool,
    /// Life.
    pub(crate) life: Life,
    /// Number of the leader unit.
    pub(crate) leader: Option<u32>,
    /// Units by number.
    pub(crate) units: BTreeMap<u32, Unit>,
    /// Files given for resources, by resource name, relative to the model directory; for images the
    /// reference.
    pub(crate) resources: BTreeMap<String, Resource>,
    /// Status the leader set.
    pub(crate) status: Option<StatusInfo>,
    /// Workload version the charm set.
    pub(crate) workload_version: String,
    /// Service address.
    pub(crate) address: String,
}

/// A resource given at deploy or attached later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resource {
    /// File kept under the model directory, or an image reference.
    pub(crate) stored: PathBuf,
    /// Whether [`Resource::stored`] is a file.
    pub(crate) is_file: bool,
    /// Counts up with every attach.
    pub(crate) revision: u32,
}

/// A unit and what its agent remembers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Unit {
    /// Life.
    pub(crate) life: Life,
    /// Address of its pod.
    pub(crate) address: String,
    /// Workload status.
    pub(crate) workload: StatusInfo,
    /// Agent status.
    pub(crate) agent: StatusInfo,
    /// Whether the charm ever set the unit status.
    pub(crate) status_set: bool,
    /// Ports opened, as `80/tcp`, each with the endpoints it is opened for (`*` for all).
    pub(crate) ports: BTreeMap<String, BTreeSet<String>>,
    /// Removal was forced: failed hooks count as done.
    pub(crate) force: bool,
    /// What `state-set` stored.
    pub(crate) charm_state: BTreeMap<String, String>,
    /// Workload containers by name.
    #[serde(default)]
    pub(crate) containers: BTreeMap<String, Container>,
    /// Memory of the unit agent.
    pub(crate) uniter: Uniter,
}

/// What a unit agent remembers between hooks.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own in Juju's uniter state"
)]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Uniter {
    /// Revision of the charm in the unit's charm directory.
    pub(crate) charm_rev: Option<u32>,
    /// install ran.
    pub(crate) installed: bool,
    /// start ran since the last stop.
    pub(crate) started: bool,
    /// stop ran.
    pub(crate) stopped: bool,
    /// leader-elected was run for the present leadership.
    pub(crate) leader: bool,
    /// The pod is being replaced: stop first, then a new charm directory.
    pub(crate) restart: bool,
    /// upgrade-charm is to run.
    pub(crate) upgrade: bool,
    /// Charm refresh forced while in error: take the new charm, run no upgrade-charm.
    pub(crate) force_charm: bool,
    /// Digest of what the last config-changed saw.
    pub(crate) config_seen: Option<String>,
    /// Hooks that were told and not run yet, in order.
    #[serde(default)]
    pub(crate) due: Vec<Hook>,
    /// Attached storage by instance.
    #[serde(default)]
    pub(crate) storage: BTreeMap<String, StorageSeen>,
    /// A hook that has to be the next one, e.g. start behind the first config-changed.
    pub(crate) queued: Option<Hook>,
    /// The hook that is running now; still set after a crash of the simulator.
    pub(crate) running: Option<Hook>,
    /// The failed hook the unit waits on.
    pub(crate) error: Option<HookError>,
    /// When update-status ran last, or the agent became idle first.
    pub(crate) last_update_status: Option<Timestamp>,
    /// update-status was asked for.
    pub(crate) update_status_due: bool,
    /// Relations by id.
    pub(crate) relations: BTreeMap<u32, RelationSeen>,
}

/// An attached storage instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StorageSeen {
    /// `block` or `filesystem`.
    pub(crate) kind: String,
    /// Where it is.
    pub(crate) location: String,
}

/// A failed hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookError {
    /// The hook.
    pub(crate) hook: Hook,
    /// Failures in succession.
    pub(crate) attempts: u32,
    /// When it failed last.
    pub(crate) since: Timestamp,
    /// When it is tried again by itself.
    pub(crate) next_retry: Timestamp,
    /// What the operator decided.
    pub(crate) resolved: Option<Resolution>,
}

/// `juju resolve` with and without `--no-retry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Resolution {
    /// Run the hook again at once.
    Retry,
    /// Count it as done.
    NoRetry,
}

/// What a unit has been told about one relation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RelationSeen {
    /// relation-created ran.
    pub(crate) created: bool,
    /// relation-broken ran.
    pub(crate) broken: bool,
    /// Version of the remote application databag last announced.
    pub(crate) app_version: u64,
    /// Remote units that joined, with the version of their databag last announced.
    pub(crate) members: BTreeMap<String, u64>,
    /// A unit whose joined ran and whose changed must follow.
    pub(crate) changed_pending: Option<String>,
}

/// A databag with a version that counts up when its content changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bag {
    /// Content.
    pub(crate) data: Databag,
    /// 0 until first written.
    pub(crate) version: u64,
}

/// Endpoints of an application that other models may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// Application.
    pub(crate) app: String,
    /// Endpoints by name.
    pub(crate) endpoints: BTreeMap<String, Endpoint>,
}

/// What a model offers, for other models to read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Offered {
    /// UUID of the model.
    pub(crate) uuid: String,
    /// Offers by name.
    pub(crate) offers: BTreeMap<String, Offer>,
}

/// An application of another model's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saas {
    /// URL of the offer, without the controller.
    pub(crate) url: String,
    /// Directory name of the model that offers it.
    pub(crate) model: String,
    /// UUID of that model.
    pub(crate) uuid: String,
    /// Name of the offer.
    pub(crate) offer: String,
    /// Endpoints by name.
    pub(crate) endpoints: BTreeMap<String, Endpoint>,
}

/// What ties a relation to the other half of it in another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    /// Names the relation in both models.
    pub(crate) token: String,
    /// Directory name of the other model.
    pub(crate) peer: String,
    /// Name here of the application there.
    pub(crate) app: String,
    /// On the offering side, the offer.
    pub(crate) offer: Option<String>,
    /// The other model has its half.
    pub(crate) seen: bool,
    /// UUID of the other model, as soon as it is known.
    pub(crate) uuid: String,
}

/// One side of a relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Side {
    /// Application.
    pub(crate) app: String,
    /// Endpoint name.
    pub(crate) endpoint: String,
    /// Role.
    pub(crate) role: Role,
}

/// A relation between two applications, or a peer relation of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Relation {
    /// Interface.
    pub(crate) interface: String,
    /// One side for a peer relation, otherwise two: first the provider.
    pub(crate) sides: Vec<Side>,
    /// Life.
    pub(crate) life: Life,
    /// Application databags by application.
    pub(crate) app_bags: BTreeMap<String, Bag>,
    /// Unit databags by unit; kept after a unit left.
    pub(crate) unit_bags: BTreeMap<String, Bag>,
    /// Units in scope.
    pub(crate) scope: BTreeSet<String>,
    /// For a relation with another model's application.
    #[serde(default)]
    pub(crate) link: Option<Link>,
}

impl Relation {
    /// Whether this is a peer relation.
    pub(crate) fn is_peer(&self) -> bool {
        self.sides.len() == 1
    }

    /// The side of an application.
    pub(crate) fn side(&self, app: &str) -> Option<&Side> {
        self.sides.iter().find(|s| s.app == app)
    }

    /// The application on the other side; itself for a peer relation.
    pub(crate) fn remote(&self, app: &str) -> Option<&Side> {
        if self.is_peer() {
            return self.side(app);
        }
        self.sides.iter().find(|s| s.app != app)
    }
}

/// A secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Secret {
    /// `application:NAME`, `unit:NAME/0` or `model`.
    pub(crate) owner: String,
    /// Owner's label, or the name of a user secret.
    pub(crate) label: String,
    /// Description.
    pub(crate) description: String,
    /// Rotation policy.
    pub(crate) rotate: String,
    /// When a new content is asked for next.
    #[serde(default)]
    pub(crate) rotates: Option<Timestamp>,
    /// When a revision expires.
    #[serde(default)]
    pub(crate) expires: Option<Expiry>,
    /// Content by revision.
    pub(crate) revisions: BTreeMap<u32, Databag>,
    /// Applications and units that may read it.
    pub(crate) grants: BTreeSet<String>,
    /// Units that read it.
    pub(crate) consumers: BTreeMap<String, Consumer>,
    /// Revisions that units of other models track, by link.
    #[serde(default)]
    pub(crate) tracked_elsewhere: BTreeMap<String, BTreeSet<u32>>,
    /// Revisions whose owner was told that nobody tracks them.
    #[serde(default)]
    pub(crate) obsolete: BTreeSet<u32>,
}

impl Secret {
    /// The newest revision.
    pub(crate) fn latest(&self) -> u32 {
        self.revisions.keys().next_back().copied().unwrap_or(0)
    }

    /// The oldest revision that is superseded, tracked by nobody, and whose owner does not know.
    pub(crate) fn dropped(&self) -> Option<u32> {
        let tracked = |revision: &u32| {
            let elsewhere = self
                .tracked_elsewhere
                .values()
                .any(|all| all.contains(revision));
            elsewhere || self.consumers.values().any(|c| c.tracked == *revision)
        };
        let latest = self.latest();
        let mut old = self.revisions.keys().copied().filter(|r| *r < latest);
        old.find(|revision| !tracked(revision) && !self.obsolete.contains(revision))
    }
}

/// When a revision of a secret expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Expiry {
    /// The time; for a revision that expired, when its owner is told again.
    pub(crate) at: Timestamp,
    /// The revision.
    pub(crate) revision: u32,
}

/// A unit that read a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Consumer {
    /// Consumer's label.
    pub(crate) label: String,
    /// Revision it sees.
    pub(crate) tracked: u32,
    /// Newest revision it was told of.
    pub(crate) notified: u32,
}

/// What a task runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskKind {
    /// A charm's action with validated parameters.
    Action {
        /// Action name.
        name: String,
        /// Parameters.
        params: Map<String, Value>,
    },
    /// Shell text in a hook context.
    Exec {
        /// The text.
        script: String,
    },
}

/// An action or exec asked of a unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Unit name.
    pub(crate) unit: String,
    /// What to run.
    pub(crate) kind: TaskKind,
    /// `pending`, `running`, `completed` or `failed`.
    pub(crate) status: String,
    /// Failure text.
    pub(crate) message: String,
    /// Results, with `return-code`, `stdout`, `stderr`.
    pub(crate) results: Map<String, Value>,
    /// Lines from action-log.
    pub(crate) log: Vec<String>,
}

impl State {
    /// The next random number below `n` (0 for 0): `SplitMix64`.
    pub(crate) fn random(&mut self, n: usize) -> usize {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.rng;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(z % n).unwrap_or(0)
    }

    /// A unit by name.
    pub(crate) fn unit(&self, name: &str) -> Option<&Unit> {
        let (app, number) = split_unit(name)?;
        self.applications.get(app)?.units.get(&number)
    }

    /// A unit by name, to change.
    pub(crate) fn unit_mut(&mut self, name: &str) -> Option<&mut Unit> {
        let (app, number) = split_unit(name)?;
        self.applications.get_mut(app)?.units.get_mut(&number)
    }

    /// Names of all units, sorted by application and number.
    pub(crate) fn unit_names(&self) -> Vec<String> {
        let names = |(app, a): (&String, &Application)| {
            a.units
                .keys()
                .map(|n| format!("{app}/{n}"))
                .collect::<Vec<_>>()
        };
        self.applications.iter().flat_map(names).collect()
    }

    /// Whether a unit leads its application.
    pub(crate) fn is_leader(&self, unit: &str) -> bool {
        split_unit(unit).is_some_and(|(app, number)| {
            self.applications
                .get(app)
                .is_some_and(|a| a.leader == Some(number))
        })
    }

    /// The next cluster address, `10.1.x.y`.
    pub(crate) fn address(&mut self, network: &str) -> String {
        self.next_address += 1;
        format!(
            "{network}.{}.{}",
            self.next_address / 250,
            self.next_address % 250 + 2
        )
    }
}

/// Splits `app/0`.
pub(crate) fn split_unit(name: &str) -> Option<(&str, u32)> {
    let (app, number) = name.split_once('/')?;
    Some((app, number.parse().ok()?)).filter(|_| !app.is_empty())
}

/// Order of unit names: by application, then by number.
pub(crate) fn by_number(a: &str, b: &str) -> std::cmp::Ordering {
    split_unit(a).cmp(&split_unit(b))
}
