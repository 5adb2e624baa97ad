//! Talking to a running daemon.

use super::protocol::{Answer, Reloaded, Said, Status, Stopping};
use crate::error::CommandError;
use agent_trace_index::control::client as control;
use agent_trace_store::Store;
use agent_trace_store::lock::{self, Holder};
use std::io;
use std::time::Duration;

/// How long an answer may take: a reload may wait for an address.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("no daemon runs for {}", .0.root().display())]
    NotRunning(Store),
    #[error("the daemon{} runs but does not answer", of(.0))]
    Silent(Holder, #[source] io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the daemon answered something that is not known here")]
    Unknown,
    #[error("cannot look at {}", .0.root().display())]
    Lock(Store, #[source] io::Error),
}

fn of(holder: &Holder) -> String {
    let pid = holder.pid.map(|pid| format!(" (process {pid})"));
    pid.unwrap_or_default()
}

impl ClientError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotRunning(_) => Some("`agent-trace daemon start` starts one"),
            Self::Silent(..) => Some("it may be starting or ending; if it hangs, end its process"),
            Self::Refused(_) => None,
            Self::Unknown => Some("it may be of another version: stop it and start it again"),
            Self::Lock(..) => None,
        }
    }
}

pub(crate) fn status(store: &Store) -> Result<Status, ClientError> {
    match ask(store, "status")? {
        Said::Status(status) => Ok(*status),
        other => Err(unexpected(other)),
    }
}

pub(crate) fn reload(store: &Store) -> Result<Reloaded, ClientError> {
    match ask(store, "reload")? {
        Said::Reloaded(reloaded) => Ok(reloaded),
        other => Err(unexpected(other)),
    }
}

/// Returns how long the daemon will let open exchanges go on.
pub(crate) fn stop(store: &Store) -> Result<Duration, ClientError> {
    match ask(store, "stop")? {
        Said::Stopping(Stopping { drain_ms }) => Ok(Duration::from_millis(drain_ms)),
        other => Err(unexpected(other)),
    }
}

fn unexpected(said: Said) -> ClientError {
    match said {
        Said::Error(why) => ClientError::Refused(why),
        _ => ClientError::Unknown,
    }
}

fn ask(store: &Store, command: &str) -> Result<Said, ClientError> {
    let held = lock::holder(&store.daemon_lock());
    let held = held.map_err(|error| ClientError::Lock(store.clone(), error))?;
    let holder = held.ok_or_else(|| ClientError::NotRunning(store.clone()))?;
    let Some(socket) = holder.socket.clone() else {
        let starting = io::Error::other("it has no socket yet");
        return Err(ClientError::Silent(holder, starting));
    };
    let said = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| {
            runtime.block_on(control::talk(
                &socket,
                control::command(command),
                Some(PATIENCE),
            ))
        });
    let line = said.map_err(|error| ClientError::Silent(holder, error))?;
    let answer: Answer = serde_json::from_str(&line).map_err(|_| ClientError::Unknown)?;
    Ok(answer.said)
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        Self::Daemon(error)
    }
}
