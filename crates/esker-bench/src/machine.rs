//! The machine's own limits, measured in the same run by the same loop as the engines: what a row
//! would show if storing cost nothing but moving the bytes.

use crate::child::Ctx;
use crate::data::{Dataset, KeyBuf, KeyStream, Order, Rng, mix};
use crate::device;
use crate::measure::{Recorder, Timing, Until};
use crate::plan::{CaseId, limits};
use crate::protocol::Sample;
use anyhow::{Context, Result};
use memmap2::MmapMut;
use std::fs::File;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Bytes of an entry's head: two lengths, as little as any log or page needs.
const HEAD: usize = 8;

/// Measures every limit that is wanted.
pub fn run(ctx: &Ctx) -> Result<()> {
    let (plan, data) = (ctx.plan(), ctx.plan().data()?);
    std::fs::create_dir_all(ctx.dir())?;
    let report = |sample| ctx.report(sample, &Ok(()));
    if ctx.spec.case == CaseId::MachineSync {
        let waits = device::fdatasync(&path(ctx, "sync"), plan.sync_ops, plan.deadline())?;
        report(Sample::of(limits::SYNC, &waits));
        return Ok(());
    }
    if ctx.spec.rows.iter().any(|row| row != limits::COPY_LARGE && row != limits::RAW) {
        let map = mapped(ctx, "copy", stored_bytes(&data))?;
        report_of(ctx, &data, map)?;
    }
    if ctx.wants(limits::COPY_LARGE) {
        let data = plan.large_data();
        let mut map = mapped(ctx, "large", stored_bytes(&data))?;
        copy(&data, &mut map, Timing::Every)?;
        report(Sample::of(limits::COPY_LARGE, &copy(&data, &mut map, Timing::Every)?));
    }
    report(Sample::figure(limits::RAW, data.raw_bytes(1) as f64));
    Ok(())
}

/// The three limits that share one mapping: filling it, walking it, reading from it at random.
fn report_of(ctx: &Ctx, data: &Dataset, mut map: MmapMut) -> Result<()> {
    for row in [limits::COPY_FRESH, limits::COPY] {
        let filled = copy(data, &mut map, Timing::Sampled)?;
        ctx.report(Sample::of(row, &filled), &Ok(()));
    }
    let start = Instant::now();
    let seen = walk(&map);
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(seen == data.entries, "the walk saw {seen} of {} entries", data.entries);
    ctx.report(Sample::rate(limits::SCAN, seen, seconds), &Ok(()));
    ctx.report(Sample::of(limits::ACCESS, &access(data, &map)?), &Ok(()));
    Ok(())
}

fn stored_bytes(data: &Dataset) -> u64 {
    data.raw_bytes(1) + data.entries * HEAD as u64
}

fn path(ctx: &Ctx, name: &str) -> PathBuf {
    ctx.dir().join(name)
}

fn mapped(ctx: &Ctx, name: &str, bytes: u64) -> Result<MmapMut> {
    let path = path(ctx, name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    file.set_len(bytes)?;
    // Space first, so that a full disk is an error here and not a fault in the mapping. Not every
    // file system can; then the limit is what it is.
    let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes);
    // SAFETY: a new file in a directory of our own, which nobody else truncates.
    unsafe { MmapMut::map_mut(&file) }.with_context(|| format!("map {}", path.display()))
}

/// Formats each key, makes each value and copies both.
fn copy(data: &Dataset, map: &mut MmapMut, timing: Timing) -> Result<Recorder> {
    let mut stream = KeyStream::new(Order::Sequential, data.entries, data.seed);
    let (mut key, mut value) = (KeyBuf::new(), Vec::new());
    let mut recorder = Recorder::new(timing);
    let mut at = 0;
    recorder.run(Until::ops(data.entries), || {
        let index = stream.next_index();
        let key = data.keys.write(index, &mut key);
        let value = data.values.value(index, 1, &mut value);
        let (key_end, end) = (at + HEAD + key.len(), at + HEAD + key.len() + value.len());
        map[at..at + 4].copy_from_slice(&(key.len() as u32).to_le_bytes());
        map[at + 4..at + HEAD].copy_from_slice(&(value.len() as u32).to_le_bytes());
        map[at + HEAD..key_end].copy_from_slice(key);
        map[key_end..end].copy_from_slice(value);
        at = end;
        Ok(())
    })?;
    Ok(recorder)
}

/// Touches every key and value; how many there were.
fn walk(map: &[u8]) -> u64 {
    let len_at = |at: usize| {
        let bytes = map[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    };
    let (mut at, mut seen, mut sum) = (0, 0, 0u64);
    while at < map.len() {
        let key_end = at + HEAD + len_at(at);
        let end = key_end + len_at(at + 4);
        let first = map.get(key_end).copied().unwrap_or(0); // a value may be empty
        let touched = [map[at + HEAD], map[key_end - 1], first, map[end - 1]];
        sum = sum.wrapping_add(u32::from_le_bytes(touched) as u64);
        at = end;
        seen += 1;
    }
    black_box(sum);
    seen
}

/// Formats a key, then reads eight bytes at an address that depends on the ones read before, so that
/// the processor cannot overlap two.
fn access(data: &Dataset, map: &[u8]) -> Result<Recorder> {
    let mut rng = Rng::new(mix(data.seed ^ 3));
    let mut key = KeyBuf::new();
    let words = (map.len() as u64 / 8).max(1);
    let mut carried = 0u64;
    let mut recorder = Recorder::new(Timing::Sampled);
    recorder.run(Until::ops(data.entries), || {
        black_box(data.keys.write(rng.below(data.entries), &mut key));
        let at = (((mix(carried) as u128 * words as u128) >> 64) as usize) * 8;
        let word = map.get(at..at + 8).map_or([0; 8], |w| w.try_into().expect("eight bytes"));
        carried = u64::from_le_bytes(word) ^ rng.next_u64();
        Ok(())
    })?;
    black_box(carried);
    Ok(recorder)
}
