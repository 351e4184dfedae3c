//! Standard output, or a file that stands in for it: locked, buffered, quiet about a closed pipe,
//! and careful with what a terminal is sent.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::args::Escape;
use crate::encoding::Encoding;
use crate::exit::{Failure, Outcome};
use crate::screen::{Screen, Style};

const BUFFER_BYTES: usize = 256 << 10;

/// Where a command writes what it was asked for. Dropping it flushes, [`Out::finish`] flushes and
/// reports errors.
pub(crate) struct Out {
    sink: BufWriter<Box<dyn Write>>,
    name: String,
    /// The file to rename once it is whole.
    partial: Option<Partial>,
}

/// A file that is written beside its place.
struct Partial {
    file: File,
    written_to: PathBuf,
    wanted: PathBuf,
}

impl Out {
    /// Standard output; what a terminal would act on is escaped there.
    pub fn stdout() -> Out {
        Out::stdout_as(Escape::Auto, Style::Bytes)
    }

    /// Standard output, with escapes where `escape` says so.
    pub fn stdout_as(escape: Escape, style: Style) -> Out {
        let on = escape.is_on(io::stdout().is_terminal());
        let sink = sink(io::stdout().lock(), on, style);
        Out { sink, name: "standard output".into(), partial: None }
    }

    /// Writes to `path`; to standard output when there is none. A regular file gets its name only
    /// when it is whole and durable, so that a dump that failed is never taken for a dump; what is
    /// no regular file is opened as it is.
    pub fn create(path: Option<&Path>, escape: Escape, style: Style) -> Result<Out, Failure> {
        let Some(path) = path else { return Ok(Out::stdout_as(escape, style)) };
        let broken =
            |path: &Path, e: io::Error| Failure::Broken(format!("create {}: {e}", path.display()));
        let name = path.display().to_string();
        let Some(wanted) = replaced(path).map_err(|e| broken(path, e))? else {
            // Standard output may be a file that somebody appends to: nothing of it is cut off.
            let file = OpenOptions::new().append(true).open(path).map_err(|e| broken(path, e))?;
            return Ok(Out { sink: sink(file, escape.is_on(false), style), name, partial: None });
        };
        let mut written_to = wanted.as_os_str().to_owned();
        written_to.push(".partial");
        let written_to = PathBuf::from(written_to);
        // Who may read the file that is replaced may read this one, and nobody else.
        let there = fs::metadata(&wanted).ok();
        let mut options = OpenOptions::new();
        let mode = if there.is_some() { 0o600 } else { 0o666 };
        options.write(true).create_new(true).mode(mode);
        let file = options.open(&written_to).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => Failure::Broken(format!(
                "{} is there: another dump writes it, or one was killed; if none runs, remove it",
                written_to.display()
            )),
            _ => broken(&written_to, e),
        })?;
        let to = there.map_or(Ok(()), |there| succeed(&file, &there));
        let to = to.and_then(|()| file.try_clone()).map_err(|e| broken(&written_to, e));
        let partial = Partial { file, written_to, wanted };
        let to = to.inspect_err(|_| partial.remove())?;
        let sink = sink(to, escape.is_on(false), style);
        Ok(Out { sink, name, partial: Some(partial) })
    }

    /// What a failed write means for the command.
    pub fn failure(&self, e: &io::Error) -> Failure {
        if e.kind() == ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Failure::Broken(format!("write {}: {e}", self.name))
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.sink.write_all(bytes).map_err(|e| self.failure(&e))
    }

    /// Writes a line of text.
    pub fn line(&mut self, text: impl AsRef<str>) -> Outcome {
        self.bytes(text.as_ref().as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a line of JSON.
    pub fn json(&mut self, value: &Value) -> Outcome {
        self.line(value.to_string())
    }

    pub fn finish(mut self) -> Outcome {
        self.sink.flush().map_err(|e| self.failure(&e))?;
        let Some(partial) = &self.partial else { return Ok(()) };
        // Without this a crash may leave the name and not what it names.
        partial.file.sync_all().map_err(|e| self.failure(&e))?;
        let Partial { written_to, wanted, .. } = partial;
        fs::rename(written_to, wanted).map_err(|e| {
            let (from, to) = (written_to.display(), wanted.display());
            Failure::Broken(format!("rename {from} to {to}: {e}"))
        })?;
        let dir = parent(wanted).to_owned();
        self.partial = None;
        File::open(&dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|e| Failure::Broken(format!("sync {}: {e}", dir.display())))
    }
}

impl Partial {
    fn remove(&self) {
        let _ = fs::remove_file(&self.written_to);
    }
}

/// As many links lead one to another at most.
const MOST_LINKS: usize = 40;

/// The regular file that writing to `path` makes or replaces: links are followed to it, so that they
/// stay. None where something else is, which is to be opened, not replaced; so are the links of
/// devices and of the kernel (`/dev/stdout`), whatever they lead to.
pub(crate) fn replaced(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let there = match fs::symlink_metadata(&path) {
            Ok(there) => there,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Some(path)),
            Err(e) => return Err(e),
        };
        if !there.is_symlink() {
            return Ok(there.is_file().then_some(path));
        }
        let dir = parent(&path).canonicalize()?;
        // Not all that is below: /dev/shm holds files like any other.
        if dir == Path::new("/dev") || dir.starts_with("/proc") {
            return Ok(None);
        }
        path = dir.join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many links"))
}

/// Gives a file the owner and the permissions of the one that it will replace. Where it cannot have the group alone, those
/// in it get no rights.
fn succeed(file: &File, there: &Metadata) -> io::Result<()> {
    let (made, uid, gid) = (file.metadata()?, there.uid(), there.gid());
    if made.uid() == uid {
        let has_group = made.gid() == gid || fchown(file, None, Some(gid)).is_ok();
        let mode = if has_group { 0o777 } else { 0o707 } & there.mode();
        return file.set_permissions(Permissions::from_mode(mode));
    }
    fchown(file, Some(uid), Some(gid)).map_err(|e| {
        let whose = format!("the file there belongs to user {uid} and group {gid}");
        io::Error::new(
            e.kind(),
            format!("{whose}, and so would this: {e}; remove it, or name another"),
        )
    })?;
    file.set_permissions(Permissions::from_mode(there.mode() & 0o777))
}

/// The directory that a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."))
}

fn sink(to: impl Write + 'static, escaped: bool, style: Style) -> BufWriter<Box<dyn Write>> {
    let to: Box<dyn Write> = if escaped { Box::new(Screen::new(to, style)) } else { Box::new(to) };
    BufWriter::with_capacity(BUFFER_BYTES, to)
}

impl Drop for Out {
    fn drop(&mut self) {
        // Not finished: half a dump is of no use to anyone. Closing it first is not needed.
        if let Some(partial) = &self.partial {
            partial.remove();
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Adds `bytes` to a JSON object as `name`. JSON has no strings of arbitrary bytes: what is not
/// UTF-8 goes in as base64 under `name_base64`, unless an encoding was asked for, which then holds
/// for every field.
pub(crate) fn json_bytes(
    object: &mut Map<String, Value>,
    name: &str,
    bytes: &[u8],
    encoding: Encoding,
) {
    if let (Encoding::Plain, Ok(text)) = (encoding, std::str::from_utf8(bytes)) {
        object.insert(name.into(), text.into());
        return;
    }
    let (name, encoding) = match encoding {
        Encoding::Plain => (format!("{name}_base64"), Encoding::Base64),
        asked_for => (name.to_owned(), asked_for),
    };
    let mut text = Vec::new();
    encoding.encode_field(bytes, &mut text);
    object.insert(name, String::from_utf8(text).expect("hex and base64 are ASCII").into());
}

/// What `verify` and `repair` list, as objects: file, offset, first and last key, and what it is.
pub(crate) fn findings(all: &[esker::Finding]) -> Value {
    let object = |f: &esker::Finding| {
        let mut object = Map::new();
        if !f.file.is_empty() {
            object.insert("file".into(), f.file.as_str().into());
        }
        if let Some(offset) = f.offset {
            object.insert("offset".into(), offset.into());
        }
        if let Some((from, to)) = &f.keys {
            json_bytes(&mut object, "from", from, Encoding::Plain);
            json_bytes(&mut object, "to", to, Encoding::Plain);
        }
        object.insert("what".into(), f.what.as_str().into());
        Value::Object(object)
    };
    all.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_json() {
        let text = |bytes: &[u8], encoding| {
            let mut object = Map::new();
            json_bytes(&mut object, "key", bytes, encoding);
            Value::from(object).to_string()
        };
        assert_eq!(text(b"a\n", Encoding::Plain), r#"{"key":"a\n"}"#);
        assert_eq!(text(b"\xff", Encoding::Plain), r#"{"key_base64":"/w=="}"#);
        assert_eq!(text(b"\xff", Encoding::Hex), r#"{"key":"ff"}"#);
        assert_eq!(text(b"a", Encoding::Base64), r#"{"key":"YQ=="}"#);
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let create = |path: &Path| Out::create(Some(path), Escape::Auto, Style::Bytes).unwrap();
        let mut out = create(&path);
        out.line("x").unwrap();
        assert!(!path.exists());
        out.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x\n");
        let mut half = create(&dir.path().join("half"));
        half.line("x").unwrap();
        drop(half);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
