//! `esker bench`: measures Esker beside other engines, and puts the figures side by side.

use std::ffi::OsString;

use crate::exit::{Failure, Outcome};
use crate::output::Out;

const EXAMPLES: &str = "\
Examples:
  esker bench --setup                         install or build the engines that are missing
  esker bench --quick                         a first impression, in a minute or two
  esker bench --engines esker,lmdb,leveldb    all rows, three times, the median
  esker bench --rows 'read*' --entries 20m    some rows, over more entries
  esker bench --keys url --value-size 80..1000 --compression
  esker bench --suite leveldb2011 --out DIR   every table of a document; results as they come
  esker bench --file users.jsonl --key id     your own keys and values
  esker bench --json results.jsonl            the table, and a line a figure
  esker bench report results                  pictures of the results in a directory
  esker bench compare before after            what became slower or larger
  esker bench trust                           what is lost after kill -9 and damage

Engines that are not installed say how to get them. Every engine gets a fresh process
and directory, the same memory, keys and durability.";

/// The first argument of a measuring process, which the benchmark starts.
pub(crate) const CHILD: &str = "bench-child";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    options: esker_bench::BenchOptions,
    #[command(subcommand)]
    command: Option<esker_bench::BenchCommand>,
}

pub(crate) fn run(args: Args) -> Outcome {
    if let Some(command) = &args.command {
        return with_results(command);
    }
    match esker_bench::run_and_report(&args.options, &[CHILD.to_string()]) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Broken("some rows failed; they are named in the table".into())),
        Err(e) => Err(Failure::Broken(format!("{e:#}"))),
    }
}

/// Draws or compares what was measured before, or tests what engines lose.
fn with_results(command: &esker_bench::BenchCommand) -> Outcome {
    let answer =
        command.run(&[CHILD.to_string()]).map_err(|e| Failure::Broken(format!("{e:#}")))?;
    let mut out = Out::stdout();
    out.bytes(answer.text.as_bytes())?;
    out.finish()?;
    if let Some(broken) = answer.broken {
        return Err(Failure::Broken(broken));
    }
    match answer.worse {
        0 => Ok(()),
        1 => Err(Failure::Worse("a figure is worse; it is marked above".into())),
        n => Err(Failure::Worse(format!("{n} figures are worse; they are marked above"))),
    }
}

/// Measures what `spec` says, in JSON.
pub(crate) fn run_child(spec: &[OsString]) -> ! {
    let spec: Vec<String> = spec.iter().map(|s| s.to_string_lossy().into_owned()).collect();
    std::process::exit(esker_bench::child_main(spec))
}
