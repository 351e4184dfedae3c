//! The process that does a [`Job`] with an engine: writes until it is killed, or reads and says what
//! it found.

use super::entry;
use super::job::{Dump, Finding, Job, Say, Task};
use super::script::{self, Op};
use super::store;
use crate::engine::{Access, Direction, Engine, Hint, Reader, Unsupported, Writer};
use crate::system;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::Write;

/// Address space of a process that reads what is damaged: a length that is read from a damaged file
/// must not take the machine's memory. LMDB maps one GiB of it.
const ADDRESS_SPACE: u64 = 8 << 30;

/// Seconds of processor time after which such a process is taken to hang.
const CPU_SECONDS: u64 = 60;

/// Does what `args` says (one job, in JSON) with the engine that `run` knows; the exit code.
pub fn main(args: impl IntoIterator<Item = String>, run: impl FnOnce(&Job) -> Result<()>) -> i32 {
    system::die_with_parent();
    let job = || -> Result<Job> {
        let text =
            args.into_iter().next().context("this command is for esker bench trust itself")?;
        serde_json::from_str(&text)
            .context("a job of another version; esker bench --setup builds engines anew")
    };
    match job().and_then(|job| run(&job)) {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("{}", Unsupported::or_error(&e));
            1
        }
    }
}

/// Does a job with an engine.
pub fn run<E: Engine>(job: &Job) -> Result<()> {
    limit()?;
    match job.task {
        Task::Write { seed, first } => write(open::<E>(job)?, seed, first),
        Task::Dump => dump(open::<E>(job)?),
        Task::Build { close } => build(open::<E>(job)?, close),
        Task::Read => read::<E>(job),
    }
}

/// No memory beyond measure, no files of dead processes.
fn limit() -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let limit = |n, most| Rlimit { current: Some(n), maximum: Some(most) };
        setrlimit(Resource::As, limit(ADDRESS_SPACE, ADDRESS_SPACE))?;
        // At the first of the two it is a signal of its own, which tells a loop from other ends.
        setrlimit(Resource::Cpu, limit(CPU_SECONDS, CPU_SECONDS + 10))?;
        setrlimit(Resource::Core, limit(0, 0))?;
    }
    Ok(())
}

fn say(what: &Say) -> Result<()> {
    line(&serde_json::to_string(what)?)
}

/// One call of `write`: whoever is killed leaves whole lines.
fn line(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{text}\n").as_bytes()).context("the parent is gone")
}

fn open<E: Engine>(job: &Job) -> Result<E> {
    let engine = E::open(&job.dir, &job.config).context("open")?;
    say(&Say::Opened(engine.class(), engine.settings()))?;
    Ok(engine)
}

fn write<E: Engine>(engine: E, seed: u64, first: u64) -> Result<()> {
    let mut writer = engine.writer(Hint::Any)?;
    for number in first.. {
        let op = Op::of(seed, number);
        match &op {
            Op::Put(key) => writer.put(&entry::key(*key), &entry::value(*key, number))?,
            Op::Delete(key) => writer.delete(&entry::key(*key))?,
            Op::Batch(keys) => {
                for key in keys {
                    writer.batch_put(&entry::key(*key), &entry::value(*key, number))?;
                }
                writer.batch_commit()?;
            }
        }
        line(&format!("a{number}"))?;
    }
    Ok(())
}

fn build<E: Engine>(engine: E, close: bool) -> Result<()> {
    store::build(&engine)?;
    if close {
        return engine.close();
    }
    say(&Say::Built)?;
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    // The signal is on its way.
    loop {
        std::thread::park();
    }
}

fn dump<E: Engine>(engine: E) -> Result<()> {
    let mut reader = engine.reader(Access::Quiet)?;
    let (mut entries, mut strange, mut last) = (BTreeMap::new(), Vec::new(), None);
    reader.scan(Direction::Forward, |key, value| match entry::read(key, value) {
        Ok((key, version)) => {
            if last.replace(key) >= Some(key) {
                strange.push(format!("a scan shows key {key} out of order"));
            }
            entries.insert(key, version);
        }
        Err(e) => strange.push(e.to_string()),
    })?;
    let mut back = Vec::new();
    let reverse = reader.scan(Direction::Reverse, |key, value| {
        back.extend(entry::read(key, value).ok());
    });
    match reverse {
        Ok(_) if !back.iter().rev().copied().eq(entries.iter().map(|(k, v)| (*k, *v))) => {
            strange.push("a scan from the end shows something else".to_string());
        }
        Err(e) if !Unsupported::is_cause_of(&e) => bail!(e.context("scan from the end")),
        _ => {}
    }
    for key in 0..script::KEYS {
        let got = reader.get(&entry::key(key), |bytes| entry::version_of(key, bytes).ok())?;
        if got != entries.get(&key).map(|version| Some(*version)) {
            strange.push(format!("get of key {key} gives something else than a scan"));
        }
    }
    drop(reader);
    let (wrong, first) = (strange.len() as u64, strange.into_iter().next());
    say(&Say::Dumped(Dump { entries, wrong, first }))?;
    engine.close()
}

/// Reads everything; whatever an engine answers is written down, and no error ends it.
fn read<E: Engine>(job: &Job) -> Result<()> {
    let mut finding = Finding::default();
    match open::<E>(job) {
        Err(e) => finding.error(&e),
        Ok(engine) => {
            match engine.reader(Access::Quiet) {
                Err(e) => finding.error(&e),
                Ok(mut reader) => {
                    get_all(&mut reader, &mut finding)?;
                    scan_all(&mut reader, &mut finding)?;
                }
            }
            // Said before the store is closed, which may go wrong in a way of its own.
            say(&Say::Read(finding.clone()))?;
            if let Err(e) = engine.close() {
                finding.error(&e.context("close"));
            }
        }
    }
    say(&Say::Read(finding))
}

fn get_all(reader: &mut impl Reader, finding: &mut Finding) -> Result<()> {
    for key in 0..store::KEYS {
        match reader.get(&entry::key(key), |bytes| entry::version_of(key, bytes)) {
            Ok(None) => judge(finding, "get", key, None)?,
            Ok(Some(Ok(version))) => judge(finding, "get", key, Some(version))?,
            Ok(Some(Err(e))) => wrong(finding, format!("get: {e}"))?,
            Err(e) => finding.error(&e.context(format!("get of key {key}"))),
        }
    }
    Ok(())
}

fn scan_all(reader: &mut impl Reader, finding: &mut Finding) -> Result<()> {
    let mut found = vec![None; store::KEYS as usize];
    let mut strange = Vec::new();
    let mut last = None;
    let outcome = reader.scan(Direction::Forward, |key, value| match entry::read(key, value) {
        Ok((key, version)) if key < store::KEYS => {
            if last.replace(key) >= Some(key) && strange.len() < 10 {
                strange.push(format!("scan: key {key} is out of order"));
            }
            found[key as usize] = Some(version);
        }
        Ok((key, _)) => strange.push(format!("scan: key {key}, which nobody wrote")),
        Err(e) if strange.len() < 10 => strange.push(format!("scan: {e}")),
        Err(_) => {}
    });
    for text in strange {
        wrong(finding, text)?;
    }
    match &outcome {
        Ok(_) => {}
        Err(e) => finding.error(&anyhow::anyhow!("scan: {e:#}")),
    }
    for (key, version) in (0..store::KEYS).zip(found) {
        // A scan that ended with an error has not said that anything is missing.
        if version.is_some() || outcome.is_ok() {
            judge(finding, "scan", key, version)?;
        }
    }
    Ok(())
}

/// Which write of a key was returned: the right one, an older one, or none that there ever was.
fn judge(finding: &mut Finding, call: &str, key: u32, is: Option<u64>) -> Result<()> {
    let must = store::expected(key);
    if is == must {
        return Ok(());
    }
    let text = || {
        let (is, must) = (entry::told(is), entry::told(must));
        format!("{call}: key {key} gives {is} and must give {must}")
    };
    if is.is_some_and(|version| !store::was_written(key, version)) {
        return wrong(finding, text());
    }
    finding.lost += 1;
    finding.first_lost.get_or_insert_with(text);
    Ok(())
}

fn wrong(finding: &mut Finding, text: String) -> Result<()> {
    finding.wrong += 1;
    if finding.first_wrong.is_none() {
        say(&Say::Wrong(text.clone()))?;
        finding.first_wrong = Some(text);
    }
    Ok(())
}
