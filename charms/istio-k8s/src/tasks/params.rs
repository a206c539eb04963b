//! Parameters of an action. Juju has checked their types.

use serde_json::{Map, Value};

/// The parameters, defaults filled in.
#[derive(Clone, Copy)]
pub(super) struct Params<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Params<'a> {
    /// A text; empty if it is not given.
    pub(super) fn text(self, name: &str) -> &'a str {
        let text = self.0.get(name).and_then(Value::as_str);
        text.map(str::trim).unwrap_or_default()
    }

    /// Whether to change nothing. Only a plain `false` is taken for consent.
    pub(super) fn dry_run(self, default: bool) -> bool {
        let given = self.0.get("dry-run").and_then(Value::as_bool);
        given.unwrap_or(default)
    }

    /// A flag; off if it is not given.
    pub(super) fn flag(self, name: &str) -> bool {
        self.0
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// A number.
    pub(super) fn number(self, name: &str, default: u64) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(default)
    }

    /// The parts of a list, separated by commas or lines.
    pub(super) fn list(self, name: &str) -> impl Iterator<Item = &'a str> {
        let parts = self.text(name).split([',', '\n']);
        parts.map(str::trim).filter(|part| !part.is_empty())
    }

    /// What is said of parameters that do not go together.
    pub(super) fn complaint(self, action: &str) -> String {
        match action {
            "disown" => format!(
                "from {:?} is none of own, helm, istioctl, operator, charm",
                self.text("from")
            ),
            _ => "its parameters are not in order".to_owned(),
        }
    }
}
