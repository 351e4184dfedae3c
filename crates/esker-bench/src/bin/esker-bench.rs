//! The benchmark as a command of its own; `esker bench` is the same.

use clap::{Parser, Subcommand};
use esker_bench::{BenchCommand, BenchOptions};
use std::io::Write;
use std::process::ExitCode;

/// The command, hidden, under which a measuring process is started.
const CHILD: &str = "bench-child";

#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
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
        Ok(false) => ExitCode::from(2),
        Err(e) => {
            eprintln!("esker-bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Draws or compares; 1 when something is worse.
fn with_results(command: &BenchCommand) -> ExitCode {
    match command.run(&[CHILD.to_string()]) {
        Ok(answer) => {
            // Whoever reads may have seen enough and gone.
            let _ = std::io::stdout().write_all(answer.text.as_bytes());
            if let Some(broken) = answer.broken {
                eprintln!("esker-bench: {broken}");
                return ExitCode::from(3);
            }
            ExitCode::from(u8::from(answer.worse > 0))
        }
        Err(e) => {
            eprintln!("esker-bench: {e:#}");
            ExitCode::from(3)
        }
    }
}
