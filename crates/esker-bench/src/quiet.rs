//! Whether the machine was quiet: the load before the run, and what others took of the processors while it went on.

use procfs::process::Process;
use procfs::{Current, CurrentSI, KernelStats, LoadAverage};

/// From these on a machine is called unquiet: processes that wanted to run before the run, the share of all processors that other
/// processes took during it, and the share that went to other guests of the same hardware.
const LOAD: f64 = 0.3;
const OTHERS: f64 = 0.1;
const STOLEN: f64 = 0.02;

/// What is watched from the start of a run.
#[derive(Debug)]
pub struct Quiet {
    /// Processes that wanted to run in the minute before, on average.
    pub load_before: Option<f64>,
    /// Processes that were measured, and how many of them before the machine had come to rest.
    pub measured: u32,
    /// See `measured`.
    pub restless: u32,
    begun: Option<Times>,
}

/// Processor time so far, in seconds of one processor.
#[derive(Debug, Clone, Copy)]
struct Times {
    all: f64,
    busy: f64,
    stolen: f64,
    own: f64,
}

/// Shares of the processors since the run began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Of other processes, the kernel's own among them.
    pub others: f64,
    /// Of other guests of the same hardware.
    pub stolen: f64,
}

impl Quiet {
    /// From now on.
    pub fn begin() -> Self {
        // The kernel tells two digits behind the point.
        let load = LoadAverage::current().ok();
        let load_before = load.map(|load| (f64::from(load.one) * 100.0).round() / 100.0);
        Quiet { load_before, measured: 0, restless: 0, begun: Times::now() }
    }
    /// What others took until now.
    pub fn shares(&self) -> Option<Shares> {
        Some(Times::now()?.since(self.begun?))
    }
    /// What was not quiet, in a sentence without its end; `None` of a quiet machine.
    pub fn complaint(&self) -> Option<String> {
        let load = self.load_before.filter(|load| *load > LOAD);
        let shares = self.shares();
        let others = shares.map(|s| s.others).filter(|share| *share > OTHERS);
        let stolen = shares.map(|s| s.stolen).filter(|share| *share > STOLEN);
        let percent = |share: f64| format!("{:.0} % of the processors", share * 100.0);
        let parts = [
            load.map(|load| format!("a load of {load:.1} before the run")),
            others.map(|share| format!("{} taken by other processes during it", percent(share))),
            stolen.map(|share| format!("{} taken by other guests of the host", percent(share))),
            (self.restless > 0).then(|| {
                let of = self.measured;
                format!("pages still to be written before {} of {of} processes", self.restless)
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let said = format!("The machine was not quiet: {}", parts.join(", "));
        (!parts.is_empty()).then_some(said)
    }
}

impl Times {
    fn now() -> Option<Times> {
        let total = KernelStats::current().ok()?.total;
        let own = Process::myself().ok()?.stat().ok()?;
        let per_second = procfs::ticks_per_second() as f64;
        let ticks = |ticks: &[u64]| ticks.iter().sum::<u64>() as f64 / per_second;
        let interrupts = [total.irq.unwrap_or(0), total.softirq.unwrap_or(0)];
        let busy = ticks(&[total.user, total.nice, total.system]) + ticks(&interrupts);
        let stolen = ticks(&[total.steal.unwrap_or(0)]);
        let idle = ticks(&[total.idle, total.iowait.unwrap_or(0)]);
        let children = own.cutime.max(0) as f64 + own.cstime.max(0) as f64;
        let own = ticks(&[own.utime, own.stime]) + children / per_second;
        Some(Times { all: busy + stolen + idle, busy, stolen, own })
    }
    fn since(self, begun: Times) -> Shares {
        let all = (self.all - begun.all).max(1e-9);
        let others = (self.busy - begun.busy) - (self.own - begun.own);
        Shares {
            others: (others / all).clamp(0.0, 1.0),
            stolen: ((self.stolen - begun.stolen) / all).clamp(0.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Quiet {
        Quiet { load_before: Some(0.1), measured: 9, restless: 0, begun: None }
    }

    #[test]
    fn our_own_work_is_nobody_elses() {
        let begun = Times { all: 100.0, busy: 50.0, stolen: 1.0, own: 5.0 };
        let now = Times { all: 120.0, busy: 60.0, stolen: 2.0, own: 11.0 };
        assert_eq!(now.since(begun), Shares { others: 0.2, stolen: 0.05 });
        let alone = Times { own: 16.0, stolen: 1.0, ..now };
        assert_eq!(alone.since(begun), Shares { others: 0.0, stolen: 0.0 });
    }

    #[test]
    fn an_unquiet_machine_is_said_to_be_one() {
        assert_eq!(quiet().complaint(), None);
        let loaded = Quiet { load_before: Some(2.4), restless: 3, ..quiet() };
        let said = loaded.complaint().unwrap();
        assert!(said.contains("load of 2.4") && said.contains("3 of 9 processes"), "{said}");
    }

    #[test]
    fn processor_time_goes_on() {
        let begun = Times::now().expect("the kernel counts");
        let start = std::time::Instant::now();
        while Times::now().unwrap().own < begun.own + 0.05 && start.elapsed().as_secs() < 20 {
            std::hint::spin_loop();
        }
        let now = Times::now().unwrap();
        assert!(now.own >= begun.own + 0.05 && now.busy > begun.busy && now.all > begun.all);
    }
}
