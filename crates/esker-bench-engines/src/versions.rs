//! The versions of the crates that this was built with.

use anyhow::{Context, Result};

/// The version of a package, as the lock file that this was built with has it.
pub fn of(package: &str) -> Result<String> {
    let lock = include_str!("../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
    let (version, _) = version.with_context(|| format!("{package} is not in Cargo.lock"))?;
    Ok(version.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_version_is_found_and_a_stranger_is_not() {
        assert!(super::of("redb").unwrap().starts_with("4."));
        assert!(super::of("no-such-store").is_err());
    }
}
