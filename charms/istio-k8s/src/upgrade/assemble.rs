//! Puts together what is to run: the release's revision, those kept beside it, and what is returned to
//! if it fails. Pure.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::ModelView;
use kube_apply::{Object, ObjectRef};
use mesh::Revision;
use mesh::control_plane::render::webhooks_of;
use mesh::control_plane::webhooks::{injector_name, tag_name};
use mesh::control_plane::{ControlPlane, Settings};
use mesh::upgrade::{promotion, version};
use serde_json::Value;

use super::images;
use super::record::{self, Failed, Record};
use super::target::Target;
use crate::observe::{Release, View, inventory};

/// A control plane to install or keep.
#[derive(Debug)]
pub struct Installation {
    /// The settings it was rendered from.
    pub settings: Settings,
    /// Its objects, webhooks apart. Gateways and node components are those of the revision that
    /// answers for the default.
    pub control_plane: ControlPlane,
    /// Its webhooks.
    pub webhooks: Vec<Value>,
    /// Version of the release.
    pub version: String,
    /// In which order its parts come.
    pub order: Order,
    /// The revisions kept beside it.
    pub kept: Vec<Kept>,
    /// Names of the tags' injectors that do not exist yet, though pods are injected: they come parked,
    /// until istiod has signed them.
    pub new_tags: BTreeSet<String>,
    /// What is remembered once it runs; none without an istiod.
    pub record: Option<Record>,
    /// Objects that are kept as they are.
    pub retain: Vec<ObjectRef>,
    /// What was tried and failed, while what ran before runs again.
    pub failed: Option<Failed>,
    /// What changes where another istiod comes in.
    pub change: Option<Box<Change>>,
    /// The attached release, if this one is a stage on the way to it.
    pub on_the_way: Option<String>,
    /// The revision that answers for the default, if it is another one; `none` if no one does.
    pub answers: Option<String>,
}

/// In which order the parts of a control plane come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// Nothing runs yet: istiod needs its templates to start.
    Fresh,
    /// The templates wait for the new istiod.
    Forward,
    /// Templates first, then our gateways, then the older istiod.
    Back,
    /// Templates first, then istiod: nothing else has changed.
    Restored,
}

/// A revision kept as it last ran.
#[derive(Debug)]
pub struct Kept {
    /// Its label.
    pub revision: String,
    /// Its objects, without those that grant rights.
    pub objects: Vec<Value>,
    /// Its webhooks, parked if another answers for the default in its place.
    pub webhooks: Vec<Value>,
}

/// Another istiod comes in.
#[derive(Debug)]
pub struct Change {
    /// Digest of what comes.
    pub digest: String,
    /// The pod that pulls its images, if they are others.
    pub pulling: Option<Value>,
    /// The revision whose injector shows beforehand whether injection works at all; none if what
    /// comes has come in part already.
    pub control: Option<Revision>,
    /// Whether its injector is to inject.
    pub injects: bool,
    /// What is returned to.
    pub fallback: Option<Installation>,
}

/// Puts together what is to run. With `retry`, what failed before is tried again.
pub fn assemble(
    view: &ModelView,
    cluster: &View,
    release: &Release,
    target: &Target,
    retry: bool,
) -> Installation {
    let parts = Parts::new(view, cluster, release, target);
    let Some(last) = cluster.fleet.records.get(target.revision.label()) else {
        return parts.forward(None);
    };
    let attempt = record::digest(&release.control_plane, &release.version);
    let failed = last
        .failed
        .clone()
        .filter(|f| f.digest == attempt && !retry);
    match failed {
        Some(failed) => {
            let mut restored = parts.restored(last);
            restored.failed = Some(failed);
            restored
        }
        None => parts.forward(Some(last)),
    }
}

struct Parts<'a> {
    view: &'a ModelView,
    cluster: &'a View,
    release: &'a Release,
    target: &'a Target,
    policies: BTreeMap<String, String>,
}

impl<'a> Parts<'a> {
    fn new(
        view: &'a ModelView,
        cluster: &'a View,
        release: &'a Release,
        target: &'a Target,
    ) -> Self {
        Self {
            view,
            cluster,
            release,
            target,
            policies: live_failure_policies(cluster),
        }
    }

    fn forward(&self, last: Option<&Record>) -> Installation {
        let Release {
            version,
            settings,
            control_plane,
            ..
        } = self.release;
        let runs = self.cluster.fleet.running.get(self.target.revision.label());
        let order = match runs {
            None => Order::Fresh,
            Some(runs) if version::order(version) < version::order(runs) => Order::Back,
            Some(_) => Order::Forward,
        };
        let record = (!control_plane.istiod.is_empty()).then(|| {
            let namespace = settings.namespace.as_str();
            Record::of(&self.target.revision, namespace, version, control_plane)
        });
        let (kept, retain) = self.kept();
        let mut control_plane = control_plane.clone();
        self.edge(&mut control_plane);
        let webhooks = self.webhooks(&control_plane, settings);
        let new_tags = self.new_tags(&webhooks);
        Installation {
            change: self.change(last, record.as_ref(), &webhooks).map(Box::new),
            settings: settings.clone(),
            control_plane,
            webhooks,
            version: version.clone(),
            order,
            kept,
            new_tags,
            record,
            retain,
            failed: None,
            on_the_way: self.cluster.goal.as_ref().map(|goal| goal.version.clone()),
            answers: self.answers(),
        }
    }

    /// What ran before, without the rights that it had: those of the later release stay.
    fn restored(&self, last: &Record) -> Installation {
        let settings = self.release.settings.clone();
        let (kept, mut retain) = self.kept();
        let mut control_plane = last.control_plane.clone();
        let (rights, config) = control_plane
            .config
            .into_iter()
            .partition(record::grants_rights);
        control_plane.config = config;
        let rights: Vec<Value> = rights;
        retain.extend(rights.iter().filter_map(record::id));
        self.edge(&mut control_plane);
        let webhooks = self.webhooks(&control_plane, &settings);
        Installation {
            settings,
            control_plane,
            webhooks,
            version: last.version.clone(),
            order: Order::Restored,
            kept,
            new_tags: BTreeSet::new(),
            record: Some(last.clone()),
            retain,
            failed: None,
            change: None,
            on_the_way: None,
            answers: self.answers(),
        }
    }

    fn answers(&self) -> Option<String> {
        let holder = self.target.holder.as_ref();
        let name = holder.map_or("none", Revision::label);
        (!self.target.leads()).then(|| name.to_owned())
    }

    fn change(
        &self,
        last: Option<&Record>,
        next: Option<&Record>,
        webhooks: &[Value],
    ) -> Option<Change> {
        let next = next?;
        let records = &self.cluster.fleet.records;
        let holder = self.target.holder.as_ref();
        let beside = holder.and_then(|holder| records.get(holder.label()));
        // What is incomplete and has nothing beside it is a first installation that goes on.
        let before = last.or(beside)?;
        if last.is_some_and(|last| last.digest == next.digest) {
            return None;
        }
        let inventory = inventory(self.view);
        let ours = |istiod: &&Object| inventory.owns(istiod);
        let istiod = self.cluster.istiods.iter().find(ours);
        let images = images::images(&next.control_plane);
        let pulling = istiod
            .filter(|_| images != images::images(&before.control_plane))
            .map(|istiod| {
                let app = self.view.context.app.as_str();
                images::pulling_pod(app, &images, istiod, &next.control_plane)
            });
        let own = injector_name(&self.target.revision, &next.namespace);
        let active = webhooks
            .iter()
            .find(|webhook| webhook["metadata"]["name"] == own.as_str())
            .is_some_and(|webhook| !promotion::is_parked(webhook));
        let untouched = self.untouched(before);
        Some(Change {
            digest: next.digest.clone(),
            pulling,
            control: untouched.then(|| before.revision()),
            injects: active,
            fallback: last.map(|last| self.restored(last)),
        })
    }

    /// Whether the live istiod is still the recorded one.
    fn untouched(&self, record: &Record) -> bool {
        let inventory = inventory(self.view);
        let image =
            |istiod: &Value| istiod["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        let live = self.cluster.istiods.iter().find(|istiod| {
            inventory.owns(istiod)
                && istiod.label("istio.io/rev").unwrap_or("default") == record.revision
        });
        let recorded = record.control_plane.istiod.first();
        match (live, recorded) {
            (Some(live), Some(recorded)) => {
                image(live.value()) == image(recorded)
                    && live
                        .label("app.kubernetes.io/version")
                        .is_none_or(|v| v == record.version)
            }
            _ => false,
        }
    }

    /// Gateways and node components stay with the revision that answers for the default.
    fn edge(&self, control_plane: &mut ControlPlane) {
        if self.target.leads() {
            return;
        }
        let records = &self.cluster.fleet.records;
        let holder = self.target.holder.as_ref();
        let of = holder
            .and_then(|holder| records.get(holder.label()))
            .or_else(|| {
                self.target
                    .others
                    .iter()
                    .find_map(|other| records.get(other))
            });
        let of = of
            .map(|record| record.control_plane.clone())
            .unwrap_or_default();
        control_plane.cni = of.cni;
        control_plane.ztunnel = of.ztunnel;
        control_plane.gateways = of.gateways;
        control_plane.node_namespaces = of.node_namespaces;
    }

    /// The webhooks of the release's revision. The default revision's injector is parked while a tag
    /// sends its pods elsewhere.
    fn webhooks(&self, control_plane: &ControlPlane, settings: &Settings) -> Vec<Value> {
        let webhooks = webhooks_of(control_plane, settings, &self.policies);
        let parks = settings.revision.is_default() && !self.target.leads();
        self.finished(
            webhooks,
            &settings.revision,
            settings.namespace.as_str(),
            parks,
        )
    }

    fn finished(
        &self,
        webhooks: Vec<Value>,
        revision: &Revision,
        namespace: &str,
        parks: bool,
    ) -> Vec<Value> {
        let injector = injector_name(revision, namespace);
        let default_tag = tag_name("default", namespace);
        let finish = |mut webhook: Value| {
            let name = webhook["metadata"]["name"].as_str().unwrap_or_default();
            if parks && name == injector {
                return promotion::parked(webhook);
            }
            if name == default_tag
                && let Some(previous) = &self.target.previous
            {
                let metadata = &mut webhook["metadata"];
                metadata["annotations"][promotion::PREVIOUS] = previous.label().into();
            }
            webhook
        };
        webhooks.into_iter().map(finish).collect()
    }

    /// The revisions beside, and their objects that are kept without being written.
    fn kept(&self) -> (Vec<Kept>, Vec<ObjectRef>) {
        let mut kept = Vec::new();
        let mut retain = Vec::new();
        for other in &self.target.others {
            let Some(record) = self.cluster.fleet.records.get(other) else {
                continue;
            };
            let revision = record.revision();
            let holds = self.target.holder.as_ref() == Some(&revision);
            let mut control_plane = record.control_plane.clone();
            control_plane.answer_for_default(&revision, holds);
            let namespace = self.release.settings.namespace.clone();
            let settings = Settings::new(namespace, revision.clone());
            let webhooks = webhooks_of(&control_plane, &settings, &self.policies);
            let parks = revision.is_default() && !holds;
            let webhooks = self.finished(webhooks, &revision, &record.namespace, parks);
            let ControlPlane {
                config,
                injector_config,
                istiod,
                ..
            } = control_plane;
            let all = config.into_iter().chain(injector_config).chain(istiod);
            let (rights, mut objects): (Vec<Value>, Vec<Value>) =
                all.partition(record::grants_rights);
            retain.extend(rights.iter().filter_map(record::id));
            objects.push(record.object(self.view.context.app.as_str()));
            kept.push(Kept {
                revision: other.clone(),
                objects,
                webhooks,
            });
        }
        (kept, retain)
    }

    fn new_tags(&self, webhooks: &[Value]) -> BTreeSet<String> {
        let injects = !self.cluster.fleet.running.is_empty();
        let live: BTreeSet<&str> = self.cluster.mutating.iter().map(Object::name).collect();
        webhooks
            .iter()
            .filter(|webhook| injects && !webhook["metadata"]["labels"]["istio.io/tag"].is_null())
            .filter_map(|webhook| webhook["metadata"]["name"].as_str())
            .filter(|name| !live.contains(name))
            .map(str::to_owned)
            .collect()
    }
}

/// `failurePolicy` of every validator: istiod closes it once it answers, and a reconcile must not
/// open it again.
fn live_failure_policies(cluster: &View) -> BTreeMap<String, String> {
    let policy = |config: &Object| {
        let policy = config.value()["webhooks"][0]["failurePolicy"].as_str()?;
        Some((config.name().to_owned(), policy.to_owned()))
    };
    cluster.validating.iter().filter_map(policy).collect()
}
