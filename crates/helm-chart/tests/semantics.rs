//! What a chart may rely on, each with a chart of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod common;

use common::{check, check_with, failure, load, options, render};
use helm_chart::RenderError;
use serde_json::{Value, json};

// Order of files, and the shared root.

#[test]
fn the_last_file_by_name_runs_first_and_prepares_values_for_all_others() {
    let files = [
        ("values.yaml", "_internal: {size: 1, color: red}\n"),
        (
            "templates/zzz.yaml",
            "{{- $defaults := $.Values._internal }}{{- $_ := unset $.Values \"_internal\" }}\
             {{- $_ := set $ \"Values\" (mustMergeOverwrite (deepCopy $defaults) $.Values) }}",
        ),
        (
            "templates/a.yaml",
            "size: {{ .Values.size }}\ncolor: {{ .Values.color }}\n",
        ),
        (
            "templates/sub/b.yaml",
            "seen: {{ hasKey .Values \"_internal\" }}\n",
        ),
    ];
    let rendered = render(&files, &json!({"color": "blue"})).unwrap();
    let texts: Vec<_> = rendered
        .manifests
        .iter()
        .map(|m| (&*m.template, &*m.text))
        .collect();
    assert_eq!(
        texts,
        [
            ("meshy/templates/a.yaml", "size: 1\ncolor: blue\n"),
            // Deeper files come first of all.
            ("meshy/templates/sub/b.yaml", "seen: true\n"),
        ]
    );
}

#[test]
fn of_two_definitions_the_one_in_the_first_file_by_name_counts() {
    let files = [
        ("templates/_a.tpl", "{{ define \"who\" }}a{{ end }}"),
        ("templates/_b.tpl", "{{ define \"who\" }}b{{ end }}"),
        ("templates/t.yaml", "who: {{ include \"who\" . }}"),
    ];
    assert_eq!(
        render(&files, &json!({})).unwrap().manifests[0].text,
        "who: a"
    );
}

// Maps are shared.

#[test]
fn writes_to_a_map_are_seen_through_every_reference() {
    check(
        "{{ $a := dict }}{{ $b := $a }}{{ $_ := set $b \"k\" 1 }}{{ $a.k }}",
        "1",
    );
    check(
        "{{ $a := dict \"m\" (dict) }}{{ $_ := set $a.m \"k\" 1 }}{{ $a.m.k }}",
        "1",
    );
    check(
        "{{ $a := dict \"k\" 1 }}{{ $b := deepCopy $a }}{{ $_ := unset $a \"k\" }}{{ $b.k }}",
        "1",
    );
    check(
        "{{ $a := dict \"x\" (dict \"p\" 1) }}{{ $_ := merge $a (dict \"x\" (dict \"p\" 2 \"q\" 3)) }}{{ $a | toJson }}",
        r#"{"x":{"p":1,"q":3}}"#,
    );
    check(
        "{{ $a := dict \"x\" (dict \"p\" 1) \"l\" (list 1) }}{{ $_ := mustMergeOverwrite $a (dict \"x\" (dict \"p\" 2) \"l\" (list) \"e\" \"\") }}{{ $a | toJson }}",
        r#"{"e":"","l":[],"x":{"p":2}}"#,
    );
    check(
        "{{ $a := dict \"p\" \"\" }}{{ $_ := merge $a (dict \"p\" \"filled\") }}{{ $a.p }}",
        "filled",
    );
    check(
        "{{ $a := dict \"p\" 1 }}{{ $_ := mergeOverwrite $a (dict \"p\" nil) }}{{ $a | toJson }}",
        r#"{"p":null}"#,
    );
    check(
        "{{ $src := dict \"m\" (dict) }}{{ $a := merge (dict) $src }}{{ $_ := set $a.m \"k\" 1 }}{{ $src.m.k }}",
        "1",
    );
}

#[test]
fn the_users_values_are_untouched_by_the_chart() {
    let chart = load(&[(
        "templates/t.yaml",
        "{{ $_ := set .Values \"a\" 2 }}a: {{ .Values.a }}",
    )])
    .unwrap();
    let values = json!({"a": 1});
    for _ in 0..2 {
        assert_eq!(
            chart.render(&values, &options()).unwrap().manifests[0].text,
            "a: 2"
        );
    }
    assert_eq!(values, json!({"a": 1}));
}

// Nothing, emptiness, truth.

#[test]
fn maps_are_walked_in_the_order_of_their_keys() {
    check_with(
        &json!({"m": {"b": 1, "a": 2, "B": 3}}),
        "{{ range $k, $v := .Values.m }}{{ $k }}={{ $v }} {{ end }}",
        "B=3 a=2 b=1 ",
    );
    check_with(
        &json!({"m": {"b": 1, "a": 2}}),
        "{{ keys .Values.m }} {{ values .Values.m }}",
        "[a b] [2 1]",
    );
}

#[test]
fn nothing_prints_as_nothing() {
    check("[{{ .Values.none }}][{{ default \"d\" nil }}]", "[][d]");
    check(
        "[{{ printf \"%v %s\" .Values.none .Values.none }}]",
        "[<nil> %!s(<nil>)]",
    );
    check(
        "[{{ .Values.none | quote }}][{{ cat \"a\" nil \"b\" }}]",
        "[][a b]",
    );
    check(
        "[{{ list nil 1 }}][{{ .Values.none | toYaml }}][{{ dict \"a\" nil | toJson }}]",
        "[[<nil> 1]][null][{\"a\":null}]",
    );
    check(
        "{{ define \"n\" }}[{{ .x }}]{{ end }}{{ include \"n\" (dict) }}",
        "[]",
    );
}

#[test]
fn a_field_of_nothing_is_an_error_unless_in_parentheses() {
    check("[{{ ((.Values.a).b).c }}]", "[]");
    check("{{ $x := .Values.a }}[{{ $x.b }}]", "[]");
    check("{{ with .Values.a }}no{{ else }}yes{{ end }}", "yes");
    let error = failure("\n\n{{ .Values.a.b }}", &json!({}));
    assert_eq!(
        error,
        "meshy/templates/t.txt:3: at <.Values.a.b>: nil pointer evaluating interface {}.b"
    );
    assert!(
        failure(
            "{{ range .Values.l }}{{ .x.y }}{{ end }}",
            &json!({"l": [{}]})
        )
        .contains("<.x.y>: nil pointer")
    );
    assert!(
        failure(
            "{{ range .Values.l }}{{ .x }}{{ end }}",
            &json!({"l": [null]})
        )
        .contains("nil pointer")
    );
    assert!(
        failure("{{ .Values.s.x }}", &json!({"s": "text"}))
            .contains("can't evaluate field x in type string")
    );
}

#[test]
fn truth_and_emptiness_are_gos() {
    for (value, truth) in [
        (json!(null), false),
        (json!(false), false),
        (json!(0), false),
        (json!(""), false),
        (json!([]), false),
        (json!({}), false),
        (json!(true), true),
        (json!(-1), true),
        (json!("false"), true),
        (json!([null]), true),
        (json!({"a": null}), true),
    ] {
        let expect = if truth {
            "true false value"
        } else {
            "false true default"
        };
        check_with(
            &json!({"m": {"v": value}}),
            "{{ $v := .Values.m.v }}{{ if $v }}true{{ else }}false{{ end }} {{ empty $v }} {{ if eq (default \"D\" $v | toString) \"D\" }}default{{ else }}value{{ end }}",
            expect,
        );
    }
    check(
        "{{ coalesce 0 \"\" nil (list) \"x\" \"y\" }} {{ ternary 1 2 true }} {{ ternary 1 2 false }}",
        "x 1 2",
    );
}

#[test]
fn and_and_or_return_operands_and_stop_early() {
    check(
        "{{ and 1 0 2 }} {{ and 1 2 }} {{ or 0 \"\" \"x\" }} {{ or 0 \"\" | quote }}",
        "0 2 x \"\"",
    );
    check(
        "{{ if and .Values.a (fail \"not reached\") }}{{ end }}{{ or true (fail \"not reached\") }}",
        "true",
    );
    check(
        "{{ \"x\" | and true }} {{ \"\" | or false | quote }}",
        "x \"\"",
    );
}

// Typed comparison.

#[test]
fn eq_is_typed() {
    check(
        "{{ eq 1 1 }} {{ eq \"a\" \"b\" \"a\" }} {{ eq nil true }} {{ eq .Values.none \"\" }} {{ ne 1 2 }}",
        "true true false false true",
    );
    for template in [
        "{{ eq \"true\" true }}",
        "{{ eq 1 1.0 }}",
        "{{ eq \"1\" 1 }}",
        "{{ lt 1 \"2\" }}",
    ] {
        let error = failure(template, &json!({}));
        assert!(
            error.contains("incompatible types for comparison"),
            "{template}: {error}"
        );
    }
    // Everything from a file is a float.
    assert!(failure("{{ eq .Values.n 1 }}", &json!({"n": 1})).contains("incompatible types"));
    check_with(
        &json!({"n": 1}),
        "{{ eq (int .Values.n) 1 }} {{ gt .Values.n 0.5 }}",
        "true true",
    );
    assert!(failure("{{ eq (dict) (dict) }}", &json!({})).contains("non-comparable type"));
    check(
        "{{ lt 1 2 }} {{ le 2 2 }} {{ gt \"b\" \"a\" }} {{ ge 1.5 2.5 }}",
        "true true true false",
    );
}

// Numbers and text formats.

#[test]
fn numbers_print_as_gos_floats_and_are_whole_again_in_yaml() {
    let values = json!({"small": 15012, "big": 1_000_000, "half": 0.5, "huge": 123_456_789});
    check_with(
        &values,
        "{{ .Values.small }} {{ .Values.big }} {{ .Values.half }} {{ .Values.huge }} {{ .Values.huge | int }} {{ 1000000 }}",
        "15012 1e+06 0.5 1.23456789e+08 123456789 1000000",
    );
    check_with(
        &values,
        "{{ toYaml .Values }}",
        "big: 1000000\nhalf: 0.5\nhuge: 123456789\nsmall: 15012",
    );
    check(
        "{{ (fromYaml \"a: 5\\nb: 0x10\\nc: yes\").a }} {{ fromYaml \"b: 0x10\\nc: yes\" | toJson }}",
        "5 {\"b\":16,\"c\":true}",
    );
}

#[test]
fn json_is_escaped_and_sorted_like_gos() {
    let values = json!({"m": {"b": "<a> & 'c'", "a": [1, {"x": null}], "e": {}, "l": []}});
    check_with(
        &values,
        "{{ toJson .Values.m }}",
        r#"{"a":[1,{"x":null}],"b":"\u003ca\u003e \u0026 'c'","e":{},"l":[]}"#,
    );
    check_with(&values, "{{ toRawJson .Values.m.b }}", "\"<a> & 'c'\"");
    check_with(
        &values,
        "{{ toPrettyJson .Values.m }}",
        "{\n  \"a\": [\n    1,\n    {\n      \"x\": null\n    }\n  ],\n  \"b\": \"\\u003ca\\u003e \\u0026 'c'\",\n  \"e\": {},\n  \"l\": []\n}",
    );
}

#[test]
fn broken_yaml_and_json_become_an_error_key() {
    check(
        "{{ hasKey (fromYaml \"a: [\") \"Error\" }} {{ hasKey (fromJson \"{\") \"Error\" }} {{ fromYaml \"- a\" | keys }}",
        "true true [Error]",
    );
    check(
        "{{ fromYamlArray \"- a\\n- b\" }} {{ fromJsonArray \"[1]\" }} {{ fromYaml \"\" }}",
        "[a b] [1] map[]",
    );
}

#[test]
fn indentation_is_exact() {
    check("{{ \"a\\nb\\n\\nc\" | indent 2 }}", "  a\n  b\n  \n  c");
    check("{{ \"a\\nb\" | nindent 2 }}", "\n  a\n  b");
}

#[test]
fn white_space_is_trimmed_where_the_template_says() {
    check("a \n {{- 1 }} b {{ 2 -}} \n c", "a1 b 2c");
    check("a {{- /* left only */}} b", "a b");
    check("a {{/* right only */ -}} b", "a b");
    check("a {{- /* both */ -}} b", "ab");
    check("a {{/* none */}} b", "a  b");
    let error = failure(
        "a {{- /* three\n\nlines */}}\n{{ .Values.a.b }}",
        &json!({}),
    );
    assert!(error.starts_with("meshy/templates/t.txt:4:"), "{error}");
}

// Statements.

#[test]
fn variables_live_until_the_end_of_their_block() {
    check(
        "{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ $y }}{{ end }}{{ $x }}",
        "32",
    );
    check(
        "{{ $x := 1 }}{{ range list 1 2 }}{{ $x := . }}{{ end }}{{ $x }}",
        "1",
    );
    check(
        "{{ $last := 0 }}{{ range list 1 2 3 }}{{ $last = . }}{{ end }}{{ $last }}",
        "3",
    );
    check("{{ with $x := 5 }}{{ $x }}{{ . }}{{ end }}", "55");
    check(
        "{{ define \"t\" }}{{ $ }}{{ end }}{{ template \"t\" 7 }}",
        "7",
    );
}

#[test]
fn ranges_break_continue_and_fall_back() {
    check(
        "{{ range $i, $e := list \"a\" \"b\" \"c\" }}{{ if eq $e \"b\" }}{{ continue }}{{ end }}{{ $i }}{{ $e }}{{ end }}",
        "0a2c",
    );
    check(
        "{{ range list 1 2 3 }}{{ if eq . 2 }}{{ break }}{{ end }}{{ . }}{{ end }}",
        "1",
    );
    check(
        "{{ range list }}x{{ else }}none{{ end }}{{ range .Values.none }}x{{ else }}none{{ end }}",
        "nonenone",
    );
    check(
        "{{ range 3 }}{{ . }}{{ end }}{{ range until 2 }}{{ . }}{{ end }}",
        "01201",
    );
    check(
        "{{ $i := 9 }}{{ $e := 9 }}{{ range $i, $e = list 5 6 }}{{ end }}{{ $i }}{{ $e }}",
        "16",
    );
    assert!(
        failure("{{ range .Values.n }}{{ end }}", &json!({"n": 3}))
            .contains("range can't iterate over a float64")
    );
    assert!(failure("{{ range \"text\" }}{{ end }}", &json!({})).contains("range can't iterate"));
}

#[test]
fn chains_of_else_take_the_first_that_holds() {
    let template = "{{ if eq .Values.n \"a\" }}A{{ else if eq .Values.n \"b\" }}B{{ else with .Values.n }}{{ . }}{{ else }}none{{ end }}";
    for (value, expect) in [("a", "A"), ("b", "B"), ("c", "c"), ("", "none")] {
        check_with(&json!({"n": value}), template, expect);
    }
}

#[test]
fn tpl_sees_the_charts_templates_and_adds_its_own() {
    let files = [
        ("templates/_h.tpl", "{{ define \"outer\" }}outer{{ end }}"),
        (
            "templates/t.yaml",
            "a: {{ tpl .Values.t . }}\nb: {{ tpl \"{{ define \\\"inner\\\" }}in{{ end }}{{ include \\\"inner\\\" . }}\" . }}\n",
        ),
    ];
    let rendered = render(
        &files,
        &json!({"t": "{{ include \"outer\" . }} {{ .Release.Name }} {{ .Values.none }}"}),
    )
    .unwrap();
    assert_eq!(rendered.manifests[0].text, "a: outer one \nb: in\n");
    let files = [(
        "templates/t.yaml",
        "a: {{ tpl \"{{ define \\\"x\\\" }}{{ end }}\" . }}{{ include \"x\" . }}",
    )];
    assert!(
        render(&files, &json!({}))
            .unwrap_err()
            .to_string()
            .contains("no template \"x\"")
    );
}

#[test]
fn a_block_is_a_definition_and_a_call() {
    check(
        "{{ block \"b\" 5 }}[{{ . }}]{{ end }}{{ template \"b\" 6 }}",
        "[5][6]",
    );
}

// Objects Helm provides.

#[test]
fn the_built_in_objects_are_there() {
    let files = [
        ("files/a.txt", "one\ntwo\n"),
        ("files/b.yaml", "b"),
        (
            "templates/t.yaml",
            "r: {{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.Service }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Revision }}\n\
             c: {{ .Chart.Name }} {{ .Chart.Version }} {{ .Chart.AppVersion }}\n\
             t: {{ .Template.Name }} {{ .Template.BasePath }}\n\
             k: {{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Major }}.{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.KubeVersion.GitVersion }} {{ .Capabilities.APIVersions.Has \"v1\" }} {{ .Capabilities.APIVersions.Has \"x/v1\" }}\n\
             f: {{ .Files.Get \"files/a.txt\" | quote }} {{ .Files.Get \"none\" | quote }} {{ .Files.Lines \"files/a.txt\" }} {{ len (.Files.Glob \"files/*\") }} {{ len (.Files.Glob \"*.yaml\") }}\n\
             {{ (.Files.Glob \"files/*.txt\").AsConfig }}\n{{ (.Files.Glob \"**.yaml\").AsSecrets }}\n\
             g:{{ range $path, $data := .Files.Glob \"files/*\" }} {{ $path }}{{ end }}\n",
        ),
    ];
    let text = render(&files, &json!({})).unwrap().manifests[0]
        .text
        .clone();
    assert_eq!(
        text,
        "r: one istio-lab Helm true false 1\n\
         c: meshy 1.2.3 4.5.6\n\
         t: meshy/templates/t.yaml meshy/templates\n\
         k: v1.36.3 1.36 v1.36.3 true false\n\
         f: \"one\\ntwo\\n\" \"\" [one two] 2 0\n\
         a.txt: |\n  one\n  two\nb.yaml: Yg==\n\
         g: files/a.txt files/b.yaml\n"
    );
}

#[test]
fn a_version_with_a_suffix_is_kept_and_normalised() {
    let chart = load(&[(
        "templates/t.yaml",
        "k: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.KubeVersion }}",
    )])
    .unwrap();
    let mut options = options();
    options.capabilities.kube_version = "v1.33.4-gke.1245000".to_owned();
    assert_eq!(
        chart.render(&json!({}), &options).unwrap().manifests[0].text,
        "k: v1.33.4-gke.1245000 v1.33.4"
    );
}

#[test]
fn methods_need_their_arguments_and_fields_take_none() {
    assert!(
        failure("{{ .Files.Get }}", &json!({}))
            .contains("wrong number of args for Get: want 1 got 0")
    );
    assert!(
        failure("{{ .Values.a \"x\" }}", &json!({"a": 1}))
            .contains("a is not a method but has arguments")
    );
    assert!(
        failure("{{ .Capabilities.Nothing }}", &json!({})).contains("can't evaluate field Nothing")
    );
    assert!(failure("{{ \"x\" | .Values.a }}", &json!({})).contains("not a method"));
    assert!(failure("{{ 1 2 }}", &json!({})).contains("can't give argument to non-function 1"));
}

// Values, defaults, layers.

#[test]
fn defaults_fill_up_and_null_deletes() {
    let files = [
        ("values.yaml", "a: 1\nb: {x: 1, v: 2}\nc: [1]\nd: null\n"),
        ("templates/t.txt", "{{ toJson .Values }}"),
    ];
    let rendered = render(
        &files,
        &json!({"a": null, "b": {"x": null, "z": 3}, "c": [2]}),
    )
    .unwrap();
    assert_eq!(rendered.manifests[0].text, r#"{"b":{"v":2,"z":3},"c":[2]}"#);
}

#[test]
fn layers_of_defaults_profile_and_user_keep_their_precedence() {
    let files = [
        (
            "values.yaml",
            "defaults: {a: chart, b: chart, c: chart, nested: {p: chart, q: chart}}\n",
        ),
        (
            "files/profile-small.yaml",
            "b: profile\nc: profile\nnested: {q: profile}\n",
        ),
        (
            "templates/zzz_profile.yaml",
            "{{- $defaults := $.Values.defaults }}{{- $_ := unset $.Values \"defaults\" }}\
             {{- $profile := dict }}\
             {{- with (coalesce ($.Values).profile ((($.Values).global).profile)) }}\
             {{- with $.Files.Get (printf \"files/profile-%s.yaml\" .) }}{{- $profile = (. | fromYaml) }}\
             {{- else }}{{ fail (cat \"unknown profile\" .) }}{{- end }}{{- end }}\
             {{- $x := set $ \"Values\" (mustMergeOverwrite $defaults $profile $.Values) }}",
        ),
        ("templates/t.txt", "{{ unset .Values \"global\" | toJson }}"),
    ];
    let rendered = render(
        &files,
        &json!({"c": "user", "global": {"profile": "small"}}),
    )
    .unwrap();
    assert_eq!(
        rendered.manifests[0].text,
        r#"{"a":"chart","b":"profile","c":"user","nested":{"p":"chart","q":"profile"}}"#
    );
    let error = render(&files, &json!({"profile": "large"})).unwrap_err();
    assert!(
        matches!(error, RenderError::Refused { ref message, .. } if message == "unknown profile large"),
        "{error}"
    );
}

#[test]
fn subcharts_get_their_values_globals_and_conditions() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: meshy\nversion: 1.0.0\ndependencies:\n- {name: child, version: 1.0.0, condition: child.enabled}\n- {name: other, version: 1.0.0, tags: [extras]}\n",
        ),
        (
            "values.yaml",
            "global: {g: parent}\nchild: {a: from-parent}\n",
        ),
        (
            "charts/child/Chart.yaml",
            "apiVersion: v2\nname: child\nversion: 1.0.0\n",
        ),
        (
            "charts/child/values.yaml",
            "a: own\nb: own\nglobal: {g: own, h: own}\n",
        ),
        (
            "charts/child/templates/t.txt",
            "{{ .Values | toJson }} {{ .Chart.Name }} {{ .Template.Name }} {{ include \"shared\" . }}",
        ),
        (
            "charts/other/Chart.yaml",
            "apiVersion: v2\nname: other\nversion: 1.0.0\n",
        ),
        ("charts/other/templates/t.txt", "other"),
        ("templates/_h.tpl", "{{ define \"shared\" }}shared{{ end }}"),
    ];
    let texts = |values: &Value| -> Vec<String> {
        render(&files, values)
            .unwrap()
            .manifests
            .into_iter()
            .map(|m| m.text)
            .collect()
    };
    let child = r#"{"a":"from-parent","b":"own","global":{"g":"parent","h":"own"}} child meshy/charts/child/templates/t.txt shared"#;
    assert_eq!(texts(&json!({})), [child, "other"]);
    assert_eq!(texts(&json!({"child": {"enabled": false}})), ["other"]);
    let tagged = json!({"tags": {"extras": false}});
    assert_eq!(texts(&tagged), [child]);
    assert!(matches!(
        render(&files, &json!({"child": 1})),
        Err(RenderError::Values(_))
    ));
}

#[test]
fn a_library_chart_lends_its_definitions_only() {
    let files = [
        (
            "charts/lib/Chart.yaml",
            "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
        ),
        (
            "charts/lib/templates/_h.tpl",
            "{{ define \"lib.x\" }}x{{ end }}",
        ),
        ("charts/lib/templates/t.txt", "never"),
        ("templates/t.txt", "{{ include \"lib.x\" . }}"),
    ];
    let rendered = render(&files, &json!({})).unwrap();
    assert_eq!(rendered.manifests.len(), 1);
    assert_eq!(rendered.manifests[0].text, "x");
}
