//! Processes that a started server left behind outside of its group, as daemons do.
//!
//! On Linux they become children of ours when their parent ends, once we ask for that. Elsewhere
//! they stay.

#[cfg(target_os = "linux")]
pub(crate) use linux::{Children, adopt, kill};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use other::{Children, adopt, kill};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
    use std::collections::BTreeSet;

    /// How often it is looked for more: those who start others while they are ended could go on
    /// for ever.
    const ROUNDS: usize = 50;

    /// Children that this process has.
    #[derive(Debug, Default)]
    pub(crate) struct Children(BTreeSet<i32>);

    /// Has orphans become our children from now on. Returns the children that there are, which
    /// are others'.
    pub(crate) fn adopt() -> Children {
        if let Err(error) = rustix::process::set_child_subreaper(Some(getpid())) {
            tracing::debug!("orphans stay: {error}");
        }
        Children(children())
    }

    /// Ends all children but those.
    pub(crate) fn kill(before: &Children) {
        for _ in 0..ROUNDS {
            let left = children();
            let left: Vec<Pid> = left
                .difference(&before.0)
                .filter_map(|pid| Pid::from_raw(*pid))
                .collect();
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
                // Killed, it ends at once; what it started is ours then.
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
        }
    }

    /// The kernel lists the children of each thread.
    fn children() -> BTreeSet<i32> {
        let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
        let lists = threads
            .flatten()
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        lists
            .flat_map(|list| {
                let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
                pids.collect::<Vec<i32>>()
            })
            .collect()
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod other {
    #[derive(Debug, Default)]
    pub(crate) struct Children;

    pub(crate) fn adopt() -> Children {
        Children
    }

    pub(crate) fn kill(_: &Children) {}
}
