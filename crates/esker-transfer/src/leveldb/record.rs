//! The form of logs and manifests: records, cut into fragments so that none crosses the end of a
//! block of 32 KiB.
//!
//! ```text
//! fragment := checksum u32 | length u16 | kind u8 | bytes[length]
//! kind     := 1 whole | 2 first | 3 middle | 4 last
//! ```
//!
//! The checksum is of kind and bytes. Where fewer than seven bytes are left in a block they are unused.
//! A program that is killed leaves a file that ends anywhere in a record, or in zeros where the file was
//! made longer ahead of its writes. Anything else that is no fragment is damage; as the length in
//! a damaged fragment is worth nothing, reading goes on in the next block.

use std::io::{self, Read, Write};

use super::coding::checksum;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;

const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// What [`Records::next`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A record, which begins here.
    Record(u64),
    /// Bytes that are none. The next call goes on behind them.
    Damage(u64, String),
    /// The file ends inside the record that begins here, and has nothing behind it.
    Torn(u64),
    /// The file ends.
    End,
}

/// A piece of a block.
enum Piece {
    Fragment { kind: u8, at: u64, from: usize, to: usize },
    Damage(u64, String),
    Torn(u64),
    End,
}

/// Reads records.
pub(super) struct Records<R> {
    source: R,
    block: Vec<u8>,
    /// Where the next fragment is in the block.
    at: usize,
    /// Where the block is in the file.
    block_at: u64,
    /// Of a record whose last fragment is still to come: where it begins.
    open: Option<u64>,
    /// Whether what comes may belong to a record whose beginning was damaged.
    after_damage: bool,
    held: Option<Piece>,
}

impl<R: Read> Records<R> {
    pub fn new(source: R) -> Records<R> {
        Records {
            source,
            block: Vec::new(),
            at: 0,
            block_at: 0,
            open: None,
            after_damage: false,
            held: None,
        }
    }

    /// Where reading is in the file.
    pub fn position(&self) -> u64 {
        self.block_at + self.at as u64
    }

    /// Replaces `record` with the next record, if that is what comes next.
    pub fn next(&mut self, record: &mut Vec<u8>) -> io::Result<Event> {
        loop {
            let piece = match self.held.take() {
                Some(piece) => piece,
                None => self.piece()?,
            };
            if let Some(open) = self.open {
                let goes_on = matches!(piece, Piece::Fragment { kind: MIDDLE | LAST, .. });
                if matches!(piece, Piece::End | Piece::Torn(_)) {
                    self.open = None;
                    return Ok(Event::Torn(open));
                }
                if !goes_on {
                    self.open = None;
                    self.after_damage = true;
                    let place = match &piece {
                        // Of the same record, and nearer to what is wrong.
                        Piece::Damage(at, what) => Event::Damage(*at, what.clone()),
                        _ => Event::Damage(open, "a record has no end".into()),
                    };
                    if !matches!(piece, Piece::Damage(..)) {
                        self.held = Some(piece);
                    }
                    return Ok(place);
                }
            }
            match piece {
                Piece::End => return Ok(Event::End),
                Piece::Torn(at) => return Ok(Event::Torn(at)),
                Piece::Damage(at, what) => {
                    self.after_damage = true;
                    return Ok(Event::Damage(at, what));
                }
                Piece::Fragment { kind, at, from, to } => {
                    if let Some(event) = self.join(kind, at, from, to, record) {
                        return Ok(event);
                    }
                }
            }
        }
    }

    fn join(
        &mut self,
        kind: u8,
        at: u64,
        from: usize,
        to: usize,
        record: &mut Vec<u8>,
    ) -> Option<Event> {
        if matches!(kind, WHOLE | FIRST) {
            record.clear();
            self.after_damage = false;
        } else if self.open.is_none() {
            // What is left of a record whose damage was reported; otherwise its beginning is missing.
            let reported = std::mem::replace(&mut self.after_damage, true);
            return (!reported).then(|| Event::Damage(at, "a record has no beginning".into()));
        }
        record.extend_from_slice(&self.block[from..to]);
        match kind {
            WHOLE => return Some(Event::Record(at)),
            FIRST => self.open = Some(at),
            LAST => return self.open.take().map(Event::Record),
            _ => {}
        }
        None
    }

    fn piece(&mut self) -> io::Result<Piece> {
        loop {
            if self.block.len() - self.at < HEADER {
                let is_last = self.block.len() < BLOCK && !self.block.is_empty();
                let rest = &self.block[self.at..];
                if is_last && rest.iter().any(|b| *b != 0) {
                    let at = self.position();
                    self.at = self.block.len();
                    return Ok(Piece::Torn(at));
                }
                if is_last || !self.next_block()? {
                    return Ok(Piece::End);
                }
                continue;
            }
            let header = &self.block[self.at..self.at + HEADER];
            if header == [0; HEADER] {
                return self.zeros();
            }
            return Ok(self.fragment());
        }
    }

    fn fragment(&mut self) -> Piece {
        let (at, from) = (self.position(), self.at + HEADER);
        let header = &self.block[self.at..from];
        let stored = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let len = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let kind = header[6];
        let to = from + len;
        let damaged = if to > BLOCK {
            format!("a fragment of {len} bytes does not fit into its block")
        } else if to > self.block.len() {
            if !self.is_followed() {
                self.at = self.block.len();
                return Piece::Torn(at);
            }
            format!("a fragment of {len} bytes does not fit into its file, and sound ones follow")
        } else if checksum(&[&[kind], &self.block[from..to]]) != stored {
            "the checksum of a record is wrong".into()
        } else if !(WHOLE..=LAST).contains(&kind) {
            format!("a fragment is of the unknown kind {kind}")
        } else {
            self.at = to;
            return Piece::Fragment { kind, at, from, to };
        };
        self.at = self.block.len();
        Piece::Damage(at, damaged)
    }

    /// Whether a sound fragment begins behind this one's header, in the last block: a crash leaves none there, a
    /// wrong length does.
    fn is_followed(&self) -> bool {
        let rest = &self.block[self.at + HEADER..];
        (0..rest.len().saturating_sub(HEADER)).any(|from| {
            let (header, data) = rest[from..].split_at(HEADER);
            let len = usize::from(u16::from_le_bytes([header[4], header[5]]));
            (WHOLE..=LAST).contains(&header[6])
                && data.get(..len).is_some_and(|data| {
                    checksum(&[&header[6..], data]).to_le_bytes() == header[..4]
                })
        })
    }

    /// Zeros to the end of the file were never written to. With something behind them they are a hole.
    fn zeros(&mut self) -> io::Result<Piece> {
        let at = self.position();
        let hole = || Piece::Damage(at, "zeros where records were".into());
        let of_block = self.block[self.at..].iter().all(|b| *b == 0);
        if !of_block {
            self.at = self.block.len();
            return Ok(hole());
        }
        while self.next_block()? {
            if self.block.iter().any(|b| *b != 0) {
                return Ok(hole());
            }
        }
        Ok(Piece::End)
    }

    fn next_block(&mut self) -> io::Result<bool> {
        self.block_at += self.block.len() as u64;
        self.at = 0;
        self.block.clear();
        self.source.by_ref().take(BLOCK as u64).read_to_end(&mut self.block)?;
        Ok(!self.block.is_empty())
    }
}

/// Writes records.
pub(super) struct RecordWriter<W> {
    out: W,
    /// How much of the present block is written.
    used: usize,
}

impl<W: Write> RecordWriter<W> {
    pub fn new(out: W) -> RecordWriter<W> {
        RecordWriter { out, used: 0 }
    }

    pub fn write(&mut self, mut record: &[u8]) -> io::Result<()> {
        let mut first = true;
        loop {
            if BLOCK - self.used < HEADER {
                self.out.write_all(&[0; HEADER][..BLOCK - self.used])?;
                self.used = 0;
            }
            let room = BLOCK - self.used - HEADER;
            let (fragment, rest) = record.split_at(record.len().min(room));
            let kind = match (first, rest.is_empty()) {
                (true, true) => WHOLE,
                (true, false) => FIRST,
                (false, true) => LAST,
                (false, false) => MIDDLE,
            };
            self.out.write_all(&checksum(&[&[kind], fragment]).to_le_bytes())?;
            self.out.write_all(&(fragment.len() as u16).to_le_bytes())?;
            self.out.write_all(&[kind])?;
            self.out.write_all(fragment)?;
            self.used += HEADER + fragment.len();
            record = rest;
            first = false;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    pub fn into_inner(self) -> W {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(records: &[Vec<u8>]) -> Vec<u8> {
        let mut out = RecordWriter::new(Vec::new());
        records.iter().for_each(|r| out.write(r).unwrap());
        out.into_inner()
    }

    /// Records and all other events, without the end.
    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<Event>) {
        let (mut records, mut events) = (Vec::new(), Vec::new());
        let mut reader = Records::new(bytes);
        let mut record = Vec::new();
        loop {
            match reader.next(&mut record).unwrap() {
                Event::Record(_) => records.push(record.clone()),
                Event::End => return (records, events),
                other => events.push(other),
            }
            assert!(records.len() + events.len() <= bytes.len() + 2);
        }
    }

    fn of_all_sizes() -> Vec<Vec<u8>> {
        let near = [0, 1, BLOCK - 16, BLOCK - 15, BLOCK - 14, BLOCK - 7, BLOCK, 3 * BLOCK + 5];
        let mut all: Vec<_> = near.iter().map(|n| vec![*n as u8; *n]).collect();
        all.extend((0..2000).map(|n| vec![n as u8; n % 100]));
        all
    }

    #[test]
    fn records_come_back() {
        let records = of_all_sizes();
        assert_eq!(read(&write(&records)), (records, vec![]));
        // A block whose last bytes hold no fragment, for every number of them.
        for left in 0..20 {
            let records = vec![vec![1; BLOCK - HEADER - left], vec![2; 10]];
            assert_eq!(read(&write(&records)), (records, vec![]), "{left} left");
        }
        assert_eq!(read(b""), (vec![], vec![]));
    }

    #[test]
    fn a_cut_file_has_whole_records_and_a_torn_one() {
        let records = vec![vec![1; 100], vec![2; 2 * BLOCK], vec![3; 9]];
        let bytes = write(&records);
        for len in (0..300).chain(BLOCK - 20..BLOCK + 20).chain(bytes.len() - 60..bytes.len()) {
            let (read, events) = read(&bytes[..len]);
            assert_eq!(read, records[..read.len()], "{len}");
            assert!(read.len() < 3 && events.len() <= 1, "{len}: {events:?}");
            assert!(events.iter().all(|e| matches!(e, Event::Torn(_))), "{len}: {events:?}");
        }
    }

    #[test]
    fn zeros_behind_the_end_are_none_and_before_it_a_hole() {
        let records = vec![vec![1; 100], vec![2; 200]];
        let mut bytes = write(&records);
        let end = bytes.len() as u64;
        bytes.resize(3 * BLOCK, 0);
        assert_eq!(read(&bytes), (records.clone(), vec![]));
        bytes.extend(write(&records));
        let (again, events) = read(&bytes);
        assert_eq!(again, [&records[..], &records[..]].concat());
        let hole = [Event::Damage(end, "zeros where records were".into())];
        assert_eq!(events, hole);
        // With the rest of the block behind them.
        let mut bytes = write(&records);
        bytes.resize(bytes.len() + 30, 0);
        bytes.extend(write(&records));
        assert_eq!(read(&bytes), (records, hole.to_vec()));
    }

    #[test]
    fn every_flipped_byte_is_noticed_and_the_next_block_is_read() {
        let records: Vec<_> = (0..900).map(|n| vec![n as u8; 100]).collect();
        let bytes = write(&records);
        for at in (0..bytes.len()).step_by(97) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let (read, events) = read(&bytes);
            let padding = read.len() == records.len();
            assert!(padding || !events.is_empty(), "{at}");
            assert!(padding || matches!(events[0], Event::Damage(..) | Event::Torn(_)), "{at}");
            assert!(read.len() > 500 && read.iter().all(|r| records.contains(r)), "{at}");
        }
    }

    /// In the last block it passed for what a crash leaves, and took what came behind along.
    #[test]
    fn a_wrong_length_is_damage_where_sound_records_follow() {
        let records: Vec<_> = (0..90).map(|n| vec![n as u8; 100]).collect();
        let mut bytes = write(&records);
        let third = 2 * (100 + HEADER);
        bytes[third + 5] ^= 0x40;
        let (read, events) = read(&bytes);
        assert_eq!(read, records[..2]);
        assert!(matches!(&events[..], [Event::Damage(at, _)] if *at == third as u64), "{events:?}");
    }

    #[test]
    fn fragments_without_their_record() {
        let whole = write(&[vec![7; 2 * BLOCK]]);
        // Without the first block: the middle and the end of a record.
        let (records, events) = read(&whole[BLOCK..]);
        assert!(records.is_empty());
        assert_eq!(events, [Event::Damage(0, "a record has no beginning".into())]);
        // Another record where the rest should be.
        let mut cut = whole[..BLOCK].to_vec();
        cut.extend(write(&[b"x".to_vec()]));
        let (records, events) = read(&cut);
        assert_eq!(records, [b"x"]);
        assert_eq!(events, [Event::Damage(0, "a record has no end".into())]);
    }
}
