//! A Juju model as one unit sees it, as a value.

#![expect(
    clippy::expect_used,
    reason = "names in tests: one that is none is the test's mistake"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use juju_charm::{Metadata, Role};
use juju_hooks::{
    AppName, Context, Databag, EndpointName, Event, JujuVersion, LogLevel, ModelName, ModelUuid,
    NetworkInfo, Port, RelationEvent, RelationId, RelationKind, ReportedStatus, SecretId,
    SecretOwner, SecretRotate, StorageForm, StorageId, StorageInfo, UnitName,
};
use serde_json::{Map, Value};

/// Everything Juju knows, before and after a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The unit the hook runs on.
    pub unit: UnitName,
    /// The model's name.
    pub model_name: ModelName,
    /// The model's UUID.
    pub model_uuid: ModelUuid,
    /// The agent's version.
    pub juju_version: JujuVersion,
    /// Whether the unit leads.
    pub leader: bool,
    /// How many units the application is to have.
    pub planned_units: u32,
    /// Options somebody set; defaults come from the metadata.
    pub config: BTreeMap<String, Value>,
    /// Relations.
    pub relations: Vec<Relation>,
    /// Files attached as resources.
    pub resources: BTreeMap<String, PathBuf>,
    /// Secrets this unit may know.
    pub secrets: BTreeMap<SecretId, Secret>,
    /// Attached storage.
    pub storages: BTreeMap<StorageId, StorageInfo>,
    /// Workload containers, each with whether its Pebble answers.
    pub containers: BTreeMap<String, bool>,
    /// What `credential-get` answers; `None` for an application nobody trusts.
    pub credential: Option<Map<String, Value>>,
    /// Answers of `network-get` by binding; bindings not named get a plain one.
    pub networks: BTreeMap<String, NetworkInfo>,
    /// The unit's status.
    pub unit_status: ReportedStatus,
    /// The application's status.
    pub app_status: ReportedStatus,
    /// The workload's version.
    pub workload_version: String,
    /// Ports this unit has open.
    pub opened_ports: BTreeSet<Port>,
    /// What `state-set` kept.
    pub kept: BTreeMap<String, String>,
    /// The time of the hook.
    pub now: SystemTime,
    /// How the agent behaves where agents differ or luck decides.
    pub quirks: Quirks,
    /// What happened in the run this state came out of.
    pub record: Record,
}

/// Where agents differ or luck decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Quirks {
    /// `relation-ids` still lists the relation being broken.
    pub lists_broken: bool,
    /// `-broken` comes without the remote application's name.
    pub hides_app_of_broken: bool,
    /// Remote application data of the relation being broken cannot be read.
    pub denies_broken: bool,
    /// Leadership is lost after so many answers of `is-leader`.
    pub leads_for: Option<u32>,
    /// Leadership is lost between the hook's last write and its end.
    pub loses_lead_at_exit: bool,
}

/// What a run did besides changing the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Lines sent to the model's log.
    pub log: Vec<(LogLevel, String)>,
    /// Hook tool calls in order, `relation-set ingress:3 app`; values are left out.
    pub calls: Vec<String>,
    /// The action's answer.
    pub action: ActionRecord,
    /// Instances asked for, by declared storage.
    pub requested_storage: BTreeMap<String, u32>,
    /// The reboot that was asked for.
    pub reboot: Option<Reboot>,
}

/// What `juju-reboot` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reboot {
    /// Once the hook has ended well.
    AfterHook,
    /// At once: the hook is killed there, what Juju kept for its end is lost, and it runs again.
    Now,
}

impl Record {
    /// How often `tool` was called.
    pub fn count(&self, tool: &str) -> usize {
        self.calls
            .iter()
            .filter(|call| call.split(' ').next() == Some(tool))
            .count()
    }
}

/// An action's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionRecord {
    /// Its results.
    pub results: BTreeMap<String, String>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Progress lines.
    pub log: Vec<String>,
}

/// A relation, with the data of both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The charm's endpoint.
    pub endpoint: EndpointName,
    /// The relation's number.
    pub id: RelationId,
    /// The other application; this one's name on peer endpoints.
    pub remote_app: AppName,
    /// The other application's model, if it is not this one.
    pub remote_model: Option<ModelUuid>,
    /// This application's databag.
    pub local_app_data: Databag,
    /// This unit's databag.
    pub local_unit_data: Databag,
    /// The other application's databag.
    pub remote_app_data: Databag,
    /// The other units with their databags.
    pub remote_units: BTreeMap<UnitName, Databag>,
}

/// A secret as this unit may know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secret {
    /// The latest content.
    pub latest: BTreeMap<String, String>,
    /// The content this unit tracks, if it is not the latest.
    pub tracked: Option<BTreeMap<String, String>>,
    /// This side's label.
    pub label: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// How often a new content is asked for.
    pub rotate: Option<SecretRotate>,
    /// When it expires, as given.
    pub expire: Option<String>,
    /// Latest revision.
    pub revision: u32,
    /// The owner, if it is this application or unit.
    pub owner: Option<SecretOwner>,
    /// Whether this unit may read it.
    pub granted: bool,
    /// Relations whose remote side may read it.
    pub grants: BTreeSet<RelationId>,
    /// Single units that may read it.
    pub unit_grants: BTreeSet<UnitName>,
}

/// Texts as a databag.
pub fn databag<K: Into<String>, V: Into<String>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Databag {
    pairs
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

/// Keys Juju itself writes into each unit databag.
pub(super) const UNIT_KEYS: [&str; 3] = ["egress-subnets", "ingress-address", "private-address"];

fn unit_bag(data: Databag) -> Databag {
    let mut bag: Databag = UNIT_KEYS
        .iter()
        .map(|key| ((*key).to_owned(), "192.0.2.0".to_owned()))
        .collect();
    bag.extend(data);
    bag
}

impl Relation {
    /// A relation nobody but Juju wrote to, with no remote unit.
    pub fn new(endpoint: &str, id: u32, remote_app: &str) -> Self {
        Self {
            endpoint: endpoint.parse().expect("an endpoint name"),
            id: RelationId(id),
            remote_app: remote_app.parse().expect("an application name"),
            remote_model: None,
            local_app_data: Databag::new(),
            local_unit_data: unit_bag(Databag::new()),
            remote_app_data: Databag::new(),
            remote_units: BTreeMap::new(),
        }
    }

    /// With data in the remote application's databag.
    #[must_use]
    pub fn remote_app_data(mut self, data: Databag) -> Self {
        self.remote_app_data.extend(data);
        self
    }

    /// With remote unit `number`, with data besides Juju's own keys.
    #[must_use]
    pub fn remote_unit(mut self, number: u32, data: Databag) -> Self {
        let unit = UnitName::of(self.remote_app.clone(), number);
        self.remote_units.insert(unit, unit_bag(data));
        self
    }

    /// With data in this application's databag.
    #[must_use]
    pub fn local_app_data(mut self, data: Databag) -> Self {
        self.local_app_data.extend(data);
        self
    }

    /// With data in this unit's databag.
    #[must_use]
    pub fn local_unit_data(mut self, data: Databag) -> Self {
        self.local_unit_data.extend(data);
        self
    }

    /// This relation's hook of `kind`; about remote unit `unit` if it is about one.
    pub fn event(&self, kind: RelationKind, unit: Option<u32>) -> Event {
        let unit = unit.map(|number| UnitName::of(self.remote_app.clone(), number));
        Event::Relation(RelationEvent {
            endpoint: self.endpoint.clone(),
            id: self.id,
            kind,
            remote_app: Some(self.remote_app.clone()),
            departing_unit: unit.clone().filter(|_| kind == RelationKind::Departed),
            remote_unit: unit,
        })
    }
}

impl State {
    /// A model in which nothing is set and nothing related: unit `unit` of one planned, not
    /// leading, trusted with nothing.
    pub fn new(unit: &str) -> Self {
        let unknown = ReportedStatus {
            status: "unknown".to_owned(),
            message: String::new(),
        };
        Self {
            unit: unit.parse().expect("a unit name"),
            model_name: ModelName::new("lab").expect("a model name"),
            model_uuid: ModelUuid::new("0d5f2a7c-8a57-4d3e-9b21-6f1c5a0e7d42").expect("a uuid"),
            juju_version: JujuVersion::release(3, 6, 9),
            leader: false,
            planned_units: 1,
            config: BTreeMap::new(),
            relations: Vec::new(),
            resources: BTreeMap::new(),
            secrets: BTreeMap::new(),
            storages: BTreeMap::new(),
            containers: BTreeMap::new(),
            credential: None,
            networks: BTreeMap::new(),
            unit_status: unknown.clone(),
            app_status: unknown,
            workload_version: String::new(),
            opened_ports: BTreeSet::new(),
            kept: BTreeMap::new(),
            now: SystemTime::UNIX_EPOCH + Duration::from_hours(490_000),
            quirks: Quirks::default(),
            record: Record::default(),
        }
    }

    /// With the peer relations `metadata` declares; Juju makes them with the application.
    #[must_use]
    pub fn with_peers(mut self, metadata: &Metadata) -> Self {
        let peers = metadata
            .endpoints
            .iter()
            .filter(|(_, e)| e.role == Role::Peers);
        for (number, (name, _)) in (0..).zip(peers) {
            self.relations.push(Relation::new(
                name.as_str(),
                number,
                self.unit.app().as_str(),
            ));
        }
        self
    }

    /// With this unit leading.
    #[must_use]
    pub fn leader(mut self) -> Self {
        self.leader = true;
        self
    }

    /// With an option set.
    #[must_use]
    pub fn config(mut self, option: &str, value: impl Into<Value>) -> Self {
        self.config.insert(option.to_owned(), value.into());
        self
    }

    /// With one more relation.
    #[must_use]
    pub fn relation(mut self, relation: Relation) -> Self {
        self.relations.push(relation);
        self
    }

    /// With a file attached as resource.
    #[must_use]
    pub fn resource(mut self, name: &str, file: impl Into<PathBuf>) -> Self {
        self.resources.insert(name.to_owned(), file.into());
        self
    }

    /// With an attached instance of a storage, mounted at `location`.
    #[must_use]
    pub fn storage(mut self, id: &str, location: impl Into<PathBuf>) -> Self {
        let info = StorageInfo {
            kind: StorageForm::Filesystem,
            location: location.into(),
        };
        self.storages
            .insert(id.parse().expect("a storage id"), info);
        self
    }

    /// With a workload container whose Pebble answers, or does not yet.
    #[must_use]
    pub fn container(mut self, name: &str, can_connect: bool) -> Self {
        self.containers.insert(name.to_owned(), can_connect);
        self
    }

    /// With a secret of somebody else's that this unit may read.
    #[must_use]
    pub fn granted_secret(mut self, id: &str, content: Databag) -> Self {
        let id = SecretId::new(id).expect("a secret id");
        let secret = Secret {
            latest: content,
            revision: 1,
            granted: true,
            ..Secret::default()
        };
        self.secrets.insert(id, secret);
        self
    }

    /// With so many planned units.
    #[must_use]
    pub fn planned_units(mut self, count: u32) -> Self {
        self.planned_units = count;
        self
    }

    /// With an agent of this behaviour.
    #[must_use]
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// The relation with this number.
    pub fn get(&self, id: u32) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.id.0 == id)
    }

    /// The relation with this number, to change it between two hooks.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Relation> {
        self.relations
            .iter_mut()
            .find(|relation| relation.id.0 == id)
    }

    /// What the agent would tell a dispatch of `event`.
    pub(super) fn context(&self, mut event: Event) -> Context {
        if let Event::Relation(relation) = &mut event
            && relation.kind == RelationKind::Broken
            && self.quirks.hides_app_of_broken
        {
            relation.remote_app = None;
        }
        let (model, uuid) = (self.model_name.clone(), self.model_uuid.clone());
        let mut context = Context::new(event, self.unit.clone(), model, uuid);
        let unit = format!("unit-{}-{}", self.unit.app(), self.unit.number());
        context.charm_dir = PathBuf::from(format!("/var/lib/juju/agents/{unit}/charm"));
        context.juju_version = Some(self.juju_version.clone());
        context.api_addresses = vec!["192.0.2.1:17070".to_owned()];
        context.kubernetes = Some(("192.0.2.2".to_owned(), 443));
        context.context_id = Some(format!("{}-{}-0", self.unit, context.event));
        context.agent_socket = Some(format!("@/var/lib/juju/agents/{unit}/agent.socket"));
        context.agent_network = Some("unix".to_owned());
        context
    }
}
