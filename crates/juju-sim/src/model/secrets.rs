//! User secrets: what `juju add-secret` and its relatives do.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Value;

use super::Model;
use super::ModelError;
use super::refuse;
use crate::Databag;
use crate::state::Secret;
use crate::tools;

impl Model {
    /// Adds a user secret; returns `secret:ID`.
    ///
    /// # Errors
    /// Bad content, a name in use.
    pub fn add_secret(&mut self, name: &str, content: Databag) -> Result<String, ModelError> {
        if self.user_secret(name).is_ok() {
            return refuse(format!("secret with name {name:?} already exists"));
        }
        let content = checked(content)?;
        let id = self.secret_id();
        let secret = Secret {
            owner: "model".into(),
            label: name.to_owned(),
            description: String::new(),
            rotate: "never".into(),
            rotates: None,
            expires: None,
            revisions: BTreeMap::from([(1, content)]),
            grants: BTreeSet::new(),
            consumers: BTreeMap::new(),
            tracked_elsewhere: BTreeMap::new(),
            obsolete: BTreeSet::new(),
        };
        self.state.secrets.insert(id.clone(), secret);
        self.save()?;
        Ok(format!("secret:{id}"))
    }

    /// Gives a user secret a new revision; units that read it run secret-changed.
    ///
    /// # Errors
    /// Unknown secret, bad content.
    pub fn update_secret(&mut self, name: &str, content: Databag) -> Result<(), ModelError> {
        let content = checked(content)?;
        let id = self.user_secret(name)?;
        if let Some(secret) = self.state.secrets.get_mut(&id)
            && secret.revisions.get(&secret.latest()) != Some(&content)
        {
            secret.revisions.insert(secret.latest() + 1, content);
        }
        self.save()
    }

    /// Lets applications read a user secret, or no longer.
    ///
    /// # Errors
    /// Unknown secret or application.
    pub fn grant_secret(
        &mut self,
        name: &str,
        apps: &[String],
        granted: bool,
    ) -> Result<(), ModelError> {
        let id = self.user_secret(name)?;
        for app in apps {
            self.alive_app(app)?;
            if let Some(secret) = self.state.secrets.get_mut(&id) {
                if granted {
                    secret.grants.insert(app.clone());
                } else {
                    secret.grants.remove(app);
                }
            }
        }
        self.save()
    }

    /// Removes a user secret.
    ///
    /// # Errors
    /// Unknown secret.
    pub fn remove_secret(&mut self, name: &str) -> Result<(), ModelError> {
        let id = self.user_secret(name)?;
        self.state.secrets.remove(&id);
        self.save()
    }

    /// The listing of `juju secrets`.
    pub fn secrets(&self) -> Value {
        tools::secret_listing(&self.state.secrets)
    }

    /// A new bare secret id: 20 characters of `[0-9a-v]`.
    pub(crate) fn secret_id(&mut self) -> String {
        const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
        (0..20)
            .map(|_| char::from(ALPHABET[self.state.random(32)]))
            .collect()
    }

    /// Bare id of a user secret given by name or id.
    fn user_secret(&self, name: &str) -> Result<String, ModelError> {
        let id = name.strip_prefix("secret:").unwrap_or(name);
        self.state
            .secrets
            .iter()
            .find(|(known, s)| s.owner == "model" && (s.label == name || *known == id))
            .map_or_else(
                || refuse(format!("secret {name:?} not found")),
                |(known, _)| Ok(known.clone()),
            )
    }
}

fn checked(content: Databag) -> Result<Databag, ModelError> {
    if content.is_empty() {
        return refuse("missing secret value or filename");
    }
    tools::secret_content(content).map_err(ModelError::Refused)
}
