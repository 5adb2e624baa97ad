//! Running the check command within its bounds: of time, and of what it may say.

use crate::config::{Check, ENV_STORE, ENV_SWITCH};
use agent_trace_model::RunId;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// In which environment variable the command finds the run's id.
const ENV_RUN: &str = "AGENT_TRACE_CHECKED_RUN";
/// Bytes of its output that are kept of each stream: the last ones.
const MOST_SAID: usize = 64 << 10;
/// Bytes after a cut that are not kept either: a secret that the cut goes through could not be
/// told any more.
const AFTER_A_CUT: usize = 16 << 10;
/// Characters of it that become the reason.
const MOST_REASON: usize = 1000;
/// How often it is looked whether the command has ended.
const TICK: Duration = Duration::from_millis(10);
/// How long a process that it left behind may hold its output open.
const LINGER: Duration = Duration::from_millis(200);

/// How the command ended, and the end of what it said, with the secrets in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Exit {
        code: i32,
        said: String,
    },
    Signal {
        number: i32,
        said: String,
    },
    TooLong {
        said: String,
    },
    /// It was told to.
    Stopped,
}

/// Runs the command until it ends, or this says to stop.
pub(super) fn run(
    check: &Check,
    store: &Path,
    run: RunId,
    story: Vec<u8>,
    stop: &AtomicBool,
) -> io::Result<Ended> {
    let (program, arguments) = check
        .command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(ENV_RUN, run.to_string())
        .env(ENV_STORE, store)
        .current_dir(&check.folder)
        .env(ENV_SWITCH, "off")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A group of its own, so that all of it can be ended.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // It need not read all of it, nor any.
        thread::spawn(move || drop(stdin.write_all(&story)));
    }
    let out = child.stdout.take().map(collect);
    let errors = child.stderr.take().map(collect);
    let status = wait(&mut child, check.timeout, stop)?;
    // What is left of its group ends with it.
    kill(&mut child, status.is_some());
    if status.is_none() && stop.load(Ordering::Relaxed) {
        return Ok(Ended::Stopped);
    }
    let until = Instant::now() + LINGER;
    let (out, errors) = (gather(out.as_ref(), until), gather(errors.as_ref(), until));
    let said = if out.trim().is_empty() { errors } else { out };
    let Some(status) = status else {
        return Ok(Ended::TooLong { said });
    };
    Ok(match status.code() {
        Some(code) => Ended::Exit { code, said },
        None => Ended::Signal {
            number: signal(status),
            said,
        },
    })
}

/// Waits for its end; none where that did not come in time.
fn wait(child: &mut Child, limit: Duration, stop: &AtomicBool) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now().checked_add(limit);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        if is_late || stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

fn kill(child: &mut Child, ended: bool) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    if !ended {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What is read of a stream.
struct Collected {
    tail: Arc<Mutex<Tail>>,
    /// Says that it ended.
    end: Receiver<()>,
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Not each time: that would move all of it again and again.
        if self.bytes.len() > 2 * MOST_SAID {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if let Some(over @ 1..) = self.bytes.len().checked_sub(MOST_SAID) {
            self.bytes.drain(..over);
            self.is_cut = true;
        }
    }

    fn take(&mut self) -> String {
        self.cut();
        let from = if self.is_cut { AFTER_A_CUT } else { 0 };
        String::from_utf8_lossy(&self.bytes[from..]).into_owned()
    }
}

/// Reads a stream to its end, and keeps that.
fn collect(mut stream: impl Read + Send + 'static) -> Collected {
    let (send, end) = mpsc::channel();
    let tail = Arc::new(Mutex::new(Tail::default()));
    let collected = Arc::clone(&tail);
    thread::spawn(move || {
        let mut buffer = [0; 8 << 10];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            lock(&collected).push(&buffer[..length]);
        }
        let _ = send.send(());
    });
    Collected { tail, end }
}

fn gather(from: Option<&Collected>, until: Instant) -> String {
    let Some(from) = from else {
        return String::new();
    };
    let left = until.saturating_duration_since(Instant::now());
    let _ = from.end.recv_timeout(left);
    lock(&from.tail).take()
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last line that says something, or the end of it. To be asked for when there are no
/// secrets in it any more.
pub(super) fn reason(said: &str) -> String {
    let mut lines = said.lines().rev().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().rev().nth(MOST_REASON - 1) {
        Some((at @ 1.., _)) => format!("\u{2026}{}", &line[at..]),
        _ => line.to_owned(),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> i32 {
    0
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str, timeout: Duration) -> Ended {
        let check = Check {
            command: ["sh", "-c", script].map(String::from).to_vec(),
            folder: "/".into(),
            timeout,
        };
        let run = RunId::from_digest([1; 16]);
        let never = AtomicBool::new(false);
        let story = vec![b'x'; 1 << 20];
        match super::run(&check, Path::new("/data"), run, story, &never).unwrap() {
            Ended::Exit { code, said } => Ended::Exit {
                code,
                said: reason(&said),
            },
            Ended::Signal { number, said } => Ended::Signal {
                number,
                said: reason(&said),
            },
            Ended::TooLong { said } => Ended::TooLong {
                said: reason(&said),
            },
            Ended::Stopped => Ended::Stopped,
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn its_status_and_last_line_are_the_answer() {
        let said = String::from("that is why");
        let script = "echo first; echo that is why; echo log >&2; exit 1";
        assert_eq!(of(script, LONG), Ended::Exit { code: 1, said });
        let said = "log".into();
        assert_eq!(of("echo log >&2", LONG), Ended::Exit { code: 0, said });
        let said = "1048576".into();
        assert_eq!(of("wc -c", LONG), Ended::Exit { code: 0, said });
        let said = format!("{} /data off", RunId::from_digest([1; 16]));
        let script = "echo $AGENT_TRACE_CHECKED_RUN $AGENT_TRACE_DIR $AGENT_TRACE";
        assert_eq!(of(script, LONG), Ended::Exit { code: 0, said });
        let said = String::new();
        assert_eq!(of("kill -9 $$", LONG), Ended::Signal { number: 9, said });
    }

    #[test]
    fn the_end_of_much_output_counts() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last";
        let said = "last".into();
        assert_eq!(of(script, LONG), Ended::Exit { code: 0, said });
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push(&[b'a'; 3000]);
        }
        tail.push(b"end");
        let said = tail.take();
        assert_eq!(said.len(), MOST_SAID - AFTER_A_CUT);
        assert!(said.ends_with("aend"));
        let mut tail = Tail::default();
        tail.push(&[b'a'; MOST_SAID]);
        assert_eq!(tail.take().len(), MOST_SAID);
        assert_eq!(reason(&said).chars().count(), MOST_REASON + 1);
        assert!(reason(&said).ends_with("aend"));
        assert_eq!(
            reason(&"\u{e4}".repeat(MOST_REASON)).chars().count(),
            MOST_REASON
        );
    }

    #[test]
    fn it_may_not_take_longer_than_it_may() {
        let began = Instant::now();
        let ended = of("echo begun; sleep 100", Duration::from_millis(300));
        let said = "begun".into();
        assert_eq!(ended, Ended::TooLong { said });
        // What it leaves behind keeps nobody waiting.
        let said = "done".into();
        let ended = of("sleep 100 & echo done", LONG);
        assert_eq!(ended, Ended::Exit { code: 0, said });
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn it_ends_when_it_is_told_to() {
        let check = Check {
            folder: "/".into(),
            command: ["sh", "-c", "sleep 100"].map(String::from).to_vec(),
            timeout: LONG,
        };
        let (run, stop) = (RunId::from_digest([1; 16]), AtomicBool::new(true));
        let ended = super::run(&check, Path::new("/data"), run, vec![], &stop);
        assert_eq!(ended.unwrap(), Ended::Stopped);
    }
}
