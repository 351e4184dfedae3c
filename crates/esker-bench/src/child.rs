//! The process that measures one engine in one case.

use crate::audited;
use crate::calls::{self, Called};
use crate::cases;
use crate::chains;
use crate::data::{Dataset, Model};
use crate::engine::{Class, Config, Engine, Sync, Unsupported};
use crate::engines::{built, with_engine};
use crate::memory::{Memory, MemoryWatch};
use crate::plan::Plan;
use crate::protocol::{Message, Sample, Shape, Spec};
use crate::system::{self, Usage};
use crate::trust;
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a case is run with: its specification, and where its rows go.
pub struct Ctx<'a> {
    /// What to do.
    pub spec: &'a Spec,
    say: RefCell<Box<dyn FnMut(Message) + 'a>>,
    opened: RefCell<Opened>,
    meter: RefCell<Meter>,
}

/// What was used since the work of a row began, and, once that is over, until then.
#[derive(Default)]
struct Meter {
    begun: Usage,
    ended: Option<Usage>,
}

#[derive(Default)]
struct Opened {
    memory: Option<MemoryWatch>,
    class: Option<Class>,
    settings: String,
    shape: Option<Shape>,
    open_time: Duration,
    memory_bytes: u64,
    sync: bool,
}

impl<'a> Ctx<'a> {
    /// A context that hands messages to `say`.
    pub fn new(spec: &'a Spec, say: impl FnMut(Message) + 'a) -> Self {
        Ctx {
            spec,
            say: RefCell::new(Box::new(say)),
            opened: RefCell::default(),
            meter: RefCell::default(),
        }
    }
    /// Sizes and settings.
    pub fn plan(&self) -> &'a Plan {
        &self.spec.plan
    }
    /// Whether a row is wanted; what nobody wants is not measured.
    pub fn wants(&self, row: &str) -> bool {
        self.spec.rows.iter().any(|r| r == row)
    }
    /// The first row that is wanted, the only one of many cases.
    pub fn row(&self) -> &'a str {
        &self.spec.rows[0]
    }
    /// Says what goes on. What the process uses from here on counts for the next row.
    pub fn doing(&self, what: &str) {
        *self.meter.borrow_mut() = Meter { begun: Usage::now(), ended: None };
        self.going_on(what);
    }
    /// The same of work that changes a store: what was written before it is on the device first, since only a clean page that
    /// becomes dirty counts as written.
    pub fn doing_clean(&self, what: &str) -> Result<()> {
        system::write_back(&self.spec.dir).context("write the store to the device")?;
        self.doing(what);
        Ok(())
    }
    /// Says what goes on now, which counts for the same row.
    pub fn going_on(&self, what: &str) {
        (self.say.borrow_mut())(Message::Doing { what: what.to_string() });
    }
    /// Says that a row's work is over and is now verified.
    pub fn verifying(&self) {
        let used = self.used();
        self.meter.borrow_mut().ended = Some(used);
        // What is mapped and dirty now may be less when the row is reported.
        self.peak_memory();
        self.going_on("verifying");
    }
    /// What the row's work has used.
    pub fn used(&self) -> Usage {
        let meter = self.meter.borrow();
        meter.ended.unwrap_or_else(|| Usage::now().since(meter.begun))
    }
    /// Says that this process may be killed now.
    pub fn ready(&self) {
        (self.say.borrow_mut())(Message::Ready);
    }
    /// How the store of this case is opened.
    pub fn config(&self, data: &Dataset, sync: Sync) -> Config {
        let config = self.plan().config(data, sync);
        let (shared, only_reads) =
            (self.spec.case.has_threads(), chains::only_reads(self.spec.case, self.spec.step));
        let mut config = Config { shared, only_reads, ..config };
        config.tuning.extend(built::tuning_of(&self.spec.engine));
        config
    }
    /// Opens the store of this case.
    pub fn open<E: Engine>(&self, data: &Dataset, sync: Sync) -> Result<E> {
        let config = self.config(data, sync);
        let mut opened = self.opened.borrow_mut();
        // A shared library is loaded once in a process, where Esker is linked: neither its pages nor that time are the store's.
        E::version().context("open")?;
        // What is resident before the engine is there is the benchmark's own.
        opened.memory.get_or_insert_with(|| MemoryWatch::start(&self.spec.dir));
        let shape = Shape::of(data);
        let start = Instant::now();
        let engine = E::open(&self.spec.dir, &config).context("open")?;
        opened.open_time = start.elapsed();
        opened.class = Some(engine.class());
        opened.settings = engine.settings();
        opened.shape = Some(shape);
        opened.memory_bytes = config.memory;
        opened.sync = sync == Sync::Synced;
        Ok(engine)
    }
    /// Notes what a row's work has used and what the store takes at this moment, for a row that is reported later.
    pub fn noted(&self, sample: Sample) -> Sample {
        Sample { memory: self.peak_memory(), ..self.noted_in_passing(sample) }
    }
    /// The same while a clock runs: memory as it was looked at last, as looking takes milliseconds.
    pub fn noted_in_passing(&self, sample: Sample) -> Sample {
        let opened = self.opened.borrow();
        let memory = opened.memory.as_ref().map_or_else(Memory::default, MemoryWatch::seen);
        let disk_bytes = system::disk_bytes(&self.spec.dir);
        Sample { usage: Some(self.used()), disk_bytes, memory, ..sample }
    }
    /// Reports a row, with what is known of the store at this moment, unless that was [noted](Ctx::noted) before.
    pub fn report(&self, mut sample: Sample, verdict: &Result<()>) {
        if !self.wants(&sample.row) {
            return;
        }
        if let Err(e) = verdict {
            sample.failed = Some(Unsupported::or_error(e));
        }
        if sample.usage.is_none() {
            sample = self.noted(sample);
        }
        let opened = self.opened.borrow();
        sample.memory_bytes = opened.memory_bytes;
        sample.sync = opened.sync;
        sample.class = opened.class;
        sample.shape = sample.shape.or_else(|| opened.shape.clone());
        sample.settings.clone_from(&opened.settings);
        let plan = self.plan();
        if let (Some(limit), true) = (plan.memory_limit, opened.class.is_some()) {
            let raw_bytes = opened.shape.as_ref().map_or(0, |shape| shape.raw_bytes);
            sample = sample.with_note(format!(
                "{:.1} MiB of data within {} MiB of memory and page cache, of which {} MiB for the \
                 engine",
                raw_bytes as f64 / 1048576.0,
                limit >> 20,
                opened.memory_bytes >> 20,
            ));
        }
        (self.say.borrow_mut())(Message::Row(Box::new(sample)));
    }
    /// How long the engine took to open the store.
    pub fn open_time(&self) -> Duration {
        self.opened.borrow().open_time
    }
    /// The most memory of each kind so far, the benchmark's own aside.
    pub fn peak_memory(&self) -> Memory {
        self.opened.borrow().memory.as_ref().map_or_else(Memory::default, MemoryWatch::peak)
    }
    /// What the benchmark has noted of the store stays in memory while it is measured, and is not the engine's.
    pub fn set_aside(&self, model: &Model) {
        if let Some(watch) = &mut self.opened.borrow_mut().memory {
            watch.set_aside(model.bytes());
        }
    }
    /// What was used so far does not count: the engine had more than the row gives it.
    pub fn forget_peak_memory(&self) {
        if let Some(watch) = &self.opened.borrow().memory {
            watch.forget();
        }
    }
    /// The store's directory.
    pub fn dir(&self) -> &Path {
        &self.spec.dir
    }
}

/// Runs what the parent asks for (`args`: one JSON specification) and prints JSON lines; the exit
/// code. Called by the hidden command that the parent starts this executable with.
pub fn child_main(args: impl IntoIterator<Item = String>) -> i32 {
    let mut args = args.into_iter().peekable();
    if args.next_if(|word| word == trust::WORD).is_some() {
        return obey(args, run_job);
    }
    child_main_with(args, run_case)
}

/// [`child_main`] with the engines that `run_case` knows.
pub fn child_main_with(
    args: impl IntoIterator<Item = String>,
    run_case: impl FnOnce(&Ctx) -> Result<()>,
) -> i32 {
    obey(args, |spec: &Spec| {
        if let Some(path) = &spec.cgroup {
            crate::cgroup::join(path)?;
        }
        let ctx = Ctx::new(spec, |message| {
            let line = serde_json::to_string(&message).expect("a message is plain data");
            // A parent that is gone has nobody to tell, and this process dies with it.
            let _ = writeln!(std::io::stdout(), "{line}");
        });
        run_case(&ctx)
    })
}

/// Does what the parent says in the one argument, in JSON, and dies with it; the exit code.
pub(crate) fn obey<T: DeserializeOwned>(
    args: impl IntoIterator<Item = String>,
    run: impl FnOnce(&T) -> Result<()>,
) -> i32 {
    system::die_with_parent();
    let told = || -> Result<T> {
        let text = args.into_iter().next().context("this command is for esker bench itself")?;
        serde_json::from_str(&text)
            .context("told by another version; esker bench --setup builds engines anew")
    };
    match told().and_then(|told| run(&told)) {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("{}", Unsupported::or_error(&e));
            1
        }
    }
}

/// Runs a case with an engine, watched where that was asked for.
pub fn run_engine<E: Engine + 'static>(ctx: &Ctx) -> Result<()> {
    if !ctx.spec.audit {
        return cases::run::<E>(ctx);
    }
    calls::count();
    audited::wrap::<E>();
    cases::run::<audited::Audited>(ctx)?;
    let mapping = E::calls().iter().map(|(call, api)| (*call, api.to_string())).collect();
    let called = Called { counts: calls::counts(), mapping };
    (ctx.say.borrow_mut())(Message::Called(called));
    Ok(())
}

/// Runs a case in this process.
pub fn run_case(ctx: &Ctx) -> Result<()> {
    if ctx.spec.case.is_machine() {
        return crate::machine::run(ctx);
    }
    with_engine!(ctx.spec.engine.as_str(), E => run_engine::<E>(ctx))
        .unwrap_or_else(|| anyhow::bail!("no engine is called {}", ctx.spec.engine))
}

/// Does a job of `esker bench trust` in this process.
fn run_job(job: &trust::Job) -> Result<()> {
    with_engine!(job.engine.as_str(), E => trust::run_job::<E>(job))
        .unwrap_or_else(|| anyhow::bail!("no engine is called {}", job.engine))
}
