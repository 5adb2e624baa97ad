//! Limits of the store are looked after without a daemon: a relay that begins, or goes on in a
//! new file, starts a process in the background for it, if none did lately.
//!
//! What that process meets is in the log of who started it, if that is still there, and told by
//! `doctor`.
//!
//! The relay waits for nothing: all of this is on the recorder's thread, and costs it a look at
//! one file's time, and from time to time the start of a process.

use crate::config::Config;
use agent_trace_store::Store;
use agent_trace_store::retention::{self, Outcome};
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often the limits are looked after.
pub(crate) const EVERY: Duration = Duration::from_secs(600);
/// How much less the background process counts than others.
pub(crate) const NICE: i32 = 10;

/// What looks after the limits of a store.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    store: Store,
    words: Vec<OsString>,
}

impl Cap {
    /// None where there are no limits.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        if config.retention().is_empty() {
            return None;
        }
        let mut words: Vec<OsString> = vec!["--log=error".into(), "--store".into()];
        words.push(config.store.0.clone().into());
        if let Some(path) = config.path.as_ref().filter(|_| config.exists) {
            words.extend(["--config".into(), path.clone().into()]);
        }
        words.extend(["retention", "apply", "--in-background"].map(OsString::from));
        Some(Self {
            store: config.store(),
            words,
        })
    }

    /// Starts it, if it is time.
    pub(crate) fn look_after(&self) {
        if !retention::is_due(&self.store, EVERY).unwrap_or(false) {
            return;
        }
        let Ok(program) = std::env::current_exe() else {
            return;
        };
        let mut command = Command::new(program);
        command
            .args(&self.words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Who ends the relay's group does not mean it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return self.failed(&error.to_string()),
        };
        // So that it does not stay behind as a zombie, and what it met is told.
        let this = self.clone();
        let wait = move || match child.wait() {
            Ok(status) if !status.success() => match retention::last_time(&this.store) {
                Some((_, Outcome::Failed(why))) => told(&why),
                _ => this.failed(&status.to_string()),
            },
            _ => {}
        };
        let _ = std::thread::Builder::new()
            .name("limits".into())
            .spawn(wait);
    }

    /// It could not even be begun.
    fn failed(&self, why: &str) {
        let _ = retention::note_outcome(&self.store, Some(why));
        told(why);
    }
}

fn told(why: &str) {
    tracing::warn!("the limits of [retention] were not looked after: {why}");
}
