//! Every byte flipped, every length: an error or a state that a crash can leave, never another.

use std::path::Path;
use std::sync::Arc;

use super::mem_env::MemEnv;
use super::*;
use crate::error::Error;
use crate::filename;

fn dir() -> &'static Path {
    Path::new("/db")
}

fn written() -> MemEnv {
    let env = MemEnv::default();
    let state = State::new(Orders::default());
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
    for edit in history() {
        manifest.append(&edit).unwrap();
    }
    env
}

fn load_it(env: &MemEnv) -> crate::Result<Loaded> {
    load(env, dir(), &Orders::default())
}

fn with(env: &MemEnv, name: &str, bytes: &[u8]) -> MemEnv {
    let copy = env.kill();
    copy.put(name, bytes);
    copy
}

#[test]
pub(super) fn what_is_appended_comes_back() {
    let env = written();
    let loaded = load_it(&env).unwrap();
    assert!(loaded.state == *states().last().unwrap());
    assert_eq!((loaded.number, loaded.edits), (1, history().len() as u64));
    assert_eq!(loaded.torn, None);
    assert_eq!(env.names(), ["CURRENT", "MANIFEST-0000000001"]);
}

#[test]
pub(super) fn every_flipped_bit_is_an_error() {
    let env = written();
    for name in ["CURRENT", "MANIFEST-0000000001"] {
        let bytes = env.bytes(name);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let bad = with(&env, name, &bad);
                let error = load_it(&bad).expect_err(&format!("{name} byte {at} bit {bit}"));
                assert!(error.is_corruption(), "{error}");
                let prefix = load_prefix(&bad, dir(), &Orders::default()).unwrap();
                assert!(!prefix.lost.is_empty());
                assert!(states().contains(&prefix.state));
            }
        }
    }
}

#[test]
pub(super) fn every_cut_is_a_prefix_or_an_error() {
    let env = written();
    let bytes = env.bytes("MANIFEST-0000000001");
    let states = states();
    let mut seen = 0;
    for cut in 0..bytes.len() {
        match load_it(&with(&env, "MANIFEST-0000000001", &bytes[..cut])) {
            Ok(loaded) => {
                assert!(loaded.state == states[loaded.edits as usize]);
                // What of the file is not used, and nothing where all of it is.
                let rest = loaded.torn.map_or((loaded.end, 0), |t| (t.offset, t.bytes));
                assert_eq!(rest, (loaded.end, cut as u64 - loaded.end));
                assert!(loaded.edits >= seen, "longer files hold no less");
                seen = loaded.edits;
            }
            Err(e) => {
                assert!(e.is_corruption(), "{e}");
                assert_eq!(seen, 0, "only a cut into the first record is an error");
            }
        }
    }
    assert_eq!(seen, history().len() as u64 - 1);
    let current = env.bytes("CURRENT");
    for cut in 0..current.len() {
        assert!(load_it(&with(&env, "CURRENT", &current[..cut])).unwrap_err().is_corruption());
    }
}

/// After a clean close the end is known, and a file that ends before it is told from a torn one.
#[test]
fn a_closed_manifest_without_its_end_says_how_long_it_was() {
    let env = MemEnv::default();
    let state = State::new(Orders::default());
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
    history().iter().for_each(|edit| manifest.append(edit).unwrap());
    manifest.tell_length().unwrap();
    let name = filename::manifest(manifest.number());
    let bytes = env.bytes(&name);
    let whole = load_it(&with(&env, &name, &bytes)).unwrap();
    let shorter = states().len() - 2;
    let mut cuts = 0;
    for cut in (0..bytes.len()).rev() {
        let error = load_it(&with(&env, &name, &bytes[..cut])).expect_err("an end is missing");
        let text = error.to_string();
        if text.contains("its end is lost") {
            cuts += 1;
            assert!(text.contains(&format!("it had {} bytes", whole.end)), "{text}");
            assert!(text.contains("CURRENT"), "{text}");
        }
    }
    assert!(cuts >= shorter, "{cuts} of {} cuts", bytes.len());
}

/// What a crash leaves unwritten is zeros, so no record may end in one.
#[test]
fn a_record_ends_in_padding_whatever_its_length() {
    for len in 1..100 {
        let record = record::encode(1, 32, &vec![0; len]).unwrap();
        assert_eq!(record.len(), 16 + (len / 16 + 1) * 16, "{len}");
        assert_ne!(record.last(), Some(&0), "{len}");
    }
}

#[test]
fn zeros_are_a_torn_tail_only_at_the_end() {
    let env = written();
    let bytes = env.bytes("MANIFEST-0000000001");
    let end_of = |edits: u64| {
        (0..=bytes.len())
            .find(|&cut| {
                let loaded = load_it(&with(&env, "MANIFEST-0000000001", &bytes[..cut]));
                loaded.is_ok_and(|l| l.edits == edits)
            })
            .unwrap()
    };
    // A record blanked in the middle, with others behind it.
    let (from, to) = (end_of(3), end_of(4));
    let mut bad = bytes.clone();
    bad[from..to].fill(0);
    let error = load_it(&with(&env, "MANIFEST-0000000001", &bad)).unwrap_err();
    assert!(matches!(error, Error::Corruption { offset, .. } if offset == from as u64), "{error}");
    // The file grew, the data never came.
    let mut grown = bytes.clone();
    grown.resize(bytes.len() + 4096, 0);
    let loaded = load_it(&with(&env, "MANIFEST-0000000001", &grown)).unwrap();
    assert!(loaded.torn.is_some() && loaded.state == *states().last().unwrap());
    // Anything else behind the end is damage.
    grown[bytes.len() + 100] = 1;
    assert!(load_it(&with(&env, "MANIFEST-0000000001", &grown)).is_err());
}

#[test]
fn records_do_not_change_places() {
    // Two records of equal length, swapped.
    let env = MemEnv::default();
    let state = State::new(Orders::default());
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
    let start = manifest.len() as usize;
    for id in 0..2 {
        manifest.append(&VersionEdit::from(vec![add_keyspace(id, &format!("k{id}"))])).unwrap();
    }
    let mut bytes = env.bytes("MANIFEST-0000000001");
    let len = (bytes.len() - start) / 2;
    let (a, b) = bytes[start..].split_at_mut(len);
    a.swap_with_slice(b);
    assert!(load_it(&with(&env, "MANIFEST-0000000001", &bytes)).is_err());
}

/// What is said of a manifest with this byte of its header changed, and the header's checksum right.
fn resealed(at: usize, byte: u8) -> crate::Result<Loaded> {
    let env = written();
    let mut bytes = env.bytes("MANIFEST-0000000001");
    bytes[at] = byte;
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[..24], 0);
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    load_it(&with(&env, "MANIFEST-0000000001", &bytes))
}

#[test]
fn a_newer_format_says_so() {
    let error = resealed(8, 9).unwrap_err();
    assert!(
        matches!(error, Error::UnsupportedFormat { found: 9, supported: FORMAT, .. }),
        "{error}"
    );
}

#[test]
fn a_sound_header_may_still_be_no_header_of_this_manifest() {
    assert!(resealed(8, FORMAT as u8).is_ok());
    let refused = |at, byte, offset, what: &str| {
        let error = resealed(at, byte).unwrap_err();
        assert!(matches!(error, Error::Corruption { offset: o, .. } if o == offset), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(8, 0, 8, "no known format");
    // Of what is zero in this format something later may have made use.
    refused(12, 1, 8, "no known format");
    refused(15, 1, 8, "no known format");
    refused(16, 2, 16, "another manifest");
    refused(23, 1, 16, "another manifest");
}

/// A power cut may leave zeros in place of the last record, in whole sectors, and nothing behind.
#[test]
fn sectors_of_zeros_with_records_behind_them_are_damage() {
    let env = MemEnv::default();
    let state = State::new(Orders::default());
    let mut manifest = Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
    let mut starts = Vec::new();
    for seq in 0..100 {
        starts.push(manifest.len() as usize);
        manifest.append(&VersionEdit::from(vec![Change::LastSeq { seq }])).unwrap();
    }
    let whole = env.bytes("MANIFEST-0000000001");
    for sector in 2..whole.len() / 512 - 1 {
        let end = (sector + 1) * 512;
        for &from in starts.iter().filter(|s| (sector * 512..end).contains(s)) {
            let mut bytes = whole.clone();
            bytes[from..end].fill(0);
            let error = load_it(&with(&env, "MANIFEST-0000000001", &bytes)).unwrap_err();
            let at = from as u64;
            assert!(matches!(error, Error::Corruption { offset, .. } if offset == at), "{error}");
            assert!(error.to_string().contains("records behind them"), "{error}");
            // Nothing behind, or zeros only: a power cut may have been.
            let edits = starts.iter().position(|s| *s == from).unwrap() as u64;
            for len in [end, end + 512] {
                bytes.truncate(end);
                bytes.resize(len, 0);
                let loaded = load_it(&with(&env, "MANIFEST-0000000001", &bytes)).unwrap();
                assert_eq!((loaded.edits, loaded.end), (edits, at));
                assert!(loaded.torn.is_some());
            }
        }
    }
}

#[test]
fn no_current() {
    let env = MemEnv::default();
    assert!(matches!(load_it(&env), Err(Error::NotAStore { .. })));
    env.put("notes.txt", b"");
    assert!(matches!(load_it(&env), Err(Error::NotAStore { .. })));
    // Creation was cut off: nothing but manifests is there.
    let env = MemEnv::default();
    env.put("LOCK", b"");
    env.put("MANIFEST-0000000001", b"");
    assert!(matches!(load_it(&env), Err(Error::NotAStore { .. })));
    let state = State::new(Orders::default());
    Manifest::create(Arc::new(env.clone()), dir(), state).unwrap();
    assert_eq!(load_it(&env).unwrap().number, 2);
    assert_eq!(env.names(), ["CURRENT", "LOCK", "MANIFEST-0000000002"]);
    // A store that lost its CURRENT, or the manifest too.
    for manifest in ["MANIFEST-0000000001", "notes.txt"] {
        let env = MemEnv::default();
        env.put(manifest, b"");
        env.put("0000000002.tbl", b"something");
        let error = load_it(&env).unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains("esker repair"), "{error}");
        // One that is being removed.
        env.put("DESTROYED", b"");
        assert!(matches!(load_it(&env), Err(Error::NotAStore { .. })));
    }
}

#[test]
fn current_leads_nowhere_else() {
    use std::os::unix::fs::symlink;
    for name in ["../MANIFEST-0000000001", "MANIFEST-1", "MANIFEST-00000000001", "/etc/passwd", ""]
    {
        let sum = xxhash_rust::xxh3::xxh3_64(name.as_bytes());
        let env = with(&written(), "CURRENT", format!("{name} {sum:016x}\n").as_bytes());
        assert!(load_it(&env).unwrap_err().is_corruption(), "{name}");
    }
    let outside = tempfile::tempdir().unwrap();
    let inside = tempfile::tempdir().unwrap();
    let env: Arc<dyn crate::env::Env> = Arc::new(crate::env::OsEnv::new());
    let state = State::new(Orders::default());
    Manifest::create(env.clone(), outside.path(), state).unwrap();
    let orders = Orders::default();
    assert!(load(&*env, outside.path(), &orders).is_ok());
    for name in ["CURRENT", "MANIFEST-0000000001"] {
        symlink(outside.path().join(name), inside.path().join(name)).unwrap();
        assert!(load(&*env, inside.path(), &orders).is_err());
        if name == "CURRENT" {
            std::fs::remove_file(inside.path().join(name)).unwrap();
            std::fs::copy(outside.path().join(name), inside.path().join(name)).unwrap();
        }
    }
}

#[test]
fn random_damage_never_yields_another_state() {
    let env = written();
    let bytes = env.bytes("MANIFEST-0000000001");
    let states = states();
    let mut random = super::crash::xorshift(7);
    for _ in 0..20_000 {
        let mut bad = bytes.clone();
        for _ in 0..random() % 4 + 1 {
            let at = random() as usize % bad.len();
            let len = random() as usize % 40;
            let end = (at + len).min(bad.len());
            match random() % 3 {
                0 => bad[at..end].fill(random() as u8),
                1 => drop(bad.drain(at..end)),
                _ => bad[at] = random() as u8,
            }
            if bad.is_empty() {
                break;
            }
        }
        if let Ok(loaded) = load_it(&with(&env, "MANIFEST-0000000001", &bad)) {
            assert!(loaded.state == states[loaded.edits as usize]);
        }
    }
}
