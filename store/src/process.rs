//! Who we are and who started us, as far as the system tells.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A process of this machine, named so that a reused number is told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot (Linux), or 0 where that is not known.
    #[serde(default)]
    pub started: u64,
    /// The name of its program, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl Process {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        Self::of(std::process::id())
    }

    /// The process that started this one.
    #[must_use]
    #[cfg(unix)]
    pub fn parent() -> Option<Self> {
        let pid = rustix::process::getppid()?.as_raw_nonzero().get();
        Some(Self::of(pid.cast_unsigned()))
    }

    /// The process that started this one: not known here.
    #[must_use]
    #[cfg(not(unix))]
    pub fn parent() -> Option<Self> {
        None
    }

    /// The folder it works in, where the system tells (Linux, of processes of the same user).
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// The process with this number.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        // In one read: the system makes the whole text anew for each.
        let mut stat = [0; 1024];
        let read = std::fs::File::open(format!("/proc/{pid}/stat"))
            .and_then(|mut file| std::io::Read::read(&mut file, &mut stat));
        let stat = String::from_utf8_lossy(&stat[..read.unwrap_or_default()]);
        // `pid (name) state ppid …`; the name may hold anything, parentheses too.
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        Self {
            pid,
            started: rest
                .split_ascii_whitespace()
                .nth(19)
                .and_then(|ticks| ticks.parse().ok())
                .unwrap_or_default(),
            name: name.split_once('(').unwrap_or_default().1.to_owned(),
        }
    }
}

/// The variable with which `agent-trace run` marks what it starts, and all that is started by
/// that: the name of the run.
pub const RUN_MARK: &str = "AGENT_TRACE_RUN";
/// Likewise the task that it is started for.
pub const TASK_MARK: &str = "AGENT_TRACE_TASK";
/// How many processes upwards the mark is looked for.
const MOST_PARENTS: usize = 32;
/// The most of an environment that is looked at, in bytes.
const MOST_ENVIRONMENT: u64 = 1 << 20;

/// What a mark says that this process was started for: by its own environment, else by that of
/// the processes above it, since some clients start servers with an environment of their own.
#[must_use]
pub fn marked(mark: &str) -> Option<String> {
    let own = std::env::var_os(mark).map(|name| name.to_string_lossy().into_owned());
    own.or_else(|| {
        let mut pid = std::process::id();
        for _ in 0..MOST_PARENTS {
            pid = parent_of(pid)?;
            if let Some(name) = mark_of(pid, mark) {
                return Some(name);
            }
        }
        None
    })
    .filter(|name| !name.is_empty())
}

/// The mark in the environment that a process was started with (Linux).
fn mark_of(pid: u32, mark: &str) -> Option<String> {
    let mut environment = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    let mut file = std::io::Read::take(file, MOST_ENVIRONMENT);
    std::io::Read::read_to_end(&mut file, &mut environment).ok()?;
    let mut variables = environment.split(|b| *b == 0);
    let value = variables.find_map(|variable| {
        let value = variable.strip_prefix(mark.as_bytes())?;
        value.strip_prefix(b"=")
    })?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // `pid (name) state ppid …`; the name may hold anything, parentheses too.
    let (_, rest) = stat.rsplit_once(')')?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

/// This machine's name.
#[must_use]
pub fn host() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    name
}

/// What tells one start of this machine from the next; empty where there is no such thing.
#[must_use]
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
