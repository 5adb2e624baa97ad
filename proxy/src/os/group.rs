//! The server's process group, and the guardian that ends it when we cannot.
//!
//! The server is started as the leader of a group of its own, so that launchers
//! (`npx`, `sh -c`, `uv run`) and what they launch can be ended together. A *guardian*, a
//! forked copy of this process that does nothing but wait on a socket, ends the group when we
//! are killed without a chance to do so ourselves. Since it outlives us, it also forces the
//! journal to the disk at the end, which the client would otherwise wait for.

#[cfg(unix)]
pub(crate) use unix::{Group, Guardian, has_exited, prepare};
#[cfg(windows)]
pub(crate) use windows::{Group, Guardian, prepare};

#[cfg(unix)]
mod unix {
    use super::super::sys;
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    };
    use rustix::process::{
        Pid, Signal, WaitId, WaitIdOptions, kill_process_group, setsid, test_kill_process_group,
        waitid,
    };
    use std::fs::File;
    use std::io::{self, IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::sync::Arc;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    /// How long the guardian waits between asking the group to end and killing it. Shorter
    /// than the relay's own grace: whoever killed the relay wants this gone.
    const GUARDIAN_GRACE: Duration = Duration::from_secs(2);

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

    /// Whether the process has ended. It is not waited for, so that its number, and that of its
    /// group, stays its own.
    pub(crate) fn has_exited(child: &Child) -> bool {
        let Some(pid) = Pid::from_raw(child.id().cast_signed()) else {
            return true;
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    /// What the guardian is told: a letter and a number, sometimes with a descriptor.
    const MESSAGE: usize = 5;
    /// The group to end has this number.
    const GROUP: u8 = b'g';
    /// The descriptor is of a file to force to the disk.
    const FILE: u8 = b'f';
    /// The group may live on.
    const RELEASE: u8 = b'r';

    /// Our end of the guardian's socket. It acts when the last copy is closed, at the latest
    /// when this process ends, however that happens.
    #[derive(Clone, Debug)]
    pub(crate) struct Guardian(Option<Arc<OwnedFd>>);

    impl Guardian {
        /// Forks the guardian. Must be called while this process has a single thread.
        pub(crate) fn fork() -> io::Result<Self> {
            let (theirs, ours) = socketpair(
                AddressFamily::UNIX,
                SocketType::STREAM,
                SocketFlags::CLOEXEC,
                None,
            )?;
            sys::fork(|| guard(theirs))?;
            Ok(Self(Some(Arc::new(ours))))
        }

        /// A guardian that does nothing, for where none could be had.
        pub(crate) fn absent() -> Self {
            Self(None)
        }

        /// Tells the guardian which group to end.
        pub(crate) fn watch_over(&self, group: Group) {
            if let Group(Some(pid)) = group {
                self.tell(GROUP, pid.as_raw_nonzero().get(), None);
            }
        }

        /// Has this file forced to the disk when we are gone: nobody waits for a process that
        /// nobody waits for. Only the last file that was named is.
        pub(crate) fn sync_at_end(&self, file: &File) {
            self.tell(FILE, 0, Some(file));
        }

        /// Lets what is left of the group live on.
        pub(crate) fn release(&self) {
            self.tell(RELEASE, 0, None);
        }

        fn tell(&self, letter: u8, number: i32, file: Option<&File>) {
            let Some(socket) = &self.0 else { return };
            let mut message = [letter; MESSAGE];
            message[1..].copy_from_slice(&number.to_ne_bytes());
            let descriptors = file.map(|file| [file.as_fd()]);
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if let Some(descriptors) = &descriptors {
                ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
            }
            let parts = [IoSlice::new(&message)];
            let _ = sendmsg(socket, &parts, &mut ancillary, SendFlags::NOSIGNAL);
        }
    }

    /// The guardian's whole life.
    fn guard(socket: OwnedFd) {
        // A session of its own: a signal to the client's process group or terminal must end
        // the relay, and the guardian then has work to do.
        let _ = setsid();
        if keep_only(socket).is_err() {
            return;
        }
        let (mut group, mut file) = (None, None);
        while let Some((letter, number, descriptor)) = listen() {
            match letter {
                GROUP => group = Pid::from_raw(number),
                FILE => file = descriptor.map(File::from),
                RELEASE => group = None,
                _ => {}
            }
        }
        // The lock on it says that someone writes, and that was the relay.
        if let Some(file) = &file {
            let _ = file.unlock();
        }
        if let Some(group) = group {
            end(group);
        }
        if let Some(file) = file {
            let _ = file.sync_data();
        }
    }

    fn end(group: Pid) {
        let _ = kill_process_group(group, Signal::TERM);
        let limit = Instant::now() + GUARDIAN_GRACE;
        while test_kill_process_group(group).is_ok() {
            if Instant::now() >= limit {
                let _ = kill_process_group(group, Signal::KILL);
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Makes the socket standard input and closes everything else: a copy of the client's
    /// pipes held open here would keep the client waiting for their end.
    fn keep_only(socket: OwnedFd) -> io::Result<()> {
        rustix::stdio::dup2_stdin(&socket)?;
        let null = File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        // Closed by number below, so not to be closed again by a drop.
        std::mem::forget((socket, null));
        sys::close_from(3);
        Ok(())
    }

    /// The next message; none when there will be no more.
    fn listen() -> Option<(u8, i32, Option<OwnedFd>)> {
        let socket = rustix::stdio::stdin();
        let (mut message, mut known, mut descriptor) = ([0; MESSAGE], 0, None);
        while known < MESSAGE {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut message[known..])];
            match recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) if received.bytes > 0 => known += received.bytes,
                Err(rustix::io::Errno::INTR) => continue,
                _ => return None,
            }
            for part in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(mut received) = part {
                    descriptor = received.next();
                }
            }
        }
        let [letter, number @ ..] = message;
        Some((letter, i32::from_ne_bytes(number), descriptor))
    }
}

/// Not run on Windows yet. `taskkill` ends the server and what it started; a job object, which
/// would do so when we are killed too, is still to be written.
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

    #[derive(Clone, Debug)]
    pub(crate) struct Guardian;

    impl Guardian {
        pub(crate) fn fork() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn absent() -> Self {
            Self
        }

        pub(crate) fn watch_over(&self, _: Group) {}

        /// Left to the system.
        pub(crate) fn sync_at_end(&self, _: &std::fs::File) {}

        pub(crate) fn release(&self) {}
    }
}
