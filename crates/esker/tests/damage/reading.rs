//! Reads a store by every path. What is wrong in itself, whatever was damaged, fails here: answers that
//! contradict each other, and values that a key never had.

use std::collections::BTreeMap;
use std::path::Path;

use esker::{Error, Options};

use crate::common::show;
use crate::specimen::{Contents, Key, OTHER, Specimen};

/// What a store gave away.
#[derive(Default)]
pub struct Reading {
    /// What iterators found, if none met an error.
    pub scans: Option<Contents>,
    /// What `get` found, where it was no error.
    pub gets: BTreeMap<Key, Option<Vec<u8>>>,
    pub errors: Vec<Error>,
    /// The second keyspace has lost its name; what it held is read all the same.
    pub renamed: bool,
}

impl Reading {
    /// All of the store, if there was no error.
    pub fn whole(&self) -> Option<&Contents> {
        self.scans.as_ref().filter(|_| self.errors.is_empty())
    }

    fn failed(e: Error) -> Reading {
        Reading { errors: vec![e], ..Reading::default() }
    }
}

pub fn read(specimen: &Specimen, dir: &Path, options: Options) -> Reading {
    let db = match options.open(dir) {
        Ok(db) => db,
        Err(e) => return Reading::failed(e),
    };
    let mut reading = Reading::default();
    let mut keyspaces = vec![db.default_keyspace().clone()];
    match db.keyspace(OTHER) {
        Ok(other) => keyspaces.push(other),
        Err(e) => {
            let mut names = db.keyspaces();
            names.retain(|name| name != "default");
            assert!(names.len() <= 1, "{names:?}");
            keyspaces.extend(names.iter().map(|name| db.keyspace(name).unwrap()));
            reading.renamed = true;
            reading.errors.push(e);
        }
    }
    let (mut scans, mut known) = (Some(Contents::new()), Contents::new());
    for (space, keyspace) in keyspaces.iter().enumerate() {
        let mut know = |key: &[u8], value: &[u8], by: &str| {
            let ever = specimen.ever_had(space, key, value);
            assert!(ever, "{by}: {} never had this value", show(key));
            if let Some(before) = known.insert((space, key.to_vec()), value.to_vec()) {
                assert!(before == value, "{by}: {} has two values", show(key));
            }
        };
        // In order, if there was no error on the way.
        let mut whole = Vec::new();
        for backward in [false, true] {
            let (mut met, mut sound) = (Vec::new(), true);
            let mut all = keyspace.iter().copied_out();
            while let Some(entry) = if backward { all.next_back() } else { all.next() } {
                match entry {
                    Ok((key, value)) => {
                        know(&key, &value, "an iterator");
                        met.push((key, value));
                    }
                    Err(e) => {
                        reading.errors.push(e);
                        sound = false;
                    }
                }
            }
            if backward {
                met.reverse();
            }
            if sound {
                whole.push(met);
            }
        }
        if whole.len() == 2 {
            assert!(whole[0] == whole[1], "iterators differ without an error");
        }
        for key in specimen.keys() {
            match keyspace.get(&key) {
                Err(e) => reading.errors.push(e),
                Ok(value) => {
                    let value = value.map(|v| v.to_vec());
                    if let Some(value) = &value {
                        know(&key, value, "get");
                    }
                    reading.gets.insert((space, key), value);
                }
            }
        }
        for (key, value) in reading.gets.iter().filter(|((at, _), _)| *at == space) {
            let missed = value.is_none() && known.contains_key(key);
            assert!(!missed, "get misses {}, which an iterator met", show(&key.1));
        }
        for scan in &whole {
            let order = |a: &[u8], b: &[u8]| if space == 0 { a < b } else { a > b };
            let sorted = scan.windows(2).all(|pair| order(&pair[0].0, &pair[1].0));
            assert!(sorted || reading.renamed, "an iterator is out of order");
            // What `get` gave is in each scan that came to its end.
            let map: BTreeMap<&[u8], &[u8]> = scan.iter().map(|(k, v)| (&k[..], &v[..])).collect();
            for ((_, key), value) in reading.gets.iter().filter(|((at, _), _)| *at == space) {
                let same = map.get(&key[..]).copied() == value.as_deref();
                assert!(same, "get and an iterator differ about {}", show(key));
            }
        }
        match (whole.len(), &mut scans) {
            (2, Some(all)) => {
                let entries = whole.swap_remove(0).into_iter();
                all.extend(entries.map(|(key, value)| ((space, key), value)));
            }
            _ => scans = None,
        }
    }
    drop(keyspaces);
    if let Err(e) = db.close() {
        reading.errors.push(e);
    }
    reading.scans = scans;
    reading
}
