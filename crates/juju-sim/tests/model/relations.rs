//! What relations tell whom.

use juju_sim::DeployRequest;

use crate::lab::Lab;
use crate::lab::bag;

const GIVER: &str = "provides: {out: {interface: cups}}\n";
const TAKER: &str = "requires: {in: {interface: cups, limit: 1}}\n";

fn pair(giver: &str, taker: &str) -> Lab {
    let mut lab = Lab::new();
    lab.deploy("giver", GIVER, giver);
    lab.deploy("taker", TAKER, taker);
    lab.model.integrate("giver", "taker").unwrap();
    lab.model.advance().unwrap();
    lab
}

#[test]
fn a_write_is_announced_once_and_an_equal_write_not_at_all() {
    let mut lab = pair(
        "[ $hook != update-status ] || relation-set -r out:0 colour=red",
        "",
    );
    let before = lab.hooks("taker/0").len();
    for _ in 0..2 {
        lab.model.fire_update_status("giver").unwrap();
        lab.model.advance().unwrap();
    }
    assert_eq!(
        lab.hooks("taker/0")[before..],
        ["in-relation-changed giver/0"]
    );
    assert_eq!(lab.bag(0, "giver/0"), bag(&[("colour", "red")]));
}

#[test]
fn application_data_is_announced_without_a_unit() {
    let seen = r#"[ $hook != in-relation-changed ] || [ -n "$JUJU_REMOTE_UNIT" ] ||
echo "$JUJU_REMOTE_APP $(relation-get --format=json)" >> ../seen.txt"#;
    let mut lab = pair(
        "[ $hook != update-status ] || relation-set -r out:0 --app a=1",
        seen,
    );
    lab.model.fire_update_status("giver").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.wrote("taker/0", "../seen.txt"), "giver {\"a\":\"1\"}\n");
    assert_eq!(lab.records("taker/0").pop().unwrap().remote_unit, None);
}

#[test]
fn the_writer_of_peer_data_is_not_told_but_its_peers_are() {
    let mut lab = Lab::new();
    let script = r"
if [ $hook = update-status ]; then
  relation-set -r mates:0 from=$JUJU_UNIT_NAME
  if [ $(is-leader) = True ]; then relation-set -r mates:0 --app leader=$JUJU_UNIT_NAME; fi
fi";
    let charm = lab.charm("meshy", "peers: {mates: {interface: mates}}\n", script);
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.model.advance().unwrap();
    let before = (lab.hooks("meshy/0").len(), lab.hooks("meshy/1").len());
    lab.model.fire_update_status("meshy").unwrap();
    lab.model.advance().unwrap();
    let sorted = |mut hooks: Vec<String>| {
        hooks.sort();
        hooks
    };
    assert_eq!(
        sorted(lab.hooks("meshy/0")[before.0..].to_vec()),
        ["mates-relation-changed meshy/1", "update-status"]
    );
    assert_eq!(
        sorted(lab.hooks("meshy/1")[before.1..].to_vec()),
        [
            "mates-relation-changed",
            "mates-relation-changed meshy/0",
            "update-status"
        ]
    );
}

#[test]
fn in_departed_the_unit_is_gone_and_in_broken_data_can_still_be_read() {
    let script = r#"
case $hook in
  in-relation-departed)
    echo "departed $JUJU_DEPARTING_UNIT $(relation-list --format=json)" >> ../seen.txt ;;
  in-relation-broken)
    echo "broken [$JUJU_REMOTE_UNIT] $JUJU_REMOTE_APP $(relation-ids --format=json in)" >> ../seen.txt
    relation-get --format=json -r in:0 --app - giver >> ../seen.txt
    relation-get --format=json -r in:0 a giver/0 >> ../seen.txt ;;
esac"#;
    let giver =
        "[ $hook != out-relation-created ] || { relation-set a=1; relation-set --app b=2; }";
    let mut lab = pair(giver, script);
    lab.model.remove_relation("giver", "taker").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.wrote("taker/0", "../seen.txt"),
        "departed giver/0 []\nbroken [] giver []\n{\"b\":\"2\"}\n\"1\"\n"
    );
    assert_eq!(lab.model.databag(0, "giver"), None, "the relation is gone");
}

#[test]
fn scaling_down_a_side_departs_that_unit_only() {
    let mut lab = pair("", "");
    lab.model.add_units("giver", 1).unwrap();
    lab.model.advance().unwrap();
    let before = lab.hooks("taker/0").len();
    lab.model.remove_units("giver", 1, false).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.hooks("taker/0")[before..],
        ["in-relation-departed giver/1"]
    );
    let last = lab.hooks("giver/1");
    assert_eq!(
        last[last.len() - 4..],
        [
            "out-relation-departed taker/0",
            "out-relation-broken",
            "stop",
            "remove"
        ]
    );
}

#[test]
fn integrating_is_refused_in_jujus_words() {
    let mut lab = pair("", "");
    lab.deploy("other", GIVER, "");
    let check = |lab: &mut Lab, a: &str, b: &str, expect: &str| {
        let text = lab.model.integrate(a, b).unwrap_err().to_string();
        assert!(text.contains(expect), "{text}");
    };
    check(
        &mut lab,
        "other",
        "taker",
        "establishing a new relation for taker:in would exceed its maximum relation limit of 1 \
         (quota limit exceeded)",
    );
    check(&mut lab, "giver", "other", "no relations found");
    check(
        &mut lab,
        "giver",
        "nobody",
        "application \"nobody\" not found",
    );
    check(
        &mut lab,
        "giver:in",
        "taker",
        "application \"giver\" has no \"in\" relation",
    );
}

#[test]
fn secrets_are_tracked_until_refreshed_and_owners_grant_them() {
    let giver = r"
case $hook in
  out-relation-created)
    id=$(secret-add --label key pass-word#base64=aHVudGVyMg==)
    secret-grant -r out:0 $id
    relation-set secret=$id ;;
  update-status)
    printf newer > ../content
    secret-set $(secret-ids) pass-word#file=../content ;;
esac";
    let taker = r#"
case $hook in
  in-relation-changed)
    id=$(relation-get secret); [ -z "$id" ] || secret-get --label theirs $id --format=json >> ../seen.txt ;;
  secret-changed)
    echo $JUJU_SECRET_LABEL >> ../seen.txt
    secret-get --label theirs --format=json >> ../seen.txt
    secret-get --label theirs --peek --format=json >> ../seen.txt
    secret-get $JUJU_SECRET_ID --refresh pass-word >> ../seen.txt
    secret-get nosuch 2>> ../seen.txt || true ;;
esac"#;
    let mut lab = pair(giver, taker);
    assert_eq!(
        lab.wrote("taker/0", "../seen.txt"),
        "{\"pass-word\":\"hunter2\"}\n"
    );
    lab.model.fire_update_status("giver").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.wrote("taker/0", "../seen.txt"),
        "{\"pass-word\":\"hunter2\"}\ntheirs\n{\"pass-word\":\"hunter2\"}\n\
         {\"pass-word\":\"newer\"}\nnewer\nERROR secret \"nosuch\" not found\n"
    );
    let log = serde_json::to_string(&lab.model.hook_log().unwrap()).unwrap();
    assert!(
        !log.contains("aHVudGVyMg") && !log.contains("hunter2"),
        "records hold no secrets"
    );
}

#[test]
fn a_user_secret_is_read_once_it_is_granted() {
    let mut lab = Lab::new();
    lab.deploy(
        "meshy",
        "",
        "[ $hook != update-status ] || secret-get $(cat ../id) --format=json > ../seen 2>&1 || true",
    );
    let id = lab.model.add_secret("tls", bag(&[("key", "abc")])).unwrap();
    std::fs::write(lab.model.charm_dir("meshy/0").join("../id"), &id).unwrap();
    let check = |lab: &mut Lab, expect: &str| {
        lab.model.fire_update_status("meshy").unwrap();
        lab.model.advance().unwrap();
        assert_eq!(lab.wrote("meshy/0", "../seen"), expect);
    };
    check(&mut lab, "ERROR permission denied\n");
    lab.model
        .grant_secret("tls", &["meshy".into()], true)
        .unwrap();
    check(&mut lab, "{\"key\":\"abc\"}\n");
    lab.model
        .update_secret("tls", bag(&[("key", "def")]))
        .unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.hooks("meshy/0").last().unwrap(), "secret-changed");
}
