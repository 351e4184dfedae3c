//! Packing single values: when it pays, when it is not even tried, and what is refused on the way
//! back.

use std::sync::Arc;

use super::codec::{Compressor, decompress};
use super::dictionary::{Dictionaries, Dictionary};
use super::wire::get_varint32;
use super::zstd::Problem;
use crate::key::{Codec, Stored};
use crate::options::Compression;
use crate::util::varint_len;

/// The codecs of this build.
const BUILT_IN: &[(Compression, Codec)] = &[
    (Compression::Lz4, Codec::Lz4),
    #[cfg(feature = "zstd")]
    (Compression::Zstd, Codec::Zstd),
];

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let mut next = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// What is in a table of a packed value: raw length, and the bytes behind it.
fn parts(compressed: &[u8]) -> (u32, &[u8]) {
    let (raw_len, n) = get_varint32(compressed).unwrap();
    (raw_len, &compressed[n..])
}

fn decompressed(
    codec: Codec,
    raw_len: u32,
    bytes: &[u8],
    dictionary: Option<&Dictionary>,
) -> Result<Vec<u8>, Problem> {
    let dict = dictionary.map_or(0, Dictionary::id);
    let mut out = vec![1, 2, 3];
    decompress(Stored::Compressed { codec, dict, raw_len, bytes }, dictionary, &mut out)
        .map(|()| out)
}

#[test]
fn a_value_is_packed_where_that_saves_an_eighth() {
    for &(compression, codec) in BUILT_IN {
        let (mut compressed, mut left) = (0, 0);
        for len in [16usize, 17, 100, 127, 128, 130, 1000, 20_000] {
            for noisy in (0..=20).map(|part| len * part / 20) {
                let mut value = noise(noisy, len as u64);
                value.resize(len, b'x');
                // A new one for each value: what did not pay before makes no difference.
                let mut packer = Compressor::new(compression, None);
                let most = len - len / 8;
                match packer.compress(&value) {
                    Some(bytes) => {
                        compressed += 1;
                        assert!(bytes.len() <= most, "{codec:?} {noisy} of {len}");
                        let (raw_len, bytes) = parts(bytes);
                        assert_eq!(raw_len as usize, len);
                        assert_eq!(decompressed(codec, raw_len, bytes, None).unwrap(), value);
                    }
                    None => {
                        left += 1;
                        let n = alone(codec, &value) + varint_len(len as u64);
                        assert!(n > most, "{codec:?} {noisy} of {len}: {n} bytes would do");
                    }
                }
            }
        }
        assert!(compressed > 40 && left > 20, "{codec:?}: {compressed} packed, {left} left");
    }
}

/// How long the value is when it is packed whatever it brings.
fn alone(codec: Codec, value: &[u8]) -> usize {
    match codec {
        Codec::Lz4 => lz4_flex::block::compress(value).len(),
        #[cfg(not(feature = "zstd"))]
        Codec::Zstd => unreachable!(),
        #[cfg(feature = "zstd")]
        Codec::Zstd => {
            let mut context = zstd::zstd_safe::CCtx::create();
            let level = zstd::zstd_safe::CParameter::CompressionLevel(3);
            context.set_parameter(level).unwrap();
            let mut out = vec![0; zstd::zstd_safe::compress_bound(value.len())];
            // Without the magic number that every frame begins with.
            context.compress2(&mut out[..], value).unwrap() - 4
        }
    }
}

#[test]
fn short_values_and_stores_without_compression_keep_them_as_they_are() {
    for &(compression, _) in BUILT_IN {
        assert!(Compressor::new(compression, None).compress(&[b'x'; 15]).is_none());
        assert!(Compressor::new(compression, None).compress(&[b'x'; 100]).is_some());
    }
    assert!(Compressor::new(Compression::None, None).compress(&[b'x'; 1000]).is_none());
}

#[test]
fn after_many_values_that_do_not_pack_only_some_are_tried() {
    let good = [b'x'; 200];
    for &(compression, _) in BUILT_IN {
        // So many that the next is tried all the same, and one more.
        let mut patient = Compressor::new(compression, None);
        for seed in 0..63 {
            assert!(patient.compress(&noise(200, seed)).is_none());
        }
        assert!(patient.compress(&good).is_some());
        for seed in 0..64 {
            assert!(patient.compress(&noise(200, seed)).is_none());
        }
        // Now each sixteenth: fifteen that would have packed are let pass.
        for n in 0..15 {
            assert!(patient.compress(&good).is_none(), "{compression:?}: {n}");
        }
        assert!(patient.compress(&good).is_some());
        // It pays again: everything is tried.
        assert!(patient.compress(&good).is_some());
    }
}

#[test]
fn what_does_not_unpack_to_its_length_is_refused() {
    let value = [&noise(50, 3)[..], &[b'x'; 500]].concat();
    for &(compression, codec) in BUILT_IN {
        let mut packer = Compressor::new(compression, None);
        let compressed = packer.compress(&value).unwrap().to_vec();
        let (raw_len, bytes) = parts(&compressed);
        assert_eq!(decompressed(codec, raw_len, bytes, None).unwrap(), value);
        for lie in [0, 1, raw_len - 1, raw_len + 1, raw_len + 100_000, u32::MAX] {
            assert!(decompressed(codec, lie, bytes, None).is_err(), "{codec:?} {lie}");
        }
        for cut in 0..bytes.len() {
            assert!(decompressed(codec, raw_len, &bytes[..cut], None).is_err(), "{codec:?} {cut}");
        }
        // No memory for what these few bytes cannot stand for.
        let mut out = Vec::new();
        let lie = Stored::Compressed { codec, dict: 0, raw_len: u32::MAX, bytes };
        assert!(decompress(lie, None, &mut out).is_err());
        assert!(out.capacity() < 1 << 20, "{codec:?}: {}", out.capacity());
    }
}

#[test]
fn the_longest_run_that_a_codec_can_stand_for_is_believed() {
    // A byte of LZ4 stands for up to 255, a block of Zstandard for 128 KiB: a value of one byte over
    // and over comes near, and has to come back.
    for &(compression, codec) in BUILT_IN {
        for len in [100_000, 128 << 10, (128 << 10) + 1, 3 << 20] {
            let value = vec![b'x'; len];
            let mut packer = Compressor::new(compression, None);
            let compressed = packer.compress(&value).unwrap().to_vec();
            let (raw_len, bytes) = parts(&compressed);
            assert!(decompressed(codec, raw_len, bytes, None).unwrap() == value, "{codec:?} {len}");
        }
    }
}

#[test]
fn a_dictionary_is_used_by_its_codec_and_for_its_values_only() {
    let common = noise(300, 9);
    let value = [b"n=1 ", &common[..], b" end"].concat();
    for &(compression, codec) in BUILT_IN {
        let dictionary = Dictionary::new(codec, &common);
        let other = match codec {
            Codec::Lz4 => (Compression::Zstd, Codec::Zstd),
            Codec::Zstd => (Compression::Lz4, Codec::Lz4),
        };
        assert!(dictionary.is_for(compression) && !dictionary.is_for(other.0));
        assert!(!dictionary.is_for(Compression::None));
        let mut packer = Compressor::new(compression, Some(dictionary.clone()));
        assert_eq!(packer.dictionary().map(|d| d.id()), Some(dictionary.id()));
        let compressed = packer.compress(&value).unwrap().to_vec();
        assert!(compressed.len() < 60, "{codec:?}: {} bytes", compressed.len());
        let (raw_len, bytes) = parts(&compressed);
        assert_eq!(decompressed(codec, raw_len, bytes, Some(&dictionary)).unwrap(), value);
        // Without it, with another one, and with the same bytes for the other codec.
        let mut out = Vec::new();
        let stored = Stored::Compressed { codec, dict: dictionary.id(), raw_len, bytes };
        assert!(decompress(stored, None, &mut out).is_err());
        let stranger = Dictionary::new(codec, b"something else that is long enough");
        assert!(decompress(stored, Some(&stranger), &mut out).is_err());
        let same_bytes = Dictionary::new(other.1, &common);
        assert_eq!(same_bytes.id(), dictionary.id());
        assert!(decompress(stored, Some(&same_bytes), &mut out).is_err());
        // A packer for another codec does not take it.
        let mut without = Compressor::new(other.0, Some(dictionary.clone()));
        assert!(without.dictionary().is_none() && without.compress(&value).is_none());
    }
}

#[test]
fn a_dictionary_is_made_of_enough_samples_of_a_fitting_length() {
    let sample = |n: usize, len: usize| {
        let mut value = format!("{{\"id\": {n}, \"colour\": \"green\", \"size\": ").into_bytes();
        value.extend(noise(6, n as u64));
        value.resize(len, b' ');
        value
    };
    let samples = |count, len| -> Vec<Vec<u8>> { (0..count).map(|n| sample(n, len)).collect() };
    let train = |compression, list: &[Vec<u8>]| {
        let list: Vec<&[u8]> = list.iter().map(|s| &s[..]).collect();
        Dictionary::choose(compression, [], &list)
    };
    for &(compression, codec) in BUILT_IN {
        let most = if codec == Codec::Lz4 { 8 << 10 } else { 16 << 10 };
        assert!(train(compression, &samples(15, 60)).is_none());
        assert!(train(compression, &samples(16, 60)).is_some(), "{compression:?}");
        // Others among them are left out: too short to be packed, too long to need it.
        let mut mixed = samples(15, 60);
        mixed.extend(samples(50, 15));
        mixed.extend(samples(50, 1025));
        assert!(train(compression, &mixed).is_none());
        // However many there are, it stays short, and takes of all of them.
        let many = samples(4000, 60);
        let dictionary = train(compression, &many).unwrap();
        let len = dictionary.bytes().len();
        assert!(len <= most && len > most / 3, "{compression:?}: {len}");
        let last = dictionary.bytes().chunks(60).last().unwrap();
        let at = many.iter().position(|s| s == last).unwrap();
        assert!(at > 3000, "{compression:?}: the last is sample {at}");
    }
}

/// A first sample that looks like a dictionary of Zstandard's own format made a panic of the open.
#[test]
fn a_dictionary_that_zstandard_refuses_is_refused() {
    let magic = [0x37, 0xA4, 0x30, 0xEC];
    let bytes = [&magic[..], &noise(300, 4)].concat();
    let dictionary = Dictionary::new(Codec::Zstd, &bytes);
    let stored = Stored::Compressed {
        codec: Codec::Zstd,
        dict: dictionary.id(),
        raw_len: 50,
        bytes: &[1; 30],
    };
    assert!(decompress(stored, Some(&dictionary), &mut Vec::new()).is_err());
    let samples: Vec<Vec<u8>> = (0..200).map(|n| [&bytes[..60], &noise(6, n)].concat()).collect();
    let samples: Vec<&[u8]> = samples.iter().map(|s| &s[..]).collect();
    for &(compression, codec) in BUILT_IN {
        let made = Dictionary::choose(compression, [&dictionary], &samples);
        assert_eq!(made.is_some(), codec == Codec::Lz4);
    }
}

/// Each table had one of its own, though most are given that of what they were made from.
#[test]
fn tables_share_dictionaries_of_the_same_bytes() {
    let shared = Dictionaries::default();
    let of = |codec, n: u8| Dictionary::new(codec, &[n; 1000]);
    let first = shared.share(of(Codec::Lz4, 1));
    assert!(Arc::ptr_eq(&first, &shared.share(of(Codec::Lz4, 1))));
    assert_eq!(shared.memory(), first.memory());
    // The same bytes for another codec have the same identity, and are another.
    let zstd = shared.share(of(Codec::Zstd, 1));
    assert_eq!((zstd.id(), zstd.codec()), (first.id(), Codec::Zstd));
    assert!(Arc::ptr_eq(&zstd, &shared.share(of(Codec::Zstd, 1))));
    let other = shared.share(of(Codec::Lz4, 2));
    assert_eq!(other.bytes(), [2; 1000]);
    // So have other bytes, where somebody made them for that.
    let forged = shared.share(first.forged(&[3; 1000]));
    assert_eq!((forged.id(), forged.bytes()), (first.id(), &[3; 1000][..]));
    assert_eq!(shared.share(first.forged(&[3; 1000])).bytes(), [3; 1000]);
    let all = [&first, &zstd, &other, &forged];
    assert_eq!(shared.memory(), all.iter().map(|d| d.memory()).sum::<usize>());
    drop((first, zstd, other, forged));
    assert_eq!(shared.memory(), 0);
    // What is gone leaves no trace for long.
    for n in 0..1000u32 {
        shared.share(Dictionary::new(Codec::Lz4, &n.to_le_bytes()));
        assert!(shared.identities() <= 3, "{n}");
    }
}

/// What is known stays while it fits; a better one takes its place where it is clearly better.
#[test]
fn a_dictionary_is_kept_until_another_is_clearly_better() {
    let digits = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    let list = |word: &str| -> Vec<Vec<u8>> {
        let value = |n| format!("{{\"{word} of the {word}\": {}, \"{word}\": true}}", digits(n));
        (0..400).map(|n| value(n).into_bytes()).collect()
    };
    let choose = |compression, known: &[Arc<Dictionary>], samples: &[Vec<u8>]| {
        let samples: Vec<&[u8]> = samples.iter().map(|s| &s[..]).collect();
        Dictionary::choose(compression, known, &samples)
    };
    let (green, violet) = (list("green"), list("violet"));
    for &(compression, codec) in BUILT_IN {
        let of_green = choose(compression, &[], &green[..200]).unwrap();
        let of_violet = choose(compression, &[], &violet[..200]).unwrap();
        let id = |known: &[_], samples: &[_]| choose(compression, known, samples).unwrap().id();
        assert_eq!(
            id(std::slice::from_ref(&of_green), &green[200..]),
            of_green.id(),
            "{codec:?}: fits"
        );
        let fresh = id(std::slice::from_ref(&of_green), &violet);
        assert!(fresh != of_green.id() && fresh != of_violet.id(), "{codec:?}: fits no more");
        let both = [of_green.clone(), of_violet.clone()];
        assert_eq!(id(&both, &violet[200..]), of_violet.id(), "{codec:?}: the second fits");
        // Too few to judge by: the first; and none of another codec.
        assert_eq!(id(&both, &violet[..15]), of_green.id());
        let foreign =
            Dictionary::new(if codec == Codec::Lz4 { Codec::Zstd } else { Codec::Lz4 }, b"x");
        assert!(choose(compression, &[foreign], &violet[..15]).is_none());
        assert!(choose(Compression::None, &both, &violet).is_none());
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_build_without_zstandard_says_so() {
    use crate::{Db, Error, KeyspaceOptions, Options};
    let stored = Stored::Compressed { codec: Codec::Zstd, dict: 0, raw_len: 50, bytes: &[1; 30] };
    assert_eq!(decompress(stored, None, &mut Vec::new()), Err(Problem::NoZstd));
    let dir = tempfile::tempdir().unwrap();
    let asked = Options::new().compression(Compression::Zstd).open(dir.path());
    assert!(matches!(asked, Err(Error::InvalidOption { option: "compression", .. })));
    let db = Db::open(dir.path()).unwrap();
    let options = KeyspaceOptions::new().compression(Compression::Zstd);
    let e = db.create_keyspace("packed", options).unwrap_err();
    assert!(e.to_string().contains("feature `zstd`"), "{e}");
    assert!(db.keyspace("packed").is_err());
}

/// Who unpacks one large value and then small ones goes on with little memory.
#[test]
fn a_buffer_gives_the_memory_of_a_large_value_back() {
    for &(compression, codec) in BUILT_IN {
        let mut packer = Compressor::new(compression, None);
        let mut out = Vec::new();
        for len in [32 << 20, 1000] {
            let value = vec![b'x'; len];
            let (raw_len, bytes) = parts(packer.compress(&value).unwrap());
            let stored = Stored::Compressed { codec, dict: 0, raw_len, bytes };
            decompress(stored, None, &mut out).unwrap();
            assert_eq!(out, value);
        }
        assert!(out.capacity() <= 1 << 20, "{codec:?}: {}", out.capacity());
    }
}
