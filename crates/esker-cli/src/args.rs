//! Flags that several commands share. Plain comments on the structs: clap would take doc comments
//! for the help text of the command they are flattened into.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use esker::{Compression, KeyOrder};

use crate::bounds::Bounds;
use crate::encoding::Encoding;
use crate::exit::Failure;
use crate::human::parse_size;

// Which store, and how much memory it may use.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Directory of the store
    #[arg(value_name = "DB")]
    pub db: PathBuf,
    /// Memory the store may use, such as 64MiB or 1G [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
}

// Which keyspace.
#[derive(Debug, Args)]
pub(crate) struct KeyspaceArgs {
    /// Keyspace to work in
    #[arg(long, short = 'k', value_name = "NAME", default_value = "default")]
    pub keyspace: String,
}

// The text form of keys and values.
#[derive(Debug, Args)]
pub(crate) struct EncodingArgs {
    /// Keys and values are hexadecimal, in arguments, input and output
    #[arg(long, conflicts_with = "base64")]
    pub hex: bool,
    /// Keys and values are base64, in arguments, input and output
    #[arg(long)]
    pub base64: bool,
}

impl EncodingArgs {
    pub fn encoding(&self) -> Encoding {
        match (self.hex, self.base64) {
            (true, _) => Encoding::Hex,
            (_, true) => Encoding::Base64,
            _ => Encoding::Plain,
        }
    }

    /// The bytes of an argument; `name` is what the help calls it.
    pub fn bytes(&self, name: &str, argument: &OsStr) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        match self.encoding().decode_argument(argument.as_bytes(), &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(why) => Err(Failure::Usage(format!("{name} is {why}"))),
        }
    }
}

// Which keys.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// Only keys that begin with this
    #[arg(long, short, value_name = "PREFIX", allow_negative_numbers = true)]
    pub prefix: Option<OsString>,
    /// Only keys from this one on, in the keyspace's order
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub from: Option<OsString>,
    /// Only keys before this one, in the keyspace's order; it is not included
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    pub to: Option<OsString>,
}

impl RangeArgs {
    pub fn is_everything(&self) -> bool {
        self.prefix.is_none() && self.from.is_none() && self.to.is_none()
    }

    pub fn bounds(&self, encoding: &EncodingArgs, order: &KeyOrder) -> Result<Bounds, Failure> {
        let bytes = |name, argument: &Option<OsString>| {
            argument.as_ref().map(|a| encoding.bytes(name, a)).transpose()
        };
        Ok(Bounds::new(
            order,
            bytes("--prefix", &self.prefix)?,
            bytes("--from", &self.from)?,
            bytes("--to", &self.to)?,
        ))
    }
}

// Compression of what is written.
#[derive(Debug, Args)]
pub(crate) struct CompressionArgs {
    /// Compression of what is written now, in keyspaces that have none of their own [default: lz4]
    #[arg(long, value_name = "CODEC", value_enum)]
    pub compression: Option<Codec>,
}

/// [`Compression`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Codec {
    /// Store values as they are
    None,
    /// Fast
    Lz4,
    /// Smaller, slower
    Zstd,
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Compression {
        match codec {
            Codec::None => Compression::None,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd,
        }
    }
}

// Whether a store may be made.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Make the store when there is none; DB must then be new, or an empty directory
    #[arg(long)]
    pub create: bool,
}

// What is done about bytes that a terminal would act on.
#[derive(Debug, Args)]
pub(crate) struct EscapeArgs {
    /// When to write control characters, and what else a terminal would act on, like \x1b
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub escape: Escape,
}

/// When bytes that a terminal would act on are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Escape {
    /// On a terminal, not in a file or a pipe
    Auto,
    /// Wherever it is written to
    Always,
    /// Bytes are written as they are
    Never,
}

impl Escape {
    /// Whether escapes are written to something that is a terminal, or is not.
    pub fn is_on(self, terminal: bool) -> bool {
        match self {
            Escape::Auto => terminal,
            Escape::Always => true,
            Escape::Never => false,
        }
    }
}

// Durability of a write.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// End only when what was written is on the device and survives a power cut
    #[arg(long)]
    pub sync: bool,
}

// Output for machines.
#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
