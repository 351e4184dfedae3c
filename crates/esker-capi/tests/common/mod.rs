//! Compiling and running programs in C and C++ against the library as cargo has just built it.
#![allow(dead_code, reason = "each test uses some of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The programs of a folder below `tests`.
pub fn programs(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("tests").join(folder)).unwrap();
    let mut all: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "c" || e == "cc"));
    all.sort();
    all
}

/// Where the libraries are: beside this test's own file.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

/// How a program gets the library.
#[derive(Clone, Copy, Debug)]
pub enum Link {
    Shared,
    Static,
}

/// Lays the libraries out under the names they are installed by.
pub fn lay_out(dir: &Path) {
    let link = |from: PathBuf, to: &str| {
        assert!(from.exists(), "{} is not built", from.display());
        std::os::unix::fs::symlink(from, dir.join(to)).unwrap();
    };
    link(built().join("libesker_capi.a"), "libesker.a");
    link(built().join("libesker_capi.so"), "libesker.so.0");
    link(dir.join("libesker.so.0"), "libesker.so");
}

/// Compiles a program into `dir`, where the libraries are; gives its path.
pub fn compile(source: &Path, dir: &Path, link: Link) -> PathBuf {
    let cpp = source.extension().is_some_and(|e| e == "cc");
    let program = dir.join(source.file_stem().unwrap());
    let mut compiler = Command::new(if cpp { "c++" } else { "cc" });
    compiler.arg(if cpp { "-std=c++17" } else { "-std=c11" });
    compiler.args(["-D_POSIX_C_SOURCE=200809L", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compiler.arg("-I").arg(root().join("include")).arg(source).arg("-o").arg(&program);
    match link {
        Link::Shared => {
            let rpath = format!("-Wl,-rpath,{}", dir.display());
            compiler.arg("-L").arg(dir).args(["-lesker", "-pthread"]).arg(rpath)
        }
        Link::Static => compiler.arg(dir.join("libesker.a")).args(["-pthread", "-ldl", "-lm"]),
    };
    run(&mut compiler);
    program
}

/// Runs a command, which is to succeed; gives what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out
}
