//! Bring-up stand-in.
use crate::key::KeyOrder;
use parking_lot::RwLock;
pub(crate) trait KeySource {
    fn key(&self, r: u32) -> &[u8];
}
#[derive(Debug)]
pub(crate) struct Index {
    order: KeyOrder,
    refs: RwLock<Vec<u32>>,
}
impl Index {
    pub(crate) fn new(order: KeyOrder) -> Index {
        Index { order, refs: RwLock::default() }
    }
    pub(crate) fn upsert<S: KeySource>(&self, s: &S, key: &[u8], make: impl FnOnce(Option<u32>) -> u32) {
        let mut v = self.refs.write();
        let at = v.partition_point(|r| self.order.compare(s.key(*r), key).is_lt());
        if at < v.len() && self.order.compare(s.key(v[at]), key).is_eq() {
            v[at] = make(Some(v[at]));
        } else {
            v.insert(at, make(None));
        }
    }
    pub(crate) fn get<S: KeySource>(&self, s: &S, key: &[u8]) -> Option<u32> {
        let v = self.refs.read();
        let at = v.partition_point(|r| self.order.compare(s.key(*r), key).is_lt());
        v.get(at).copied().filter(|r| self.order.compare(s.key(*r), key).is_eq())
    }
    pub(crate) fn memory(&self) -> usize {
        self.refs.read().len() * 4
    }
}
#[derive(Debug, Default)]
pub(crate) struct IndexCursor {
    refs: Vec<u32>,
    at: Option<usize>,
}
impl IndexCursor {
    fn take<S: KeySource>(&mut self, i: &Index, _: &S) {
        self.refs = i.refs.read().clone();
    }
    fn set(&mut self, at: Option<usize>) {
        self.at = at.filter(|a| *a < self.refs.len());
    }
    pub(crate) fn first<S: KeySource>(&mut self, i: &Index, s: &S) {
        self.take(i, s);
        self.set(Some(0));
    }
    pub(crate) fn last<S: KeySource>(&mut self, i: &Index, s: &S) {
        self.take(i, s);
        self.set(self.refs.len().checked_sub(1));
    }
    pub(crate) fn seek<S: KeySource>(&mut self, i: &Index, s: &S, key: &[u8]) {
        self.take(i, s);
        self.set(Some(self.refs.partition_point(|r| i.order.compare(s.key(*r), key).is_lt())));
    }
    pub(crate) fn seek_for_prev<S: KeySource>(&mut self, i: &Index, s: &S, key: &[u8]) {
        self.take(i, s);
        self.set(self.refs.partition_point(|r| i.order.compare(s.key(*r), key).is_le()).checked_sub(1));
    }
    pub(crate) fn next<S: KeySource>(&mut self, _: &Index, _: &S) {
        self.set(self.at.map(|a| a + 1));
    }
    pub(crate) fn prev<S: KeySource>(&mut self, _: &Index, _: &S) {
        self.set(self.at.and_then(|a| a.checked_sub(1)));
    }
    pub(crate) fn current(&self) -> Option<u32> {
        self.at.map(|a| self.refs[a])
    }
}
