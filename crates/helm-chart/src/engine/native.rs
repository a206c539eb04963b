//! The objects Helm hands to templates that are not maps: `.Files` and `.Capabilities`.

use super::value::{Entries, Value};
use crate::render::Capabilities;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(crate) type FileMap = BTreeMap<Rc<str>, Rc<[u8]>>;

#[derive(Debug, Clone)]
pub(crate) enum Native {
    Files(Rc<FileMap>),
    Capabilities(Rc<Capabilities>),
    KubeVersion(Rc<Capabilities>),
    ApiVersions(Rc<Capabilities>),
    HelmVersion(Rc<Capabilities>),
}

/// What a field name leads to.
pub(crate) enum Member {
    Field(Value),
    /// A method with this many arguments, to be called through [`Native::call`].
    Method(usize),
    None,
}

impl Native {
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Files(files) => !files.is_empty(),
            Self::ApiVersions(caps) => !caps.api_versions.is_empty(),
            Self::Capabilities(_) | Self::KubeVersion(_) | Self::HelmVersion(_) => true,
        }
    }

    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Files(_) => "engine.files",
            Self::Capabilities(_) => "*common.Capabilities",
            Self::KubeVersion(_) => "common.KubeVersion",
            Self::ApiVersions(_) => "common.VersionSet",
            Self::HelmVersion(_) => "version.BuildInfo",
        }
    }

    pub(crate) fn go_kind(&self) -> &'static str {
        match self {
            Self::Files(_) => "map",
            Self::Capabilities(_) => "ptr",
            Self::KubeVersion(_) | Self::HelmVersion(_) => "struct",
            Self::ApiVersions(_) => "slice",
        }
    }

    pub(crate) fn to_json(&self) -> Option<serde_json::Value> {
        match self {
            Self::Files(files) => Some(
                files
                    .iter()
                    .map(|(name, data)| (name.to_string(), crate::func::base64(data)))
                    .collect(),
            ),
            Self::ApiVersions(caps) => Some(caps.api_versions.iter().cloned().collect()),
            _ => None,
        }
    }

    /// How the value prints.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Files(files) => {
                let files: Vec<String> = files
                    .iter()
                    .map(|(name, data)| {
                        let bytes: Vec<String> = data.iter().map(u8::to_string).collect();
                        format!("{name}:[{}]", bytes.join(" "))
                    })
                    .collect();
                format!("map[{}]", files.join(" "))
            }
            Self::KubeVersion(caps) => caps.normalized(),
            Self::ApiVersions(caps) => {
                let versions: Vec<&str> = caps.api_versions.iter().map(String::as_str).collect();
                format!("[{}]", versions.join(" "))
            }
            Self::HelmVersion(caps) => caps.helm_version.clone(),
            Self::Capabilities(caps) => format!("{{{}}}", caps.kube_version),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Member {
        match (self, name) {
            (Self::Files(_), "Get" | "GetBytes" | "Glob" | "Lines")
            | (Self::ApiVersions(_), "Has") => Member::Method(1),
            (Self::Files(_), "AsConfig" | "AsSecrets")
            | (Self::KubeVersion(_), "String" | "GitVersion") => Member::Method(0),
            (Self::Files(files), name) => Member::Field(
                files
                    .get(name)
                    .map_or(Value::Nil, |data| Value::Bytes(Rc::clone(data))),
            ),
            (Self::Capabilities(caps), "KubeVersion") => {
                Member::Field(Value::Native(Self::KubeVersion(Rc::clone(caps))))
            }
            (Self::Capabilities(caps), "APIVersions") => {
                Member::Field(Value::Native(Self::ApiVersions(Rc::clone(caps))))
            }
            (Self::Capabilities(caps), "HelmVersion") => {
                Member::Field(Value::Native(Self::HelmVersion(Rc::clone(caps))))
            }
            (Self::KubeVersion(caps), "Version") => Member::Field(Value::str(&caps.kube_version)),
            (Self::KubeVersion(caps), "Major") => Member::Field(Value::str(&caps.major_minor().0)),
            (Self::KubeVersion(caps), "Minor") => Member::Field(Value::str(&caps.major_minor().1)),
            (Self::HelmVersion(caps), "Version") => Member::Field(Value::str(&caps.helm_version)),
            (
                Self::HelmVersion(_),
                "GitCommit" | "GitTreeState" | "GoVersion" | "KubeClientVersion",
            ) => Member::Field(Value::str("")),
            _ => Member::None,
        }
    }

    /// Calls a method; the caller has checked name and number of arguments with [`Native::member`].
    pub(crate) fn call(&self, name: &str, args: &[Rc<str>]) -> Value {
        let arg = args.first().map_or("", |a| &**a);
        match self {
            Self::Files(files) => files_method(files, name, arg),
            Self::KubeVersion(caps) if name == "GitVersion" => Value::str(&caps.kube_version),
            Self::KubeVersion(caps) => Value::str(&caps.normalized()),
            Self::ApiVersions(caps) => Value::Bool(caps.api_versions.contains(arg)),
            Self::Capabilities(_) | Self::HelmVersion(_) => Value::Nil,
        }
    }
}

fn files_method(files: &Rc<FileMap>, name: &str, arg: &str) -> Value {
    let data = || {
        files
            .get(arg)
            .cloned()
            .unwrap_or_else(|| Rc::from([].as_slice()))
    };
    let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match name {
        "Get" => Value::str(&text(&data())),
        "GetBytes" => Value::Bytes(data()),
        "Lines" => {
            let data = data();
            let text = text(&data);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            let lines = if data.is_empty() {
                Vec::new()
            } else {
                text.split('\n').map(Value::str).collect()
            };
            Value::list(lines)
        }
        "Glob" => {
            let pattern = glob(arg);
            let matching = files
                .iter()
                .filter(|(path, _)| pattern.as_ref().is_none_or(|p| p.is_match(path)))
                .map(|(path, data)| (Rc::clone(path), Rc::clone(data)))
                .collect();
            Value::Native(Native::Files(Rc::new(matching)))
        }
        _ => {
            let encode = |data: &[u8]| {
                if name == "AsSecrets" {
                    crate::func::base64(data)
                } else {
                    text(data)
                }
            };
            let map: serde_json::Map<String, serde_json::Value> = files
                .iter()
                .map(|(path, data)| (base(path), serde_json::Value::String(encode(data))))
                .collect();
            let yaml = yaml::emit_go(&serde_json::Value::Object(map));
            Value::str(yaml.strip_suffix('\n').unwrap_or(&yaml))
        }
    }
}

/// A glob of the `gobwas/glob` kind with `/` as separator; `None` (everything) for one that makes no sense, as in Helm.
fn glob(pattern: &str) -> Option<regex::Regex> {
    let mut out = String::from("^(?s:");
    let mut chars = pattern.chars().peekable();
    let mut braces = 0_u32;
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.peek() == Some(&'*') {
                    chars.next();
                }
                out.push_str(".*");
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                out.push('[');
                if chars.peek() == Some(&'!') {
                    chars.next();
                    out.push('^');
                }
            }
            ']' => out.push(']'),
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            '-' => out.push('-'),
            '\\' => out.push_str(&regex::escape(&chars.next().unwrap_or('\\').to_string())),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push_str(")$");
    regex::Regex::new(&out).ok()
}

/// The root of `.Files`, for tests and callers that have plain bytes.
pub(crate) fn file_map<'f>(files: impl Iterator<Item = (&'f str, &'f [u8])>) -> FileMap {
    files
        .map(|(path, data)| (Rc::from(path), Rc::from(data)))
        .collect()
}

/// Entries from pairs, for the maps Helm itself makes.
pub(crate) fn entries<const N: usize>(pairs: [(&str, Value); N]) -> Entries {
    pairs
        .into_iter()
        .map(|(key, value)| (Rc::from(key), value))
        .collect()
}
