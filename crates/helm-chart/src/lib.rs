//! Renders Helm charts in-process, deterministically and bounded.
