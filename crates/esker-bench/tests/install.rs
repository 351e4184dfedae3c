//! The script that installs the command and the C library, with programs in the place of those that
//! build.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What the script takes of the rest of the sources.
const SETUP: &str = "need_build_tools() { :; }\nneed_leveldb() { return 1; }\nnote() { :; }\n\
                     target_dir() { echo \"$PWD/target\"; }\n";

fn write(at: &Path, text: &str) {
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::fs::write(at, text).unwrap();
}

/// Sources as the script finds them, all built.
fn sources(at: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::create_dir_all(at.join("scripts")).unwrap();
    std::fs::copy(root.join("scripts/install.sh"), at.join("scripts/install.sh")).unwrap();
    write(&at.join("scripts/setup.sh"), SETUP);
    write(&at.join("Cargo.toml"), "version = \"1.2.3\"\n");
    write(&at.join("crates/esker-capi/packaging/esker.pc.in"), "prefix=@PREFIX@\n");
    for name in ["include/esker.h", "include/esker.hpp"] {
        write(&at.join("crates/esker-capi").join(name), "");
    }
    for name in ["libesker_capi.a", "libesker_capi.so"] {
        write(&at.join("target/release").join(name), "");
    }
    write(&at.join("target/release/esker"), "#!/bin/sh\n");
    for name in ["target/release/esker", "programs/cargo", "programs/strip"] {
        write(&at.join(name), "#!/bin/sh\n");
        std::fs::set_permissions(at.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Installs, called from `caller`.
fn install(sources: &Path, caller: &Path, prefix: &str, destdir: Option<&str>) {
    install_with_umask("022", sources, caller, prefix, destdir);
}

fn install_with_umask(
    umask: &str,
    sources: &Path,
    caller: &Path,
    prefix: &str,
    destdir: Option<&str>,
) {
    std::fs::create_dir_all(caller).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command
        .args(["-c", "umask \"$1\"; shift; exec bash \"$@\"", "bash", umask])
        .arg(sources.join("scripts/install.sh"))
        .arg(prefix)
        .current_dir(caller)
        .env("PATH", format!("{}:{path}", sources.join("programs").display()))
        .env_remove("DESTDIR")
        .env_remove("ESKER_LIBDIR");
    if let Some(destdir) = destdir {
        command.env("DESTDIR", destdir);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn relative_places_are_where_the_caller_is() {
    let dir = tempfile::tempdir().unwrap();
    let (checkout, caller) = (dir.path().join("checkout"), dir.path().join("caller"));
    sources(&checkout);
    let prefix_in = |root: &Path, below: &str| {
        let pc = root.join(below).join("lib/pkgconfig/esker.pc");
        std::fs::read_to_string(&pc).unwrap_or_else(|e| panic!("{}: {e}", pc.display()))
    };

    install(&checkout, &caller, "/usr", Some("a root"));
    assert_eq!(prefix_in(&caller, "a root/usr"), "prefix=/usr\n");
    let absolute = dir.path().join("absolute");
    install(&checkout, &caller, "/usr", absolute.to_str());
    assert_eq!(prefix_in(&absolute, "usr"), "prefix=/usr\n");
    // Nothing and an empty word are the same.
    for (prefix, destdir) in [("mine", None), ("../caller/other", Some(""))] {
        install(&checkout, &caller, prefix, destdir);
        let wanted = caller.join(prefix.rsplit('/').next().unwrap());
        assert_eq!(prefix_in(&caller, prefix), format!("prefix={}\n", wanted.display()));
    }

    let mut left: Vec<_> =
        std::fs::read_dir(&checkout).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["Cargo.toml", "crates", "programs", "scripts", "target"], "as it was");
}

/// Files that are written and not installed had what the umask leaves: root's are often 077.
#[test]
fn a_strict_umask_kept_what_was_installed_from_others() {
    let dir = tempfile::tempdir().unwrap();
    let (checkout, prefix) = (dir.path().join("checkout"), dir.path().join("prefix"));
    sources(&checkout);
    install_with_umask("077", &checkout, dir.path(), prefix.to_str().unwrap(), None);
    let mut open = vec![prefix];
    while let Some(at) = open.pop() {
        let metadata = std::fs::symlink_metadata(&at).unwrap();
        if metadata.is_symlink() {
            continue;
        }
        let mode = metadata.permissions().mode();
        assert_eq!(mode & 0o044, 0o044, "{} has mode {mode:o}", at.display());
        if metadata.is_dir() {
            open.extend(std::fs::read_dir(&at).unwrap().map(|e| e.unwrap().path()));
        }
    }
}
