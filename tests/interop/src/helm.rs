//! The judge of `helm-chart`: real Helm 4 on the same charts, and the comparison of the two.

pub mod cases;
mod documents;
mod judge;

use anyhow::{Context, Result, bail};
use helm_chart::{ArchiveLimits, Capabilities, Chart, FileTree, Release, RenderOptions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

pub use documents::Documents;
pub use judge::{Answered, Batch, Judge, Reply};

/// Version of Kubernetes both sides claim.
pub const KUBE_VERSION: &str = "v1.36.3";
/// Programs in Go that answer much collect their garbage at four times its size: a fifth less of the processor's time.
pub const GARBAGE: (&str, &str) = ("GOGC", "400");
/// Name of the release on both sides.
pub const RELEASE: &str = "istio";

/// The charts of a release payload, below `manifests/charts`.
pub const CHARTS: [&str; 8] = [
    "base",
    "default",
    "gateway",
    "gateways/istio-egress",
    "gateways/istio-ingress",
    "istio-cni",
    "istio-control/istio-discovery",
    "ztunnel",
];

/// One question to both renderers.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is special about it.
    pub name: String,
    /// The user's values.
    pub values: Value,
    /// A file of values over those.
    pub file: Option<Arc<ValuesFile>>,
    /// Namespace of the release.
    pub namespace: String,
    /// Whether the release is upgraded.
    pub is_upgrade: bool,
    /// Version of Kubernetes.
    pub kube_version: String,
    /// Whether `values.schema.json` is left out of the game.
    pub skip_schema: bool,
}

impl Case {
    /// An installation in `istio-system`, schema checked.
    pub fn new(name: impl Into<String>, values: Value) -> Self {
        Self {
            name: name.into(),
            values,
            file: None,
            namespace: "istio-system".to_owned(),
            is_upgrade: false,
            kube_version: KUBE_VERSION.to_owned(),
            skip_schema: false,
        }
    }
}

/// A file of values under `values/`.
#[derive(Debug)]
pub struct ValuesFile {
    /// Its name without `.yaml`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What we read in it.
    pub values: Value,
}

impl ValuesFile {
    /// Every one, by name.
    pub fn all() -> Result<Vec<Arc<Self>>> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("values");
        let mut all = BTreeMap::new();
        for entry in std::fs::read_dir(&dir)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let name = name.context("a name of utf-8")?.to_owned();
            let text = std::fs::read_to_string(&path)?;
            let values = helm_chart::values::parse_file(&text)
                .with_context(|| format!("reading {}", path.display()))?;
            let file = Self {
                name: name.clone(),
                path,
                values,
            };
            all.insert(name, Arc::new(file));
        }
        Ok(all.into_values().collect())
    }
}

/// A payload, unpacked for Helm and in memory for us.
#[derive(Debug)]
pub struct Payload {
    /// Version in the name of the archive.
    pub version: String,
    tree: FileTree,
    dir: PathBuf,
}

/// What a renderer said: objects in a canonical order, or why not.
pub type Answer = Result<Vec<Arc<Value>>, String>;

impl Payload {
    /// Reads a payload archive, and unpacks it under `scratch` for Helm.
    pub fn open(archive: &Path, version: &str, scratch: &Path) -> Result<Self> {
        let bytes =
            std::fs::read(archive).with_context(|| format!("reading {}", archive.display()))?;
        let tree = FileTree::from_tar_gz(&bytes, &ArchiveLimits::default())?;
        let root = tree
            .single_root()
            .context("payload has no single root")?
            .to_owned();
        let tree = tree.subtree(&root).context("payload is empty")?;
        Self::unpacked(tree, version, scratch)
    }

    fn unpacked(tree: FileTree, version: &str, scratch: &Path) -> Result<Self> {
        let dir = scratch.join(version);
        for path in tree.paths().filter(|path| path.starts_with("manifests/")) {
            let file = dir.join(path);
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&file, tree.get(path).unwrap_or_default())?;
        }
        Ok(Self {
            version: version.to_owned(),
            tree,
            dir,
        })
    }

    /// The charts it holds, sorted.
    pub fn charts(&self) -> Vec<&str> {
        let inside =
            |path| str::strip_prefix(path, "manifests/charts/")?.strip_suffix("/Chart.yaml");
        self.tree.paths().filter_map(inside).collect()
    }

    /// The same but for the CRDs of the base chart, of which only the first are left.
    pub fn with_few_crds(&self, scratch: &Path) -> Result<Self> {
        let path = "manifests/charts/base/files/crd-all.gen.yaml";
        let all = std::str::from_utf8(self.tree.get(path).context("no CRDs")?)?;
        let few: Vec<&str> = all.splitn(3, "\n---\n").take(2).collect();
        let few = few.join("\n---\n");
        let files = self
            .tree
            .paths()
            .filter(|path| path.starts_with("manifests/"));
        let files = files.map(|name| {
            let content = if name == path {
                few.as_bytes()
            } else {
                self.tree.get(name).unwrap_or_default()
            };
            (name.to_owned(), content.to_vec())
        });
        let tree = FileTree::try_from(files.collect::<Vec<_>>())?;
        Self::unpacked(tree, &self.version, scratch)
    }

    /// The names of the profiles, sorted, and the chart values that each sets: over those of `default`, as istioctl has it.
    pub fn profiles(&self) -> Result<Vec<(String, Value)>> {
        let read = |name: &str| -> Result<Value> {
            let path = format!("manifests/profiles/{name}.yaml");
            let text = std::str::from_utf8(self.tree.get(&path).context("no such profile")?)?;
            let mut profile = yaml::parse(text)?;
            Ok(match profile["spec"]["values"].take() {
                Value::Null => Value::Object(serde_json::Map::new()),
                values => values,
            })
        };
        let inside = |path| str::strip_prefix(path, "manifests/profiles/")?.strip_suffix(".yaml");
        let names: Vec<&str> = self.tree.paths().filter_map(inside).collect();
        let mut profiles = Vec::new();
        for name in names {
            let mut values = read("default")?;
            helm_chart::values::layer(&mut values, read(name)?);
            profiles.push((name.to_owned(), values));
        }
        Ok(profiles)
    }

    /// Directory of the charts and profiles.
    pub fn manifests(&self) -> PathBuf {
        self.dir.join("manifests")
    }

    /// Loads one of [`CHARTS`].
    pub fn chart(&self, chart: &str) -> Result<Chart> {
        let path = format!("manifests/charts/{chart}");
        let tree = self
            .tree
            .subtree(&path)
            .with_context(|| format!("no chart {chart}"))?;
        Chart::from_tree(&tree).with_context(|| format!("loading {chart} of {}", self.version))
    }

    /// Directory of one of [`CHARTS`], for Helm.
    pub fn chart_dir(&self, chart: &str) -> PathBuf {
        self.dir.join("manifests/charts").join(chart)
    }
}

/// Our answer.
pub fn ours(chart: &Chart, case: &Case) -> Answer {
    let mut release = Release::install(RELEASE, &case.namespace);
    release.is_upgrade = case.is_upgrade;
    release.is_install = !case.is_upgrade;
    let mut options = RenderOptions::new(release, Capabilities::of_version(&case.kube_version));
    options.include_notes = true;
    options.skip_schema_validation = case.skip_schema;
    let mut values = case.values.clone();
    if let Some(file) = &case.file {
        helm_chart::values::layer(&mut values, file.values.clone());
    }
    let rendered = chart.render(&values, &options).map_err(|e| describe(&e))?;
    let objects = rendered.objects().map_err(|e| describe(&e))?;
    Ok(canonical(objects.into_iter().map(Arc::new).collect()))
}

fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// A command with an empty environment but for what a program cannot do without.
pub fn command(program: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a test runs the judge")]
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("PATH", "/usr/bin:/bin");
    command
}

/// The identity of an object, as far as objects of one render can be told apart.
pub fn identity(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    format!(
        "{} {} {}/{}",
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

/// Objects by identity, and by content where two share one.
fn canonical(objects: Vec<Arc<Value>>) -> Vec<Arc<Value>> {
    let mut groups: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
    for object in objects {
        groups.entry(identity(&object)).or_default().push(object);
    }
    for group in groups.values_mut().filter(|group| group.len() > 1) {
        group.sort_by_cached_key(ToString::to_string);
    }
    groups.into_values().flatten().collect()
}

/// What differs between two answers; empty if nothing does.
pub fn differences(ours: &Answer, helms: &Answer) -> Vec<String> {
    match (ours, helms) {
        (Err(ours), Err(helm)) => match place(helm) {
            Some(place) if !ours.contains(&place) => {
                vec![format!(
                    "helm refuses at {place}, we elsewhere: {ours}; helm: {helm}"
                )]
            }
            _ => Vec::new(),
        },
        (Ok(_), Err(helm)) => vec![format!("helm refuses, we do not: {helm}")],
        (Err(ours), Ok(_)) => vec![format!("we refuse, helm does not: {ours}")],
        (Ok(ours), Ok(helms)) if ours == helms => Vec::new(),
        (Ok(ours), Ok(helms)) => {
            let group = |objects: &[Arc<Value>]| {
                let mut map: BTreeMap<String, Vec<Value>> = BTreeMap::new();
                for object in objects {
                    map.entry(identity(object))
                        .or_default()
                        .push(Value::clone(object));
                }
                map
            };
            let (ours, helms) = (group(ours), group(helms));
            let mut differences = Vec::new();
            for id in ours.keys().filter(|id| !helms.contains_key(*id)) {
                differences.push(format!("only ours: {id}"));
            }
            for (id, theirs) in &helms {
                match ours.get(id) {
                    None => differences.push(format!("only helm's: {id}")),
                    Some(own) if own != theirs => {
                        let (own, theirs) =
                            (Value::Array(own.clone()), Value::Array(theirs.clone()));
                        let mut at = Vec::new();
                        first_difference(&own, &theirs, &mut at);
                        differences.push(format!("{id}: {}", at.join("")));
                    }
                    Some(_) => {}
                }
            }
            differences
        }
    }
}

/// The template, and its line where a template failed, in Helm's error; of a trace through several templates the innermost.
fn place(error: &str) -> Option<String> {
    let word = error
        .split(|c: char| c.is_whitespace() || "()\"".contains(c))
        .rfind(|word| word.contains("/templates/") && !word.starts_with('<'))?;
    let mut parts = word.split(':');
    let path = parts.next()?;
    match parts.next() {
        Some(line) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => {
            Some(format!("{path}:{line}"))
        }
        _ => Some(path.to_owned()),
    }
}

/// Finds the path to the first place where two values differ, and appends both sides.
fn first_difference(ours: &Value, helms: &Value, at: &mut Vec<String>) -> bool {
    match (ours, helms) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()) {
                let (a, b) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                if a != b {
                    at.push(format!(".{key}"));
                    return first_difference(a, b, at);
                }
            }
            false
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                if a != b {
                    at.push(format!("[{i}]"));
                    return first_difference(a, b, at);
                }
            }
            false
        }
        (Value::String(a), Value::String(b)) => {
            let different = a
                .lines()
                .zip(b.lines())
                .enumerate()
                .find(|(_, (a, b))| a != b);
            at.push(match different {
                Some((line, (a, b))) => format!(" line {}: ours {a:?}, helm's {b:?}", line + 1),
                None => format!(" ours has {} bytes, helm's {}", a.len(), b.len()),
            });
            true
        }
        (a, b) => {
            let short = |v: &Value| v.to_string().chars().take(200).collect::<String>();
            at.push(format!(" ours {}, helm's {}", short(a), short(b)));
            true
        }
    }
}

/// Fails unless there is something to run.
pub fn existing(path: PathBuf) -> Result<PathBuf> {
    if !path.exists() {
        bail!("{} is not there", path.display());
    }
    Ok(path)
}
