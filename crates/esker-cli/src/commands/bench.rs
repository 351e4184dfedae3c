//! `esker bench`: measures Esker beside other engines, and puts the figures side by side.

use crate::exit::{Failure, Outcome};

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

Engines that are not installed say how to get them. Every engine gets a fresh process
and directory, the same memory, keys and durability.";

/// The command, hidden, under which a measuring process is started.
const CHILD: &str = "bench-child";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    options: esker_bench::BenchOptions,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChildArgs {
    /// What to measure, in JSON.
    spec: Vec<String>,
}

pub(crate) fn run(args: Args) -> Outcome {
    match esker_bench::run_and_report(&args.options, &[CHILD.to_string()]) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Broken("some rows failed; they are named in the table".into())),
        Err(e) => Err(Failure::Broken(format!("{e:#}"))),
    }
}

pub(crate) fn run_child(args: ChildArgs) -> Outcome {
    std::process::exit(esker_bench::child_main(args.spec))
}
