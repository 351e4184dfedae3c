//! The libraries of other stores, found when they are needed: nothing has to be installed to build this.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::error::{Error, Result};

/// Loads the first library of these names that is there, and keeps it for good. `package` is Debian's
/// that has it.
pub(crate) fn load(store: &str, names: &[String], package: &str) -> Result<&'static Library> {
    for name in names {
        // SAFETY: what runs when a library is loaded sets up its own statics; these are released
        // libraries that the system's search path has.
        if let Ok(library) = unsafe { Library::new(name) } {
            // Functions of it are called as long as the process lives.
            return Ok(Box::leak(Box::new(library)));
        }
    }
    Err(Error::Refused(format!(
        "the library of {store} is not installed; on Debian the package {package} has it \
         (`apt-get install {package}`)"
    )))
}

/// Names of a library whose file has its version: that without one, then all there are, the newest
/// first as far as their names tell.
pub(crate) fn any_version(stem: &str) -> Vec<String> {
    let arch = std::env::consts::ARCH;
    let asked = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&asked)
        .chain([PathBuf::from(format!("/usr/lib/{arch}-linux-gnu"))])
        .chain(["/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    let entries = dirs.filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    let names = entries.filter_map(|e| {
        let is_one = e.file_name().to_str()?.strip_prefix(stem)?.starts_with('.');
        is_one.then(|| e.path().to_str().map(str::to_owned)).flatten()
    });
    let mut names: Vec<_> = names.collect();
    names.sort_by(|a, b| b.cmp(a));
    names.insert(0, stem.to_owned());
    names
}

/// A path as C has it.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    c_text("a path", path.as_os_str().as_bytes())
}

/// A name as C has it.
pub(crate) fn c_text(what: &str, text: &[u8]) -> Result<CString> {
    CString::new(text).map_err(|_| Error::Refused(format!("{what} has a byte 0 in it")))
}

/// Declares a struct of functions of a library, and its `load`.
macro_rules! functions {
    ($(#[$doc:meta])* struct $name:ident { $(fn $f:ident($($arg:ty),*) $(-> $ret:ty)?;)* }) => {
        $(#[$doc])*
        struct $name { $($f: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }

        impl $name {
            fn load(library: &'static libloading::Library) -> $crate::Result<$name> {
                let missing = |e: libloading::Error| {
                    $crate::Error::Refused(format!("a library lacks a function: {e}"))
                };
                // SAFETY: the types are those of the library's public header, which releases with
                // this name keep.
                unsafe { Ok($name { $($f: *library.get(stringify!($f)).map_err(missing)?,)* }) }
            }
        }
    };
}
pub(crate) use functions;

/// Bytes that a library points to; none where there are none, whatever the pointer.
///
/// # Safety
/// `len` bytes lie at `data`, and stay there unchanged as long as the result is used.
pub(crate) unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_says_which_package_has_it() {
        let names = ["libnosuchstore.so.0".to_string()];
        let error = load("NoSuchStore", &names, "libnosuchstore0").unwrap_err().to_string();
        assert!(error.contains("package libnosuchstore0 has it"), "{error}");
    }
}
