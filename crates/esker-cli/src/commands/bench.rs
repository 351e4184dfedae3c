//! `esker bench`: hands its arguments to the benchmark crate.

use std::ffi::OsString;

use crate::exit::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of the benchmark
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Outcome {
    let _ = args.args;
    Err(Failure::Usage("this build has no benchmarks built in".into()))
}
