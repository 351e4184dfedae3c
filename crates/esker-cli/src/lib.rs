//! The `esker` command: looks into, loads, dumps, checks and repairs Esker stores.
//!
//! A library only so that tests and fuzzers reach its parts; the binary calls [`main`]. The
//! [`commands`] are one file each. They open a store through [`store`], read and write entries in
//! the [`formats`], print through [`output`] and end in an [`exit`] code.
#![allow(rustdoc::private_intra_doc_links)]

mod args;
mod bounds;
mod cli;
mod commands;
pub mod encoding;
mod exit;
mod format;
pub mod formats;
mod human;
mod metered;
mod output;
mod progress;
mod screen;
mod store;
mod usage;
mod walk;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

/// Runs the command that `args` name (the first is the program itself).
pub fn main(args: Vec<OsString>) -> ExitCode {
    // Past the parser: `--help` and `--` are the other program's too.
    if args.get(1).is_some_and(|a| a == commands::bench::NAME) {
        return end(commands::bench::run(&args[2..]));
    }
    let cli = match cli::Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            let command = args.get(1).and_then(|a| a.to_str()).filter(|a| cli::is_command(a));
            return usage::report(&error, command);
        }
    };
    end(cli.run())
}

fn end(outcome: exit::Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
