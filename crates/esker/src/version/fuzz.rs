//! Manifests of any bytes, for fuzzing.

use crate::filename;
use std::path::Path;
use std::sync::Arc;

use super::record;
use super::{Loaded, Orders, State, VersionEdit, load, load_prefix};
use crate::Error;
use crate::env::{Env, OpenMode};

/// Number of the manifest that [`manifest`] takes its bytes for.
pub(crate) const NUMBER: u64 = 1;

/// A whole manifest of these payloads: header, and a sound record for each.
pub(crate) fn of_payloads<'a>(payloads: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = record::file_header(NUMBER);
    for payload in payloads.filter(|p| !p.is_empty()) {
        if let Some(record) = record::encode(NUMBER, bytes.len() as u64, payload) {
            bytes.extend(record);
        }
    }
    bytes
}

/// The payloads of a sound manifest.
pub(crate) fn payloads(env: &dyn Env, path: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let file = env.open(path, OpenMode::Read).expect("a manifest");
    let (mut at, len) = (record::HEADER_LEN, file.len().expect("its length"));
    while let Ok(record::Found::Record { payload, end }) =
        record::read(&*file, path, NUMBER, at, len)
    {
        all.push(payload);
        at = end;
    }
    all
}

/// The line of `CURRENT` that names the manifest.
pub(crate) fn current() -> String {
    super::current::line(super::current::ManifestEnd { number: NUMBER, end: 0 })
}

/// Reads the bytes as the manifest of a store in `dir`, where `CURRENT` is.
pub(crate) fn manifest(env: &Arc<dyn Env>, dir: &Path, bytes: &[u8]) {
    let path = dir.join(filename::manifest(NUMBER));
    drop(env.remove(&path));
    let Ok(file) = env.open(&path, OpenMode::CreateNew) else { return };
    file.write_all_at(bytes, 0).expect("writing a file of the fuzzer's");
    let salvaged = match load_prefix(&**env, dir, &Orders::default()) {
        Err(Error::UnsupportedFormat { .. }) => return,
        read => read.expect("a prefix, be it empty"),
    };
    use_state(&salvaged.state);
    if let Ok(Loaded { state, end, .. }) = load(&**env, dir, &Orders::default()) {
        assert!(end <= bytes.len() as u64);
        assert!(state == salvaged.state, "both readings of a sound manifest are the same");
        use_state(&state);
    }
}

/// What is computed from a state may not overflow, whatever it says.
fn use_state(state: &State) {
    let snapshot = state.snapshot();
    let copy = State::new(Orders::default()).apply(&snapshot).expect("a state describes itself");
    assert!(copy == *state, "the same after a round through its description");
    state.value_segments();
    for k in state.keyspaces.values() {
        assert!(k.version.next_run() > 0);
        for run in k.version.runs() {
            assert!(!run.tables().is_empty());
        }
        assert!(k.version.tables().all(|t| state.has_table(t.number)));
    }
}

/// One edit: what can be read has one encoding.
pub(crate) fn edit(data: &[u8]) {
    let Ok(edit) = VersionEdit::decode(data) else { return };
    assert_eq!(edit.encode(), data, "another encoding of the same edit");
    if let Ok(state) = State::new(Orders::default()).apply(&edit) {
        use_state(&state);
    }
}
