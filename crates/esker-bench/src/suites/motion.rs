//! Stores that are written to as they are read.

use super::{Base, Section};
use crate::plan::{CaseId, Plan, Row, Unit};

const NAME: &str = "motion";

pub(super) fn sections(base: &Base) -> Vec<Section> {
    // Where each operation is dearer than the one before, the count alone would end with nobody's patience.
    let seconds_max = Some(base.plan.seconds_max.unwrap_or(base.seconds_max));
    let plan = Plan { seconds_max, ..base.plan.clone() };
    let row = |key: &str, name: &str| Row::new(key, Unit::OpsPerSecond).called(name);
    let queue =
        Section::new(NAME, "queue", "Queues: put at the tail, take the first and delete it", plan)
            .case(CaseId::Queue, [row("queue", "one waits")])
            .case(CaseId::QueueDeep, [row("queue1000", "1,000 wait")])
            .case(CaseId::QueueDrain, [row("drain", "a backlog is taken")]);
    vec![queue]
}
