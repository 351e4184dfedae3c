//! What the parser says about a wrong command line, as the one line that all errors of `esker` are.

use std::io::Write;
use std::process::ExitCode;

use clap::Error;
use clap::error::ErrorKind;

use crate::exit::Failure;

/// Prints help, version or error and returns the exit code.
pub(crate) fn report(error: &Error, command: Option<&str>) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match error.print().and_then(|()| std::io::stdout().flush()) {
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                    Failure::Broken(format!("write standard output: {e}")).report()
                }
                // Of a reader that went away too.
                _ => ExitCode::SUCCESS,
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => Failure::Usage(one_line(&error.render().to_string(), command)).report(),
    }
}

/// The parser's text is several paragraphs: the error, tips, the usage and where help is. Keeps
/// error and tips.
fn one_line(text: &str, command: Option<&str>) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let paragraphs = text
        .split("\n\n")
        .take_while(|p| !p.starts_with("Usage:") && !p.starts_with("For more information"))
        .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut line = paragraphs.collect::<Vec<_>>().join("; ");
    let command = command.map(|name| format!("{name} ")).unwrap_or_default();
    line.push_str(&format!("; see `esker {command}--help`"));
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn said(args: &[&str]) -> String {
        let error = Cli::try_parse_from(args).unwrap_err();
        one_line(&error.render().to_string(), args.get(1).copied())
    }

    #[test]
    fn errors_of_the_parser_are_one_line() {
        let unknown = said(&["esker", "get", "db", "k", "--hexx"]);
        assert!(unknown.starts_with("unexpected argument '--hexx' found; tip: "), "{unknown}");
        assert!(unknown.ends_with("; see `esker get --help`"), "{unknown}");
        assert_eq!(
            said(&["esker", "get"]),
            "the following required arguments were not provided: <DB> <KEY>; see `esker get --help`"
        );
        for args in [&["esker", "frobnicate"][..], &["esker", "load", "db", "--format", "xml"]] {
            assert_eq!(said(args).lines().count(), 1);
        }
    }
}
