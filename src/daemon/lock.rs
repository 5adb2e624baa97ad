//! One daemon for each data directory: `<data>/daemon.lock` is locked while it runs.
//!
//! The file holds the daemon's number on its first line, and after that the path of its
//! control socket, which depends on its environment and could not be guessed by others. The
//! system unlocks it when the daemon dies; what it holds then means nothing.

use agent_trace_store::Store;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a lock is tried: whoever only looks holds it for a moment.
const PATIENCE: Duration = Duration::from_millis(300);

/// The lock of this data directory. The file goes when it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

/// Who holds the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Not known in the first moment of its life.
    pub(crate) pid: Option<u32>,
    pub(crate) socket: Option<PathBuf>,
}

/// Why the lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("another daemon has it")]
    Held(Holder),
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn path(store: &Store) -> PathBuf {
    store.root().join("daemon.lock")
}

/// Who runs for this store, if somebody does.
pub(crate) fn holder(store: &Store) -> io::Result<Option<Holder>> {
    let mut file = match File::open(path(store)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => read(&mut file).map(Some),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn read(file: &mut File) -> io::Result<Holder> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(8 << 10).read_to_end(&mut bytes)?;
    let end = bytes.iter().position(|b| *b == b'\n');
    let (pid, socket) = bytes.split_at(end.unwrap_or(bytes.len()));
    let socket = socket.trim_ascii();
    Ok(Holder {
        pid: str::from_utf8(pid).ok().and_then(|pid| pid.parse().ok()),
        socket: (!socket.is_empty()).then(|| OsStr::from_bytes(socket).into()),
    })
}

impl Lock {
    /// Takes the lock. The data directory must be there.
    pub(super) fn take(store: &Store) -> Result<Self, LockError> {
        let path = path(store);
        let end = Instant::now() + PATIENCE;
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            match file.try_lock() {
                // The one before may have removed the file after we opened it.
                Ok(()) if is_at(&file, &path) => return Ok(Self { file, path }),
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(read(&mut file)?)),
            }
        }
    }

    /// Tells others who holds it and how to be talked to.
    pub(super) fn sign(&mut self, socket: &Path) -> io::Result<()> {
        let mut text = format!("{}\n", std::process::id()).into_bytes();
        text.extend_from_slice(socket.as_os_str().as_bytes());
        text.push(b'\n');
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether this path names that file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_one_mans_and_says_whose() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        assert_eq!(holder(&store).unwrap(), None);
        let mut lock = Lock::take(&store).unwrap();
        lock.sign(Path::new("/a b/\u{e4}.sock")).unwrap();
        let expected = Holder {
            pid: Some(std::process::id()),
            socket: Some("/a b/\u{e4}.sock".into()),
        };
        assert_eq!(holder(&store).unwrap(), Some(expected.clone()));
        match Lock::take(&store) {
            Err(LockError::Held(by)) => assert_eq!(by, expected),
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert!(!path(&store).exists());
        // What a dead one left is taken over.
        std::fs::write(path(&store), "1\n/x\n").unwrap();
        assert_eq!(holder(&store).unwrap(), None);
        drop(Lock::take(&store).unwrap());
    }
}
