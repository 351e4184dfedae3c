//! `esker man`: manual pages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};
use crate::output::Out;

const EXAMPLES: &str = "\
Examples:
  esker man | man -l -                   read the page of esker
  esker man load | man -l -              read the page of a command
  esker man keyspaces create | man -l -  read the page of a part of it
  esker man --dir /usr/local/share/man/man1      write all pages";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Command whose page to print [default: esker itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Outcome {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    if let Some(dir) = &args.dir {
        return write_pages(&cli, dir)
            .map_err(|e| Failure::Broken(format!("write manual pages to {}: {e}", dir.display())));
    }
    let mut of = &cli;
    for name in &args.command {
        of = of
            .find_subcommand(name)
            .ok_or_else(|| Failure::Usage(format!("there is no command {name:?}")))?;
    }
    let mut out = Out::stdout();
    let (_, text) = page(of).map_err(|e| out.failure(&e))?;
    out.bytes(text.as_bytes())?;
    out.finish()
}

/// The pages of a command and of all below it.
fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let (file_name, text) = page(command)?;
    fs::write(dir.join(file_name), text)?;
    command.get_subcommands().try_for_each(|sub| write_pages(sub, dir))
}

/// File name and text of a page. The generator calls what stands below the options "extra" and
/// fills it like prose, which would join examples to paragraphs.
fn page(command: &Command) -> io::Result<(String, String)> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let source = format!("esker {}", env!("CARGO_PKG_VERSION"));
    let mut command = command.clone();
    // The generator knows nothing of what stands before a part of a command, such as the store.
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    if !command.get_bin_name().is_some_and(|name| usage.starts_with(name)) {
        command = command.override_usage(usage);
    }
    let man = Man::new(command).title(&name).source(source).manual("Esker Manual");
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let text = match text.split_once(".SH EXTRA\n") {
        Some((options, rest)) => {
            let (extra, rest) = rest.split_once("\n.SH ").map_or((rest, ""), |(e, r)| (e, r));
            let rest = if rest.is_empty() { String::new() } else { format!("\n.SH {rest}") };
            format!("{options}.SH EXAMPLES AND NOTES\n.nf\n{}\n.fi{rest}", extra.trim_end())
        }
        None => text.into_owned(),
    };
    Ok((man.get_filename(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let mut cli = Cli::command();
        cli.build();
        for command in [&cli, cli.find_subcommand("get").unwrap()] {
            let (name, text) = page(command).unwrap();
            assert!(name == "esker.1" || name == "esker-get.1", "{name}");
            let (_, extra) = text.split_once(".SH EXAMPLES AND NOTES\n.nf\nExamples:\n").unwrap();
            assert!(extra.contains("\n.fi"), "{text}");
        }
        assert!(page(&cli).unwrap().1.contains(".SH VERSION\n"));
    }
}
