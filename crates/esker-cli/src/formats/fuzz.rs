//! Inputs of `esker load` of any bytes, for fuzzing: reading ends, keeps to its limits, and what was
//! read and written again reads the same.

use super::columns::Columns;
use super::{
    Limits, ReadEntries, ReadError, WriteEntries, WriteError, bin, csv, dbdump, jsonl, tsv,
};
use crate::encoding::Encoding;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

const LIMITS: Limits = Limits { key: 100, value: 1000 };

/// All good entries. Bad ones are passed over, as with `--skip-bad`.
fn read(mut reader: impl ReadEntries, input: usize) -> Entries {
    let (mut all, mut bad) = (Entries::new(), 0);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        assert!(all.len() + bad <= input + 1, "more entries than bytes");
        match reader.read(&mut key, &mut value) {
            Ok(true) => {
                assert!(key.len() <= LIMITS.key && value.len() <= LIMITS.value);
                all.push((key.clone(), value.clone()));
            }
            Ok(false) => return all,
            // What is said of UTF-16.
            Err(ReadError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidData => return all,
            Err(ReadError::Io(e)) => panic!("reading memory failed: {e}"),
            Err(ReadError::Bad(e)) => {
                bad += 1;
                assert!(!e.to_string().is_empty());
                if e.fatal {
                    return all;
                }
            }
        }
    }
}

fn write(mut writer: impl WriteEntries, entries: &Entries) {
    for (key, value) in entries {
        match writer.write(key, value) {
            Ok(()) => {}
            Err(WriteError::Unfit(why)) => panic!("what was read cannot be written: {why}"),
            Err(WriteError::Io(e)) => panic!("writing to memory failed: {e}"),
        }
    }
    writer.finish().expect("writing to memory");
}

/// From this first byte on the rest is CSV.
const CSV: u8 = 9;
/// With this the text of mdb_dump.
const DBDUMP: u8 = 255;

fn load_csv(mode: u8, data: &[u8]) {
    let encoding = [Encoding::Plain, Encoding::Hex, Encoding::Base64][usize::from(mode / 2) % 3];
    let reader = |bytes, header| {
        let columns = Columns { header, ..Columns::default() };
        csv::Reader::new(bytes, b',', columns, encoding, LIMITS)
    };
    let entries = read(reader(data, mode.is_multiple_of(2)), data.len());
    let mut out = Vec::new();
    write(csv::Writer::new(&mut out, encoding), &entries);
    assert!(read(reader(&out[..], true), out.len()) == entries);
}

/// Reads the bytes in every format: the first says in which, and in which encoding.
pub fn load(data: &[u8]) {
    let Some((&mode, data)) = data.split_first() else { return };
    if mode == DBDUMP {
        let entries = read(dbdump::Reader::new(data, LIMITS), data.len());
        let mut out = Vec::new();
        write(dbdump::Writer::new(&mut out), &entries);
        assert!(read(dbdump::Reader::new(&out[..], LIMITS), out.len()) == entries);
        return;
    }
    if mode >= CSV {
        return load_csv(mode - CSV, data);
    }
    let encoding = [Encoding::Plain, Encoding::Hex, Encoding::Base64][usize::from(mode / 3) % 3];
    let mut out = Vec::new();
    match mode % 3 {
        0 => {
            let entries = read(tsv::Reader::new(data, encoding, LIMITS), data.len());
            write(tsv::Writer::new(&mut out, encoding), &entries);
            assert!(read(tsv::Reader::new(&out[..], encoding, LIMITS), out.len()) == entries);
        }
        1 => {
            let (path, lines) = data.split_at(data.iter().position(|b| *b == b'\n').unwrap_or(0));
            let Ok(path) = String::from_utf8_lossy(path).parse::<jsonl::FieldPath>() else {
                return;
            };
            let reader = |bytes| jsonl::Reader::new(bytes, path.clone(), encoding, LIMITS);
            let entries = read(reader(lines), lines.len());
            write(jsonl::Writer::new(&mut out, Some(path.clone()), encoding), &entries);
            assert!(read(reader(&out[..]), out.len()) == entries);
        }
        _ => {
            let entries = read(bin::Reader::new(data, LIMITS), data.len());
            write(bin::Writer::new(&mut out), &entries);
            assert!(read(bin::Reader::new(&out[..], LIMITS), out.len()) == entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TARGET: esker::fuzzing::Target = esker::fuzzing::Target { name: "load", run: load };

    fn seeds() -> Vec<Vec<u8>> {
        let mut packed = vec![2];
        let entries = vec![(b"key".to_vec(), b"value".to_vec()), (vec![], vec![0xff; 300])];
        write(bin::Writer::new(&mut packed), &entries);
        vec![
            b"\0key\tvalue\nanother\\tkey\twith\\nbreaks\nbad line\n\t\n".to_vec(),
            b"\x036b\t76\n00ff\t\n6\tzz\n".to_vec(),
            b"\x06a2V5\tdmFsdWU=\n=\t=\n".to_vec(),
            b"\x01id\n{\"id\":\"a\",\"x\":[1,{}]}\n{\"id\":1.50}\n[]\n{\"id\":\"\\u00e9\\ud83d\\ude00\"}".to_vec(),
            b"\x01a.b\n{\"a\":{\"b\":\"k\",\"b\":2}}\n{\"a\":null}\n".to_vec(),
            packed,
            b"\x09\xef\xbb\xbfkey,value\r\na,\"b \"\"c\"\"\n,\"\n\n,\nbad\"row,1\n".to_vec(),
            b"\xffVERSION=3\nformat=print\nduplicates=1\nHEADER=END\n \\\\k\\00\n v\n k\n v\n k\n w\nDATA=END\n".to_vec(),
            b"\x0c00ff,ff\n6,zz\n".to_vec(),
        ]
    }

    #[test]
    fn inputs_of_any_bytes() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        if std::env::var_os("ESKER_FUZZ_WRITE_SEEDS").is_some() {
            let dir = corpus.join(TARGET.name);
            std::fs::create_dir_all(&dir).expect("a directory");
            for (n, seed) in seeds().iter().enumerate() {
                std::fs::write(dir.join(format!("seed-{n:02}")), seed).expect("a seed");
            }
        }
        esker::fuzzing::testing::drive(&TARGET, &corpus);
    }
}
