//! Properties of plan and apply over arbitrary sets.

#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

mod common;

use common::{account, config_map, deployment, inventory, service, set, webhook};
use kube_apply::testing::FakeApi;
use kube_apply::{Object, ObjectsSet, Stage};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Wish {
    kind: u8,
    name: u8,
    variant: u8,
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let wish = (0u8..5, 0u8..4, 0u8..3).prop_map(|(kind, name, variant)| Wish {
        kind,
        name,
        variant,
    });
    prop::collection::vec(wish, 0..12).prop_map(|mut wishes| {
        wishes.sort_by_key(|wish| (wish.kind, wish.name));
        wishes.dedup_by_key(|wish| (wish.kind, wish.name));
        wishes
    })
}

fn object(wish: &Wish) -> Object {
    let name = format!("n{}", wish.name);
    let variant = wish.variant.to_string();
    let mut object = match wish.kind {
        0 => config_map(&name, &variant),
        1 => service(&name),
        2 => deployment(&name, &variant),
        3 => webhook(&name, if wish.variant == 0 { "Ignore" } else { "Fail" }),
        _ => account(&name),
    };
    if wish.variant > 0 {
        object.set_label(&format!("variant-{variant}"), &variant);
    }
    object
}

fn wanted(wishes: &[Wish]) -> ObjectsSet {
    let (first, second) = wishes.split_at(wishes.len() / 2);
    let stage = |name, wishes: &[Wish]| Stage::new(name, wishes.iter().map(object).collect());
    set(vec![stage("first", first), stage("second", second)])
}

fn ours(fake: &FakeApi) -> usize {
    let owns = |value| inventory().owns(&common::object(value));
    fake.objects()
        .into_iter()
        .filter(|value| owns(value.clone()))
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_an_apply_the_plan_is_empty_and_exactly_the_wishes_exist(
        before in wishes(),
        after in wishes(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let fake = FakeApi::new();
            fake.seed_namespace("istio-lab");
            for wishes in [&before, &after] {
                let set = wanted(wishes);
                let foreseen = fake.engine().plan(&set).await.expect("a plan");
                let applied = fake.engine().apply(&set).await.expect("applied");
                assert_eq!(applied.written.len(), foreseen.create.len() + foreseen.change.len());
                assert_eq!(applied.pruned, foreseen.prune);
                assert_eq!(applied.unchanged, foreseen.keep.len());
                let plan = fake.engine().plan(&set).await.expect("a plan");
                assert!(plan.is_empty(), "{plan}");
                assert_eq!(ours(&fake), wishes.len());
            }
        });
    }
}
