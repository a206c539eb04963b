//! The Rust half of the comparison: the same charm is written in Python beside it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::process::ExitCode;

use juju_charm::{ActionOutcome, Charm, LocalData, ModelView, NoWorld, Outcome, Problem};

struct Twin;

/// Units and the sum of their loads.
struct Sum {
    units: usize,
    total: i64,
}

impl Charm for Twin {
    const METADATA: &'static str = include_str!("../charmcraft.yaml");
    type Fx = NoWorld;
    type Validated = Sum;

    fn query(_: &ModelView) {}

    fn validate(view: &ModelView, (): &()) -> (Sum, Vec<Problem>) {
        let bags = view
            .relations_of("load")
            .flat_map(|r| r.remote_units.values());
        let loads: Vec<i64> = bags
            .map(|bag| bag.get("load").and_then(|load| load.parse().ok()))
            .map(Option::unwrap_or_default)
            .collect();
        let sum = Sum {
            units: loads.len(),
            total: loads.iter().sum(),
        };
        (sum, Vec::new())
    }

    fn desired(_: &ModelView, _: &Sum, (): &()) -> Option<()> {
        None
    }

    fn outcome(
        view: &ModelView,
        sum: &Sum,
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        problems: &[Problem],
    ) -> Outcome {
        let unit = view.config.str("unit").unwrap_or_default();
        let message = format!("{} {unit} from {} units", sum.total, sum.units);
        let mut outcome = Outcome::from_problems(view, message, problems);
        for relation in view.relations_of("load") {
            let app = BTreeMap::from([("total".to_owned(), sum.total.to_string())]);
            let data = LocalData {
                app,
                ..LocalData::default()
            };
            outcome.databags.insert(relation.id, data);
        }
        outcome
    }

    fn action(
        view: &ModelView,
        sum: &Sum,
        (): &(),
        _: Option<&()>,
        _: Option<&Infallible>,
        _: &[Problem],
    ) -> ActionOutcome {
        let times = view
            .action
            .as_ref()
            .and_then(|call| call.params.get("times")?.as_i64());
        let total = sum.total * times.unwrap_or(1);
        ActionOutcome::ok(BTreeMap::from([
            ("total".to_owned(), total.to_string()),
            ("units".to_owned(), sum.units.to_string()),
        ]))
    }
}

fn main() -> ExitCode {
    juju_charm::run::<Twin>(NoWorld::connect)
}
