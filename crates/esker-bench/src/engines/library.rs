//! Shared libraries found at run time, so that the build needs none of the peers.

use anyhow::{Context, Result, bail};
use libloading::Library;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    bail!("not installed: esker bench --setup, or apt-get install {package}")
}

/// Loads a library whose soname changes with each release (`librocksdb.so.7.8`): any version that
/// lies where libraries lie. `stem` is `librocksdb.so`.
pub fn load_any_version(stem: &str, package: &str) -> Result<&'static Library> {
    let mut names: Vec<String> = directories()
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().to_str()?.to_string()))
        .filter(|path| file_name(path).is_some_and(|name| name.starts_with(&format!("{stem}."))))
        .collect();
    names.sort();
    // What the search path of the system finds first, if the development package is there.
    names.insert(0, stem.to_string());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    load(&names, package)
}

fn directories() -> Vec<PathBuf> {
    let arch = std::env::consts::ARCH;
    let fixed = ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib"].map(PathBuf::from);
    let multiarch = PathBuf::from(format!("/usr/lib/{arch}-linux-gnu"));
    let asked = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&asked).chain([multiarch]).chain(fixed).collect()
}

fn file_name(path: &str) -> Option<&str> {
    Path::new(path).file_name()?.to_str()
}

/// The version in the name of the file that was loaded (`librocksdb.so.7.8.3` has 7.8.3), for
/// libraries without a function that tells.
pub fn version_of_file(stem: &str) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains(&format!("/{stem}.")))?;
    let name = file_name(&line[line.find('/')?..])?;
    Some(name.strip_prefix(stem)?.strip_prefix('.')?.to_string())
}

/// The address of a variable of a library.
pub fn variable(library: &'static Library, name: &str) -> Result<*const c_void> {
    // SAFETY: a symbol read as a pointer is its address; it is only passed on here.
    let symbol = unsafe { library.get::<*const c_void>(name) };
    Ok(*symbol.with_context(|| format!("no variable {name}"))?)
}

/// Bytes that a C library points to; it may give null for none.
///
/// # Safety
/// `len` bytes lie at `data`, and stay there for as long as the result is used.
#[inline]
pub unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, len) }
}

/// When a reader has to move on to a newer view of the store, if it has to at all.
pub struct View {
    renewed: bool,
    since: Instant,
}

impl View {
    /// As long as one may be held that has to be renewed.
    const LONGEST: Duration = Duration::from_millis(1);

    /// A view taken now.
    pub fn new(renewed: bool) -> View {
        View { renewed, since: Instant::now() }
    }

    /// Whether it is time for a newer view; if so, the time starts again.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        if !self.renewed {
            return false;
        }
        let now = Instant::now();
        if now - self.since < Self::LONGEST {
            return false;
        }
        self.since = now;
        true
    }
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
/// fills it in. Where libraries have one interface, but for a word of each one's own that its names begin with, the
/// table is `prefixed`: it has the names without that word, and `load_as` is told it.
macro_rules! c_api {
    ($(#[$doc:meta])* $vis:vis prefixed $name:ident { $(fn $f:ident($($arg:ty),* $(,)?) $(-> $ret:ty)?;)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        $vis struct $name { $(pub(super) $f: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }
        impl $name {
            pub(super) fn load_as(library: &'static libloading::Library, prefix: &str) -> anyhow::Result<Self> {
                $(
                    #[allow(non_camel_case_types)]
                    enum $f {}
                    impl $crate::engines::traced::Place for $f {
                        fn slot() -> &'static $crate::engines::traced::Slot {
                            static SLOT: $crate::engines::traced::Slot =
                                $crate::engines::traced::Slot::new();
                            &SLOT
                        }
                    }
                )*
                let name = |function: &str| format!("{prefix}{function}");
                use $crate::engines::traced::traced;
                // SAFETY: the signatures are those of the library's public header, whose ABI its
                // soname promises.
                unsafe {
                    Ok($name {
                        $($f: {
                            let name = name(stringify!($f));
                            traced::<$f, _>(*library.get(&name)?, name)
                        },)*
                    })
                }
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis $name:ident { $($functions:tt)* }) => {
        $crate::engines::library::c_api! {
            $(#[$doc])*
            $vis prefixed $name { $($functions)* }
        }
        impl $name {
            fn load(library: &'static libloading::Library) -> anyhow::Result<Self> {
                Self::load_as(library, "")
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
        assert!(error.to_string().starts_with("not installed: esker bench --setup"), "{error}");
        assert!(error.to_string().ends_with("apt-get install libnosuchstore0"), "{error}");
    }

    /// The C library of a Linux system is a case of it: `libc.so` is no library to load, or not
    /// there at all, and `libc.so.6` lies among the others.
    #[cfg(target_env = "gnu")]
    #[test]
    fn a_library_is_found_by_its_stem_and_knows_its_version() {
        super::load_any_version("libc.so", "libc6").unwrap();
        assert_eq!(super::version_of_file("libc.so").as_deref(), Some("6"));
    }
}
