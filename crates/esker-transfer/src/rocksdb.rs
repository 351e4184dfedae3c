//! RocksDB databases, by its library.
//!
//! Opened read-only, with the lock held that keeps other programs out, and the library's own log of
//! messages in a directory that is removed. Checksums are checked by the library.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use rustix::fs::OFlags;
use tempfile::TempDir;

use crate::error::{Error, Report, Result};
use crate::kind::{Kind, kind_of};
use crate::leveldb::hold_lock;
use crate::library::{self, bytes, c_path, c_text, functions};
use crate::peer::{Ascending, Opened, Walk};

type Handle = *mut c_void;
type Text = *mut c_char;

functions! {
    /// The part of `rocksdb/c.h` used here.
    struct Api {
        fn rocksdb_free(*mut c_void);
        fn rocksdb_options_create() -> Handle;
        fn rocksdb_options_destroy(Handle);
        fn rocksdb_options_set_db_log_dir(Handle, *const c_char);
        fn rocksdb_options_set_max_open_files(Handle, c_int);
        fn rocksdb_options_set_wal_recovery_mode(Handle, c_int);
        fn rocksdb_list_column_families(Handle, *const c_char, *mut usize, *mut Text) -> *mut Text;
        fn rocksdb_list_column_families_destroy(*mut Text, usize);
        fn rocksdb_open_for_read_only_column_families(
            Handle, *const c_char, c_int, *const *const c_char, *const Handle, *mut Handle, c_uchar,
            *mut Text) -> Handle;
        fn rocksdb_column_family_handle_destroy(Handle);
        fn rocksdb_close(Handle);
        fn rocksdb_property_value_cf(Handle, Handle, *const c_char) -> Text;
        fn rocksdb_readoptions_create() -> Handle;
        fn rocksdb_readoptions_destroy(Handle);
        fn rocksdb_readoptions_set_verify_checksums(Handle, c_uchar);
        fn rocksdb_readoptions_set_fill_cache(Handle, c_uchar);
        fn rocksdb_create_iterator_cf(Handle, Handle, Handle) -> Handle;
        fn rocksdb_iter_destroy(Handle);
        fn rocksdb_iter_seek_to_first(Handle);
        fn rocksdb_iter_valid(Handle) -> c_uchar;
        fn rocksdb_iter_next(Handle);
        fn rocksdb_iter_key(Handle, *mut usize) -> *const u8;
        fn rocksdb_iter_value(Handle, *mut usize) -> *const u8;
        fn rocksdb_iter_get_error(Handle, *mut Text);
    }
}

/// The column family that every database has.
const DEFAULT: &str = "default";
/// Tables that are open at once; there may be more than a process may open files.
const OPEN_FILES: c_int = 400;

/// `kTolerateCorruptedTailRecords`: a log that a crash cut off is read to there, damage elsewhere is an error. By default
/// the library takes what is before the damage for all there is.
const TORN_ENDS_ONLY: c_int = 0;

fn api() -> Result<&'static Api> {
    static API: OnceLock<Api> = OnceLock::new();
    if let Some(api) = API.get() {
        return Ok(api);
    }
    let names = library::any_version("librocksdb.so");
    let api = Api::load(library::load("RocksDB", &names, "librocksdb-dev")?)?;
    Ok(API.get_or_init(|| api))
}

/// A database with what it needs; what was not made yet is null.
struct Reader {
    api: &'static Api,
    path: PathBuf,
    options: Handle,
    read: Handle,
    db: Handle,
    family: Handle,
    iter: Handle,
    begun: bool,
    _lock: Option<std::fs::File>,
    _messages: TempDir,
}

impl Drop for Reader {
    fn drop(&mut self) {
        let api = self.api;
        let close = |handle: Handle, how: unsafe extern "C" fn(Handle)| {
            if !handle.is_null() {
                // SAFETY: it was made by the library, and is closed once.
                unsafe { how(handle) }
            }
        };
        // What uses another goes before it.
        close(self.iter, api.rocksdb_iter_destroy);
        close(self.family, api.rocksdb_column_family_handle_destroy);
        close(self.db, api.rocksdb_close);
        close(self.read, api.rocksdb_readoptions_destroy);
        close(self.options, api.rocksdb_options_destroy);
    }
}

/// Opens the column family `db`, or `default`, of the database in `path`. `scratch` is a directory for
/// what the library has to say.
pub fn open(path: &Path, db: Option<&str>, scratch: &Path) -> Result<Opened> {
    match kind_of(path) {
        // Early ones look as LevelDB's do.
        Some(Kind::RocksDb | Kind::LevelDb) => {}
        Some(kind) => return Err(Error::Refused(format!("{} is {kind}", path.display()))),
        None => {
            return Err(Error::Refused(format!("{} is no RocksDB database", path.display())));
        }
    }
    let current = path.join("CURRENT");
    if current.exists() {
        regular(&current)?;
    }
    check_log_dir(path)?;
    let mut reader = Reader::new(path, scratch)?;
    let c_path = c_path(path)?;
    let families = reader.families(&c_path)?;
    let name = db.unwrap_or(DEFAULT);
    if !families.iter().any(|f| f == name) {
        return Err(Error::Refused(format!(
            "{} has no column family {name:?}; there are: {}",
            path.display(),
            families.join(", ")
        )));
    }
    reader.open(&c_path, name)?;
    let mut report = Report::default();
    let others: Vec<_> = families.iter().filter(|f| *f != name).cloned().collect();
    if !others.is_empty() && db.is_none() {
        report.note(format!(
            "only the column family {name} is read; --db NAME reads another: {}",
            others.join(", ")
        ));
    }
    let total = reader.estimate();
    let entries = Ascending::entries(reader, path.display().to_string());
    Ok(Opened { entries, total, report })
}

/// A file of options has some kilobytes for each column family.
const OPTIONS_MOST: u64 = 64 << 20;

/// Opens a file that is one: whoever read a pipe of its name would wait, and a device has no end.
fn regular(path: &Path) -> Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(Error::io("open", path))?;
    match file.metadata().map_err(Error::io("look at", path))?.is_file() {
        true => Ok(file),
        false => Err(Error::Refused(format!("{} is no file; move it away", path.display()))),
    }
}

/// Refuses a database whose log is in another directory: what was not flushed would be left out, in silence.
fn check_log_dir(path: &Path) -> Result<()> {
    let list = || std::fs::read_dir(path).map_err(Error::io("list", path));
    let mut newest: Option<(u64, PathBuf)> = None;
    for entry in list()? {
        let entry = entry.map_err(Error::io("list", path))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".log") {
            return Ok(());
        }
        let number = name.strip_prefix("OPTIONS-").and_then(|n| n.parse().ok());
        if let Some(number) = number.filter(|n| newest.as_ref().is_none_or(|(m, _)| m < n)) {
            newest = Some((number, entry.path()));
        }
    }
    let Some((_, options)) = newest else { return Ok(()) };
    let options_file = regular(&options)?;
    let mut bytes = Vec::new();
    options_file.take(OPTIONS_MOST).read_to_end(&mut bytes).map_err(Error::io("read", &options))?;
    let text = String::from_utf8_lossy(&bytes);
    let named = text.lines().find_map(|l| l.trim().strip_prefix("wal_dir="));
    let elsewhere = |dir: &&str| {
        let real = |path: &Path| path.canonicalize().ok();
        !dir.is_empty() && real(Path::new(dir)).is_none_or(|dir| Some(dir) != real(path))
    };
    match named.filter(elsewhere) {
        Some(dir) => Err(Error::Refused(format!(
            "{} has its log in {dir}, where what was not flushed is; copy the *.log files from there \
             into it (an empty 000001.log where there are none), and import it then",
            path.display()
        ))),
        None => Ok(()),
    }
}

impl Reader {
    fn new(path: &Path, scratch: &Path) -> Result<Reader> {
        let api = api()?;
        let lock = hold_lock(path)?;
        let messages = tempfile::tempdir_in(scratch)
            .map_err(Error::io("make a temporary directory in", scratch))?;
        let dir = c_path(messages.path())?;
        // SAFETY: handles are made here and destroyed by `drop`; the text ends with 0.
        let (options, read) = unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_db_log_dir)(options, dir.as_ptr());
            (api.rocksdb_options_set_max_open_files)(options, OPEN_FILES);
            (api.rocksdb_options_set_wal_recovery_mode)(options, TORN_ENDS_ONLY);
            let read = (api.rocksdb_readoptions_create)();
            (api.rocksdb_readoptions_set_verify_checksums)(read, 1);
            (api.rocksdb_readoptions_set_fill_cache)(read, 0);
            (options, read)
        };
        let (db, family, iter) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let path = path.to_owned();
        let (begun, _lock, _messages) = (false, lock, messages);
        Ok(Reader { api, path, options, read, db, family, iter, begun, _lock, _messages })
    }

    fn check(&self, error: Text) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the library set it to a text of its own allocation, which is freed once.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.api.rocksdb_free)(error.cast());
            text
        };
        let hint = match () {
            () if text.contains("omparator") => {
                "; its keys are in an order of the program that made it, not in that of their bytes"
            }
            () if text.contains("erge operator") || text.contains("merge_operator") => {
                "; it has entries that only the merge operator of its program puts together: \
                 compact it there first"
            }
            () => "",
        };
        Err(Error::Refused(format!("{}: {text}{hint}", self.path.display())))
    }

    fn families(&self, path: &CStr) -> Result<Vec<String>> {
        let (mut len, mut error) = (0, ptr::null_mut());
        // SAFETY: options are open and the path ends with 0; the list is freed by its own function.
        unsafe {
            let list = (self.api.rocksdb_list_column_families)(
                self.options,
                path.as_ptr(),
                &mut len,
                &mut error,
            );
            self.check(error)?;
            let text = |at| CStr::from_ptr(*list.add(at)).to_string_lossy().into_owned();
            let names = (0..len).map(text).collect();
            (self.api.rocksdb_list_column_families_destroy)(list, len);
            Ok(names)
        }
    }

    fn open(&mut self, path: &CStr, family: &str) -> Result<()> {
        let api = self.api;
        let name = c_text("a name", family.as_bytes())?;
        let default = c_text("a name", DEFAULT.as_bytes())?;
        // The default one has to be among those that are opened.
        let names = [name.as_ptr(), default.as_ptr()];
        let count = if family == DEFAULT { 1 } else { 2 };
        let options = [self.options; 2];
        let mut handles = [ptr::null_mut(); 2];
        let mut error = ptr::null_mut();
        // SAFETY: names, options and handles are `count` each; the library copies what it keeps.
        self.db = unsafe {
            (api.rocksdb_open_for_read_only_column_families)(
                self.options,
                path.as_ptr(),
                count,
                names.as_ptr(),
                options.as_ptr(),
                handles.as_mut_ptr(),
                0,
                &mut error,
            )
        };
        self.check(error)?;
        self.family = handles[0];
        // SAFETY: all handles are open; the second family is not used.
        unsafe {
            if !handles[1].is_null() {
                (api.rocksdb_column_family_handle_destroy)(handles[1]);
            }
            self.iter = (api.rocksdb_create_iterator_cf)(self.db, self.read, self.family);
        }
        Ok(())
    }

    fn estimate(&self) -> Option<u64> {
        let api = self.api;
        // SAFETY: handles are open; the text is the library's, and freed once.
        unsafe {
            let name = c"rocksdb.estimate-num-keys";
            let text = (api.rocksdb_property_value_cf)(self.db, self.family, name.as_ptr());
            if text.is_null() {
                return None;
            }
            let number = CStr::from_ptr(text).to_str().ok().and_then(|t| t.parse().ok());
            (api.rocksdb_free)(text.cast());
            number
        }
    }
}

impl Walk for Reader {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let api = self.api;
        // SAFETY: the iterator is open; key and value are copied while it stands on them.
        unsafe {
            if std::mem::replace(&mut self.begun, true) {
                (api.rocksdb_iter_next)(self.iter);
            } else {
                (api.rocksdb_iter_seek_to_first)(self.iter);
            }
            if (api.rocksdb_iter_valid)(self.iter) == 0 {
                let mut error = ptr::null_mut();
                (api.rocksdb_iter_get_error)(self.iter, &mut error);
                self.check(error)?;
                return Ok(false);
            }
            let mut len = 0;
            let data = (api.rocksdb_iter_key)(self.iter, &mut len);
            key.clear();
            key.extend_from_slice(bytes(data, len));
            let data = (api.rocksdb_iter_value)(self.iter, &mut len);
            value.clear();
            value.extend_from_slice(bytes(data, len));
        }
        Ok(true)
    }
}
