//! SHA-256 as lower-case hexadecimal.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Collects parts into one digest; each part is length-prefixed, so that parts cannot run together.
#[derive(Default)]
pub(crate) struct Key(Sha256);

impl Key {
    pub(crate) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update(part.len().to_le_bytes());
        self.0.update(part);
    }

    /// The first 16 digits: enough to tell build recipes apart, short enough for a path.
    pub(crate) fn short(self) -> String {
        let mut digits = hex(&self.0.finalize());
        digits.truncate(16);
        digits
    }
}

pub(crate) fn of_bytes(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

pub(crate) fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
