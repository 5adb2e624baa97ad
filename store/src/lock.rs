//! One process for each purpose: a file of the data directory that is locked while it runs.
//!
//! ```text
//! <data>/daemon.lock    the daemon
//! <data>/index.lock     who owns the index
//! ```
//! Such a file holds the number of the process on its first line, and after that the path of
//! the socket on which it can be asked, which depends on its environment and could not be
//! guessed by others; none, where it cannot be asked. The system unlocks it when the process
//! dies; what it holds then means nothing.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a lock is tried: whoever only looks holds it for a moment.
const PATIENCE: Duration = Duration::from_millis(300);
/// What is tried again at once, since another process was only looking.
const MOMENT: Duration = Duration::from_millis(10);

/// A lock that is held. The file goes when it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// Who holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its number; not known in the first moment of its life.
    pub pid: Option<u32>,
    /// Where it can be asked.
    pub socket: Option<PathBuf>,
}

/// Why a lock cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process has it.
    #[error("another process has it")]
    Held(Holder),
    /// The file cannot be used.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Who holds the lock at this path, if somebody does.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn holder(path: &Path) -> io::Result<Option<Holder>> {
    let mut file = match File::open(path) {
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
        socket: (!socket.is_empty()).then(|| path_of(socket)),
    })
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    let path: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(bytes);
    path.into()
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    let path: std::borrow::Cow<'_, str> = String::from_utf8_lossy(bytes);
    OsStr::new(&*path).into()
}

impl Lock {
    /// Takes the lock at this path, whose folder must be there.
    ///
    /// # Errors
    /// When another process has it, or the file cannot be made.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let end = Instant::now() + PATIENCE;
        loop {
            match Self::try_take(path) {
                Err(LockError::Held(_)) if Instant::now() < end => std::thread::sleep(MOMENT),
                taken => return taken,
            }
        }
    }

    /// Takes the lock at this path if nobody has it or looks at it in this moment.
    ///
    /// # Errors
    /// When another process has it, or the file cannot be made.
    pub fn try_take(path: &Path) -> Result<Self, LockError> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(path)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => {
                    // What the one before left there is not ours.
                    file.set_len(0)?;
                    let path = path.to_owned();
                    return Ok(Self { file, path });
                }
                // The one before removed the file after we opened it.
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(read(&mut file)?)),
            }
        }
    }

    /// Tells others who holds it and, if it can be asked, where.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn sign(&self, socket: Option<&Path>) -> io::Result<()> {
        let mut text = format!("{}\n", std::process::id()).into_bytes();
        if let Some(socket) = socket {
            text.extend_from_slice(socket.as_os_str().as_encoded_bytes());
            text.push(b'\n');
        }
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)
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
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// An open file cannot be removed there.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_one_mans_and_says_whose() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        assert_eq!(holder(&path).unwrap(), None);
        let lock = Lock::take(&path).unwrap();
        let mut expected = Holder::default();
        assert_eq!(holder(&path).unwrap(), Some(expected.clone()));
        lock.sign(None).unwrap();
        expected.pid = Some(std::process::id());
        assert_eq!(holder(&path).unwrap(), Some(expected.clone()));
        lock.sign(Some(Path::new("/a b/\u{e4}.sock"))).unwrap();
        expected.socket = Some("/a b/\u{e4}.sock".into());
        assert_eq!(holder(&path).unwrap(), Some(expected.clone()));
        for again in [Lock::take(&path), Lock::try_take(&path)] {
            match again {
                Err(LockError::Held(by)) => assert_eq!(by, expected),
                other => panic!("{other:?}"),
            }
        }
        drop(lock);
        assert!(!path.exists());
        // What a dead one left is taken over, and does not count.
        std::fs::write(&path, "1\n/x\n").unwrap();
        assert_eq!(holder(&path).unwrap(), None);
        let lock = Lock::take(&path).unwrap();
        assert_eq!(holder(&path).unwrap(), Some(Holder::default()));
        drop(lock);
    }
}
