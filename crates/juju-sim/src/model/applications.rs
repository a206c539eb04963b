//! Deploying, refreshing, scaling and removing applications.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use super::Model;
use super::ModelError;
use super::refuse;
use super::status;
use crate::charm::CharmMeta;
use crate::charm::archive;
use crate::charm::options;
use crate::state::Application;
use crate::state::Life;
use crate::state::Resource;
use crate::state::Unit;
use crate::state::Uniter;
use crate::store::access;

/// What to deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployRequest {
    /// A `.charm` file or a charm directory.
    pub charm: PathBuf,
    /// Application name; none for the charm's name.
    pub app: Option<String>,
    /// Config values, already typed or as text.
    pub config: BTreeMap<String, Value>,
    /// Resources by name: the path of a file, or an image reference.
    pub resources: BTreeMap<String, String>,
    /// Whether the application gets cluster-wide rights.
    pub trust: bool,
    /// Number of units.
    pub units: u32,
}

impl DeployRequest {
    /// One unit of a charm under the charm's own name.
    pub fn new(charm: impl Into<PathBuf>) -> Self {
        Self {
            charm: charm.into(),
            app: None,
            config: BTreeMap::new(),
            resources: BTreeMap::new(),
            trust: false,
            units: 1,
        }
    }

    /// The same under another application name.
    #[must_use]
    pub fn named(mut self, app: &str) -> Self {
        self.app = Some(app.to_owned());
        self
    }

    /// The same with a config value; text is read as the option's type.
    #[must_use]
    pub fn with_config(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.config.insert(key.to_owned(), value.into());
        self
    }

    /// The same with that many units.
    #[must_use]
    pub fn with_units(mut self, units: u32) -> Self {
        self.units = units;
        self
    }

    /// The same with a resource.
    #[must_use]
    pub fn with_resource(mut self, name: &str, text: &str) -> Self {
        self.resources.insert(name.to_owned(), text.to_owned());
        self
    }

    /// The same with trust.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.trust = true;
        self
    }
}

/// What to refresh.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The new charm; none to keep it.
    pub charm: Option<PathBuf>,
    /// Config values to set along with it.
    pub config: BTreeMap<String, Value>,
    /// Resources by name: the path of a file, or an image reference.
    pub resources: BTreeMap<String, String>,
    /// Also units in error take the new charm.
    pub force_units: bool,
}

impl Model {
    /// Adds an application. Its units run with the next [`Model::advance`].
    ///
    /// # Errors
    /// A bad charm, a name in use, unknown options or resources.
    pub fn deploy(&mut self, request: &DeployRequest) -> Result<String, ModelError> {
        let (charm, charm_dir, charm_rev) = self.import(&request.charm)?;
        let name = request.app.clone().unwrap_or_else(|| charm.name.clone());
        if !is_app_name(&name) {
            return refuse(format!("invalid application name {name:?}"));
        }
        if self.state.applications.contains_key(&name) {
            return refuse(format!(
                "cannot add application {name:?}: application already exists"
            ));
        }
        let config = typed(&charm, &request.config)?;
        let address = self.state.address("10.152");
        let images: Vec<&str> = charm
            .resources
            .iter()
            .filter(|(r, meta)| meta.kind == "oci-image" && !request.resources.contains_key(*r))
            .map(|(r, _)| r.as_str())
            .collect();
        if !images.is_empty() {
            return refuse(format!(
                "local charm missing OCI images for: {}",
                images.join(", ")
            ));
        }
        self.cloud
            .set_trust(&self.state.name, &name, request.trust)?;
        let app = Application {
            charm,
            charm_dir,
            charm_rev,
            config,
            trusted: request.trust,
            life: Life::Alive,
            leader: None,
            units: BTreeMap::new(),
            resources: BTreeMap::new(),
            status: None,
            workload_version: String::new(),
            address,
        };
        self.state.applications.insert(name.clone(), app);
        if let Err(e) = self.store_resources(&name, &request.resources) {
            self.state.applications.remove(&name);
            return Err(e);
        }
        self.add_peer_relations(&name);
        self.add_units(&name, request.units)?;
        Ok(name)
    }

    /// Adds units.
    ///
    /// # Errors
    /// Unknown application.
    pub fn add_units(&mut self, app: &str, count: u32) -> Result<(), ModelError> {
        self.alive_app(app)?;
        let now = self.clock.now();
        for _ in 0..count {
            let address = self.state.address("10.1");
            let application = self.app_mut(app)?; // Numbers are pod ordinals: the lowest free one is taken again after a scale-down.
            let free = |n: &u32| !application.units.contains_key(n);
            let number = (0..=u32::MAX).find(free).unwrap_or(u32::MAX);
            let unit = Unit {
                life: Life::Alive,
                address,
                workload: status("waiting", "installing agent", now),
                agent: status("allocating", "", now),
                status_set: false,
                ports: BTreeMap::new(),
                force: false,
                charm_state: BTreeMap::new(),
                containers: BTreeMap::new(),
                uniter: Uniter::default(),
            };
            application.units.insert(number, unit);
            if application.leader.is_none() {
                application.leader = Some(number);
            }
        }
        self.save()
    }

    /// Replaces the charm, config and resources of an application.
    ///
    /// # Errors
    /// Another charm's name, an endpoint in use that vanished, a bad charm, option or resource.
    pub fn refresh(&mut self, app: &str, request: &RefreshRequest) -> Result<(), ModelError> {
        self.alive_app(app)?;
        if let Some(path) = &request.charm {
            let (charm, charm_dir, charm_rev) = self.import(path)?;
            self.check_replacement(app, &charm)?;
            let restart = self.options.refresh_restarts;
            let application = self.app_mut(app)?;
            application.config.retain(|name, value| {
                charm
                    .options
                    .get(name)
                    .is_some_and(|o| options::typed(name, &o.kind, value).is_ok())
            });
            application.charm = charm;
            application.charm_dir = charm_dir;
            application.charm_rev = charm_rev;
            for unit in application.units.values_mut() {
                let u = &mut unit.uniter;
                u.restart = restart && u.installed && u.error.is_none();
                u.force_charm = request.force_units && u.error.is_some();
            }
            self.add_peer_relations(app);
        }
        if !request.resources.is_empty() {
            self.attach(app, &request.resources)?;
        }
        self.set_config(app, &request.config)
    }

    /// Gives an application new resources; its units run upgrade-charm.
    ///
    /// # Errors
    /// Undeclared resource, unreadable file.
    pub fn attach(
        &mut self,
        app: &str,
        resources: &BTreeMap<String, String>,
    ) -> Result<(), ModelError> {
        self.alive_app(app)?;
        self.store_resources(app, resources)?;
        for unit in self.app_mut(app)?.units.values_mut() {
            unit.uniter.upgrade = unit.uniter.installed;
        }
        self.save()
    }

    /// Grants or withdraws cluster-wide rights.
    ///
    /// # Errors
    /// Unknown application, cluster trouble.
    pub fn trust(&mut self, app: &str, trusted: bool) -> Result<(), ModelError> {
        self.alive_app(app)?;
        self.cloud.set_trust(&self.state.name, app, trusted)?;
        self.credentials.remove(app);
        self.app_mut(app)?.trusted = trusted;
        self.save()
    }

    /// The file of a resource on a unit, copied there.
    pub(crate) fn fetch_resource(&self, unit: &str, name: &str) -> Result<PathBuf, String> {
        let app = unit.split('/').next().unwrap_or_default();
        let Some(application) = self.state.applications.get(app) else {
            return Err(format!("application {app:?} not found"));
        };
        let Some(meta) = application.charm.resources.get(name) else {
            return Err(format!("resource {name:?} not found"));
        };
        let Some(resource) = application.resources.get(name) else {
            return Err(format!("resource#{app}/{name} not found"));
        };
        let target = self.agent_dir(unit).join("resources").join(name);
        let copy = || -> std::io::Result<PathBuf> {
            fs::create_dir_all(&target)?;
            if resource.is_file {
                let file = target.join(&meta.filename);
                fs::copy(self.store.dir().join(&resource.stored), &file)?;
                return Ok(file);
            }
            let file = target.join("content.yaml");
            let image = serde_json::json!({"registrypath": resource.stored.to_string_lossy()});
            fs::write(&file, format!("{image}\n"))?;
            Ok(file)
        };
        copy().map_err(|e| e.to_string())
    }

    pub(crate) fn app_mut(&mut self, app: &str) -> Result<&mut Application, ModelError> {
        match self.state.applications.get_mut(app) {
            Some(application) => Ok(application),
            None => refuse(format!("application {app:?} not found")),
        }
    }

    pub(crate) fn alive_app(&self, app: &str) -> Result<&Application, ModelError> {
        match self.state.applications.get(app) {
            Some(application) if application.life == Life::Alive => Ok(application),
            Some(_) => refuse(format!("application {app:?} is not alive")),
            None => refuse(format!("application {app:?} not found")),
        }
    }

    /// Brings a charm into the model and gives it the next revision of its name.
    fn import(&self, source: &Path) -> Result<(CharmMeta, String, u32), ModelError> {
        let charms = self.store.dir().join("charms");
        let staging = charms.join("incoming");
        if staging.exists() {
            fs::remove_dir_all(&staging).map_err(access(&staging))?;
        }
        fs::create_dir_all(&charms).map_err(access(&charms))?;
        archive::import(source, &staging)?;
        let meta = CharmMeta::load(&staging)?;
        let mut revision = 0;
        while charms.join(format!("{}-{revision}", meta.name)).exists() {
            revision += 1;
        }
        let dir = format!("{}-{revision}", meta.name);
        let target = charms.join(&dir);
        let file = staging.join("revision");
        fs::write(&file, revision.to_string()).map_err(access(&file))?;
        fs::rename(&staging, &target).map_err(access(&target))?;
        Ok((meta, dir, revision))
    }

    fn check_replacement(&self, app: &str, charm: &CharmMeta) -> Result<(), ModelError> {
        let old = &self.alive_app(app)?.charm;
        if old.name != charm.name {
            return refuse(format!(
                "cannot upgrade application {app:?} to charm {:?}: it is charm {:?}",
                charm.name, old.name
            ));
        }
        for relation in self.state.relations.values() {
            for side in relation.sides.iter().filter(|s| s.app == app) {
                let kept = charm.endpoints.get(&side.endpoint);
                if !kept.is_some_and(|e| e.role == side.role && e.interface == relation.interface) {
                    return refuse(format!(
                        "cannot upgrade application {app:?} to charm {:?}: would break relation \
                         \"{app}:{}\"",
                        charm.name, side.endpoint
                    ));
                }
            }
        }
        Ok(())
    }

    fn store_resources(
        &mut self,
        app: &str,
        resources: &BTreeMap<String, String>,
    ) -> Result<(), ModelError> {
        for (name, text) in resources {
            let application = self.app_mut(app)?;
            let Some(meta) = application.charm.resources.get(name).cloned() else {
                return refuse(format!("unrecognized resource {name:?}"));
            };
            let revision = application
                .resources
                .get(name)
                .map_or(1, |r| r.revision + 1);
            let is_file = meta.kind == "file";
            let stored = if is_file {
                let source = Path::new(text);
                let dir = PathBuf::from("resources").join(app).join(name);
                let full = self.store.dir().join(&dir);
                fs::create_dir_all(&full).map_err(access(&full))?;
                let stored = dir.join(format!("{revision}-{}", meta.filename));
                fs::copy(source, self.store.dir().join(&stored)).map_err(access(source))?;
                stored
            } else {
                PathBuf::from(text)
            };
            let resource = Resource {
                stored,
                is_file,
                revision,
            };
            self.app_mut(app)?.resources.insert(name.clone(), resource);
        }
        Ok(())
    }
}

/// Config values as the options' types; text is parsed, anything else must fit.
pub(super) fn typed(
    charm: &CharmMeta,
    config: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>, ModelError> {
    let mut values = BTreeMap::new();
    for (name, value) in config {
        let Some(option) = charm.options.get(name) else {
            return refuse(format!("unknown option {name:?}"));
        };
        let read = match value {
            Value::String(text) => options::parsed(name, &option.kind, text),
            other => options::typed(name, &option.kind, other),
        };
        values.insert(name.clone(), read.map_err(ModelError::Refused)?);
    }
    Ok(values)
}

fn is_app_name(name: &str) -> bool {
    name.split('-')
        .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric()))
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.contains(|c: char| c.is_ascii_uppercase())
}
