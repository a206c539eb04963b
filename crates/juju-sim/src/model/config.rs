//! Application and model configuration.

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Model;
use super::ModelError;
use super::applications::typed;
use super::refuse;

impl Model {
    /// Sets config values; text is read as the option's type.
    ///
    /// # Errors
    /// Unknown option, value of another type.
    pub fn set_config(
        &mut self,
        app: &str,
        values: &BTreeMap<String, Value>,
    ) -> Result<(), ModelError> {
        let values = typed(&self.alive_app(app)?.charm, values)?;
        self.app_mut(app)?.config.extend(values);
        self.save()
    }

    /// Puts options back to their defaults.
    ///
    /// # Errors
    /// Unknown option.
    pub fn reset_config(&mut self, app: &str, names: &[String]) -> Result<(), ModelError> {
        let charm = &self.alive_app(app)?.charm;
        if let Some(unknown) = names.iter().find(|n| !charm.options.contains_key(*n)) {
            return refuse(format!("unknown option {unknown:?}"));
        }
        let application = self.app_mut(app)?;
        application.config.retain(|name, _| !names.contains(name));
        self.save()
    }

    /// The document of `juju config APP`.
    ///
    /// # Errors
    /// Unknown application.
    pub fn config(&self, app: &str) -> Result<Value, ModelError> {
        let application = self.alive_app(app)?;
        let settings: Map<String, Value> = application
            .charm
            .options
            .iter()
            .map(|(name, option)| {
                let set = application.config.get(name);
                let mut entry = Map::new();
                if !option.default.is_null() {
                    entry.insert("default".into(), option.default.clone());
                }
                entry.insert("description".into(), json!(option.description));
                let source = match (set, option.default.is_null()) {
                    (Some(value), _) if *value != option.default => "user",
                    (None, true) => "unset",
                    _ => "default",
                };
                entry.insert("source".into(), json!(source));
                entry.insert("type".into(), json!(option.kind));
                let value = set.unwrap_or(&option.default);
                if !value.is_null() {
                    entry.insert("value".into(), value.clone());
                }
                (name.clone(), Value::Object(entry))
            })
            .collect();
        let trusted = application.trusted;
        Ok(json!({
            "application": app,
            "application-config": {"trust": {
                "default": false,
                "description": "Does this application have access to trusted credentials",
                "source": if trusted { "user" } else { "default" },
                "type": "bool",
                "value": trusted,
            }},
            "charm": application.charm.name,
            "settings": settings,
        }))
    }

    /// The model's configuration.
    pub fn model_config(&self) -> Value {
        let config = &self.state.config;
        json!({
            "automatically-retry-hooks": config.automatically_retry_hooks,
            "name": self.state.name,
            "type": "kubernetes",
            "update-status-hook-interval": interval_text(config.update_status_interval_secs),
            "uuid": self.state.uuid,
        })
    }

    /// Sets `update-status-hook-interval` (a duration such as `5m` or `1m30s`) or
    /// `automatically-retry-hooks`.
    ///
    /// # Errors
    /// Another key, a bad value.
    pub fn set_model_config(&mut self, key: &str, value: &str) -> Result<(), ModelError> {
        match key {
            "update-status-hook-interval" => match seconds(value) {
                Some(secs) => self.state.config.update_status_interval_secs = secs,
                None => {
                    return refuse(format!(
                        "invalid update status hook interval {value:?}: expected a duration such \
                         as 30s or 5m"
                    ));
                }
            },
            "automatically-retry-hooks" => match value {
                "true" => self.state.config.automatically_retry_hooks = true,
                "false" => self.state.config.automatically_retry_hooks = false,
                _ => {
                    return refuse(format!(
                        "automatically-retry-hooks: expected bool, got string({value:?})"
                    ));
                }
            },
            _ => {
                return refuse(format!(
                    "key {key:?} is not known here; known are update-status-hook-interval and \
                     automatically-retry-hooks"
                ));
            }
        }
        self.save()
    }
}

/// Seconds of a Go duration made of h, m and s.
fn seconds(text: &str) -> Option<u32> {
    let mut total = 0_u32;
    let mut number = String::new();
    for c in text.chars() {
        let factor = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let value: u32 = std::mem::take(&mut number).parse().ok()?;
        total = total.checked_add(value.checked_mul(factor)?)?;
    }
    (number.is_empty() && total > 0).then_some(total)
}

fn interval_text(secs: u32) -> String {
    match (secs / 60, secs % 60) {
        (0, s) => format!("{s}s"),
        (m, 0) => format!("{m}m"),
        (m, s) => format!("{m}m{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos() {
        let check = |text: &str, expect: Option<u32>| assert_eq!(seconds(text), expect, "{text}");
        check("5m", Some(300));
        check("1m30s", Some(90));
        check("10s", Some(10));
        check("10", None);
        check("", None);
        check("0s", None);
    }
}
