//! Zstandard frames of single values: the library, or what stands in for it in a build without.

#[cfg(feature = "zstd")]
pub(super) use with::{ReadyDictionary, decompress};
#[cfg(not(feature = "zstd"))]
pub(super) use without::{ReadyDictionary, decompress};

/// Why a value does not unpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// What is wrong with it.
    Damaged(&'static str),
    /// The system has no memory for what unpacks it, which says nothing of the value.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "of builds with it"))]
    NoMemory,
    /// This build has no Zstandard.
    #[cfg_attr(feature = "zstd", expect(dead_code, reason = "of builds without"))]
    NoZstd,
}

/// Packs values. Packs none when the library refuses a context. A build without the library packs
/// nothing either: options that ask for it are refused before a table is begun.
pub(super) struct ZstdEncoder(#[cfg(feature = "zstd")] Option<zstd::zstd_safe::CCtx<'static>>);

#[cfg(feature = "zstd")]
mod with {
    use std::cell::RefCell;
    use std::sync::OnceLock;

    use zstd::zstd_safe::{CCtx, CParameter, DCtx, DDict, compress_bound};

    use super::{Problem, ZstdEncoder};

    /// What a frame begins with. All do, so it is not stored.
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    /// The library's default.
    const LEVEL: i32 = 3;

    impl ZstdEncoder {
        pub fn new(dictionary: Option<&[u8]>) -> ZstdEncoder {
            ZstdEncoder(context(dictionary))
        }

        /// Appends `value` packed to `out`; false (and anything behind `out`'s end) when it would
        /// take more than `max` bytes.
        pub fn compress(&mut self, value: &[u8], max: usize, out: &mut Vec<u8>) -> bool {
            let Some(context) = &mut self.0 else { return false };
            let start = out.len();
            out.resize(start + compress_bound(value.len()), 0);
            match context.compress2(&mut out[start..], value) {
                Ok(n) if n >= 4 && out[start..start + 4] == MAGIC => {
                    out.copy_within(start + 4..start + n, start);
                    out.truncate(start + n - 4);
                    n - 4 <= max
                }
                _ => false,
            }
        }
    }

    /// A context with all frame fields left out that can be, `None` when the library refuses.
    fn context(dictionary: Option<&[u8]>) -> Option<CCtx<'static>> {
        let mut context = CCtx::try_create()?;
        for p in [
            CParameter::CompressionLevel(LEVEL),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            context.set_parameter(p).ok()?;
        }
        if let Some(d) = dictionary {
            context.load_dictionary(d).ok()?;
        }
        Some(context)
    }

    /// What the library unpacks with, made of a dictionary for the first value that is: a copy of its bytes, and some
    /// 27 KiB of tables. `None` when the library refuses it.
    #[derive(Default)]
    pub(in crate::table) struct ReadyDictionary(OnceLock<Option<DDict<'static>>>);

    impl ReadyDictionary {
        /// The same for each call: `bytes` are those of the one dictionary that has this.
        fn of(&self, bytes: &[u8]) -> Result<&DDict<'static>, Problem> {
            let made = match self.0.get() {
                Some(made) => made,
                None => {
                    let made = ready(bytes, DDict::try_create)?;
                    self.0.get_or_init(|| made)
                }
            };
            made.as_ref().ok_or(Problem::Damaged("dictionary that Zstandard refuses"))
        }

        /// Bytes of memory that it takes, besides itself.
        pub fn memory(&self) -> usize {
            self.0.get().and_then(|d| d.as_ref()).map_or(0, |d| d.sizeof())
        }
    }

    /// What a dictionary of Zstandard's own format begins with. Any other bytes are taken as they are.
    const DICTIONARY_MAGIC: [u8; 4] = [0x37, 0xA4, 0x30, 0xEC];

    /// What `make` makes of a dictionary; nothing of one that begins like those of Zstandard's own format and is none.
    /// The library does not say whether it was that or the memory. Where there is memory for as many other bytes, another
    /// refusal is believed.
    fn ready<D>(bytes: &[u8], make: impl Fn(&[u8]) -> Option<D>) -> Result<Option<D>, Problem> {
        if let Some(made) = make(bytes) {
            return Ok(Some(made));
        }
        if !bytes.starts_with(&DICTIONARY_MAGIC) || make(&vec![0; bytes.len()]).is_none() {
            return Err(Problem::NoMemory);
        }
        Ok(make(bytes))
    }

    /// A decompressor and room for a frame with its magic number.
    struct Unpacker {
        context: DCtx<'static>,
        frame: Vec<u8>,
    }

    impl Unpacker {
        /// That in `slot`, with a context that `make` makes where there is none.
        fn of(
            slot: &mut Option<Unpacker>,
            make: impl FnOnce() -> Option<DCtx<'static>>,
        ) -> Result<&mut Unpacker, Problem> {
            match slot {
                Some(there) => Ok(there),
                None => {
                    let context = make().ok_or(Problem::NoMemory)?;
                    Ok(slot.insert(Unpacker { context, frame: Vec::new() }))
                }
            }
        }
    }

    thread_local! {
        static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
    }

    /// Unpacks a value into `out`, which becomes as long as it; false when the packed bytes are not
    /// those of a value of this length.
    pub(in crate::table) fn decompress(
        bytes: &[u8],
        dictionary: Option<(&[u8], &ReadyDictionary)>,
        raw_len: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, Problem> {
        let dict = match dictionary {
            Some((bytes, made)) => Some(made.of(bytes)?),
            None => None,
        };
        // A block of a frame takes at least three bytes and stands for at most 128 KiB.
        if raw_len > (bytes.len() / 3 + 1) << 17 {
            return Ok(false);
        }
        let mut unpack = |slot: &mut Option<Unpacker>| {
            let u = Unpacker::of(slot, DCtx::try_create)?;
            u.frame.clear();
            u.frame.extend_from_slice(&MAGIC);
            u.frame.extend_from_slice(bytes);
            out.resize(raw_len, 0);
            let n = match dict {
                Some(d) => u.context.decompress_using_ddict(&mut out[..], &u.frame, d),
                None => u.context.decompress(&mut out[..], &u.frame),
            };
            if u.frame.capacity() > 1 << 20 {
                u.frame = Vec::new();
            }
            Ok(n.is_ok_and(|n| n == raw_len))
        };
        UNPACKER.try_with(|slot| unpack(&mut slot.borrow_mut())).unwrap_or_else(|_| {
            // The thread ends, and what its own thread-locals still read has one made for each value.
            unpack(&mut None)
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// It was told as damage, and a repair left the value out.
        #[test]
        fn no_memory_for_a_context_is_no_damage() {
            let mut slot = None;
            assert_eq!(Unpacker::of(&mut slot, || None).err(), Some(Problem::NoMemory));
            assert!(Unpacker::of(&mut slot, DCtx::try_create).is_ok());
            assert!(Unpacker::of(&mut slot, || None).is_ok(), "it is there");
        }

        #[test]
        fn no_memory_for_a_dictionary_is_no_damage() {
            let refuses = |first: u8| move |b: &[u8]| (b[0] != first).then_some(());
            let of_format = [DICTIONARY_MAGIC.as_slice(), &[7; 5]].concat();
            for bytes in [&of_format[..], &[7; 9]] {
                assert_eq!(ready(bytes, |_| None::<()>), Err(Problem::NoMemory));
                assert_eq!(ready(bytes, refuses(8)), Ok(Some(())));
            }
            assert_eq!(ready(&of_format, refuses(0x37)), Ok(None));
            assert_eq!(
                ready(&[7; 9], refuses(7)),
                Err(Problem::NoMemory),
                "nothing else is refused"
            );
            // Memory that came back between two attempts makes no refusal.
            let tries = std::cell::Cell::new(0);
            let second = |_: &[u8]| (tries.replace(tries.get() + 1) > 0).then_some(());
            assert_eq!(ready(&of_format, second), Ok(Some(())));
            let none = ReadyDictionary::default();
            assert!(none.of(&[0x37, 0xA4, 0x30, 0xEC, 1, 2, 3, 4, 5]).is_err());
            assert_eq!(none.memory(), 0);
            let one = ReadyDictionary::default();
            assert!(one.of(&[7; 5000]).is_ok());
            assert!(one.memory() > 5000);
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod without {
    use super::{Problem, ZstdEncoder};

    impl ZstdEncoder {
        pub fn new(_: Option<&[u8]>) -> ZstdEncoder {
            ZstdEncoder()
        }

        pub fn compress(&mut self, _: &[u8], _: usize, _: &mut Vec<u8>) -> bool {
            false
        }
    }

    /// Nothing: this build unpacks nothing with it.
    #[derive(Default)]
    pub(in crate::table) struct ReadyDictionary;

    impl ReadyDictionary {
        pub fn memory(&self) -> usize {
            0
        }
    }

    pub(in crate::table) fn decompress(
        _: &[u8],
        _: Option<(&[u8], &ReadyDictionary)>,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Result<bool, Problem> {
        Err(Problem::NoZstd)
    }
}
