//! Every public issue that other frameworks and agents had, with the test here that shows the
//! behaviour wanted. A test that is renamed or gone fails this one.

use std::io::Write as _;

/// What was reported, and where the behaviour is shown: a file's text and a test in it.
struct Issue {
    reported: &'static str,
    shown: &'static [(&'static str, &'static str)],
}

macro_rules! file {
    ($path:literal) => {
        include_str!(concat!("../../../../", $path))
    };
}

const HOOKS: &str = file!("crates/juju-charm/tests/run/hooks.rs");
const PROCESS: &str = file!("crates/juju-hooks/tests/process_tools.rs");
const CONTEXT: &str = file!("crates/juju-hooks/src/context/tests.rs");
const VIEW: &str = file!("crates/juju-charm/src/view.rs");
const CONSISTENCY: &str = file!("crates/juju-sim/src/scenario/consistency/tests.rs");
const OPS: &str = file!("tests/interop/tests/ops_deferral.rs");
const TOLD: &str = include_str!("told.rs");

const ISSUES: [Issue; 33] = [
    Issue {
        reported: "operator 940, 1091; juju 17464: a broken relation is still listed",
        shown: &[(
            HOOKS,
            "a_relation_being_broken_is_seen_as_such_however_the_agent_tells_it",
        )],
    },
    Issue {
        reported: "operator 1279: data of a broken relation is wanted by its number",
        shown: &[(
            include_str!("relations.rs"),
            "in_departed_the_unit_is_gone_and_in_broken_data_can_still_be_read",
        )],
    },
    Issue {
        reported: "operator 693, 888, 1128, 1306: no remote application in broken",
        shown: &[(
            CONTEXT,
            "a_broken_relation_may_come_without_its_application",
        )],
    },
    Issue {
        reported: "operator 175, 475: application data changes before a unit joined",
        shown: &[
            (HOOKS, "application_data_may_change_before_any_unit_joined"),
            (
                HOOKS,
                "the_remote_application_of_another_relation_is_not_taken_from_the_event",
            ),
        ],
    },
    Issue {
        reported: "operator 551, 784, 793, 2738; juju 23246: own application data without leading",
        shown: &[
            (PROCESS, "failures_are_typed_by_what_the_tool_says"),
            (HOOKS, "a_unit_that_does_not_lead_writes_only_its_own_data"),
            (HOOKS, "every_unit_reads_the_application_data_of_its_peers"),
        ],
    },
    Issue {
        reported: "operator 399: deleting an absent key",
        shown: &[(
            HOOKS,
            "an_empty_value_deletes_and_deleting_what_is_absent_is_no_write",
        )],
    },
    Issue {
        reported: "operator 1586: the same value is written again",
        shown: &[(HOOKS, "a_second_run_writes_nothing_but_the_status")],
    },
    Issue {
        reported: "operator 801, 805; juju 2036: values too large for an argument",
        shown: &[(
            PROCESS,
            "relation_data_goes_through_standard_input_whatever_it_holds",
        )],
    },
    Issue {
        reported: "operator 2174: texts that YAML takes for something else",
        shown: &[(
            file!("crates/juju-hooks/src/databag.rs"),
            "texts_that_look_like_something_else_stay_texts",
        )],
    },
    Issue {
        reported: "operator 531, 632: log lines too long for an argument",
        shown: &[(
            PROCESS,
            "long_log_messages_are_split_below_the_argument_limit",
        )],
    },
    Issue {
        reported: "operator 809; juju 13748: reserved keys of results",
        shown: &[(PROCESS, "reserved_and_malformed_result_keys_reach_no_tool")],
    },
    Issue {
        reported: "juju 9768: a float option is answered as an integer",
        shown: &[(VIEW, "numbers_are_read_however_juju_writes_them")],
    },
    Issue {
        reported: "an option that is not set, and one that is empty",
        shown: &[(VIEW, "an_unset_option_is_not_an_empty_one")],
    },
    Issue {
        reported: "operator 935, 1372, 2683, 2684: the same deferred event piles up",
        shown: &[(OPS, "the_same_event_deferred_again_and_again_is_kept_once")],
    },
    Issue {
        reported: "operator 806: the observer of a deferred event is gone",
        shown: &[(OPS, "a_deferred_event_whose_observer_is_gone_is_dropped")],
    },
    Issue {
        reported: "operator 1070: an event of the charm's own is emitted while others come again",
        shown: &[(
            OPS,
            "an_event_emitted_while_deferred_ones_come_again_is_not_lost",
        )],
    },
    Issue {
        reported: "operator 1288, 1373: of two changes to a secret in one hook one is lost",
        shown: &[(TOLD, "a_label_and_a_content_set_in_one_hook_both_land")],
    },
    Issue {
        reported: "operator 1290, CVE-2024-41129: secret content in arguments",
        shown: &[(
            PROCESS,
            "secret_content_is_in_no_argument_and_its_files_are_private_and_gone",
        )],
    },
    Issue {
        reported: "operator 2143: metadata of a secret goes stale",
        shown: &[(PROCESS, "every_question_is_asked_again")],
    },
    Issue {
        reported: "operator 2170: a secret is named by id and label at once",
        shown: &[(PROCESS, "a_secret_is_named_by_id_or_by_label_never_by_both")],
    },
    Issue {
        reported: "operator 2263, 2264: expiry with any number of fractional digits",
        shown: &[(
            file!("crates/juju-hooks/src/secret.rs"),
            "expiries_with_any_precision_and_gaps_are_read",
        )],
    },
    Issue {
        reported: "operator 936: dying units are counted as planned",
        shown: &[(
            file!("crates/juju-hooks/src/tools.rs"),
            "units_on_their_way_out_are_not_planned",
        )],
    },
    Issue {
        reported: "operator 2188; juju 21294: undeclared parameters are let through or not",
        shown: &[(
            include_str!("actions.rs"),
            "parameters_reach_the_charm_complete_or_not_at_all",
        )],
    },
    Issue {
        reported: "ops-scenario 66: parameters of a wrong type",
        shown: &[(
            CONSISTENCY,
            "actions_and_their_parameters_are_declared_and_strictly_typed",
        )],
    },
    Issue {
        reported: "operator 348, 1840: restricted hooks",
        shown: &[
            (CONTEXT, "a_restricted_hook_may_come_without_a_version"),
            (
                HOOKS,
                "hooks_of_later_or_older_jujus_end_well_and_touch_nothing",
            ),
        ],
    },
    Issue {
        reported: "operator 310: dispatch and a link to it run the same hook",
        shown: &[(
            TOLD,
            "dispatch_runs_once_even_beside_a_hook_file_of_the_same_name",
        )],
    },
    Issue {
        reported: "juju 22523, 22524, 22616, 22639: answers of another shape in Juju 4",
        shown: &[
            (PROCESS, "reading_tools_are_called_as_juju_documents_them"),
            (
                file!("crates/juju-hooks/src/network.rs"),
                "placeholders_and_gaps_in_network_answers_are_tolerated",
            ),
            (TOLD, "agents_of_juju_4_differ_where_juju_4_does"),
        ],
    },
    Issue {
        reported: "juju 9353; opensearch-operator 656: leadership is gone when its hook is handled",
        shown: &[(
            HOOKS,
            "leadership_lost_during_the_hook_costs_the_application_writes_only",
        )],
    },
    Issue {
        reported: "juju 12437, 20975: a failure in relation-created",
        shown: &[(
            TOLD,
            "a_failed_relation_created_is_run_again_and_no_other_hook_before_it",
        )],
    },
    Issue {
        reported: "juju 13003: upgrade-charm without an upgrade",
        shown: &[(
            include_str!("refresh.rs"),
            "a_replaced_pod_starts_again_with_an_empty_charm_directory",
        )],
    },
    Issue {
        reported: "hello-kubecon 10: Pebble is taken to be up in config-changed",
        shown: &[(CONSISTENCY, "other_hooks_are_about_declared_things")],
    },
    Issue {
        reported: "cos-configuration-k8s 87: the charm's kept state is too large",
        shown: &[(include_str!("writes.rs"), "charm_state_has_quotas")],
    },
    Issue {
        reported: "juju 13834; operator 726: a dying unit's settings, a status nobody set",
        shown: &[
            (TOLD, "a_dying_unit_is_told_no_settings_of_its_leader"),
            (
                include_str!("errors.rs"),
                "a_hook_that_is_killed_is_run_again_without_an_error",
            ),
        ],
    },
];

#[test]
fn every_public_issue_is_shown_by_a_test() {
    let mut tests = 0;
    for Issue { reported, shown } in &ISSUES {
        for (file, test) in *shown {
            assert!(
                file.contains(&format!("fn {test}(")),
                "{reported}: no test {test}"
            );
            tests += 1;
        }
    }
    // A figure that cannot be shown fails no test.
    let _unshown = writeln!(
        std::io::stderr().lock(),
        "public issues covered: {} of {}, by {tests} tests",
        ISSUES.len(),
        ISSUES.len()
    );
}
