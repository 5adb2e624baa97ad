//! What the relay has to notice beside bytes: signals, the end of the process that started
//! us, the server's exit, and a client that stopped reading.
//!
//! Each is seen by a thread of its own that sleeps in the kernel and reports through a
//! callback.

/// Something that was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sighting {
    /// A signal that is to be passed on.
    Signal(i32),
    /// The process that started us ended.
    ParentDied,
    /// The server exited; its status has not been collected.
    ServerExited,
    /// The client closed its reading end of our standard output.
    ClientStoppedReading,
}

#[cfg(unix)]
pub(crate) use unix::{LOOK_AGAIN, server_exit, signals, surroundings};
#[cfg(windows)]
pub(crate) use windows::{LOOK_AGAIN, server_exit, signals, surroundings};

#[cfg(unix)]
mod unix {
    use super::super::descriptors::Pipe;
    use super::super::sys;
    use super::Sighting;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fd::OwnedFd;
    use rustix::io::Errno;
    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::process::{Pid, WaitId, WaitIdOptions, getppid, waitid};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use std::io;
    use std::process::Child;
    use std::sync::Arc;
    use std::thread::Builder;
    use std::time::Duration;

    /// What is passed on to the server. The last two are not for ending: Node.js, for one,
    /// opens its debugger on USR1.
    const PASSED_ON: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];
    /// A thread that only waits needs little stack.
    const STACK: usize = 64 << 10;
    /// How often the server's exit has to be asked for, where nobody reports it.
    pub(crate) const LOOK_AGAIN: Option<Duration> = None;

    /// Reports signals from now on, except those that this process was started to ignore.
    pub(crate) fn signals(report: impl Fn(Sighting) + Send + 'static) -> io::Result<()> {
        // A journal may reach the limit on files' sizes, and that must not end the relay. Not
        // ignored, since the server would inherit that.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        let mut signals = Signals::new(PASSED_ON.into_iter().filter(|s| !sys::is_ignored(*s)))?;
        spawn("signals", move || {
            for signal in signals.forever() {
                report(Sighting::Signal(signal));
            }
        })
    }

    /// Reports the server's exit and leaves its status to be collected: until that is done
    /// its process id, which is also its group's, cannot be given to another process.
    pub(crate) fn server_exit(
        server: &Child,
        report: impl Fn(Sighting) + Send + 'static,
    ) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(server.id().cast_signed()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        spawn("server", move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
            report(Sighting::ServerExited);
        })
    }

    /// Keeps the client's end of standard output under watch; dropping it ends the watch, so
    /// that the pipe can be closed.
    #[derive(Debug)]
    pub(crate) struct OutputWatch(#[expect(dead_code, reason = "held to be dropped")] OwnedFd);

    /// Reports when our parent ends and when the client stops reading `output`.
    pub(crate) fn surroundings(
        output: Arc<Pipe>,
        report: impl Fn(Sighting) + Send + 'static,
    ) -> io::Result<OutputWatch> {
        let (released, watch) = pipe_with(PipeFlags::CLOEXEC)?;
        let parent = Parent::now();
        spawn("watch", move || {
            let mut output = Some(output);
            let mut parent = parent;
            while output.is_some() || parent.is_some() {
                let seen = wait(output.as_deref(), parent.as_ref(), &released);
                if seen.released {
                    output = None;
                }
                if seen.output && output.take().is_some() {
                    report(Sighting::ClientStoppedReading);
                }
                if parent.as_ref().is_some_and(|p| seen.parent || p.is_gone()) {
                    parent = None;
                    report(Sighting::ParentDied);
                }
            }
        })?;
        Ok(OutputWatch(watch))
    }

    struct Seen {
        output: bool,
        parent: bool,
        released: bool,
    }

    fn wait(output: Option<&Pipe>, parent: Option<&Parent>, released: &OwnedFd) -> Seen {
        let mut fds = Vec::with_capacity(3);
        if let Some(pipe) = output {
            // Nothing is asked for: a closed reading end is always reported.
            fds.push(PollFd::new(pipe, PollFlags::empty()));
            fds.push(PollFd::new(released, PollFlags::IN));
        }
        let handle = parent.and_then(Parent::handle);
        if let Some(handle) = handle {
            fds.push(PollFd::new(handle, PollFlags::IN));
        }
        let limit = parent.and_then(Parent::look_again_after);
        let _ = poll(&mut fds, limit.as_ref());
        let hung_up = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Seen {
            output: output.is_some()
                && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            released: output.is_some() && hung_up(&fds[1]),
            parent: handle.is_some() && fds.last().is_some_and(hung_up),
        }
    }

    /// The process that started us.
    struct Parent {
        pid: Pid,
        #[cfg(target_os = "linux")]
        handle: Option<OwnedFd>,
    }

    impl Parent {
        /// None where our parent is init: it adopts what was orphaned on purpose, and does
        /// not end.
        fn now() -> Option<Self> {
            let pid = getppid().filter(|pid| !pid.is_init())?;
            Some(Self {
                pid,
                #[cfg(target_os = "linux")]
                handle: {
                    use rustix::process::{PidfdFlags, pidfd_open};
                    let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
                    // It may have ended, and its id been taken, before it was opened.
                    handle.filter(|_| getppid() == Some(pid))
                },
            })
        }

        #[cfg(target_os = "linux")]
        fn handle(&self) -> Option<&OwnedFd> {
            self.handle.as_ref()
        }

        #[cfg(not(target_os = "linux"))]
        fn handle(&self) -> Option<&OwnedFd> {
            None
        }

        /// Without a handle to wait on (macOS: not run yet; Linux before 5.3) we look.
        fn look_again_after(&self) -> Option<rustix::event::Timespec> {
            self.handle().is_none().then_some(rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 500_000_000,
            })
        }

        fn is_gone(&self) -> bool {
            getppid() != Some(self.pid)
        }
    }

    fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        Builder::new()
            .name(name.into())
            .stack_size(STACK)
            .spawn(body)
            .map(drop)
    }
}

/// Not run on Windows yet: console events end this process and, through its closed pipes,
/// the server; the client's end is noticed when a pipe breaks.
#[cfg(windows)]
mod windows {
    use super::super::descriptors::Pipe;
    use super::Sighting;
    use std::io;
    use std::process::Child;
    use std::sync::Arc;
    use std::time::Duration;

    pub(crate) const LOOK_AGAIN: Option<Duration> = Some(Duration::from_millis(20));

    #[derive(Debug)]
    pub(crate) struct OutputWatch;

    pub(crate) fn signals(_: impl Fn(Sighting) + Send + 'static) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn server_exit(_: &Child, _: impl Fn(Sighting) + Send + 'static) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn surroundings(
        _: Arc<Pipe>,
        _: impl Fn(Sighting) + Send + 'static,
    ) -> io::Result<OutputWatch> {
        Ok(OutputWatch)
    }
}
