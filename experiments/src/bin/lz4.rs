//! Experiment (e): what a 100-byte, half-compressible value costs to pack and unpack, with and
//! without a dictionary: our coder, lz4_flex (unsafe decoder, as built here) and C's liblz4 where
//! it is installed.

use std::ffi::{c_char, c_int};
use std::hint::black_box;

use experiments::{Random, median_ns};

// The coder itself, without the store around it.
#[allow(dead_code)]
#[path = "../../../crates/esker/src/util/abbreviated_key.rs"]
mod abbreviated_key;
#[allow(dead_code)]
#[path = "../../../crates/esker/src/key.rs"]
mod key;
#[allow(dead_code, missing_docs)]
#[path = "../../../crates/esker/src/table/lz4.rs"]
mod lz4;
/// What they expect of their crate.
mod util {
    pub(crate) use crate::abbreviated_key;
}
/// The same.
pub type Result<T> = std::result::Result<T, ()>;

const VALUES: usize = 100_000;

/// Half noise, half phrases that values share; each phrase once per value, so that a value alone
/// hardly compresses.
fn value(i: u64) -> Vec<u8> {
    let mut r = Random(i);
    let mut v = Vec::with_capacity(100);
    let phrases =
        [&b"\"name\": \""[..], b"\", \"city\": ", b", \"active\": true, ", b"\"created\": "];
    for p in phrases {
        v.extend_from_slice(p);
        v.extend((0..13).map(|_| r.next_u64() as u8));
    }
    v.resize(100, b'-');
    v
}

fn row(what: &str, packed: usize, ns: f64) {
    println!("{what:<44} {packed:>6} B {ns:>9.1} ns");
}

fn main() {
    let values: Vec<Vec<u8>> = (0..VALUES as u64).map(value).collect();
    let dict: Vec<u8> = (0..40).flat_map(|i| value(1_000_000 + i)).collect();
    let prepared = lz4::Lz4Dictionary::new(&dict);
    println!("{:<44} {:>8} {:>12}", "", "packed", "median");

    for (name, dict_used) in [("no dictionary", false), ("4 KB dictionary", true)] {
        let d = dict_used.then_some(&prepared);
        let bytes = if dict_used { &dict[..] } else { &[] };
        let mut e = lz4::Lz4Encoder::default();
        let mut out = Vec::new();
        let ns = median_ns(5, VALUES as u64, || {
            for v in &values {
                out.clear();
                black_box(e.compress(v, d, 1000, &mut out));
            }
        });
        let packed: Vec<Vec<u8>> = values
            .iter()
            .map(|v| {
                out.clear();
                e.compress(v, d, 1000, &mut out);
                out.clone()
            })
            .collect();
        let mean = packed.iter().map(Vec::len).sum::<usize>() / VALUES;
        row(&format!("pack, ours, {name}"), mean, ns);

        let mut theirs = vec![0; 1000];
        let mut len = 0;
        let ns = median_ns(3, VALUES as u64 / 10, || {
            for v in &values[..VALUES / 10] {
                len = if dict_used {
                    lz4_flex::block::compress_into_with_dict(v, &mut theirs, bytes)
                } else {
                    lz4_flex::block::compress_into(v, &mut theirs)
                }
                .expect("room");
            }
        });
        row(&format!("pack, lz4_flex, {name}"), len, ns);

        let mut buffer = [0; 100];
        let ns = median_ns(5, VALUES as u64, || {
            for p in &packed {
                let n = lz4_flex::block::decompress_into_with_dict(p, &mut buffer, bytes);
                assert_eq!(n.expect("packed"), 100);
            }
        });
        row(&format!("unpack, lz4_flex, {name}"), mean, ns);
        c_lz4(name, bytes, &packed, mean);
    }
}

type Decompress =
    unsafe extern "C" fn(*const c_char, *mut c_char, c_int, c_int, *const c_char, c_int) -> c_int;

fn c_lz4(name: &str, dict: &[u8], packed: &[Vec<u8>], mean: usize) {
    // SAFETY: liblz4 has no initialisers that matter; the type is that of lz4.h.
    let Ok(library) = (unsafe { libloading::Library::new("liblz4.so.1") }) else {
        println!("(no liblz4 here)");
        return;
    };
    // SAFETY: as above.
    let f = unsafe { library.get::<Decompress>(b"LZ4_decompress_safe_usingDict") }.expect("symbol");
    let mut buffer = [0u8; 100];
    let ns = median_ns(5, packed.len() as u64, || {
        for p in packed {
            // SAFETY: pointers and lengths are those of live buffers.
            let n = unsafe {
                f(
                    p.as_ptr().cast(),
                    buffer.as_mut_ptr().cast(),
                    p.len() as c_int,
                    100,
                    dict.as_ptr().cast(),
                    dict.len() as c_int,
                )
            };
            assert_eq!(n, 100);
        }
    });
    row(&format!("unpack, C liblz4, {name}"), mean, ns);
}
