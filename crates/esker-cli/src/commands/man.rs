//! `esker man`: manual pages.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;
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
        return fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(cli, dir))
            .map_err(|e| Failure::Broken(format!("write manual pages to {}: {e}", dir.display())));
    }
    let page = match &args.command {
        None => cli,
        Some(name) => cli
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::Usage(format!("there is no command {name:?}")))?,
    };
    let mut text = Vec::new();
    let mut out = Out::stdout();
    Man::new(page).render(&mut text).map_err(|e| out.failure(&e))?;
    out.bytes(&text)?;
    out.finish()
}
