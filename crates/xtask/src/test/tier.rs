//! The tiers and which test belongs to which.
//!
//! Invariant: every test of the workspace belongs to exactly one tier, decided by where it stands:
//! 1. the file of an integration test, by the first word of its name: `scenario_deploy.rs`
//!    (`properties` will do for `property`);
//! 2. else the package: everything in `e2e` and `interop`, and the integration tests of `testbed`,
//!    which start an API server;
//! 3. else a module that is named like such a file, for properties only;
//! 4. else `unit`.

use std::fmt;

use clap::ValueEnum;

/// A tier, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Tier {
    /// Formatting.
    Fmt,
    /// Lints.
    Clippy,
    /// Rules of this repository.
    Tidy,
    /// Fast tests of one function or file, and documentation examples.
    Unit,
    /// Laws held against generated input.
    Property,
    /// Charms run in the simulator.
    Scenario,
    /// The apply engine against a real API server.
    Apiserver,
    /// Everything on a real node.
    E2e,
    /// Against other implementations.
    Interop,
}

impl Tier {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 9] = [
        Self::Fmt,
        Self::Clippy,
        Self::Tidy,
        Self::Unit,
        Self::Property,
        Self::Scenario,
        Self::Apiserver,
        Self::E2e,
        Self::Interop,
    ];

    /// The name on the command line and in the output.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Tidy => "tidy",
            Self::Unit => "unit",
            Self::Property => "property",
            Self::Scenario => "scenario",
            Self::Apiserver => "apiserver",
            Self::E2e => "e2e",
            Self::Interop => "interop",
        }
    }

    /// Whether it is made of cargo's tests, not of checks.
    pub(crate) fn has_tests(self) -> bool {
        self >= Self::Unit
    }

    /// Whether its tests start a node each, and so run one after the other in their file; two files
    /// run side by side.
    pub(crate) const fn is_serial(self) -> bool {
        matches!(self, Self::E2e | Self::Interop)
    }

    /// Whether a file of tests runs beside no other: one that measures (`…_cost`) and one that looks
    /// at the whole machine (`…_node`).
    pub(crate) fn is_alone(target: &str) -> bool {
        let word = target.rsplit(['_', '-']).next().unwrap_or_default();
        matches!(word, "cost" | "node")
    }

    /// Whether its tests build or run real parts, and so are worth watching.
    pub(crate) const fn is_slow(self) -> bool {
        matches!(self, Self::Apiserver | Self::E2e | Self::Interop)
    }

    /// The tiers that integration test files can name.
    const FILES: [Self; 6] = [
        Self::Unit,
        Self::Property,
        Self::Scenario,
        Self::Apiserver,
        Self::E2e,
        Self::Interop,
    ];

    /// The tier of a test: its package, its target, whether that is an integration test file, and
    /// its full name.
    pub(crate) fn of(package: &str, target: &str, integration: bool, test: &str) -> Self {
        if integration {
            let word = target.split(['_', '-']).next().unwrap_or_default();
            if let Some(tier) = Self::FILES.into_iter().find(|tier| tier.name() == word) {
                return tier;
            }
            if word == "properties" {
                return Self::Property;
            }
        }
        match package {
            "e2e" => return Self::E2e,
            "interop" => return Self::Interop,
            "testbed" if integration => return Self::Apiserver,
            _ => {}
        }
        let mut modules = test.split("::").collect::<Vec<_>>();
        modules.pop();
        if modules.iter().any(|module| {
            module
                .split('_')
                .next()
                .is_some_and(|word| matches!(word, "property" | "properties"))
        }) {
            return Self::Property;
        }
        Self::Unit
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_belongs_where_it_stands() {
        #[track_caller]
        fn check(package: &str, target: &str, integration: bool, test: &str, expect: Tier) {
            assert_eq!(Tier::of(package, target, integration, test), expect);
        }
        check(
            "mesh",
            "mesh",
            false,
            "tags::tests::a_tag_is_kept",
            Tier::Unit,
        );
        check(
            "mesh",
            "mesh",
            false,
            "tags::property::round_trip",
            Tier::Property,
        );
        check(
            "mesh",
            "mesh",
            false,
            "tags::tests::property_of_tags",
            Tier::Unit,
        );
        check(
            "mesh",
            "property_plan",
            true,
            "plan_is_stable",
            Tier::Property,
        );
        check(
            "istio-k8s",
            "scenario_deploy",
            true,
            "goes_active",
            Tier::Scenario,
        );
        check("kube-apply", "apiserver", true, "prunes", Tier::Apiserver);
        check("helm-chart", "golden", true, "whitespace", Tier::Unit);
        check("e2e", "wire", true, "routes", Tier::E2e);
        check("e2e", "e2e", false, "http::tests::parses", Tier::E2e);
        check("e2e", "apiserver_noop", true, "no_writes", Tier::Apiserver);
        check("interop", "helm", true, "equal", Tier::Interop);
        check(
            "relations",
            "properties",
            true,
            "round_trip",
            Tier::Property,
        );
        check(
            "mesh",
            "mesh",
            false,
            "tags::properties::round_trip",
            Tier::Property,
        );
        check("testbed", "control_plane", true, "ends", Tier::Apiserver);
        check("testbed", "testbed", false, "pki::tests::signs", Tier::Unit);
        check("testbed", "e2e_node", true, "comes_up", Tier::E2e);
    }

    #[test]
    fn what_measures_and_what_looks_at_the_machine_runs_alone() {
        let alone = ["noop_cost", "e2e_node"];
        assert!(alone.into_iter().all(Tier::is_alone));
        let beside = ["daemon", "node_lab", "costly", ""];
        assert!(!beside.into_iter().any(Tier::is_alone));
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for tier in Tier::ALL {
            assert_eq!(Tier::from_str(tier.name(), false), Ok(tier));
        }
    }
}
