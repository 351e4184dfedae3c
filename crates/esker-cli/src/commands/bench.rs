//! `esker bench`: starts the benchmark, which is a program of its own. It and what it measures with
//! are several times as large as this command, and few who build the command want to wait for it.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exit::{Failure, Outcome};

const EXAMPLES: &str = "\
Examples:
  esker bench --help                          all of its flags, and more examples
  esker bench --setup                         install or build the engines that are missing
  esker bench --quick                         a first impression, in a minute or two
  esker bench --suite leveldb2011 --out DIR   every table of a document; results as they come
  esker bench report results                  pictures of the results in a directory
  esker bench compare before after            what became slower or larger
  esker bench trust                           what is lost after kill -9 and damage

The program is looked for beside this command and on PATH. In Esker's sources,
`cargo install --path crates/esker-bench` installs it.";

/// The name of the command, and of the program.
pub(crate) const NAME: &str = "bench";
const PROGRAM: &str = "esker-bench";

/// For help, pages and completions; what the arguments mean is the program's business, so
/// [`crate::main`] hands them on before the parser sees them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments of esker-bench
    #[arg(value_name = "ARGS", allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) args: Vec<OsString>,
}

/// Becomes the program, so that its signals, its streams and its exit code are its own.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let here = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_path_buf()));
    let Some(program) = find(here.as_deref()) else {
        let here = here.map_or("the directory of this command".into(), |h| h.display().to_string());
        return Err(Failure::Usage(format!(
            "the benchmark is a program of its own, and {PROGRAM} is neither in {here} nor on PATH; \
             in Esker's sources, `cargo install --path crates/esker-bench` installs it and \
             `cargo build --release -p esker-bench` puts it beside an esker that was built there"
        )));
    };
    let error = Command::new(&program).args(args).exec();
    Err(Failure::Broken(format!("cannot start {}: {error}", program.display())))
}

/// The one beside this command fits it best: they were installed together.
fn find(here: Option<&Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = here.map(Path::to_path_buf).into_iter().chain(env::split_paths(&path));
    places.map(|dir| dir.join(PROGRAM)).find(|program| may_run(program))
}

fn may_run(program: &Path) -> bool {
    program.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
