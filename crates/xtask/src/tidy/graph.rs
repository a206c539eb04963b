//! Rules about which crate may depend on which.

use std::collections::BTreeSet;

use super::{Facts, Findings};
use crate::workspace::Package;

/// A crate and what it must not reach, directly or through others. A name that ends in `-` stands
/// for every crate whose name begins so.
struct Arrow {
    from: &'static str,
    never: &'static [&'static str],
}

const ARROWS: &[Arrow] = &[
    Arrow {
        from: "yaml",
        never: &["kube", "kube-", "juju-", "mesh", "helm-chart", "tokio"],
    },
    Arrow {
        from: "helm-chart",
        never: &["kube", "kube-", "juju-", "mesh", "istio-api", "tokio"],
    },
    Arrow {
        from: "istio-api",
        never: &["kube", "kube-client", "kube-apply", "juju-", "tokio"],
    },
    Arrow {
        from: "mesh",
        never: &["kube", "kube-client", "kube-apply", "juju-", "tokio"],
    },
    Arrow {
        from: "relations",
        never: &["kube", "kube-", "mesh", "helm-chart", "tokio"],
    },
    Arrow {
        from: "kube-apply",
        never: &["juju-", "mesh", "helm-chart", "relations"],
    },
    Arrow {
        from: "juju-hooks",
        never: &["kube", "kube-", "mesh", "istio-api"],
    },
    Arrow {
        from: "juju-charm",
        never: &["kube", "kube-", "mesh", "istio-api"],
    },
    Arrow {
        from: "juju-sim",
        never: &["kube", "kube-", "mesh", "istio-api"],
    },
    Arrow {
        from: "xtask",
        never: &[
            "kube",
            "kube-",
            "juju-",
            "mesh",
            "helm-chart",
            "istio-",
            "tokio",
        ],
    },
    Arrow {
        from: "istio-k8s",
        never: NOT_SHIPPED,
    },
    Arrow {
        from: "istio-integrator",
        never: NOT_SHIPPED,
    },
];

/// What no charm may carry: a second TLS provider, libyaml, test parts.
const NOT_SHIPPED: &[&str] = &[
    "openssl-sys",
    "aws-lc-sys",
    "unsafe-libyaml",
    "serde_yaml",
    "juju-sim",
    "testbed",
];

/// The crates whose trees the rule looks at.
pub(super) fn watched() -> impl Iterator<Item = &'static str> {
    ARROWS.iter().map(|arrow| arrow.from)
}

/// No forbidden crate in what `cargo tree -e normal` shows.
pub(super) fn arrows(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    for arrow in ARROWS {
        let Some(tree) = facts.trees.get(arrow.from) else {
            findings.push(format!("there is no crate {}", arrow.from));
            continue;
        };
        for reached in forbidden(tree, arrow) {
            findings.push(format!(
                "{0} reaches {reached}; `cargo tree -e normal -p {0} -i {reached}` shows how",
                arrow.from
            ));
        }
    }
    findings
}

/// The forbidden crates in a tree printed without prefix.
fn forbidden<'t>(tree: &'t str, arrow: &Arrow) -> BTreeSet<&'t str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != arrow.from && arrow.never.iter().any(|never| matches(name, never)))
        .collect()
}

fn matches(name: &str, pattern: &str) -> bool {
    if pattern.ends_with('-') {
        name.starts_with(pattern)
    } else {
        name == pattern
    }
}

/// Crates that read or write YAML.
const YAML: &[&str] = &[
    "libyaml-rs",
    "saphyr",
    "saphyr-parser",
    "serde-saphyr",
    "serde_norway",
    "serde_yaml",
    "serde_yaml_bw",
    "serde_yaml_ng",
    "serde_yml",
    "yaml-rust",
    "yaml-rust2",
    "yaml_serde",
];

/// Only the crate `yaml` depends on a YAML library.
pub(super) fn yaml_users(facts: &Facts) -> Findings {
    users(facts.metadata.members(), YAML, &["yaml"])
}

/// Only `kube-apply` holds a Kubernetes client; tests may look at the cluster by themselves.
pub(super) fn client_users(facts: &Facts) -> Findings {
    let shipped = facts.metadata.members().filter(|package| {
        !package
            .folder
            .components()
            .any(|part| part.as_os_str() == "tests")
    });
    users(shipped, &["kube", "kube-client"], &["kube-apply"])
}

fn users<'p>(
    members: impl Iterator<Item = &'p Package>,
    libraries: &[&str],
    may: &[&str],
) -> Vec<String> {
    members
        .filter(|package| !may.contains(&package.name.as_str()))
        .flat_map(|package| {
            let direct = package.dependencies.iter();
            direct
                .filter(|(name, kind)| kind != "dev" && libraries.contains(&name.as_str()))
                .map(|(name, _)| format!("{} depends on {name}", package.name))
        })
        .collect()
}

/// Members take every dependency, their edition and their lints from the workspace.
pub(super) fn workspace_dependencies(facts: &Facts) -> Findings {
    let manifests = facts
        .tree
        .ending("Cargo.toml")
        // A package outside the workspace has no table to take from.
        .filter(|(path, text)| *path != "Cargo.toml" && !text.contains("\n[workspace]\n"));
    manifests
        .flat_map(|(path, text)| own_versions(path, text))
        .collect()
}

fn own_versions(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let (mut section, mut lints) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
            continue;
        }
        // A path names a crate of the workspace, for a feature choice that the table cannot express.
        let by_path = line.contains("path = \"") && !line.contains("version");
        let shared = line.contains("workspace = true") || by_path;
        if section.ends_with("dependencies")
            && line.contains('=')
            && !line.starts_with('#')
            && !shared
        {
            findings.push(format!("{path}: `{line}` is not taken from the workspace"));
        }
        lints |= section == "lints" && shared;
    }
    if !lints {
        findings.push(format!(
            "{path}: the lints are not taken from the workspace"
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_crate_is_found_in_a_tree() {
        let tree =
            "meshy v0.1.0 (/src/meshy)\nserde v1.0.0\njuju-hooks v0.1.0\nkube-core v5.0.0 (*)\n";
        let check = |never: &'static [&'static str], expect: &[&str]| {
            let found = forbidden(
                tree,
                &Arrow {
                    from: "meshy",
                    never,
                },
            );
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expect);
        };
        check(&["kube", "kube-client"], &[]);
        check(&["juju-"], &["juju-hooks"]);
        check(&["kube", "kube-"], &["kube-core"]);
        check(&["meshy"], &[]);
    }

    #[test]
    fn only_the_named_crate_may_use_a_library() {
        let package = |name: &str, kind: &str| Package {
            name: name.to_owned(),
            dependencies: vec![("serde-saphyr".to_owned(), kind.to_owned())],
            ..Package::default()
        };
        let members = [
            package("yaml", "normal"),
            package("mesh", "normal"),
            package("e2e", "dev"),
        ];
        assert_eq!(
            users(members.iter(), YAML, &["yaml"]),
            ["mesh depends on serde-saphyr"]
        );
    }

    #[test]
    fn a_version_outside_the_workspace_table_is_found() {
        let text = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n[dependencies]\nserde = { workspace = true }\nregex = \"1\"\n[dev-dependencies]\ninsta.workspace = true\na = { path = \".\", features = [\"testing\"] }\n";
        assert_eq!(
            own_versions("a/Cargo.toml", text),
            ["a/Cargo.toml: `regex = \"1\"` is not taken from the workspace"]
        );
        assert_eq!(own_versions("a/Cargo.toml", "[package]\n").len(), 1);
    }
}
