//! `esker completions`: what a shell needs to complete commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Outcome;
use crate::output::Out;

const EXAMPLES: &str = "\
Examples:
  source <(esker completions bash)
  esker completions zsh > ~/.zfunc/_esker
  esker completions fish > ~/.config/fish/completions/esker.fish";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: Args) -> Outcome {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "esker", &mut script);
    let mut out = Out::stdout();
    out.bytes(&script)?;
    out.finish()
}
