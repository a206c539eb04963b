//! What a render costs, beside the programs that do the same. The figures are printed, not asserted: they depend on the
//! machine.

use anyhow::Result;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the measuring program builds what it lacks, so it needs the whole environment"
)]
fn the_time_of_a_render_is_told_beside_helm_and_istioctl() -> Result<()> {
    let program = env!("CARGO_BIN_EXE_render-ratio");
    let output = std::process::Command::new(program).output()?;
    let figures = String::from_utf8(output.stdout)?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for judge in ["helm template", "istioctl manifest generate"] {
        assert!(figures.contains(judge), "no {judge} in {figures}");
    }
    testbed::tell(figures.trim_end());
    Ok(())
}
