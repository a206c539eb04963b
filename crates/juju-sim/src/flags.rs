//! Command-line rules shared by hook tools and the `juju` command.
//!
//! They are those of Juju's own parser: flags may come anywhere, `--` ends them, `--x=v`, `--x v`,
//! `-x v` and `-xv` are the same, and a switch takes a value only as `--x=true`.

/// One flag a command understands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag {
    /// Spellings without dashes; the first one is the name used by [`Parsed`].
    pub(crate) names: &'static [&'static str],
    /// Whether the flag takes a value; otherwise it is a switch.
    pub(crate) value: bool,
}

/// A flag with a value.
pub(crate) const fn value(names: &'static [&'static str]) -> Flag {
    Flag { names, value: true }
}

/// A switch.
pub(crate) const fn switch(names: &'static [&'static str]) -> Flag {
    Flag {
        names,
        value: false,
    }
}

/// The outcome of parsing: flags in order of appearance and everything else.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    flags: Vec<(&'static str, String)>,
    /// Arguments that are not flags.
    pub(crate) args: Vec<String>,
}

impl Parsed {
    /// The last value given for a flag.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.flags
            .iter()
            .rev()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Every value given for a flag, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.flags
            .iter()
            .filter(move |(n, _)| *n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Whether a switch is on.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }
}

/// Splits a command line into flags and arguments.
///
/// # Errors
/// The text Juju prints behind `ERROR `; the exit code is 2.
pub(crate) fn parse(args: &[String], known: &[Flag]) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            parsed.args.extend(rest.by_ref().cloned());
            break;
        }
        if arg == "-" || !arg.starts_with('-') {
            parsed.args.push(arg.clone());
            continue;
        }
        let (name, inline) = split(arg);
        let shown = if arg.starts_with("--") {
            format!("--{name}")
        } else {
            format!("-{name}")
        };
        let flag = known
            .iter()
            .find(|f| f.names.contains(&name))
            .ok_or_else(|| format!("option provided but not defined: {shown}"))?;
        let value = match (flag.value, inline) {
            (true, Some(v)) => v.to_owned(),
            (true, None) => rest
                .next()
                .cloned()
                .ok_or_else(|| format!("option needs an argument: {shown}"))?,
            (false, None) => "true".to_owned(),
            (false, Some(v)) => match v {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => "true".to_owned(),
                "0" | "f" | "F" | "FALSE" | "false" | "False" => "false".to_owned(),
                other => return Err(format!("invalid boolean value \"{other}\" for {shown}")),
            },
        };
        parsed.flags.push((flag.names[0], value));
    }
    Ok(parsed)
}

/// The name and the attached value of one dashed argument.
fn split(arg: &str) -> (&str, Option<&str>) {
    if let Some(long) = arg.strip_prefix("--") {
        return match long.split_once('=') {
            Some((name, v)) => (name, Some(v)),
            None => (long, None),
        };
    }
    let short = &arg[1..];
    let end = short.char_indices().nth(1).map_or(short.len(), |(i, _)| i);
    let (name, glued) = short.split_at(end);
    let glued = glued.strip_prefix('=').unwrap_or(glued);
    (name, (short.len() > end).then_some(glued))
}

/// Refuses arguments beyond those a command takes.
pub(crate) fn no_more(args: &[String]) -> Result<(), String> {
    if args.is_empty() {
        return Ok(());
    }
    let quoted: Vec<String> = args.iter().map(|a| format!("{a:?}")).collect();
    Err(format!("unrecognized args: [{}]", quoted.join(" ")))
}

/// The member of `known` nearest to a mistyped `word`, if any is near.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (distance(word, candidate), candidate))
        .min()
        .filter(|(d, _)| *d <= 1 + word.len() / 4)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Flag] = &[
        value(&["r", "relation"]),
        switch(&["app"]),
        value(&["format"]),
    ];

    type Expected<'a> = Result<(&'a [(&'static str, &'a str)], &'a [&'a str]), &'a str>;

    #[track_caller]
    fn check(args: &[&str], expect: Expected<'_>) {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let expect = expect
            .map(|(flags, rest)| Parsed {
                flags: flags.iter().map(|(n, v)| (*n, (*v).to_owned())).collect(),
                args: rest.iter().map(ToString::to_string).collect(),
            })
            .map_err(ToOwned::to_owned);
        assert_eq!(parse(&args, KNOWN), expect);
    }

    #[test]
    fn flags_follow_jujus_rules() {
        check(
            &["key", "-r", "db:1", "--app"],
            Ok((&[("r", "db:1"), ("app", "true")], &["key"])),
        );
        check(&["-r3", "-"], Ok((&[("r", "3")], &["-"])));
        check(
            &["--relation=3", "--app=False"],
            Ok((&[("r", "3"), ("app", "false")], &[])),
        );
        check(&["--", "--app"], Ok((&[], &["--app"])));
        check(&["--foo"], Err("option provided but not defined: --foo"));
        check(&["-r"], Err("option needs an argument: -r"));
        check(
            &["--app=maybe"],
            Err("invalid boolean value \"maybe\" for --app"),
        );
    }

    #[test]
    fn a_mistyped_word_is_matched_to_its_neighbour() {
        let known = ["deploy", "destroy-model", "integrate"];
        assert_eq!(nearest("deplo", known.into_iter()), Some("deploy"));
        assert_eq!(nearest("intergrate", known.into_iter()), Some("integrate"));
        assert_eq!(nearest("zzz", known.into_iter()), None);
    }
}
