//! A chart: metadata, default values, parsed templates, files, subcharts.
//!
//! Templates are parsed once, here; a render only evaluates.

use crate::engine::{Parsed, parse};
use crate::error::ChartError;
use crate::tree::FileTree;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The deepest nesting of subcharts.
const MAX_NESTING: usize = 8;

/// A loaded chart, ready to be rendered any number of times.
#[derive(Debug)]
pub struct Chart {
    /// `name` in `Chart.yaml`.
    pub name: String,
    /// `version` in `Chart.yaml`.
    pub version: String,
    /// `appVersion` in `Chart.yaml`; empty if there is none.
    pub app_version: String,
    /// `kubeVersion` in `Chart.yaml`, a constraint.
    pub kube_version: Option<String>,
    /// What templates see as `.Chart`.
    pub(crate) metadata: Value,
    pub(crate) values: Map<String, Value>,
    pub(crate) schema: Option<Value>,
    pub(crate) templates: Vec<Parsed>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Files under `crds/`, which Helm installs but does not render.
    pub(crate) crds: Vec<(String, String)>,
    pub(crate) subcharts: Vec<Subchart>,
    /// `base`, or `parent/charts/child`.
    pub(crate) full_path: String,
}

/// A chart under `charts/`, and when it is rendered.
#[derive(Debug)]
pub(crate) struct Subchart {
    pub(crate) chart: Chart,
    /// Paths into the values; the first that is a boolean decides.
    pub(crate) conditions: Vec<String>,
    /// Keys of the table `tags`.
    pub(crate) tags: Vec<String>,
}

impl Chart {
    /// Loads a chart from the directory of `Chart.yaml`. Every template is parsed, and every function it names must exist.
    pub fn from_tree(tree: &FileTree) -> Result<Self, ChartError> {
        Self::load(tree, "", 0)
    }

    /// The chart's default values.
    pub fn default_values(&self) -> Value {
        Value::Object(self.values.clone())
    }

    /// Paths of the files that templates can read, within the chart.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    fn load(tree: &FileTree, parent: &str, depth: usize) -> Result<Self, ChartError> {
        let manifest = yaml_file(tree, "Chart.yaml")?.ok_or(ChartError::NoMetadata)?;
        let meta = Metadata(&manifest);
        let name = meta.required("name")?;
        if name.contains(['/', '\\']) || name == "." || name == ".." {
            return Err(Metadata::error("name is no name"));
        }
        let version = meta.required("version")?;
        let full_path = if parent.is_empty() {
            name.clone()
        } else {
            format!("{parent}/charts/{name}")
        };
        let library = meta.text("type").eq_ignore_ascii_case("library");

        let Value::Object(values) = yaml_documents(tree, "values.yaml")? else {
            return Err(ChartError::Metadata {
                file: "values.yaml".to_owned(),
                message: "not a mapping".to_owned(),
            });
        };
        let schema = match tree.get("values.schema.json") {
            None => None,
            Some(bytes) => {
                Some(
                    serde_json::from_slice(bytes).map_err(|e| ChartError::Metadata {
                        file: "values.schema.json".to_owned(),
                        message: e.to_string(),
                    })?,
                )
            }
        };

        let mut templates = Vec::new();
        let mut files = BTreeMap::new();
        let mut crds = Vec::new();
        let mut children = BTreeSet::new();
        for (path, data) in tree.iter() {
            if path.starts_with("templates/") {
                let partial = path
                    .rsplit('/')
                    .next()
                    .is_some_and(|file| file.starts_with('_'));
                if !library || partial {
                    templates.push(template(&full_path, path, data)?);
                }
            } else if let Some(child) = path.strip_prefix("charts/") {
                children.insert(child.split('/').next().unwrap_or(child).to_owned());
            } else if !matches!(
                path,
                "Chart.yaml" | "Chart.lock" | "values.yaml" | "values.schema.json"
            ) {
                if path.starts_with("crds/") && has_manifest_extension(path) {
                    crds.push((format!("{full_path}/{path}"), text(path, data)?.to_owned()));
                }
                files.insert(path.to_owned(), data.to_vec());
            }
        }

        let subcharts = subcharts(tree, &meta, &children, &full_path, depth)?;
        let app_version = meta.text("appVersion");
        let kube_version = Some(meta.text("kubeVersion")).filter(|v| !v.is_empty());
        let metadata = meta.for_templates(parent.is_empty());
        Ok(Self {
            name,
            version,
            app_version,
            kube_version,
            metadata,
            values,
            schema,
            templates,
            files,
            crds,
            subcharts,
            full_path,
        })
    }
}

fn subcharts(
    tree: &FileTree,
    meta: &Metadata<'_>,
    children: &BTreeSet<String>,
    full_path: &str,
    depth: usize,
) -> Result<Vec<Subchart>, ChartError> {
    let unsupported = |file: &str, feature| ChartError::Unsupported {
        file: file.to_owned(),
        feature,
    };
    let dependencies = meta.dependencies()?;
    let mut subcharts = Vec::new();
    for child in children {
        let dir = format!("charts/{child}");
        if child.starts_with(['_', '.']) {
            continue;
        }
        if std::path::Path::new(child)
            .extension()
            .is_some_and(|e| e == "tgz")
        {
            return Err(unsupported(&dir, "a packed subchart"));
        }
        let Some(files) = tree.subtree(&dir) else {
            continue;
        };
        if depth >= MAX_NESTING {
            return Err(unsupported(&dir, "deeper nesting of subcharts"));
        }
        let chart = Chart::load(&files, full_path, depth + 1)?;
        let dependency = dependencies.iter().find(|d| d.name == chart.name);
        subcharts.push(Subchart {
            conditions: dependency.map(|d| d.conditions.clone()).unwrap_or_default(),
            tags: dependency.map(|d| d.tags.clone()).unwrap_or_default(),
            chart,
        });
    }
    for dependency in &dependencies {
        if !subcharts.iter().any(|s| s.chart.name == dependency.name) {
            return Err(Metadata::error(&format!(
                "dependency {} is not in charts/",
                dependency.name
            )));
        }
    }
    Ok(subcharts)
}

fn text<'d>(path: &str, data: &'d [u8]) -> Result<&'d str, ChartError> {
    std::str::from_utf8(data).map_err(|_| ChartError::Encoding(path.to_owned()))
}

fn template(full_path: &str, path: &str, data: &[u8]) -> Result<Parsed, ChartError> {
    let name = format!("{full_path}/{path}");
    let text = text(path, data)?;
    parse(&name, &name, text).map_err(|e| ChartError::Template {
        template: name,
        line: e.line,
        message: e.message,
    })
}

fn has_manifest_extension(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or("");
    ["yaml", "yml", "json"]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
}

fn yaml_file(tree: &FileTree, path: &str) -> Result<Option<Value>, ChartError> {
    let Some(data) = tree.get(path) else {
        return Ok(None);
    };
    let value = yaml::parse_first(text(path, data)?).map_err(|source| ChartError::Yaml {
        file: path.to_owned(),
        source,
    })?;
    Ok(Some(value))
}

/// Every document of a values file, later ones over earlier ones.
fn yaml_documents(tree: &FileTree, path: &str) -> Result<Value, ChartError> {
    let mut values = Value::Object(Map::new());
    if let Some(data) = tree.get(path) {
        let documents = yaml::parse_all_with(text(path, data)?, yaml::Duplicates::LastWins)
            .map_err(|source| ChartError::Yaml {
                file: path.to_owned(),
                source,
            })?;
        for document in documents {
            crate::values::layer(&mut values, document);
        }
    }
    Ok(values)
}

struct Dependency {
    name: String,
    conditions: Vec<String>,
    tags: Vec<String>,
}

/// `Chart.yaml`.
struct Metadata<'v>(&'v Value);

impl Metadata<'_> {
    fn error(message: &str) -> ChartError {
        ChartError::Metadata {
            file: "Chart.yaml".to_owned(),
            message: message.to_owned(),
        }
    }

    fn text(&self, key: &str) -> String {
        as_text(self.0.get(key))
    }

    fn required(&self, key: &str) -> Result<String, ChartError> {
        let text = self.text(key);
        if text.is_empty() {
            Err(Self::error(&format!("{key} is missing")))
        } else {
            Ok(text)
        }
    }

    fn dependencies(&self) -> Result<Vec<Dependency>, ChartError> {
        let none = Vec::new();
        let list = self
            .0
            .get("dependencies")
            .and_then(Value::as_array)
            .unwrap_or(&none);
        let unsupported = |feature| ChartError::Unsupported {
            file: "Chart.yaml".to_owned(),
            feature,
        };
        let mut dependencies = Vec::new();
        for entry in list {
            if entry.get("alias").is_some_and(|alias| !alias.is_null()) {
                return Err(unsupported("an aliased dependency"));
            }
            if entry
                .get("import-values")
                .is_some_and(|import| !import.is_null())
            {
                return Err(unsupported("import-values"));
            }
            let conditions = as_text(entry.get("condition"));
            let tags = entry.get("tags").and_then(Value::as_array).unwrap_or(&none);
            dependencies.push(Dependency {
                name: as_text(entry.get("name")),
                conditions: conditions
                    .split(',')
                    .filter(|c| !c.trim().is_empty())
                    .map(str::to_owned)
                    .collect(),
                tags: tags.iter().map(|tag| as_text(Some(tag))).collect(),
            });
        }
        Ok(dependencies)
    }

    /// The fields of Helm's struct, by their Go names.
    fn for_templates(&self, is_root: bool) -> Value {
        let list = |key: &str| {
            self.0
                .get(key)
                .cloned()
                .filter(Value::is_array)
                .unwrap_or_else(|| Value::Array(vec![]))
        };
        let go_names = |entry: &Value, names: &[(&str, &str)]| {
            let pairs = names
                .iter()
                .map(|(go, key)| ((*go).to_owned(), Value::String(as_text(entry.get(key)))));
            Value::Object(pairs.collect())
        };
        let lists = |key: &str, names: &[(&str, &str)]| {
            let entries = list(key);
            Value::Array(
                entries
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|entry| go_names(entry, names))
                    .collect(),
            )
        };
        let mut map = Map::new();
        for (go, key) in [
            ("Name", "name"),
            ("Home", "home"),
            ("Version", "version"),
            ("Description", "description"),
            ("Icon", "icon"),
            ("APIVersion", "apiVersion"),
            ("Condition", "condition"),
            ("Tags", "tags"),
            ("AppVersion", "appVersion"),
            ("KubeVersion", "kubeVersion"),
            ("Type", "type"),
        ] {
            map.insert(go.to_owned(), Value::String(self.text(key)));
        }
        map.insert("Sources".to_owned(), list("sources"));
        map.insert("Keywords".to_owned(), list("keywords"));
        map.insert(
            "Maintainers".to_owned(),
            lists(
                "maintainers",
                &[("Name", "name"), ("Email", "email"), ("URL", "url")],
            ),
        );
        map.insert(
            "Dependencies".to_owned(),
            lists(
                "dependencies",
                &[
                    ("Name", "name"),
                    ("Version", "version"),
                    ("Repository", "repository"),
                ],
            ),
        );
        let deprecated = self
            .0
            .get("deprecated")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        map.insert("Deprecated".to_owned(), Value::Bool(deprecated));
        let annotations = self.0.get("annotations").cloned().filter(Value::is_object);
        map.insert(
            "Annotations".to_owned(),
            annotations.unwrap_or_else(|| Value::Object(Map::new())),
        );
        map.insert("IsRoot".to_owned(), Value::Bool(is_root));
        Value::Object(map)
    }
}

/// A scalar where a string belongs: numbers and booleans become text.
fn as_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(b)) => b.to_string(),
        _ => String::new(),
    }
}
