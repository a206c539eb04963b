//! What Go's parser does and `gotmpl`'s does not: it demands that blocks are closed, functions exist, variables are declared and
//! `break` is inside `range`; and a comment trims white space only on the side of its `-`.

use super::parse::ParseError;
use crate::func;
use gotmpl::parse::{BranchNode, Expr, ListNode, Node, PipeNode, SmolStr};

fn error(line: usize, message: impl Into<String>) -> ParseError {
    ParseError {
        line,
        message: message.into(),
    }
}

/// An open block.
struct Open {
    keyword: &'static str,
    line: usize,
    else_seen: bool,
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Checks that every block is closed, and that `else` and `define` stand where they may. Returns the text to parse, in which no
/// comment trims: the white space it would trim is moved into it, so that lines keep their numbers.
pub(super) fn prepare(text: &str) -> Result<String, ParseError> {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<Open> = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        line += lines(&rest[..start]);
        let action = &rest[start + 2..];
        let trimmed = action.strip_prefix('-').filter(|b| b.starts_with(SPACE));
        let body = trimmed.unwrap_or(action);
        let len = action_len(body).ok_or_else(|| error(line, "unclosed action"))?;
        let words = &body[..len];
        out.push_str(&rest[..start]);
        if words.trim_start_matches(SPACE).starts_with("/*") {
            let after = &body[len..];
            let right = if words.ends_with("-}}") {
                after.len() - after.trim_start_matches(SPACE).len()
            } else {
                0
            };
            let kept = if trimmed.is_some() {
                out.trim_end_matches(SPACE).len()
            } else {
                out.len()
            };
            let left = out.split_off(kept);
            let comment = words.trim_start_matches(SPACE);
            let comment = &comment[2..comment.rfind("*/").unwrap_or(comment.len())];
            out.extend(["{{/*", left.as_str(), comment, &after[..right], "*/}}"]);
            let skipped = rest.len() - after.len() + right;
            line += lines(&rest[start..skipped]);
            rest = &rest[skipped..];
            continue;
        }
        let mut words = words
            .split(|c| SPACE.contains(&c) || matches!(c, '"' | '`' | '(' | '}'))
            .filter(|w| !w.is_empty());
        let keyword = words.next().unwrap_or("");
        match keyword {
            "if" | "range" | "with" | "block" | "define" => {
                if keyword == "define" && !open.is_empty() {
                    return Err(error(line, "unexpected {{define}}"));
                }
                let keyword = match keyword {
                    "if" => "if",
                    "range" => "range",
                    "with" => "with",
                    "block" => "block",
                    _ => "define",
                };
                open.push(Open {
                    keyword,
                    line,
                    else_seen: false,
                });
            }
            "end" => {
                open.pop()
                    .ok_or_else(|| error(line, "unexpected {{end}}"))?;
            }
            "else" => {
                let conditional = words.next().is_some_and(|w| w == "if" || w == "with");
                match open.last_mut() {
                    Some(block)
                        if matches!(block.keyword, "if" | "range" | "with") && !block.else_seen =>
                    {
                        block.else_seen = !conditional;
                    }
                    _ => return Err(error(line, "unexpected {{else}}")),
                }
            }
            _ => {}
        }
        let skipped = rest.len() - body.len() + len;
        line += lines(&rest[start..skipped]);
        out.push_str(&rest[start..skipped]);
        rest = &rest[skipped..];
    }
    out.push_str(rest);
    match open.pop() {
        None => Ok(out),
        Some(block) => Err(error(
            block.line,
            format!("{{{{{}}}}} is never closed", block.keyword),
        )),
    }
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}

/// Bytes up to and including the `}}` of an action.
fn action_len(body: &str) -> Option<usize> {
    let trimmed = body.trim_start_matches(SPACE);
    if let Some(comment) = trimmed.strip_prefix("/*") {
        let end = body.len() - comment.len() + comment.find("*/")? + 2;
        return Some(end + body[end..].find("}}")? + 2);
    }
    let bytes = body.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'}' if bytes.get(i + 1) == Some(&b'}') => return Some(i + 2),
            b'`' => i += 1 + body[i + 1..].find('`')?,
            quote @ (b'"' | b'\'') => {
                i += 1;
                while *bytes.get(i)? != quote {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        i += 1;
    }
    None
}

/// Checks the body of a file or a `define`.
pub(super) fn list(list: &ListNode) -> Result<(), ParseError> {
    Checker {
        vars: vec![SmolStr::new_static("$")],
        loops: 0,
    }
    .list(list)
}

struct Checker {
    vars: Vec<SmolStr>,
    loops: usize,
}

impl Checker {
    fn list(&mut self, list: &ListNode) -> Result<(), ParseError> {
        for node in &list.nodes {
            match node {
                Node::Text(_) | Node::Define(_) => {}
                Node::Action(action) => self.pipe(&action.pipe)?,
                Node::If(branch) | Node::With(branch) => self.branch(branch, 0)?,
                Node::Range(branch) => self.branch(branch, 1)?,
                Node::Template(call) => {
                    if let Some(pipe) = &call.pipe {
                        self.pipe(pipe)?;
                    }
                }
                Node::List(inner) => self.list(inner)?,
                Node::Break(pos) | Node::Continue(pos) => {
                    if self.loops == 0 {
                        return Err(error(
                            pos.line,
                            "{{break}} or {{continue}} outside {{range}}",
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn branch(&mut self, branch: &BranchNode, loops: usize) -> Result<(), ParseError> {
        let mark = self.vars.len();
        self.pipe(&branch.pipe)?;
        self.loops += loops;
        let in_body = self.vars.len();
        self.list(&branch.body)?;
        self.loops -= loops;
        self.vars.truncate(in_body);
        if let Some(list) = &branch.else_body {
            self.list(list)?;
        }
        self.vars.truncate(mark);
        Ok(())
    }

    fn pipe(&mut self, pipe: &PipeNode) -> Result<(), ParseError> {
        for (i, command) in pipe.commands.iter().enumerate() {
            for (j, arg) in command.args.iter().enumerate() {
                self.expr(arg)?;
                let literal = matches!(
                    arg,
                    Expr::Dot(_)
                        | Expr::Nil(_)
                        | Expr::Bool(..)
                        | Expr::Number(..)
                        | Expr::String(..)
                );
                if i > 0 && j == 0 && literal {
                    return Err(error(
                        pipe.pos.line,
                        format!("non executable command in pipeline stage {}", i + 1),
                    ));
                }
            }
        }
        for name in &pipe.decl {
            if !pipe.is_assign {
                self.vars.push(name.clone());
            } else if !self.vars.contains(name) {
                return Err(error(pipe.pos.line, format!("undefined variable {name:?}")));
            }
        }
        Ok(())
    }

    fn expr(&mut self, expr: &Expr) -> Result<(), ParseError> {
        match expr {
            Expr::Variable(pos, name, _) if !self.vars.contains(name) => Err(error(
                pos.line,
                format!("undefined variable {:?}", name.as_str()),
            )),
            Expr::Identifier(pos, name) if !func::exists(name) => Err(error(
                pos.line,
                format!("function {:?} not defined", name.as_str()),
            )),
            Expr::Pipe(_, pipe) => {
                let mark = self.vars.len();
                let result = self.pipe(pipe);
                self.vars.truncate(mark);
                result
            }
            Expr::Chain(_, inner, _) => self.expr(inner),
            _ => Ok(()),
        }
    }
}
