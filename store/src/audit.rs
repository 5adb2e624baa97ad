//! Who asked what through our MCP server, and what came of it: `<data>/state/audit`, one JSON
//! object a line. What was asked is there as a digest only.
//!
//! Several processes append to it, each line with one write. It is also how limits are kept
//! over restarts, and among processes that share a key: what was asked lately is in it. A file
//! that has grown to [`MOST`] becomes `audit.1`, in place of the one before.

use crate::layout::{Store, open_lock};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// From this size on a new file is begun, in bytes.
pub const MOST: u64 = 8 << 20;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When it came, in nanoseconds since 1970.
    pub at: u64,
    /// The id of the key; empty for one without.
    pub key: String,
    /// Whose key, and what it is called.
    pub who: String,
    /// The tool, or the method where it is none.
    pub tool: String,
    /// BLAKE3 of the arguments, 16 hexadecimal digits.
    pub arguments: String,
    /// What came of it: `ok`, `error`, or why it was refused.
    pub outcome: String,
}

/// The audit log of a store.
#[derive(Clone, Debug)]
pub struct Audit {
    store: Store,
}

/// A place in the log, to go on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    file: u64,
    offset: u64,
}

impl Audit {
    /// The log of this store. Nothing is made until something is appended.
    #[must_use]
    pub fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
        }
    }

    fn path(&self) -> PathBuf {
        self.store.root().join("state").join("audit")
    }

    fn before(&self) -> PathBuf {
        self.store.root().join("state").join("audit.1")
    }

    /// Appends a call.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&self, call: &Call) -> io::Result<()> {
        let mut line = serde_json::to_vec(call)?;
        line.push(b'\n');
        let path = self.path();
        if let Some(folder) = path.parent() {
            self.store.make(folder)?;
        }
        self.turn_over(&path)?;
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?.write_all(&line)
    }

    /// Begins a new file where this one is large. Of two that do this at once one finds it done.
    fn turn_over(&self, path: &Path) -> io::Result<()> {
        let is_large = || std::fs::metadata(path).is_ok_and(|about| about.len() >= MOST);
        if is_large() {
            let lock = open_lock(&path.with_file_name("audit.lock"))?;
            lock.lock()?;
            if is_large() {
                std::fs::rename(path, self.before())?;
            }
        }
        Ok(())
    }

    /// Reads the calls after a place, and moves it on. A line that is torn or of another kind
    /// is passed over.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn since(&self, place: &mut Place, each: &mut dyn FnMut(Call)) -> io::Result<()> {
        let file = match File::open(self.path()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let id = id(&file)?;
        if id != place.file {
            // What was appended to the one before since, or all of it at the beginning.
            match File::open(self.before()) {
                Ok(before) => {
                    let offset = if self::id(&before)? == place.file {
                        place.offset
                    } else {
                        0
                    };
                    read(before, offset, each)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            *place = Place {
                file: id,
                offset: 0,
            };
        }
        place.offset = read(file, place.offset, each)?;
        Ok(())
    }
}

/// Reads whole lines from an offset on; tells where they end.
fn read(mut file: File, mut offset: u64, each: &mut dyn FnMut(Call)) -> io::Result<u64> {
    if file.metadata()?.len() <= offset {
        return Ok(offset);
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = lines.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Ok(offset);
        }
        offset += length as u64;
        if let Ok(call) = serde_json::from_slice(&line) {
            each(call);
        }
    }
}

/// What tells one file from another.
fn id(file: &File) -> io::Result<u64> {
    let about = file.metadata()?;
    #[cfg(unix)]
    return Ok(std::os::unix::fs::MetadataExt::ino(&about));
    #[cfg(not(unix))]
    {
        let begun = about.created()?.duration_since(std::time::UNIX_EPOCH);
        let begun = begun.unwrap_or_default();
        Ok(u64::try_from(begun.as_nanos()).unwrap_or(0))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(tool: &str) -> Call {
        Call {
            at: 1,
            key: "k".into(),
            who: "w".into(),
            tool: tool.into(),
            arguments: "0".repeat(16),
            outcome: "ok".into(),
        }
    }

    #[test]
    fn who_reads_on_misses_nothing_and_sees_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::of(&Store::at(folder.path()));
        let mut place = Place::default();
        let mut next = |audit: &Audit| {
            let mut seen = Vec::new();
            audit
                .since(&mut place, &mut |call| seen.push(call.tool))
                .unwrap();
            seen
        };
        assert!(next(&audit).is_empty());
        audit.append(&call("a")).unwrap();
        assert_eq!(next(&audit), ["a"]);
        assert!(next(&audit).is_empty());
        audit.append(&call("b")).unwrap();
        // Another file is begun.
        std::fs::rename(audit.path(), audit.before()).unwrap();
        audit.append(&call("c")).unwrap();
        assert_eq!(next(&audit), ["b", "c"]);
        // A torn line is whole later.
        let mut file = OpenOptions::new().append(true).open(audit.path()).unwrap();
        let line = serde_json::to_vec(&call("d")).unwrap();
        file.write_all(&line[..5]).unwrap();
        assert!(next(&audit).is_empty());
        file.write_all(&line[5..]).unwrap();
        file.write_all(b"\nnonsense\n").unwrap();
        assert_eq!(next(&audit), ["d"]);
    }
}
