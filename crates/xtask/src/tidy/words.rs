//! Words that do not belong into a file of this repository.

use super::{Facts, Findings};

/// One kind of word.
struct Banned {
    why: &'static str,
    words: &'static [&'static str],
    /// Files that may hold it.
    except: &'static [&'static str],
}

// Each word is written in two halves, so that this file obeys its own rule.
const BANNED: &[Banned] = &[
    Banned {
        why: "unfinished",
        words: &[
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("XX", "X:"),
        ],
        except: &[],
    },
    Banned {
        why: "a path of one machine",
        words: &[
            concat!("/ro", "ot/"),
            concat!("/wo", "rk/"),
            concat!("/ho", "me/"),
            concat!("/tmp/", "brief"),
            concat!("/tmp/", "bash_jobs"),
        ],
        except: &[],
    },
    Banned {
        why: "a package registry's host",
        words: &[
            concat!("crates", ".io"),
            concat!("py", "pi.org"),
            concat!("python", "hosted", ".org"),
            concat!("proxy.golang", ".org"),
            concat!("sum.golang", ".org"),
            concat!("registry.", "npmjs", ".org"),
            concat!("deb.debian", ".org"),
        ],
        // Cargo writes its source into the lock file.
        except: &["Cargo.lock", "tests/fuzz/libfuzzer/Cargo.lock"],
    },
];

/// No banned word in any text.
pub(super) fn words(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    for (path, text) in facts.tree.texts() {
        for banned in BANNED
            .iter()
            .filter(|banned| !banned.except.contains(&path))
        {
            for (number, line) in text.lines().enumerate() {
                if let Some(word) = banned.words.iter().find(|word| has(line, word)) {
                    findings.push(format!("{path}:{}: {word} is {}", number + 1, banned.why));
                }
            }
        }
    }
    findings
}

/// Whether a line has the word, not as a part of a longer one.
fn has(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let ends_open = !word.ends_with(char::is_alphanumeric);
        !joins(before) && (ends_open || !joins(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Tree;

    #[test]
    fn a_banned_word_is_found_with_its_place() {
        let note = format!("//! A.\n// {}: later\n", concat!("TO", "DO"));
        let facts = Facts {
            tree: Tree::of(&[("a.rs", &note), ("b.rs", "//! B.\n")]),
            ..Facts::default()
        };
        let expect = format!("a.rs:2: {} is unfinished", concat!("TO", "DO"));
        assert_eq!(words(&facts), [expect]);
    }

    #[test]
    fn a_word_inside_a_longer_one_is_left_alone() {
        let check = |line: &str, word: &str, expect| assert_eq!(has(line, word), expect, "{line}");
        check("see /srv/x", "/srv/", true);
        check("network/srv/x", "/srv/", false);
        check("a TOAD", "TOA", false);
        check("a TOA.", "TOA", true);
    }
}
