//! One layer: a tar on disk with its digest, the same bytes for the same content.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tar::{EntryType, Header};

use crate::digest;

/// What a layer holds, by path inside the image (without a leading slash).
#[derive(Debug, Clone)]
pub enum Entry {
    /// A copy of a file; its execute permission is kept.
    File(PathBuf),
    /// A small file written here.
    Text(String),
    /// A symbolic link.
    Link(String),
    /// An empty directory with this mode.
    Directory(u32),
}

/// A finished layer.
#[derive(Debug, Clone)]
pub struct Layer {
    path: PathBuf,
    digest: String,
    size: u64,
}

impl Layer {
    /// Writes a layer of a few entries; parent directories are added.
    pub fn write(path: &Path, entries: &[(&str, Entry)]) -> Result<Self> {
        let part = path.with_extension("part");
        fs::create_dir_all(path.parent().context("a layer needs a directory")?)?;
        let mut tar = tar::Builder::new(File::create(&part)?);
        let mut parents = Vec::<String>::new();
        for (name, entry) in entries {
            for (end, _) in name.match_indices('/') {
                let parent = &name[..end];
                if !parents.iter().any(|known| known == parent) {
                    directory(&mut tar, parent, 0o755)?;
                    parents.push(parent.to_owned());
                }
            }
            match entry {
                Entry::File(source) => file(&mut tar, name, source)?,
                Entry::Text(text) => {
                    let mut header = header(text.len() as u64, 0o644);
                    tar.append_data(&mut header, name, text.as_bytes())?;
                }
                Entry::Link(target) => link(&mut tar, name, Path::new(target))?,
                Entry::Directory(mode) => {
                    directory(&mut tar, name, *mode)?;
                    parents.push((*name).to_owned());
                }
            }
        }
        tar.finish()?;
        drop(tar);
        fs::rename(&part, path)?;
        Self::open(path)
    }

    /// Writes a layer of everything under a directory.
    pub(crate) fn of_tree(path: &Path, root: &Path) -> Result<Self> {
        let part = path.with_extension("part");
        let mut tar = tar::Builder::new(File::create(&part)?);
        add_tree(&mut tar, root, Path::new(""))?;
        tar.finish()?;
        drop(tar);
        fs::rename(&part, path)?;
        Self::open(path)
    }

    /// A layer that exists; its digest is kept beside it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let metadata =
            fs::metadata(path).with_context(|| format!("no layer {}", path.display()))?;
        let note = path.with_extension("sha256");
        let fresh = fs::metadata(&note)
            .and_then(|note| Ok(note.modified()? >= metadata.modified()?))
            .unwrap_or(false);
        let digest = if fresh {
            fs::read_to_string(&note)?
        } else {
            let digest = format!("sha256:{}", digest::of_file(path)?);
            fs::write(&note, &digest)?;
            digest
        };
        Ok(Self {
            path: path.into(),
            digest,
            size: metadata.len(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }
}

/// Owned by root, without a time: content decides the digest, nothing else.
pub(crate) fn header(size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn directory(tar: &mut tar::Builder<File>, name: &str, mode: u32) -> Result<()> {
    let mut header = header(0, mode);
    header.set_entry_type(EntryType::Directory);
    tar.append_data(&mut header, format!("{name}/"), std::io::empty())?;
    Ok(())
}

fn link(tar: &mut tar::Builder<File>, name: &str, target: &Path) -> Result<()> {
    let mut header = header(0, 0o777);
    header.set_entry_type(EntryType::Symlink);
    tar.append_link(&mut header, name, target)?;
    Ok(())
}

fn file(tar: &mut tar::Builder<File>, name: &str, source: &Path) -> Result<()> {
    let file = File::open(source).with_context(|| format!("cannot read {}", source.display()))?;
    let metadata = file.metadata()?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let mut header = header(metadata.len(), if executable { 0o755 } else { 0o644 });
    tar.append_data(&mut header, name, file)?;
    Ok(())
}

fn add_tree(tar: &mut tar::Builder<File>, root: &Path, below: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(below))? {
        names.push(entry?.file_name());
    }
    names.sort();
    for name in names {
        let inside = below.join(name);
        let source = root.join(&inside);
        let text = inside.to_str().context("a file name is no UTF-8")?;
        let metadata = fs::symlink_metadata(&source)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_symlink() {
            link(tar, text, &fs::read_link(&source)?)?;
        } else if metadata.is_dir() {
            directory(tar, text, mode)?;
            add_tree(tar, root, &inside)?;
        } else {
            let mut header = header(metadata.len(), mode);
            tar.append_data(&mut header, text, File::open(&source)?)?;
        }
    }
    Ok(())
}
