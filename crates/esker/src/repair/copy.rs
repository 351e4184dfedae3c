//! Tables made of what is saved, and the numbers of files.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::env::Env;
use crate::error::Result;
use crate::filename;
use crate::key::{Kind, Seq, Stored};
use crate::table::{TableBuilder, TableOptions};
use crate::version::TableMeta;

/// The files that a repair makes. They are removed again when it does not get so far that a manifest
/// names them, whether by an error or by a panic of a comparator.
pub(super) struct Files {
    pub env: Arc<dyn Env>,
    pub dir: PathBuf,
    first: u64,
    next: Cell<u64>,
    made: RefCell<Vec<PathBuf>>,
}

impl Files {
    pub(super) fn new(env: &Arc<dyn Env>, dir: PathBuf, next: u64) -> Rc<Files> {
        let (first, next, made) = (next, Cell::new(next), RefCell::default());
        Rc::new(Files { env: Arc::clone(env), dir, first, next, made })
    }

    /// The files made here have numbers from this one on.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number that the next file would have.
    pub(super) fn next(&self) -> u64 {
        self.next.get()
    }

    fn take(&self, name: fn(u64) -> String) -> (u64, PathBuf) {
        let number = self.next.replace(self.next.get() + 1);
        let path = self.dir.join(name(number));
        self.made.borrow_mut().push(path.clone());
        (number, path)
    }

    /// A number for a segment.
    pub(super) fn segment(&self) -> u64 {
        self.take(filename::segment).0
    }

    /// Removes a table, if it is one of those made here.
    pub(super) fn release(&self, number: u64) {
        let path = self.dir.join(filename::table(number));
        let mut made = self.made.borrow_mut();
        if let Some(at) = made.iter().position(|p| *p == path) {
            made.swap_remove(at);
            // Best effort: what stays is named nowhere, and the next open removes it.
            drop(self.env.remove(&path));
        }
    }

    /// From here on a manifest may name them.
    pub(super) fn keep(&self) {
        self.made.borrow_mut().clear();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in self.made.borrow().iter() {
            drop(self.env.remove(path));
        }
    }
}

/// Tables being written out of what is saved.
pub(super) struct Copy {
    files: Rc<Files>,
    options: TableOptions,
    /// Size from which another table is begun, in bytes.
    table_bytes: u64,
    builder: Option<TableBuilder>,
    /// Key and sequence of the last entry.
    last: Option<(Vec<u8>, Seq)>,
    done: Vec<TableMeta>,
}

impl Copy {
    pub(super) fn new(files: &Rc<Files>, options: TableOptions, table_bytes: u64) -> Copy {
        let files = Rc::clone(files);
        Copy { files, options, table_bytes, builder: None, last: None, done: Vec::new() }
    }

    /// Whether a packed value can be added as it is.
    pub(super) fn takes(&self, value: &Stored<'_>) -> bool {
        let ours = self.options.dictionary.as_ref().map_or(0, |d| d.id());
        !matches!(value, Stored::Compressed { dict, .. } if *dict != 0 && *dict != ours)
    }

    /// Adds an entry, unless it does not come after the last one: whether it did.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        seq: Option<Seq>,
        kind: Kind,
        stored: Stored<'_>,
    ) -> Result<bool> {
        let at = seq.unwrap_or(0);
        if let Some((last, last_seq)) = &self.last {
            let side = self.options.order.compare(last, key);
            if !side.then(at.cmp(last_seq)).is_lt() {
                return Ok(false);
            }
            // Versions of one key never straddle two tables.
            let full = |b: &TableBuilder| b.size_estimate() >= self.table_bytes;
            if side.is_lt() && self.builder.as_ref().is_some_and(full) {
                self.end_table()?;
            }
        }
        let (last, last_seq) = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        *last_seq = at;
        let builder = match &mut self.builder {
            Some(builder) => builder,
            None => {
                let (number, path) = self.files.take(filename::table);
                let options = self.options.clone();
                let made = TableBuilder::new(&self.files.env, &path, number, options)?;
                self.builder.insert(made)
            }
        };
        builder.add(key, seq, kind, stored)?;
        Ok(true)
    }

    fn end_table(&mut self) -> Result<()> {
        if let Some(builder) = self.builder.take() {
            self.done.push(builder.finish()?);
        }
        Ok(())
    }

    /// The tables, durable; their names are not yet.
    pub(super) fn finish(mut self, base_seq: Seq) -> Result<Vec<TableMeta>> {
        self.end_table()?;
        Ok(self.done.into_iter().map(|meta| meta.based_on(base_seq)).collect())
    }
}
