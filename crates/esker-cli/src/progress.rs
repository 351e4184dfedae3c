//! A progress bar on standard error when that is a terminal, nothing otherwise.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Taken off the screen when dropped, so that an error or a summary stands alone.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts bytes, of `total` when that is known.
    pub fn bytes(what: &'static str, total: Option<u64>) -> Progress {
        Progress::new(
            what,
            total,
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
            "{spinner} {msg} {bytes} {bytes_per_sec} {elapsed}",
        )
    }

    /// Counts entries, of about `total` when that is known.
    pub fn entries(what: &'static str, total: Option<u64>) -> Progress {
        Progress::new(
            what,
            total,
            "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta} left",
            "{spinner} {msg} {human_pos} entries {per_sec} {elapsed}",
        )
    }

    /// Shows that something goes on whose length nobody knows.
    pub fn spinner(what: &'static str) -> Progress {
        Progress::new(what, None, "", "{spinner} {msg} {elapsed}")
    }

    fn new(what: &'static str, total: Option<u64>, bar: &str, spinner: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let total = total.filter(|&t| t > 0);
        let template = if total.is_some() { bar } else { spinner };
        let style = ProgressStyle::with_template(template).expect("templates are constants");
        let shown = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
            .with_style(style)
            .with_message(what);
        shown.enable_steady_tick(Duration::from_millis(200));
        Progress(shown)
    }

    /// To `position`. A total that was guessed too low grows.
    pub fn set(&self, position: u64) {
        if self.0.length().is_some_and(|total| position > total) {
            self.0.set_length(position);
        }
        self.0.set_position(position);
    }

    /// Off the screen, where somebody else still holds it.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
