//! The packed charms of the product, judged by Charmcraft itself.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::fs::{self, File};
use std::path::Path;

use interop::charm_files::packed;
use interop::venv::{Venv, command, feed, home, workspace};
use serde_json::{Value, json};

/// The charms of this workspace, in order.
const CHARMS: [&str; 2] = ["istio-integrator", "istio-k8s"];

fn name(charm: &Path) -> &str {
    let file = charm.file_name().unwrap().to_str().unwrap();
    file.split_once('_').expect("NAME_PLATFORM.charm").0
}

/// Runs a check on each packed charm, and fails if one of the charms was not packed.
fn each(check: impl Fn(&str, &Path)) {
    let charms = packed().unwrap();
    for expect in CHARMS {
        assert!(
            charms.iter().any(|charm| name(charm) == expect),
            "{expect} is not packed"
        );
    }
    for charm in charms.iter().filter(|charm| CHARMS.contains(&name(charm))) {
        check(name(charm), charm);
    }
}

/// What Charmcraft's models say about a charm and its description.
fn judged(name: &str, charm: &Path) -> Value {
    let venv = Venv::ready().unwrap();
    let project = workspace()
        .join("charms")
        .join(name)
        .join("charmcraft.yaml");
    let ask = json!({"project": project, "schema": venv.schema(), "charm": charm});
    venv.run("charm_files.py", &ask).unwrap()
}

#[test]
fn the_description_keeps_to_charmcrafts_schema() {
    each(|name, charm| assert_eq!(judged(name, charm)["schema"], json!([]), "{name}"));
}

#[test]
fn the_packed_files_are_those_charmcraft_would_write() {
    each(|name, charm| {
        let mut judged = judged(name, charm);
        let mut packed = judged["packed"].take();
        let manifest = packed
            .as_object_mut()
            .unwrap()
            .remove("manifest.yaml")
            .unwrap();
        assert_eq!(packed, judged["generated"], "{name}");
        let base = json!({"name": "ubuntu", "channel": "24.04", "architectures": ["amd64"]});
        assert_eq!(manifest["bases"], json!([base]), "{name}");
        let packed_at = manifest["charmcraft-started-at"].as_str().unwrap();
        assert!(packed_at.ends_with('Z'), "{packed_at}");
    });
}

#[test]
fn the_linters_of_charmcraft_find_nothing() {
    let venv = Venv::ready().unwrap();
    let folder = home().join("charmcraft");
    fs::create_dir_all(&folder).unwrap();
    each(|name, charm| {
        let mut analyse = command(venv.bin().join("charmcraft"));
        analyse.arg("analyse").arg(charm).args(["--format", "json"]);
        // Its log files stay in this checkout.
        for variable in [
            "HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
            "XDG_CACHE_HOME",
        ] {
            analyse.env(variable, &folder);
        }
        let said: Value = serde_json::from_str(&feed(&mut analyse, "").unwrap()).unwrap();
        let lints: Vec<_> = said
            .as_array()
            .unwrap()
            .iter()
            .filter(|lint| lint["check_type"] == "lint")
            .collect();
        assert!(
            lints.iter().any(|lint| lint["result"] == "ok"),
            "{name}: {said}"
        );
        for lint in lints {
            let result = lint["result"].as_str().unwrap();
            assert!(["ok", "nonapplicable"].contains(&result), "{name}: {lint}");
        }
    });
}

#[test]
fn dispatch_is_a_program_and_nothing_else_is() {
    each(|name, charm| {
        let mut zip = zip::ZipArchive::new(File::open(charm).unwrap()).unwrap();
        let programs: Vec<String> = (0..zip.len())
            .filter_map(|index| {
                let entry = zip.by_index(index).unwrap();
                let mode = entry.unix_mode().unwrap_or_default();
                (mode & 0o111 != 0).then(|| entry.name().unwrap().into_owned())
            })
            .collect();
        assert_eq!(programs, ["dispatch"], "{name}");
    });
}
