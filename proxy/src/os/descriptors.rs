//! Taking over our standard streams, and waiting on them.
//!
//! A stream that is taken over has exactly one owner, so dropping it really closes the pipe
//! and the client sees the end. What is left behind as standard input or output is the null
//! device.

use std::fs::File;
use std::io;

#[cfg(unix)]
pub(crate) use unix::{
    from_child, has_data, take_stderr, take_stdin, take_stdout, wait_readable, wait_writable,
};
#[cfg(windows)]
pub(crate) use windows::{
    from_child, has_data, take_stderr, take_stdin, take_stdout, wait_readable, wait_writable,
};

/// One end of a pipe that may have been made non-blocking by someone who shares it.
pub(crate) type Pipe = File;

#[cfg(unix)]
mod unix {
    use super::{File, Pipe, io};
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::fcntl_dupfd_cloexec;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// Takes standard input; what stays in its place is empty.
    pub(crate) fn take_stdin() -> io::Result<Pipe> {
        let pipe = duplicate(rustix::stdio::stdin())?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(pipe)
    }

    /// Takes standard output; what is written in its place goes nowhere.
    pub(crate) fn take_stdout() -> io::Result<Pipe> {
        let pipe = duplicate(rustix::stdio::stdout())?;
        rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
        Ok(pipe)
    }

    /// A second handle of standard error: our own messages go there too.
    pub(crate) fn take_stderr() -> io::Result<Pipe> {
        duplicate(rustix::stdio::stderr())
    }

    fn duplicate(fd: BorrowedFd<'_>) -> io::Result<Pipe> {
        // From 3 up, so that a closed standard stream is never filled by accident.
        Ok(File::from(fcntl_dupfd_cloexec(fd, 3)?))
    }

    /// A pipe from or to a server.
    pub(crate) fn from_child(pipe: impl Into<OwnedFd>) -> Pipe {
        Pipe::from(pipe.into())
    }

    /// Whether there is something to read now.
    pub(crate) fn has_data(pipe: &Pipe) -> bool {
        let mut fds = [PollFd::new(pipe, PollFlags::IN)];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::IN)
    }

    /// Waits until a non-blocking pipe has something to read.
    pub(crate) fn wait_readable(pipe: &Pipe) -> io::Result<()> {
        wait(pipe.as_fd(), PollFlags::IN)
    }

    /// Waits until a non-blocking pipe has room.
    pub(crate) fn wait_writable(pipe: &impl AsFd) -> io::Result<()> {
        wait(pipe.as_fd(), PollFlags::OUT)
    }

    fn wait(fd: BorrowedFd<'_>, what: PollFlags) -> io::Result<()> {
        match poll(&mut [PollFd::from_borrowed_fd(fd, what)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Not run on Windows yet. Handles are duplicated but the originals stay open there, so an
/// end of stream that only one side wants is passed on when this process ends.
#[cfg(windows)]
mod windows {
    use super::{File, Pipe, io};
    use std::os::windows::io::{AsHandle, OwnedHandle};

    pub(crate) fn take_stdin() -> io::Result<Pipe> {
        Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
    }

    pub(crate) fn take_stdout() -> io::Result<Pipe> {
        Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
    }

    pub(crate) fn take_stderr() -> io::Result<Pipe> {
        Ok(File::from(io::stderr().as_handle().try_clone_to_owned()?))
    }

    pub(crate) fn from_child(pipe: impl Into<OwnedHandle>) -> Pipe {
        Pipe::from(pipe.into())
    }

    /// Not known here; the time that a pipe was silent has to do.
    pub(crate) fn has_data(_: &Pipe) -> bool {
        false
    }

    /// Pipes are always blocking here.
    pub(crate) fn wait_readable<T>(_: &T) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn wait_writable<T>(_: &T) -> io::Result<()> {
        Ok(())
    }
}
