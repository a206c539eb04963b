//! Renders Helm charts in-process: `(chart files, values) → objects`, as Helm 4's `helm template` does.
//!
//! - [`FileTree`]: files from a directory or an untrusted archive, in memory.
//! - [`Chart`]: loaded once, templates parsed, rendered any number of times.
//! - [`values`]: Helm's merges and `--set`.
//!
//! Invariants: nothing is read or written but the given bytes; the same input gives the same bytes; a render is bounded by
//! [`RenderLimits`]; no input panics. The crate knows nothing of any particular chart.
//!
//! What differs from Helm: functions that read the clock, randomness, the environment or the network do not exist; packed
//! subcharts, aliases and `import-values` are refused; hooks are manifests like any other; schemas may not refer to
//! other documents; whole numbers are of one type where Go has `int` and `int64`; strings are never cut inside a character.

mod chart;
mod engine;
mod error;
mod func;
mod limits;
mod render;
mod schema;
mod tree;
pub mod values;

pub use chart::Chart;
pub use error::{ChartError, RenderError, TreeError};
pub use limits::RenderLimits;
pub use render::{Capabilities, Manifest, Release, RenderOptions, Rendered};
pub use tree::{ArchiveLimits, FileTree};
