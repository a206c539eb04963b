//! Layers and how they combine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

type Section = BTreeMap<String, Map<String, Value>>;

/// One layer, or several in one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Layer {
    pub(crate) services: Section,
    pub(crate) checks: Section,
    #[serde(rename = "log-targets")]
    pub(crate) log_targets: Section,
}

impl Layer {
    /// Reads a layer.
    ///
    /// # Errors
    /// Pebble's words.
    pub(crate) fn parse(label: &str, text: &str) -> Result<Self, String> {
        let value = yaml::parse(text).map_err(|e| format!("cannot parse layer {label:?}: {e}"))?;
        let mut layer = Self::default();
        let sections = [
            ("services", "service", &mut layer.services),
            ("checks", "check", &mut layer.checks),
            ("log-targets", "log target", &mut layer.log_targets),
        ];
        for (key, word, section) in sections {
            for (name, body) in value[key].as_object().into_iter().flatten() {
                let body = body.as_object().cloned().unwrap_or_default();
                match body.get("override").and_then(Value::as_str) {
                    Some("merge" | "replace") => section.insert(name.clone(), body),
                    None => {
                        return Err(format!(
                            "layer {label:?} must define \"override\" for {word} {name:?}"
                        ));
                    }
                    Some(_) => {
                        return Err(format!(
                            "layer {label:?} has invalid \"override\" value for {word} {name:?}"
                        ));
                    }
                };
            }
        }
        Ok(layer)
    }

    /// Lays another over this one.
    pub(crate) fn combine(&mut self, over: &Self) {
        let sections = [
            (&mut self.services, &over.services),
            (&mut self.checks, &over.checks),
            (&mut self.log_targets, &over.log_targets),
        ];
        for (under, over) in sections {
            for (name, body) in over {
                match under.get_mut(name) {
                    Some(known) if body.get("override") == Some(&json!("merge")) => {
                        merge(known, body);
                    }
                    _ => {
                        under.insert(name.clone(), body.clone());
                    }
                }
            }
        }
    }

    /// The layer as Pebble shows a plan.
    pub(crate) fn document(&self) -> Value {
        let mut document = Map::new();
        let sections = [
            ("services", &self.services),
            ("checks", &self.checks),
            ("log-targets", &self.log_targets),
        ];
        for (key, section) in sections {
            if !section.is_empty() {
                document.insert(key.to_owned(), json!(section));
            }
        }
        Value::Object(document)
    }
}

/// Maps are merged, lists are added to, all else is replaced.
fn merge(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.iter().cloned()),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_replace_or_merge_as_they_say() {
        let check = |over: &str, expect: Value| {
            let under = "services: {web: {override: replace, command: web, after: [a], environment: {A: x}}}";
            let mut plan = Layer::parse("base", under).unwrap();
            plan.combine(&Layer::parse("over", over).unwrap());
            let mut web = plan.services["web"].clone();
            web.remove("override");
            assert_eq!(Value::Object(web), expect);
        };
        check(
            "services: {web: {override: replace, command: b}}",
            json!({"command": "b"}),
        );
        check(
            "services: {web: {override: merge, after: [b], environment: {B: z}}}",
            json!({"command": "web", "after": ["a", "b"], "environment": {"A": "x", "B": "z"}}),
        );
    }

    #[test]
    fn a_layer_that_does_not_say_how_it_combines_is_refused() {
        assert_eq!(
            Layer::parse("base", "services: {web: {command: web}}"),
            Err("layer \"base\" must define \"override\" for service \"web\"".to_owned())
        );
    }
}
