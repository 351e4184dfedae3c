//! The header is what the functions say: it is made anew, and compared with the committed one.

use std::fs;
use std::path::Path;

/// What stands above all functions.
const HEAD: &str = include_str!("header/head.txt");

fn generated() -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(dir.join("cbindgen.toml")).unwrap();
    config.header = Some(HEAD.trim_end().to_string());
    let mut out = Vec::new();
    cbindgen::generate_with_config(dir, config).unwrap().write(&mut out);
    String::from_utf8(out).unwrap()
}

/// `ESKER_REWRITE=1` writes it.
#[test]
fn the_header_is_made_from_the_functions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/esker.h");
    let made = generated();
    if std::env::var_os("ESKER_REWRITE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(made == committed, "{} is not what ESKER_REWRITE=1 makes of src", path.display());
}
