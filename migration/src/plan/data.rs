//! A plan is data: it is printed, compared, stored in the cluster and carried out from there.

use std::collections::BTreeMap;

use istio_api::ObjectRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Strategy;
use crate::webhooks::Permutation;

/// A control plane's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Namespace of istiod.
    pub namespace: String,
    /// Revision, `default` for the default one.
    pub revision: String,
    /// Version of Istio, where known.
    pub version: Option<String>,
}

/// All steps of a migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of this migration.
    pub id: String,
    /// How it goes.
    pub strategy: Strategy,
    /// Where Istio is.
    pub from: Place,
    /// Where it goes; none when it stays.
    pub to: Option<Place>,
    /// Field manager of the new control plane.
    pub manager: String,
    /// sha256 of the mesh's CA certificate.
    pub root: Option<String>,
    /// The labels of namespaces and pods that somebody injects today: always one istiod.
    pub injected: Vec<Permutation>,
    /// In order.
    pub steps: Vec<Step>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// What a person has to restart.
    pub by_hand: Vec<String>,
    /// What is backed up.
    pub backup: Vec<ObjectRef>,
}

impl Plan {
    /// The first step after which there is no way back but by hand.
    pub fn point_of_no_return(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.forward_only)
    }

    /// A step by its name.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }
}

/// What a step belongs to, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Nothing that anybody uses is changed.
    Prepare,
    /// Two control planes.
    SideBySide,
    /// The old one steps back.
    Switch,
    /// Routes change hands.
    HandOver,
    /// The old one goes.
    Finish,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name, unique in the plan.
    pub id: String,
    /// What it does, in a phrase.
    pub title: String,
    /// Why, and what would happen without it.
    pub why: String,
    /// What it belongs to.
    pub phase: Phase,
    /// What has to hold before.
    pub before: Vec<Check>,
    /// What is done.
    pub effect: Vec<Action>,
    /// What has to hold afterwards, before the next step.
    pub after: Vec<Check>,
    /// What takes it back.
    pub undo: Vec<Action>,
    /// What has to hold before it is taken back; a person brings it about with `reverse`.
    #[serde(default)]
    pub before_undo: Vec<Check>,
    /// What has to hold once it is taken back.
    pub undone: Vec<Check>,
    /// Commands by which a person takes it back; it is taken back when `undone` holds.
    #[serde(default)]
    pub reverse: Vec<String>,
    /// Commands for a person; the step ends when `after` holds.
    pub commands: Vec<String>,
    /// Whether there is no way back from here on.
    pub forward_only: bool,
}

impl Step {
    pub(crate) fn new(id: &str, phase: Phase, title: &str, why: &str) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            why: why.to_owned(),
            phase,
            before: Vec::new(),
            effect: Vec::new(),
            after: Vec::new(),
            undo: Vec::new(),
            before_undo: Vec::new(),
            undone: Vec::new(),
            reverse: Vec::new(),
            commands: Vec::new(),
            forward_only: false,
        }
    }

    /// Whether there is nothing to do and nothing to wait for.
    pub(crate) fn is_empty(&self) -> bool {
        self.effect.is_empty() && self.after.is_empty() && self.commands.is_empty()
    }
}

/// One change. Each may be done twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Action {
    /// Server-side apply by force.
    Apply {
        /// The object.
        object: Value,
        /// The field manager.
        manager: String,
    },
    /// Delete, if it is there.
    Delete {
        /// What.
        object: ObjectRef,
    },
    /// Merge patch, if it is there.
    Patch {
        /// What.
        object: ObjectRef,
        /// RFC 7386.
        patch: Value,
    },
    /// Another address of istiod in a pod template, in one write. The template is read when it is
    /// done: what else is in its environment is in no plan.
    Readdress {
        /// What.
        workload: ObjectRef,
        /// Containers and their variables that hold the address.
        variables: Vec<(String, String)>,
        /// The address that is replaced.
        from: String,
        /// The one in its place.
        to: String,
        /// Variables of the proxy to set, or with `null` to take away.
        own: BTreeMap<String, Option<String>>,
        /// Labels of the template to set, or with `null` to take away.
        labels: BTreeMap<String, Option<String>>,
    },
    /// Write a copy with the content that the original has then; without an original, delete the copy.
    Mirror {
        /// What is copied.
        original: ObjectRef,
        /// The copy, as of when the plan was made.
        copy: Value,
    },
    /// As it was when the backup was made.
    Restore {
        /// What.
        object: ObjectRef,
    },
    /// Copy a Secret; its content is read and written, and nowhere else.
    CopySecret {
        /// Its name.
        name: String,
        /// Namespace that it is in.
        from: String,
        /// Namespace that it goes to.
        to: String,
    },
    /// Delete the copy of a Secret, unless it says something else than the original.
    DeleteCopy {
        /// Its name.
        name: String,
        /// Namespace of the original.
        from: String,
        /// Namespace of the copy.
        to: String,
    },
    /// New pods by the workload's own rollout, once disruption budgets allow it.
    Restart {
        /// What.
        workload: ObjectRef,
        /// Labels of the template to set, or with `null` to take away.
        labels: BTreeMap<String, Option<String>>,
        /// Names the restart: the same one twice is one. `null` takes it back.
        mark: Option<String>,
        /// Whether pods go before their successors are ready.
        ask_budgets: bool,
    },
    /// Evicts pods of the workload that another revision injected, one by one.
    Evict {
        /// What.
        workload: ObjectRef,
        /// The revision that they should have.
        revision: String,
    },
}

/// Something that holds or does not hold yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "check")]
pub enum Check {
    /// There is the object.
    Exists {
        /// What.
        object: ObjectRef,
    },
    /// There is no such object, or it is not as it is to be.
    Absent {
        /// What.
        object: ObjectRef,
    },
    /// A field has a value; `null` for none.
    Field {
        /// What.
        object: ObjectRef,
        /// JSON pointer.
        pointer: String,
        /// The value.
        equals: Value,
    },
    /// The workload runs as it is written.
    RolledOut {
        /// What.
        object: ObjectRef,
    },
    /// The CA of a namespace is the one with this fingerprint.
    Root {
        /// Namespace.
        namespace: String,
        /// sha256 of the certificate.
        fingerprint: String,
    },
    /// What istiod tells a namespace of its root is what it told another.
    SameTrust {
        /// The one.
        namespace: String,
        /// The other.
        other: String,
    },
    /// Every webhook of a configuration has a CA, and a validator fails closed.
    Armed {
        /// What.
        object: ObjectRef,
    },
    /// A pod in a namespace would be injected by a revision (tried, not made).
    Injects {
        /// Namespace.
        namespace: String,
        /// Labels of the pod.
        labels: BTreeMap<String, String>,
        /// `<service>.<namespace>.svc` that the sidecar would be told.
        istiod: String,
    },
    /// Every permutation of labels is injected by one istiod at most, and by one where it was at first.
    OneInjector,
    /// The pods of a workload are of this revision, ready, and connected to an istiod in the namespace.
    Refreshed {
        /// What.
        workload: ObjectRef,
        /// Revision that injected them; `null` where proxies are part of the template.
        revision: Option<String>,
        /// Namespace of istiod.
        istiod: String,
        /// Revision of istiod.
        by: String,
    },
    /// No proxy is connected to an istiod of this namespace and revision.
    Drained {
        /// Namespace.
        namespace: String,
        /// Revision.
        revision: String,
    },
    /// No pod names this Service of istiod.
    Unreferenced {
        /// `istiod.<namespace>.svc`.
        host: String,
    },
    /// Whatever holds for the mesh from a root namespace holds from another one as well.
    Mirrored {
        /// Originals and copies that the migration makes.
        pairs: Vec<(ObjectRef, ObjectRef)>,
        /// Those that hold for their own namespace alone, and stay.
        stay: Vec<ObjectRef>,
        /// Whether the copies have to say the same; they are written again otherwise.
        same: bool,
        /// The root namespace that it is.
        from: String,
        /// The one that it becomes.
        to: String,
    },
    /// The API server refuses to delete this (tried, not done).
    Undeletable {
        /// What.
        object: ObjectRef,
    },
    /// A purge finds nothing to delete among these.
    NotPurged {
        /// What.
        objects: Vec<ObjectRef>,
    },
    /// The istiods of a namespace and revision work with this root namespace, and so do proxies.
    MeshRoot {
        /// Namespace of istiod.
        namespace: String,
        /// Revision.
        revision: String,
        /// The root namespace.
        root: String,
        /// The one that it was: no proxy outside of it runs with its policies any more.
        other: String,
        /// Names of the policies that hold for both.
        policies: Vec<String>,
    },
    /// Another owner's route serves what this one serves, and the gateways run with it.
    Replaced {
        /// The old route.
        route: ObjectRef,
        /// Prefixes or exact paths that it matches, and the hosts that they go to.
        serves: Vec<(String, String)>,
        /// The old owner's routes and their copies: those do not count.
        not: Vec<ObjectRef>,
        /// Labels of the gateway's pods.
        gateway: BTreeMap<String, String>,
        /// Namespace of the gateway.
        namespace: String,
    },
    /// Another owner's object guards the gateway, and the gateways run with it.
    Guarded {
        /// The old guards, which do not count.
        not: Vec<ObjectRef>,
        /// Labels of the gateway's pods.
        gateway: BTreeMap<String, String>,
        /// Namespace of the gateway.
        namespace: String,
    },
    /// The gateways run with the object.
    Programmed {
        /// What.
        object: ObjectRef,
        /// Labels of the gateway's pods.
        gateway: BTreeMap<String, String>,
        /// Namespace of the gateway.
        namespace: String,
    },
}
