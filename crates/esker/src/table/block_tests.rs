//! What [`validate`] lets pass and what not, at each limit: later reads check nothing, so a block that
//! is wrong by one byte and taken would be read outside of its memory.

use super::block::{
    FIXED, HAS_SEQ_BASE, MAX_COUNT, PAGE, VARIES, WIDE, claimed_pages, tag, validate,
};
use crate::key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN, ValuePointer};
use crate::util::put_varint;

const PUT: u8 = Kind::Put as u8;
const DELETE: u8 = Kind::Delete as u8;

/// A block's parts, each as it comes, whether they fit together or not.
#[derive(Clone)]
struct Forged {
    pages: u32,
    count: u16,
    prefix: Vec<u8>,
    stride: u32,
    suffix_len: u32,
    tag: u8,
    seq_width: u8,
    flags: u8,
    records: Vec<Vec<u8>>,
    /// Moves one slot: which, and by how much.
    slot: Option<(usize, i32)>,
    max_key_len: usize,
}

impl Forged {
    /// Three records of one length: keys of two letters behind the prefix, values of three.
    fn fixed() -> Forged {
        Forged {
            pages: 1,
            count: 3,
            prefix: b"pre".to_vec(),
            stride: 5,
            suffix_len: 2,
            tag: PUT,
            seq_width: 0,
            flags: FIXED,
            records: [b"aaxxx", b"bbyyy", b"cczzz"].map(|r| r.to_vec()).to_vec(),
            slot: None,
            max_key_len: 5,
        }
    }

    /// Records with slots: each has its tag and the length of its suffix.
    fn varying(records: &[Vec<u8>]) -> Forged {
        Forged {
            count: records.len() as u16,
            stride: 0,
            suffix_len: u32::from(VARIES),
            tag: 0,
            flags: 0,
            records: records.to_vec(),
            max_key_len: 300,
            ..Forged::fixed()
        }
    }

    /// One entry with a key of 5 bytes and a value of so many.
    fn wide(value: usize) -> Forged {
        let record = [&b"abcde"[..], &vec![b'v'; value]].concat();
        Forged {
            pages: (32 + record.len()).div_ceil(PAGE) as u32,
            count: 1,
            prefix: Vec::new(),
            stride: record.len() as u32,
            suffix_len: 5,
            flags: FIXED | WIDE,
            records: vec![record],
            ..Forged::fixed()
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut b = vec![0; 8];
        let wide = self.flags & WIDE != 0;
        b.extend(self.count.to_le_bytes());
        b.extend((self.prefix.len() as u16).to_le_bytes());
        b.extend((if wide { 0 } else { self.stride as u16 }).to_le_bytes());
        b.extend((if wide { 0 } else { self.suffix_len as u16 }).to_le_bytes());
        b.extend([if wide { 0 } else { self.pages as u8 }, self.tag, self.seq_width, self.flags]);
        if wide {
            for n in [self.pages, self.stride, self.suffix_len] {
                b.extend(n.to_le_bytes());
            }
        }
        if self.flags & HAS_SEQ_BASE != 0 {
            b.extend(77u64.to_le_bytes());
        }
        b.extend(&self.prefix);
        if self.flags & FIXED == 0 {
            let mut at = b.len() + 2 * (self.records.len() + 1);
            let lens = self.records.iter().map(Vec::len).chain([0]);
            for (i, len) in lens.enumerate() {
                let moved = self.slot.filter(|(slot, _)| *slot == i).map_or(0, |(_, by)| by);
                b.extend(((at as i32 + moved) as u16).to_le_bytes());
                at += len;
            }
        }
        b.extend(self.records.concat());
        let len = self.pages as usize * PAGE;
        if b.len() < len {
            b.resize(len, 0);
        }
        b
    }

    fn verdict(&self) -> Result<(), &'static str> {
        let mut bytes = self.bytes();
        bytes.truncate(self.pages as usize * PAGE);
        validate(&bytes, self.max_key_len)
    }
}

/// A record with its tag and the length of its suffix in front.
fn record(tag: u8, suffix: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut r = vec![tag];
    put_varint(&mut r, suffix.len() as u64);
    [r, suffix.to_vec(), rest.to_vec()].concat()
}

fn compressed(raw_len: u32) -> Vec<u8> {
    let mut value = Vec::new();
    put_varint(&mut value, raw_len.into());
    value.extend(b"packed");
    value
}

#[test]
fn sound_blocks_of_every_form_are_taken() {
    assert_eq!(Forged::fixed().verdict(), Ok(()));
    assert_eq!(Forged::wide(10).verdict(), Ok(()));
    assert_eq!(Forged::wide(10 * PAGE).verdict(), Ok(()));
    let records =
        [record(PUT, b"a", b"value"), record(DELETE, b"", b""), record(PUT, &[b'x'; 200], b"")];
    assert_eq!(Forged::varying(&records).verdict(), Ok(()));
}

/// What is the same in all records is looked at in the first alone.
#[test]
fn records_that_are_alike_in_part_are_all_looked_at() {
    // Of one length and tag, each with the length of its own suffix.
    let suffix = |len: u8| Forged {
        suffix_len: u32::from(VARIES),
        records: [1, 1, len].map(|len| vec![len, b'a', b'x', b'x', b'x']).to_vec(),
        ..Forged::fixed()
    };
    assert_eq!(suffix(4).verdict(), Err("key length"));
    assert_eq!(Forged { max_key_len: 300, ..suffix(4) }.verdict(), Ok(()));
    assert_eq!(Forged { max_key_len: 300, ..suffix(5) }.verdict(), Err("suffix length"));
    // Of one length and tag, each with the length of its own value.
    let value = |len: u32| {
        let mut last = vec![b'c', b'c'];
        put_varint(&mut last, len.into());
        last.resize(9, b'x');
        let records = [vec![b'a', b'a', 9, 0, 0, 0, 0, 0, 0], vec![b'b'; 9], last];
        Forged { tag: PUT | tag::LZ4, stride: 9, records: records.to_vec(), ..Forged::fixed() }
    };
    assert_eq!(value(MAX_VALUE_LEN as u32).verdict(), Ok(()));
    assert_eq!(value(MAX_VALUE_LEN as u32 + 1).verdict(), Err("value"));
}

#[test]
fn a_block_is_as_long_as_it_says() {
    let whole = Forged::fixed().bytes();
    for len in [0, 19, PAGE - 1, PAGE + 1, 2 * PAGE] {
        let mut bytes = whole.clone();
        bytes.resize(len, 0);
        assert!(validate(&bytes, 5).is_err(), "{len}");
    }
    assert_eq!(claimed_pages(&whole[..PAGE - 1]), 0);
    assert_eq!(claimed_pages(&whole), 1);
    let pages = |n| Forged { pages: n, ..Forged::fixed() };
    assert_eq!(pages(16).verdict(), Ok(()));
    assert_eq!(claimed_pages(&pages(16).bytes()), 16);
    // Offsets of 16 bits reach no further.
    assert_eq!(claimed_pages(&pages(17).bytes()), 0);
    assert!(pages(17).verdict().is_err());
    assert!(pages(0).verdict().is_err());
    assert_eq!(claimed_pages(&Forged::wide(20 * PAGE).bytes()), 21);
}

#[test]
fn a_block_has_entries_and_not_too_many() {
    let with = |count: usize| Forged {
        count: count as u16,
        stride: 2,
        suffix_len: 2,
        pages: 2,
        records: vec![b"aa".to_vec(); count],
        ..Forged::fixed()
    };
    assert_eq!(with(MAX_COUNT).verdict(), Ok(()));
    assert_eq!(with(MAX_COUNT + 1).verdict(), Err("number of entries"));
    assert_eq!(with(0).verdict(), Err("number of entries"));
}

#[test]
fn records_of_one_length_end_within_the_block() {
    // 20 bytes of header, the prefix, and three records: the last ends with the page, or behind it.
    let with = |prefix: usize, stride: u32| Forged {
        prefix: vec![b'p'; prefix],
        stride,
        max_key_len: 200,
        records: vec![vec![b'r'; stride as usize]; 3],
        ..Forged::fixed()
    };
    assert_eq!(with(2, 1358).verdict(), Ok(()));
    assert_eq!(with(3, 1358).verdict(), Err("record length"));
    assert_eq!(with(5, 1357).verdict(), Ok(()));
    assert_eq!(with(6, 1357).verdict(), Err("record length"));
    // A record shorter than the suffix that all have.
    assert_eq!(with(3, 2).verdict(), Ok(()));
    assert_eq!(with(3, 1).verdict(), Err("suffix length"));
}

#[test]
fn the_prefix_and_the_slots_end_within_the_block() {
    let one = [record(PUT, b"", b"")];
    let with = |prefix: usize| {
        let mut f = Forged::varying(&one);
        f.prefix = vec![b'p'; prefix];
        f.max_key_len = PAGE;
        f
    };
    // Header 20, slots 4, record 2.
    assert_eq!(with(PAGE - 26).verdict(), Ok(()));
    assert!(with(PAGE - 25).verdict().is_err());
    assert!(with(PAGE - 24).verdict().is_err());
    assert_eq!(with(PAGE - 23).verdict(), Err("block header"));
    assert_eq!(with(PAGE - 20).verdict(), Err("block header"));
    assert_eq!(with(PAGE - 19).verdict(), Err("block header"));
    assert_eq!(with(3 * PAGE).verdict(), Err("block header"));
    let fixed = |prefix: usize| {
        let prefix = vec![b'p'; prefix];
        Forged { prefix, stride: 0, suffix_len: 0, max_key_len: PAGE, ..Forged::fixed() }
    };
    assert_eq!(fixed(PAGE - 20).verdict(), Ok(()));
    assert_eq!(fixed(PAGE - 19).verdict(), Err("block header"));
}

#[test]
fn slots_ascend_and_stay_inside() {
    let records = [record(PUT, b"aa", b"xx"), record(PUT, b"bb", b"yy")];
    let with = |slot: usize, by: i32| {
        Forged { slot: Some((slot, by)), ..Forged::varying(&records) }.verdict()
    };
    assert_eq!(with(0, 0), Ok(()));
    assert_eq!(with(0, -1), Err("first slot"));
    // A hole is none of its business, a record that starts behind its end is.
    assert!(with(1, 6).is_err());
    assert_eq!(with(1, -7), Err("slot"));
    assert_eq!(with(2, -7), Err("slot"));
    // Zeros behind the last record belong to its value; the page's end is the end.
    let end = 20 + 3 + 6 + 12;
    assert_eq!(with(2, PAGE as i32 - end), Ok(()));
    assert_eq!(with(2, PAGE as i32 - end + 1), Err("slot"));
    // A record of which only a part of its length is there.
    assert_eq!(with(1, -6), Err("record"));
    assert_eq!(with(1, -5), Err("suffix length"));
    assert_eq!(with(1, -4), Err("suffix length"));
    assert_eq!(with(1, -2), Err("record tag"));
}

#[test]
fn keys_are_no_longer_than_the_longest() {
    let with = |suffix: usize, max_key_len| {
        let records = [record(PUT, &vec![b'x'; suffix], b"")];
        Forged { max_key_len, pages: 16, ..Forged::varying(&records) }.verdict()
    };
    // The prefix has three bytes.
    assert_eq!(with(97, 100), Ok(()));
    assert_eq!(with(98, 100), Err("key length"));
    // A table that says its keys are longer than keys can be is not believed.
    let wide = |key: usize| {
        let mut f = Forged::wide(0);
        (f.stride, f.suffix_len, f.max_key_len) = (key as u32, key as u32, usize::MAX);
        f.records = vec![vec![b'k'; key]];
        f.pages = (32 + key).div_ceil(PAGE) as u32;
        f.verdict()
    };
    assert_eq!(wide(MAX_KEY_LEN), Ok(()));
    assert_eq!(wide(MAX_KEY_LEN + 1), Err("key length"));
}

#[test]
fn every_tag_is_one_that_can_be_written() {
    let sound = |t: u8| {
        let (kind, encoding) = (t & tag::KIND, t & tag::ENCODING);
        let compressed = encoding == tag::LZ4 || encoding == tag::ZSTD;
        match kind {
            PUT => t & 0x80 == 0 && (compressed || t & tag::DICT == 0),
            DELETE => t & 0x80 == 0 && encoding == tag::RAW && t & tag::DICT == 0,
            _ => false,
        }
    };
    let mut taken = 0;
    for t in 0..=255 {
        let rest = match t & tag::ENCODING {
            tag::RAW => Vec::new(),
            tag::POINTER => vec![1; ValuePointer::ENCODED_LEN],
            _ => compressed(100),
        };
        let own = Forged::varying(&[record(t, b"key", &rest)]).verdict();
        assert_eq!(own.is_ok(), sound(t), "tag {t:#x} of a record: {own:?}");
        taken += usize::from(own.is_ok());
        if t == 0 {
            continue; // stands for "each has its own"
        }
        let whole = [b"key".to_vec(), rest].concat();
        let (stride, suffix_len) = (whole.len() as u32, 3);
        let (max_key_len, records) = (6, vec![whole; 3]);
        let shared = Forged { tag: t, stride, suffix_len, max_key_len, records, ..Forged::fixed() };
        assert_eq!(shared.verdict().is_ok(), sound(t), "tag {t:#x} of a block");
    }
    // Put: four encodings, and two of them with a dictionary; delete; each with a sequence or without.
    assert_eq!(taken, 14);
}

#[test]
fn values_are_what_their_tags_say() {
    let one = |t: u8, payload: &[u8]| Forged::varying(&[record(t, b"key", payload)]).verdict();
    assert_eq!(one(DELETE, b""), Ok(()));
    assert_eq!(one(DELETE, b"x"), Err("value"));
    let n = ValuePointer::ENCODED_LEN;
    for (len, expected) in [(n - 1, Err("value")), (n, Ok(())), (n + 1, Err("value"))] {
        assert_eq!(one(PUT | tag::POINTER, &vec![1; len]), expected);
    }
    for t in [PUT | tag::LZ4, PUT | tag::ZSTD | tag::DICT] {
        assert_eq!(one(t, b""), Err("value"), "no length");
        assert_eq!(one(t, &compressed(MAX_VALUE_LEN as u32)), Ok(()));
        assert_eq!(one(t, &compressed(MAX_VALUE_LEN as u32 + 1)), Err("value"));
    }
}

/// The numbers of a wide block have 32 bits, the largest of which stands for "each record has its own".
#[test]
#[cfg(target_pointer_width = "64")]
#[cfg_attr(miri, ignore = "blocks of gigabytes")]
fn the_numbers_of_a_wide_block_stay_below_their_limits() {
    let with = |t: u8, stride: usize, suffix_len: u32| {
        let pages = (32 + stride).div_ceil(PAGE);
        let mut small = Forged::wide(100);
        (small.tag, small.stride, small.suffix_len) = (t, stride as u32, suffix_len);
        small.records[0].splice(5..5, compressed(1000));
        let mut bytes = vec![0; pages * PAGE]; // pages that nobody touches take no memory
        let head = small.bytes();
        bytes[..100].copy_from_slice(&head[..100]);
        bytes[20..24].copy_from_slice(&(pages as u32).to_le_bytes());
        assert_eq!(claimed_pages(&bytes), pages);
        validate(&bytes, MAX_KEY_LEN)
    };
    for t in [PUT, PUT | tag::LZ4, PUT | tag::ZSTD] {
        assert_eq!(with(t, 5 + MAX_VALUE_LEN, 5), Ok(()));
        assert_eq!(with(t, 5 + MAX_VALUE_LEN + 1, 5), Err("value"));
        for most in [u32::MAX - 1, u32::MAX] {
            assert_eq!(with(t, most as usize, 5), Err("value"));
            assert_eq!(with(t, most as usize, most), Err("key length"));
            assert_eq!(with(t, 100, most), Err("key length"));
        }
    }
}

#[test]
fn sequences_take_their_room_between_key_and_value() {
    let with = |seq_width: u8, t: u8, rest: usize| Forged {
        seq_width,
        flags: HAS_SEQ_BASE,
        ..Forged::varying(&[record(t, b"key", &vec![0; rest])])
    };
    for width in 0..=8 {
        let n = usize::from(width);
        assert_eq!(with(width, PUT | tag::HAS_SEQ, n).verdict(), Ok(()));
        assert_eq!(with(width, DELETE | tag::HAS_SEQ, n).verdict(), Ok(()));
        assert_eq!(with(width, DELETE | tag::HAS_SEQ, n + 1).verdict(), Err("value"));
        if n > 0 {
            let short = with(width, PUT | tag::HAS_SEQ, n - 1).verdict();
            assert_eq!(short, Err("suffix length"));
        }
        // One without a sequence has none, whatever the width of the others'.
        assert_eq!(with(width, DELETE, 0).verdict(), Ok(()));
    }
    assert_eq!(with(9, PUT, 20).verdict(), Err("block flags"));
}

#[test]
fn flags_are_known_and_go_together() {
    for bit in 3..8 {
        let flags = FIXED | 1 << bit;
        assert_eq!(Forged { flags, ..Forged::fixed() }.verdict(), Err("block flags"), "bit {bit}");
    }
    // A wide block has one entry, no prefix, one length, one tag.
    let wide = Forged::wide(10);
    type Change = fn(&mut Forged);
    let wrong: [(&str, Change); 4] = [
        ("two entries", |f| f.count = 2),
        ("a prefix", |f| f.prefix = b"p".to_vec()),
        ("slots", |f| f.flags = WIDE),
        ("a tag of its own", |f| f.tag = 0),
    ];
    for (what, change) in wrong {
        let mut f = wide.clone();
        change(&mut f);
        assert_eq!(f.verdict(), Err("wide block"), "{what}");
    }
    let mut with_base = wide.clone();
    with_base.flags |= HAS_SEQ_BASE;
    (with_base.tag, with_base.seq_width, with_base.stride) = (PUT | tag::HAS_SEQ, 8, 5 + 8);
    with_base.records = vec![[&b"abcde"[..], &[1; 8]].concat()];
    assert_eq!(with_base.verdict(), Ok(()));
    // The entry ends with the page, or a byte behind it.
    let to_the_end = |value: usize| Forged { pages: 1, ..Forged::wide(value) }.verdict();
    assert_eq!(to_the_end(PAGE - 32 - 5), Ok(()));
    assert_eq!(to_the_end(PAGE - 32 - 4), Err("record length"));
}
