//! Archives are untrusted.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use flate2::Compression;
use flate2::write::GzEncoder;
use helm_chart::{ArchiveLimits, FileTree, TreeError};
use proptest::prelude::*;
use std::io::Write;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// An archive of one entry, whose path is written without the checks of a well-behaved archiver.
fn archive(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, kind, data) in entries {
        let mut header = tar::Header::new_gnu();
        let name = &mut header.as_old_mut().name;
        for (slot, byte) in name.iter_mut().zip(path.bytes()) {
            *slot = byte;
        }
        header.set_entry_type(*kind);
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn file<'a>(path: &'a str, data: &'a [u8]) -> (&'a str, tar::EntryType, &'a [u8]) {
    (path, tar::EntryType::Regular, data)
}

fn small() -> ArchiveLimits {
    ArchiveLimits {
        entries: 10,
        file_bytes: 1000,
        kept_bytes: 2000,
        expanded_bytes: 100_000,
    }
}

#[test]
fn files_are_read_with_normal_paths() {
    let bytes = archive(&[
        ("./", tar::EntryType::Directory, b""),
        ("release/", tar::EntryType::Directory, b""),
        file("./release/charts/base/Chart.yaml", b"a"),
        file("release//charts/./base/values.yaml", b"b"),
        file("release/charts/based", b"c"),
    ]);
    let tree = FileTree::from_tar_gz(&bytes, &small()).unwrap();
    assert_eq!(
        tree.paths().collect::<Vec<_>>(),
        [
            "release/charts/base/Chart.yaml",
            "release/charts/base/values.yaml",
            "release/charts/based"
        ]
    );
    assert_eq!(tree.single_root(), Some("release"));
    let base = tree.subtree("release/charts/base").unwrap();
    assert_eq!(
        base.paths().collect::<Vec<_>>(),
        ["Chart.yaml", "values.yaml"]
    );
    assert_eq!(base.get("Chart.yaml"), Some(b"a".as_slice()));
    assert_eq!(base.single_root(), None);
    assert_eq!(tree.subtree("release/nothing"), None);
}

#[test]
fn no_path_leads_out() {
    for path in [
        "../a",
        "a/../../b",
        "a/..",
        "/etc/passwd",
        "a\\b",
        "..",
        ".",
    ] {
        let result = FileTree::from_tar_gz(&archive(&[file(path, b"x")]), &small());
        assert!(
            matches!(result, Err(TreeError::Path(_))),
            "{path}: {result:?}"
        );
    }
    let result = FileTree::from_tar_gz(
        &archive(&[("../d/", tar::EntryType::Directory, b"")]),
        &small(),
    );
    assert!(matches!(result, Err(TreeError::Path(_))), "{result:?}");
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Char,
        tar::EntryType::Block,
        tar::EntryType::Fifo,
    ] {
        let bytes = archive(&[("a", kind, b"")]);
        assert!(
            matches!(FileTree::from_tar_gz(&bytes, &small()), Err(TreeError::Kind(path)) if path == "a"),
            "{kind:?}"
        );
        // What nobody wants may be anything.
        assert!(FileTree::from_tar_gz_where(&bytes, &small(), |path| path != "a").is_ok());
    }
}

#[test]
fn the_same_path_twice_is_refused() {
    let bytes = archive(&[file("a", b"1"), file("./a", b"2")]);
    assert!(
        matches!(FileTree::from_tar_gz(&bytes, &small()), Err(TreeError::Duplicate(path)) if path == "a")
    );
}

#[test]
fn every_limit_holds() {
    let many: Vec<String> = (0..11).map(|i| i.to_string()).collect();
    let many: Vec<_> = many.iter().map(|path| file(path, b"")).collect();
    let kilobyte = [0_u8; 900];
    for (what, bytes) in [
        ("entries", archive(&many)),
        ("bytes in a file", archive(&[file("a", &[0; 1001])])),
        (
            "bytes in all files",
            archive(&[
                file("a", &kilobyte),
                file("b", &kilobyte),
                file("c", &kilobyte),
            ]),
        ),
    ] {
        let result = FileTree::from_tar_gz(&bytes, &small());
        assert!(
            matches!(result, Err(TreeError::TooLarge { what: w, .. }) if w == what),
            "{what}: {result:?}"
        );
    }
}

#[test]
fn a_bomb_is_not_expanded() {
    let bomb = archive(&[file("a", &vec![0; 2 << 20])]);
    assert!(bomb.len() < 100_000);
    let limits = ArchiveLimits {
        file_bytes: u64::MAX,
        kept_bytes: u64::MAX,
        ..small()
    };
    let result = FileTree::from_tar_gz(&bomb, &limits);
    assert!(
        matches!(
            result,
            Err(TreeError::TooLarge {
                what: "expanded bytes",
                ..
            })
        ),
        "{result:?}"
    );
    // Skipping it costs its expansion too.
    let result = FileTree::from_tar_gz_where(&bomb, &limits, |_| false);
    assert!(
        matches!(
            result,
            Err(TreeError::TooLarge {
                what: "expanded bytes",
                ..
            })
        ),
        "{result:?}"
    );
}

#[test]
fn what_is_no_archive_is_an_error() {
    for bytes in [
        b"".to_vec(),
        b"text".to_vec(),
        gzip(b"text"),
        gzip(&[1; 600]),
    ] {
        assert!(
            FileTree::from_tar_gz(&bytes, &small())
                .is_err_and(|e| matches!(e, TreeError::Archive(_)))
        );
    }
}

#[test]
fn a_directory_is_read_without_links() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("templates")).unwrap();
    std::fs::write(dir.path().join("templates/a.yaml"), "a").unwrap();
    std::fs::write(dir.path().join("Chart.yaml"), "c").unwrap();
    let tree = FileTree::from_dir(dir.path()).unwrap();
    assert_eq!(
        tree.paths().collect::<Vec<_>>(),
        ["Chart.yaml", "templates/a.yaml"]
    );
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    assert!(matches!(FileTree::from_dir(dir.path()), Err(TreeError::Kind(path)) if path == "link"));
    assert!(matches!(
        FileTree::from_dir(&dir.path().join("none")),
        Err(TreeError::Read { .. })
    ));
}

proptest! {
    #[test]
    fn whatever_the_path_the_tree_stays_inside(path in "[a./\\\\]{1,20}") {
        let bytes = archive(&[file(&path, b"x")]);
        if let Ok(tree) = FileTree::from_tar_gz(&bytes, &small()) {
            for path in tree.paths() {
                prop_assert!(!path.starts_with('/') && !path.contains('\\'));
                prop_assert!(path.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..2000), flips in proptest::collection::vec((0_usize..1536, any::<u8>()), 0..5)) {
        let _ = FileTree::from_tar_gz(&bytes, &small());
        bytes.resize(2048, 0);
        let _ = FileTree::from_tar_gz(&gzip(&bytes), &small());
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(5);
        header.set_cksum();
        builder.append_data(&mut header, "a/b", b"hello".as_slice()).unwrap();
        let mut plain = builder.into_inner().unwrap();
        for (at, byte) in flips {
            if let Some(slot) = plain.get_mut(at) {
                *slot = byte;
            }
        }
        let _ = FileTree::from_tar_gz(&gzip(&plain), &small());
    }
}
