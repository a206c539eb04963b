//! Evaluates templates: Go's `text/template` with Helm's options (`missingkey=zero`), on the syntax tree of `gotmpl`.

mod check;
mod describe;
mod eval;
pub(crate) mod format;
pub(crate) mod native;
mod parse;
pub(crate) mod value;

pub(crate) use parse::{Parsed, parse};

use crate::error::RenderError;
use crate::limits::{Budget, Exceeded};
use gotmpl::parse::{BranchNode, ListNode, Node, SmolStr, TemplateNode};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use value::Value;

/// The body of a file or of a `define`, and where it was written.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) name: Arc<str>,
    pub(crate) file: Arc<str>,
    pub(crate) list: ListNode,
}

/// Named templates. `tpl` adds a scope of its own, which sees the outer ones.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    parent: Option<Rc<Self>>,
    bodies: BTreeMap<Arc<str>, Arc<Body>>,
}

impl Scope {
    /// Adds templates as Go does: a later one replaces an earlier one of that name, unless it is blank.
    pub(crate) fn add(&mut self, body: &Arc<Body>) {
        if !body.list.is_empty_tree() || !self.bodies.contains_key(&body.name) {
            self.bodies.insert(Arc::clone(&body.name), Arc::clone(body));
        }
    }

    fn get(&self, name: &str) -> Option<&Arc<Body>> {
        self.bodies
            .get(name)
            .or_else(|| self.parent.as_ref()?.get(name))
    }
}

/// A failure on its way up to where its place is known.
#[derive(Debug)]
pub(crate) enum Fail {
    /// An error of the evaluator.
    Message(String),
    /// An error a function returned.
    Call(String),
    /// `fail` or `required`.
    Refused(String),
    Exceeded(Exceeded),
    /// With its place.
    Located(Box<RenderError>),
}

impl From<Exceeded> for Fail {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl Fail {
    pub(crate) fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }

    pub(crate) fn call(text: impl Into<String>) -> Self {
        Self::Call(text.into())
    }
}

/// Where a loop body left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The variables of one template invocation.
struct Frame {
    vars: Vec<(SmolStr, Value)>,
}

impl Frame {
    fn set(&mut self, name: &str, value: Value) -> Result<(), Fail> {
        match self.vars.iter_mut().rev().find(|(n, _)| n == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => Err(Fail::message(format!("undefined variable: {name}"))),
        }
    }

    fn get(&self, name: &str) -> Result<Value, Fail> {
        match self.vars.iter().rev().find(|(n, _)| n == name) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(Fail::message(format!("undefined variable: {name}"))),
        }
    }

    /// Sets the `n`th variable from the top.
    fn set_top(&mut self, n: usize, value: Value) {
        let len = self.vars.len();
        if let Some((_, slot)) = len.checked_sub(n).and_then(|i| self.vars.get_mut(i)) {
            *slot = value;
        }
    }
}

/// One render.
pub(crate) struct Engine {
    pub(crate) budget: Budget,
    /// What `fromYaml` has read.
    pub(crate) read: ReadTexts,
    scope: Rc<Scope>,
    depth: usize,
    /// The template being executed, and the line.
    body: Arc<Body>,
    line: usize,
}

/// Values by the text they were read from, of long texts only.
#[derive(Default)]
pub(crate) struct ReadTexts {
    values: BTreeMap<Rc<str>, Value>,
    bytes: usize,
}

impl ReadTexts {
    const SHORTEST: usize = 2 << 10;
    const MOST_BYTES: usize = 8 << 20;

    pub(crate) fn get(&self, text: &str) -> Option<&Value> {
        if text.len() < Self::SHORTEST {
            return None;
        }
        self.values.get(text)
    }

    /// Whether a text would be kept.
    pub(crate) fn takes(&self, text: &str) -> bool {
        (Self::SHORTEST..=Self::MOST_BYTES - self.bytes).contains(&text.len())
    }

    /// Keeps a value that no template has seen: what they get are copies.
    pub(crate) fn keep(&mut self, text: Rc<str>, value: Value) {
        self.bytes += text.len();
        self.values.insert(text, value);
    }
}

impl Engine {
    pub(crate) fn new(scope: Scope, budget: Budget) -> Self {
        let nowhere: Arc<str> = Arc::from("");
        let list = ListNode {
            pos: gotmpl::parse::Pos::new(0, 0),
            nodes: Vec::new(),
        };
        Self {
            budget,
            read: ReadTexts::default(),
            scope: Rc::new(scope),
            depth: 0,
            body: Arc::new(Body {
                name: Arc::clone(&nowhere),
                file: nowhere,
                list,
            }),
            line: 0,
        }
    }

    /// Executes a file.
    pub(crate) fn execute(&mut self, body: &Arc<Body>, root: Value) -> Result<String, RenderError> {
        let mut out = String::new();
        let result = self
            .run(body, root, &mut out)
            .and_then(|()| Ok(self.budget.output(out.len())?))
            .map_err(|fail| self.locate(fail, 0, String::new));
        match result {
            Ok(()) => Ok(without_no_value(out)),
            Err(Fail::Located(error)) => Err(*error),
            Err(fail) => Err(RenderError::Template {
                template: body.file.to_string(),
                line: 0,
                expression: String::new(),
                message: format!("{fail:?}"),
                included_from: Vec::new(),
            }),
        }
    }

    /// Executes a named template, as `include` does.
    pub(crate) fn include(&mut self, name: &str, dot: Value) -> Result<String, Fail> {
        let Some(body) = self.scope.get(name).cloned() else {
            return Err(Fail::call(format!(
                "template: no template {name:?} associated with template \"gotpl\""
            )));
        };
        let mut out = String::new();
        self.nested(&body, dot, &mut out)?;
        Ok(out)
    }

    /// Executes a text as a template, as `tpl` does.
    pub(crate) fn tpl(&mut self, text: &str, dot: Value) -> Result<String, Fail> {
        self.budget.steps(text.len() / 16)?;
        let file = format!("{} (tpl)", self.body.file);
        let parsed = parse(&file, &file, text).map_err(|e| {
            Fail::call(format!(
                "cannot parse template {text:?}: line {}: {}",
                e.line, e.message
            ))
        })?;
        let mut scope = Scope {
            parent: Some(Rc::clone(&self.scope)),
            bodies: BTreeMap::new(),
        };
        for body in &parsed.defines {
            scope.add(body);
        }
        let outer = std::mem::replace(&mut self.scope, Rc::new(scope));
        let mut out = String::new();
        let result = self.nested(&parsed.main, dot, &mut out);
        self.scope = outer;
        result.map(|()| without_no_value(out))
    }

    /// Runs a template called from another one; a failure is told where the call was.
    fn nested(&mut self, body: &Arc<Body>, dot: Value, out: &mut String) -> Result<(), Fail> {
        let (caller, line) = (Arc::clone(&self.body), self.line);
        let result = self.run(body, dot, out);
        self.line = line;
        result.map_err(|mut fail| {
            if let Fail::Located(error) = &mut fail
                && let RenderError::Template { included_from, .. }
                | RenderError::Refused { included_from, .. } = &mut **error
            {
                included_from.push(format!("{}:{line}", caller.file));
            }
            fail
        })
    }

    fn run(&mut self, body: &Arc<Body>, dot: Value, out: &mut String) -> Result<(), Fail> {
        self.depth += 1;
        let outer = std::mem::replace(&mut self.body, Arc::clone(body));
        let result = self.run_inner(body, dot, out);
        self.depth -= 1;
        self.body = outer;
        result
    }

    fn run_inner(&mut self, body: &Arc<Body>, dot: Value, out: &mut String) -> Result<(), Fail> {
        let line = body.list.pos.line;
        self.budget
            .depth(self.depth)
            .map_err(|e| self.locate(e.into(), line, String::new))?;
        let dot = dot.unwrapped();
        let mut frame = Frame {
            vars: vec![(SmolStr::new_static("$"), dot.clone())],
        };
        self.walk(&mut frame, &dot, &body.list, out)?;
        Ok(())
    }

    /// Gives a failure its place, if it has none yet.
    fn locate(&self, fail: Fail, line: usize, expression: impl FnOnce() -> String) -> Fail {
        let template = || self.body.file.to_string();
        let error = match fail {
            Fail::Located(error) => return Fail::Located(error),
            Fail::Message(message) | Fail::Call(message) => RenderError::Template {
                template: template(),
                line,
                expression: expression(),
                message,
                included_from: Vec::new(),
            },
            Fail::Refused(message) => RenderError::Refused {
                template: template(),
                line,
                message,
                included_from: Vec::new(),
            },
            Fail::Exceeded(Exceeded { what, limit }) => RenderError::Limit {
                template: template(),
                line,
                what,
                limit,
            },
        };
        Fail::Located(Box::new(error))
    }

    fn walk(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        list: &ListNode,
        out: &mut String,
    ) -> Result<Flow, Fail> {
        for node in &list.nodes {
            let flow = self.node(frame, dot, node, out)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        node: &Node,
        out: &mut String,
    ) -> Result<Flow, Fail> {
        match node {
            Node::Text(text) => {
                let line = text.pos.line;
                out.push_str(&text.text);
                self.charge(1 + text.text.len() / 256, out.len(), line)?;
            }
            Node::Action(action) => {
                let line = action.pos.line;
                self.charge(1, out.len(), line)?;
                let value = self.pipeline(frame, dot, &action.pipe)?;
                if action.pipe.decl.is_empty() {
                    format::print(out, &value, &self.budget).map_err(|e| {
                        self.locate(e.into(), line, || describe::pipe(&action.pipe))
                    })?;
                    self.charge(0, out.len(), line)?;
                }
            }
            Node::If(branch) => return self.branch(frame, dot, branch, false, out),
            Node::With(branch) => return self.branch(frame, dot, branch, true, out),
            Node::Range(range) => return self.range(frame, dot, range, out),
            Node::Template(call) => self.template(frame, dot, call, out)?,
            Node::List(list) => return self.walk(frame, dot, list, out),
            Node::Define(_) => {}
            Node::Break(_) => return Ok(Flow::Break),
            Node::Continue(_) => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn charge(&self, steps: usize, out_len: usize, line: usize) -> Result<(), Fail> {
        self.budget
            .steps(steps)
            .and_then(|()| self.budget.fits(out_len))
            .map_err(|e| self.locate(e.into(), line, String::new))
    }

    fn branch(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        branch: &BranchNode,
        sets_dot: bool,
        out: &mut String,
    ) -> Result<Flow, Fail> {
        let mark = frame.vars.len();
        self.charge(1, 0, branch.pos.line)?;
        let value = self.pipeline(frame, dot, &branch.pipe)?;
        let flow = if value.truth() {
            let inner = if sets_dot { &value } else { dot };
            self.walk(frame, inner, &branch.body, out)
        } else if let Some(list) = &branch.else_body {
            self.walk(frame, dot, list, out)
        } else {
            Ok(Flow::Next)
        };
        frame.vars.truncate(mark);
        flow
    }

    fn range(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        range: &BranchNode,
        out: &mut String,
    ) -> Result<Flow, Fail> {
        let outer_mark = frame.vars.len();
        let line = range.pos.line;
        let value = self.pipeline(frame, dot, &range.pipe)?;
        let items = eval::items(&value, range.pipe.decl.len())
            .map_err(|fail| self.locate(fail, line, || describe::pipe(&range.pipe)))?;
        let mark = frame.vars.len();
        let mut any = false;
        for (index, item) in items {
            any = true;
            self.budget
                .iteration()
                .map_err(|e| self.locate(e.into(), line, || describe::pipe(&range.pipe)))?;
            self.charge(1, 0, line)?;
            match range.pipe.decl.as_slice() {
                [] => {}
                [one] if range.pipe.is_assign => frame.set(one, item.clone())?,
                [first, second, ..] if range.pipe.is_assign => {
                    frame.set(first, index)?;
                    frame.set(second, item.clone())?;
                }
                [_] => frame.set_top(1, item.clone()),
                [_, _, ..] => {
                    frame.set_top(1, item.clone());
                    frame.set_top(2, index);
                }
            }
            let flow = self.walk(frame, &item, &range.body, out)?;
            frame.vars.truncate(mark);
            if flow == Flow::Break {
                break;
            }
        }
        frame.vars.truncate(outer_mark);
        match &range.else_body {
            Some(list) if !any => self.walk(frame, dot, list, out),
            _ => Ok(Flow::Next),
        }
    }

    fn template(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        call: &TemplateNode,
        out: &mut String,
    ) -> Result<(), Fail> {
        let line = call.pos.line;
        self.charge(1, 0, line)?;
        let Some(body) = self.scope.get(&call.name).cloned() else {
            let fail = Fail::message(format!("template {:?} not defined", call.name));
            return Err(self.locate(fail, line, || format!("template {:?}", call.name)));
        };
        let dot = match &call.pipe {
            Some(pipe) => self.pipeline(frame, dot, pipe)?,
            None => Value::Invalid,
        };
        self.line = line;
        self.nested(&body, dot, out)
    }
}

/// Helm strips what Go prints for a missing value.
fn without_no_value(text: String) -> String {
    if text.contains("<no value>") {
        text.replace("<no value>", "")
    } else {
        text
    }
}
