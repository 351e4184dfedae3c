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
  esker man --dir /usr/local/share/man/man1      write all pages";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Command whose page to print [default: esker itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
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
    let of = match &args.command {
        None => &cli,
        Some(name) => cli
            .find_subcommand(name)
            .ok_or_else(|| Failure::Usage(format!("there is no command {name:?}")))?,
    };
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
    let man = Man::new(command.clone());
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
