//! Running other programs, whose output is shown only when they fail.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Lines of a failed program's output that are told.
const LINES: usize = 12;

/// Runs a program to its end; what it printed on standard output. Nothing can be asked: standard
/// input is empty.
pub fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    run_as(&name, command)
}

/// [`run`] of a program called `name` that another one starts.
pub fn run_as(name: &str, command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {name}: is it installed?"))?;
    if !output.status.success() {
        let mut told = output.stdout;
        told.extend_from_slice(&output.stderr);
        let told = String::from_utf8_lossy(&told).into_owned();
        let lines: Vec<&str> = told.lines().filter(|line| !line.trim().is_empty()).collect();
        let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
        bail!("{name} failed ({}):\n{end}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where a program is on the path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_the_end_of_what_was_printed() {
        let mut shell = Command::new("sh");
        let error = run(shell.args(["-c", "seq 100; echo no disk >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.ends_with("100\nno disk") && !text.contains("\n50\n"), "{text}");
        assert!(text.contains("exit status: 3"), "{text}");
        let missing = run(&mut Command::new("no-such-program")).unwrap_err();
        assert!(missing.to_string().contains("is it installed?"));
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(find("sh").is_some() && find("no-such-program").is_none());
    }
}
