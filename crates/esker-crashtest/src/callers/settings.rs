//! Options at both ends of every range.

use esker::{Compression, Durability, KeyOrder, Options};

use super::draw::pick;
use crate::script::Rng;

/// Options that can be looked at, printed and made again.
#[derive(Clone, Debug)]
pub struct Settings {
    pub memory: u64,
    pub segment: Option<u64>,
    pub block: usize,
    pub separate: usize,
    pub compression: Compression,
    pub durability: Durability,
    pub paranoid: bool,
    pub flush_on_close: bool,
}

impl Settings {
    pub fn draw(rng: &mut Rng) -> Settings {
        Settings {
            memory: pick(rng, &[1 << 20, 1 << 20, 8 << 20, 128 << 20, 16 << 30]),
            segment: pick(rng, &[Some(64 << 10), Some(64 << 10), Some(1 << 20), None]),
            block: pick(rng, &[4096, 4096, 16384, 65536]),
            separate: pick(rng, &[64, 1000, 4096, usize::MAX >> 8]),
            compression: pick(rng, &[Compression::None, Compression::Lz4, Compression::Zstd]),
            durability: pick(
                rng,
                &[Durability::Buffered, Durability::Buffered, Durability::Synced],
            ),
            paranoid: rng.one_in(4),
            flush_on_close: !rng.one_in(4),
        }
    }

    /// Small, so that everything happens often.
    pub fn small(rng: &mut Rng) -> Settings {
        let segment = Some(pick(rng, &[64 << 10, 256 << 10, 1 << 20]));
        let durability = Durability::Buffered;
        Settings {
            memory: pick(rng, &[1 << 20, 4 << 20]),
            segment,
            durability,
            ..Settings::draw(rng)
        }
    }

    pub fn options(&self) -> Options {
        let options = Options::new()
            .memory(self.memory)
            .block_size(self.block)
            .blob_threshold(self.separate)
            .compression(self.compression)
            .durability(self.durability)
            .paranoid_checks(self.paranoid)
            .flush_on_close(self.flush_on_close);
        match self.segment {
            Some(bytes) => options.segment_size(bytes),
            None => options,
        }
    }

    /// With the orders of these keyspaces; those that the store knows by itself need none.
    pub fn with_orders<'a>(
        &self,
        orders: impl IntoIterator<Item = (&'a str, KeyOrder)>,
    ) -> Options {
        let custom = orders.into_iter().filter(|(_, o)| matches!(o, KeyOrder::Custom(_)));
        custom.fold(self.options(), |options, (name, order)| match name {
            "default" => options.comparator(order),
            name => options.keyspace_comparator(name, order),
        })
    }

    /// The size of a log segment, by what the documentation says.
    pub fn segment_bytes(&self) -> u64 {
        self.segment.unwrap_or((self.memory / 8).clamp(2 << 20, 64 << 20))
    }
}
