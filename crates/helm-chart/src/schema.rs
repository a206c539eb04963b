//! Validation of values against `values.schema.json`, as Helm 4 does before it renders.
//!
//! References to other documents are not followed: nothing is fetched. Patterns are matched by a linear engine, as in Go.

use crate::chart::Chart;
use crate::error::RenderError;
use serde_json::{Map, Value};

/// Checks a chart and the subcharts that will be rendered.
pub(crate) fn validate(
    chart: &Chart,
    values: &Map<String, Value>,
    enabled: &dyn Fn(&Chart) -> bool,
) -> Result<(), RenderError> {
    if let Some(schema) = &chart.schema {
        let validator = jsonschema::options()
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(schema)
            .map_err(|e| RenderError::BadSchema {
                chart: chart.name.clone(),
                message: e.to_string(),
            })?;
        let problems: Vec<String> = validator
            .iter_errors(&Value::Object(values.clone()))
            .map(|error| {
                let at = error.instance_path().to_string();
                format!("at '{at}': {}", error.masked())
            })
            .collect();
        if !problems.is_empty() {
            return Err(RenderError::Schema {
                chart: chart.name.clone(),
                problems,
            });
        }
    }
    for subchart in chart.subcharts.iter().filter(|s| enabled(&s.chart)) {
        if let Some(Value::Object(values)) = values.get(&subchart.chart.name) {
            validate(&subchart.chart, values, enabled)?;
        }
    }
    Ok(())
}
