//! Directories: the names as they are, the names that are durable, and the changes in between.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    /// Its number.
    File(usize),
}

pub(super) type Tree = BTreeMap<PathBuf, Node>;

/// A change of a directory.
#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Add(PathBuf, Node),
    Remove(PathBuf, Node),
    Rename(PathBuf, PathBuf, Node),
}

impl NameChange {
    pub(super) fn apply(&self, tree: &mut Tree) {
        match self {
            NameChange::Add(path, node) => {
                tree.insert(path.clone(), *node);
            }
            NameChange::Remove(path, node) => remove(tree, path, *node),
            NameChange::Rename(from, to, node) => {
                remove(tree, from, *node);
                tree.insert(to.clone(), *node);
            }
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        let within = |p: &Path| p.parent() == Some(dir);
        match self {
            NameChange::Add(path, _) | NameChange::Remove(path, _) => within(path),
            NameChange::Rename(from, to, _) => within(from) || within(to),
        }
    }
}

impl fmt::Display for NameChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameChange::Add(path, _) => write!(f, "add {}", path.display()),
            NameChange::Remove(path, _) => write!(f, "remove {}", path.display()),
            NameChange::Rename(a, b, _) => write!(f, "rename {} to {}", a.display(), b.display()),
        }
    }
}

/// Takes a name away if it still stands for `node`: of changes that get to the device one by one,
/// an earlier one may be missing.
fn remove(tree: &mut Tree, path: &Path, node: Node) {
    if tree.get(path) == Some(&node) {
        tree.remove(path);
    }
}

/// All names of a disk, by full path.
#[derive(Debug)]
pub(super) struct Namespace {
    pub now: Tree,
    pub durable: Tree,
    /// What happened since, in order.
    pub pending: Vec<NameChange>,
}

impl Namespace {
    pub(super) fn settled(tree: Tree) -> Namespace {
        Namespace { now: tree.clone(), durable: tree, pending: Vec::new() }
    }

    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    /// The changes in `dir` become durable.
    pub(super) fn sync(&mut self, dir: &Path) {
        let (synced, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|c| c.is_in(dir));
        self.pending = rest;
        for change in synced {
            change.apply(&mut self.durable);
        }
    }

    /// Paths of what is in `dir`.
    pub(super) fn within(&self, dir: &Path) -> Vec<&PathBuf> {
        self.now.keys().filter(|p| p.parent() == Some(dir)).collect()
    }
}

/// A tree without what stands in directories that are not there.
pub(super) fn without_orphans(tree: Tree) -> Tree {
    let mut kept = Tree::new();
    // Ascending paths: a directory comes before what is in it.
    for (path, node) in tree {
        let parent = path.parent();
        if parent.is_none_or(|p| kept.get(p) == Some(&Node::Dir)) {
            kept.insert(path, node);
        }
    }
    kept
}
