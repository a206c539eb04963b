//! How many istiods run.

use serde::Serialize;
use serde_json::{Value, json};

/// How many istiods run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub enum Scale {
    /// What profile and values say; upstream's default is an autoscaler from 1 to 5.
    #[default]
    Chart,
    /// That many, without an autoscaler.
    Fixed(u16),
    /// An autoscaler between two bounds, both at least 1.
    Between {
        /// At least so many.
        min: u16,
        /// At most so many.
        max: u16,
    },
}

impl Scale {
    /// Values of the istiod chart, under `pilot`: the chart takes what is there over all else.
    pub(super) fn istiod_values(self) -> Option<Value> {
        match self {
            Self::Chart => None,
            Self::Fixed(count) => Some(json!({"autoscaleEnabled": false, "replicaCount": count})),
            Self::Between { min, max } => {
                Some(json!({"autoscaleEnabled": true, "autoscaleMin": min, "autoscaleMax": max}))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_switches_the_autoscaler_off_and_bounds_switch_it_on() {
        assert_eq!(Scale::Chart.istiod_values(), None);
        assert_eq!(
            Scale::Fixed(3).istiod_values(),
            Some(json!({"autoscaleEnabled": false, "replicaCount": 3}))
        );
        assert_eq!(
            Scale::Between { min: 2, max: 7 }.istiod_values(),
            Some(json!({"autoscaleEnabled": true, "autoscaleMin": 2, "autoscaleMax": 7}))
        );
    }
}
