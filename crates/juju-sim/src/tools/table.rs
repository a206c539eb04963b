//! The hook tools with their flags.

use super::Answer;
use super::Call;
use super::action;
use super::network;
use super::relation;
use super::secret;
use super::status;
use super::unit;
use crate::agent::context::HookRun;
use crate::flags;
use crate::flags::Flag;

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) flags: &'static [Flag],
    pub(super) run: fn(&mut HookRun<'_>, &Call<'_>) -> Answer,
}

const FORMAT: Flag = flags::value(&["format"]);
const OUTPUT: Flag = flags::value(&["o", "output"]);
const RELATION: Flag = flags::value(&["r", "relation"]);
const APP: Flag = flags::switch(&["app"]);
const APPLICATION: Flag = flags::switch(&["application"]);
const FILE: Flag = flags::value(&["file"]);
const ENDPOINTS: Flag = flags::value(&["endpoints"]);
const LABEL: Flag = flags::value(&["label"]);
const SECRET: &[Flag] = &[
    LABEL,
    flags::value(&["description"]),
    flags::value(&["expire"]),
    flags::value(&["rotate"]),
    flags::value(&["owner"]),
    FILE,
];

/// Every tool, sorted by name.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "action-fail",
        flags: &[],
        run: action::fail,
    },
    Tool {
        name: "action-get",
        flags: &[FORMAT, OUTPUT],
        run: action::get,
    },
    Tool {
        name: "action-log",
        flags: &[],
        run: action::log,
    },
    Tool {
        name: "action-set",
        flags: &[],
        run: action::set,
    },
    Tool {
        name: "application-version-set",
        flags: &[],
        run: status::version_set,
    },
    Tool {
        name: "close-port",
        flags: &[ENDPOINTS, FORMAT],
        run: network::close_port,
    },
    Tool {
        name: "config-get",
        flags: &[FORMAT, OUTPUT, flags::switch(&["a", "all"])],
        run: unit::config_get,
    },
    Tool {
        name: "credential-get",
        flags: &[FORMAT, OUTPUT],
        run: unit::credential_get,
    },
    Tool {
        name: "goal-state",
        flags: &[FORMAT, OUTPUT],
        run: status::goal_state,
    },
    Tool {
        name: "is-leader",
        flags: &[FORMAT, OUTPUT],
        run: unit::is_leader,
    },
    Tool {
        name: "juju-log",
        flags: &[
            flags::switch(&["debug"]),
            flags::value(&["l", "log-level"]),
            FORMAT,
        ],
        run: unit::juju_log,
    },
    Tool {
        name: "juju-reboot",
        flags: &[flags::switch(&["now"])],
        run: unit::reboot,
    },
    Tool {
        name: "network-get",
        flags: &[
            FORMAT,
            OUTPUT,
            RELATION,
            flags::switch(&["bind-address"]),
            flags::switch(&["ingress-address"]),
            flags::switch(&["egress-subnets"]),
            flags::switch(&["primary-address"]),
        ],
        run: network::network_get,
    },
    Tool {
        name: "open-port",
        flags: &[ENDPOINTS, FORMAT],
        run: network::open_port,
    },
    Tool {
        name: "opened-ports",
        flags: &[FORMAT, OUTPUT, flags::switch(&["endpoints"])],
        run: network::opened_ports,
    },
    Tool {
        name: "relation-get",
        flags: &[FORMAT, OUTPUT, RELATION, APP],
        run: relation::get,
    },
    Tool {
        name: "relation-ids",
        flags: &[FORMAT, OUTPUT],
        run: relation::ids,
    },
    Tool {
        name: "relation-list",
        flags: &[FORMAT, OUTPUT, RELATION, APP],
        run: relation::list,
    },
    Tool {
        name: "relation-model-get",
        flags: &[FORMAT, OUTPUT, RELATION],
        run: relation::model_get,
    },
    Tool {
        name: "relation-set",
        flags: &[RELATION, APP, FILE, FORMAT],
        run: relation::set,
    },
    Tool {
        name: "resource-get",
        flags: &[],
        run: unit::resource_get,
    },
    Tool {
        name: "secret-add",
        flags: SECRET,
        run: secret::add,
    },
    Tool {
        name: "secret-get",
        flags: &[
            FORMAT,
            OUTPUT,
            LABEL,
            flags::switch(&["refresh"]),
            flags::switch(&["peek"]),
        ],
        run: secret::get,
    },
    Tool {
        name: "secret-grant",
        flags: &[RELATION, flags::value(&["unit"])],
        run: secret::grant,
    },
    Tool {
        name: "secret-ids",
        flags: &[FORMAT, OUTPUT],
        run: secret::ids,
    },
    Tool {
        name: "secret-info-get",
        flags: &[FORMAT, OUTPUT, LABEL],
        run: secret::info,
    },
    Tool {
        name: "secret-remove",
        flags: &[flags::value(&["revision"])],
        run: secret::remove,
    },
    Tool {
        name: "secret-revoke",
        flags: &[RELATION, flags::value(&["app"]), flags::value(&["unit"])],
        run: secret::revoke,
    },
    Tool {
        name: "secret-set",
        flags: SECRET,
        run: secret::set,
    },
    Tool {
        name: "state-delete",
        flags: &[],
        run: unit::state_delete,
    },
    Tool {
        name: "state-get",
        flags: &[FORMAT, OUTPUT, flags::switch(&["strict"])],
        run: unit::state_get,
    },
    Tool {
        name: "state-set",
        flags: &[FILE],
        run: unit::state_set,
    },
    Tool {
        name: "status-get",
        flags: &[
            FORMAT,
            OUTPUT,
            flags::switch(&["include-data"]),
            APPLICATION,
        ],
        run: status::get,
    },
    Tool {
        name: "status-set",
        flags: &[APPLICATION],
        run: status::set,
    },
    Tool {
        name: "storage-add",
        flags: &[],
        run: unit::storage_add,
    },
    Tool {
        name: "storage-get",
        flags: &[FORMAT, OUTPUT, flags::value(&["s"])],
        run: unit::storage_get,
    },
    Tool {
        name: "storage-list",
        flags: &[FORMAT, OUTPUT],
        run: unit::storage_list,
    },
];
