//! A chart cannot make a render expensive.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod common;

use common::{load, options};
use helm_chart::{RenderError, RenderLimits};
use serde_json::json;

/// Renders under tight limits and tells which one was passed.
fn limit_of(template: &str) -> &'static str {
    let chart = load(&[("templates/t.txt", template)]).unwrap();
    let mut options = options();
    options.limits = RenderLimits {
        output_bytes: 1 << 20,
        depth: 50,
        iterations: 10_000,
        steps: 1_000_000,
    };
    match chart.render(&json!({}), &options) {
        Err(RenderError::Limit { what, template, .. }) => {
            assert!(template.starts_with("meshy/templates/t.txt"), "{template}");
            what
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn long_strings_are_refused_before_they_exist() {
    for template in [
        "{{ repeat 1000000000 \"x\" }}",
        "{{ $s := \"xxxxxxxx\" }}{{ range until 60 }}{{ $s = printf \"%s%s\" $s $s }}{{ end }}",
        "{{ $s := \"xxxxxxxx\" }}{{ range until 60 }}{{ $s = cat $s $s }}{{ end }}",
        "{{ $s := repeat 100000 \"x\" }}{{ replace \"x\" $s $s }}",
        "{{ $s := repeat 100000 \"x\" }}{{ replace \"\" $s $s }}",
        "{{ $s := repeat 100000 \"x\" }}{{ regexReplaceAll \"x\" $s $s }}",
        "{{ $s := repeat 1000 \"x\" }}{{ regexReplaceAll \"(x+)x\" $s (repeat 2000 \"$1$1\") }}",
        "{{ indent 1000000000 \"x\" }}",
        "{{ repeat 1000 \"x\\n\" | indent 10000 }}",
        "{{ $s := repeat 100000 \"x\" }}{{ join $s (until 1000) }}",
        "{{ range until 5000 }}{{ repeat 1000 \"x\" }}{{ end }}",
    ] {
        assert_eq!(limit_of(template), "bytes in a string", "{template}");
    }
}

#[test]
fn long_loops_and_lists_are_refused() {
    for (template, what) in [
        ("{{ range 1000000 }}{{ end }}", "iterations"),
        (
            "{{ range until 9000 }}{{ range until 9000 }}{{ end }}{{ end }}",
            "iterations",
        ),
        ("{{ until 100000000 }}", "list items"),
        ("{{ seq 100000000 }}", "list items"),
        ("{{ untilStep 0 9000000000 1 }}", "list items"),
        ("{{ splitList \"\" (repeat 100000 \"x\") }}", "list items"),
    ] {
        assert_eq!(limit_of(template), what, "{template}");
    }
}

#[test]
fn recursion_is_refused() {
    for template in [
        "{{ define \"r\" }}{{ include \"r\" . }}{{ end }}{{ include \"r\" . }}",
        "{{ define \"r\" }}{{ template \"r\" . }}{{ end }}{{ template \"r\" . }}",
        "{{ define \"r\" }}{{ tpl \"{{ include \\\"r\\\" . }}\" . }}{{ end }}{{ include \"r\" . }}",
    ] {
        assert_eq!(limit_of(template), "nested templates", "{template}");
    }
}

#[test]
fn the_deepest_nesting_allowed_does_not_exhaust_the_stack() {
    let open = "{{ if true }}".repeat(90);
    let close = "{{ end }}".repeat(90);
    let expression = format!("{}include \"r\" .{}", "(".repeat(8), ")".repeat(8));
    let template = format!(
        "{{{{ define \"r\" }}}}{open}{{{{ {expression} }}}}{close}{{{{ end }}}}{{{{ include \"r\" . }}}}"
    );
    let chart = load(&[("templates/t.txt", &template)]).unwrap();
    let error = chart.render(&json!({}), &options()).unwrap_err();
    assert!(
        matches!(
            error,
            RenderError::Limit {
                what: "nested templates",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn values_that_nest_or_multiply_are_refused() {
    for (template, what) in [
        (
            "{{ $d := dict }}{{ range until 9000 }}{{ $d = dict \"a\" $d }}{{ end }}{{ toJson $d }}",
            "levels in a value",
        ),
        (
            "{{ $d := dict }}{{ $_ := set $d \"self\" $d }}{{ toYaml $d }}",
            "levels in a value",
        ),
        (
            "{{ $d := dict }}{{ $_ := set $d \"self\" $d }}{{ $d }}",
            "levels in a value",
        ),
        (
            "{{ $d := dict }}{{ $_ := set $d \"self\" $d }}{{ deepCopy $d }}",
            "levels in a value",
        ),
        (
            "{{ $d := dict \"x\" 1 }}{{ range until 60 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}{{ toJson $d }}",
            "steps",
        ),
        (
            "{{ $d := dict \"x\" 1 }}{{ range until 60 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}{{ deepCopy $d }}",
            "steps",
        ),
        (
            "{{ $d := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ print $d }}",
            "steps",
        ),
        (
            "{{ $d := list 1 }}{{ $e := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ $e = list $e $e }}{{ end }}{{ deepEqual $d $e }}",
            "steps",
        ),
        ("{{ $l := until 9000 }}{{ uniq $l }}", "steps"),
    ] {
        assert_eq!(limit_of(template), what, "{template}");
    }
}

#[test]
fn a_deep_value_is_dropped_without_recursion() {
    let template = "{{ $d := dict }}{{ range until 200000 }}{{ $d = dict \"a\" $d }}{{ end }}\
                    {{ $l := list }}{{ range until 200000 }}{{ $l = list $l }}{{ end }}done";
    let chart = load(&[("templates/t.txt", template)]).unwrap();
    assert_eq!(
        chart.render(&json!({}), &options()).unwrap().manifests[0].text,
        "done"
    );
}

#[test]
fn deep_expressions_and_blocks_do_not_load() {
    for template in [
        format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)),
        format!(
            "{}{}",
            "{{ if true }}".repeat(10_000),
            "{{ end }}".repeat(10_000)
        ),
    ] {
        assert!(load(&[("templates/t.txt", &template)]).is_err());
    }
}

#[test]
fn the_whole_output_is_bounded() {
    let text = "{{ repeat 600000 \"x\" }}";
    let chart = load(&[("templates/a.txt", text), ("templates/b.txt", text)]).unwrap();
    let mut options = options();
    options.limits.output_bytes = 1_000_000;
    let error = chart.render(&json!({}), &options).unwrap_err();
    assert!(
        matches!(
            error,
            RenderError::Limit {
                what: "bytes of output",
                ..
            }
        ),
        "{error}"
    );
}
