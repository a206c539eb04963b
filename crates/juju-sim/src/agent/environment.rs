//! The environment of a charm process: exactly Juju's list, nothing inherited. One variable is the
//! simulator's own, for charms with containers: where the sockets are that a pod has below `/charm`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cloud::Credentials;
use crate::hook::Hook;
use crate::model::REMOTE_OWNER;
use crate::state::State;
use crate::state::Task;
use crate::state::TaskKind;

/// The variable that leads tools to their agent; its value belongs to one unit of one model.
pub(crate) const SOCKET_VARIABLE: &str = "JUJU_AGENT_SOCKET_ADDRESS";

/// What the variables are made of.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) state: &'a State,
    pub(crate) unit: &'a str,
    pub(crate) hook: &'a Hook,
    pub(crate) task: Option<(u64, &'a Task)>,
    pub(crate) context_id: &'a str,
    pub(crate) socket: &'a str,
    pub(crate) charm_dir: &'a Path,
    pub(crate) tools_dir: &'a Path,
    pub(crate) agent_path: &'a str,
    pub(crate) juju_version: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) credentials: Option<&'a Credentials>,
    pub(crate) containers: Option<&'a Path>,
}

/// Variables by name.
pub(crate) fn variables(facts: &Facts<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        env.insert(name.to_owned(), value.to_owned());
    };
    let charm_dir = facts.charm_dir.to_string_lossy();
    let hook_name = facts.hook.name();
    let dispatch_path = match facts.task {
        Some((
            _,
            Task {
                kind: TaskKind::Action { name, .. },
                ..
            },
        )) => format!("actions/{name}"),
        Some(_) => String::new(),
        None => format!("hooks/{hook_name}"),
    };
    set("JUJU_DISPATCH_PATH", &dispatch_path);
    set("JUJU_HOOK_NAME", &hook_name);
    set("JUJU_UNIT_NAME", facts.unit);
    set("JUJU_MODEL_NAME", &facts.state.name);
    set("JUJU_MODEL_UUID", &facts.state.uuid);
    set("JUJU_CHARM_DIR", &charm_dir);
    set("CHARM_DIR", &charm_dir);
    set("JUJU_CONTEXT_ID", facts.context_id);
    set(SOCKET_VARIABLE, facts.socket);
    set("JUJU_AGENT_SOCKET_NETWORK", "unix");
    set("JUJU_VERSION", facts.juju_version);
    set("JUJU_API_ADDRESSES", "10.152.183.2:17070");
    for empty in [
        "JUJU_MACHINE_ID",
        "JUJU_AVAILABILITY_ZONE",
        "JUJU_PRINCIPAL_UNIT",
        "JUJU_CHARM_HTTP_PROXY",
        "JUJU_CHARM_HTTPS_PROXY",
        "JUJU_CHARM_FTP_PROXY",
        "JUJU_CHARM_NO_PROXY",
    ] {
        set(empty, "");
    }
    set("CLOUD_API_VERSION", facts.api_version);
    if !crate::at_least(facts.juju_version, 4) {
        set("JUJU_METER_STATUS", "AMBER");
        set("JUJU_METER_INFO", "not set");
        set("JUJU_SLA", "unsupported");
    }
    set(
        "PATH",
        &format!("{}:{}", facts.tools_dir.display(), facts.agent_path),
    );
    set("APT_LISTCHANGES_FRONTEND", "none");
    set("DEBIAN_FRONTEND", "noninteractive");
    set("LANG", "C.UTF-8");
    set("TERM", "tmux-256color");
    if let Some(c) = facts.credentials {
        let port = c.port.to_string();
        set("KUBERNETES_SERVICE_HOST", &c.host);
        set("KUBERNETES_SERVICE_PORT", &port);
        set("KUBERNETES_SERVICE_PORT_HTTPS", &port);
        let host = if c.host.contains(':') {
            format!("[{}]", c.host)
        } else {
            c.host.clone()
        };
        set("KUBERNETES_PORT", &format!("tcp://{host}:{port}"));
    }
    if let Some(dir) = facts.containers {
        set("JUJU_SIM_CONTAINERS", &dir.to_string_lossy());
    }
    match facts.hook {
        Hook::Relation(r) => {
            set("JUJU_RELATION", &r.endpoint);
            set("JUJU_RELATION_ID", &format!("{}:{}", r.endpoint, r.id));
            set("JUJU_REMOTE_APP", &r.remote_app);
            set(
                "JUJU_REMOTE_UNIT",
                r.remote_unit.as_deref().unwrap_or_default(),
            );
            if let Some(departing) = &r.departing {
                set("JUJU_DEPARTING_UNIT", departing);
            }
        }
        Hook::SecretChanged { id, label } => {
            let owner = facts
                .state
                .secrets
                .get(id)
                .map(|secret| secret.owner.as_str());
            let elsewhere = owner.and_then(|owner| owner.strip_prefix(REMOTE_OWNER));
            let uri = match elsewhere {
                Some(uuid) => format!("secret://{uuid}/{id}"),
                None => format!("secret:{id}"),
            };
            set("JUJU_SECRET_ID", &uri);
            set("JUJU_SECRET_LABEL", label);
        }
        Hook::Told(told) => {
            for (name, value) in &told.vars {
                set(name, value);
            }
        }
        _ => {}
    }
    if let Some((
        id,
        Task {
            kind: TaskKind::Action { name, .. },
            ..
        },
    )) = facts.task
    {
        set("JUJU_ACTION_NAME", name);
        set("JUJU_ACTION_UUID", &id.to_string());
        set("JUJU_ACTION_TAG", &format!("action-{id}"));
    }
    env
}
