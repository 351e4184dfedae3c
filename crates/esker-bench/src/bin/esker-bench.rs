//! The benchmark as a command of its own; `esker bench` is the same.

use clap::{Parser, Subcommand};
use esker_bench::BenchOptions;
use std::process::ExitCode;

#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    options: BenchOptions,
    #[command(subcommand)]
    command: Option<Hidden>,
}

#[derive(Subcommand)]
enum Hidden {
    /// Measures one engine; started by the benchmark itself.
    #[command(hide = true)]
    BenchChild {
        /// The specification, in JSON.
        spec: Vec<String>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(Hidden::BenchChild { spec }) = cli.command {
        return ExitCode::from(esker_bench::child_main(spec) as u8);
    }
    match esker_bench::run_and_report(&cli.options, &["bench-child".to_string()]) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(e) => {
            eprintln!("esker-bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}
