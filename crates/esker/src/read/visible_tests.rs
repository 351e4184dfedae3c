//! Walks over what a reader sees.

use std::io::{Seek, SeekFrom, Write};

use super::super::run_cursor::RunCursor;
use super::*;
use crate::{Db, Options};

/// One below 4 KiB was checked when the walk came to it, and again when it was shown. What the second look did not
/// like was an empty value.
#[test]
#[cfg_attr(miri, ignore = "opens a store")]
fn a_separated_value_is_checked_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db: Db = Options::new().blob_threshold(1000).open(&path).unwrap();
    for key in ["a", "b"] {
        db.put(key, [7; 2000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let super_version = db.store().all_keyspaces()[0].super_version.load_full();
    let run = RunCursor::new(Arc::clone(&super_version.runs()[0]), KeyOrder::Bytewise);
    let merged = MergeCursor::new(KeyOrder::Bytewise, vec![SourceCursor::Run(run)]);
    let mut walk = VisibleCursor::new(KeyOrder::Bytewise, merged, Seq::MAX, false, None);
    for forward in [true, false] {
        walk.go_to(Move::Edge, forward).unwrap();
        let Stored::Pointer(p) = walk.inner.stored() else { panic!("it is in the table") };
        let name = path.join(crate::filename::segment(p.segment));
        let mut file = std::fs::File::options().write(true).open(name).unwrap();
        file.seek(SeekFrom::Start(p.offset + 5)).unwrap();
        file.write_all(&[8]).unwrap();
        // The mapping has it, and nobody looks again before the next move.
        assert_eq!(walk.shown().unwrap().value().len(), 2000);
        assert!(walk.go_to(Move::Edge, forward).is_err_and(|e| e.is_corruption()));
    }
}
