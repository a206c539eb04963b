//! Relations between applications of two models.

use std::fs;
use std::sync::Arc;

use juju_sim::cloud::NoCloud;
use juju_sim::{Databag, DeployRequest, Model, Options};
use serde_json::json;

use crate::lab::{Lab, bag, options};

const PROVIDER: &str = "provides: {out: {interface: cups}}\npeers: {mates: {interface: mates}}\n";
const REQUIRER: &str = "requires: {in: {interface: cups}}\n";

/// Notes what a relation hook is told, and says who it is.
const NOTES: &str = r#"
case $hook in *-relation-*)
  echo "$hook app=$JUJU_REMOTE_APP unit=$JUJU_REMOTE_UNIT" >> ../told
  relation-list --format=json >> ../listed ;;
esac
case $hook in *-relation-created)
  relation-set from=$JUJU_UNIT_NAME
  [ $(is-leader) = False ] || relation-set --app by=$JUJU_MODEL_NAME ;;
esac
case $hook in out-relation-changed|in-relation-changed)
  relation-get --format=json - $JUJU_REMOTE_UNIT >> ../read 2>/dev/null || true
  relation-model-get --format=json > ../uuid ;;
esac"#;

/// Model `lab` offers `meshy:out`, model `other` has `taker`.
struct Two {
    lab: Lab,
    other: Model,
}

impl Two {
    fn new(offering: &str, taking: &str) -> Self {
        let mut lab = Lab::new();
        lab.deploy("meshy", PROVIDER, offering);
        let other = Options {
            model_name: "other".into(),
            seed: 7,
            ..options()
        };
        let dir = lab.root.path().join("other");
        let clock = Arc::clone(&lab.clock) as _;
        let mut other = Model::open(&dir, Arc::new(NoCloud), clock, other).unwrap();
        let taker = lab.charm("taker", REQUIRER, taking);
        other.deploy(&DeployRequest::new(taker)).unwrap();
        other.advance().unwrap();
        Self { lab, other }
    }

    /// Both models' agents in turn, until neither has anything to do.
    fn advance(&mut self) {
        while self.other.advance().unwrap() + self.lab.model.advance().unwrap() > 0 {}
        // What was said last is heard.
        while self.other.advance().unwrap() + self.lab.model.advance().unwrap() > 0 {}
    }

    fn related(offering: &str, taking: &str) -> Self {
        let mut two = Self::new(offering, taking);
        assert_eq!(
            two.lab.model.offer("meshy:out", Some("cups")).unwrap(),
            "admin/model.cups"
        );
        two.other
            .consume("admin/model.cups", Some("dishes"))
            .unwrap();
        two.other.integrate("taker", "dishes").unwrap();
        two.advance();
        two
    }

    fn taker_wrote(&self, file: &str) -> String {
        let path = self.other.charm_dir("taker/0").join(file);
        fs::read_to_string(path).unwrap_or_default()
    }

    fn taker_hooks(&self) -> Vec<String> {
        let records = self.other.hook_log().unwrap().into_iter();
        let records = records.filter(|record| record.unit == "taker/0");
        records.map(|record| record.hook).collect()
    }

    /// What the consuming application is called in the offering model.
    fn remote(&self) -> String {
        let status = self.lab.model.status();
        let relation = &status["applications"]["meshy"]["relations"]["out"][0];
        relation["related-application"].as_str().unwrap().to_owned()
    }
}

fn own(bag: Option<Databag>) -> Databag {
    let mut bag = bag.unwrap_or_default();
    for key in ["egress-subnets", "ingress-address", "private-address"] {
        bag.remove(key);
    }
    bag
}

#[test]
fn each_side_is_told_of_the_other_under_its_name_in_the_own_model() {
    let two = Two::related(NOTES, NOTES);
    let remote = two.remote();
    let token = remote.strip_prefix("remote-").unwrap();
    assert!(
        token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()),
        "{remote}"
    );
    let told = two.lab.wrote("meshy/0", "../told");
    let mut told: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("out-"))
        .collect();
    told.sort_unstable();
    let expect = [
        format!("out-relation-changed app={remote} unit="),
        format!("out-relation-changed app={remote} unit={remote}/0"),
        format!("out-relation-created app={remote} unit="),
        format!("out-relation-joined app={remote} unit={remote}/0"),
    ];
    assert_eq!(told, expect);
    let told = two.taker_wrote("../told");
    assert!(
        told.contains("in-relation-joined app=dishes unit=dishes/0\n"),
        "{told}"
    );
    assert!(two.taker_wrote("../listed").ends_with("[\"dishes/0\"]\n"));
}

#[test]
fn data_of_both_sides_reaches_the_other_model() {
    let two = Two::related(NOTES, NOTES);
    let remote = two.remote();
    assert_eq!(
        own(two.lab.model.databag(1, &format!("{remote}/0"))),
        bag(&[("from", "taker/0")])
    );
    assert_eq!(
        own(two.lab.model.databag(1, &remote)),
        bag(&[("by", "other")])
    );
    assert_eq!(
        own(two.other.databag(0, "dishes/0")),
        bag(&[("from", "meshy/0")])
    );
    assert_eq!(own(two.other.databag(0, "dishes")), bag(&[("by", "lab")]));
    assert!(two.taker_wrote("../read").contains("\"from\":\"meshy/0\""));
}

#[test]
fn the_other_model_is_named_by_its_uuid() {
    let two = Two::related(NOTES, NOTES);
    let uuid = |model: &Model| json!({"uuid": model.uuid()}).to_string() + "\n";
    assert_eq!(two.taker_wrote("../uuid"), uuid(&two.lab.model));
    assert_eq!(two.lab.wrote("meshy/0", "../uuid"), uuid(&two.other));
}

#[test]
fn units_that_come_and_go_are_seen_from_the_other_model() {
    let mut two = Two::related(NOTES, NOTES);
    two.lab.model.add_units("meshy", 1).unwrap();
    two.advance();
    assert!(
        two.taker_wrote("../told")
            .contains("in-relation-joined app=dishes unit=dishes/1\n")
    );
    two.lab.model.remove_units("meshy", 1, false).unwrap();
    two.advance();
    let told = two.taker_wrote("../told");
    assert!(
        told.ends_with("in-relation-departed app=dishes unit=dishes/1\n"),
        "{told}"
    );
}

#[test]
fn either_side_ends_the_relation_and_both_are_told() {
    for from_offer in [true, false] {
        let mut two = Two::related(NOTES, NOTES);
        if from_offer {
            let remote = two.remote();
            two.lab.model.remove_relation("meshy", &remote).unwrap();
        } else {
            two.other.remove_relation("taker", "dishes").unwrap();
        }
        two.advance();
        let hooks = two.taker_hooks();
        assert_eq!(
            hooks[hooks.len() - 2..],
            ["in-relation-departed", "in-relation-broken"]
        );
        let hooks = two.lab.hooks("meshy/0");
        assert_eq!(hooks.last().unwrap(), "out-relation-broken");
        assert_eq!(
            two.other.status()["applications"]["taker"]["relations"],
            json!({})
        );
        let relations = &two.lab.model.status()["applications"]["meshy"]["relations"];
        assert_eq!(relations.get("out"), None);
        two.other.integrate("taker", "dishes").unwrap();
        two.advance();
        assert_eq!(two.taker_hooks().last().unwrap(), "in-relation-changed");
    }
}

#[test]
fn a_model_that_is_gone_ends_its_relations() {
    let two = Two::related(NOTES, NOTES);
    let Two { mut lab, other } = two;
    other.destroy().unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.hooks("meshy/0").last().unwrap(), "out-relation-broken");
}

#[test]
fn offers_and_what_is_consumed_are_shown() {
    let two = Two::related(NOTES, NOTES);
    let status = two.lab.model.status();
    let offer = json!({
        "application": "meshy", "charm": "local:meshy-0",
        "active-connected-count": 1, "total-connected-count": 1,
        "endpoints": {"out": {"interface": "cups", "role": "provider"}},
    });
    assert_eq!(status["offers"], json!({"cups": offer}));
    assert_eq!(two.lab.model.offers(), json!({"cups": offer}));
    let status = two.other.status();
    let saas = &status["application-endpoints"]["dishes"];
    assert_eq!(saas["url"], "simulator:admin/model.cups");
    assert_eq!(saas["relations"], json!({"out": ["taker"]}));
    let unit = two.other.show_unit("taker/0").unwrap();
    let relation = &unit["taker/0"]["relation-info"][0];
    assert_eq!(
        (&relation["cross-model"], &relation["application-data"]),
        (&json!(true), &json!({"by": "lab"}))
    );
}

#[test]
fn an_offer_is_related_by_its_url_alone() {
    let mut two = Two::new(NOTES, NOTES);
    two.lab.model.offer("meshy:out", None).unwrap();
    two.other
        .integrate("taker", "simulator:admin/model.meshy")
        .unwrap();
    two.advance();
    assert!(
        two.taker_wrote("../told")
            .contains("in-relation-joined app=meshy unit=meshy/0\n")
    );
}

#[test]
fn what_cannot_be_offered_or_consumed_is_refused() {
    let mut two = Two::related(NOTES, NOTES);
    let refused = |found: Result<String, juju_sim::ModelError>| found.unwrap_err().to_string();
    let model = &mut two.lab.model;
    assert_eq!(
        refused(model.offer("meshy", None)),
        "missing endpoints: offer meshy:ENDPOINT"
    );
    assert_eq!(
        refused(model.offer("meshy:mates", None)),
        "application \"meshy\" has no \"mates\" relation"
    );
    assert_eq!(
        model.remove_offer("cups", false).unwrap_err().to_string(),
        "cannot delete application offer \"cups\": offer has 1 relation"
    );
    let other = &mut two.other;
    assert_eq!(
        refused(other.consume("model.none", None)),
        "application offer \"admin/model.none\" not found"
    );
    assert_eq!(
        refused(other.consume("cups", None)),
        "application offer URL \"cups\" is not valid"
    );
    assert_eq!(
        refused(other.consume("model.cups", Some("taker"))),
        "saas application \"taker\" already exists"
    );
    two.lab.model.remove_offer("cups", true).unwrap();
    two.advance();
    assert_eq!(two.taker_hooks().last().unwrap(), "in-relation-broken");
}

#[test]
fn a_secret_is_read_followed_and_lost_across_models() {
    let owner = r"
case $hook in
  out-relation-created)
    id=$(secret-add --label key pass-word=one); echo $id > ../id
    secret-grant -r $JUJU_RELATION_ID $id
    relation-set --app secret=secret://$JUJU_MODEL_UUID/${id#secret:} ;;
  update-status)
    if [ -e ../revoke ]; then secret-revoke -r out:1 $(cat ../id); else secret-set $(cat ../id) pass-word=two; fi ;;
esac";
    let reader = r#"
case $hook in
  in-relation-changed)
    id=$(relation-get --app secret $JUJU_REMOTE_APP)
    [ -z "$id" ] || [ -n "$JUJU_REMOTE_UNIT" ] || secret-get $id --format=json >> ../seen ;;
  secret-changed)
    echo $JUJU_SECRET_ID > ../changed
    secret-get $JUJU_SECRET_ID --refresh --format=json >> ../seen ;;
  update-status) secret-get $(cat ../changed) --format=json >> ../seen 2>&1 || true ;;
esac"#;
    let mut two = Two::related(owner, reader);
    assert_eq!(two.taker_wrote("../seen"), "{\"pass-word\":\"one\"}\n");
    assert_eq!(two.other.secrets(), json!({}), "it is the other model's");
    two.lab.model.fire_update_status("meshy").unwrap();
    two.advance();
    assert_eq!(
        two.taker_wrote("../seen"),
        "{\"pass-word\":\"one\"}\n{\"pass-word\":\"two\"}\n"
    );
    let id = two.taker_wrote("../changed");
    let id = id.strip_prefix("secret://").unwrap();
    assert_eq!(id.split_once('/').unwrap().0, two.lab.model.uuid());
    fs::write(two.lab.model.charm_dir("meshy/0").join("../revoke"), "").unwrap();
    two.lab.model.fire_update_status("meshy").unwrap();
    two.advance();
    two.other.fire_update_status("taker").unwrap();
    two.advance();
    let seen = two.taker_wrote("../seen");
    assert!(seen.lines().last().unwrap().contains("not found"), "{seen}");
}
