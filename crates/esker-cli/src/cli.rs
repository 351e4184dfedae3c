//! The one definition of all commands and flags: parser, help, completions and manual pages come
//! from here.

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands as c;
use crate::exit::Outcome;

const AFTER: &str = "\
Examples:
  esker put ./db colour blue --create    a store is made when it is asked for
  esker get ./db colour
  esker load ./db data.tsv
  esker scan ./db --prefix user: --limit 10
  esker load --help                      every command has examples

Exit codes: 0 done; 1 get found no such key, or bench compare a worse figure; 2 wrong usage;
3 damage, bad input or an I/O error; 4 repair lost something, or could not check it.";

/// Look into, load, dump, check and repair Esker stores
///
/// Esker is an embedded, ordered key-value store; a store is a directory. Commands that only read
/// open it read-only and change nothing in it but for the file LOCK, which they make if it is missing.
#[derive(Debug, Parser)]
#[command(name = "esker", version, after_help = AFTER, arg_required_else_help = true)]
#[command(max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Store a value under a key
    Put(c::put::Args),
    /// Print the value of a key
    Get(c::get::Args),
    /// Remove keys
    Del(c::del::Args),
    /// Print the entries of a range, in order
    Scan(c::scan::Args),
    /// Load entries from TSV, CSV, JSON Lines, binary or dumps of LMDB
    Load(c::load::Args),
    /// Write entries as TSV, CSV, JSON Lines, binary or dumps of LMDB
    Dump(c::dump::Args),
    /// Bring in the database of another store
    Import(c::import::Args),
    /// Write a keyspace as the database of another store
    Export(c::export::Args),
    /// Count entries
    Count(c::count::Args),
    /// Show the shape of a store
    Stats(c::stats::Args),
    /// Check a whole store for damage
    Verify(c::verify::Args),
    /// Save what is intact of a damaged store
    Repair(c::repair::Args),
    /// Merge what is stored and get space back
    Compact(c::compact::Args),
    /// Copy a store as it is now
    Checkpoint(c::checkpoint::Args),
    /// List, make and drop keyspaces
    Keyspaces(c::keyspaces::Args),
    /// Measure Esker beside other engines, by the program esker-bench
    ///
    /// The benchmark is a program of its own, esker-bench, which this starts with the same arguments.
    /// Its flags are in `esker-bench --help`, which is `esker bench --help`.
    Bench(c::bench::Args),
    /// Print a script that completes commands and flags in a shell
    Completions(c::completions::Args),
    /// Print or write manual pages
    Man(c::man::Args),
}

/// Whether there is a command of this name.
pub(crate) fn is_command(name: &str) -> bool {
    Cli::command().find_subcommand(name).is_some()
}

impl Cli {
    pub fn run(self) -> Outcome {
        match self.command {
            Command::Put(args) => c::put::run(args),
            Command::Get(args) => c::get::run(args),
            Command::Del(args) => c::del::run(args),
            Command::Scan(args) => c::scan::run(args),
            Command::Load(args) => c::load::run(args),
            Command::Dump(args) => c::dump::run(args),
            Command::Import(args) => c::import::run(args),
            Command::Export(args) => c::export::run(args),
            Command::Count(args) => c::count::run(args),
            Command::Stats(args) => c::stats::run(args),
            Command::Verify(args) => c::verify::run(args),
            Command::Repair(args) => c::repair::run(args),
            Command::Compact(args) => c::compact::run(args),
            Command::Checkpoint(args) => c::checkpoint::run(args),
            Command::Keyspaces(args) => c::keyspaces::run(args),
            Command::Bench(args) => c::bench::run(&args.args),
            Command::Completions(args) => c::completions::run(args),
            Command::Man(args) => c::man::run(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_help_line_and_examples() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no help line");
            assert!(!command.is_hide_set(), "{name} would be in pages and completions");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains(&format!("esker {name}")), "{name} has no example");
            let long = after.lines().find(|line| line.chars().count() > 100);
            assert_eq!(long, None, "{name}: a line of help that would be broken");
        }
    }
}
