//! The server's process group, and the guardian that ends it when we cannot.
//!
//! The server is started as the leader of a group of its own, so that launchers
//! (`npx`, `sh -c`, `uv run`) and what they launch can be ended together. A *guardian*, a
//! forked copy of this process that does nothing but wait on a pipe, ends the group when we
//! are killed without a chance to do so ourselves.

#[cfg(unix)]
pub(crate) use unix::{Group, Guardian, prepare};
#[cfg(windows)]
pub(crate) use windows::{Group, Guardian, prepare};

#[cfg(unix)]
mod unix {
    use super::super::sys;
    use rustix::fd::OwnedFd;
    use rustix::io::{Errno, read, write};
    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::process::{Pid, Signal, kill_process_group, setsid, test_kill_process_group};
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    /// How long the guardian waits between asking the group to end and killing it. Shorter
    /// than the relay's own grace: whoever killed the relay wants this gone.
    const GUARDIAN_GRACE: Duration = Duration::from_secs(2);
    /// Tells the guardian that the group may live on.
    const RELEASE: u8 = b'r';

    /// Makes the command the leader of its own group, which ends when we do.
    pub(crate) fn prepare(command: &mut Command) {
        command.process_group(0);
        sys::set_death_signal(command);
    }

    /// The group that a started server leads.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Group(Option<Pid>);

    impl Group {
        pub(crate) fn of(child: &Child) -> Self {
            Self(Pid::from_raw(child.id().cast_signed()))
        }

        /// Sends a signal to every process of the group. That none is left is no error.
        pub(crate) fn signal(self, number: i32) {
            if let (Some(group), Some(signal)) = (self.0, Signal::from_named_raw(number)) {
                let _ = kill_process_group(group, signal);
            }
        }

        pub(crate) fn terminate(self) {
            self.signal(Signal::TERM.as_raw());
        }

        pub(crate) fn kill(self) {
            self.signal(Signal::KILL.as_raw());
        }
    }

    /// Our end of the guardian's pipe. Dropping it (or dying) makes the guardian end the group.
    #[derive(Debug)]
    pub(crate) struct Guardian(Option<OwnedFd>);

    impl Guardian {
        /// Forks the guardian. Must be called while this process has a single thread.
        pub(crate) fn fork() -> io::Result<Self> {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            sys::fork(|| guard(theirs))?;
            Ok(Self(Some(ours)))
        }

        /// A guardian that does nothing, for where none could be had.
        pub(crate) fn absent() -> Self {
            Self(None)
        }

        /// Tells the guardian which group to end.
        pub(crate) fn watch_over(&self, group: Group) {
            if let (Some(pipe), Group(Some(pid))) = (&self.0, group) {
                let _ = write(pipe, &pid.as_raw_nonzero().get().to_ne_bytes());
            }
        }

        /// Lets what is left of the group live on.
        pub(crate) fn release(self) {
            if let Some(pipe) = self.0 {
                let _ = write(&pipe, &[RELEASE]);
            }
        }
    }

    /// The guardian's whole life.
    fn guard(pipe: OwnedFd) {
        // A session of its own: a signal to the client's process group or terminal must end
        // the relay, and the guardian then has work to do.
        let _ = setsid();
        if keep_only(pipe).is_err() {
            return;
        }
        let mut group = [0_u8; 4];
        if !read_exactly(&mut group) {
            return;
        }
        let Some(group) = Pid::from_raw(i32::from_ne_bytes(group)) else {
            return;
        };
        if read_exactly(&mut [0]) {
            return; // Released.
        }
        let _ = kill_process_group(group, Signal::TERM);
        let end = Instant::now() + GUARDIAN_GRACE;
        while test_kill_process_group(group).is_ok() {
            if Instant::now() >= end {
                let _ = kill_process_group(group, Signal::KILL);
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Makes the pipe standard input and closes everything else: a copy of the client's
    /// pipes held open here would keep the client waiting for their end.
    fn keep_only(pipe: OwnedFd) -> io::Result<()> {
        rustix::stdio::dup2_stdin(&pipe)?;
        let null = std::fs::File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        // Closed by number below, so not to be closed again by a drop.
        std::mem::forget((pipe, null));
        sys::close_from(3);
        Ok(())
    }

    /// Fills the buffer from standard input; false when that ended first.
    fn read_exactly(mut buffer: &mut [u8]) -> bool {
        while !buffer.is_empty() {
            match read(rustix::stdio::stdin(), &mut *buffer) {
                Ok(0) => return false,
                Ok(n) => buffer = &mut buffer[n..],
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Not run on Windows yet. Only the server itself is ended there; a job object that takes
/// its descendants along is still to be written.
#[cfg(windows)]
mod windows {
    use std::io;
    use std::process::{Child, Command, Stdio};

    pub(crate) fn prepare(_: &mut Command) {}

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Group(u32);

    impl Group {
        pub(crate) fn of(child: &Child) -> Self {
            Self(child.id())
        }

        pub(crate) fn signal(self, _: i32) {
            self.kill();
        }

        pub(crate) fn terminate(self) {
            self.kill();
        }

        pub(crate) fn kill(self) {
            // `taskkill /T` ends the process and everything it started.
            let _ = Command::new("taskkill")
                .args(["/T", "/F", "/PID", &self.0.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }

    #[derive(Debug)]
    pub(crate) struct Guardian;

    impl Guardian {
        pub(crate) fn fork() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn absent() -> Self {
            Self
        }

        pub(crate) fn watch_over(&self, _: Group) {}

        pub(crate) fn release(self) {}
    }
}
