//! placeholder
pub fn run(_s: Option<&std::path::Path>) -> anyhow::Result<bool> {
    Ok(true)
}
