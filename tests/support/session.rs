//! The host's side of a relay: starts it, writes and reads raw bytes, closes ends, sends
//! signals, and waits for its end.

use super::processes::{self, Process};
use super::{Home, LIMIT, Server, shown};
use agent_trace_store::process::RUN_MARK;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

static NEXT_RUN: AtomicU32 = AtomicU32::new(1);

/// A relay before its start.
pub(crate) struct Record<'a> {
    home: &'a Home,
    options: Vec<OsString>,
    reading: Reading,
    change: Vec<Change<'a>>,
}

/// Something to be done to the command before it starts.
type Change<'a> = Box<dyn FnOnce(&mut Command) + 'a>;

/// What becomes of what the relay prints.
#[derive(Clone)]
enum Reading {
    Kept,
    /// It is only counted; where this is not empty, it must be this again and again.
    Counted(Vec<u8>),
    /// Nothing is read until [`Session::begin_reading`].
    Later,
}

impl<'a> Record<'a> {
    pub(super) fn new(home: &'a Home) -> Self {
        Self {
            home,
            options: Vec::new(),
            reading: Reading::Kept,
            change: Vec::new(),
        }
    }

    /// An option of `record`.
    pub(crate) fn option(mut self, option: impl AsRef<OsStr>) -> Self {
        self.options.push(option.as_ref().into());
        self
    }

    pub(crate) fn unredacted(self) -> Self {
        self.option("--no-redact")
    }

    /// Changes its command: environment, folder, streams.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Command) + 'a) -> Self {
        self.change.push(Box::new(change));
        self
    }

    pub(crate) fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let (name, value) = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.with(move |command| {
            command.env(name, value);
        })
    }

    /// The host does not read until [`Session::begin_reading`].
    pub(crate) fn reading_later(mut self) -> Self {
        self.reading = Reading::Later;
        self
    }

    /// The host only counts what it reads, which must be this again and again.
    pub(crate) fn reading_only(mut self, unit: impl Into<Vec<u8>>) -> Self {
        self.reading = Reading::Counted(unit.into());
        self
    }

    /// The host only counts what it reads.
    pub(crate) fn only_counting(self) -> Self {
        self.reading_only("")
    }

    /// The command line as it would be run.
    pub(crate) fn command<S: AsRef<OsStr>>(self, server: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.home.program();
        command.arg("record").args(self.options);
        command.arg("--").args(server);
        // Each session is a run by itself: one client process starts all of a test's.
        let run = format!("test-{}", NEXT_RUN.fetch_add(1, Ordering::Relaxed));
        command
            .env(RUN_MARK, run)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.change
            .into_iter()
            .for_each(|change| change(&mut command));
        command
    }

    /// Starts it with this server.
    pub(crate) fn start(self, server: &Server) -> Session {
        self.start_command(server.command())
    }

    /// Starts it with this command as the server.
    pub(crate) fn start_command<S: AsRef<OsStr>>(
        self,
        server: impl IntoIterator<Item = S>,
    ) -> Session {
        let reading = self.reading.clone();
        Session::begin(&mut self.command(server), reading)
    }

    /// Sends this to the server, ends its input, and waits for the end.
    pub(crate) fn talk(self, server: &Server, input: impl AsRef<[u8]>) -> Ended {
        let session = self.start(server);
        session.send(input);
        session.close_input();
        session.wait()
    }
}

/// A running relay, or any other process that reads and prints.
///
/// One that is dropped is killed.
pub(crate) struct Session {
    child: Mutex<Child>,
    pub(crate) process: Process,
    writer: Mutex<Option<Sender<Vec<u8>>>>,
    writing: Mutex<Option<JoinHandle<()>>>,
    out: Output,
    err: Output,
    unread: Mutex<Option<std::process::ChildStdout>>,
}

/// How a session ended, and all that was read of it.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit status; of one that a signal ended minus the signal's number.
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    /// Bytes that were printed, kept or not.
    pub(crate) count: u64,
    /// From the call of [`Session::wait`] to the end.
    pub(crate) took: Duration,
}

impl Session {
    /// Starts a command that is no relay.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::begin(command, Reading::Kept)
    }

    fn begin(command: &mut Command, reading: Reading) -> Self {
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let process = Process::of(child.id());
        let session = Self {
            process,
            writer: Mutex::default(),
            writing: Mutex::default(),
            out: Output::default(),
            err: Output::default(),
            unread: Mutex::new(child.stdout.take()),
            child: Mutex::new(child),
        };
        let (input, errors) = {
            let mut child = session.child.lock().unwrap();
            (child.stdin.take(), child.stderr.take())
        };
        if let Some(input) = input {
            session.write_to(input);
        }
        session.err.read_from(errors, None);
        match reading {
            Reading::Later => {}
            Reading::Kept => session.begin_reading(),
            Reading::Counted(unit) => {
                let pipe = session.unread.lock().unwrap().take();
                session.out.read_from(pipe, Some(unit));
            }
        }
        session
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Writes are made by a thread, so that a full pipe does not keep the test waiting.
    fn write_to(&self, mut input: ChildStdin) {
        let (writer, pieces) = channel::<Vec<u8>>();
        let work = move || {
            for piece in pieces {
                // A relay that has ended takes no more, and the test will see why.
                if input.write_all(&piece).is_err() {
                    return;
                }
            }
        };
        *self.writer.lock().unwrap() = Some(writer);
        *self.writing.lock().unwrap() = Some(spawn(work));
    }

    /// Sends bytes in one write, unless the pipe is full.
    pub(crate) fn send(&self, bytes: impl AsRef<[u8]>) {
        let writer = self.writer.lock().unwrap();
        let writer = writer.as_ref().expect("the input is open");
        let _ = writer.send(bytes.as_ref().to_vec());
    }

    /// Sends bytes in writes of this size, with a pause after each.
    pub(crate) fn send_in_pieces(&self, bytes: impl AsRef<[u8]>, size: usize, pause: Duration) {
        for piece in bytes.as_ref().chunks(size) {
            self.send(piece);
            std::thread::sleep(pause);
        }
    }

    /// Ends the input after what was sent.
    pub(crate) fn close_input(&self) {
        drop(self.writer.lock().unwrap().take());
    }

    /// Waits until all that was sent was taken, and ends the input.
    pub(crate) fn close_input_and_wait_for_that(&self) {
        self.close_input();
        if let Some(writing) = self.writing.lock().unwrap().take() {
            super::wait_for("the input to be taken", || {
                writing.is_finished().then_some(())
            });
        }
    }

    pub(crate) fn begin_reading(&self) {
        let pipe = self.unread.lock().unwrap().take();
        self.out.read_from(pipe, None);
    }

    /// The host closes its reading end, which must not have been read from yet.
    pub(crate) fn stop_reading(&self) {
        let pipe = self.unread.lock().unwrap().take();
        drop(pipe.expect("a session that reads later"));
    }

    /// Reads so much, and nothing beyond, from a session that reads later.
    pub(crate) fn read(&self, count: usize) -> Vec<u8> {
        let mut unread = self.unread.lock().unwrap();
        let mut bytes = vec![0; count];
        let pipe = unread.as_mut().expect("a session that reads later");
        pipe.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Waits for so many bytes from the start of the session; returns them, and how long it
    /// took.
    #[track_caller]
    pub(crate) fn wait_for_bytes(&self, count: usize) -> (Vec<u8>, Duration) {
        let began = Instant::now();
        let bytes = self
            .out
            .wait(LIMIT, |read| read.count >= count as u64)
            .unwrap_or_else(|read| {
                panic!(
                    "{count} bytes did not come, but {}; standard error: {}",
                    shown(&read),
                    shown(&self.err.bytes())
                )
            });
        (bytes, began.elapsed())
    }

    /// Waits for so many bytes from the start of the session, without a look at them.
    #[track_caller]
    pub(crate) fn wait_for_count(&self, count: u64) {
        super::wait_for("what was sent", || {
            (self.output_count() >= count).then_some(())
        });
    }

    /// Waits for a text in what the host reads.
    #[track_caller]
    pub(crate) fn wait_for_text(&self, text: &str) {
        self.out.wait_for_text(text, "the output");
    }

    /// Waits for a text on standard error.
    #[track_caller]
    pub(crate) fn wait_for_error(&self, text: &str) {
        self.err.wait_for_text(text, "standard error");
    }

    /// Waits until the relay has closed its output.
    #[track_caller]
    pub(crate) fn wait_for_end_of_output(&self) {
        let ended = self.out.wait(LIMIT, |read| read.ended);
        assert!(ended.is_ok(), "the output does not end");
    }

    /// What was read so far.
    pub(crate) fn output(&self) -> Vec<u8> {
        self.out.bytes()
    }

    /// How many bytes were read so far.
    pub(crate) fn output_count(&self) -> u64 {
        self.out.read.lock().unwrap().count
    }

    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.err.bytes()).into_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        processes::signal(self.pid(), name);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for the end of the process and of its output.
    #[track_caller]
    pub(crate) fn wait(self) -> Ended {
        self.wait_at_most(LIMIT, "the relay")
    }

    #[track_caller]
    pub(crate) fn wait_at_most(self, limit: Duration, what: &str) -> Ended {
        let began = Instant::now();
        let end = began + limit;
        let status = loop {
            if let Some(status) = self.child.lock().unwrap().try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < end,
                "{what} did not end in {limit:?}; standard error: {}",
                self.errors()
            );
            std::thread::sleep(Duration::from_millis(1));
        };
        let took = began.elapsed();
        // A session that does not read has nothing to wait for.
        let reads = self.unread.lock().unwrap().is_none();
        let out = if reads {
            self.out.to_the_end("the output")
        } else {
            Vec::new()
        };
        use std::os::unix::process::ExitStatusExt;
        Ended {
            code: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or_default()),
            out,
            err: self.err.to_the_end("standard error"),
            count: self.output_count(),
            took,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        let mut servers = self.process.tree();
        servers.retain(|process| process.is_python());
        let _ = child.kill();
        let _ = child.wait();
        // A server that ends takes a last note; its folder is then removed.
        let end = Instant::now() + Duration::from_secs(5);
        while servers.iter().any(|server| server.is_alive()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

/// What a thread reads from a pipe.
#[derive(Clone, Default)]
struct Output {
    read: Arc<Mutex<Reads>>,
    news: Arc<Condvar>,
}

#[derive(Default)]
struct Reads {
    bytes: Vec<u8>,
    count: u64,
    ended: bool,
    wrong: Option<u64>,
}

impl Output {
    /// With a unit nothing is kept, but must be that unit again and again.
    fn read_from(&self, pipe: Option<impl Read + Send + 'static>, unit: Option<Vec<u8>>) {
        let Some(mut pipe) = pipe else {
            self.read.lock().unwrap().ended = true;
            return;
        };
        let this = self.clone();
        spawn(move || {
            let mut chunk = vec![0; 64 << 10];
            loop {
                let count = match pipe.read(&mut chunk) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => count,
                };
                this.take(&chunk[..count], unit.as_deref());
            }
            this.read.lock().unwrap().ended = true;
            this.news.notify_all();
        });
    }

    fn take(&self, chunk: &[u8], unit: Option<&[u8]>) {
        let mut read = self.read.lock().unwrap();
        match unit {
            None => read.bytes.extend_from_slice(chunk),
            Some([]) => {}
            Some(unit) => {
                let start = usize::try_from(read.count % unit.len() as u64).unwrap();
                let expected = unit.iter().cycle().skip(start);
                if !chunk.iter().zip(expected).all(|(a, b)| a == b) {
                    let at = read.count;
                    read.wrong.get_or_insert(at);
                }
            }
        }
        read.count += chunk.len() as u64;
        self.news.notify_all();
    }

    /// Waits for this; returns all bytes in either case.
    fn wait(&self, limit: Duration, is: impl Fn(&Reads) -> bool) -> Result<Vec<u8>, Vec<u8>> {
        let read = self.read.lock().unwrap();
        let not_yet = |read: &mut Reads| !is(read) && !read.ended;
        let (read, _) = self.news.wait_timeout_while(read, limit, not_yet).unwrap();
        assert_eq!(read.wrong, None, "what came is not what was sent");
        if is(&read) {
            Ok(read.bytes.clone())
        } else {
            Err(read.bytes.clone())
        }
    }

    #[track_caller]
    fn wait_for_text(&self, text: &str, what: &str) {
        let holds = |read: &Reads| String::from_utf8_lossy(&read.bytes).contains(text);
        if let Err(read) = self.wait(LIMIT, holds) {
            panic!("{text:?} does not come on {what}, but {}", shown(&read));
        }
    }

    #[track_caller]
    fn to_the_end(&self, what: &str) -> Vec<u8> {
        self.wait(LIMIT, |read| read.ended)
            .unwrap_or_else(|_| panic!("{what} was not closed although the process ended"))
    }

    fn bytes(&self) -> Vec<u8> {
        self.read.lock().unwrap().bytes.clone()
    }
}
