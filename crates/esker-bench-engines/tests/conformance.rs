//! Every engine of this crate does what an adapter must, and says what it has no call for.

use esker_bench::conformance::{check, config};
use esker_bench::engine::{Class, Engine, Sync, Unsupported};
use esker_bench_engines::{bf_tree, fjall, libmdbx, redb, sled};
use std::collections::BTreeSet;

fn conforms<E: Engine>(buffered: Class, synced: Class) {
    let dir = tempfile::tempdir().unwrap();
    let compressed = (Sync::Buffered, true, buffered);
    let ways = [(Sync::Buffered, false, buffered), compressed, (Sync::Synced, false, synced)];
    for (sync, compression, class) in ways {
        let dir = dir.path().join(format!("{sync:?}{compression}"));
        let config = config(sync, compression);
        let unsupported = check::<E>(&dir, &config).unwrap_or_else(|e| panic!("{config:?}: {e:#}"));
        assert_eq!(unsupported, BTreeSet::new());
        let engine = E::open(&dir.join("any"), &config).unwrap();
        assert_eq!(engine.class(), class);
        assert!(E::version().unwrap().contains('.'));
    }
}

#[test]
fn redb_conforms() {
    conforms::<redb::Redb>(Class::V, Class::F);
}

#[test]
fn fjall_conforms() {
    conforms::<fjall::Fjall>(Class::K, Class::F);
}

#[test]
fn sled_conforms() {
    conforms::<sled::Sled>(Class::V, Class::K);
}

#[test]
fn libmdbx_conforms() {
    conforms::<libmdbx::Mdbx>(Class::K, Class::F);
}

#[test]
fn bf_tree_conforms_in_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let unsupported = check::<bf_tree::BfTree>(dir.path(), &config(Sync::Buffered, false));
    let unsupported = unsupported.unwrap_or_else(|e| panic!("{e:#}"));
    for what in ["scans from the end", "empty values", "records outside", "batches"] {
        assert!(unsupported.iter().any(|said| said.contains(what)), "{what}: {unsupported:?}");
    }
    assert!(unsupported.iter().all(|said| said.contains("not supported: the engine has no ")));

    let synced = bf_tree::BfTree::open(dir.path(), &config(Sync::Synced, false)).err().unwrap();
    assert!(Unsupported::is_cause_of(&synced));
}
