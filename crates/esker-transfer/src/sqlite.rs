//! Two columns of a table of an SQLite database, by its library.
//!
//! One statement is one moment of the database. Texts come as UTF-8 and blobs as they are. An integer comes
//! as eight bytes, the highest first, with the sign turned over, so that the order of the bytes is that of the
//! numbers; or as decimal digits, where that is asked for. Rows come in any order and are sorted here.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use crate::error::{Error, Report, Result};
use crate::kind::{Kind, kind_of};
use crate::library::{self, bytes, c_path, c_text, functions};
use crate::merge::Run;
use crate::peer::{Ascending, ONLY, Opened, Walk};
use crate::sort::Sorter;

type Handle = *mut c_void;

functions! {
    /// The part of `sqlite3.h` used here.
    struct Api {
        fn sqlite3_open_v2(*const c_char, *mut Handle, c_int, *const c_char) -> c_int;
        fn sqlite3_close(Handle) -> c_int;
        fn sqlite3_busy_timeout(Handle, c_int) -> c_int;
        fn sqlite3_errmsg(Handle) -> *const c_char;
        fn sqlite3_prepare_v2(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int;
        fn sqlite3_step(Handle) -> c_int;
        fn sqlite3_finalize(Handle) -> c_int;
        fn sqlite3_column_type(Handle, c_int) -> c_int;
        fn sqlite3_column_int64(Handle, c_int) -> i64;
        fn sqlite3_column_text(Handle, c_int) -> *const c_uchar;
        fn sqlite3_column_blob(Handle, c_int) -> *const c_uchar;
        fn sqlite3_column_bytes(Handle, c_int) -> c_int;
    }
}

const OPEN_READONLY: c_int = 1;
/// How long to wait for somebody who writes.
const BUSY_MS: c_int = 5000;
const ROW: c_int = 100;
const DONE: c_int = 101;

const INTEGER: c_int = 1;
const FLOAT: c_int = 2;
const TEXT: c_int = 3;
const BLOB: c_int = 4;

/// What becomes of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integers {
    /// Eight bytes in the order of the numbers.
    Ordered,
    /// Decimal digits.
    Text,
}

/// Which columns, and how they become keys and values.
#[derive(Debug, Clone)]
pub struct Columns {
    /// The table or view.
    pub table: String,
    /// The column of keys.
    pub key: String,
    /// The column of values.
    pub value: String,
    /// What becomes of integers in either.
    pub integers: Integers,
}

fn api() -> Result<&'static Api> {
    static API: OnceLock<Api> = OnceLock::new();
    if let Some(api) = API.get() {
        return Ok(api);
    }
    let names = ["libsqlite3.so.0", "libsqlite3.so", "libsqlite3.dylib"].map(str::to_owned);
    let api = Api::load(library::load("SQLite", &names, "libsqlite3-0")?)?;
    Ok(API.get_or_init(|| api))
}

struct Reader {
    api: &'static Api,
    db: Handle,
    statement: Handle,
    row: u64,
    whose: String,
    columns: Columns,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: both are the library's or null, which it takes; the statement goes first.
        unsafe {
            (self.api.sqlite3_finalize)(self.statement);
            (self.api.sqlite3_close)(self.db);
        }
    }
}

/// Reads two columns of the database in `path`, and sorts them with so much memory, and files in `scratch`
/// beyond it.
pub fn open(path: &Path, columns: Columns, memory: usize, scratch: &Path) -> Result<Opened> {
    match kind_of(path) {
        Some(Kind::Sqlite) => {}
        Some(kind) => return Err(Error::Refused(format!("{} is {kind}", path.display()))),
        None => {
            return Err(Error::Refused(format!("{} is no SQLite database", path.display())));
        }
    }
    let whose = format!("{}: table {}", path.display(), columns.table);
    let mut reader = Reader::begin(path, columns, whose.clone())?;
    let mut sorter = Sorter::new(memory, scratch);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut total = 0;
    while reader.step()? {
        reader.column(0, &mut key)?;
        reader.column(1, &mut value)?;
        sorter.push(&key, ONLY, &value)?;
        total += 1;
    }
    let entries = Ascending::entries(Sorted(sorter.finish()?), whose);
    Ok(Opened { entries, total: Some(total), report: Report::default() })
}

/// Rows that were sorted.
struct Sorted(Box<dyn Run>);

impl Walk for Sorted {
    fn next(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        if !self.0.advance()? {
            return Ok(false);
        }
        key.clear();
        key.extend_from_slice(self.0.key());
        value.clear();
        value.extend_from_slice(self.0.value());
        Ok(true)
    }
}

/// A name in a statement. Not in double quotes: a column that is not there would be a text.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl Reader {
    fn begin(path: &Path, columns: Columns, whose: String) -> Result<Reader> {
        let api = api()?;
        let statement = ptr::null_mut();
        let mut reader = Reader { api, db: ptr::null_mut(), statement, row: 0, whose, columns };
        let c_path = c_path(path)?;
        // SAFETY: the path ends with 0; the handle is set also when it fails, and closed by `drop`.
        let code = unsafe {
            (api.sqlite3_open_v2)(c_path.as_ptr(), &mut reader.db, OPEN_READONLY, ptr::null())
        };
        reader.check(code)?;
        // SAFETY: the database is open.
        reader.check(unsafe { (api.sqlite3_busy_timeout)(reader.db, BUSY_MS) })?;
        let Columns { table, key, value, .. } = &reader.columns;
        let text = format!("SELECT {}, {} FROM {}", quoted(key), quoted(value), quoted(table));
        let text = c_text("a name", text.as_bytes())?;
        // SAFETY: the database is open and the text ends with 0; the rest of it is not asked for.
        let code = unsafe {
            (api.sqlite3_prepare_v2)(
                reader.db,
                text.as_ptr(),
                -1,
                &mut reader.statement,
                ptr::null_mut(),
            )
        };
        reader.check(code)?;
        Ok(reader)
    }

    fn check(&self, code: c_int) -> Result<()> {
        if matches!(code, 0 | ROW | DONE) {
            return Ok(());
        }
        // SAFETY: the handle is open, or null, of which the library says that memory ran out; the text
        // is copied at once.
        let text = unsafe { CStr::from_ptr((self.api.sqlite3_errmsg)(self.db)) }.to_string_lossy();
        Err(Error::Refused(format!("{}: {text}", self.whose)))
    }

    fn step(&mut self) -> Result<bool> {
        // SAFETY: the statement is open.
        let code = unsafe { (self.api.sqlite3_step)(self.statement) };
        self.check(code)?;
        self.row += 1;
        Ok(code == ROW)
    }

    /// Replaces `out` with a column of the present row.
    fn column(&self, at: c_int, out: &mut Vec<u8>) -> Result<()> {
        let (api, row) = (self.api, self.statement);
        out.clear();
        // SAFETY: the statement stands on a row; pointers are asked for before lengths, as the library
        // wants it, and bytes are copied before it goes on.
        unsafe {
            let kind = (api.sqlite3_column_type)(row, at);
            match kind {
                INTEGER => {
                    let number = (api.sqlite3_column_int64)(row, at);
                    match self.columns.integers {
                        Integers::Ordered => {
                            out.extend_from_slice(&ordered(number));
                        }
                        Integers::Text => out.extend_from_slice(number.to_string().as_bytes()),
                    }
                }
                TEXT | BLOB => {
                    let data = match kind {
                        TEXT => (api.sqlite3_column_text)(row, at),
                        _ => (api.sqlite3_column_blob)(row, at),
                    };
                    let len = (api.sqlite3_column_bytes)(row, at);
                    out.extend_from_slice(bytes(data, usize::try_from(len).unwrap_or(0)));
                }
                _ => return Err(self.no_bytes(at, kind)),
            }
        }
        Ok(())
    }

    fn no_bytes(&self, at: c_int, kind: c_int) -> Error {
        let column = if at == 0 { &self.columns.key } else { &self.columns.value };
        let what = match kind {
            FLOAT => {
                "a number that is no integer, which has no bytes of its own; make a text of it"
            }
            _ => "NULL, which is no bytes; leave such rows out",
        };
        let row = self.row;
        Error::Refused(format!(
            "{}: column {column} of row {row} is {what}, with a view for example",
            self.whose
        ))
    }
}

/// Eight bytes whose order is that of the numbers.
fn ordered(number: i64) -> [u8; 8] {
    ((number as u64) ^ (1 << 63)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_order() {
        let numbers = [i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX];
        assert!(numbers.map(ordered).is_sorted());
        assert_eq!(ordered(1), [0x80, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(quoted("a`b"), "`a``b`");
    }
}
