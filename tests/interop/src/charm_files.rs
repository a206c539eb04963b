//! Charms of this crate's own, packed from a folder, and the charms of the product as packed.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use zip::write::SimpleFileOptions;

use crate::venv::{Venv, home, scripts, workspace};

/// The packed charms of the product, by file name: what `cargo xtask pack` has written.
pub fn packed() -> Result<Vec<PathBuf>> {
    let folder = workspace().join("target/charms");
    let entries = fs::read_dir(&folder)
        .with_context(|| format!("no {}: run `cargo xtask pack`", folder.display()))?;
    let mut charms = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "charm") {
            charms.push(path);
        }
    }
    charms.sort();
    Ok(charms)
}

/// Packs the folder `python/charms/<name>` and gives the path of the `.charm` file.
///
/// A real charm carries its libraries; these are linked to the environment instead, so that all of
/// them run the same ones: `@PYTHON@` in `dispatch` becomes its interpreter.
pub fn pack_python(name: &str, venv: &Venv) -> Result<PathBuf> {
    let folder = scripts().join("charms").join(name);
    let output = home().join("charms");
    fs::create_dir_all(&output)?;
    let path = output.join(format!("{name}.charm"));
    let mut entries = Vec::new();
    list(&folder, &folder, &mut entries)?;
    entries.sort();
    // Tests run at the same time: nobody may see half a file.
    let mut file = tempfile::NamedTempFile::new_in(&output)?;
    let mut zip = zip::ZipWriter::new(file.as_file_mut());
    for entry in entries {
        let mut bytes = fs::read(folder.join(&entry))?;
        let mut mode = 0o644;
        if entry == Path::new("dispatch") {
            mode = 0o755;
            let text = String::from_utf8(bytes)?;
            bytes = text
                .replace("@PYTHON@", &venv.python().to_string_lossy())
                .into_bytes();
        }
        let options = SimpleFileOptions::default().unix_permissions(mode);
        zip.start_file(entry.to_string_lossy(), options)?;
        zip.write_all(&bytes)?;
    }
    zip.finish()?;
    file.persist(&path)?;
    Ok(path)
}

fn list(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "__pycache__") {
                list(root, &path, found)?;
            }
        } else {
            found.push(path.strip_prefix(root)?.to_owned());
        }
    }
    Ok(())
}
