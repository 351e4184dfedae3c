//! What a read allocates: nothing, beyond what the engine has to unpack.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr::{null, null_mut};

use esker_capi::cursor::*;
use esker_capi::db::*;
use esker_capi::error::esker_code;
use esker_capi::keyspace::*;
use esker_capi::options::*;
use esker_capi::read::*;
use esker_capi::value::*;
use esker_capi::write::*;

/// The system's allocator, which counts what the thread asks for.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

const OK: esker_code = esker_code::ESKER_OK;

#[test]
fn reads_allocate_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = CString::new(dir.path().as_os_str().as_bytes()).unwrap();
    // SAFETY: handles are used as the header says.
    unsafe {
        let mut options = esker_options_new();
        assert_eq!(esker_options_set_memory(options, 1 << 20), OK);
        assert_eq!(esker_options_set_compression(options, 0), OK);
        let (mut db, mut ks, mut cursor) = (null_mut(), null_mut(), null_mut());
        assert_eq!(esker_db_open(path.as_ptr(), options, &mut db, null_mut()), OK);
        esker_options_free(&mut options);
        assert_eq!(esker_keyspace_open(db, null(), &mut ks, null_mut()), OK);
        for n in 0..200u32 {
            let (key, value) = (n.to_be_bytes(), vec![7u8; n as usize]);
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            assert_eq!(esker_put(ks, k, 4, v, value.len(), 0, null_mut()), OK);
        }
        // Out of the log, and then out of a table.
        for _ in 0..2 {
            let read = || {
                for n in 0..200u32 {
                    let key = n.to_be_bytes();
                    let mut value = MaybeUninit::uninit();
                    let got = esker_get(ks, key.as_ptr().cast(), 4, value.as_mut_ptr(), null_mut());
                    assert_eq!((got, (*value.as_ptr()).len), (OK, n as usize));
                    esker_value_release(value.as_mut_ptr());
                }
                let mut value = MaybeUninit::uninit();
                let none =
                    esker_get(ks, c"none".as_ptr().cast(), 4, value.as_mut_ptr(), null_mut());
                assert_eq!(none, esker_code::ESKER_NOT_FOUND);
            };
            read(); // a thread's first read registers it
            assert_eq!(allocations(read), 0, "esker_get");

            assert_eq!(esker_cursor_open(ks, false, &mut cursor, null_mut()), OK);
            let walk = || {
                let mut entry = MaybeUninit::uninit();
                let mut steps = 1;
                while esker_cursor_next(cursor, entry.as_mut_ptr(), null_mut()) == OK {
                    steps += 1;
                }
                assert_eq!(steps, 200);
            };
            // A cursor's first long walk makes room for what it takes of its sources together.
            for most in [8, 0] {
                assert_eq!(esker_cursor_first(cursor, null_mut(), null_mut()), OK);
                let made = allocations(walk);
                assert!(made <= most, "steps of a cursor: {made} allocations, {most} at most");
            }
            let mut buffer = [0u8; 4000];
            let fill = || {
                let (mut used, mut count, mut done) = (0, 0, false);
                while !done {
                    let at = buffer.as_mut_ptr().cast();
                    let read = esker_cursor_read(
                        cursor,
                        false,
                        at,
                        4000,
                        &mut used,
                        &mut count,
                        &mut done,
                        null_mut(),
                    );
                    assert!(read == OK && count > 0);
                }
            };
            assert_eq!(esker_cursor_first(cursor, null_mut(), null_mut()), OK);
            assert_eq!(allocations(fill), 0, "esker_cursor_read");
            esker_cursor_close(&mut cursor);
            assert_eq!(esker_db_wait_for_compactions(db, null_mut()), OK);
        }
        esker_keyspace_close(&mut ks);
        assert_eq!(esker_db_close(&mut db, null_mut()), OK);
    }
}
