//! `precheck`: everything that is known about the upgrade that is due, or would be.

use std::fmt::Write as _;

use juju_charm::{ActionOutcome, ModelView, Problem};
use mesh::upgrade::Finding;

use super::{failed, results};
use crate::observe::View;
use crate::upgrade::checks;

/// Answers `precheck`.
pub(super) fn answer(
    view: &ModelView,
    cluster: &View,
    problems: &[Problem],
    json: bool,
) -> ActionOutcome {
    let (Some(Ok(release)), Some(target)) = (&cluster.release, &cluster.target) else {
        let why = problems
            .first()
            .map_or("there is no release to check", |p| p.message.as_str());
        return failed(format!("nothing can be checked: {why}"));
    };
    let findings = checks::findings(view, cluster, target, release);
    let blocking = findings.iter().filter(|finding| finding.blocks()).count();
    let text = if json {
        serde_json::to_string_pretty(&findings).unwrap_or_default()
    } else {
        text(&findings)
    };
    let from = target.follows.clone().unwrap_or_else(|| "none".to_owned());
    let mut all = vec![
        ("findings", text),
        ("count", findings.len().to_string()),
        ("blocking", blocking.to_string()),
        ("from", from),
        ("to", release.version.clone()),
        ("revision", target.revision.to_string()),
    ];
    let others: Vec<String> = problems.iter().map(ToString::to_string).collect();
    if !others.is_empty() {
        all.push(("problems", others.join("\n")));
    }
    results(all)
}

/// The findings as a table: what, and below it why and what mends it.
fn text(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "nothing stands in the way".to_owned();
    }
    let rows: Vec<[String; 2]> = findings
        .iter()
        .map(|f| {
            [
                format!("{:?}", f.severity).to_uppercase(),
                f.code.to_string(),
            ]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let indent = " ".repeat(first + 2);
    let mut out = String::new();
    for (row, finding) in rows.iter().zip(findings) {
        let _ = writeln!(
            out,
            "{:first$}  {:second$}  {}",
            row[0], row[1], finding.object
        );
        let _ = writeln!(out, "{indent}{}", finding.why);
        if !finding.mend.is_empty() {
            let _ = writeln!(out, "{indent}mend: {}", finding.mend);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use mesh::upgrade::Code;

    #[test]
    fn a_finding_has_its_reason_and_its_command() {
        let findings = [
            Finding::error(Code::MinorsSkipped, "Istio 1.26.0 to 1.30.3", "too far")
                .mended_by("juju attach-resource meshy x"),
            Finding::info(Code::ServedVersion, "CustomResourceDefinition a", "old"),
        ];
        assert_eq!(
            text(&findings),
            "ERROR  minors-skipped  Istio 1.26.0 to 1.30.3\n\
             \x20      too far\n\
             \x20      mend: juju attach-resource meshy x\n\
             INFO   served-version  CustomResourceDefinition a\n\
             \x20      old"
        );
        assert_eq!(text(&[]), "nothing stands in the way");
    }
}
