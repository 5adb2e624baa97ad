//! Does a daemon run, and can its listeners be reached?

use super::Found;
use crate::config::Config;
use crate::daemon::client::{self, ClientError};
use crate::daemon::protocol::Status;
use crate::error::in_one_line;
use crate::render::escape;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a listener on this machine may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(1);

type List = Vec<(&'static str, Found)>;

pub(super) fn look(config: &Config, found: &mut List) {
    let status = match client::status(&config.store()) {
        Ok(status) => status,
        Err(ClientError::NotRunning(_)) => {
            let what = match config.listeners.len() {
                0 => Found::Good("none runs; only [[relay]] needs one".into()),
                declared => Found::Note(format!(
                    "none runs, and the configuration has {declared} [[relay]]: \
                     `agent-trace daemon start` starts one"
                )),
            };
            found.push(("daemon", what));
            return;
        }
        Err(error) => {
            let what = in_one_line(&error);
            found.push(("daemon", Found::Wrong(what, "stop it and start it again")));
            return;
        }
    };
    found.push(("daemon", version(&status)));
    if !status.recording.on {
        let why = shown(status.recording.why.as_deref().unwrap_or("not recording"));
        let what = if why == "AGENT_TRACE=off" {
            Found::Note("started with AGENT_TRACE=off: it relays unrecorded".into())
        } else {
            Found::Wrong(why, "what it relays is not recorded until that is mended")
        };
        found.push(("daemon", what));
    }
    if let Some(why) = &status.admin.error {
        let what = format!("{}: no metrics", shown(why));
        found.push(("daemon", Found::Note(what)));
    }
    for relay in &status.relays {
        let url = shown(&relay.url);
        let what = match &relay.error {
            Some(why) => Found::Wrong(
                format!("{url}: {}", shown(why)),
                "it is tried again every few seconds, and by `agent-trace daemon reload`",
            ),
            None if answers(&relay.listen) => Found::Good(format!("{url} accepts connections")),
            None => Found::Wrong(
                format!("{url} accepts no connections"),
                "`agent-trace daemon stop`, then `start`, opens it again",
            ),
        };
        found.push(("relay", what));
    }
}

fn version(status: &Status) -> Found {
    let ours = env!("CARGO_PKG_VERSION");
    let (pid, theirs) = (status.pid, shown(&status.program));
    if theirs == ours {
        Found::Good(format!("{theirs} runs as process {pid}"))
    } else {
        Found::Note(format!(
            "{theirs} runs as process {pid}, but this is {ours}: stop it and start it again"
        ))
    }
}

/// Whether the listener at this address accepts a connection.
fn answers(listen: &str) -> bool {
    let address = listen.parse();
    address.is_ok_and(|address: SocketAddr| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

fn shown(text: &str) -> String {
    escape::text(text.as_bytes(), 0)
}
