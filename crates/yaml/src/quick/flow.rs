//! Flow collections on one line.

use super::{MAX_KEY, Reader};
use crate::compose::{self, Duplicates, MAX_DEPTH};
use crate::resolve::resolve;
use serde_json::{Map, Value};

impl<'t> Reader<'t> {
    /// A flow collection on one line, of quoted and of the simplest plain scalars.
    pub(super) fn flow(&mut self, depth: usize) -> Option<Value> {
        if depth + 2 > MAX_DEPTH {
            return None;
        }
        self.count()?;
        let is_map = self.byte(0)? == b'{';
        self.at += 1;
        let mut map = Map::new();
        let mut items = Vec::new();
        let close = if is_map { b'}' } else { b']' };
        self.skip_spaces();
        if self.byte(0)? != close {
            loop {
                if is_map {
                    self.count()?;
                    let start = self.at;
                    let key = match self.byte(0)? {
                        b'"' | b'\'' => self.quoted_on_one_line()?,
                        _ => compose::plain_key(self.flow_word()?)?,
                    };
                    if self.at - start > MAX_KEY || self.byte(0)? != b':' || self.byte(1)? != b' ' {
                        return None;
                    }
                    self.at += 1;
                    self.skip_spaces();
                    let value = self.flow_value(depth + 1)?;
                    if map.insert(key, value).is_some() && self.duplicates == Duplicates::Reject {
                        return None;
                    }
                } else {
                    let value = self.flow_value(depth + 1)?;
                    items.push(value);
                }
                self.skip_spaces();
                match self.byte(0)? {
                    b',' => {
                        self.at += 1;
                        self.skip_spaces();
                    }
                    byte if byte == close => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        Some(if is_map {
            Value::Object(map)
        } else {
            Value::Array(items)
        })
    }

    fn flow_value(&mut self, depth: usize) -> Option<Value> {
        match self.byte(0)? {
            b'{' | b'[' => self.flow(depth),
            b'"' | b'\'' => {
                self.count()?;
                self.quoted_on_one_line().map(Value::String)
            }
            _ => {
                self.count()?;
                let word = self.flow_word()?;
                resolve(word).into_json(word)
            }
        }
    }

    /// A plain scalar of characters that mean nothing in a flow.
    fn flow_word(&mut self) -> Option<&'t str> {
        let rest = &self.text[self.at..];
        let is_word =
            |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-' | b'+');
        let len = rest.bytes().take_while(|b| is_word(b)).count();
        let word = &rest[..len];
        if len == 0 || len > MAX_KEY || !word.as_bytes()[0].is_ascii_alphanumeric() {
            return None;
        }
        self.at += len;
        Some(word)
    }
}
