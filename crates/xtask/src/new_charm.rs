//! `cargo xtask new-charm NAME`: a charm to begin with, which builds, passes its tests and packs.
//!
//! The template is a charm of this workspace under another name, so that whatever breaks a charm
//! breaks the template's own tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::{delegate, workspace::Workspace};

/// The template's name, which the new charm's takes the place of.
const TEMPLATE: &str = "greeter";

const FILES: [(&str, &str); 6] = [
    (
        "Cargo.toml",
        include_str!("../../../tests/greeter/Cargo.toml"),
    ),
    (
        "README.md",
        include_str!("../../../tests/greeter/README.md"),
    ),
    (
        "charmcraft.yaml",
        include_str!("../../../tests/greeter/charmcraft.yaml"),
    ),
    (
        "src/lib.rs",
        include_str!("../../../tests/greeter/src/lib.rs"),
    ),
    (
        "src/main.rs",
        include_str!("../../../tests/greeter/src/main.rs"),
    ),
    (
        "tests/scenario_hooks.rs",
        include_str!("../../../tests/greeter/tests/scenario_hooks.rs"),
    ),
];

/// Names of crates that Rust or Cargo has a use of its own for.
const RESERVED: [&str; 62] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "main",
];

/// Writes the charm to `charms/NAME` and makes it a member of the workspace; its folder.
pub(crate) fn new_charm(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let folder = write(workspace, name)?;
    let mut fmt = workspace.cargo();
    fmt.args(["fmt", "--package", name]);
    delegate::must(&mut fmt)?;
    // Writes the new member into Cargo.lock; nothing else in it changes.
    let mut lock = workspace.cargo();
    lock.args(["update", "--workspace", "--quiet"]);
    delegate::must(&mut lock)?;
    Ok(folder)
}

fn write(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    ensure!(
        is_charm_name(name),
        "{name:?} is no name for a charm: lower-case words with inner dashes, such as my-charm"
    );
    ensure!(
        is_crate_name(name),
        "{name:?} cannot be the name of a crate: it means something in Rust, or to Cargo or the \
         template; take two words, such as {name}-charm"
    );
    let lock = fs::read_to_string(workspace.path("Cargo.lock")).context("no Cargo.lock")?;
    ensure!(
        !lock.contains(&format!("\nname = \"{name}\"\n")),
        "there is a package {name} already, here or among what is built on"
    );
    let relative = format!("charms/{name}");
    let folder = workspace.path(&relative);
    ensure!(!folder.exists(), "{} is there already", folder.display());
    let manifest = workspace.path("Cargo.toml");
    let text = fs::read_to_string(&manifest).context("no Cargo.toml")?;
    let text = with_member(&text, &relative)?;
    for (file, template) in FILES {
        let path = folder.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, renamed(template, name))?;
    }
    fs::write(&manifest, text)?;
    Ok(folder)
}

/// Juju's rule for application names, which charms are deployed under by default.
fn is_charm_name(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && word.bytes().any(|b| b.is_ascii_lowercase())
    };
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.split('-').all(word)
}

/// Whether a crate, and in it a type, can have the name.
fn is_crate_name(name: &str) -> bool {
    let type_name = type_name(name);
    let taken = |text: &str| {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| word == type_name)
    };
    let in_template = FILES
        .iter()
        .filter(|(file, _)| Path::new(file).extension().is_some_and(|e| e == "rs"))
        .any(|(_, text)| taken(text));
    !RESERVED.contains(&name) && (name == TEMPLATE || !in_template)
}

fn type_name(name: &str) -> String {
    name.split('-')
        .flat_map(|word| {
            let (first, rest) = word.split_at(1);
            [first.to_uppercase(), rest.to_owned()]
        })
        .collect()
}

/// The template under another name: as text, as a crate in paths, and as a type. In one pass, as
/// the name may have the template's in it.
fn renamed(template: &str, name: &str) -> String {
    let crate_path = format!("use {}::", name.replace('-', "_"));
    let type_name = type_name(name);
    let forms = [
        ("use greeter::", crate_path.as_str()),
        ("Greeter", type_name.as_str()),
        (TEMPLATE, name),
    ];
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        if let Some((form, new)) = forms.iter().find(|(form, _)| rest.starts_with(form)) {
            text.push_str(new);
            rest = &rest[form.len()..];
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    text
}

/// The workspace's manifest with one more member, behind the last charm.
fn with_member(manifest: &str, member: &str) -> Result<String> {
    let line = format!("  \"{member}\",\n");
    let start = manifest
        .rfind("  \"charms/")
        .context("Cargo.toml lists no charms to put the new one beside")?;
    let end = manifest[start..]
        .find('\n')
        .map(|at| start + at + 1)
        .context("Cargo.toml ends within its members")?;
    Ok([&manifest[..end], &line, &manifest[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[workspace]
members = [
  \"crates/yaml\",
  \"charms/istio-k8s\",
  \"tests/e2e\",
]
";

    #[test]
    fn the_new_charm_is_the_template_under_its_name() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("Cargo.toml"), MANIFEST).unwrap();
        fs::write(root.path().join("Cargo.lock"), LOCK).unwrap();
        let workspace = Workspace::at(root.path());
        let folder = write(&workspace, "hello-mesh").unwrap();
        assert_eq!(folder, root.path().join("charms/hello-mesh"));
        let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        assert!(text("Cargo.toml").contains("name = \"hello-mesh\"\n"));
        assert!(text("charmcraft.yaml").starts_with("name: hello-mesh\n"));
        assert!(text("src/main.rs").contains("use hello_mesh::HelloMesh;\n"));
        assert!(text("src/lib.rs").contains("impl Charm for HelloMesh {\n"));
        assert!(text("tests/scenario_hooks.rs").contains("state(\"hello-mesh/0\")"));
        for (file, _) in FILES {
            assert!(!text(file).to_lowercase().contains(TEMPLATE), "{file}");
        }
        let manifest = fs::read_to_string(root.path().join("Cargo.toml")).unwrap();
        let expect = "  \"charms/istio-k8s\",\n  \"charms/hello-mesh\",\n  \"tests/e2e\",\n";
        assert!(manifest.contains(expect), "{manifest}");
        let again = write(&workspace, "hello-mesh").unwrap_err();
        assert!(again.to_string().ends_with("is there already"), "{again}");
    }

    const LOCK: &str = "\n[[package]]\nname = \"yaml\"\nversion = \"0.1.0\"\n";

    #[test]
    fn a_name_with_the_templates_in_it_is_written_as_given() {
        let check = |file: usize, expect: &str| {
            let text = renamed(FILES[file].1, "greeter-of-greeters");
            assert!(text.contains(expect), "{text}");
        };
        check(0, "name = \"greeter-of-greeters\"\n");
        check(3, "impl Charm for GreeterOfGreeters {\n");
        check(4, "use greeter_of_greeters::GreeterOfGreeters;\n");
        check(5, "state(\"greeter-of-greeters/0\")");
    }

    #[test]
    fn names_that_no_new_crate_can_have_are_refused_before_anything_is_written() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("Cargo.toml"), MANIFEST).unwrap();
        fs::write(root.path().join("Cargo.lock"), LOCK).unwrap();
        let workspace = Workspace::at(root.path());
        let check = |name: &str, expect: &str| {
            let error = write(&workspace, name).unwrap_err().to_string();
            assert!(error.contains(expect), "{name}: {error}");
        };
        check("yaml", "there is a package yaml already");
        for name in ["match", "self", "crate", "std", "deps"] {
            check(name, "cannot be the name of a crate");
        }
        for name in ["charm", "settings", "typed-error", "state", "string"] {
            check(name, "cannot be the name of a crate");
        }
        assert!(!root.path().join("charms").exists());
        let manifest = fs::read_to_string(root.path().join("Cargo.toml")).unwrap();
        assert_eq!(manifest, MANIFEST);
    }

    #[test]
    fn under_its_own_name_the_template_is_unchanged() {
        for (file, template) in FILES {
            assert_eq!(renamed(template, TEMPLATE), template, "{file}");
        }
    }

    #[test]
    fn names_are_those_juju_takes() {
        for good in ["meshy", "hello-mesh", "istio-k8s", "a1"] {
            assert!(is_charm_name(good), "{good}");
        }
        for bad in [
            "", "Meshy", "1a", "a-", "-a", "a--b", "a_b", "a-1", "../a", "a b",
        ] {
            assert!(!is_charm_name(bad), "{bad}");
        }
    }
}
