//! The simulated disk keeps its own rules.

use std::path::Path;

use super::*;

fn contents(env: &SimEnv, path: &str) -> Option<Vec<u8>> {
    let file = env.open(Path::new(path), OpenMode::Read).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

fn make(env: &SimEnv, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = env.open(Path::new(path), OpenMode::CreateNew).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

fn after(env: &SimEnv, cut: Cut) -> SimEnv {
    env.freeze().draw(cut, &mut Rng::new(7), true).0
}

#[test]
fn what_is_not_synced_is_lost_and_what_is_stays() {
    let env = SimEnv::new(1, true);
    let file = make(&env, "/a", b"first");
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a"), None);
    file.sync().unwrap();
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a"), None);
    env.sync_dir(Path::new("/")).unwrap();
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a").unwrap(), b"first");
    file.write_all_at(b"second", 0).unwrap();
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a").unwrap(), b"first");
    assert_eq!(contents(&after(&env, Cut::Kill), "/a").unwrap(), b"second");
}

#[test]
fn mapped_writes_are_the_files_and_wait_for_a_sync() {
    let env = SimEnv::new(1, true);
    let file = make(&env, "/a", &[1; 5000]);
    file.sync().unwrap();
    env.sync_dir(Path::new("/")).unwrap();
    let map = file.map(5000, true).unwrap();
    // SAFETY: inside the map, and nobody else has it.
    unsafe { map.as_ptr().add(4999).write(9) };
    let mut last = [0];
    file.read_exact_at(&mut last, 4999).unwrap();
    assert_eq!(last, [9]);
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a").unwrap()[4999], 1);
    file.sync().unwrap();
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a").unwrap()[4999], 9);
}

#[test]
fn images_take_any_of_what_was_not_synced() {
    let env = SimEnv::new(1, true);
    let file = make(&env, "/a", &[1; 8192]);
    file.sync().unwrap();
    env.sync_dir(Path::new("/")).unwrap();
    file.write_all_at(&[2; 8192], 0).unwrap();
    env.rename(Path::new("/a"), Path::new("/b")).unwrap();
    let (mut pages, mut names, mut torn) = (std::collections::HashSet::new(), [0, 0], 0);
    for n in 0..400 {
        let (image, _) = env.freeze().draw(Cut::Random, &mut Rng::new(n), true);
        let old = contents(&image, "/a");
        names[usize::from(old.is_some())] += 1;
        let bytes = old.or_else(|| contents(&image, "/b")).expect("a rename is whole");
        assert!(bytes.chunks(512).all(|s| s.iter().all(|b| *b == s[0])), "a torn sector");
        pages.insert((bytes[0], bytes[8191]));
        torn += usize::from(bytes[0] != bytes[4095]);
    }
    assert_eq!(pages.len(), 4);
    assert!(names[0] > 50 && names[1] > 50 && torn > 20, "{names:?} {torn}");
}

#[test]
fn a_failed_sync_loses_the_pages_for_later_ones_too() {
    let env = SimEnv::new(1, true);
    let file = make(&env, "/a", b"old");
    file.sync().unwrap();
    env.sync_dir(Path::new("/")).unwrap();
    file.write_all_at(b"new", 0).unwrap();
    let at = env.call_count();
    env.fail(Some(FaultPlan { at, fault: Fault::Eio, from_then_on: false }));
    file.sync().unwrap_err();
    assert!(env.violations().is_empty());
    file.sync().unwrap();
    assert_eq!(contents(&after(&env, Cut::Nothing), "/a").unwrap(), b"old");
    assert_eq!(contents(&after(&env, Cut::Kill), "/a").unwrap(), b"new");
    assert_eq!(env.violations().len(), 1);
}

#[test]
fn links_locks_and_holes() {
    let env = SimEnv::new(1, true);
    let file = make(&env, "/a", &[1; 12288]);
    env.hard_link(Path::new("/a"), Path::new("/b")).unwrap();
    assert_eq!(file.links().unwrap(), 2);
    file.punch(4096, 4096).unwrap();
    assert_eq!(file.allocated().unwrap(), 8192);
    assert_eq!(contents(&env, "/b").unwrap()[4095..4097], [1, 0]);
    let lock = |mode| env.lock(Path::new("/LOCK"), mode).map_err(|e| e.kind());
    let own = lock(LockMode::Exclusive).unwrap();
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        assert_eq!(lock(mode).err(), Some(io::ErrorKind::WouldBlock));
    }
    drop(own);
    let shared = (lock(LockMode::Shared).unwrap(), lock(LockMode::Shared).unwrap());
    assert_eq!(lock(LockMode::Exclusive).err(), Some(io::ErrorKind::ResourceBusy));
    drop(shared);
    let own = lock(LockMode::Exclusive).unwrap();
    // The lock is the file's, not the name's.
    env.remove(Path::new("/LOCK")).unwrap();
    assert!(lock(LockMode::Exclusive).is_ok());
    drop(own);
    env.create_dir(Path::new("/d")).unwrap();
    env.create_dir(Path::new("/d/e")).unwrap();
    assert!(env.create_dir(Path::new("/d/e")).is_err());
    env.sync_dir(Path::new("/d")).unwrap();
    // Its parent's name is not durable.
    assert!(!after(&env, Cut::Nothing).exists(Path::new("/d/e")).unwrap());
    env.sync_dir(Path::new("/")).unwrap();
    assert!(after(&env, Cut::Nothing).exists(Path::new("/d/e")).unwrap());
}
