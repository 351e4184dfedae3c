//! The `esker` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    esker_cli::main(std::env::args_os().collect())
}
