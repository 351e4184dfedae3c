//! The process that does a [`Job`] with an engine: writes until it is killed, or reads and says what
//! it found.

use super::job::{Job, Setting, Task};
use crate::engine::{Access, Direction, Engine, Hint, Reader, Unsupported, Writer};
use anyhow::{Context, Error, Result};
use esker_trust::{Act, Call, Fact, Key, Message, Op, Player, Say, Source, Space, play, read};

/// Address space of a process that reads what is damaged: a length that is read from a damaged file
/// must not take the machine's memory. LMDB maps one GiB of it.
const ADDRESS_SPACE: u64 = 8 << 30;

/// Seconds of processor time after which such a process is taken to hang.
const CPU_SECONDS: u64 = 60;

/// Does a job with an engine.
pub fn run<E: Engine>(job: &Job) -> Result<()> {
    limit()?;
    match &job.task {
        Task::Write { first, close } => {
            let engine = open::<E>(job)?;
            let mut writing = Writing { engine: &engine, writer: None };
            play(&mut writing, job.script, 0, *first, false).map_err(Error::msg)?;
            drop(writing);
            if *close { engine.close() } else { kill_itself() }
        }
        Task::Read(calls) => {
            if let Err(e) = open(job).and_then(|engine| read_all::<E>(engine, job, calls)) {
                Say::Fact(Fact::Error(format!("{e:#}"))).say();
            }
            Ok(())
        }
    }
}

/// No memory beyond measure, no files of dead processes.
fn limit() -> Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = |n, most| Rlimit { current: Some(n), maximum: Some(most) };
    setrlimit(Resource::As, limit(ADDRESS_SPACE, ADDRESS_SPACE))?;
    // At the first of the two it is a signal of its own, which tells a loop from other ends.
    setrlimit(Resource::Cpu, limit(CPU_SECONDS, CPU_SECONDS + 10))?;
    Ok(setrlimit(Resource::Core, limit(0, 0))?)
}

fn open<E: Engine>(job: &Job) -> Result<E> {
    let engine = E::open(&job.dir, &job.config).context("open")?;
    let setting = Setting { class: Some(engine.class()), settings: engine.settings() };
    Say::Note(serde_json::to_string(&setting)?).say();
    Message::Opened.say();
    Ok(engine)
}

/// Reads everything. Closing comes last, as it may go wrong in a way of its own.
fn read_all<E: Engine>(engine: E, job: &Job, calls: &[Call]) -> Result<()> {
    let mut reading = Reading(engine.reader(Access::Quiet)?);
    read(&mut reading, job.script, calls, |fact| Say::Fact(fact).say());
    drop(reading);
    engine.close().context("close")
}

fn kill_itself() -> Result<()> {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    // The signal is on its way.
    loop {
        std::thread::park();
    }
}

/// What an engine of the benchmark can do as a store under test: its writes are as durable as it was
/// opened for.
struct Writing<'a, E: Engine + 'a> {
    engine: &'a E,
    writer: Option<E::Writer<'a>>,
}

impl<E: Engine> Writing<'_, E> {
    fn act(&mut self, op: &Op) -> Result<()> {
        if op.act == Act::Settle {
            self.writer = None;
            return self.engine.settle_fully();
        }
        if self.writer.is_none() {
            self.writer = Some(self.engine.writer(Hint::Any)?);
        }
        let writer = self.writer.as_mut().context("a writer")?;
        for change in &op.changes {
            let key = change.key.bytes();
            match (op.act, change.value()) {
                (Act::Put, Some(value)) => writer.put(&key, &value)?,
                (Act::Delete, None) => writer.delete(&key)?,
                (Act::Batch, Some(value)) => writer.batch_put(&key, &value)?,
                (act, _) => return Err(Unsupported::new(format!("{act:?}")).into()),
            }
        }
        if op.act == Act::Batch { writer.batch_commit() } else { Ok(()) }
    }
}

impl<E: Engine> Player for Writing<'_, E> {
    fn perform(&mut self, op: &Op) -> esker_trust::Result<()> {
        self.act(op).map_err(|e| format!("{e:#}"))
    }
}

struct Reading<R>(R);

impl<R: Reader> Source for Reading<R> {
    fn get(&mut self, key: Key) -> esker_trust::Result<Option<Vec<u8>>> {
        self.0.get(&key.bytes(), <[u8]>::to_vec).map_err(|e| format!("{e:#}"))
    }

    fn scan(
        &mut self,
        _space: Space,
        back: bool,
        see: &mut dyn FnMut(&[u8], &[u8]),
    ) -> esker_trust::Result<bool> {
        let direction = if back { Direction::Reverse } else { Direction::Forward };
        match self.0.scan(direction, see) {
            Ok(_) => Ok(true),
            Err(e) if Unsupported::is_cause_of(&e) => Ok(false),
            Err(e) => Err(format!("{e:#}")),
        }
    }
}
