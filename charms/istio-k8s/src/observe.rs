//! What the charm reads from outside Juju before it decides: the release payload and the cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mesh::control_plane::{ControlPlane, Settings};

use juju_charm::ModelView;
use kube_apply::{Inventory, Object, Owner};
use mesh::proxy_status::ProxyStatus;
use mesh::upgrade::Minor;

use crate::inputs::inputs;
use crate::surroundings;
use crate::upgrade::checks::Facts;
use crate::upgrade::target::{Fleet, Target, Wish};
use crate::{actions, config};

/// Name of the file resource that carries the release payload.
pub const RELEASE: &str = "istio-release";
/// Names of the file resources that carry releases on the way to it.
pub const STAGES: [&str; 3] = [
    "istio-release-stage-1",
    "istio-release-stage-2",
    "istio-release-stage-3",
];

/// What to read.
#[derive(Clone, Debug)]
pub struct Query {
    /// Path of the attached payload, or why Juju has none.
    pub release: Result<PathBuf, String>,
    /// The SHA-256s of which every payload must have one; none accept any.
    pub sha256: BTreeSet<String>,
    /// What to render from it; nothing while the options are not in order.
    pub settings: Option<Settings>,
    /// Directory where a rendering is kept for the next hook.
    pub cache: PathBuf,
    /// Whether the proxies are asked for: an istiod answers that, so it costs a connection each.
    pub proxies: bool,
    /// Payloads of releases on the way to the attached one, in any order, with the resource's name.
    pub stages: Vec<(&'static str, PathBuf)>,
    /// Where the release is to go.
    pub wish: Wish,
    /// Whose objects are the application's own.
    pub inventory: Inventory,
    /// Whether everything that an upgrade rests on is read, though none is due.
    pub facts: bool,
    /// What is read besides control planes.
    pub surroundings: surroundings::Wanted,
}

/// What was read.
#[derive(Debug, Default)]
pub struct View {
    /// The payload, rendered; none if the options are not in order.
    pub release: Option<Result<Release, ReleaseTrouble>>,
    /// Every `MutatingWebhookConfiguration` in the cluster.
    pub mutating: Vec<Object>,
    /// Every `ValidatingWebhookConfiguration` in the cluster.
    pub validating: Vec<Object>,
    /// The Deployment of every istiod in the cluster.
    pub istiods: Vec<Object>,
    /// The proxies, where they were asked for: per istiod that could not be asked, why.
    pub proxies: Option<Proxies>,
    /// Namespace of istiod.
    pub namespace: String,
    /// The application's own revisions.
    pub fleet: Fleet,
    /// Where the release goes; none without a release.
    pub target: Option<Target>,
    /// The attached release, where the one that is applied is a stage on the way to it.
    pub goal: Option<Goal>,
    /// What an upgrade rests on, where one is due.
    pub facts: Option<Facts>,
    /// The cluster besides its control planes.
    pub surroundings: surroundings::Surroundings,
    /// Where a migration stands, if one was ever begun.
    pub migration: Option<migration::execute::Journal>,
}

/// A release that is more than one step away.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Goal {
    /// Its version.
    pub version: String,
    /// The versions of the attached stages that lead to it, itself last; or the minors for which
    /// none is attached.
    pub path: Result<Vec<String>, Vec<Minor>>,
    /// The attached stages that cannot be used: the resource, and why.
    pub unusable: Vec<(&'static str, String)>,
    /// The first resource that holds no stage which can be used; none if all do.
    pub free: Option<&'static str>,
}

/// A payload's control plane and the digest of the payload's file.
#[derive(Debug)]
pub struct Release {
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// Version of the release.
    pub version: String,
    /// The settings it was rendered with: those of the query, in the revision that it goes to.
    pub settings: Settings,
    /// What it renders to.
    pub control_plane: ControlPlane,
}

/// Why there is no payload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReleaseTrouble {
    /// Nothing was attached.
    Missing,
    /// The file does not hold a release: why.
    Damaged(String),
    /// Not the file that the option `release-sha256` pins: the SHA-256 it has.
    Pinned(String),
    /// The release and the options do not go together: which option, and why.
    Unrenderable(String),
}

impl ReleaseTrouble {
    /// What is wrong, to follow the name of the resource.
    pub fn why(&self) -> String {
        match self {
            Self::Missing => " is not attached".to_owned(),
            Self::Damaged(why) | Self::Unrenderable(why) => format!(": {why}"),
            Self::Pinned(found) => format!(" is sha256 {found:.8}…, not release-sha256"),
        }
    }
}

/// The proxies that the cluster's istiods serve.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// One line per proxy.
    pub proxies: Vec<ProxyStatus>,
    /// One line per istiod that could not be asked.
    pub failures: Vec<String>,
}

/// What this hook or action needs to know.
pub fn query(view: &ModelView) -> Query {
    let release = view
        .resources
        .get(RELEASE)
        .cloned()
        .unwrap_or_else(|| Err("the resource is not declared".to_owned()));
    let proxies = view
        .action
        .as_ref()
        .is_some_and(|action| action.name == "proxy-status");
    // Only who applies or plans needs the charts rendered.
    let plans = view
        .action
        .as_ref()
        .is_some_and(|action| actions::wants_plan(action) || actions::wants_facts(&action.name));
    let settings = inputs(view)
        .options
        .ok()
        .filter(|_| view.leader || plans)
        .map(|options| Settings {
            kubernetes_version: view.context.cloud_api_version.clone(),
            ..options.settings
        });
    let facts = view
        .action
        .as_ref()
        .is_some_and(|action| actions::wants_facts(&action.name));
    Query {
        stages: stages(view),
        wish: wish(view),
        inventory: inventory(view),
        surroundings: surroundings::wanted(view),
        facts,
        release,
        sha256: config::release_sha256(&view.config),
        settings,
        cache: view.context.charm_dir.clone(),
        proxies,
    }
}

/// The attached payloads of stages.
fn stages(view: &ModelView) -> Vec<(&'static str, PathBuf)> {
    let path = |name| view.resources.get(name)?.as_ref().ok();
    let attached = STAGES.iter().filter_map(|name| Some((*name, path(*name)?)));
    attached.map(|(name, path)| (name, path.clone())).collect()
}

/// Where the release is to go, by options and action.
fn wish(view: &ModelView) -> Wish {
    let revision = view.config.str("revision").map(str::trim);
    let options = inputs(view).options.ok();
    Wish {
        namespace: options
            .as_ref()
            .map_or_else(String::new, |o| o.settings.namespace.to_string()),
        revision: revision
            .filter(|text| !text.is_empty())
            .and_then(|text| text.parse().ok()),
        strategy: options.map(|o| o.upgrade_strategy).unwrap_or_default(),
        intent: view
            .action
            .as_ref()
            .and_then(|call| actions::intent(call).ok())
            .unwrap_or_default(),
    }
}

/// The charm's one inventory: what this application's objects are told from all others by.
pub fn inventory(view: &ModelView) -> Inventory {
    Inventory {
        owner: Owner {
            charm: "istio-k8s".to_owned(),
            model_uuid: view.context.model_uuid.to_string(),
            app: view.context.app.to_string(),
        },
        name: "control-plane".to_owned(),
    }
}
