//! demo
/// Runs the demo.
pub fn run() -> anyhow::Result<()> {
    Ok(())
}
