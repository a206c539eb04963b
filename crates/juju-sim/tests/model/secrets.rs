//! Secrets from end to end: a charm on this library owns one, a few lines of shell read it.

use std::path::PathBuf;

use juju_sim::{DeployRequest, Fault};

use crate::lab::{Lab, bag, packed};

const READER: &str = "requires: {from: {interface: kept}}\n";

/// Reads what it is told of and notes what it gets.
const READS: &str = r#"
case $hook in
  from-relation-changed)
    id=$(relation-get --app credentials -r $JUJU_RELATION_ID $JUJU_REMOTE_APP)
    [ -z "$id" ] || [ -n "$JUJU_REMOTE_UNIT" ] || secret-get --label theirs $id --format=json >> ../seen 2>&1 || true ;;
  secret-changed) secret-get --label theirs --refresh --format=json >> ../seen 2>&1 || true ;;
  update-status) secret-get --label theirs --peek --format=json >> ../seen 2>&1 || true ;;
esac"#;

impl Lab {
    fn kept(&mut self) {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_keeper-charm"));
        let charm = packed(
            self.root.path(),
            "keeper",
            include_str!("keeper.yaml"),
            &program,
        );
        self.model.deploy(&DeployRequest::new(charm)).unwrap();
        self.deploy("reader", READER, READS);
        self.model.integrate("keeper", "reader").unwrap();
        self.model.advance().unwrap();
    }

    fn set(&mut self, option: &str, value: &str) {
        let values = [(option.to_owned(), value.into())].into();
        self.model.set_config("keeper", &values).unwrap();
        self.model.advance().unwrap();
    }

    /// The secret tools that `keeper` called in its last hook of that name, without reads.
    fn writes(&self, hook: &str) -> Vec<String> {
        let mut records = self.records("keeper/0").into_iter();
        let last = records.rfind(|record| record.hook == hook).unwrap();
        let tools = last.calls.into_iter().map(|call| call.tool);
        let reads = ["secret-get", "secret-info-get"];
        tools
            .filter(|tool| tool.starts_with("secret-") && !reads.contains(&tool.as_str()))
            .collect()
    }
}

#[test]
fn a_secret_that_is_to_exist_is_made_shared_and_followed() {
    let mut lab = Lab::new();
    lab.kept();
    assert_eq!(
        lab.wrote("reader/0", "../seen"),
        "{\"password\":\"hunter2\"}\n"
    );
    lab.set("password", "correct horse");
    assert_eq!(lab.writes("config-changed"), ["secret-set"]);
    assert!(lab.hooks("reader/0").contains(&"secret-changed".to_owned()));
    assert_eq!(
        lab.wrote("reader/0", "../seen"),
        "{\"password\":\"hunter2\"}\n{\"password\":\"correct horse\"}\n"
    );
}

#[test]
fn who_makes_a_revision_is_not_told_of_it() {
    let mut lab = Lab::new();
    lab.kept();
    lab.set("password", "correct horse");
    lab.wait(300);
    let hooks = lab.hooks("keeper/0");
    assert!(!hooks.contains(&"secret-changed".to_owned()), "{hooks:?}");
    assert!(lab.hooks("reader/0").contains(&"secret-changed".to_owned()));
}

#[test]
fn a_secret_that_is_as_it_is_to_be_is_not_written() {
    let mut lab = Lab::new();
    lab.kept();
    lab.wait(300);
    assert_eq!(lab.hooks("keeper/0").last().unwrap(), "update-status");
    let none: [&str; 0] = [];
    assert_eq!(lab.writes("update-status"), none);
    let listed = lab.model.secrets();
    let secret = listed.as_object().unwrap().values().next().unwrap();
    assert_eq!(
        (&secret["revision"], &secret["label"]),
        (&1.into(), &"kept".into())
    );
}

#[test]
fn content_is_in_no_argument_and_no_log() {
    let mut lab = Lab::new();
    lab.kept();
    lab.set("password", "hunter3");
    let shown = format!(
        "{:?} {}",
        lab.records("keeper/0"),
        lab.model.debug_log().unwrap()
    );
    assert!(shown.contains("password#file="), "{shown}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("hunter3"),
        "{shown}"
    );
}

#[test]
fn what_is_no_longer_shared_is_taken_back() {
    let mut lab = Lab::new();
    lab.kept();
    lab.set("sharing", "false");
    assert_eq!(lab.writes("config-changed"), ["secret-revoke"]);
    assert_eq!(lab.bag(0, "keeper"), bag(&[]));
    lab.wait(300);
    let seen = lab.wrote("reader/0", "../seen");
    assert_eq!(seen.lines().last(), Some("ERROR permission denied"));
    lab.set("sharing", "true");
    assert_eq!(lab.writes("config-changed"), ["secret-grant"]);
}

#[test]
fn an_empty_content_removes_the_secret() {
    let mut lab = Lab::new();
    lab.kept();
    lab.set("password", "");
    assert_eq!(lab.writes("config-changed"), ["secret-remove"]);
    assert_eq!(lab.model.secrets(), serde_json::json!({}));
    assert_eq!(lab.bag(0, "keeper"), bag(&[]));
}

#[test]
fn leadership_lost_during_a_hook_refuses_its_application_secrets() {
    let mut lab = Lab::new();
    let script = "case $hook in start) secret-add token=one ;; \
                  update-status) secret-get $(secret-ids) --format=json --peek >seen ;; esac";
    lab.model.inject(Fault::LoseLeadership("start".into()));
    lab.deploy("meshy", "peers: {mates: {interface: mates}}\n", script);
    let failed = lab.records("meshy/0").pop().unwrap();
    assert!(
        failed.failure.ends_with("this unit is not the leader"),
        "{failed:?}"
    );
    assert_eq!(lab.model.secrets(), serde_json::json!({}));
    lab.wait(5);
    assert_eq!(lab.model.secrets().as_object().unwrap().len(), 1);
    lab.model
        .inject(Fault::LoseLeadership("update-status".into()));
    lab.wait(300);
    let read = lab.records("meshy/0").pop().unwrap();
    assert!(read.ok, "to read one's own secret is no write: {read:?}");
}

/// An owner of a secret made with these flags, which notes what it is told of.
fn owner(flags: &str) -> Lab {
    let mut lab = Lab::new();
    lab.model
        .set_model_config("update-status-hook-interval", "60m")
        .unwrap();
    let script = format!(
        "case $hook in leader-elected) secret-add {flags} --label key token=one >../id ;; \
         secret-*) echo $hook $JUJU_SECRET_LABEL $JUJU_SECRET_REVISION >>../told ;; esac\n\
         case $hook in secret-*) [ ! -e ../fail ] || exit 1; \
         [ ! -e ../mend ] || sh ../mend ;; esac"
    );
    lab.deploy("meshy", "", &script);
    lab
}

const DAY: u64 = 24 * 3600;

#[test]
fn a_secret_that_rotates_is_told_of_each_time_it_is_due() {
    let mut lab = owner("--rotate daily");
    lab.wait(DAY - 3600);
    assert_eq!(lab.wrote("meshy/0", "../told"), "");
    lab.wait(3600);
    assert_eq!(lab.wrote("meshy/0", "../told"), "secret-rotate key\n");
    lab.wait(3600);
    assert_eq!(lab.wrote("meshy/0", "../told"), "secret-rotate key\n");
    lab.wait(DAY);
    let told = lab.wrote("meshy/0", "../told");
    assert_eq!(told.lines().count(), 2, "{told}");
}

#[test]
fn a_rotation_whose_hook_fails_is_told_of_again() {
    let mut lab = owner("--rotate hourly");
    let fail = lab.model.charm_dir("meshy/0").join("../fail");
    std::fs::write(&fail, "").unwrap();
    lab.wait(3600);
    assert_eq!(
        lab.status("meshy/0"),
        "error: hook failed: \"secret-rotate\""
    );
    std::fs::remove_file(&fail).unwrap();
    lab.wait(10);
    let told = lab.wrote("meshy/0", "../told");
    assert_eq!(told, "secret-rotate key\nsecret-rotate key\n");
    lab.wait(10);
    assert_eq!(lab.wrote("meshy/0", "../told"), told);
}

#[test]
fn an_expired_revision_is_told_of_until_it_is_gone() {
    let mut lab = owner("--expire 2h");
    lab.wait(3600);
    assert_eq!(lab.wrote("meshy/0", "../told"), "");
    lab.wait(3600);
    assert_eq!(lab.wrote("meshy/0", "../told"), "secret-expired key 1\n");
    lab.wait(300);
    let twice = "secret-expired key 1\nsecret-expired key 1\n";
    assert_eq!(lab.wrote("meshy/0", "../told"), twice);
    let mend = "secret-set $(cat ../id) token=two --expire 24h\n\
                secret-remove $(cat ../id) --revision 1\n";
    std::fs::write(lab.model.charm_dir("meshy/0").join("../mend"), mend).unwrap();
    lab.wait(300);
    lab.wait(300);
    let told = lab.wrote("meshy/0", "../told");
    assert_eq!(
        told.lines().count(),
        3,
        "the new revision has another time: {told}"
    );
    lab.wait(DAY);
    let told = lab.wrote("meshy/0", "../told");
    assert!(told.ends_with("secret-expired key 2\n"), "{told}");
}

#[test]
fn only_the_leader_is_told_of_the_applications_secrets() {
    let mut lab = owner("--rotate hourly");
    lab.model.add_units("meshy", 1).unwrap();
    lab.wait(3600);
    assert_eq!(lab.wrote("meshy/0", "../told"), "secret-rotate key\n");
    assert!(!lab.hooks("meshy/1").contains(&"secret-rotate".to_owned()));
}

#[test]
fn an_expiry_that_is_no_time_is_refused() {
    let mut lab = Lab::new();
    let script = "[ $hook != start ] || secret-add --expire soon token=one 2>err || true";
    lab.deploy("meshy", "", script);
    assert_eq!(
        lab.wrote("meshy/0", "err"),
        "ERROR expire time or duration \"soon\" not valid\n"
    );
}

#[test]
fn a_revision_that_nobody_tracks_any_more_is_told_of_and_removed() {
    let mut lab = Lab::new();
    lab.kept();
    lab.set("password", "hunter3");
    let told = "secret-remove".to_owned();
    assert!(
        !lab.hooks("keeper/0").contains(&told),
        "its owner tracks what it read last"
    );
    lab.wait(300);
    assert_eq!(lab.writes("secret-remove"), ["secret-remove"]);
    lab.wait(300);
    let hooks = lab.hooks("keeper/0");
    let told = hooks.iter().filter(|hook| *hook == "secret-remove");
    assert_eq!(told.count(), 1, "{hooks:?}");
    let last = lab.records("keeper/0");
    let remove = last
        .iter()
        .flat_map(|r| &r.calls)
        .find(|c| c.tool == "secret-remove");
    assert_eq!(remove.unwrap().args[1..], ["--revision", "1"]);
}

#[test]
fn a_revision_that_is_still_tracked_is_not_removed() {
    let mut lab = Lab::new();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_keeper-charm"));
    let charm = packed(
        lab.root.path(),
        "keeper",
        include_str!("keeper.yaml"),
        &program,
    );
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    let reads_once = "case $hook in from-relation-changed) \
         id=$(relation-get --app credentials $JUJU_REMOTE_APP); \
         [ -z \"$id\" ] || secret-get $id >/dev/null ;; esac";
    lab.deploy("reader", READER, reads_once);
    lab.model.integrate("keeper", "reader").unwrap();
    lab.model.advance().unwrap();
    lab.set("password", "hunter3");
    lab.wait(300);
    assert!(!lab.hooks("keeper/0").contains(&"secret-remove".to_owned()));
    lab.model.remove_application("reader", false).unwrap();
    lab.model.advance().unwrap();
    assert!(lab.hooks("keeper/0").contains(&"secret-remove".to_owned()));
}
