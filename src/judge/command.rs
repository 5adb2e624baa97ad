//! Running the check command within its bounds: of time, and of what it may say.

use crate::config::{Check, ENV_STORE, ENV_SWITCH};
use agent_trace_model::RunId;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// In which environment variable the command finds the run's id.
const ENV_RUN: &str = "AGENT_TRACE_CHECKED_RUN";
/// Bytes of its output that are kept of each stream, from its beginning.
const MOST_SAID: usize = 64 << 10;
/// Characters of it that become the reason.
const MOST_REASON: usize = 1000;
/// How often it is looked whether the command has ended.
const TICK: Duration = Duration::from_millis(10);
/// How long a process that it left behind may hold its output open.
const LINGER: Duration = Duration::from_millis(200);

/// How the command ended, and what it said.
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
    let said = reason(if out.trim().is_empty() { &errors } else { &out });
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

/// Reads a stream to its end, and keeps its beginning.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let (mut buffer, mut kept) = ([0; 8 << 10], 0);
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            let wanted = length.min(MOST_SAID - kept);
            kept += wanted;
            if wanted > 0 && send.send(buffer[..wanted].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

fn gather(from: Option<&Receiver<Vec<u8>>>, until: Instant) -> String {
    let mut all = Vec::new();
    let left = || until.saturating_duration_since(Instant::now());
    while let Some(some) = from
        .as_ref()
        .and_then(|from| from.recv_timeout(left()).ok())
    {
        all.extend(some);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The last line that says something.
fn reason(said: &str) -> String {
    let mut lines = said.lines().rev().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MOST_REASON).collect()
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
            timeout,
        };
        let run = RunId::from_digest([1; 16]);
        let never = AtomicBool::new(false);
        super::run(&check, Path::new("/data"), run, vec![b'x'; 1 << 20], &never).unwrap()
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
            command: ["sh", "-c", "sleep 100"].map(String::from).to_vec(),
            timeout: LONG,
        };
        let (run, stop) = (RunId::from_digest([1; 16]), AtomicBool::new(true));
        let ended = super::run(&check, Path::new("/data"), run, vec![], &stop);
        assert_eq!(ended.unwrap(), Ended::Stopped);
    }
}
