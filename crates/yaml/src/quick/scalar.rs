//! Plain, literal and quoted scalars.

use super::Reader;
use crate::resolve::resolve;
use serde_json::Value;

impl<'t> Reader<'t> {
    /// Whether a plain scalar that is nothing special begins here.
    pub(super) fn is_plain_start(&self) -> bool {
        match self.byte(0) {
            Some(b'-') => !self.is_gap(1),
            Some(
                b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|'
                | b'>' | b'\'' | b'"' | b'%' | b'@' | b'`' | b' ' | b'\n',
            )
            | None => false,
            Some(_) => true,
        }
    }

    /// Whether this may be a further line of a plain scalar: in the middle of one, most characters mean nothing.
    fn may_continue(&self) -> bool {
        match self.byte(0) {
            Some(b'-' | b'?' | b':') => !self.is_gap(1),
            Some(b'%') | None => false,
            Some(_) => true,
        }
    }

    /// One line of a plain scalar, without the spaces at its end, and whether a comment follows on it.
    fn plain_line(&mut self) -> Option<(&'t str, bool)> {
        let line = self.line();
        let bytes = line.as_bytes();
        let mut end = bytes.len();
        for (i, byte) in bytes.iter().enumerate() {
            match byte {
                b':' if matches!(bytes.get(i + 1), None | Some(b' ')) => return None,
                b'#' if i > 0 && bytes[i - 1] == b' ' => {
                    end = i;
                    break;
                }
                _ => {}
            }
        }
        self.skip_line();
        Some((line[..end].trim_end_matches(' '), end < bytes.len()))
    }

    pub(super) fn plain(&mut self, floor: usize) -> Option<Value> {
        if !self.is_plain_start() {
            return None;
        }
        let (first, mut is_last) = self.plain_line()?;
        let mut folded: Option<String> = None;
        loop {
            let line_start = self.at;
            let mut breaks = 0;
            let mut indent = self.skip_spaces();
            while self.byte(0) == Some(b'\n') {
                self.at += 1;
                breaks += 1;
                indent = self.skip_spaces();
            }
            if matches!(self.byte(0), None | Some(b'#')) || indent < floor {
                self.at = line_start;
                self.advance();
                if self.indent.is_some_and(|indent| indent >= floor) {
                    return None;
                }
                let text = folded.as_deref().unwrap_or(first);
                return resolve(text).into_json(text);
            }
            if is_last || !self.may_continue() {
                return None;
            }
            let (line, has_comment) = self.plain_line()?;
            is_last = has_comment;
            let text = folded.get_or_insert_with(|| first.to_owned());
            fold(text, breaks);
            text.push_str(line);
        }
    }

    /// A literal block scalar. One that the text ends in the middle of a line is left to the scanner.
    pub(super) fn literal(&mut self, floor: usize) -> Option<String> {
        self.at += 1;
        let mut chomp = None;
        let mut explicit = None;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'-' | b'+' if chomp.is_none() => chomp = Some(byte),
                b'1'..=b'9' if explicit.is_none() && floor > 0 => {
                    explicit = Some(floor - 1 + usize::from(byte - b'0'));
                }
                _ => break,
            }
            self.at += 1;
        }
        let spaces = self.skip_spaces();
        match self.byte(0)? {
            b'\n' => {}
            b'#' if spaces > 0 => {}
            _ => return None,
        }
        self.skip_line();
        let mut text = String::new();
        let mut column = explicit;
        let mut breaks = 0;
        let mut deepest_blank = 0;
        loop {
            let start = self.at;
            let indent = self.skip_spaces();
            match self.byte(0) {
                None => {
                    // A last line of spaces, without a line break.
                    if indent > 0 {
                        return None;
                    }
                    break;
                }
                Some(b'\n') => {
                    deepest_blank = deepest_blank.max(indent);
                    let extra = column.map_or(0, |column| indent.saturating_sub(column));
                    if extra > 0 {
                        newlines(&mut text, breaks);
                        breaks = 0;
                        text.extend(std::iter::repeat_n(' ', extra));
                    }
                    self.at += 1;
                    breaks += 1;
                    continue;
                }
                Some(_) => {}
            }
            let column = match column {
                Some(column) => column,
                None if indent < floor => return None,
                None if deepest_blank > indent => return None,
                None => {
                    column = Some(indent);
                    indent
                }
            };
            if indent < column {
                self.at = start;
                break;
            }
            self.at = start + column;
            let line = self.line();
            if self.at + line.len() == self.text.len() {
                return None;
            }
            newlines(&mut text, breaks);
            text.push_str(line);
            breaks = 1;
            self.skip_line();
        }
        // Without a line of its own, what blank lines mean is left to the scanner.
        if text.is_empty() {
            return None;
        }
        match chomp {
            None => text.push('\n'),
            Some(b'+') => newlines(&mut text, breaks),
            Some(_) => {}
        }
        self.advance();
        Some(text)
    }

    pub(super) fn quoted_on_one_line(&mut self) -> Option<String> {
        let end = self.at + self.line().len();
        let text = self.quoted(usize::MAX)?;
        (self.at <= end).then_some(text)
    }

    /// A quoted scalar; its further lines begin at `floor` or further right.
    pub(super) fn quoted(&mut self, floor: usize) -> Option<String> {
        let quote = self.byte(0)?;
        self.at += 1;
        let mut text = String::new();
        // Up to here the text may not lose spaces: they were escaped.
        let mut kept = 0;
        loop {
            let rest = &self.text[self.at..];
            let special = |b: u8| b == quote || b == b'\n' || (b == b'\\' && quote == b'"');
            let run = rest.bytes().position(special)?;
            text.push_str(&rest[..run]);
            self.at += run;
            match self.byte(0)? {
                b'\n' => {
                    text.truncate(kept.max(text.trim_end_matches(' ').len()));
                    let mut breaks = 0;
                    loop {
                        self.at += 1;
                        let indent = self.skip_spaces();
                        match self.byte(0)? {
                            b'\n' => breaks += 1,
                            _ if indent < floor => return None,
                            _ => break,
                        }
                    }
                    fold(&mut text, breaks);
                    kept = text.len();
                }
                b'\\' if self.byte(1) == Some(b'\n') => {
                    self.at += 2;
                    let indent = self.skip_spaces();
                    if indent < floor || self.byte(0)? == b'\n' {
                        return None;
                    }
                    kept = text.len();
                }
                b'\\' => {
                    self.escape(&mut text)?;
                    kept = text.len();
                }
                _ if quote == b'\'' && self.byte(1) == Some(b'\'') => {
                    text.push('\'');
                    self.at += 2;
                }
                _ => {
                    self.at += 1;
                    return Some(text);
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        let digits = match self.byte(1)? {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            other => {
                text.push(match other {
                    b'n' => '\n',
                    b't' => '\t',
                    b'r' => '\r',
                    b'0' => '\0',
                    b'a' => '\u{7}',
                    b'b' => '\u{8}',
                    b'e' => '\u{1b}',
                    b'f' => '\u{c}',
                    b'v' => '\u{b}',
                    b'"' => '"',
                    b'\\' => '\\',
                    b'/' => '/',
                    b' ' => ' ',
                    _ => return None,
                });
                self.at += 2;
                return Some(());
            }
        };
        let code = self.text.get(self.at + 2..self.at + 2 + digits)?;
        if !code.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        self.at += 2 + digits;
        Some(())
    }
}

/// A line break within a folded scalar, followed by so many empty lines.
fn fold(text: &mut String, empty_lines: usize) {
    if empty_lines == 0 {
        text.push(' ');
    } else {
        newlines(text, empty_lines);
    }
}

fn newlines(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n('\n', count));
}
