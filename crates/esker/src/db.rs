//! Skeleton of the public interface; replaced by the engine.
#![allow(unused_variables, missing_docs, clippy::should_implement_trait)]
use crate::*;
use std::ops::{Deref, RangeBounds};
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Db(Keyspace);
#[derive(Clone, Debug)]
pub struct Keyspace(());
#[derive(Clone, Debug)]
pub struct View(());
#[derive(Clone, Debug)]
pub struct Snapshot(());
#[derive(Debug)]
pub struct Iter(());
#[derive(Debug)]
pub struct Cursor(());
#[derive(Debug, Clone, Default)]
pub struct WriteBatch(());
#[derive(Clone, Debug)]
pub struct Slice(Vec<u8>);
/// What a verification found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    pub files: u64,
    pub bytes: u64,
    pub entries: u64,
    /// Everything found wrong, in words that name file and offset. Empty: the store is sound.
    pub problems: Vec<String>,
}
/// What a repair did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    pub tables: u64,
    pub entries: u64,
    pub lost: Vec<String>,
}
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunStats {
    pub tables: usize,
    pub bytes: u64,
    pub entries: u64,
    pub tombstones: u64,
}
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeyspaceStats {
    pub name: String,
    pub id: u32,
    pub order: String,
    pub compression: String,
    /// Newest first; what reads probe one after the other.
    pub runs: Vec<RunStats>,
    pub memtable_entries: u64,
    pub memtable_bytes: u64,
}
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    pub keyspaces: Vec<KeyspaceStats>,
    pub sequence: u64,
    pub log_segments: usize,
    pub log_bytes: u64,
    /// Bytes of values that live in log segments; and of those, dead ones not collected yet.
    pub separated_bytes: u64,
    pub garbage_bytes: u64,
    pub table_bytes: u64,
    pub disk_bytes: u64,
    pub memory_budget: u64,
    pub memory_used: u64,
    /// Since open: bytes given by the user, bytes written to the log, bytes written by merges.
    pub user_bytes: u64,
    pub log_written: u64,
    pub merge_read: u64,
    pub merge_written: u64,
    pub merges: u64,
    pub syncs: u64,
    /// Nanoseconds that writers were made to wait.
    pub slowdown_ns: u64,
    pub snapshots: usize,
    pub open_files: usize,
}

impl Deref for Db {
    type Target = Keyspace;
    fn deref(&self) -> &Keyspace {
        &self.0
    }
}
impl Deref for Slice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
impl Db {
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        todo!()
    }
    pub(crate) fn open_with(path: &Path, options: Options) -> Result<Db> {
        todo!()
    }
    pub fn write(&self, batch: WriteBatch) -> Result<()> {
        todo!()
    }
    pub fn write_with(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        todo!()
    }
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        todo!()
    }
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        todo!()
    }
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        todo!()
    }
    pub fn keyspaces(&self) -> Vec<String> {
        todo!()
    }
    pub fn flush(&self) -> Result<()> {
        todo!()
    }
    /// Waits until background merging has nothing left to do.
    pub fn settle(&self) -> Result<()> {
        todo!()
    }
    /// Makes everything written so far durable.
    pub fn sync(&self) -> Result<()> {
        todo!()
    }
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        todo!()
    }
    pub fn resume(&self) -> Result<()> {
        todo!()
    }
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        todo!()
    }
    /// Verifies a store that is not open, writing nothing, even when it is too damaged to open.
    pub fn verify_path(
        path: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<VerifyReport> {
        todo!()
    }
    pub fn stats(&self) -> Stats {
        todo!()
    }
    pub fn property(&self, name: &str) -> Option<String> {
        todo!()
    }
    pub fn close(self) -> Result<()> {
        todo!()
    }
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        todo!()
    }
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
        todo!()
    }
}
impl Keyspace {
    pub fn name(&self) -> &str {
        todo!()
    }
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        todo!()
    }
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        todo!()
    }
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        todo!()
    }
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        d: Durability,
    ) -> Result<()> {
        todo!()
    }
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        todo!()
    }
    pub fn delete_with(&self, key: impl AsRef<[u8]>, d: Durability) -> Result<()> {
        todo!()
    }
    pub fn iter(&self) -> Iter {
        todo!()
    }
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        todo!()
    }
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        todo!()
    }
    pub fn cursor(&self) -> Cursor {
        todo!()
    }
    /// A cursor that does not resolve values; `value()` is empty.
    pub fn cursor_keys_only(&self) -> Cursor {
        todo!()
    }
    pub fn at(&self, snapshot: &Snapshot) -> View {
        todo!()
    }
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        todo!()
    }
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        todo!()
    }
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        todo!()
    }
}
impl View {
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        todo!()
    }
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Slice>>> {
        todo!()
    }
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        todo!()
    }
    pub fn iter(&self) -> Iter {
        todo!()
    }
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        todo!()
    }
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        todo!()
    }
    pub fn cursor(&self) -> Cursor {
        todo!()
    }
    /// A cursor that does not resolve values; `value()` is empty.
    pub fn cursor_keys_only(&self) -> Cursor {
        todo!()
    }
}
impl Iterator for Iter {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
impl Cursor {
    pub fn first(&mut self) -> Result<bool> {
        todo!()
    }
    pub fn last(&mut self) -> Result<bool> {
        todo!()
    }
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        todo!()
    }
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        todo!()
    }
    pub fn next(&mut self) -> Result<bool> {
        todo!()
    }
    pub fn prev(&mut self) -> Result<bool> {
        todo!()
    }
    pub fn valid(&self) -> bool {
        todo!()
    }
    pub fn key(&self) -> &[u8] {
        todo!()
    }
    pub fn value(&self) -> &[u8] {
        todo!()
    }
}
impl WriteBatch {
    pub fn new() -> Self {
        todo!()
    }
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        todo!()
    }
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        todo!()
    }
    pub fn put_in(&mut self, ks: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        todo!()
    }
    pub fn delete_in(&mut self, ks: &Keyspace, key: impl AsRef<[u8]>) {
        todo!()
    }
    pub fn clear(&mut self) {
        todo!()
    }
    pub fn len(&self) -> usize {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Size in bytes once written to the log.
    pub fn byte_len(&self) -> usize {
        todo!()
    }
}
