//! Builds JSON values from the events of the YAML scanner: anchors, merge keys, tags, limits.

use crate::Error;
use crate::go_style::go_float_key;
use crate::resolve::{Scalar, resolve};
use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{
    Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag,
};
use std::collections::BTreeMap;

/// The deepest nesting of sequences and mappings.
pub const MAX_DEPTH: usize = 128;

/// The most nodes a text may have once its aliases are expanded (a release of Istio has some 40 000).
pub const MAX_NODES: usize = 1_000_000;

/// What to do with the same key twice in one mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// An error, as YAML demands.
    Reject,
    /// The last one counts, as Helm does.
    LastWins,
}

/// Every document, empty ones included as `null`.
pub(crate) fn documents(text: &str, duplicates: Duplicates) -> Result<Vec<Value>, Error> {
    counted_documents(text, duplicates).map(|(documents, _)| documents)
}

/// The same, with the number of their nodes.
pub(crate) fn counted_documents(
    text: &str,
    duplicates: Duplicates,
) -> Result<(Vec<Value>, usize), Error> {
    let mut composer = Composer::new(text, duplicates);
    let mut documents = Vec::new();
    while let Some(document) = composer.next_document()? {
        documents.push(document);
    }
    Ok((documents, composer.nodes))
}

/// The first document; what follows it is not even scanned.
pub(crate) fn first_document(text: &str, duplicates: Duplicates) -> Result<Option<Value>, Error> {
    Composer::new(text, duplicates).next_document()
}

struct Composer<'t> {
    events: Parser<'t, StrInput<'t>>,
    duplicates: Duplicates,
    /// Value and number of nodes of each anchor of the current document.
    anchors: BTreeMap<usize, (Value, usize)>,
    nodes: usize,
}

fn syntax(error: &ScanError) -> Error {
    Error::Syntax {
        line: error.marker().line(),
        column: error.marker().col() + 1,
        message: error.info(),
    }
}

fn line(span: &Span) -> usize {
    span.start.line()
}

impl<'t> Composer<'t> {
    fn new(text: &'t str, duplicates: Duplicates) -> Self {
        let mut options = Options::default();
        options.set_emit_comments(false);
        options.bom_inside_document_as_content = true;
        options.flow_nesting_limit = MAX_DEPTH;
        options.block_nesting_limit = MAX_DEPTH;
        Self {
            events: Parser::new_from_str_with_options(text, options),
            duplicates,
            anchors: BTreeMap::new(),
            nodes: 0,
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), Error> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(syntax(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn next_document(&mut self) -> Result<Option<Value>, Error> {
        loop {
            match self.next()?.0 {
                Event::StreamEnd => return Ok(None),
                Event::DocumentStart(..) => break,
                _ => {}
            }
        }
        self.anchors.clear();
        let mut value = Value::Null;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::DocumentEnd | Event::StreamEnd => return Ok(Some(value)),
                event => value = self.node(event, &span, 0)?,
            }
        }
    }

    fn count(&mut self, nodes: usize) -> Result<(), Error> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(Error::TooLarge {
                what: "nodes",
                limit: MAX_NODES,
            });
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, span: &Span, depth: usize) -> Result<Value, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooLarge {
                what: "nested levels",
                limit: MAX_DEPTH,
            });
        }
        let before = self.nodes;
        self.count(1)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref(), span)?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping(depth)?, anchor),
            Event::Alias(id) => {
                let Some((value, nodes)) = self.anchors.get(&id) else {
                    return Err(Error::Unsupported {
                        line: line(span),
                        message: "an alias inside the node it refers to".to_owned(),
                    });
                };
                let (value, nodes) = (value.clone(), *nodes);
                self.count(nodes)?;
                (value, 0)
            }
            other => {
                return Err(Error::Unsupported {
                    line: line(span),
                    message: format!("{other:?}"),
                });
            }
        };
        if anchor != 0 {
            self.anchors
                .insert(anchor, (value.clone(), self.nodes - before));
        }
        Ok(value)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::StreamEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Error> {
        let mut map = Map::new();
        // Keys that came from a merge: an explicit one may replace them.
        let mut merged = Map::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                return Ok(Value::Object(map));
            }
            let is_merge = matches!(
                &event,
                Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<"
            );
            let key = if is_merge {
                None
            } else {
                Some(self.key(event, &span, depth)?)
            };
            let (event, value_span) = self.next()?;
            let value = self.node(event, &value_span, depth + 1)?;
            let Some(key) = key else {
                merge(value, &value_span, &mut map, &mut merged)?;
                continue;
            };
            let replaces_merged = merged.remove(&key).is_some();
            if self.duplicates == Duplicates::Reject && !replaces_merged && map.contains_key(&key) {
                return Err(Error::Duplicate {
                    line: line(&span),
                    key,
                });
            }
            map.insert(key, value);
        }
    }

    fn key(&mut self, event: Event<'t>, span: &Span, depth: usize) -> Result<String, Error> {
        let unsupported = |message: &str| Error::Unsupported {
            line: line(span),
            message: message.to_owned(),
        };
        match &event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) => {
                self.count(1)?;
                let text = text.as_ref();
                let Some(key) = plain_key(text) else {
                    return Err(unsupported(match resolve(text) {
                        Scalar::Null => "a null key",
                        _ => "a number no key can be",
                    }));
                };
                let anchor = event.anchor_id().unwrap_or(0);
                if anchor != 0 {
                    let value = scalar(text, ScalarStyle::Plain, None, span)?;
                    self.anchors.insert(anchor, (value, 1));
                }
                Ok(key)
            }
            _ => match self.node(event, span, depth + 1)? {
                Value::String(key) => Ok(key),
                Value::Bool(key) => Ok(key.to_string()),
                Value::Number(key) => Ok(key.to_string()),
                Value::Null => Err(unsupported("a null key")),
                Value::Array(_) | Value::Object(_) => Err(unsupported("a collection as a key")),
            },
        }
    }
}

/// The string that a plain scalar is as a key; none for what no key can be.
pub(crate) fn plain_key(text: &str) -> Option<String> {
    Some(match resolve(text) {
        Scalar::Str => text.to_owned(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Bool(b) => b.to_string(),
        Scalar::Float(f) if f.is_finite() => go_float_key(f),
        Scalar::Null | Scalar::Float(_) | Scalar::Uint(_) => return None,
    })
}

/// Merges in the order of the text, a later source replacing an earlier one, as go-yaml v2 does; in a list of
/// sources the first one wins.
fn merge(
    value: Value,
    span: &Span,
    map: &mut Map<String, Value>,
    merged: &mut Map<String, Value>,
) -> Result<(), Error> {
    let sources = match value {
        Value::Array(sources) => sources,
        source => vec![source],
    };
    for source in sources.into_iter().rev() {
        let Value::Object(source) = source else {
            return Err(Error::Unsupported {
                line: line(span),
                message: "a merge key whose value is no mapping".to_owned(),
            });
        };
        for (key, value) in source {
            merged.insert(key.clone(), Value::Null);
            map.insert(key, value);
        }
    }
    Ok(())
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Result<Value, Error> {
    let unsupported = |message: String| Error::Unsupported {
        line: line(span),
        message,
    };
    let plain = style == ScalarStyle::Plain;
    let kind = match tag {
        None => None,
        Some(tag) => tag.suffix_in_namespace("tag:yaml.org,2002:"),
    };
    let resolved = match (kind.as_deref(), plain) {
        (None, true) if tag.is_none() => resolve(text),
        (None | Some("str" | "timestamp"), _) => Scalar::Str,
        (Some("binary"), _) => return Err(unsupported("!!binary".to_owned())),
        (Some(kind), _) => {
            let scalar = resolve(text);
            let fits = match (&scalar, kind) {
                (Scalar::Null, "null")
                | (Scalar::Bool(_), "bool")
                | (Scalar::Int(_) | Scalar::Uint(_), "int" | "float")
                | (Scalar::Float(_), "float") => true,
                (_, "null" | "bool" | "int" | "float") => false,
                _ => return Ok(Value::String(text.to_owned())),
            };
            if !fits {
                return Err(unsupported(format!("{text:?} is no !!{kind}")));
            }
            scalar
        }
    };
    resolved
        .into_json(text)
        .ok_or_else(|| unsupported(format!("{text} has no place in json")))
}
