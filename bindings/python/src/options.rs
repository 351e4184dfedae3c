//! Options by name.

use esker::{Compression, Durability, KeyOrder};

use crate::error::{Fail, Outcome};

fn one_of<T>(what: &str, given: &str, known: &[(&str, T)]) -> Outcome<T>
where
    T: Clone,
{
    let found = known.iter().find(|(name, _)| *name == given);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        Fail::Invalid(format!("{what} is one of {}, not {given:?}", names.join(", ")))
    })
}

pub fn durability(given: &str) -> Outcome<Durability> {
    let known = [("buffered", Durability::Buffered), ("synced", Durability::Synced)];
    one_of("durability", given, &known)
}

pub fn compression(given: &str) -> Outcome<Compression> {
    let known =
        [("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];
    one_of("compression", given, &known)
}

pub fn order(given: &str) -> Outcome<KeyOrder> {
    one_of("order", given, &[("bytewise", KeyOrder::Bytewise), ("reverse", KeyOrder::Reverse)])
}
