//! Files and space that nothing needs any more are given back: the list is in [`obsolete_files`](crate::obsolete_files).

use std::time::Duration;

use crate::store::Store;

/// So long files are removed at a time where somebody waits for a flush, or soon will.
const REMOVING: Duration = Duration::from_millis(50);

impl Store {
    /// Removes, punches and pools what no reader holds any more.
    pub(crate) fn delete_obsolete(&self, trim: bool) {
        let start = self.env.now();
        let enough = || self.env.now().saturating_sub(start) >= REMOVING && self.flush_is_due();
        self.delete_obsolete_until(trim, || self.tell_end(), enough);
    }

    /// The same without an end while there is more: the room is wanted.
    pub(crate) fn delete_all_obsolete(&self) {
        self.delete_obsolete_until(true, || self.tell_end(), || false);
    }

    /// The same for somebody who has the version set: `tell_end` lets `CURRENT` say where the manifest ends; `enough`
    /// says when to stop.
    pub(crate) fn delete_obsolete_until(
        &self,
        trim: bool,
        tell_end: impl FnOnce() -> bool,
        enough: impl Fn() -> bool,
    ) {
        self.segments.collect(trim);
        if !self.obsolete.is_empty() && self.check_dir().is_ok() {
            self.obsolete.run(&*self.env, tell_end, enough);
        }
    }

    /// Where an edit is under way, the next round comes soon enough. Nobody who has an edit waits while files are removed.
    fn tell_end(&self) -> bool {
        self.version_set.try_lock().is_some_and(|mut v| v.tell_manifest_length().is_ok())
    }
}
