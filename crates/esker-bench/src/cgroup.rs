//! A memory cgroup around a child bounds its memory and page cache together: the honest way to make
//! a store larger than memory for engines that read through mappings and engines that do not.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A memory cgroup, removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    /// Makes a group bounded to `bytes`; an error says what right is missing.
    pub fn create(bytes: u64) -> Result<Self> {
        let name = format!("esker-bench-{}", std::process::id());
        let mut tried = Vec::new();
        for (parent, limit_file) in candidates() {
            match try_create(&parent.join(&name), limit_file, bytes) {
                Ok(group) => return Ok(group),
                Err(e) => tried.push(format!("{}: {e:#}", parent.display())),
            }
        }
        if tried.is_empty() {
            bail!("no memory cgroup is mounted below /sys/fs/cgroup");
        }
        bail!("no right to make a memory cgroup (try as root): {}", tried.join("; "))
    }

    /// Whether a process in it was killed because all of them together needed more than the limit.
    pub fn has_killed(&self) -> bool {
        // Version 2 and version 1 of the interface.
        let counts = ["memory.events", "memory.oom_control"];
        counts.iter().filter_map(|file| fs::read_to_string(self.path.join(file)).ok()).any(|text| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.any(|(name, count)| name == "oom_kill" && count.trim() != "0")
        })
    }

    /// Where it is, for the child to [`join`].
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The last child may still be on its way out.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Moves this process into a group.
pub fn join(path: &Path) -> Result<()> {
    fs::write(path.join("cgroup.procs"), "0")
        .or_else(|_| fs::write(path.join("cgroup.procs"), std::process::id().to_string()))
        .with_context(|| format!("cannot join {}", path.display()))
}

/// Directories a group may be made in, and the file of its limit: below our own group first, then
/// at the root, in version 1 and version 2 of the interface.
fn candidates() -> Vec<(PathBuf, &'static str)> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own_path = |wanted: &str| {
        own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|c| c == wanted).then(|| path.trim_start_matches('/'))
        })
    };
    let mut all = Vec::new();
    let v1 = Path::new("/sys/fs/cgroup/memory");
    if v1.join("memory.limit_in_bytes").exists() || v1.join("cgroup.procs").exists() {
        all.extend(own_path("memory").map(|p| (v1.join(p), "memory.limit_in_bytes")));
        all.push((v1.to_path_buf(), "memory.limit_in_bytes"));
    }
    let v2 = Path::new("/sys/fs/cgroup");
    if v2.join("cgroup.controllers").exists() {
        if let Some(path) = own_path("") {
            let own_dir = v2.join(path);
            // A group with processes of its own cannot hand memory on to children; its parent may.
            all.extend(own_dir.parent().map(|p| (p.to_path_buf(), "memory.max")));
            all.push((own_dir, "memory.max"));
        }
        all.push((v2.to_path_buf(), "memory.max"));
    }
    all.retain(|(parent, _)| parent.is_dir());
    all
}

fn try_create(path: &Path, limit_file: &str, bytes: u64) -> Result<MemoryGroup> {
    if let Some(parent) = path.parent() {
        // Needed in version 2 only, and often done already.
        let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
    }
    fs::create_dir(path).context("mkdir")?;
    let group = MemoryGroup { path: path.to_path_buf() };
    fs::write(path.join(limit_file), bytes.to_string()).context(limit_file.to_string())?;
    Ok(group)
}
