//! The benchmark, a program of its own; `esker bench` starts it. Its exit codes are those of `esker`.

use clap::{Parser, Subcommand};
use esker_bench::{BenchCommand, BenchOptions};
use std::io::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  esker bench --setup                         install or build the engines that are missing
  esker bench --quick                         a first impression, in a minute or two
  esker bench --engines esker,lmdb,leveldb    all rows, five times, the median
  esker bench --rows 'read*' --entries 20m    some rows, over more entries
  esker bench --keys url --value-size 80..1000 --compression
  esker bench --suite leveldb2011 --out DIR   every table of a document; results as they come
  esker bench --file users.jsonl --key id     your own keys and values
  esker bench --json results.jsonl            the table, and a line a figure
  esker bench report results                  pictures of the results in a directory
  esker bench compare before after            what became slower or larger
  esker bench trust                           what is lost after kill -9 and damage
  esker bench audit --row readseq --engine lmdb    which calls a row times

`esker bench` starts this program: esker-bench with the same arguments does the same.
Engines that are not installed say how to get them. Every engine gets a fresh process
and directory, the same memory, keys and durability.

Exit codes: 0 done; 1 compare found a worse figure; 2 wrong usage; 3 a row failed,
Esker lost something, bad input or an I/O error.";

/// The command, hidden, under which a measuring process is started.
const CHILD: &str = "bench-child";

/// A figure is worse.
const WORSE: u8 = 1;
/// Something failed or could not be done; 2 is the parser's, for wrong usage.
const BROKEN: u8 = 3;

#[derive(Parser)]
#[command(version, about, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    options: BenchOptions,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Files(BenchCommand),
    /// Measures one engine; started by the benchmark itself.
    #[command(hide = true)]
    BenchChild {
        /// The specification, in JSON.
        spec: Vec<String>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::BenchChild { spec }) => {
            return ExitCode::from(esker_bench::child_main(spec) as u8);
        }
        Some(Command::Files(command)) => return with_results(&command),
        None => {}
    }
    match esker_bench::run_and_report(&cli.options, &[CHILD.to_string()]) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => end(BROKEN, "some rows failed; they are named in the table"),
        Err(e) => end(BROKEN, &format!("{e:#}")),
    }
}

/// Draws or compares what was measured before, or tests what engines lose.
fn with_results(command: &BenchCommand) -> ExitCode {
    let answer = match command.run(&[CHILD.to_string()]) {
        Ok(answer) => answer,
        Err(e) => return end(BROKEN, &format!("{e:#}")),
    };
    let unsaid = esker_bench::say(&answer.text).err().map(|e| format!("{e:#}"));
    let broken: Vec<String> = answer.broken.into_iter().chain(unsaid).collect();
    if !broken.is_empty() {
        return end(BROKEN, &broken.join("; "));
    }
    match answer.worse {
        0 => ExitCode::SUCCESS,
        1 => end(WORSE, "a figure is worse; it is marked above"),
        n => end(WORSE, &format!("{n} figures are worse; they are marked above")),
    }
}

/// Says why, and the exit code. Not `eprintln!`, which panics when standard error is closed.
fn end(code: u8, why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "esker-bench: {why}");
    ExitCode::from(code)
}
