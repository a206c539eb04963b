//! Errors of loading and rendering.

use std::path::PathBuf;

/// Why files could not be taken in as a [`FileTree`](crate::FileTree).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The archive is no gzip-compressed tar file.
    #[error("archive cannot be read")]
    Archive(#[source] std::io::Error),
    /// A file or directory could not be read.
    #[error("cannot read {path:?}")]
    Read {
        /// What was being read.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A path that is absolute, climbs with `..`, is not UTF-8, or is empty.
    #[error("unsafe path {0:?}")]
    Path(String),
    /// A symbolic link, hard link, device or pipe: only files and directories are taken.
    #[error("{0:?} is neither a file nor a directory")]
    Kind(String),
    /// The same path twice.
    #[error("{0:?} occurs twice")]
    Duplicate(String),
    /// A limit was passed.
    #[error("more than {limit} {what}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Why a tree of files is no usable chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// `Chart.yaml` is not there.
    #[error("Chart.yaml is missing")]
    NoMetadata,
    /// A YAML file of the chart cannot be read.
    #[error("{file} cannot be read")]
    Yaml {
        /// Path in the chart.
        file: String,
        /// What is wrong with it.
        #[source]
        source: yaml::Error,
    },
    /// `Chart.yaml` lacks something or has it in the wrong shape.
    #[error("{file}: {message}")]
    Metadata {
        /// Path in the chart.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// A template does not parse, or calls a function that does not exist.
    #[error("{template}:{line}: {message}")]
    Template {
        /// Path of the template, beginning with the chart's name.
        template: String,
        /// 1-based line.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A text file is not UTF-8.
    #[error("{0} is not utf-8")]
    Encoding(String),
    /// Helm would do something here that this crate does not.
    #[error("{file}: {feature} is not supported")]
    Unsupported {
        /// Path in the chart.
        file: String,
        /// The feature.
        feature: &'static str,
    },
}

/// Why a chart could not be rendered with these values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The values do not satisfy the chart's `values.schema.json`.
    #[error("values do not fit the schema of chart {chart}: {}", problems.join("; "))]
    Schema {
        /// Name of the chart.
        chart: String,
        /// One line per violation: where, and what.
        problems: Vec<String>,
    },
    /// The schema itself cannot be used.
    #[error("schema of chart {chart} cannot be used: {message}")]
    BadSchema {
        /// Name of the chart.
        chart: String,
        /// What is wrong.
        message: String,
    },
    /// The chart wants another version of Kubernetes.
    #[error("chart {chart} needs kubernetes {wanted}, this is {actual}")]
    KubeVersion {
        /// Name of the chart.
        chart: String,
        /// The constraint in `Chart.yaml`.
        wanted: String,
        /// The version in the capabilities.
        actual: String,
    },
    /// Values of an impossible shape, as a list where a map must be.
    #[error("values: {0}")]
    Values(String),
    /// A template failed.
    #[error("{template}:{line}: at <{expression}>: {message}")]
    Template {
        /// Path of the template, beginning with the chart's name.
        template: String,
        /// 1-based line.
        line: usize,
        /// The expression that failed, as written; mostly a path into the values.
        expression: String,
        /// What went wrong, in the words of Go's `text/template`.
        message: String,
        /// Where the failing template was included from, innermost first: `path:line`.
        included_from: Vec<String>,
    },
    /// The chart called `fail` or `required`: the values are not what it wants.
    #[error("{template}:{line}: {message}")]
    Refused {
        /// Path of the template, beginning with the chart's name.
        template: String,
        /// 1-based line.
        line: usize,
        /// The chart author's words.
        message: String,
        /// Where the failing template was included from, innermost first: `path:line`.
        included_from: Vec<String>,
    },
    /// A limit of [`RenderLimits`](crate::RenderLimits) was passed.
    #[error("{template}:{line}: more than {limit} {what}")]
    Limit {
        /// Path of the template.
        template: String,
        /// 1-based line.
        line: usize,
        /// What was counted.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The output of a template is no YAML.
    #[error("output of {template} is no yaml")]
    Output {
        /// Path of the template.
        template: String,
        /// What is wrong with it.
        #[source]
        source: yaml::Error,
    },
    /// A document of the output is no object, or one with a head of the wrong types.
    #[error("output of {template} holds something that is no kubernetes object")]
    NotAnObject {
        /// Path of the template.
        template: String,
    },
    /// The thread in which templates run could not be started, or died.
    #[error("cannot run the renderer: {0}")]
    Thread(String),
}
