//! The world is not as the charm needs it: what `juju status` says about it.

use std::fmt;

use juju_hooks::Status;

/// The longest status message, in characters; more is cut off by `juju status` anyway.
pub const MAX_MESSAGE_CHARS: usize = 120;

/// How grave a problem is; a greater value is graver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The charm is at work.
    Maintenance,
    /// Something outside has to happen, and will without a person's doing.
    Waiting,
    /// A person has to act.
    Blocked,
}

impl Severity {
    /// The status that says so.
    pub fn status(self) -> Status {
        match self {
            Self::Maintenance => Status::Maintenance,
            Self::Waiting => Status::Waiting,
            Self::Blocked => Status::Blocked,
        }
    }
}

/// Something is not as it should be. Not an error of the charm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How grave.
    pub severity: Severity,
    /// What is wrong, one line of at most [`MAX_MESSAGE_CHARS`] characters.
    pub message: String,
    /// The command that mends it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a hint. The message is brought to one line and cut to length.
    pub fn new(severity: Severity, message: impl AsRef<str>) -> Self {
        Self {
            severity,
            message: shorten(message.as_ref(), MAX_MESSAGE_CHARS),
            hint: None,
        }
    }

    /// A person has to act.
    pub fn blocked(message: impl AsRef<str>) -> Self {
        Self::new(Severity::Blocked, message)
    }

    /// Something outside has to happen.
    pub fn waiting(message: impl AsRef<str>) -> Self {
        Self::new(Severity::Waiting, message)
    }

    /// The charm is at work.
    pub fn maintenance(message: impl AsRef<str>) -> Self {
        Self::new(Severity::Maintenance, message)
    }

    /// The same problem with the command that mends it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{}; run: {hint}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The gravest problem; of equally grave ones the first.
pub fn worst(problems: &[Problem]) -> Option<&Problem> {
    // `max_by_key` gives the last of equals, hence the reversal.
    problems.iter().rev().max_by_key(|problem| problem.severity)
}

/// The text of a status: the worst problem's message; its hint too if both fit
/// [`MAX_MESSAGE_CHARS`]; how many problems there are besides, e.g. ` (+2 more)`. `None` without
/// problems.
pub fn status_line(problems: &[Problem]) -> Option<String> {
    let worst = worst(problems)?;
    let suffix = match problems.len() - 1 {
        0 => String::new(),
        more => format!(" (+{more} more)"),
    };
    let room = MAX_MESSAGE_CHARS - suffix.chars().count();
    let full = shorten(&worst.to_string(), usize::MAX);
    let text = if full.chars().count() <= room {
        full
    } else {
        shorten(&worst.message, room)
    };
    Some(text + &suffix)
}

/// One line of at most `limit` characters; what is cut off is marked by an ellipsis.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(limit));
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((end, _)) = line.char_indices().nth(limit) {
        let last = line[..end]
            .char_indices()
            .next_back()
            .map_or(0, |(at, _)| at);
        line.truncate(last);
        line.truncate(line.trim_end().len());
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_and_cut_at_a_character() {
        let check = |text: &str, limit: usize, expect: &str| {
            assert_eq!(shorten(text, limit), expect, "{text:?}");
            assert!(shorten(text, limit).chars().count() <= limit);
        };
        check("fits", 4, "fits");
        check("does not", 4, "doe…");
        check("two\n  lines\t", 20, "two lines");
        check("ééééé", 3, "éé…");
        check("a bcdef", 3, "a…");
        check("", 3, "");
    }

    #[test]
    fn the_worst_problem_speaks_and_the_others_are_counted() {
        let check = |problems: &[Problem], expect: Option<&str>| {
            assert_eq!(status_line(problems).as_deref(), expect);
        };
        let trust = Problem::blocked("no rights").with_hint("juju trust meshy --scope=cluster");
        let pods = Problem::waiting("pods starting");
        check(&[], None);
        check(std::slice::from_ref(&pods), Some("pods starting"));
        check(
            &[pods.clone(), trust.clone()],
            Some("no rights; run: juju trust meshy --scope=cluster (+1 more)"),
        );
        check(
            &[pods.clone(), Problem::waiting("second")],
            Some("pods starting (+1 more)"),
        );
        let long = Problem::blocked("m".repeat(100)).with_hint("juju config meshy a=b");
        check(&[long], Some("m".repeat(100).as_str()));
        let longest = Problem::blocked("m".repeat(200));
        check(
            &[longest, pods.clone(), pods],
            Some(format!("{}… (+2 more)", "m".repeat(109)).as_str()),
        );
    }
}
