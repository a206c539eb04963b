//! A Python environment with the real libraries, made once from `python/requirements.txt`.
//!
//! Invariants: what is installed is what the requirements pin, nothing is resolved; the environment
//! is made anew when the requirements or the interpreter change, and is complete or absent (its
//! stamp is written last); processes that want it at the same time make it once.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Oldest interpreter the pinned libraries run on.
const OLDEST: (u32, u32) = (3, 11);

/// The pinned package whose source distribution has the JSON schema.
const SCHEMA_PACKAGE: &str = "charmcraft";

/// The environment.
#[derive(Clone, Debug)]
pub struct Venv {
    dir: PathBuf,
}

impl Venv {
    /// The environment, made first if it is absent or older than its requirements: that needs
    /// `python3` (3.11 or newer) on `PATH`, a package index, and a minute.
    pub fn ready() -> Result<Self> {
        let home = home();
        fs::create_dir_all(&home)?;
        let lock = File::create(home.join("venv.lock"))?;
        lock.lock()?;
        let venv = Self {
            dir: home.join("venv"),
        };
        let stamp = stamp()?;
        let written = fs::read_to_string(venv.stamp_file()).unwrap_or_default();
        if written != stamp {
            venv.make().context("cannot make the Python environment")?;
            fs::write(venv.stamp_file(), stamp)?;
        }
        Ok(venv)
    }

    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.bin().join("python3")
    }

    /// The directory of its programs.
    pub fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// The JSON schema of `charmcraft.yaml`, as Charmcraft publishes it.
    pub fn schema(&self) -> PathBuf {
        self.dir.join("charmcraft.json")
    }

    /// Runs `python/<script>` with a JSON value on its standard input; gives the JSON value it
    /// prints.
    pub fn run(&self, script: &str, input: &Value) -> Result<Value> {
        let mut command = command(self.python());
        command.arg(scripts().join(script));
        let said = feed(&mut command, &input.to_string())?;
        serde_json::from_str(&said).with_context(|| format!("{script} printed {said:?}"))
    }

    fn stamp_file(&self) -> PathBuf {
        self.dir.join("made-from")
    }

    fn make(&self) -> Result<()> {
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)?;
        }
        feed(command("python3").args(["-m", "venv"]).arg(&self.dir), "")?;
        let pip = || {
            let mut pip = command(self.python());
            pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
            pip
        };
        feed(
            pip()
                .args(["install", "--no-deps", "--requirement"])
                .arg(requirements()),
            "",
        )?;
        // The schema is in the source distribution only.
        let source = self.dir.join("source");
        let pin = pin(&fs::read_to_string(requirements())?, SCHEMA_PACKAGE)?;
        feed(
            pip()
                .args([
                    "download",
                    "--no-deps",
                    "--no-binary",
                    SCHEMA_PACKAGE,
                    "--dest",
                ])
                .arg(&source)
                .arg(pin),
            "",
        )?;
        feed(
            command(self.python())
                .arg(scripts().join("extract_schema.py"))
                .args([&source, &self.schema()]),
            "",
        )?;
        fs::remove_dir_all(&source)?;
        Ok(())
    }
}

/// Where this crate keeps what it makes: `target/interop` of this checkout.
pub fn home() -> PathBuf {
    workspace().join("target/interop")
}

/// The root of this checkout.
pub fn workspace() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}

/// The Python files of this crate.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python")
}

fn requirements() -> PathBuf {
    scripts().join("requirements.txt")
}

/// What the environment depends on: the interpreter and the requirements.
fn stamp() -> Result<String> {
    let print = "import sys; print(*sys.version_info[:3], sys.base_prefix)";
    let version = feed(command("python3").args(["-c", print]), "")
        .context("no Python: install it with `apt-get install python3 python3-venv`")?;
    let mut words = version.split_whitespace();
    let mut number = || -> Option<u32> { words.next()?.parse().ok() };
    let (major, minor) = (number().unwrap_or(0), number().unwrap_or(0));
    ensure!(
        (major, minor) >= OLDEST,
        "python3 is {major}.{minor}, needed is {}.{} or newer",
        OLDEST.0,
        OLDEST.1
    );
    let mut hash = Sha256::new();
    hash.update(fs::read(requirements())?);
    hash.update(&version);
    let digest = hash.finalize();
    Ok(digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// The line of the requirements that pins a package.
fn pin(requirements: &str, package: &str) -> Result<String> {
    let start = format!("{package}==");
    let line = requirements.lines().find(|line| line.starts_with(&start));
    Ok(line
        .with_context(|| format!("{package} is not pinned"))?
        .to_owned())
}

/// A command that inherits this process's environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the peers are programs of their own"
)]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Runs a command with a text on its standard input; gives its standard output. Fails with its
/// standard error.
pub fn feed(command: &mut Command, input: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let Some(mut stdin) = child.stdin.take() else {
        bail!("{name} has no input")
    };
    // A program that does not read its input may be gone already.
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    written.with_context(|| format!("{name} did not read its input"))?;
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_pinned_to_one_version() {
        let text = fs::read_to_string(requirements()).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, version) = line.split_once("==").unwrap_or_else(|| panic!("{line}"));
            assert!(
                !name.is_empty() && !version.is_empty() && !line.contains(' '),
                "{line}"
            );
        }
        assert_eq!(
            pin(&text, SCHEMA_PACKAGE)
                .unwrap()
                .split_once("==")
                .unwrap()
                .0,
            SCHEMA_PACKAGE
        );
    }

    #[test]
    fn the_error_of_a_program_is_what_it_said() {
        let error = feed(command("sh").args(["-c", "echo no >&2; exit 3"]), "").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("exit status: 3") && text.ends_with("no\n"),
            "{text}"
        );
    }
}
