//! Pipelines, commands, fields and calls.

use super::native::{Member, Native};
use super::value::{MapKind, Value};
use super::{Engine, Fail, Frame, describe};
use crate::func::{self, Call};
use gotmpl::parse::{CommandNode, Expr, Number, PipeNode, SmolStr};
use std::rc::Rc;

/// What a `range` runs over: pairs of index (or key) and item.
pub(super) fn items(value: &Value, variables: usize) -> Result<Vec<(Value, Value)>, Fail> {
    let numbered = |items: &mut dyn Iterator<Item = Value>| -> Vec<(Value, Value)> {
        (0_i64..)
            .zip(items)
            .map(|(i, item)| (Value::Int(i), item))
            .collect()
    };
    Ok(match value {
        Value::Invalid | Value::Nil => Vec::new(),
        Value::List(list) => numbered(&mut list.0.iter().cloned()),
        Value::Bytes(bytes) => numbered(&mut bytes.iter().map(|b| Value::Int(i64::from(*b)))),
        Value::Map(map) => map
            .entries
            .borrow()
            .iter()
            .map(|(key, item)| (Value::Str(Rc::clone(key)), item.clone()))
            .collect(),
        Value::Native(Native::Files(files)) => files
            .iter()
            .map(|(name, data)| (Value::Str(Rc::clone(name)), Value::Bytes(Rc::clone(data))))
            .collect(),
        Value::Native(Native::ApiVersions(caps)) => {
            numbered(&mut caps.api_versions.iter().map(|version| Value::str(version)))
        }
        Value::Int(n) if variables > 1 => {
            return Err(Fail::message(format!(
                "can't use {n} to iterate over more than one variable"
            )));
        }
        Value::Int(n) => {
            let n = (*n).clamp(0, i64::from(u32::MAX));
            let Ok(len) = usize::try_from(n) else {
                return Ok(Vec::new());
            };
            if len > 10_000_000 {
                return Err(Fail::message(format!("{n} is too much to iterate over")));
            }
            (0..n).map(|i| (Value::Invalid, Value::Int(i))).collect()
        }
        Value::Bool(_) | Value::Float(_) | Value::Str(_) | Value::Native(_) => {
            return Err(Fail::message(format!(
                "range can't iterate over a {}",
                value.go_type()
            )));
        }
    })
}

/// The value a pipeline hands to the next command, if any.
type Piped = Option<Value>;

impl Engine {
    pub(super) fn pipeline(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        pipe: &PipeNode,
    ) -> Result<Value, Fail> {
        let mut piped: Piped = None;
        for command in &pipe.commands {
            self.line = command.pos.line;
            piped = Some(self.command(frame, dot, command, piped)?.unwrapped());
        }
        let value = piped.unwrap_or(Value::Invalid);
        for name in &pipe.decl {
            if pipe.is_assign {
                frame
                    .set(name, value.clone())
                    .map_err(|f| self.locate(f, pipe.pos.line, || describe::pipe(pipe)))?;
            } else {
                frame.vars.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    fn command(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        command: &CommandNode,
        piped: Piped,
    ) -> Result<Value, Fail> {
        let Some((word, args)) = command.args.split_first() else {
            let fail = Fail::message("empty command");
            return Err(self.locate(fail, command.pos.line, String::new));
        };
        let line = word.pos().line;
        let has_args = !args.is_empty() || piped.is_some();
        let result = match word {
            Expr::Field(_, fields) => self.fields(frame, dot, dot.clone(), fields, args, piped),
            Expr::Chain(_, inner, fields) => {
                let receiver = self.arg(frame, dot, inner)?;
                self.fields(frame, dot, receiver, fields, args, piped)
            }
            Expr::Variable(_, name, fields) => match frame.get(name) {
                Ok(receiver) if !fields.is_empty() => {
                    self.fields(frame, dot, receiver, fields, args, piped)
                }
                Ok(_) if has_args => Err(Fail::message(format!(
                    "can't give argument to non-function {name}"
                ))),
                other => other,
            },
            Expr::Identifier(_, name) => {
                let result = self.function(frame, dot, name, args, piped);
                return result
                    .map_err(|fail| self.locate(fail, line, || describe_command(command)));
            }
            _ if has_args => Err(Fail::message(format!(
                "can't give argument to non-function {}",
                describe::expr(word)
            ))),
            Expr::Pipe(_, pipe) => self.pipeline(frame, dot, pipe),
            Expr::Nil(_) => Err(Fail::message("nil is not a command")),
            Expr::Dot(_) | Expr::String(..) | Expr::Number(..) | Expr::Bool(..) => {
                self.arg(frame, dot, word)
            }
        };
        result.map_err(|fail| self.locate(fail, line, || describe::expr(word)))
    }

    /// An operand: a literal, a field, or a call without arguments.
    fn arg(&mut self, frame: &mut Frame, dot: &Value, expr: &Expr) -> Result<Value, Fail> {
        let result = match expr {
            Expr::Dot(_) => Ok(dot.clone()),
            Expr::Nil(_) => Ok(Value::Nil),
            Expr::Bool(_, b) => Ok(Value::Bool(*b)),
            Expr::String(_, text) => Ok(Value::str(text)),
            Expr::Number(_, Number::Int(n)) => Ok(Value::Int(*n)),
            Expr::Number(_, Number::Float(n)) => Ok(Value::Float(*n)),
            Expr::Number(_, Number::Uint(n)) => Err(Fail::message(format!("{n} overflows int"))),
            Expr::Field(_, fields) => self.fields(frame, dot, dot.clone(), fields, &[], None),
            Expr::Variable(_, name, fields) => frame
                .get(name)
                .and_then(|value| self.fields(frame, dot, value, fields, &[], None)),
            Expr::Identifier(_, name) => self.function(frame, dot, name, &[], None),
            Expr::Pipe(_, pipe) => self.pipeline(frame, dot, pipe),
            Expr::Chain(_, inner, fields) => {
                let receiver = self.arg(frame, dot, inner)?;
                self.fields(frame, dot, receiver, fields, &[], None)
            }
        };
        result.map_err(|fail| self.locate(fail, expr.pos().line, || describe::expr(expr)))
    }

    /// Follows `.a.b.c` from a receiver; arguments go to the last one, which then must be a method.
    fn fields(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        mut receiver: Value,
        fields: &[SmolStr],
        args: &[Expr],
        piped: Piped,
    ) -> Result<Value, Fail> {
        let Some((last, path)) = fields.split_last() else {
            return Ok(receiver);
        };
        self.budget.steps(fields.len())?;
        for field in path {
            receiver = self.field(frame, dot, &receiver, field, &[], None)?;
        }
        self.field(frame, dot, &receiver, last, args, piped)
    }

    fn field(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        receiver: &Value,
        name: &str,
        args: &[Expr],
        piped: Piped,
    ) -> Result<Value, Fail> {
        let has_args = !args.is_empty() || piped.is_some();
        let not_a_method = || Fail::message(format!("{name} is not a method but has arguments"));
        match receiver {
            Value::Invalid => Ok(Value::Invalid),
            Value::Nil => Err(Fail::message(format!(
                "nil pointer evaluating interface {{}}.{name}"
            ))),
            Value::Map(map) if map.kind == MapKind::Values && name == "AsMap" && !has_args => {
                Ok(receiver.clone())
            }
            Value::Map(_) if has_args => Err(not_a_method()),
            Value::Map(map) => Ok(map.get(name)),
            Value::Native(native) => match native.member(name) {
                Member::Field(_) if has_args => Err(not_a_method()),
                Member::Field(value) => Ok(value),
                Member::Method(arity) => {
                    let mut values = self.args(frame, dot, args)?;
                    values.extend(piped);
                    if values.len() != arity {
                        return Err(Fail::message(format!(
                            "wrong number of args for {name}: want {arity} got {}",
                            values.len()
                        )));
                    }
                    let mut texts = Vec::new();
                    for value in &values {
                        texts.push(func::expect_str(value)?);
                    }
                    Ok(native.call(name, &texts))
                }
                Member::None => Err(no_field(name, receiver)),
            },
            _ => Err(no_field(name, receiver)),
        }
    }

    fn args(&mut self, frame: &mut Frame, dot: &Value, args: &[Expr]) -> Result<Vec<Value>, Fail> {
        let mut values = Vec::with_capacity(args.len() + 1);
        for arg in args {
            values.push(self.arg(frame, dot, arg)?);
        }
        Ok(values)
    }

    fn function(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        name: &str,
        args: &[Expr],
        piped: Piped,
    ) -> Result<Value, Fail> {
        if name == "and" || name == "or" {
            return self.and_or(frame, dot, name, args, piped);
        }
        let Some(function) = func::lookup(name) else {
            return Err(Fail::message(format!("{name:?} is not a defined function")));
        };
        let mut values = self.args(frame, dot, args)?;
        values.extend(piped);
        function.check_arity(name, values.len())?;
        self.budget.steps(1)?;
        let result = (function.run)(&mut Call {
            engine: self,
            args: values,
        });
        let value = result.map_err(|fail| match fail {
            Fail::Call(message) => Fail::Message(format!("error calling {name}: {message}")),
            other => other,
        })?;
        if let Value::Str(text) = &value {
            self.budget.string(text.len())?;
        }
        Ok(value)
    }

    /// `and` and `or` evaluate no more operands than they need, and return an operand.
    fn and_or(
        &mut self,
        frame: &mut Frame,
        dot: &Value,
        name: &str,
        args: &[Expr],
        piped: Piped,
    ) -> Result<Value, Fail> {
        if args.is_empty() && piped.is_none() {
            return Err(Fail::message(format!(
                "wrong number of args for {name}: want at least 1 got 0"
            )));
        }
        let mut value = Value::Invalid;
        for arg in args {
            value = self.arg(frame, dot, arg)?;
            if value.truth() == (name == "or") {
                return Ok(value);
            }
        }
        Ok(piped.unwrap_or(value))
    }
}

fn no_field(name: &str, receiver: &Value) -> Fail {
    Fail::message(format!(
        "can't evaluate field {name} in type {}",
        receiver.go_type()
    ))
}

fn describe_command(command: &CommandNode) -> String {
    let pipe = PipeNode {
        pos: command.pos,
        decl: Vec::new(),
        commands: vec![command.clone()],
        is_assign: false,
    };
    describe::pipe(&pipe)
}
