//! How far a run is and how long it will still take.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A step of the run: which case, which engine.
pub type Step = (usize, String);

/// The bar on a terminal; hidden where standard error is none.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    left: Left,
}

impl Progress {
    /// A bar over all steps of all repetitions.
    pub fn new(steps: Vec<Step>) -> Self {
        let bar = ProgressBar::new(steps.len() as u64);
        let style = ProgressStyle::with_template("{elapsed} [{wide_bar}] {pos}/{len} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.enable_steady_tick(Duration::from_millis(500));
        Progress { bar, left: Left::new(steps) }
    }
    /// What goes on in the step that runs.
    pub fn doing(&self, engine: &str, what: &str) {
        let left = match self.left.estimate() {
            Some(left) => format!("about {} left, ", HumanDuration(left)),
            None => String::new(),
        };
        self.bar.set_message(format!("{left}{engine}: {what}"));
    }
    /// The next step is done; it took so long.
    pub fn done(&mut self, since: Instant) {
        self.left.done(since.elapsed());
        self.bar.inc(1);
    }
    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is left, told from what was: a step that ran before takes as long again, one of a case
/// that ran with other engines as long as they took, any other as long as all on average.
#[derive(Debug)]
struct Left {
    steps: Vec<Step>,
    done: usize,
    took: HashMap<Step, Duration>,
}

impl Left {
    fn new(steps: Vec<Step>) -> Self {
        Left { steps, done: 0, took: HashMap::new() }
    }
    fn done(&mut self, took: Duration) {
        if let Some(step) = self.steps.get(self.done) {
            self.took.insert(step.clone(), took);
        }
        self.done += 1;
    }
    fn estimate(&self) -> Option<Duration> {
        let mean = |all: &[&Duration]| {
            let sum: Duration = all.iter().copied().sum();
            sum.checked_div(all.len() as u32)
        };
        let overall = mean(&self.took.values().collect::<Vec<_>>())?;
        let mut of_case: HashMap<usize, Vec<&Duration>> = HashMap::new();
        for ((case, _), took) in &self.took {
            of_case.entry(*case).or_default().push(took);
        }
        let means: HashMap<usize, Option<Duration>> =
            of_case.into_iter().map(|(case, all)| (case, mean(&all))).collect();
        let expected = |step: &Step| {
            let of_case = || means.get(&step.0).copied().flatten().unwrap_or(overall);
            self.took.get(step).copied().unwrap_or_else(of_case)
        };
        Some(self.steps.iter().skip(self.done).map(expected).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_from_what_was() {
        let step = |case, engine: &str| (case, engine.to_string());
        let round = [step(0, "a"), step(0, "b"), step(1, "a"), step(1, "b")];
        let mut left = Left::new([round.clone(), round].concat());
        assert_eq!(left.estimate(), None);
        left.done(Duration::from_secs(10));
        assert_eq!(left.estimate(), Some(Duration::from_secs(70)));
        left.done(Duration::from_secs(20));
        left.done(Duration::from_secs(3));
        // The other of case 1 as this one; then the four again.
        assert_eq!(left.estimate(), Some(Duration::from_secs(3 + 10 + 20 + 3 + 3)));
        left.done(Duration::from_secs(5));
        assert_eq!(left.estimate(), Some(Duration::from_secs(38)));
    }
}
