//! Where the sockets lie on which processes can be asked, and who may use them.
//!
//! ```text
//! <data>/control.sock    the daemon's
//! <data>/index.sock      of who owns the index and is no daemon
//! ```
//! The system bounds the length of such a path; where the data directory's is too long, the
//! socket lies in a folder of the user's own with a short one.

use crate::Store;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The longest path that a socket can have everywhere: macOS has 104 bytes with the NUL,
/// Linux 108.
const LONGEST: usize = 103;

/// The daemon's socket.
pub const CONTROL: &str = "control";
/// The socket of who owns the index and is no daemon.
pub const INDEX: &str = "index";

/// An open socket. The file goes when it is dropped.
#[derive(Debug)]
pub struct Socket {
    /// Where it lies.
    pub path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Opens the socket with this name, which others can connect to at once. It does not block.
/// Only who holds the lock of its purpose may, since what lies there is removed.
///
/// # Errors
/// When it cannot be made for this user alone.
pub fn open(store: &Store, name: &str) -> io::Result<(Socket, UnixListener)> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let path = place(store, name, runtime)?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    let socket = Socket { path };
    std::fs::set_permissions(&socket.path, PermissionsExt::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok((socket, listener))
}

/// Where it is to lie. Makes the folder where that is not the data directory.
fn place(store: &Store, name: &str, runtime: Option<PathBuf>) -> io::Result<PathBuf> {
    let best = store.root().join(format!("{name}.sock"));
    if fits(&best) {
        return Ok(best);
    }
    let root = fnv1a(store.root().as_os_str().as_bytes());
    let name = format!("{root:016x}.{name}.sock");
    let user = rustix::process::geteuid().as_raw();
    let folders = [
        runtime
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("agent-trace")),
        Some(PathBuf::from(format!("/tmp/agent-trace-{user}"))),
    ];
    let mut failed = io::Error::from(io::ErrorKind::InvalidFilename);
    for folder in folders.into_iter().flatten() {
        let path = folder.join(&name);
        if fits(&path) {
            match make_private(&folder, user) {
                Ok(()) => return Ok(path),
                Err(error) => failed = error,
            }
        }
    }
    Err(failed)
}

fn fits(path: &Path) -> bool {
    path.as_os_str().len() <= LONGEST
}

/// Makes a folder, or sees that the one that is there is this user's alone.
fn make_private(folder: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let there = std::fs::symlink_metadata(folder)?;
    if there.is_dir() && there.uid() == user && there.mode() & 0o077 == 0 {
        Ok(())
    } else {
        let text = format!("{} is not this user's alone", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

/// A hash that no version changes: Fowler, Noll and Vo's, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_replaced_by_a_private_short_one() {
        let folder = tempfile::tempdir().unwrap();
        let short = Store::at("/data");
        let at = |store: &Store| place(store, CONTROL, Some(folder.path().into()));
        assert_eq!(at(&short).unwrap(), Path::new("/data/control.sock"));

        let long = Store::at(format!("/{}", "x".repeat(120)));
        let path = at(&long).unwrap();
        let private = folder.path().join("agent-trace");
        assert_eq!(path.parent(), Some(&*private));
        let mode = private.metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        let other = Store::at(format!("/{}", "y".repeat(120)));
        assert_ne!(at(&other).unwrap(), path);
        let index = place(&long, INDEX, Some(folder.path().into()));
        assert_ne!(index.unwrap(), path);

        // A folder that others may write to is not used.
        std::fs::set_permissions(&private, PermissionsExt::from_mode(0o777)).unwrap();
        assert_ne!(at(&long).unwrap().parent(), Some(&*private));
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
