//! A store and its model, side by side.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::PathBuf;

use esker::{Compression, Db, Durability, Iter, Keyspace, Options, Slice, Snapshot};

use crate::common::model::{Entry, Map, Order, SHAPES, Shape, value};
use crate::common::rng::Rng;

/// One keyspace and what it should hold.
pub struct Space {
    pub handle: Keyspace,
    pub map: Map,
    pub shape: Shape,
    /// Keys that are used of its shape.
    pub keys: usize,
}

/// A store, its model, and things taken from both earlier that must not change.
pub struct World {
    pub rng: Rng,
    pub orders: Vec<Order>,
    pub root: tempfile::TempDir,
    pub path: PathBuf,
    /// Directories made, for names.
    pub dirs: u32,
    pub db: Option<Db>,
    pub threshold: usize,
    pub serial: u64,
    /// Keys written and read, and moves of cursors and iterators; comparisons of whole keyspaces
    /// are not counted.
    pub calls: u64,
    pub spaces: BTreeMap<String, Space>,
    /// The shape of keys, and how many, by the name of the keyspace.
    pub shapes: BTreeMap<String, (Shape, usize)>,
    pub dropped: Vec<Keyspace>,
    pub snapshots: Vec<(Snapshot, BTreeMap<String, Map>)>,
    pub iterators: Vec<(Iter, std::vec::IntoIter<Entry>)>,
    pub slices: Vec<(Slice, Vec<u8>)>,
    pub checkpoints: Vec<(PathBuf, BTreeMap<String, Map>)>,
    pub log: VecDeque<String>,
    pub trace: bool,
    /// Whether the directory of a failure stays.
    pub keep: bool,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.trace {
            println!("the last operations:");
            self.log.iter().for_each(|line| println!("  {line}"));
        }
        if std::thread::panicking() && self.keep {
            self.root.disable_cleanup(true);
            println!("its files are in {}", self.root.path().display());
        }
    }
}

impl World {
    pub fn new(seed: u64, orders: &[Order]) -> World {
        let mut rng = Rng::new(seed);
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("0");
        let mut world = World {
            threshold: rng.pick(&[64, 200, 1000, 4096]),
            rng,
            orders: orders.to_vec(),
            root,
            path,
            dirs: 0,
            db: None,
            serial: 0,
            calls: 0,
            spaces: BTreeMap::new(),
            shapes: BTreeMap::new(),
            dropped: Vec::new(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            slices: Vec::new(),
            checkpoints: Vec::new(),
            log: VecDeque::new(),
            trace: std::env::var_os("ESKER_TRACE").is_some(),
            keep: std::env::var_os("ESKER_KEEP").is_some(),
        };
        let order = world.rng.pick(orders);
        world.open(BTreeMap::from([("default".to_string(), Map::new(order))]));
        world
    }

    pub fn note(&mut self, line: String) {
        if self.trace {
            println!("{line}");
        }
        if self.log.len() == 60 {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }

    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("open")
    }

    pub fn options(&mut self) -> Options {
        let rng = &mut self.rng;
        let options = Options::new()
            .memory(1 << 20)
            .segment_size(rng.pick(&[64 << 10, 128 << 10, 256 << 10, 1 << 20]))
            .block_size(rng.pick(&[4096, 4096, 8192, 65536]))
            .table_size(rng.pick(&[4 << 20, 8 << 10, 32 << 10]))
            .compression(rng.pick(&[Compression::None, Compression::Lz4, Compression::Zstd]))
            .blob_threshold(self.threshold)
            .paranoid_checks(rng.one_in(4))
            .flush_on_close(!rng.one_in(4));
        if rng.one_in(8) { options.durability(Durability::Synced) } else { options }
    }

    /// Opens the store at `self.path`, which should hold `maps`.
    pub fn open(&mut self, maps: BTreeMap<String, Map>) {
        let mut options = self.options().comparator(maps["default"].order.key_order());
        for (name, map) in maps.iter().filter(|(_, m)| m.order == Order::NoCase) {
            options = options.keyspace_comparator(name, map.order.key_order());
        }
        self.note(format!("open {options:?}"));
        let db = options.open(&self.path).unwrap();
        let mut names = db.keyspaces();
        names.sort();
        assert_eq!(names, maps.keys().cloned().collect::<Vec<_>>(), "keyspaces");
        for (name, map) in maps {
            self.add_space(db.keyspace(&name).unwrap(), map);
        }
        self.db = Some(db);
    }

    pub fn add_space(&mut self, handle: Keyspace, map: Map) {
        let rng = &mut self.rng;
        let fresh = || (rng.pick(&SHAPES), rng.pick(&[20, 300, 3000]));
        let (shape, keys) = *self.shapes.entry(handle.name().to_string()).or_insert_with(fresh);
        self.spaces.insert(handle.name().to_string(), Space { handle, map, shape, keys });
    }

    pub fn maps(&self) -> BTreeMap<String, Map> {
        self.spaces.iter().map(|(n, s)| (n.clone(), s.map.clone())).collect()
    }

    pub fn new_dir(&mut self) -> PathBuf {
        self.dirs += 1;
        self.root.path().join(self.dirs.to_string())
    }

    pub fn any_space(&mut self) -> String {
        let at = self.rng.below(self.spaces.len());
        self.spaces.keys().nth(at).unwrap().clone()
    }

    pub fn key(&mut self, space: &str) -> Vec<u8> {
        let s = &self.spaces[space];
        s.shape.key(self.rng.below(s.keys) as u64)
    }

    /// A key that is seldom there, close to one that may be.
    pub fn probe(&mut self, space: &str) -> Vec<u8> {
        let mut key = self.key(space);
        match self.rng.below(6) {
            0 => key.push(0),
            1 => drop(key.pop()),
            2 => {
                if let Some(last) = key.last_mut() {
                    *last = last.wrapping_add(1);
                }
            }
            3 => key = key.to_ascii_uppercase(),
            _ => {}
        }
        key
    }

    pub fn bound(&mut self, space: &str) -> Bound<Vec<u8>> {
        match self.rng.below(5) {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Included(self.probe(space)),
            _ => Bound::Excluded(self.probe(space)),
        }
    }

    pub fn value(&mut self) -> Vec<u8> {
        self.serial += 1;
        value(&mut self.rng, self.serial, self.threshold)
    }

    /// One operation on the store and on the model.
    pub fn step(&mut self) {
        match self.rng.below(1000) {
            0..320 => self.put(),
            320..410 => self.delete(),
            410..480 => self.batch(),
            480..640 => self.read_points(false),
            640..680 => self.read_points(true),
            680..760 => self.scan(false),
            760..800 => self.scan(true),
            800..850 => self.walk(false),
            850..890 => self.walk(true),
            890..910 => self.snapshot(),
            910..930 => self.keep_iterator(),
            930..945 => self.keep_slice(),
            945..958 => self.check_kept(),
            958..965 => self.bulk_load(),
            965..972 => self.compact(),
            972..978 => self.flush(),
            978..981 => self.settle(),
            981..984 => self.create_keyspace(),
            984..986 => self.drop_keyspace(),
            986..989 => self.check_all(),
            989..992 => self.reopen(),
            992..996 => self.kill(),
            996..998 => self.checkpoint(),
            _ => self.look(),
        }
    }
}
