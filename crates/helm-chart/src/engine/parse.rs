//! Parses a template, and refuses what Go's parser refuses but `gotmpl`'s lets through.

use super::{Body, check};
use gotmpl::TemplateError;
use gotmpl::parse::Parser;
use std::sync::Arc;

/// A parsed file: what it prints, and what it defines.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) main: Arc<Body>,
    pub(crate) defines: Vec<Arc<Body>>,
}

/// A parse error and its line.
#[derive(Debug)]
pub(crate) struct ParseError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Parses a text. `name` is what `template` calls it by, `file` is for messages.
pub(crate) fn parse(name: &str, file: &str, text: &str) -> Result<Parsed, ParseError> {
    let text = check::prepare(text)?;
    let (list, defines) = Parser::new(&text, "{{", "}}")
        .and_then(Parser::parse)
        .map_err(|error| match error {
            TemplateError::Parse { line, message, .. }
            | TemplateError::Lex { line, message, .. } => ParseError { line, message },
            other => ParseError {
                line: 0,
                message: other.to_string(),
            },
        })?;
    check::list(&list)?;
    let file: Arc<str> = Arc::from(file);
    let mut bodies = Vec::with_capacity(defines.len());
    for define in defines {
        check::list(&define.body)?;
        let name = Arc::from(define.name.as_str());
        bodies.push(Arc::new(Body {
            name,
            file: Arc::clone(&file),
            list: define.body,
        }));
    }
    let main = Arc::new(Body {
        name: Arc::from(name),
        file,
        list,
    });
    Ok(Parsed {
        main,
        defines: bodies,
    })
}
