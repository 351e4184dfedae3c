//! Where a write waits: as long as [`throttle`](super::throttle) says, and at the cap until a flush has ended.

use crate::batch::WriteBatch;
use crate::error::Result;
use crate::stall::cost::CostModel;
use crate::stall::throttle::Admission;
use crate::store::{Counters, Store};
use crate::wal::Record;

impl Store {
    /// Lets a writer wait when flushes do not keep up.
    #[inline]
    pub(crate) fn delay_write(&self, cost: impl FnOnce(CostModel) -> u64) -> Result<()> {
        match self.backpressure.due(cost) {
            None => Ok(()),
            Some(together) => self.wait_for_flushes(together),
        }
    }

    /// What a batch weighs as debt.
    #[cold]
    pub(crate) fn cost_of_batch(&self, cost_model: CostModel, batch: &WriteBatch) -> u64 {
        let names = self.keyspaces.read();
        let cost_of = |r: Record<'_>| match names.by_id.get(&r.keyspace) {
            Some(ks) => ks.cost_of(cost_model, r.key, r.value),
            None => 0,
        };
        batch.records().map(|(_, r)| cost_of(r)).sum()
    }

    #[cold]
    fn wait_for_flushes(&self, cost: u64) -> Result<()> {
        let start = self.env.now();
        let mut admission = self.backpressure.admit(cost);
        // Until when it waits for what it owes, which it owes once.
        let mut owed = None;
        loop {
            match admission {
                Admission::Go => break,
                Admission::Wait { slice, until } => {
                    owed = Some(until);
                    self.env.sleep(slice);
                    self.check_writable()?;
                    admission = self.backpressure.more(until);
                }
                Admission::Full => {
                    self.room.forget();
                    self.signal.wake();
                    let stuck = || self.room.why_no_flush().map_or(Ok(()), Err);
                    self.signal.wait_until(|| {
                        match self.check_writable().and_then(|()| stuck()) {
                            Err(e) => Some(Err(e)),
                            Ok(()) => (self.backpressure.pending() < self.backpressure.cap())
                                .then_some(Ok(())),
                        }
                    })?;
                    admission = match owed {
                        Some(until) => self.backpressure.more(until),
                        None => self.backpressure.admit(cost),
                    };
                }
            }
        }
        let waited = self.env.now().saturating_sub(start);
        Counters::add(&self.counters.slowdown_ns, waited.as_nanos() as u64);
        Ok(())
    }
}
