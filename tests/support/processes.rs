//! Who is still there, and what it takes: read from `/proc`.

use super::{LIMIT, wait_at_most};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// A process that is told apart from a later one with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// In clock ticks since boot.
    started: u64,
}

impl Process {
    /// The process with this number, which must be there.
    pub(crate) fn of(pid: u32) -> Self {
        let started = Stat::of(pid).map_or(0, |stat| stat.started);
        Self { pid, started }
    }

    /// Whether it runs. One that only waits to be collected does not.
    pub(crate) fn is_alive(self) -> bool {
        Stat::of(self.pid)
            .is_some_and(|stat| stat.started == self.started && !"ZX".contains(stat.state))
    }

    /// Whether there is anything of it, a status to be collected included.
    pub(crate) fn exists(self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.started == self.started)
    }

    /// It and all that descends from it.
    pub(crate) fn tree(self) -> Vec<Self> {
        let all: Vec<(u32, Stat)> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, Stat::of(pid)?)))
            .collect();
        let mut tree = vec![self];
        let mut next = 0;
        while let Some(parent) = tree.get(next).copied() {
            let children = all.iter().filter(|(_, stat)| stat.parent == parent.pid);
            tree.extend(children.map(|(pid, stat)| Self {
                pid: *pid,
                started: stat.started,
            }));
            next += 1;
        }
        tree
    }

    /// Whether it runs Python, as scripted servers do.
    pub(crate) fn is_python(self) -> bool {
        fs::read_link(format!("/proc/{}/exe", self.pid))
            .is_ok_and(|program| program.to_string_lossy().contains("python"))
    }

    /// Resident memory now, in bytes.
    pub(crate) fn memory(self) -> u64 {
        self.status("VmRSS") * 1024
    }

    /// The most memory that was resident at once, in bytes.
    pub(crate) fn peak_memory(self) -> u64 {
        self.status("VmHWM") * 1024
    }

    pub(crate) fn threads(self) -> u64 {
        self.status("Threads")
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// How many bytes it has read so far, of whatever.
    pub(crate) fn bytes_read(self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/io", self.pid)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("rchar: "));
        count
            .and_then(|count| count.parse().ok())
            .unwrap_or_default()
    }

    /// Processor time of all its threads so far.
    pub(crate) fn processor_time(self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
        let nanoseconds = |task: fs::DirEntry| -> Option<u64> {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok()
        };
        let spent = tasks
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(nanoseconds);
        Duration::from_nanos(spent.sum())
    }

    /// Waits until it has had nothing to do for a while.
    #[track_caller]
    pub(crate) fn wait_until_idle(self) {
        let mut before = Duration::ZERO;
        wait_at_most(LIMIT, "a process that has done its work", || {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.processor_time();
            let idle = now.saturating_sub(before) < Duration::from_millis(2);
            before = now;
            idle.then_some(())
        });
    }

    fn status(self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok())
            .unwrap_or_default()
    }
}

/// Waits until none of these runs any more.
#[track_caller]
pub(crate) fn wait_until_gone(processes: &[Process]) {
    wait_until_gone_in(LIMIT, processes);
}

#[track_caller]
pub(crate) fn wait_until_gone_in(limit: Duration, processes: &[Process]) {
    let names: Vec<String> = processes
        .iter()
        .map(|process| format!("{} ({})", process.pid, name(process.pid)))
        .collect();
    wait_at_most(limit, &format!("the end of {}", names.join(", ")), || {
        processes
            .iter()
            .all(|process| !process.is_alive())
            .then_some(())
    });
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, name: &str) {
    // The shell's own: `kill` is not everywhere a program.
    let script = format!("kill -{name} {pid}");
    let sent = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(sent.status.success(), "{script}: {sent:?}");
}

/// Kills a process that a test started, if it is still there.
pub(crate) fn end(process: Process) {
    if process.is_alive() {
        signal(process.pid, "KILL");
    }
}

fn name(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    words.chars().take(100).collect()
}

struct Stat {
    state: char,
    parent: u32,
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may hold anything, closing parentheses too.
        let (_, rest) = text.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            state: words.first()?.chars().next()?,
            parent: words.get(1)?.parse().ok()?,
            started: words.get(19)?.parse().ok()?,
        })
    }
}
