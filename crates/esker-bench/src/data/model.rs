//! What a store must hold, and the check that it does.

use super::{Dataset, KeyBuf, KeyStream, Order, Rng};
use crate::engine::{Access, Direction, Engine, Reader};
use anyhow::{Result, bail};

/// The generation of every key: one byte each, 0 for a key that is not there.
#[derive(Debug, Clone)]
pub struct Model {
    generations: Vec<u8>,
}

impl Model {
    /// An empty store.
    pub fn empty(entries: u64) -> Self {
        Model { generations: vec![0; entries as usize] }
    }
    /// What as many writes as there are keys, in an order, leave in an empty store.
    pub fn filled(entries: u64, order: Order, seed: u64, generation: u32) -> Self {
        let mut model = Model::empty(entries);
        model.replay(order, seed, entries, generation);
        model
    }
    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.generations.len() as u64
    }
    /// A key written.
    pub fn put(&mut self, index: u64, generation: u32) {
        self.generations[index as usize] = generation as u8;
    }
    /// A key deleted.
    pub fn delete(&mut self, index: u64) {
        self.generations[index as usize] = 0;
    }
    /// The same `count` writes as a row did, replayed from its seed.
    pub fn replay(&mut self, order: Order, seed: u64, count: u64, generation: u32) {
        let mut stream = KeyStream::new(order, self.generations.len() as u64, seed);
        for _ in 0..count {
            self.put(stream.next_index(), generation);
        }
    }
    /// How many keys are there.
    pub fn count(&self) -> u64 {
        self.generations.iter().filter(|&&g| g != 0).count() as u64
    }
    /// The generation of a key, `None` when it is not there.
    pub fn generation(&self, index: u64) -> Option<u32> {
        match self.generations[index as usize] {
            0 => None,
            g => Some(g as u32),
        }
    }
    fn next_present(&self, from: u64) -> Option<u64> {
        (from..self.generations.len() as u64).find(|&i| self.generation(i).is_some())
    }
}

/// What a comparison found.
#[derive(Default)]
struct Findings {
    lost: u64,
    strange: u64,
    wrong: u64,
    first: Option<String>,
}

impl Findings {
    fn note(&mut self, what: &str, key: &[u8]) {
        if self.first.is_none() {
            self.first = Some(format!("{what} {}", key.escape_ascii()));
        }
    }
}

/// Compares the whole store with the model: order, keys and values by a scan, and a thousand keys,
/// present and not, by point reads. An error says what is lost or wrong.
pub fn verify<E: Engine>(engine: &E, data: &Dataset, model: &Model) -> Result<()> {
    let mut reader = engine.reader(Access::Quiet)?;
    let found = compare_scan(&mut reader, data, model)?;
    if let Some(first) = &found.first {
        bail!(
            "of {} entries {} are lost, {} have a wrong value, {} should not be there; first: {first}",
            model.count(),
            found.lost,
            found.wrong,
            found.strange
        );
    }
    sample_gets(&mut reader, data, model)
}

/// Compares a thousand keys, present and not, by point reads: for stores too large for more.
pub fn verify_sample<E: Engine>(engine: &E, data: &Dataset, model: &Model) -> Result<()> {
    sample_gets(&mut engine.reader(Access::Quiet)?, data, model)
}

fn compare_scan(reader: &mut impl Reader, data: &Dataset, model: &Model) -> Result<Findings> {
    let mut found = Findings::default();
    let mut expected = model.next_present(0);
    let (mut key_buf, mut value_buf) = (KeyBuf::new(), Vec::new());
    reader.scan(Direction::Forward, |key, value| {
        while let Some(index) = expected {
            let want = data.keys.write(index, &mut key_buf);
            if want > key {
                break;
            }
            expected = model.next_present(index + 1);
            if want < key {
                found.lost += 1;
                found.note("lost key", want);
                continue;
            }
            let generation = model.generation(index).unwrap_or(0);
            if data.values.value(index, generation, &mut value_buf) != value {
                found.wrong += 1;
                found.note("wrong value of key", want);
            }
            return;
        }
        found.strange += 1;
        found.note("unexpected key", key);
    })?;
    while let Some(index) = expected {
        found.lost += 1;
        found.note("lost key", data.keys.write(index, &mut key_buf));
        expected = model.next_present(index + 1);
    }
    Ok(found)
}

fn sample_gets(reader: &mut impl Reader, data: &Dataset, model: &Model) -> Result<()> {
    let mut rng = Rng::new(data.seed ^ 0x5A4D);
    let (mut key_buf, mut value_buf) = (KeyBuf::new(), Vec::new());
    for _ in 0..1000.min(data.entries) {
        let index = rng.below(data.entries);
        let key = data.keys.write(index, &mut key_buf);
        let got = reader.get(key, <[u8]>::to_vec)?;
        let want = model.generation(index).map(|g| data.values.value(index, g, &mut value_buf));
        if got.as_deref() != want {
            let what = if got.is_some() { "gave wrong data" } else { "found nothing" };
            bail!("a point read of key {} {what}", key.escape_ascii());
        }
        let key = data.keys.write_missing(index, &mut key_buf);
        if reader.get(key, |_| ())?.is_some() {
            bail!("a read of {}, never stored, found a value", key.escape_ascii());
        }
    }
    Ok(())
}
