//! Variables to [`Context`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use super::{CONTAINERS, Context, ContextError, Proxies, SIM_CONTAINERS, TraceParent};
use crate::event::{
    ActionCall, Event, PLAIN, PebbleEvent, PebbleKind, RelationEvent, RelationKind, SecretEvent,
    SecretKind, StorageEvent, StorageKind,
};
use crate::ids::{EndpointName, IdError, UnitName};
use crate::storage::{StorageForm, StorageId};

impl Context {
    /// Types the variables of one dispatch.
    pub fn from_vars<K, V>(vars: impl IntoIterator<Item = (K, V)>) -> Result<Self, ContextError>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let vars = Vars::new(vars);
        let unit: UnitName = vars.need("JUJU_UNIT_NAME")?;
        let event = event(&vars)?;
        let juju_version = match vars.text("JUJU_VERSION") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| ContextError::Invalid {
                variable: "JUJU_VERSION",
                value: text.to_owned(),
            })?),
        };
        Ok(Self {
            event,
            app: unit.app().clone(),
            unit,
            model_name: vars.need("JUJU_MODEL_NAME")?,
            model_uuid: vars.need("JUJU_MODEL_UUID")?,
            charm_dir: vars
                .text("JUJU_CHARM_DIR")
                .or_else(|| vars.text("CHARM_DIR"))
                .map(PathBuf::from)
                .ok_or(ContextError::Missing("JUJU_CHARM_DIR"))?,
            juju_version,
            api_addresses: vars
                .text("JUJU_API_ADDRESSES")
                .map(|all| all.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            kubernetes: kubernetes(&vars)?,
            cloud_api_version: vars.owned("CLOUD_API_VERSION"),
            context_id: vars.owned("JUJU_CONTEXT_ID"),
            agent_socket: vars.owned("JUJU_AGENT_SOCKET_ADDRESS"),
            agent_network: vars.owned("JUJU_AGENT_SOCKET_NETWORK"),
            machine_id: vars.owned("JUJU_MACHINE_ID"),
            availability_zone: vars.owned("JUJU_AVAILABILITY_ZONE"),
            principal_unit: vars.maybe("JUJU_PRINCIPAL_UNIT")?,
            proxies: Proxies {
                http: vars.owned("JUJU_CHARM_HTTP_PROXY"),
                https: vars.owned("JUJU_CHARM_HTTPS_PROXY"),
                ftp: vars.owned("JUJU_CHARM_FTP_PROXY"),
                no: vars.owned("JUJU_CHARM_NO_PROXY"),
            },
            trace: vars
                .owned("JUJU_TRACE_ID")
                .zip(vars.owned("JUJU_SPAN_ID"))
                .map(|(trace_id, span_id)| TraceParent {
                    trace_id,
                    span_id,
                    flags: vars.owned("JUJU_TRACE_FLAGS"),
                }),
            target_base: vars
                .owned("JUJU_TARGET_BASE")
                .or_else(|| vars.owned("JUJU_TARGET_SERIES")),
            containers_dir: PathBuf::from(vars.text(SIM_CONTAINERS).unwrap_or(CONTAINERS)),
            debug: vars.0.contains_key("JUJU_DEBUG"),
        })
    }
}

struct Vars(BTreeMap<String, String>);

impl Vars {
    fn new<K: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(
            vars.into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    fn text(&self, variable: &str) -> Option<&str> {
        self.0
            .get(variable)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    fn owned(&self, variable: &str) -> Option<String> {
        self.text(variable).map(str::to_owned)
    }

    fn maybe<T: FromStr<Err = IdError>>(
        &self,
        variable: &'static str,
    ) -> Result<Option<T>, ContextError> {
        let parsed = self.text(variable).map(str::parse).transpose();
        parsed.map_err(|source| ContextError::Name { variable, source })
    }

    fn need<T: FromStr<Err = IdError>>(&self, variable: &'static str) -> Result<T, ContextError> {
        self.maybe(variable)?.ok_or(ContextError::Missing(variable))
    }

    fn need_text(&self, variable: &'static str) -> Result<String, ContextError> {
        self.owned(variable).ok_or(ContextError::Missing(variable))
    }
}

fn kubernetes(vars: &Vars) -> Result<Option<(String, u16)>, ContextError> {
    let Some(host) = vars.owned("KUBERNETES_SERVICE_HOST") else {
        return Ok(None);
    };
    let (variable, port) = match vars.text("KUBERNETES_SERVICE_PORT") {
        Some(port) => ("KUBERNETES_SERVICE_PORT", port),
        None => match vars.text("KUBERNETES_SERVICE_PORT_HTTPS") {
            Some(port) => ("KUBERNETES_SERVICE_PORT_HTTPS", port),
            None => return Ok(Some((host, 443))),
        },
    };
    let invalid = |_| ContextError::Invalid {
        variable,
        value: port.to_owned(),
    };
    Ok(Some((host, port.parse().map_err(invalid)?)))
}

/// `JUJU_DISPATCH_PATH` alone says which event it is; the hook name is empty in actions.
fn event(vars: &Vars) -> Result<Event, ContextError> {
    let path = vars
        .text("JUJU_DISPATCH_PATH")
        .ok_or(ContextError::Missing("JUJU_DISPATCH_PATH"))?;
    if let Some(name) = path.strip_prefix("actions/") {
        let id = vars.owned("JUJU_ACTION_UUID").or_else(|| {
            Some(
                vars.text("JUJU_ACTION_TAG")?
                    .trim_start_matches("action-")
                    .to_owned(),
            )
        });
        return Ok(Event::Action(ActionCall {
            name: name.to_owned(),
            id: id.unwrap_or_default(),
        }));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some((_, plain)) = PLAIN.iter().find(|(hook, _)| *hook == name) {
        return Ok(plain.clone());
    }
    if let Some(kind) = SecretKind::ALL
        .into_iter()
        .find(|kind| name.strip_prefix("secret-") == Some(kind.as_str()))
    {
        return secret(vars, kind);
    }
    // What is about nothing is none of these hooks.
    let about = |what: &str| {
        name.rsplit_once(what)
            .filter(|(about, _)| !about.is_empty())
    };
    if let Some((endpoint, ending)) = about("-relation-")
        && let Some(kind) = RelationKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == ending)
    {
        return relation(vars, endpoint, kind);
    }
    if let Some((storage, ending)) = about("-storage-")
        && let Some(kind) = StorageKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == ending)
    {
        return storage_event(vars, storage, kind);
    }
    if let Some((container, ending)) = about("-pebble-")
        && let Some(kind) = pebble(vars, ending)?
    {
        let container = vars
            .owned("JUJU_WORKLOAD_NAME")
            .unwrap_or_else(|| container.to_owned());
        return Ok(Event::Pebble(PebbleEvent { container, kind }));
    }
    Ok(Event::Unknown(name.to_owned()))
}

fn relation(vars: &Vars, endpoint: &str, kind: RelationKind) -> Result<Event, ContextError> {
    let endpoint = match vars.maybe("JUJU_RELATION")? {
        Some(endpoint) => endpoint,
        None => EndpointName::new(endpoint).map_err(|source| ContextError::Name {
            variable: "JUJU_DISPATCH_PATH",
            source,
        })?,
    };
    Ok(Event::Relation(RelationEvent {
        endpoint,
        id: vars.need("JUJU_RELATION_ID")?,
        kind,
        remote_app: vars.maybe("JUJU_REMOTE_APP")?,
        remote_unit: vars.maybe("JUJU_REMOTE_UNIT")?,
        departing_unit: vars.maybe("JUJU_DEPARTING_UNIT")?,
    }))
}

fn secret(vars: &Vars, kind: SecretKind) -> Result<Event, ContextError> {
    let revision = match vars.text("JUJU_SECRET_REVISION") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| ContextError::Invalid {
            variable: "JUJU_SECRET_REVISION",
            value: text.to_owned(),
        })?),
    };
    Ok(Event::Secret(SecretEvent {
        kind,
        id: vars.need("JUJU_SECRET_ID")?,
        label: vars.owned("JUJU_SECRET_LABEL"),
        revision,
    }))
}

fn storage_event(vars: &Vars, name: &str, kind: StorageKind) -> Result<Event, ContextError> {
    let id: StorageId = vars.need("JUJU_STORAGE_ID")?;
    Ok(Event::Storage(StorageEvent {
        kind,
        name: name.to_owned(),
        index: id.index,
        location: vars.owned("JUJU_STORAGE_LOCATION"),
        form: match vars.text("JUJU_STORAGE_KIND") {
            Some("block") => Some(StorageForm::Block),
            Some("filesystem") => Some(StorageForm::Filesystem),
            _ => None,
        },
    }))
}

fn pebble(vars: &Vars, ending: &str) -> Result<Option<PebbleKind>, ContextError> {
    Ok(Some(match ending {
        "ready" => PebbleKind::Ready,
        "custom-notice" => PebbleKind::CustomNotice {
            id: vars.need_text("JUJU_NOTICE_ID")?,
            kind: vars.need_text("JUJU_NOTICE_TYPE")?,
            key: vars.need_text("JUJU_NOTICE_KEY")?,
        },
        "check-failed" => PebbleKind::CheckFailed {
            check: vars.need_text("JUJU_PEBBLE_CHECK_NAME")?,
        },
        "check-recovered" => PebbleKind::CheckRecovered {
            check: vars.need_text("JUJU_PEBBLE_CHECK_NAME")?,
        },
        _ => return Ok(None),
    }))
}
