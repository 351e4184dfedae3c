//! Shared libraries found at run time, so that the build needs none of the peers.

use anyhow::{Result, bail};
use libloading::Library;
use std::path::Path;

/// Loads the first of `names` that is there and leaves it loaded for good; otherwise says how to
/// install it.
pub fn load(names: &[&str], package: &str) -> Result<&'static Library> {
    for name in names {
        // SAFETY: loading runs the library's initialisers; these are released C and C++ libraries,
        // whose initialisers set up their own statics only.
        if let Ok(library) = unsafe { Library::new(*name) } {
            // A function pointer taken from it must stay valid until the process ends.
            return Ok(Box::leak(Box::new(library)));
        }
    }
    bail!("not installed: apt-get install {package}")
}

/// Loads a library that `--setup` built.
pub fn load_built(path: &Path) -> Result<&'static Library> {
    if !path.is_file() {
        bail!("not installed: esker bench --setup");
    }
    // SAFETY: as in `load`. Symbols stay local to the library, so that forks of one library can be
    // loaded beside each other.
    match unsafe { Library::new(path) } {
        Ok(library) => Ok(Box::leak(Box::new(library))),
        Err(e) => bail!("cannot load {}: {e}; esker bench --setup builds it", path.display()),
    }
}

/// A table of a C library's functions: declares a struct of function pointers and a `load` that
/// fills it in.
macro_rules! c_api {
    ($(#[$doc:meta])* $vis:vis $name:ident { $(fn $f:ident($($arg:ty),* $(,)?) $(-> $ret:ty)?;)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        $vis struct $name { $($f: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl $name {
            fn load(library: &'static libloading::Library) -> anyhow::Result<Self> {
                // SAFETY: the signatures are those of the library's public header, whose ABI its
                // soname promises.
                unsafe { Ok($name { $($f: *library.get(stringify!($f))?,)* }) }
            }
        }
    };
}
pub(crate) use c_api;

#[cfg(test)]
mod tests {
    #[test]
    fn a_missing_library_says_how_to_get_it() {
        let error = super::load(&["libnosuchstore.so.0"], "libnosuchstore0").unwrap_err();
        assert_eq!(error.to_string(), "not installed: apt-get install libnosuchstore0");
    }
}
