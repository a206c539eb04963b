//! Bringing a charm, packed or not, into the model's own directory.
//!
//! A packed charm comes from outside and is not trusted: entries that leave the target directory,
//! absolute names, links that point outside, and archives that unfold without bound are refused.

use std::fs;
use std::io;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Component;
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use super::CharmError;

/// Greatest number of entries accepted in a charm.
const MAX_ENTRIES: usize = 50_000;
/// Greatest unfolded size of a charm in bytes.
const MAX_BYTES: u64 = 2 << 30;

/// Copies a charm directory, or unpacks a `.charm` file, into `target` (which must not exist).
pub(crate) fn import(source: &Path, target: &Path) -> Result<(), CharmError> {
    let read = |source_error| CharmError::Read {
        path: source.to_owned(),
        source: source_error,
    };
    if source.is_dir() {
        return copy_tree(source, target).map_err(read);
    }
    let file = fs::File::open(source).map_err(read)?;
    unpack(file, target).map_err(|e| CharmError::Archive {
        path: source.to_owned(),
        source: e,
    })
}

/// Copies a directory with modes and links; build and version-control directories of a source tree
/// are left out.
pub(crate) fn copy_tree(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if kind.is_dir() {
            if entry.file_name() != ".git" && entry.file_name() != "target" {
                copy_tree(&from, &to)?;
            }
        } else if kind.is_file() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

fn unpack(file: fs::File, target: &Path) -> Result<(), ZipError> {
    let mut archive = ZipArchive::new(file)?;
    if archive.len() > MAX_ENTRIES {
        return Err(ZipError::InvalidArchive("too many entries".into()));
    }
    fs::create_dir_all(target)?;
    let mut budget = MAX_BYTES;
    // Links are made last, so that no entry can be written through one.
    let mut links = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let Some(name) = entry.enclosed_name() else {
            return Err(ZipError::InvalidArchive("an entry leaves the charm".into()));
        };
        let path = target.join(&name);
        if entry.is_dir() {
            fs::create_dir_all(&path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mode = entry.unix_mode().unwrap_or(0o644);
        if mode & 0o170_000 == 0o120_000 {
            let mut link = String::new();
            entry.by_ref().take(4096).read_to_string(&mut link)?;
            if !stays_inside(&name, Path::new(&link)) {
                return Err(ZipError::InvalidArchive("a link leaves the charm".into()));
            }
            links.push((path, link));
            continue;
        }
        let mut out = fs::File::create(&path)?;
        let written = io::copy(&mut entry.by_ref().take(budget + 1), &mut out)?;
        budget = budget
            .checked_sub(written)
            .ok_or_else(|| ZipError::InvalidArchive("the charm is too large".into()))?;
        let executable = mode & 0o111 != 0 || name.starts_with("hooks");
        let mode = if executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    for (path, link) in links {
        symlink(link, path)?;
    }
    Ok(())
}

/// Whether a relative link at `name` still points into the charm.
fn stays_inside(name: &Path, link: &Path) -> bool {
    let mut depth = name.components().count() - 1;
    for component in link.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(dir: &Path, entries: &[(&str, u32, &str)]) -> std::path::PathBuf {
        let path = dir.join("x.charm");
        let mut zip = ZipWriter::new(fs::File::create(&path).unwrap());
        for (name, mode, text) in entries {
            let options = SimpleFileOptions::default().unix_permissions(*mode);
            if *mode & 0o170_000 == 0o120_000 {
                zip.add_symlink(*name, *text, options).unwrap();
            } else {
                zip.start_file(*name, options).unwrap();
                zip.write_all(text.as_bytes()).unwrap();
            }
        }
        zip.finish().unwrap();
        path
    }

    #[test]
    fn the_exec_bit_of_an_entry_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let packed = archive(
            dir.path(),
            &[("dispatch", 0o755, "#!"), ("README", 0o644, "x")],
        );
        let out = dir.path().join("out");
        import(&packed, &out).unwrap();
        let mode = |f: &str| fs::metadata(out.join(f)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("dispatch"), mode("README")), (0o755, 0o644));
    }

    #[test]
    fn entries_and_links_that_leave_the_charm_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for entry in [("../evil", 0o644, "x"), ("lib/out", 0o120_777, "../../etc")] {
            let packed = archive(dir.path(), &[entry]);
            let out = dir.path().join("out");
            assert!(import(&packed, &out).is_err(), "{entry:?}");
            assert!(!dir.path().join("evil").exists());
        }
    }
}
