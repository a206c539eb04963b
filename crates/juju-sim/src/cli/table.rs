//! The commands with their flags.

use super::Answer;
use super::Session;
use super::act;
use super::change;
use super::inspect;
use super::models;
use super::offers;
use crate::flags;
use crate::flags::Flag;
use crate::flags::Parsed;

/// A command.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// Other names.
    pub(super) also: &'static [&'static str],
    pub(super) usage: &'static str,
    pub(super) flags: &'static [Flag],
    pub(super) run: fn(&Session, &Parsed) -> Answer,
}

const MODEL: Flag = flags::value(&["m", "model"]);
const FORMAT: Flag = flags::value(&["format"]);
const NO_PROMPT: Flag = flags::switch(&["no-prompt"]);
const FORCE: Flag = flags::switch(&["force"]);
const CONFIG: Flag = flags::value(&["config"]);
const RESOURCE: Flag = flags::value(&["resource"]);
const TRUST: Flag = flags::switch(&["trust"]);
const UNITS: Flag = flags::value(&["n", "num-units"]);
const PARAMS: Flag = flags::value(&["params"]);
const WAIT: Flag = flags::value(&["wait"]);
const FILE: Flag = flags::value(&["file"]);
const COLOR: Flag = flags::switch(&["color", "no-color"]);
const STORAGE: Flag = flags::switch(&["destroy-storage"]);

/// Flags of the real command that change nothing in a simulated model.
const BASE: Flag = flags::value(&["base"]);
const CHANNEL: Flag = flags::value(&["channel"]);
const CONSTRAINTS: Flag = flags::value(&["constraints"]);

/// Every command, by name.
pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "add-model",
        also: &[],
        usage: "add-model NAME [--config K=V] [--no-switch] [--juju 3.6|4.0]",
        flags: &[
            CONFIG,
            flags::switch(&["no-switch"]),
            flags::value(&["juju"]),
        ],
        run: models::add,
    },
    Command {
        name: "add-secret",
        also: &[],
        usage: "add-secret NAME key=value|key#file=PATH...",
        flags: &[MODEL, FILE, flags::value(&["info"])],
        run: change::add_secret,
    },
    Command {
        name: "add-unit",
        also: &["scale-application"],
        usage: "add-unit APP [-n N]",
        flags: &[MODEL, UNITS],
        run: change::add_unit,
    },
    Command {
        name: "attach-resource",
        also: &[],
        usage: "attach-resource APP NAME=PATH",
        flags: &[MODEL],
        run: change::attach_resource,
    },
    Command {
        name: "config",
        also: &[],
        usage: "config APP [KEY | KEY=VALUE...] [--reset KEY,...] [--file FILE]",
        flags: &[MODEL, FORMAT, FILE, COLOR, flags::value(&["reset"])],
        run: change::config,
    },
    Command {
        name: "consume",
        also: &[],
        usage: "consume [OWNER/]MODEL.OFFER [ALIAS]",
        flags: &[MODEL],
        run: offers::consume,
    },
    Command {
        name: "debug-log",
        also: &[],
        usage: "debug-log [--limit N] [--include ENTITY] [--level LEVEL]",
        flags: &[
            MODEL,
            flags::value(&["n", "limit", "lines"]),
            flags::value(&["i", "include"]),
            flags::value(&["x", "exclude"]),
            flags::value(&["l", "level"]),
            flags::switch(&["replay", "no-tail", "date", "utc", "ms"]),
            COLOR,
        ],
        run: inspect::debug_log,
    },
    Command {
        name: "deploy",
        also: &[],
        usage: "deploy ./CHARM [APP] [--config K=V|FILE] [--resource NAME=PATH] [--trust] [-n N]",
        flags: &[
            MODEL,
            CONFIG,
            RESOURCE,
            TRUST,
            UNITS,
            BASE,
            CHANNEL,
            CONSTRAINTS,
            FORCE,
        ],
        run: change::deploy,
    },
    Command {
        name: "destroy-model",
        also: &[],
        usage: "destroy-model NAME --no-prompt",
        flags: &[
            NO_PROMPT,
            FORCE,
            STORAGE,
            flags::switch(&["no-wait"]),
            flags::value(&["timeout"]),
        ],
        run: models::destroy,
    },
    Command {
        name: "exec",
        also: &[],
        usage: "exec --unit UNIT -- COMMAND...",
        flags: &[MODEL, FORMAT, WAIT, flags::value(&["u", "unit"])],
        run: act::exec,
    },
    Command {
        name: "grant-secret",
        also: &[],
        usage: "grant-secret NAME APP[,APP...]",
        flags: &[MODEL],
        run: change::grant_secret,
    },
    Command {
        name: "integrate",
        also: &["relate", "add-relation"],
        usage: "integrate APP[:ENDPOINT] APP[:ENDPOINT]",
        flags: &[MODEL],
        run: change::integrate,
    },
    Command {
        name: "model-config",
        also: &[],
        usage: "model-config [KEY | KEY=VALUE...]",
        flags: &[MODEL, FORMAT],
        run: change::model_config,
    },
    Command {
        name: "models",
        also: &["list-models"],
        usage: "models",
        flags: &[FORMAT],
        run: models::list,
    },
    Command {
        name: "offer",
        also: &[],
        usage: "offer [MODEL.]APP:ENDPOINT[,ENDPOINT] [OFFER]",
        flags: &[MODEL],
        run: offers::offer,
    },
    Command {
        name: "offers",
        also: &["list-offers"],
        usage: "offers",
        flags: &[MODEL, FORMAT],
        run: offers::offers,
    },
    Command {
        name: "refresh",
        also: &["upgrade-charm"],
        usage: "refresh APP --path ./CHARM [--resource NAME=PATH] [--config K=V] [--force-units]",
        flags: &[
            MODEL,
            CONFIG,
            RESOURCE,
            TRUST,
            BASE,
            CHANNEL,
            FORCE,
            flags::value(&["path"]),
            flags::switch(&["force-units"]),
            flags::switch(&["force-base"]),
        ],
        run: change::refresh,
    },
    Command {
        name: "remove-application",
        also: &[],
        usage: "remove-application APP... [--force]",
        flags: &[
            MODEL,
            NO_PROMPT,
            FORCE,
            STORAGE,
            flags::switch(&["no-wait"]),
        ],
        run: change::remove_application,
    },
    Command {
        name: "remove-offer",
        also: &[],
        usage: "remove-offer [MODEL.]OFFER [--force]",
        flags: &[MODEL, FORCE, NO_PROMPT],
        run: offers::remove_offer,
    },
    Command {
        name: "remove-relation",
        also: &[],
        usage: "remove-relation APP[:ENDPOINT] APP[:ENDPOINT]",
        flags: &[MODEL, FORCE],
        run: change::remove_relation,
    },
    Command {
        name: "remove-saas",
        also: &[],
        usage: "remove-saas NAME",
        flags: &[MODEL],
        run: offers::remove_saas,
    },
    Command {
        name: "remove-secret",
        also: &[],
        usage: "remove-secret NAME",
        flags: &[MODEL],
        run: change::remove_secret,
    },
    Command {
        name: "remove-unit",
        also: &[],
        usage: "remove-unit APP --num-units N",
        flags: &[
            MODEL,
            NO_PROMPT,
            FORCE,
            STORAGE,
            flags::value(&["num-units"]),
        ],
        run: change::remove_unit,
    },
    Command {
        name: "resolve",
        also: &["resolved"],
        usage: "resolve UNIT... [--no-retry] [--all]",
        flags: &[MODEL, flags::switch(&["no-retry"]), flags::switch(&["all"])],
        run: change::resolve,
    },
    Command {
        name: "revoke-secret",
        also: &[],
        usage: "revoke-secret NAME APP[,APP...]",
        flags: &[MODEL],
        run: change::revoke_secret,
    },
    Command {
        name: "run",
        also: &[],
        usage: "run UNIT|APP/leader ACTION [KEY=VALUE...] [--params FILE] [--format json]",
        flags: &[
            MODEL,
            FORMAT,
            PARAMS,
            WAIT,
            COLOR,
            flags::switch(&["string-args"]),
        ],
        run: act::run,
    },
    Command {
        name: "secrets",
        also: &["list-secrets"],
        usage: "secrets",
        flags: &[MODEL, FORMAT],
        run: inspect::secrets,
    },
    Command {
        name: "show-application",
        also: &[],
        usage: "show-application APP",
        flags: &[MODEL, FORMAT],
        run: inspect::show_application,
    },
    Command {
        name: "show-model",
        also: &[],
        usage: "show-model",
        flags: &[MODEL, FORMAT],
        run: inspect::show_model,
    },
    Command {
        name: "show-unit",
        also: &[],
        usage: "show-unit UNIT",
        flags: &[MODEL, FORMAT],
        run: inspect::show_unit,
    },
    Command {
        name: "status",
        also: &[],
        usage: "status [--format json] [--relations]",
        flags: &[
            MODEL,
            FORMAT,
            COLOR,
            flags::switch(&["relations", "integrations"]),
            flags::switch(&["storage"]),
            flags::switch(&["utc"]),
        ],
        run: inspect::status,
    },
    Command {
        name: "switch",
        also: &[],
        usage: "switch NAME",
        flags: &[],
        run: models::switch,
    },
    Command {
        name: "trust",
        also: &[],
        usage: "trust APP --scope=cluster [--remove]",
        flags: &[MODEL, flags::value(&["scope"]), flags::switch(&["remove"])],
        run: change::trust,
    },
    Command {
        name: "update-secret",
        also: &[],
        usage: "update-secret NAME key=value|key#file=PATH...",
        flags: &[MODEL, FILE, flags::value(&["info"])],
        run: change::update_secret,
    },
    Command {
        name: "update-status",
        also: &[],
        usage: "update-status APP...    (simulator only: fires the hook now)",
        flags: &[MODEL],
        run: act::update_status,
    },
    Command {
        name: "version",
        also: &[],
        usage: "version",
        flags: &[FORMAT],
        run: inspect::version,
    },
];
