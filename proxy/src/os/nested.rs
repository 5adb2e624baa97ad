//! Are we inside another relay of ours?
//!
//! A client's configuration may have been wrapped by hand and by a tool, or a launcher may
//! start a wrapped command. The inner relay then finds that the other end of its standard
//! input is held by an ancestor that is the same program, and steps aside. Comparing the
//! pipes rather than the command lines tells this case from an assistant that itself runs
//! under a relay and starts wrapped servers of its own: those have pipes of their own.

#[cfg(target_os = "linux")]
pub(crate) use linux::relaying_ancestor;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::relaying_ancestor;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// Launchers between two relays (`sh -c`, `npx`, `env`, …) that are looked past.
    const MOST_LAUNCHERS: usize = 8;

    /// The process id of the relay that already stands between our client and us.
    pub(crate) fn relaying_ancestor() -> Option<u32> {
        let (input, output) = (pipe_of("self", 0)?, pipe_of("self", 1)?);
        let this = program(std::process::id())?;
        let mut pid = rustix::process::getppid()?
            .as_raw_nonzero()
            .get()
            .cast_unsigned();
        for _ in 0..MOST_LAUNCHERS {
            let relays = program(pid)? == this && is_relay(pid);
            if relays && holds(pid, &input) && holds(pid, &output) {
                return Some(pid);
            }
            // A launcher in between has our input as its own. Anyone else is the client, and
            // looking at all that is above it would take longer than the rest of the start.
            if pipe_of(&pid.to_string(), 0)? != input {
                return None;
            }
            pid = parent(pid)?;
        }
        None
    }

    /// Device and inode of a program's file: the same for two paths to it.
    fn program(pid: u32) -> Option<(u64, u64)> {
        let file = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((file.dev(), file.ino()))
    }

    /// Whether the process was told to relay: other commands start relays as clients.
    fn is_relay(pid: u32) -> bool {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut own = words
            .split(|byte| *byte == 0)
            .take_while(|word| *word != b"--");
        own.any(|word| word == b"record")
    }

    fn parent(pid: u32) -> Option<u32> {
        // In one read: the system makes the whole text anew for each.
        let mut stat = [0; 1024];
        let length = File::open(format!("/proc/{pid}/stat"))
            .ok()?
            .read(&mut stat)
            .ok()?;
        let stat = std::str::from_utf8(stat.get(..length)?).ok()?;
        // The name before it may hold anything, closing parentheses too.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// What a process's descriptor is connected to (`pipe:[123]`), if it is a pipe.
    fn pipe_of(pid: &str, fd: u32) -> Option<PathBuf> {
        let pipe = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
        pipe.to_str()?.starts_with("pipe:").then_some(pipe)
    }

    fn holds(pid: u32, pipe: &Path) -> bool {
        fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == pipe))
    }
}

/// Not known on macOS and Windows yet: there a command that is wrapped twice is recorded
/// twice, and works all the same.
#[cfg(not(target_os = "linux"))]
mod other {
    pub(crate) fn relaying_ancestor() -> Option<u32> {
        None
    }
}
