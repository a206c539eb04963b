//! From a chart and values to manifests.

use crate::chart::Chart;
use crate::engine::native::{Native, entries, file_map};
use crate::engine::value::{Entries, MapKind, MapObj, Value, entries_from_json};
use crate::engine::{Body, Engine, Scope};
use crate::error::RenderError;
use crate::limits::{Budget, RenderLimits};
use crate::{schema, values};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

type Table = serde_json::Map<String, serde_json::Value>;

/// Templates run on a stack of their own, large enough for the deepest nesting the limits allow.
const STACK_BYTES: usize = 256 << 20;

/// What templates see as `.Release`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Name of the release.
    pub name: String,
    /// Namespace it is installed in.
    pub namespace: String,
    /// The tool; `Helm` for Helm and for `istioctl`.
    pub service: String,
    /// Whether this is an upgrade.
    pub is_upgrade: bool,
    /// Whether this is an installation.
    pub is_install: bool,
    /// Counts up from 1.
    pub revision: u32,
}

impl Release {
    /// A first installation by Helm.
    pub fn install(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            service: "Helm".to_owned(),
            is_upgrade: false,
            is_install: true,
            revision: 1,
        }
    }
}

/// What templates see as `.Capabilities`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The cluster's version with its suffix, as `v1.36.3` or `v1.33.4-gke.1245000`.
    pub kube_version: String,
    /// Group versions the cluster serves, as `apps/v1`.
    pub api_versions: BTreeSet<String>,
    /// Version of Helm to claim, as `v4.3.2`.
    pub helm_version: String,
}

impl Capabilities {
    /// A cluster of which only the version is known.
    pub fn of_version(kube_version: impl Into<String>) -> Self {
        Self {
            kube_version: kube_version.into(),
            api_versions: BTreeSet::from(["v1".to_owned()]),
            helm_version: "v4.0.0".to_owned(),
        }
    }

    fn numbers(&self) -> [String; 3] {
        let text = self.kube_version.trim_start_matches('v');
        let core = text.split(['-', '+']).next().unwrap_or(text);
        let mut parts = core.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            if digits.is_empty() {
                "0".to_owned()
            } else {
                digits
            }
        });
        std::array::from_fn(|_| parts.next().unwrap_or_else(|| "0".to_owned()))
    }

    /// The version without suffix, which `.Capabilities.KubeVersion` prints.
    pub(crate) fn normalized(&self) -> String {
        format!("v{}", self.numbers().join("."))
    }

    pub(crate) fn major_minor(&self) -> (String, String) {
        let [major, minor, _] = self.numbers();
        (major, minor)
    }
}

/// How to render.
#[derive(Debug, Clone)]
pub struct RenderOptions {
    /// `.Release`.
    pub release: Release,
    /// `.Capabilities`.
    pub capabilities: Capabilities,
    /// What the render may cost.
    pub limits: RenderLimits,
    /// Whether to run `NOTES.txt`. Helm does, and a chart may refuse values there.
    pub include_notes: bool,
    /// Whether to skip `values.schema.json`. Istio's gateway charts up to 1.26 need it with Helm 4.
    pub skip_schema_validation: bool,
}

impl RenderOptions {
    /// Schema checked, notes left out, default limits.
    pub fn new(release: Release, capabilities: Capabilities) -> Self {
        Self {
            release,
            capabilities,
            limits: RenderLimits::default(),
            include_notes: false,
            skip_schema_validation: false,
        }
    }
}

/// The output of one template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Path of the template, as `base/templates/crds.yaml`.
    pub template: String,
    /// YAML, any number of documents.
    pub text: String,
}

/// The output of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendered {
    /// Manifests that are not blank, sorted by the path of their template.
    pub manifests: Vec<Manifest>,
    /// Files under `crds/`, which Helm installs first and never renders.
    pub crds: Vec<Manifest>,
    /// `NOTES.txt` of the chart itself, if asked for.
    pub notes: Option<String>,
    /// `.Values` of the chart itself as its templates left them: a template that runs early may have merged a profile in.
    pub values: serde_json::Value,
}

impl Rendered {
    /// The objects of all manifests (without `crds/`), by path of the template and then in the order of the text. Of two
    /// equal keys the last one counts, as for Helm.
    pub fn objects(&self) -> Result<Vec<serde_json::Value>, RenderError> {
        let mut objects = Vec::new();
        for manifest in &self.manifests {
            let documents = yaml::parse_all_with(&manifest.text, yaml::Duplicates::LastWins)
                .map_err(|source| RenderError::Output {
                    template: manifest.template.clone(),
                    source,
                })?;
            for document in documents {
                if !is_object_head(&document) {
                    return Err(RenderError::NotAnObject {
                        template: manifest.template.clone(),
                    });
                }
                objects.push(document);
            }
        }
        Ok(objects)
    }
}

/// What Helm decodes of every document before it passes it on: version, kind and name are scalars, annotations a map of
/// scalars, where they are there at all.
fn is_object_head(document: &serde_json::Value) -> bool {
    let is_scalar =
        |value: Option<&serde_json::Value>| value.is_none_or(|v| !v.is_object() && !v.is_array());
    let metadata = document.get("metadata").filter(|v| !v.is_null());
    let annotations = metadata
        .and_then(|m| m.get("annotations"))
        .filter(|v| !v.is_null());
    document.is_object()
        && is_scalar(document.get("apiVersion"))
        && is_scalar(document.get("kind"))
        && metadata.is_none_or(|m| m.is_object() && is_scalar(m.get("name")))
        && annotations.is_none_or(|a| {
            a.as_object()
                .is_some_and(|a| a.values().all(|v| is_scalar(Some(v))))
        })
}

impl Chart {
    /// Renders the chart. The same input gives the same output, byte for byte.
    ///
    /// `user_values` are what `helm template -f` would read; the chart's defaults fill them up.
    pub fn render(
        &self,
        user_values: &serde_json::Value,
        options: &RenderOptions,
    ) -> Result<Rendered, RenderError> {
        let user = match user_values {
            serde_json::Value::Null => Table::new(),
            serde_json::Value::Object(table) => table.clone(),
            _ => return Err(RenderError::Values("not a mapping".to_owned())),
        };
        if let Some(wanted) = &self.kube_version
            && crate::func::semver_matches(wanted, &options.capabilities.normalized()) != Some(true)
        {
            return Err(RenderError::KubeVersion {
                chart: self.name.clone(),
                wanted: wanted.clone(),
                actual: options.capabilities.kube_version.clone(),
            });
        }
        let mut disabled = BTreeSet::new();
        {
            let mut all = user.clone();
            self.coalesce(&mut all, &BTreeSet::new())?;
            self.disabled(&all, &all, "", true, &mut disabled);
        }
        let mut coalesced = user;
        self.coalesce(&mut coalesced, &disabled)?;
        if !options.skip_schema_validation {
            schema::validate(self, &coalesced, &|chart| {
                !disabled.contains(&chart.full_path)
            })?;
        }
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("render".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || self.evaluate(&coalesced, &disabled, options))
                .map_err(|e| RenderError::Thread(e.to_string()))?
                .join()
                .unwrap_or_else(|_| Err(RenderError::Thread("the renderer panicked".to_owned())))
        })
    }

    fn coalesce(&self, values: &mut Table, disabled: &BTreeSet<String>) -> Result<(), RenderError> {
        let enabled = || {
            self.subcharts
                .iter()
                .map(|s| &s.chart)
                .filter(|c| !disabled.contains(&c.full_path))
        };
        values::coalesce_values(values, &self.values, |key| {
            enabled().any(|chart| chart.name == key)
        });
        for chart in enabled() {
            let mut own = match values.remove(&chart.name) {
                None => Table::new(),
                Some(serde_json::Value::Object(own)) => own,
                Some(_) => {
                    return Err(RenderError::Values(format!(
                        "type mismatch on {}",
                        chart.name
                    )));
                }
            };
            values::coalesce_globals(&mut own, values);
            chart.coalesce(&mut own, disabled)?;
            values.insert(chart.name.clone(), serde_json::Value::Object(own));
        }
        Ok(())
    }

    /// Finds subcharts that conditions or tags switch off; what is below them is off too.
    fn disabled(
        &self,
        root: &Table,
        values: &Table,
        path: &str,
        on: bool,
        disabled: &mut BTreeSet<String>,
    ) {
        for subchart in &self.subcharts {
            let chart = &subchart.chart;
            let mut enabled = on;
            let tags = root.get("tags").and_then(serde_json::Value::as_object);
            let tagged: Vec<bool> = subchart
                .tags
                .iter()
                .filter_map(|tag| tags?.get(tag)?.as_bool())
                .collect();
            if !tagged.is_empty() && !tagged.contains(&true) {
                enabled = false;
            }
            let condition = subchart.conditions.iter().find_map(|condition| {
                let steps = path
                    .split('.')
                    .chain(condition.trim().split('.'))
                    .filter(|step| !step.is_empty());
                let mut table = Some(root);
                let mut at = None;
                for step in steps {
                    at = table?.get(step);
                    table = at.and_then(serde_json::Value::as_object);
                }
                at?.as_bool()
            });
            if let Some(condition) = condition {
                enabled = on && condition;
            }
            if !enabled {
                disabled.insert(chart.full_path.clone());
            }
            let own = match values.get(&chart.name) {
                Some(serde_json::Value::Object(own)) => own.clone(),
                _ => Table::new(),
            };
            chart.disabled(
                root,
                &own,
                &format!("{path}{}.", chart.name),
                enabled,
                disabled,
            );
        }
    }

    fn evaluate(
        &self,
        coalesced: &Table,
        disabled: &BTreeSet<String>,
        options: &RenderOptions,
    ) -> Result<Rendered, RenderError> {
        let root_values = MapObj::new(MapKind::Values, entries_from_json(coalesced));
        let mut jobs = Vec::new();
        let root = self.jobs(&root_values, disabled, &Top::new(options), &mut jobs);
        // Helm parses and executes deeper paths first, and among equals the last by name. With equal names the later parse
        // wins, so definitions of shallow, early files do.
        jobs.sort_by_key(|job| {
            let name = &job.parsed.main.name;
            Reverse((name.matches('/').count(), Arc::clone(name)))
        });
        let mut scope = Scope::default();
        for job in &jobs {
            scope.add(&job.parsed.main);
            for define in &job.parsed.defines {
                scope.add(define);
            }
        }
        let mut engine = Engine::new(scope, Budget::new(options.limits.clone()));
        let mut rendered = Rendered::default();
        let notes_path = format!("{}/templates/NOTES.txt", self.full_path);
        for job in &jobs {
            let body: &Arc<Body> = &job.parsed.main;
            let file = body.name.rsplit('/').next().unwrap_or("");
            let is_notes = body.name.ends_with("NOTES.txt");
            if file.starts_with('_') || (is_notes && !options.include_notes) {
                continue;
            }
            let template = entries([
                ("Name", Value::str(&body.name)),
                ("BasePath", Value::str(&job.base_path)),
            ]);
            job.root.set(
                "Template",
                Value::Map(MapObj::new(MapKind::Values, template)),
            );
            let text = engine.execute(body, Value::Map(Rc::clone(&job.root)))?;
            if is_notes {
                if *body.name == *notes_path {
                    rendered.notes = Some(text);
                }
            } else if !text.trim().is_empty() {
                rendered.manifests.push(Manifest {
                    template: body.name.to_string(),
                    text,
                });
            }
        }
        rendered
            .manifests
            .sort_by(|a, b| a.template.cmp(&b.template));
        self.collect_crds(disabled, &mut rendered.crds);
        // Values that have no JSON form cannot have come from values; they are left out.
        rendered.values = root
            .get("Values")
            .to_json(&engine.budget)
            .unwrap_or_default();
        Ok(rendered)
    }

    /// One job per template file; the files of a chart share their root, so that one can prepare values for the others.
    fn jobs<'c>(
        &'c self,
        values: &Rc<MapObj>,
        disabled: &BTreeSet<String>,
        top: &Top,
        jobs: &mut Vec<Job<'c>>,
    ) -> Rc<MapObj> {
        let mut subcharts = Entries::new();
        for subchart in self
            .subcharts
            .iter()
            .map(|s| &s.chart)
            .filter(|c| !disabled.contains(&c.full_path))
        {
            let values = match values.get(&subchart.name) {
                Value::Map(values) => values,
                _ => MapObj::new(MapKind::Values, Entries::new()),
            };
            let root = subchart.jobs(&values, disabled, top, jobs);
            subcharts.insert(Rc::from(subchart.name.as_str()), Value::Map(root));
        }
        let files = self
            .files
            .iter()
            .map(|(path, data)| (path.as_str(), data.as_slice()));
        let root = MapObj::new(
            MapKind::Any,
            entries([
                ("Chart", Value::from_json(&self.metadata)),
                (
                    "Files",
                    Value::Native(Native::Files(Rc::new(file_map(files)))),
                ),
                ("Release", top.release.clone()),
                ("Capabilities", top.capabilities.clone()),
                ("Values", Value::Map(Rc::clone(values))),
                ("Subcharts", Value::map(subcharts)),
            ]),
        );
        jobs.extend(self.templates.iter().map(|parsed| Job {
            parsed,
            root: Rc::clone(&root),
            base_path: format!("{}/templates", self.full_path),
        }));
        root
    }

    fn collect_crds(&self, disabled: &BTreeSet<String>, crds: &mut Vec<Manifest>) {
        crds.extend(self.crds.iter().map(|(path, text)| Manifest {
            template: path.clone(),
            text: text.clone(),
        }));
        for subchart in self
            .subcharts
            .iter()
            .map(|s| &s.chart)
            .filter(|c| !disabled.contains(&c.full_path))
        {
            subchart.collect_crds(disabled, crds);
        }
    }
}

struct Job<'c> {
    parsed: &'c crate::engine::Parsed,
    root: Rc<MapObj>,
    base_path: String,
}

/// What all charts of a render share.
struct Top {
    release: Value,
    capabilities: Value,
}

impl Top {
    fn new(options: &RenderOptions) -> Self {
        let release = &options.release;
        Self {
            release: Value::map(entries([
                ("Name", Value::str(&release.name)),
                ("Namespace", Value::str(&release.namespace)),
                ("Service", Value::str(&release.service)),
                ("IsUpgrade", Value::Bool(release.is_upgrade)),
                ("IsInstall", Value::Bool(release.is_install)),
                ("Revision", Value::Int(i64::from(release.revision))),
            ])),
            capabilities: Value::Native(Native::Capabilities(Rc::new(
                options.capabilities.clone(),
            ))),
        }
    }
}
