//! Writes an expression the way it stands in the template, for error messages.

use gotmpl::parse::{CommandNode, Expr, Number, PipeNode};
use std::fmt::Write as _;

/// Longer expressions are cut: they are there to be recognised.
const MAX_LEN: usize = 120;

pub(crate) fn expr(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr);
    cut(out)
}

pub(crate) fn pipe(pipe: &PipeNode) -> String {
    let mut out = String::new();
    write_pipe(&mut out, pipe);
    cut(out)
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_LEN {
        let mut end = MAX_LEN;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

fn write_pipe(out: &mut String, pipe: &PipeNode) {
    if !pipe.decl.is_empty() {
        let names: Vec<&str> = pipe
            .decl
            .iter()
            .map(gotmpl::parse::SmolStr::as_str)
            .collect();
        out.push_str(&names.join(", "));
        out.push_str(if pipe.is_assign { " = " } else { " := " });
    }
    for (i, command) in pipe.commands.iter().enumerate() {
        if i > 0 {
            out.push_str(" | ");
        }
        write_command(out, command);
        if out.len() > MAX_LEN {
            return;
        }
    }
}

fn write_command(out: &mut String, command: &CommandNode) {
    for (i, arg) in command.args.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        write_expr(out, arg);
    }
}

fn write_fields(out: &mut String, fields: &[gotmpl::parse::SmolStr]) {
    for field in fields {
        out.push('.');
        out.push_str(field);
    }
}

fn write_expr(out: &mut String, expr: &Expr) {
    match expr {
        Expr::Dot(_) => out.push('.'),
        Expr::Field(_, fields) => write_fields(out, fields),
        Expr::Variable(_, name, fields) => {
            out.push_str(name);
            write_fields(out, fields);
        }
        Expr::Identifier(_, name) => out.push_str(name),
        Expr::String(_, text) => {
            let _ = write!(out, "{text:?}");
        }
        Expr::Number(_, Number::Int(n)) => {
            let _ = write!(out, "{n}");
        }
        Expr::Number(_, Number::Uint(n)) => {
            let _ = write!(out, "{n}");
        }
        Expr::Number(_, Number::Float(n)) => {
            let _ = write!(out, "{n}");
        }
        Expr::Bool(_, b) => {
            let _ = write!(out, "{b}");
        }
        Expr::Nil(_) => out.push_str("nil"),
        Expr::Pipe(_, pipe) => {
            out.push('(');
            write_pipe(out, pipe);
            out.push(')');
        }
        Expr::Chain(_, inner, fields) => {
            write_expr(out, inner);
            write_fields(out, fields);
        }
    }
}
