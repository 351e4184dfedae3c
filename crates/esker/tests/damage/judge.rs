//! What a damaged store may answer.

use std::path::Path;
use std::time::Duration;

use esker::{Db, Error, Options, RepairReport};

use crate::common::files;
use crate::harm::{Harm, What, is_foreign, is_of_log, takes_segment};
use crate::reading::{Reading, read};
use crate::specimen::{Contents, Specimen};

/// Fails instead of hanging.
pub fn within_seconds(seconds: u64, work: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)),
    }
}

/// Names the damage when a test fails by it.
struct Named<'a>(&'a [Harm]);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|harm| println!("with this damage: {harm}"));
        }
    }
}

/// How much is tried of a damaged store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// It is verified, opened for reading, and read.
    Read,
    /// And repaired.
    Repair,
    /// And opened in every way.
    All,
}

/// Damages the specimen, which is as it was; looks at what it says; puts it back.
pub fn judge(specimen: &Specimen, harms: &[Harm], effort: Effort) {
    let _named = Named(harms);
    let dir = &specimen.dir;
    harms.iter().for_each(|harm| harm.apply(dir).unwrap());
    let foreign = harms.iter().all(is_foreign);
    let verified = Db::verify_path(dir);
    let sound = verified.as_ref().is_ok_and(|report| report.problems.is_empty());
    let torn = specimen.touches_last_frame();
    let case = Case { specimen, harms, sound, torn };
    let options = &specimen.plan.options;
    let before = (effort == Effort::All).then(|| files::contents(dir));
    let reading = case.look(options.clone().read_only(true), false);
    assert!(!foreign || sound && reading.errors.is_empty(), "{verified:?}, {:?}", reading.errors);
    if effort != Effort::Read {
        let repaired = dir.with_extension("repaired");
        drop(std::fs::remove_dir_all(&repaired));
        files::copy(dir, &repaired);
        case.repair(&repaired, &reading);
    }
    if let Some(before) = before {
        case.look(options.clone().read_only(true).paranoid_checks(true), true);
        assert!(files::contents(dir) == before, "reading changed a file");
        // One open for writing may change what the next finds.
        for paranoid in [false, true] {
            case.look(options.clone().paranoid_checks(paranoid), paranoid);
            let added = |h: &&Harm| is_foreign(h) && !matches!(h.what, What::Nothing);
            for harm in harms.iter().filter(added) {
                assert!(dir.join(&harm.file).exists(), "a file of somebody else's is gone");
            }
            specimen.restore();
            harms.iter().for_each(|harm| harm.apply(dir).unwrap());
        }
    }
    specimen.restore();
}

struct Case<'a> {
    specimen: &'a Specimen,
    harms: &'a [Harm],
    /// Whether verification said nothing.
    sound: bool,
    /// Whether the last frame of the log is hurt.
    torn: bool,
}

impl Case<'_> {
    /// Opens and reads it, and judges the answers.
    fn look(&self, options: Options, paranoid: bool) -> Reading {
        let specimen = self.specimen;
        let reading = read(specimen, &specimen.dir, options);
        if let Some(e) = reading.errors.first() {
            assert!(!self.sound, "verification saw nothing, but reading gave: {e}");
        }
        match &reading.scans {
            Some(found) if *found != specimen.last => {
                let allowed = self.may_be(found) && !(paranoid && self.hits_log_before_last());
                assert!(
                    allowed,
                    "wrong answers and no error (paranoid: {paranoid}): {} entries",
                    found.len()
                );
                let lost_end = self.harms.iter().any(takes_segment)
                    || self.torn
                    || self.harms.iter().any(is_of_log) && specimen.lacks_last_write(found);
                let told = !self.sound || self.is_blind() || lost_end;
                assert!(told, "verification saw nothing, but entries are missing");
            }
            // Some call had to fail: what the others say is right.
            None if self.simple() => {
                for (key, value) in &reading.gets {
                    assert!(specimen.last.get(key) == value.as_ref(), "get of {key:?}");
                }
            }
            _ => {}
        }
        reading
    }

    /// One damage, of a kind that leaves no doubt about what it did.
    fn simple(&self) -> bool {
        let one = |what: &What| matches!(what, What::Flip(..) | What::Cut(_) | What::Missing);
        matches!(self.harms, [harm] if one(&harm.what))
    }

    /// A paranoid open takes only the end of the log for torn.
    fn hits_log_before_last(&self) -> bool {
        self.simple()
            && is_of_log(&self.harms[0])
            && !self.specimen.is_last_log(&self.harms[0].file)
    }

    /// Whether a store with this damage may come back so, in silence: as it was at some moment since its
    /// last flush, when its log is hurt. Nothing of that was synced, so a power cut explains lost frames,
    /// and also a lost segment, which a writer in a hurry does not wait to be durable.
    fn may_be(&self, found: &Contents) -> bool {
        let log = !self.simple() || is_of_log(&self.harms[0]);
        *found == self.specimen.last || self.is_blind() || log && self.specimen.is_past(found)
    }

    /// What tells that the manifest lost its end are `CURRENT`, and the log that it names; nothing does where they
    /// are hurt too.
    fn is_blind(&self) -> bool {
        let any = |is: fn(&Harm) -> bool| self.harms.iter().any(is);
        any(|h| matches!(h.what, What::Cut(1..) | What::Zero(..)))
            && any(|h| h.file.starts_with("MANIFEST"))
            && any(|h| h.file.contains(".log") || h.file == "CURRENT")
    }

    /// Repairs a copy, twice: the second changes nothing, and what the first gives is no worse than what
    /// could be read before.
    fn repair(&self, dir: &Path, before: &Reading) {
        let options = &self.specimen.plan.options;
        let strict = options.clone().read_only(true).paranoid_checks(true);
        let (report, after) = self.repair_once(dir, strict);
        let (again, second) = self.repair_once(dir, options.clone());
        assert_eq!(again.lost, [], "lost in the second repair");
        assert_eq!(again.entries, report.entries, "entries after the second repair");
        assert!(after.scans == second.scans, "the second repair changed something");
        assert!(!self.sound || report.lost.is_empty(), "{:?} lost of a sound store", report.lost);
        let found = after.scans.as_ref().expect("a repaired store can be read");
        if report.lost.is_empty() {
            // The names of keyspaces go with the manifest; what they held has another name then.
            assert!(!after.renamed, "a keyspace is gone, and repair lost nothing");
            let right = match before.whole() {
                Some(before) => before == found || *found == self.specimen.last,
                None => self.may_be(found),
            };
            assert!(right, "lost and not named: {} entries", found.len());
        }
    }

    fn repair_once(&self, dir: &Path, options: Options) -> (RepairReport, Reading) {
        let report = Db::repair(dir).unwrap_or_else(|e| panic!("repair: {e}"));
        let verified = Db::verify_path(dir).unwrap();
        assert_eq!(verified.problems, [], "after repair");
        let reading = read(self.specimen, dir, options);
        let known = |e: &Error| matches!(e, Error::UnknownKeyspace { .. });
        assert!(reading.errors.iter().all(known), "after repair: {:?}", reading.errors);
        (report, reading)
    }
}
