//! What processes use, from `/proc`, and the processors that they run on.

use crate::Result;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long whoever had a turn gets to finish what it left for later, before the next turn:
/// twice the tick of a recorder.
pub(crate) const SETTLE: Duration = Duration::from_millis(10);

/// A process and those that it started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree(Vec<u32>);

/// Memory in MB (10^6 bytes).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// What is in use now.
    pub(crate) now: f64,
    /// The most that ever was. Over processes this is the sum of their peaks.
    pub(crate) peak: f64,
}

impl Tree {
    /// All that run under this process now, itself included.
    pub(crate) fn of(root: u32) -> Self {
        let parents: Vec<(u32, u32)> = processes()
            .filter_map(|pid| Some((pid, parent(pid)?)))
            .collect();
        let mut found = vec![root];
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            let children = parents.iter().filter(|(_, parent)| *parent == pid);
            found.extend(children.map(|(child, _)| *child));
            next += 1;
        }
        Self(found)
    }

    /// Without those that play one of these parts: what a relay adds.
    pub(crate) fn without(mut self, parts: &[&str]) -> Self {
        self.0.retain(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let part = line.split(|&b| b == 0).nth(1).unwrap_or_default();
            !parts.iter().any(|name| name.as_bytes() == part)
        });
        self
    }

    /// Time on a processor in microseconds, of all threads that live. From the scheduler's
    /// own account, which is exact, while `stat` counts in hundredths of a second.
    pub(crate) fn cpu(&self) -> f64 {
        let threads = self.0.iter().flat_map(|pid| {
            let list = fs::read_dir(format!("/proc/{pid}/task"));
            list.into_iter().flatten().flatten()
        });
        let nanoseconds: u64 = threads
            .filter_map(|thread| {
                let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
                text.split_ascii_whitespace().next()?.parse::<u64>().ok()
            })
            .sum();
        nanoseconds as f64 / 1e3
    }

    /// What each of the processes takes, in their order; none of those that are gone.
    pub(crate) fn memory_of_each(&self) -> Vec<Memory> {
        let memory = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            Some(Memory {
                now: megabytes(&status, "VmRSS:")?,
                peak: megabytes(&status, "VmHWM:")?,
            })
        };
        self.0.iter().filter_map(memory).collect()
    }

    pub(crate) fn memory(&self) -> Memory {
        let add = |sum: Memory, each: Memory| Memory {
            now: sum.now + each.now,
            peak: sum.peak + each.peak,
        };
        self.memory_of_each()
            .into_iter()
            .fold(Memory::default(), add)
    }

    /// How many files, sockets and the like they have open.
    pub(crate) fn descriptors(&self) -> usize {
        let open = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.0.iter().map(open).sum()
    }

    /// Waits until the processes have nothing left to do, but not for ever.
    pub(crate) fn wait_until_idle(&self) {
        let end = Instant::now() + Duration::from_secs(30);
        let (mut before, mut quiet) = (self.cpu(), 0);
        while quiet < 3 && Instant::now() < end {
            sleep(2 * SETTLE);
            let now = self.cpu();
            // A timer that looks around takes less than this.
            quiet = if now - before < 300.0 { quiet + 1 } else { 0 };
            before = now;
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, closing parentheses too.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn megabytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    let number: f64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1024.0 / 1e6)
}

/// The processors that this process may run on.
pub(crate) fn allowed_processors() -> Vec<u32> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse().ok()?)
    };
    let ranges = allowed_list();
    ranges.split(',').filter_map(range).flatten().collect()
}

/// Lets this process, and those that it starts, have so many descriptors open. Returns
/// whether they may.
pub(crate) fn permit_descriptors(count: u64) -> bool {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let mut words = line.unwrap_or_default().split_ascii_whitespace();
    let mut limit = || match words.next() {
        Some("unlimited") => u64::MAX,
        word => word.and_then(|word| word.parse().ok()).unwrap_or(0),
    };
    let (now, most) = (limit(), limit());
    if now >= count || most < count {
        return now >= count;
    }
    // By a program, since std has no call for it.
    let this = std::process::id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &this, &format!("--nofile={count}:{most}")])
        .status();
    raised.is_ok_and(|status| status.success())
}

fn allowed_list() -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

/// While this lives, the main thread and what it starts run on one processor.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: String,
}

impl Pinned {
    pub(crate) fn to(processor: u32) -> Result<Self> {
        let before = allowed_list();
        pin(&processor.to_string())?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It worked before; if it does not now, the next section runs on one processor.
        let _ = pin(&self.before);
    }
}

/// By a program, since std has no call for it.
fn pin(list: &str) -> Result<()> {
    let this = std::process::id().to_string();
    let status = Command::new("taskset")
        .args(["-c", "-p", list, &this])
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("taskset (util-linux) is needed: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("taskset ended with {status}").into())
    }
}
