//! A quick reader for the YAML that programs write, and most people: block mappings and sequences, plain, quoted and
//! literal scalars, flow collections on one line.
//!
//! It never errs: of whatever it is not sure about (anchors, tags, tabs, folded scalars, broken text ...) it says so, and
//! the scanner of [`compose`](crate::compose) decides. What it does read, it reads as the scanner would; tests hold it to
//! that. It is there because a release of Istio has a megabyte of CRDs, which a hook reads several times.

mod flow;
mod scalar;

use crate::compose::{self, Duplicates, MAX_DEPTH, MAX_NODES};
use serde_json::{Map, Value};

/// Longer keys are left to the scanner, which has a limit for them.
const MAX_KEY: usize = 512;

/// Every document, empty ones included as `null`; none if the scanner must decide about all of it.
pub(crate) fn documents(text: &str, duplicates: Duplicates) -> Option<Vec<Value>> {
    let mut documents = Vec::new();
    let mut nodes = 0;
    for part in parts(text) {
        if let Ok(document) = Reader::read(part, duplicates, &mut nodes) {
            documents.extend(document);
        } else {
            let (scanned, count) = compose::counted_documents(part, duplicates).ok()?;
            documents.extend(scanned);
            nodes += count;
        }
        if nodes > MAX_NODES {
            return None;
        }
    }
    Some(documents)
}

/// The first document, `null` if there is none; none if the scanner must decide.
pub(crate) fn first_document(text: &str, duplicates: Duplicates) -> Option<Value> {
    for part in parts(text) {
        if let Some(document) = Reader::read(part, duplicates, &mut 0).ok()? {
            return Some(document);
        }
    }
    Some(Value::Null)
}

/// Cuts a stream before each line that begins a document, which in no style a line within one can be: the documents'
/// texts, each to be read on its own. Some may be empty.
pub fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        for (at, _) in text.match_indices("\n---") {
            if matches!(text.as_bytes().get(at + 4), None | Some(b' ' | b'\n')) {
                rest = Some(&text[at + 1..]);
                return Some(&text[..=at]);
            }
        }
        rest = None;
        Some(text)
    })
}

/// Reads one document. The innermost invariant: between nodes, `at` is at the first character of a line that has content,
/// or of a nested block that begins in the middle of one; `indent` is its column, or none at the end.
///
/// Every function that gives an [`Option`] gives none for "not sure".
struct Reader<'t> {
    text: &'t str,
    at: usize,
    indent: Option<usize>,
    duplicates: Duplicates,
    nodes: usize,
}

/// The reader is not sure.
#[derive(Debug, PartialEq)]
struct Unsure;

/// A key that was read, or the news that there is none.
enum Key {
    Is(String),
    None,
}

impl<'t> Reader<'t> {
    /// The document of a part: none of an empty part that no `---` begins.
    fn read(
        text: &'t str,
        duplicates: Duplicates,
        nodes: &mut usize,
    ) -> Result<Option<Value>, Unsure> {
        if !is_simple(text) {
            return Err(Unsure);
        }
        let mut reader = Self {
            text,
            at: 0,
            indent: None,
            duplicates,
            nodes: *nodes,
        };
        let marked =
            text.starts_with("---") && matches!(text.as_bytes().get(3), None | Some(b' ' | b'\n'));
        if marked {
            reader.at = 3;
            reader.end_of_line().ok_or(Unsure)?;
        } else {
            reader.advance();
        }
        let document = match reader.indent {
            None if marked => Some(reader.null().ok_or(Unsure)?),
            None => None,
            Some(indent) => Some(reader.block(indent, 0, 0).ok_or(Unsure)?),
        };
        if reader.indent.is_some() {
            return Err(Unsure);
        }
        *nodes = reader.nodes;
        Ok(document)
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    /// Whether the character at an offset is a space, a line break or the end.
    fn is_gap(&self, offset: usize) -> bool {
        matches!(self.byte(offset), None | Some(b' ' | b'\n'))
    }

    /// The rest of the line.
    fn line(&self) -> &'t str {
        let rest = &self.text[self.at..];
        rest.find('\n').map_or(rest, |end| &rest[..end])
    }

    fn skip_spaces(&mut self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let spaces = rest.iter().take_while(|b| **b == b' ').count();
        self.at += spaces;
        spaces
    }

    fn skip_line(&mut self) {
        self.at = (self.at + self.line().len() + 1).min(self.text.len());
    }

    /// From the start of a line to the next content.
    fn advance(&mut self) {
        loop {
            let indent = self.skip_spaces();
            match self.byte(0) {
                None => {
                    self.indent = None;
                    return;
                }
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(_) => {
                    self.indent = Some(indent);
                    return;
                }
            }
        }
    }

    /// Nothing but a comment may follow on this line; then on to the next content.
    fn end_of_line(&mut self) -> Option<()> {
        let spaces = self.skip_spaces();
        match self.byte(0) {
            None | Some(b'\n') => {}
            Some(b'#') if spaces > 0 => {}
            Some(_) => return None,
        }
        self.skip_line();
        self.advance();
        Some(())
    }

    fn count(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= MAX_NODES).then_some(())
    }

    fn is_dash(&self) -> bool {
        self.byte(0) == Some(b'-') && self.is_gap(1)
    }

    /// A node whose first character is at `column`. Lines that continue it begin at `floor` or further right.
    fn block(&mut self, column: usize, floor: usize, depth: usize) -> Option<Value> {
        if depth + 2 > MAX_DEPTH {
            return None;
        }
        if self.is_dash() {
            return self.sequence(column, depth);
        }
        match self.key()? {
            Key::Is(key) => self.mapping(key, column, depth),
            Key::None => self.scalar(floor, depth),
        }
    }

    fn sequence(&mut self, column: usize, depth: usize) -> Option<Value> {
        self.count()?;
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let spaces = self.skip_spaces();
            items.push(match self.byte(0) {
                None | Some(b'\n' | b'#') => {
                    self.skip_line();
                    self.advance();
                    match self.indent {
                        Some(indent) if indent > column => {
                            self.block(indent, column + 1, depth + 1)?
                        }
                        _ => self.null()?,
                    }
                }
                Some(_) => self.block(column + 1 + spaces, column + 1, depth + 1)?,
            });
            match self.indent {
                Some(indent) if indent == column && self.is_dash() => {}
                Some(indent) if indent > column => return None,
                _ => return Some(Value::Array(items)),
            }
        }
    }

    fn mapping(&mut self, first: String, column: usize, depth: usize) -> Option<Value> {
        self.count()?;
        let mut map = Map::new();
        let mut key = first;
        loop {
            self.count()?;
            let value = self.value(column, depth + 1)?;
            if map.insert(key, value).is_some() && self.duplicates == Duplicates::Reject {
                return None;
            }
            match self.indent {
                Some(indent) if indent == column && !self.is_dash() => {}
                Some(indent) if indent >= column => return None,
                _ => return Some(Value::Object(map)),
            }
            match self.key()? {
                Key::Is(next) => key = next,
                Key::None => return None,
            }
        }
    }

    /// What follows the colon of a key at `column`.
    fn value(&mut self, column: usize, depth: usize) -> Option<Value> {
        let spaces = self.skip_spaces();
        match self.byte(0) {
            None | Some(b'\n') => {}
            Some(b'#') if spaces > 0 => {}
            Some(_) => return self.scalar(column + 1, depth),
        }
        self.skip_line();
        self.advance();
        match self.indent {
            Some(indent) if indent > column => self.block(indent, column + 1, depth),
            Some(indent) if indent == column && self.is_dash() => {
                if depth + 2 > MAX_DEPTH {
                    return None;
                }
                self.sequence(column, depth)
            }
            _ => self.null(),
        }
    }

    fn null(&mut self) -> Option<Value> {
        self.count()?;
        Some(Value::Null)
    }

    /// Reads `key:`, if that is what comes next.
    fn key(&mut self) -> Option<Key> {
        let start = self.at;
        let text = match self.byte(0)? {
            b'"' | b'\'' => {
                let Some(text) = self.quoted_on_one_line() else {
                    self.at = start;
                    return Some(Key::None);
                };
                if self.byte(0) != Some(b':') || !self.is_gap(1) {
                    self.at = start;
                    return Some(Key::None);
                }
                self.at += 1;
                text
            }
            b'{' | b'[' | b'|' | b'>' => return Some(Key::None),
            _ => {
                if !self.is_plain_start() {
                    return None;
                }
                let line = self.line().as_bytes();
                let end = line.iter().enumerate().position(|(i, byte)| match byte {
                    b':' => matches!(line.get(i + 1), None | Some(b' ')),
                    b'#' => i > 0 && line[i - 1] == b' ',
                    _ => false,
                });
                let Some(end) = end.filter(|end| line[*end] == b':') else {
                    return Some(Key::None);
                };
                let text = &self.text[start..start + end];
                if text.ends_with(' ') || text == "<<" {
                    return None;
                }
                self.at += end + 1;
                compose::plain_key(text)?
            }
        };
        (self.at - start <= MAX_KEY).then_some(Key::Is(text))
    }

    fn scalar(&mut self, floor: usize, depth: usize) -> Option<Value> {
        match self.byte(0)? {
            b'|' => {
                self.count()?;
                self.literal(floor).map(Value::String)
            }
            b'"' | b'\'' => {
                self.count()?;
                let text = self.quoted(floor)?;
                self.end_of_line()?;
                Some(Value::String(text))
            }
            b'{' | b'[' => {
                let value = self.flow(depth)?;
                self.end_of_line()?;
                Some(value)
            }
            _ => {
                self.count()?;
                self.plain(floor)
            }
        }
    }
}

/// Whether a text has no characters about which readers of YAML disagree (tabs, other control characters and line breaks,
/// marks of byte order), and no line that ends a document.
fn is_simple(text: &str) -> bool {
    let is_plain_ascii = |b: &u8| *b == b'\n' || (b' '..0x7f).contains(b);
    let is_plain = |c: char| match c {
        '\n' | ' '..='\x7e' => true,
        '\0'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    };
    (text.as_bytes().iter().all(is_plain_ascii) || text.chars().all(is_plain))
        && !text.starts_with("...")
        && !text.contains("\n...")
}

#[cfg(test)]
mod tests;
