//! Texts of options, and what is said of a bad one.

use std::collections::BTreeSet;
use std::fmt::Display;

use juju_charm::{Config, Problem, chain};
use juju_hooks::AppName;

/// Longest part of a value that is shown.
const SHOWN: usize = 40;

/// An option that is not in order.
#[derive(Debug)]
pub(super) struct Bad {
    option: &'static str,
    message: String,
}

impl Bad {
    /// `value`, or a part of it, is not right: why, what is allowed.
    pub(super) fn new(option: &'static str, value: &str, why: impl Display) -> Self {
        Self::of(option, format!("{} {why}", shown(value)))
    }

    /// As [`Bad::new`], of the part `part` of the value.
    pub(super) fn part(option: &'static str, part: &str, value: &str, why: impl Display) -> Self {
        Self::of(option, format!("{part}: {} {why}", shown(value)))
    }

    /// `value` is none of the `allowed` ones.
    pub(super) fn allowed(option: &'static str, value: &str, allowed: &str) -> Self {
        Self::of(option, format!("{}, allowed: {allowed}", shown(value)))
    }

    /// Something about the whole.
    pub(super) fn of(option: &'static str, message: impl Into<String>) -> Self {
        Self {
            option,
            message: message.into(),
        }
    }

    /// A YAML error: where, without the text around it, which would not fit a status line.
    pub(super) fn unreadable(option: &'static str, why: &yaml::Error) -> Self {
        let why = chain(why);
        Self::of(option, why.lines().next().unwrap_or_default())
    }

    /// What the status says.
    pub(super) fn problem(self, app: &AppName) -> Problem {
        let Self { option, message } = self;
        Problem::blocked(format!("option {option}: {message}"))
            .with_hint(format!("juju config {app} --reset {option}"))
    }
}

fn shown(value: &str) -> String {
    let shown: String = value.chars().take(SHOWN).collect();
    format!("{shown:?}")
}

/// An option's text; an empty one counts as unset.
pub(super) fn text<'a>(config: &'a Config, option: &str) -> Option<&'a str> {
    config
        .str(option)
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// The parts of a list, separated by commas or blanks.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|part| !part.is_empty())
}

/// One of a few words; the first is the default.
pub(super) fn one_of<T: Copy>(
    config: &Config,
    option: &'static str,
    words: &[(&str, T)],
) -> Result<T, Bad> {
    let default = words.first().map(|(word, _)| *word).unwrap_or_default();
    let text = text(config, option).unwrap_or(default);
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let named = words.iter().map(|(word, _)| match *word {
            "" => "empty",
            word => word,
        });
        let allowed: Vec<&str> = named.collect();
        Bad::allowed(option, text, &allowed.join(", "))
    })
}

/// The option `release-sha256`, in lower case; empty accepts any.
pub(super) fn sha256(config: &Config) -> Result<BTreeSet<String>, Bad> {
    let digests = list(text(config, "release-sha256").unwrap_or_default());
    let digest = |text: &str| {
        if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(text.to_ascii_lowercase());
        }
        let why = "is not 64 hexadecimal digits";
        Err(Bad::new("release-sha256", text, why))
    };
    digests.map(digest).collect()
}
