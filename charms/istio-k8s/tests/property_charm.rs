//! What holds for every configuration.

mod common;

use common::{Lab, name};
use juju_charm::{Config, Event};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Options that are in order: (profile, revision, replicas, gateways).
fn options() -> impl Strategy<Value = (String, String, u8, Vec<String>)> {
    (
        prop_oneof![Just("default"), Just("ambient"), Just("minimal")].prop_map(String::from),
        // Charts write a revision without quotes: `n` and `yes` are refused.
        prop_oneof![Just(String::new()), "[a-z][a-z0-9]{3,8}"],
        1..9_u8,
        proptest::collection::btree_set("[a-z]{1,6}", 0..3).prop_map(Vec::from_iter),
    )
}

fn lab(options: &(String, String, u8, Vec<String>)) -> Lab {
    let (profile, revision, replicas, gateways) = options;
    let gateways = gateways
        .iter()
        .map(|name| format!("- {{name: gw-{name}, namespace: {name}-lab}}\n"))
        .collect::<Vec<_>>()
        .concat();
    let lab = Lab::new();
    lab.config("profile", profile.as_str())
        .config("revision", revision.as_str())
        .config("values", format!("replicaCount: {replicas}"))
        .config("gateways", gateways);
    lab
}

fn bodies(lab: &Lab) -> Vec<Value> {
    lab.api
        .requests()
        .into_iter()
        .filter(kube_apply::testing::Recorded::is_write)
        .map(|r| r.body)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_same_options_give_the_same_bytes_in_the_same_order(options in options()) {
        let (one, other) = (lab(&options), lab(&options));
        one.hook(Event::ConfigChanged);
        other.hook(Event::ConfigChanged);
        let bytes = |lab: &Lab| -> Vec<String> { bodies(lab).iter().map(Value::to_string).collect() };
        prop_assert!(!bytes(&one).is_empty());
        prop_assert_eq!(bytes(&one), bytes(&other));
    }

    #[test]
    fn a_second_run_writes_nothing_and_a_removal_leaves_nothing(options in options()) {
        let lab = lab(&options);
        lab.hook(Event::ConfigChanged).assert_says("active", &["Istio 1.31.0 in istio-lab"]);
        lab.api.forget_requests();
        lab.update_status().assert_untouched();
        lab.change(|state| state.planned_units(0)).hook(Event::Remove);
        let left = lab.ours();
        let is_crd = |name: &String| name.starts_with("CustomResourceDefinition ");
        prop_assert!(left.iter().all(is_crd), "{:?}", left);
    }

    #[test]
    fn any_change_of_options_ends_where_a_fresh_installation_does(
        before in options(), after in options(),
    ) {
        // A revision does not change; everything else does.
        let after = (after.0, before.1.clone(), after.2, after.3);
        let changed = lab(&before);
        changed.hook(Event::ConfigChanged);
        let fresh = lab(&after);
        fresh.hook(Event::ConfigChanged);
        let profile = &after.0;
        changed.config("profile", profile.as_str());
        for option in ["values", "gateways"] {
            changed.config(option, fresh.state().config[option].clone());
        }
        changed.config_changed();
        prop_assert_eq!(changed.status(), fresh.status());
        let ours = |lab: &Lab| -> Vec<(String, Value)> {
            let objects = lab.api.objects().into_iter();
            objects
                .filter(|o| o["kind"] != "Namespace")
                .map(|o| (name(&o), o["metadata"]["annotations"].clone()))
                .collect()
        };
        let crds = |objects: Vec<(String, Value)>| -> Vec<(String, Value)> {
            objects.into_iter().filter(|o| !o.0.starts_with("CustomResource")).collect()
        };
        prop_assert_eq!(crds(ours(&changed)), crds(ours(&fresh)));
    }

    #[test]
    fn no_text_in_an_option_is_more_than_a_problem(
        texts in vec(any::<String>(), 5), yaml in "[-a-z0-9:{}\\[\\], \\n'\"&*!|>#]{0,60}",
    ) {
        let options = ["namespace", "revision", "values", "gateways", "release-sha256"];
        let mut config: Map<String, Value> =
            options.iter().zip(&texts).map(|(k, v)| ((*k).to_owned(), v.as_str().into())).collect();
        let read = |config: &Map<String, Value>| istio_k8s::config::options(&Config::new(config.clone()), &"meshy".parse().unwrap());
        for option in ["values", "gateways"] {
            if let Err(problems) = read(&config) {
                for problem in problems {
                    prop_assert!(problem.message.starts_with("option "), "{}", problem.message);
                }
            }
            config.insert(option.to_owned(), yaml.as_str().into());
        }
    }
}
