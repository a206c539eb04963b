//! What comes out of a chart, and how a chart or its user is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod common;

use common::{evaluate, failure, load, options, render};
use helm_chart::{ChartError, RenderError};
use serde_json::json;

// Output.

#[test]
fn objects_come_by_path_and_blank_output_is_dropped() {
    let files = [
        (
            "templates/b.yaml",
            "kind: B1\n---\n# nothing\n---\nkind: B2\n",
        ),
        ("templates/a.yaml", "kind: A\nkind: A2\n"),
        ("templates/blank.yaml", "{{ if false }}kind: C{{ end }}\n"),
        ("templates/_partial.yaml", "kind: D\n"),
        ("templates/NOTES.txt", "notes for {{ .Release.Name }}"),
        ("crds/c.yaml", "kind: {{ not a template }}\n"),
    ];
    let rendered = render(&files, &json!({})).unwrap();
    assert_eq!(
        rendered.objects().unwrap(),
        [
            json!({"kind": "A2"}),
            json!({"kind": "B1"}),
            json!({"kind": "B2"})
        ]
    );
    assert_eq!(rendered.notes, None);
    assert_eq!(rendered.crds[0].template, "meshy/crds/c.yaml");
    let mut with_notes = options();
    with_notes.include_notes = true;
    let rendered = load(&files)
        .unwrap()
        .render(&json!({}), &with_notes)
        .unwrap();
    assert_eq!(rendered.notes.as_deref(), Some("notes for one"));
}

#[test]
fn what_is_no_object_is_refused_by_name_of_its_template() {
    for text in [
        "- a list\n",
        "just text\n",
        "kind: [x]\n",
        "metadata: {annotations: text}\n",
        "metadata: {name: {}}\n",
    ] {
        let rendered = render(&[("templates/t.yaml", text)], &json!({})).unwrap();
        let error = rendered.objects().unwrap_err();
        assert!(
            matches!(error, RenderError::NotAnObject { ref template } if template == "meshy/templates/t.yaml"),
            "{text}"
        );
    }
    let rendered = render(&[("templates/t.yaml", "a: [\n")], &json!({})).unwrap();
    assert!(matches!(
        rendered.objects(),
        Err(RenderError::Output { .. })
    ));
}

#[test]
fn two_renders_give_the_same_bytes() {
    let chart = load(&[(
        "templates/t.txt",
        "{{ .Values | toYaml }}{{ .Values | toPrettyJson }}{{ . | keys }}",
    )])
    .unwrap();
    let values = json!({"z": {"b": 1, "a": [1, 2, {"y": 1, "x": 2}]}, "a10": 1, "a2": 2});
    assert_eq!(
        chart.render(&values, &options()).unwrap(),
        chart.render(&values, &options()).unwrap()
    );
}

// Refusals.

#[test]
fn the_charts_own_words_reach_the_user() {
    let error = evaluate("\n{{ fail \"set the name, please\" }}", &json!({})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "meshy/templates/t.txt:2: set the name, please"
    );
    for (template, refused) in [
        ("{{ required \"a is required\" .Values.a }}", true),
        ("{{ required \"a is required\" \"\" }}", true),
        ("{{ required \"a is required\" 0 }}", false),
    ] {
        assert_eq!(
            matches!(
                evaluate(template, &json!({})),
                Err(RenderError::Refused { .. })
            ),
            refused,
            "{template}"
        );
    }
}

#[test]
fn an_error_tells_how_it_was_reached() {
    let files = [
        (
            "templates/_h.tpl",
            "{{ define \"outer\" }}\n{{ include \"inner\" . }}{{ end }}\n{{ define \"inner\" }}{{ .Values.a.b }}{{ end }}",
        ),
        ("templates/t.yaml", "\n\nx: {{ include \"outer\" . }}"),
    ];
    let error = render(&files, &json!({})).unwrap_err();
    let RenderError::Template {
        template,
        line,
        expression,
        included_from,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (template.as_str(), line, expression.as_str()),
        ("meshy/templates/_h.tpl", 3, ".Values.a.b")
    );
    assert_eq!(
        included_from,
        ["meshy/templates/_h.tpl:2", "meshy/templates/t.yaml:3"]
    );
}

#[test]
fn arguments_have_types() {
    for (template, message) in [
        (
            "{{ trunc \"3\" \"text\" }}",
            "wrong type for value; expected int; got string",
        ),
        ("{{ indent 1.5 \"x\" }}", "expected int; got float64"),
        ("{{ upper 5 }}", "expected string; got int"),
        ("{{ upper .Values.none }}", "invalid value; expected string"),
        (
            "{{ set \"x\" \"y\" 1 }}",
            "expected map[string]interface {}; got string",
        ),
        (
            "{{ trunc 3 }}",
            "wrong number of args for trunc: want 2 got 1",
        ),
        (
            "{{ default }}",
            "wrong number of args for default: want at least 1 got 0",
        ),
        (
            "{{ dig \"a\" \"b\" \"d\" (dict \"a\" 1) }}",
            "not map[string]interface {}",
        ),
        ("{{ index (list 1) 3 }}", "index out of range: 3"),
        ("{{ index nil 3 }}", "index of untyped nil"),
        ("{{ len 3 }}", "len of type int"),
        ("{{ include \"none\" . }}", "no template \"none\""),
        ("{{ template \"none\" . }}", "template \"none\" not defined"),
        ("{{ div 1 0 }}", "divide by zero"),
        ("{{ nil }}", "nil is not a command"),
        ("{{ tpl \"{{\" . }}", "cannot parse template"),
        ("{{ repeat -1 \"x\" }}", "negative"),
        ("{{ first \"x\" }}", "Cannot find first on type string"),
    ] {
        let error = failure(template, &json!({}));
        assert!(error.contains(message), "{template}: {error}");
    }
}

#[test]
fn a_chart_that_does_not_parse_does_not_load() {
    for (template, message) in [
        (
            "{{ nosuchfunction }}",
            "function \"nosuchfunction\" not defined",
        ),
        (
            "{{ if false }}{{ now }}{{ end }}",
            "function \"now\" not defined",
        ),
        ("{{ $x }}", "undefined variable \"$x\""),
        ("{{ $x = 1 }}", "undefined variable \"$x\""),
        (
            "{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}",
            "undefined variable",
        ),
        ("{{ if true }}", "{{if}} is never closed"),
        ("{{ end }}", "unexpected {{end}}"),
        ("{{ else }}", "unexpected {{else}}"),
        (
            "{{ if 1 }}{{ else }}{{ else }}{{ end }}",
            "unexpected {{else}}",
        ),
        ("{{ break }}", "outside {{range}}"),
        (
            "{{ if true }}{{ define \"x\" }}{{ end }}{{ end }}",
            "unexpected {{define}}",
        ),
        ("{{ \"unclosed }}", "unclosed"),
        ("{{ /* unclosed", "unclosed"),
        ("{{ 1 | 2 }}", "non executable command"),
        ("{{ }}", "empty command"),
        ("{{", "unclosed"),
    ] {
        match load(&[("templates/t.txt", template)]) {
            Err(ChartError::Template {
                template: path,
                message: text,
                ..
            }) => {
                assert_eq!(path, "meshy/templates/t.txt");
                assert!(text.contains(message), "{template}: {text}");
            }
            other => panic!("{template}: {other:?}"),
        }
    }
}

#[test]
fn a_broken_chart_says_which_file_is_broken() {
    assert!(matches!(
        helm_chart::Chart::from_tree(&helm_chart::FileTree::default()),
        Err(ChartError::NoMetadata)
    ));
    for (path, text) in [
        ("Chart.yaml", "name: meshy\n"),
        ("Chart.yaml", "name: ../meshy\nversion: 1.0.0\n"),
        ("values.yaml", "- a\n"),
        ("values.schema.json", "{"),
    ] {
        assert!(
            matches!(load(&[(path, text)]), Err(ChartError::Metadata { file, .. }) if file == path),
            "{path} {text}"
        );
    }
    assert!(
        matches!(load(&[("values.yaml", "a: [")]), Err(ChartError::Yaml { file, .. }) if file == "values.yaml")
    );
    assert!(matches!(
        load(&[("charts/x.tgz", "")]),
        Err(ChartError::Unsupported { .. })
    ));
}

#[test]
fn the_schema_is_checked_unless_told_otherwise() {
    let files = [
        ("values.yaml", "replicas: 1\n"),
        (
            "values.schema.json",
            r#"{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false, "properties": {"replicas": {"type": "integer"}}}"#,
        ),
        ("templates/t.txt", "{{ .Values.replicas }}"),
    ];
    assert!(render(&files, &json!({"replicas": 2})).is_ok());
    for values in [json!({"replicas": "two"}), json!({"other": 1})] {
        let error = render(&files, &values).unwrap_err();
        assert!(
            matches!(error, RenderError::Schema { ref problems, .. } if problems.len() == 1),
            "{error}"
        );
        let mut unchecked = options();
        unchecked.skip_schema_validation = true;
        assert!(load(&files).unwrap().render(&values, &unchecked).is_ok());
    }
    let remote = [(
        "values.schema.json",
        r#"{"$ref": "https://example.com/schema.json"}"#,
    )];
    assert!(matches!(
        render(&remote, &json!({})),
        Err(RenderError::BadSchema { .. })
    ));
}

#[test]
fn a_chart_for_another_kubernetes_is_refused() {
    let chart = |constraint: &str| {
        let text =
            format!("apiVersion: v2\nname: meshy\nversion: 1.0.0\nkubeVersion: \"{constraint}\"\n");
        render(&[("Chart.yaml", &text)], &json!({}))
    };
    assert!(chart(">=1.30.0-0").is_ok());
    assert!(matches!(
        chart("<1.30"),
        Err(RenderError::KubeVersion { .. })
    ));
}
