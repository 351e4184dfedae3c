//! Comparators of the user's that panic in the middle of an insert, and ones that contradict
//! themselves: the tree stays whole.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64};

use parking_lot::Mutex;

use super::*;

/// Bytewise. Panics once the count comes down to 0, and lies now and then if told to.
struct Unsound {
    left: AtomicI64,
    lies: AtomicU64,
}

impl Unsound {
    fn new(lies: u64) -> Arc<Unsound> {
        Arc::new(Unsound { left: AtomicI64::new(-1), lies: AtomicU64::new(lies) })
    }
}

impl Comparator for Unsound {
    fn name(&self) -> &str {
        "unsound"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.left.fetch_sub(1, Relaxed) == 0 {
            // As a panic, without a line on the terminal: there are thousands.
            resume_unwind(Box::new("no more"));
        }
        let honest = a.cmp(b);
        let lies = self.lies.load(Relaxed);
        if lies == 0 {
            return honest;
        }
        let next = lies.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        self.lies.store(next, Relaxed);
        match next >> 60 {
            0 => Ordering::Less,
            1 => Ordering::Equal,
            2 => Ordering::Greater,
            3 => honest.reverse(),
            _ => honest,
        }
    }
}

/// Numbers below `n`, neither ascending nor descending.
fn mixed(n: u32) -> impl Iterator<Item = [u8; 4]> {
    (0..n).map(move |i| (i * 7919 % n).to_be_bytes())
}

#[test]
fn a_panic_in_an_insert_leaves_the_index_as_it_was() {
    for ascending in [false, true] {
        let order = Unsound::new(0);
        let index = Index::new(KeyOrder::Custom(Arc::clone(&order) as Arc<dyn Comparator>));
        let log = Log::new(200_000);
        // Enough for inner nodes to split.
        let keys: Vec<[u8; 4]> = match ascending {
            true => (0..701u32).map(u32::to_be_bytes).collect(),
            false => mixed(701).collect(),
        };
        let mut panics = 0;
        for (at, key) in keys.iter().enumerate() {
            for n in 0.. {
                order.left.store(n, Relaxed);
                let inserted =
                    catch_unwind(AssertUnwindSafe(|| put(&index, &log, key))).map(|(old, _)| old);
                order.left.store(-1, Relaxed);
                if let Ok(old) = inserted {
                    assert_eq!(old, None);
                    break;
                }
                panics += 1;
                assert!(index.get(&log, key).is_none() && index.len() == at);
            }
        }
        assert!(panics > 1000);
        let (up, mut down) = walk(&index, &log);
        assert!(up.len() == keys.len() && up.is_sorted());
        down.reverse();
        assert_eq!(up, down);
        assert!(keys.iter().all(|key| index.get(&log, key).is_some()));
    }
}

/// Bytewise, and remembers which keys it was asked for.
#[derive(Default)]
struct Asked(Mutex<HashSet<(Vec<u8>, Vec<u8>)>>);

impl Comparator for Asked {
    fn name(&self) -> &str {
        "asked"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.lock().insert((a.to_vec(), b.to_vec()));
        a.cmp(b)
    }
}

#[test]
fn a_rehearsal_makes_every_comparison_that_the_insert_makes() {
    let order = Arc::new(Asked::default());
    let index = Index::new(KeyOrder::Custom(Arc::clone(&order) as Arc<dyn Comparator>));
    let log = Log::new(5000);
    let ascending = (0..700u32).map(|i| (i + 10_000).to_be_bytes());
    for key in mixed(701).chain(ascending).chain(mixed(701)) {
        // SAFETY: one writing thread.
        unsafe { index.rehearse(&log, &key) };
        let rehearsed = std::mem::take(&mut *order.0.lock());
        put(&index, &log, &key);
        let asked = std::mem::take(&mut *order.0.lock());
        assert!(asked.is_subset(&rehearsed), "{key:?}");
    }
    assert_eq!(index.len(), 1401);
}

#[test]
fn a_comparator_that_contradicts_itself_leaves_a_tree_that_can_be_walked() {
    for seed in 1..30 {
        let order = Unsound::new(seed);
        let index = Index::new(KeyOrder::Custom(Arc::clone(&order) as Arc<dyn Comparator>));
        let log = Log::new(3000);
        let mut cursor = IndexCursor::new();
        for key in mixed(3000) {
            put(&index, &log, &key);
            index.get(&log, &key);
            cursor.seek(&index, &log, &key);
            for _ in 0..5 {
                if cursor.current().is_some() {
                    cursor.prev(&index, &log);
                }
                if cursor.current().is_some() {
                    cursor.next(&index, &log);
                }
            }
            cursor.seek_for_prev(&index, &log, &key);
            cursor.current();
        }
        let (up, down) = walk(&index, &log);
        assert_eq!(up.len(), index.len(), "seed {seed}: each entry once");
        assert!(down.len() <= up.len(), "seed {seed}");
    }
}
