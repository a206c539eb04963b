//! Small charts for the tests.
#![allow(dead_code, reason = "not every test uses every helper")]
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

use helm_chart::{
    Capabilities, Chart, ChartError, FileTree, Release, RenderError, RenderOptions, Rendered,
};
use serde_json::{Value, json};

/// A chart named `meshy` with these files besides `Chart.yaml`.
pub(crate) fn load(files: &[(&str, &str)]) -> Result<Chart, ChartError> {
    let mut all = vec![(
        "Chart.yaml",
        "apiVersion: v2\nname: meshy\nversion: 1.2.3\nappVersion: 4.5.6\n",
    )];
    for file in files {
        all.retain(|(path, _)| path != &file.0);
        all.push(*file);
    }
    Chart::from_tree(&FileTree::try_from(all).unwrap())
}

pub(crate) fn options() -> RenderOptions {
    RenderOptions::new(
        Release::install("one", "istio-lab"),
        Capabilities::of_version("v1.36.3"),
    )
}

pub(crate) fn render(files: &[(&str, &str)], values: &Value) -> Result<Rendered, RenderError> {
    load(files).unwrap().render(values, &options())
}

/// The output of a template with these values.
pub(crate) fn evaluate(template: &str, values: &Value) -> Result<String, RenderError> {
    let text = format!("x{template}");
    let rendered = render(&[("templates/t.txt", &text)], values)?;
    let text = &rendered.manifests.first().unwrap().text;
    Ok(text.strip_prefix('x').unwrap().to_owned())
}

#[track_caller]
pub(crate) fn check(template: &str, expect: &str) {
    match evaluate(template, &json!({})) {
        Ok(text) => assert_eq!(text, expect, "{template}"),
        Err(error) => panic!("{template}: {error}"),
    }
}

#[track_caller]
pub(crate) fn check_with(values: &Value, template: &str, expect: &str) {
    match evaluate(template, values) {
        Ok(text) => assert_eq!(text, expect, "{template}"),
        Err(error) => panic!("{template}: {error}"),
    }
}

/// The error of a template, as text.
#[track_caller]
pub(crate) fn failure(template: &str, values: &Value) -> String {
    match evaluate(template, values) {
        Ok(text) => panic!("{template} gave {text:?}"),
        Err(error) => error.to_string(),
    }
}
