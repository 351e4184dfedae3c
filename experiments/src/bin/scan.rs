//! Experiment (f): next() and prev() over slotted blocks in a file mapping against LMDB's cursor,
//! both through a call that is not inlined, in the same run. LMDB's point reads and seeks too, as
//! the measure for the table's own benchmark.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use experiments::{Random, key16, median_ns};

const ENTRIES: u64 = 1_000_000;
const PAGE: usize = 4096;
/// Offset of the first slot, behind the header and the prefix.
const HEADER: usize = 20;

/// Blocks of [count u16, prefix length u16, prefix, slots u16 * (count + 1), records], a record
/// being [suffix length u8, suffix, value].
fn slotted() -> Vec<u8> {
    let mut file = Vec::new();
    let mut i = 0;
    while i < ENTRIES {
        let n = 36.min(ENTRIES - i) as usize;
        let (first, last) = (key16(i), key16(i + n as u64 - 1));
        let prefix = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
        let mut block = vec![0; HEADER];
        block[..2].copy_from_slice(&(n as u16).to_le_bytes());
        block[2..4].copy_from_slice(&(prefix as u16).to_le_bytes());
        block.extend(&first[..prefix]);
        let slots = block.len();
        block.resize(slots + 2 * (n + 1), 0);
        for k in 0..=n {
            let at = (block.len() as u16).to_le_bytes();
            block[slots + 2 * k..][..2].copy_from_slice(&at);
            if k < n {
                block.push((16 - prefix) as u8);
                block.extend(&key16(i + k as u64)[prefix..]);
                block.extend([i as u8; 100]);
            }
        }
        block.resize(PAGE, 0);
        file.extend(block);
        i += n as u64;
    }
    file.resize(file.len() + 64, 0);
    file
}

#[repr(C)]
struct Walk {
    data: *const u8,
    blocks: usize,
    block: usize,
    slot: usize,
    count: usize,
    slots: *const u8,
    base: *const u8,
    prefix: usize,
    key: [u8; 64],
    key_len: usize,
    value: *const u8,
    value_len: usize,
}

impl Walk {
    fn new(data: &[u8]) -> Walk {
        let mut w = Walk {
            data: data.as_ptr(),
            blocks: data.len() / PAGE,
            block: 0,
            slot: 0,
            count: 0,
            slots: data.as_ptr(),
            base: data.as_ptr(),
            prefix: 0,
            key: [0; 64],
            key_len: 0,
            value: data.as_ptr(),
            value_len: 0,
        };
        w.enter(0);
        w.load(0);
        w
    }

    fn enter(&mut self, block: usize) {
        // SAFETY: `block` is below `blocks`, and the blocks are those `slotted` made.
        unsafe {
            self.block = block;
            self.base = self.data.add(block * PAGE);
            self.count = self.base.cast::<u16>().read_unaligned() as usize;
            self.prefix = self.base.add(2).cast::<u16>().read_unaligned() as usize;
            self.key.as_mut_ptr().copy_from_nonoverlapping(self.base.add(HEADER), self.prefix);
            self.slots = self.base.add(HEADER + self.prefix);
        }
    }

    #[inline(always)]
    fn load(&mut self, slot: usize) {
        // SAFETY: `slot` is below `count`; 16 bytes fit behind any prefix of a 16-byte key, and
        // the file ends in 64 spare bytes.
        unsafe {
            let both = self.slots.add(2 * slot).cast::<u32>().read_unaligned();
            let (start, end) = ((both & 0xFFFF) as usize, (both >> 16) as usize);
            let record = self.base.add(start);
            let n = *record as usize;
            let suffix = record.add(1).cast::<[u8; 16]>().read_unaligned();
            self.key.as_mut_ptr().add(self.prefix).cast::<[u8; 16]>().write_unaligned(suffix);
            self.slot = slot;
            self.key_len = self.prefix + n;
            self.value = record.add(1 + n);
            self.value_len = end - start - 1 - n;
        }
    }
}

#[inline(never)]
extern "C" fn walk_next(w: &mut Walk) -> c_int {
    if w.slot + 1 < w.count {
        w.load(w.slot + 1);
    } else if w.block + 1 < w.blocks {
        w.enter(w.block + 1);
        w.load(0);
    } else {
        return 1;
    }
    0
}

#[inline(never)]
extern "C" fn walk_prev(w: &mut Walk) -> c_int {
    if w.slot > 0 {
        w.load(w.slot - 1);
    } else if w.block > 0 {
        w.enter(w.block - 1);
        w.load(w.count - 1);
    } else {
        return 1;
    }
    0
}

fn row(what: &str, ns: f64) {
    println!("{what:<40} {ns:>8.1} ns");
}

fn ours(dir: &Path) {
    let path = dir.join("slotted");
    std::fs::write(&path, slotted()).expect("written");
    let file = std::fs::File::open(&path).expect("there");
    // SAFETY: nobody else writes the file.
    let map = unsafe { memmap2::Mmap::map(&file) }.expect("mapped");
    type Step = extern "C" fn(&mut Walk) -> c_int;
    for (name, step, back) in
        [("next", walk_next as Step, false), ("prev", walk_prev as Step, true)]
    {
        let step = black_box(step);
        let ns = median_ns(9, ENTRIES, || {
            let mut w = Walk::new(&map[..]);
            if back {
                w.enter(w.blocks - 1);
                w.load(w.count - 1);
            }
            let (mut n, mut sum) = (1, 0u64);
            while step(&mut w) == 0 {
                // SAFETY: the value is not empty.
                sum += u64::from(w.key[15]) + u64::from(unsafe { *w.value.add(w.value_len - 1) });
                n += 1;
            }
            black_box(sum);
            assert_eq!(n, ENTRIES);
        });
        row(&format!("slotted blocks, {name}"), ns);
    }
}

#[repr(C)]
struct Val {
    size: usize,
    data: *mut c_void,
}

const NEXT: c_uint = 8;
const PREV: c_uint = 12;
const SET_RANGE: c_uint = 17;
const RDONLY: c_uint = 0x20000;
const NOSYNC: c_uint = 0x10000;
const APPEND: c_uint = 0x20000;

macro_rules! lmdb {
    ($($name:ident($($arg:ty),*);)*) => {
        struct Lmdb { $($name: unsafe extern "C" fn($($arg),*) -> c_int,)* }
        impl Lmdb {
            fn load(library: &libloading::Library) -> Lmdb {
                // SAFETY: the types are those of lmdb.h.
                unsafe { Lmdb { $($name: *library.get(stringify!($name).as_bytes()).expect("symbol"),)* } }
            }
        }
    };
}

lmdb! {
    mdb_env_create(*mut *mut c_void);
    mdb_env_set_mapsize(*mut c_void, usize);
    mdb_env_open(*mut c_void, *const c_char, c_uint, c_uint);
    mdb_txn_begin(*mut c_void, *mut c_void, c_uint, *mut *mut c_void);
    mdb_txn_commit(*mut c_void);
    mdb_dbi_open(*mut c_void, *const c_char, c_uint, *mut c_uint);
    mdb_put(*mut c_void, c_uint, *mut Val, *mut Val, c_uint);
    mdb_get(*mut c_void, c_uint, *mut Val, *mut Val);
    mdb_cursor_open(*mut c_void, c_uint, *mut *mut c_void);
    mdb_cursor_get(*mut c_void, *mut Val, *mut Val, c_uint);
}

fn val(bytes: &mut [u8]) -> Val {
    Val { size: bytes.len(), data: bytes.as_mut_ptr().cast() }
}

fn lmdb(dir: &Path) {
    // SAFETY: loading LMDB runs no initialisers that matter.
    let Ok(library) = (unsafe { libloading::Library::new("liblmdb.so.0") }) else {
        println!("(no LMDB here)");
        return;
    };
    let l = Lmdb::load(&library);
    let path = CString::new(dir.as_os_str().as_bytes()).expect("no zero");
    let (mut env, mut txn, mut cursor, mut dbi) = (null_mut(), null_mut(), null_mut(), 0);
    // SAFETY: the calls follow LMDB's manual; every pointer is to a live local.
    unsafe {
        assert_eq!((l.mdb_env_create)(&mut env), 0);
        assert_eq!((l.mdb_env_set_mapsize)(env, 1 << 30), 0);
        assert_eq!((l.mdb_env_open)(env, path.as_ptr(), NOSYNC, 0o600), 0);
        assert_eq!((l.mdb_txn_begin)(env, null_mut(), 0, &mut txn), 0);
        assert_eq!((l.mdb_dbi_open)(txn, std::ptr::null(), 0, &mut dbi), 0);
        for i in 0..ENTRIES {
            let (mut k, mut v) = (key16(i), [i as u8; 100]);
            assert_eq!((l.mdb_put)(txn, dbi, &mut val(&mut k), &mut val(&mut v), APPEND), 0);
        }
        assert_eq!((l.mdb_txn_commit)(txn), 0);
        assert_eq!((l.mdb_txn_begin)(env, null_mut(), RDONLY, &mut txn), 0);
        assert_eq!((l.mdb_cursor_open)(txn, dbi, &mut cursor), 0);
        let empty = || Val { size: 0, data: null_mut() };
        for (name, op) in [("next", NEXT), ("prev", PREV)] {
            let ns = median_ns(9, ENTRIES, || {
                // An operation on a fresh position starts at the end it comes from.
                let (mut k, mut v) = (empty(), empty());
                let start = if op == NEXT { 0 } else { 6 };
                assert_eq!((l.mdb_cursor_get)(cursor, &mut k, &mut v, start), 0);
                let (mut n, mut sum) = (1, 0u64);
                while (l.mdb_cursor_get)(cursor, &mut k, &mut v, op) == 0 {
                    sum += u64::from(*k.data.cast::<u8>().add(15));
                    sum += u64::from(*v.data.cast::<u8>().add(v.size - 1));
                    n += 1;
                }
                black_box(sum);
                assert_eq!(n, ENTRIES);
            });
            row(&format!("LMDB, {name}"), ns);
        }
        let mut random = Random(1);
        let ops = 300_000;
        let ns = median_ns(5, ops, || {
            for _ in 0..ops {
                let (mut k, mut v) = (key16(random.below(ENTRIES)), empty());
                assert_eq!((l.mdb_get)(txn, dbi, &mut val(&mut k), &mut v), 0);
                black_box(*v.data.cast::<u8>() ^ *v.data.cast::<u8>().add(64));
            }
        });
        row("LMDB, get", ns);
        for steps in [0, 10] {
            let ns = median_ns(5, ops, || {
                for _ in 0..ops {
                    let mut key = key16(random.below(ENTRIES));
                    let (mut k, mut v) = (val(&mut key), empty());
                    assert_eq!((l.mdb_cursor_get)(cursor, &mut k, &mut v, SET_RANGE), 0);
                    for _ in 0..steps {
                        (l.mdb_cursor_get)(cursor, &mut k, &mut v, NEXT);
                        black_box(*k.data.cast::<u8>().add(15));
                    }
                }
            });
            row(&format!("LMDB, seek + {steps} next"), ns);
        }
    }
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    println!("{ENTRIES} entries, 16-byte keys, 100-byte values, warm, median");
    ours(dir.path());
    lmdb(dir.path());
    ours(dir.path());
}
