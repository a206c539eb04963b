//! The Juju side of a hook, read once and never changed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use juju_hooks::{
    AppName, Context, Databag, EndpointName, Event, RelationId, SecretContent, SecretId, UnitName,
};
use serde_json::{Map, Value};

/// Everything Juju knows that the charm may care about.
#[derive(Debug, Clone)]
pub struct ModelView {
    /// The dispatch.
    pub context: Context,
    /// Config options that have a value, defaults included.
    pub config: Config,
    /// Whether this unit leads (when this was read).
    pub leader: bool,
    /// In `remove`, how many units the application is to have; those on their way out do not count.
    /// Elsewhere one.
    pub planned_units: u32,
    /// Relations on declared endpoints, by endpoint and number; the one being broken included.
    pub relations: Vec<RelationView>,
    /// File resources the metadata declares: where each lies, or why it cannot be had.
    pub resources: BTreeMap<String, Result<PathBuf, String>>,
    /// Contents of the secrets named by config options and by
    /// [`Charm::secrets`](crate::Charm::secrets), latest revision, or why they cannot be read.
    pub secrets: BTreeMap<SecretId, Result<SecretContent, String>>,
    /// The action, if the event is one.
    pub action: Option<ActionCall>,
    /// The time of this dispatch.
    pub now: SystemTime,
}

impl ModelView {
    /// A view in which nothing is set yet; what tests start from. One unit is planned.
    pub fn new(context: Context) -> Self {
        Self {
            context,
            config: Config::default(),
            leader: false,
            planned_units: 1,
            relations: Vec::new(),
            resources: BTreeMap::new(),
            secrets: BTreeMap::new(),
            action: None,
            now: SystemTime::UNIX_EPOCH,
        }
    }

    /// The event of this dispatch.
    pub fn event(&self) -> &Event {
        &self.context.event
    }

    /// Living relations on `endpoint`: the one being broken is left out.
    pub fn relations_of(&self, endpoint: &str) -> impl Iterator<Item = &RelationView> {
        self.relations
            .iter()
            .filter(move |r| !r.broken && r.endpoint == *endpoint)
    }

    /// A relation by its number, broken or not.
    pub fn relation(&self, id: RelationId) -> Option<&RelationView> {
        self.relations.iter().find(|relation| relation.id == id)
    }
}

/// One relation as this unit sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationView {
    /// This charm's endpoint.
    pub endpoint: EndpointName,
    /// The endpoint's interface, from the metadata.
    pub interface: String,
    /// The relation's number.
    pub id: RelationId,
    /// The other application; unknown in some `-broken` hooks. This application on peer endpoints.
    pub remote_app: Option<AppName>,
    /// The other application's databag.
    pub remote_app_data: Databag,
    /// The other units with their databags.
    pub remote_units: BTreeMap<UnitName, Databag>,
    /// This application's databag; empty unless this unit leads or the endpoint is a peer one.
    pub local_app_data: Databag,
    /// This unit's databag.
    pub local_unit_data: Databag,
    /// Whether this hook is the relation's `-broken`: it is as good as gone.
    pub broken: bool,
}

impl RelationView {
    /// A relation nobody has put data into.
    pub fn new(endpoint: EndpointName, interface: impl Into<String>, id: RelationId) -> Self {
        Self {
            endpoint,
            interface: interface.into(),
            id,
            remote_app: None,
            remote_app_data: Databag::new(),
            remote_units: BTreeMap::new(),
            local_app_data: Databag::new(),
            local_unit_data: Databag::new(),
            broken: false,
        }
    }
}

/// An action being run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// Its name.
    pub name: String,
    /// Its parameters, defaults filled in.
    pub params: Map<String, Value>,
}

/// Config values. An option that is not set is `None`, which is not the same as empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config(Map<String, Value>);

impl Config {
    /// Wraps what `config-get` answers; nulls count as unset.
    pub fn new(mut values: Map<String, Value>) -> Self {
        values.retain(|_, value| !value.is_null());
        Self(values)
    }

    /// A text option (or a secret option's id).
    pub fn str(&self, option: &str) -> Option<&str> {
        self.0.get(option)?.as_str()
    }

    /// An integer option. A number without fraction counts, however Juju wrote it.
    pub fn int(&self, option: &str) -> Option<i64> {
        let value = self.0.get(option)?;
        value.as_i64().or_else(|| integral(value.as_f64()?))
    }

    /// A boolean option.
    pub fn bool(&self, option: &str) -> Option<bool> {
        self.0.get(option)?.as_bool()
    }

    /// A float option; Juju writes `5.0` as `5`.
    pub fn float(&self, option: &str) -> Option<f64> {
        self.0.get(option)?.as_f64()
    }

    /// A secret option's id.
    pub fn secret(&self, option: &str) -> Option<SecretId> {
        SecretId::new(self.str(option)?).ok()
    }

    /// The values as Juju gave them.
    pub fn values(&self) -> &Map<String, Value> {
        &self.0
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "checked: no fraction, inside 2^53"
)]
fn integral(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(value: Value) -> Config {
        serde_json::from_value(value).map(Config::new).unwrap()
    }

    #[test]
    fn numbers_are_read_however_juju_writes_them() {
        let check = |value: Value, int: Option<i64>, float: Option<f64>| {
            let config = config(json!({ "n": value }));
            assert_eq!(
                (config.int("n"), config.float("n")),
                (int, float),
                "{config:?}"
            );
        };
        check(json!(5), Some(5), Some(5.0));
        check(json!(5.0), Some(5), Some(5.0));
        check(json!(5.5), None, Some(5.5));
        check(json!(-3), Some(-3), Some(-3.0));
        check(json!(1e300), None, Some(1e300));
        check(json!("5"), None, None);
        check(json!(true), None, None);
        check(json!(null), None, None);
    }

    #[test]
    fn an_unset_option_is_not_an_empty_one() {
        let config = config(json!({ "empty": "", "null": null, "off": false }));
        assert_eq!(config.str("empty"), Some(""));
        assert_eq!(config.str("null"), None);
        assert_eq!(config.str("absent"), None);
        assert_eq!(config.bool("off"), Some(false));
        assert_eq!(config.bool("absent"), None);
    }
}
