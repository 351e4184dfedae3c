//! Operations that write, and those that move what was written.

use esker::{Compression, Durability, Error, KeyspaceOptions, WriteBatch};

use crate::common::model::Map;
use crate::common::show;
use crate::world::World;

impl World {
    pub fn put(&mut self) {
        let (space, value) = (self.any_space(), self.value());
        let key = self.key(&space);
        self.note(format!("put {space} {} {} bytes", show(&key), value.len()));
        self.calls += 1;
        let s = self.spaces.get_mut(&space).unwrap();
        s.handle.put(&key, &value).unwrap();
        s.map.put(&key, &value);
    }

    pub fn delete(&mut self) {
        let space = self.any_space();
        let key = self.probe(&space);
        self.note(format!("delete {space} {}", show(&key)));
        self.calls += 1;
        let s = self.spaces.get_mut(&space).unwrap();
        s.handle.delete(&key).unwrap();
        s.map.delete(&key);
    }

    /// Some writes at once, across keyspaces, some keys twice.
    pub fn batch(&mut self) {
        let mut batch = WriteBatch::new();
        let n = if self.rng.one_in(10) { self.rng.below(300) } else { self.rng.below(12) };
        let mut key = None;
        for _ in 0..n {
            let space = self.any_space();
            if key.is_none() || !self.rng.one_in(5) {
                key = Some(self.key(&space));
            }
            let key = key.clone().unwrap();
            if self.rng.one_in(4) {
                let s = self.spaces.get_mut(&space).unwrap();
                batch.delete_in(&s.handle, &key);
                s.map.delete(&key);
            } else {
                let value = self.value();
                let s = self.spaces.get_mut(&space).unwrap();
                batch.put_in(&s.handle, &key, &value);
                s.map.put(&key, &value);
            }
        }
        self.calls += n as u64;
        self.note(format!("write {batch:?}"));
        let synced = self.rng.one_in(10);
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        self.db().write_with(batch, durability).unwrap();
    }

    pub fn bulk_load(&mut self) {
        let space = self.any_space();
        let n = self.rng.pick(&[0, 1, 50, 400]);
        let mut load = Map::new(self.spaces[&space].map.order);
        for _ in 0..n {
            let (key, value) = (self.key(&space), self.value());
            load.put(&key, &value);
        }
        let mut entries: Vec<_> = load.iter().collect();
        let at = self.rng.below(entries.len().max(1));
        let doubled = at > 0 && self.rng.one_in(4);
        if doubled {
            entries[at] = entries[at - 1].clone();
        }
        self.note(format!("bulk_load {space} {} entries, one twice: {doubled}", entries.len()));
        self.calls += entries.len() as u64;
        let s = self.spaces.get_mut(&space).unwrap();
        let loaded = s.handle.bulk_load(entries.iter().map(|(k, v)| (k, v)));
        if doubled {
            match loaded {
                Err(Error::NotSorted { position }) => assert_eq!(position, at as u64),
                other => panic!("{other:?}"),
            }
            return;
        }
        assert_eq!(loaded.unwrap(), entries.len() as u64);
        entries.iter().for_each(|(k, v)| s.map.put(k, v));
    }

    pub fn compact(&mut self) {
        let space = self.any_space();
        let (low, high) = (self.bound(&space), self.bound(&space));
        self.note(format!("compact {space} {low:?} {high:?}"));
        self.spaces[&space].handle.compact_range((low, high)).unwrap();
    }

    pub fn flush(&mut self) {
        self.note("flush".to_string());
        self.db().flush().unwrap();
        let stats = self.db().stats();
        assert!(stats.keyspaces.iter().all(|k| k.memtable_entries == 0), "{stats:#?}");
    }

    pub fn settle(&mut self) {
        self.note("settle".to_string());
        self.db().wait_for_compactions().unwrap();
    }

    pub fn create_keyspace(&mut self) {
        if self.spaces.len() == 4 {
            return;
        }
        let name = self.rng.pick(&["a", "b", "c"]).to_string();
        let order = self.rng.pick(&self.orders);
        let mut options = KeyspaceOptions::new().comparator(order.key_order());
        if self.rng.one_in(2) {
            options = options.compression(Compression::Zstd).blob_threshold(100);
        }
        self.note(format!("create keyspace {name} {options:?}"));
        match self.db().create_keyspace(&name, options) {
            Ok(handle) => {
                assert!(!self.spaces.contains_key(&name));
                // What older snapshots saw under this name was another keyspace.
                self.snapshots.iter_mut().for_each(|(_, maps)| drop(maps.remove(&name)));
                self.add_space(handle, Map::new(order));
            }
            Err(Error::KeyspaceExists { .. }) => assert!(self.spaces.contains_key(&name)),
            Err(e) => panic!("{e}"),
        }
    }

    pub fn drop_keyspace(&mut self) {
        let name = self.rng.pick(&["a", "b", "c"]);
        self.note(format!("drop keyspace {name}"));
        match self.db().drop_keyspace(name) {
            Ok(()) => self.dropped.push(self.spaces.remove(name).expect("it was there").handle),
            Err(Error::UnknownKeyspace { .. }) => assert!(!self.spaces.contains_key(name)),
            Err(e) => panic!("{e}"),
        }
        for handle in &self.dropped {
            assert!(matches!(handle.get("x"), Err(Error::KeyspaceDropped { .. })));
            assert!(matches!(handle.put("x", "y"), Err(Error::KeyspaceDropped { .. })));
            let mut batch = WriteBatch::new();
            batch.put_in(handle, "x", "y");
            assert!(matches!(self.db().write(batch), Err(Error::KeyspaceDropped { .. })));
        }
    }
}
