//! An engine for audits, that notes each call and hands it on. The engine inside is known at run time only, so that cases are
//! compiled for it once; what that costs does not matter to counts.

use crate::calls::{Call, note};
use crate::engine::{Access, Class, Config, Direction, Engine, Hint, Reader, Writer};
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::OnceLock;

/// What is asked of an engine's type.
#[derive(Clone, Copy)]
struct Type {
    open: fn(&Path, &Config) -> Result<Audited>,
    put_in_order: fn(&Path, &Config) -> Result<()>,
}

static TYPE: OnceLock<Type> = OnceLock::new();

/// From now on [`Audited`] is this engine.
pub fn wrap<E: Engine + 'static>() {
    TYPE.get_or_init(|| Type { open: open::<E>, put_in_order: E::put_in_order });
}

fn wrapped() -> Result<Type> {
    TYPE.get().copied().context("no engine to audit")
}

fn open<E: Engine + 'static>(dir: &Path, config: &Config) -> Result<Audited> {
    let engine = E::open(dir, config)?;
    Ok(Audited {
        settings: engine.settings(),
        class: engine.class(),
        compresses: engine.compresses(),
        loads_in_bulk: engine.loads_in_bulk(),
        engine: Box::new(engine),
    })
}

/// What is called of an [`Engine`] that is open, as an object.
trait AnyEngine: Sync {
    fn any_writer(&self, hint: Hint) -> Result<Box<dyn Writer + '_>>;
    fn any_reader(&self, access: Access) -> Result<Box<dyn AnyReader + '_>>;
    fn any_set_memory(&self, bytes: u64) -> Result<bool>;
    fn any_settle(&self) -> Result<()>;
    fn any_compact(&self) -> Result<()>;
    fn any_close(self: Box<Self>) -> Result<()>;
}

/// [`Reader`] as an object.
trait AnyReader {
    fn any_get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<()>;
    fn any_seek(&mut self, key: &[u8], count: u64, see: &mut See<'_>) -> Result<u64>;
    fn any_scan(&mut self, direction: Direction, see: &mut See<'_>) -> Result<u64>;
    fn any_renew(&mut self) -> Result<()>;
    fn any_yield_view(&mut self) -> Result<()>;
}

type See<'a> = dyn FnMut(&[u8], &[u8]) + 'a;

impl<E: Engine> AnyEngine for E {
    fn any_writer(&self, hint: Hint) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(self.writer(hint)?))
    }
    fn any_reader(&self, access: Access) -> Result<Box<dyn AnyReader + '_>> {
        Ok(Box::new(self.reader(access)?))
    }
    fn any_set_memory(&self, bytes: u64) -> Result<bool> {
        self.set_memory(bytes)
    }
    fn any_settle(&self) -> Result<()> {
        self.settle()
    }
    fn any_compact(&self) -> Result<()> {
        self.compact()
    }
    fn any_close(self: Box<Self>) -> Result<()> {
        (*self).close()
    }
}

impl<R: Reader> AnyReader for R {
    fn any_get(&mut self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.get(key, see).map(|_| ())
    }
    fn any_seek(&mut self, key: &[u8], count: u64, see: &mut See<'_>) -> Result<u64> {
        self.seek(key, count, see)
    }
    fn any_scan(&mut self, direction: Direction, see: &mut See<'_>) -> Result<u64> {
        self.scan(direction, see)
    }
    fn any_renew(&mut self) -> Result<()> {
        self.renew()
    }
    fn any_yield_view(&mut self) -> Result<()> {
        self.yield_view()
    }
}

/// The engine that was wrapped last.
pub struct Audited {
    engine: Box<dyn AnyEngine>,
    settings: String,
    class: Class,
    compresses: bool,
    loads_in_bulk: bool,
}

impl Engine for Audited {
    type Writer<'a> = AuditedWriter<'a>;
    type Reader<'a> = AuditedReader<'a>;

    fn version() -> Result<String> {
        Ok(String::new())
    }
    fn open(dir: &Path, config: &Config) -> Result<Self> {
        note(Call::Open, 1);
        (wrapped()?.open)(dir, config)
    }
    fn settings(&self) -> String {
        self.settings.clone()
    }
    fn class(&self) -> Class {
        self.class
    }
    fn compresses(&self) -> bool {
        self.compresses
    }
    fn loads_in_bulk(&self) -> bool {
        self.loads_in_bulk
    }
    fn writer(&self, hint: Hint) -> Result<AuditedWriter<'_>> {
        note(Call::Writer, 1);
        Ok(AuditedWriter(self.engine.any_writer(hint)?))
    }
    fn reader(&self, access: Access) -> Result<AuditedReader<'_>> {
        note(Call::Reader, 1);
        Ok(AuditedReader(self.engine.any_reader(access)?))
    }
    fn set_memory(&self, bytes: u64) -> Result<bool> {
        note(Call::SetMemory, 1);
        self.engine.any_set_memory(bytes)
    }
    fn settle(&self) -> Result<()> {
        note(Call::Settle, 1);
        self.engine.any_settle()
    }
    fn compact(&self) -> Result<()> {
        note(Call::Compact, 1);
        self.engine.any_compact()
    }
    fn put_in_order(dir: &Path, config: &Config) -> Result<()> {
        note(Call::Compact, 1);
        (wrapped()?.put_in_order)(dir, config)
    }
    fn close(self) -> Result<()> {
        note(Call::Close, 1);
        self.engine.any_close()
    }
}

/// Its writer.
pub struct AuditedWriter<'a>(Box<dyn Writer + 'a>);

impl Writer for AuditedWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        note(Call::Put, 1);
        self.0.put(key, value)
    }
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        note(Call::Delete, 1);
        self.0.delete(key)
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        note(Call::BatchPut, 1);
        self.0.batch_put(key, value)
    }
    fn batch_commit(&mut self) -> Result<()> {
        note(Call::BatchCommit, 1);
        self.0.batch_commit()
    }
}

impl Drop for AuditedWriter<'_> {
    fn drop(&mut self) {
        note(Call::WriterEnd, 1);
    }
}

/// Its reader.
pub struct AuditedReader<'a>(Box<dyn AnyReader + 'a>);

impl Reader for AuditedReader<'_> {
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        note(Call::Get, 1);
        let (mut see, mut seen) = (Some(see), None);
        self.0.any_get(key, &mut |value| seen = see.take().map(|see| see(value)))?;
        Ok(seen)
    }
    fn seek(&mut self, key: &[u8], count: u64, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        note(Call::Seek, 1);
        let seen = self.0.any_seek(key, count, &mut see)?;
        note(Call::Entry, seen);
        Ok(seen)
    }
    fn scan(&mut self, direction: Direction, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
        note(Call::Scan, 1);
        let seen = self.0.any_scan(direction, &mut see)?;
        note(Call::Entry, seen);
        Ok(seen)
    }
    fn renew(&mut self) -> Result<()> {
        note(Call::Renew, 1);
        self.0.any_renew()
    }
    fn yield_view(&mut self) -> Result<()> {
        note(Call::YieldView, 1);
        self.0.any_yield_view()
    }
}
