//! Closing, killing, copying: what is left of a store when it is opened again.

use std::collections::BTreeMap;
use std::path::Path;

use esker::{Db, Error, Options};

use crate::common::files::{self, copy_as_killed};
use crate::common::model::{Map, Order};
use crate::common::no_case;
use crate::reader::compare;
use crate::world::World;

impl World {
    /// Everything that keeps files of the present store is let go.
    pub fn let_go(&mut self) {
        self.snapshots.clear();
        self.iterators.clear();
        self.slices.clear();
        self.dropped.clear();
    }

    pub fn reopen(&mut self) {
        let maps = self.maps();
        let close = self.rng.one_in(2);
        self.note(format!("reopen, closed before: {close}"));
        self.let_go();
        let any = self.any_space();
        let held = self.rng.one_in(3).then(|| self.spaces[&any].handle.cursor());
        let db = self.db.take().unwrap();
        if close {
            db.close().unwrap();
            let any = self.spaces.values().next().unwrap();
            assert!(matches!(any.handle.get("x"), Err(Error::Closed)));
            assert!(matches!(any.handle.put("x", "y"), Err(Error::Closed)));
        } else {
            drop(db);
        }
        self.spaces.clear();
        if let Some(mut cursor) = held {
            // It reads on, from files that another process would be free to use again.
            assert!(matches!(Options::new().open(&self.path), Err(Error::Locked { .. })));
            assert_eq!(cursor.last().unwrap(), maps[&any].len() > 0);
        }
        self.verify_closed();
        self.open(maps);
        self.check_all();
    }

    /// The store goes on as a kill would have left it.
    pub fn kill(&mut self) {
        self.note("kill".to_string());
        let maps = self.maps();
        let copy = self.new_dir();
        copy_as_killed(&self.path, &copy);
        let db = self.db.take().unwrap();
        self.let_go();
        self.spaces.clear();
        drop(db);
        std::fs::remove_dir_all(&self.path).unwrap();
        self.path = copy;
        if self.keep {
            // As found by the recovery that may turn out wrong.
            let found = self.root.path().join("killed");
            drop(std::fs::remove_dir_all(&found));
            files::copy(&self.path, &found);
        }
        if self.rng.one_in(3) {
            self.read_only(&maps);
        }
        self.open(maps);
        self.check_all();
    }

    /// A killed store, looked at without changing a byte.
    pub fn read_only(&mut self, maps: &BTreeMap<String, Map>) {
        let before = files::contents(&self.path);
        let db = self.opened(maps, Options::new().read_only(true), &self.path);
        for (name, map) in maps {
            compare(db.keyspace(name).unwrap().iter(), map, false, name);
        }
        assert!(matches!(db.put("x", "y"), Err(Error::ReadOnly)));
        drop(db);
        assert!(files::contents(&self.path) == before, "opening read-only changed something");
    }

    pub fn opened(&self, maps: &BTreeMap<String, Map>, mut options: Options, path: &Path) -> Db {
        for (name, _) in maps.iter().filter(|(_, m)| m.order == Order::NoCase) {
            options = options.keyspace_comparator(name, no_case());
        }
        options.open(path).unwrap()
    }

    /// Makes a checkpoint, and looks whether an older one still holds what it held.
    pub fn checkpoint(&mut self) {
        self.note("checkpoint".to_string());
        let dir = self.new_dir();
        self.db().checkpoint(&dir).unwrap();
        self.checkpoints.push((dir, self.maps()));
        let at = self.rng.below(self.checkpoints.len());
        self.check_checkpoint(at);
        if self.checkpoints.len() > 3 {
            let at = self.rng.below(self.checkpoints.len());
            let (dir, _) = self.checkpoints.swap_remove(at);
            Db::destroy(&dir).unwrap();
            assert!(!dir.exists());
        }
    }

    pub fn check_checkpoint(&self, at: usize) {
        let (dir, maps) = &self.checkpoints[at];
        let db = self.opened(maps, Options::new().memory(1 << 20), dir);
        for (name, map) in maps {
            compare(db.keyspace(name).unwrap().iter(), map, false, &format!("checkpoint {name}"));
        }
        db.close().unwrap();
    }

    pub fn verify_closed(&self) {
        let report = Db::verify_path(&self.path).unwrap();
        // Tables under the tests' own comparator cannot be checked without it.
        let problems: Vec<_> =
            report.problems.iter().filter(|p| !p.what.contains("test.nocase")).collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }

    /// The last comparisons; the number of calls in all.
    pub fn finish(mut self) -> u64 {
        self.check_kept();
        self.check_all();
        self.let_go();
        self.db.take().unwrap().close().unwrap();
        self.spaces.clear();
        self.verify_closed();
        for at in 0..self.checkpoints.len() {
            self.check_checkpoint(at);
        }
        self.calls
    }
}
