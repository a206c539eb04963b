//! How many istiods.

use juju_charm::Config;
use mesh::control_plane::Scale;

use super::text::Bad;

/// More istiods than any cluster needs: such a number is a mistake.
const MOST: i64 = 100;

/// `replicas`, or both of `autoscale-min` and `autoscale-max`, or none of them.
pub(super) fn scale(config: &Config) -> Result<Scale, Bad> {
    let replicas = number(config, "replicas")?;
    let min = number(config, "autoscale-min")?;
    let max = number(config, "autoscale-max")?;
    match (replicas, min, max) {
        (None, None, None) => Ok(Scale::Chart),
        (Some(count), None, None) => Ok(Scale::Fixed(count)),
        (Some(count), _, _) => Err(Bad::new(
            "replicas",
            &count.to_string(),
            "goes without autoscale-min and autoscale-max",
        )),
        (None, Some(min), Some(max)) if min <= max => Ok(Scale::Between { min, max }),
        (None, Some(min), Some(max)) => Err(Bad::new(
            "autoscale-min",
            &min.to_string(),
            format!("is more than autoscale-max {max}"),
        )),
        (None, Some(min), None) => Err(Bad::new(
            "autoscale-min",
            &min.to_string(),
            "needs autoscale-max",
        )),
        (None, None, Some(max)) => Err(Bad::new(
            "autoscale-max",
            &max.to_string(),
            "needs autoscale-min",
        )),
    }
}

/// A number; 0 counts as unset.
fn number(config: &Config, option: &'static str) -> Result<Option<u16>, Bad> {
    match config.int(option) {
        None | Some(0) => Ok(None),
        Some(count @ 1..=MOST) => Ok(u16::try_from(count).ok()),
        Some(count) => Err(Bad::allowed(
            option,
            &count.to_string(),
            &format!("1 to {MOST}, 0 for the release's own"),
        )),
    }
}
