//! Where the testbed keeps things: everything it makes is under `target/testbed` of this checkout.

use std::path::{Path, PathBuf};

/// Root of everything the testbed makes.
pub fn root() -> PathBuf {
    crate_dir().join("../../target/testbed").components().fold(
        PathBuf::new(),
        |mut path, component| {
            if component == std::path::Component::ParentDir {
                path.pop();
            } else {
                path.push(component);
            }
            path
        },
    )
}

/// The Go modules the programs are built from.
pub(crate) fn go_modules() -> PathBuf {
    crate_dir().join("go")
}

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
