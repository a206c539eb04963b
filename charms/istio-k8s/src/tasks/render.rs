//! `render`: the manifests that the charm would apply, as an answer or as a file in the charm's
//! container.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use juju_charm::{ActionOutcome, Charm as _, ModelView, Problem};
use serde_json::Value;

use super::Report;
use super::params::Params;
use crate::charm::IstioK8s;
use crate::observe::View;
use crate::validate::Validated;

/// More than this is no answer that Juju keeps.
const LARGEST_ANSWER: usize = 512 << 10;

/// Manifests to write.
#[derive(Debug)]
pub struct Render {
    file: PathBuf,
    text: String,
    count: usize,
}

/// The work of writing a file, where one is asked for.
pub(super) fn task(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    params: Params<'_>,
) -> Option<Render> {
    let file = params.text("file");
    if file.is_empty() {
        return None;
    }
    let (text, count) = manifests(view, validated, cluster, params)?;
    Some(Render {
        file: view.context.charm_dir.join(file),
        text,
        count,
    })
}

/// The answer where no file is asked for.
pub(super) fn answer(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    params: Params<'_>,
    problems: &[Problem],
) -> ActionOutcome {
    let failed = |why: String| ActionOutcome::failed(why, BTreeMap::new());
    let Some((text, count)) = manifests(view, validated, cluster, params) else {
        let why = problems.first().map_or("nothing is wanted", |p| &p.message);
        return failed(format!("no manifests: {why}"));
    };
    if text.len() > LARGEST_ANSWER {
        return failed(format!(
            "{} KiB are too much for an answer; run again with file=PATH or crds=false",
            text.len() >> 10
        ));
    }
    ActionOutcome::ok(BTreeMap::from([
        ("manifests".to_owned(), text),
        ("count".to_owned(), count.to_string()),
    ]))
}

/// The manifests as YAML, in the order in which they are applied, and how many they are. Contents of
/// Secrets are left out.
fn manifests(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    params: Params<'_>,
) -> Option<(String, usize)> {
    let set = IstioK8s::desired(view, validated, cluster)?.set;
    let with_definitions = params.flag("crds");
    let mut text = String::new();
    let mut count = 0;
    for object in set.stages.iter().flat_map(|stage| &stage.objects) {
        if object.kind() == "CustomResourceDefinition" && !with_definitions {
            continue;
        }
        let mut value: Value = object.value().clone();
        if object.kind() == "Secret" {
            for secret in ["data", "stringData"] {
                if let Some(fields) = value.as_object_mut() {
                    fields.remove(secret);
                }
            }
        }
        text.push_str("---\n");
        text.push_str(&yaml::emit(&value).ok()?);
        count += 1;
    }
    Some((text, count))
}

impl Render {
    /// Writes the file.
    pub(super) fn run(self) -> Report {
        let Self { file, text, count } = self;
        match fs::write(&file, text) {
            Ok(()) => {
                let mut report = Report::default();
                report.set("file", file.display().to_string());
                report.set("count", count.to_string());
                report
            }
            Err(why) => Report::failed(format!("cannot write {}: {why}", file.display())),
        }
    }
}
