//! Starting the daemon in the background, and ending it.

use super::client::{self, ClientError};
use super::protocol::Status;
use super::{absolute, log_file};
use crate::config::{Config, Flags, Origin};
use crate::error::{CommandError, discreet};
use agent_trace_store::Store;
use agent_trace_store::lock;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the daemon may take to answer.
const STARTING: Duration = Duration::from_secs(10);
/// How long it may take to end beyond what it gives open exchanges.
const ENDING: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// A log that is longer is put aside at the next start.
const LONG_LOG: u64 = 4 << 20;
/// So much of a log's end is told when it did not start.
const TOLD: u64 = 4 << 10;

/// Starts it, and returns how it does once it answers.
pub(crate) fn start(flags: &Flags) -> Result<Status, CommandError> {
    let config = Config::load(flags)?;
    let store = absolute(&config.store())?;
    if let Ok(Some(holder)) = lock::holder(&store.daemon_lock()) {
        return Err(super::not_locked(&store, lock::LockError::Held(holder)));
    }
    let root = store.root();
    store.make(root).map_err(CommandError::path(root))?;
    let path = log_file(&store);
    let log = open_log(&path).map_err(CommandError::path(&path))?;
    let begin = log.metadata().map_or(0, |file| file.len());
    let failed = CommandError::failed("cannot start this program again");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(words(flags, &config)?)
        .args(["daemon", "run", "--detach"])
        // Its own would keep a disk from being unmounted.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(CommandError::path(&path))?)
        .stderr(log.try_clone().map_err(CommandError::path(&path))?);
    let failed = CommandError::failed("cannot start the daemon");
    let mut child = command.spawn().map_err(failed)?;

    let end = Instant::now() + STARTING;
    loop {
        match client::status(&store) {
            Ok(status) if status.pid == child.id() => return Ok(status),
            // Somebody else's, who was faster; ours will end.
            Ok(_) | Err(ClientError::NotRunning(_) | ClientError::Silent(..)) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = child
            .try_wait()
            .map_err(CommandError::failed("cannot wait"))?;
        let log = path.display();
        let what = match ended {
            Some(_) => format!("the daemon did not start; the end of {log}:"),
            None if Instant::now() < end => {
                std::thread::sleep(LOOK);
                continue;
            }
            None => format!(
                "the daemon (process {}) does not answer; the end of {log}:",
                child.id()
            ),
        };
        let said = said_since(&path, begin);
        return Err(CommandError::NotStarted { what, said });
    }
}

/// The options that all commands have, so that they mean the same from any folder and
/// without our environment.
pub(super) fn words(flags: &Flags, config: &Config) -> Result<Vec<OsString>, CommandError> {
    let mut words: Vec<OsString> = Vec::new();
    // What the file says is found there again, and may be changed there.
    if config.store.1 != Origin::File {
        words.extend(["--store".into(), absolute(&config.store())?.root().into()]);
    }
    if let Some(path) = config.path.as_ref().filter(|_| config.exists) {
        let path = std::path::absolute(path).map_err(CommandError::path(path))?;
        words.extend(["--config".into(), path.into()]);
    }
    if let Some(level) = flags.log {
        words.extend(["--log".into(), level.to_string().into()]);
    }
    Ok(words)
}

fn open_log(path: &PathBuf) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|file| file.len() > LONG_LOG) {
        std::fs::rename(path, path.with_extension("log.old"))?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The last lines of what was written to the log from there on.
fn said_since(path: &PathBuf, begin: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(length.saturating_sub(TOLD))))?;
        let mut bytes = Vec::new();
        file.take(TOLD).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    discreet(text.trim_end())
}

/// Ends it, and waits until it is gone.
pub(crate) fn stop(store: &Store) -> Result<(), CommandError> {
    let end = match client::stop(store) {
        Ok(drain) => Instant::now() + drain + ENDING,
        Err(error) => return Err(error.into()),
    };
    while lock::holder(&store.daemon_lock()).is_ok_and(|holder| holder.is_some()) {
        if Instant::now() > end {
            return Err(CommandError::Usage {
                what: "the daemon was told to end, but still runs".into(),
                hint: "`agent-trace daemon status` says its process, which can be killed: \
                       what is recorded is safe",
            });
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
