//! The daemon's side of the control socket.

use super::Daemon;
use super::protocol::{Answer, MOST_ASKED, Reloaded, Request, Said, Stopping, VERSION};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};

/// How long who connected may take to ask and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many are listened to at once.
const AT_ONCE: usize = 16;

/// Somebody wants the configuration to be read again.
pub(super) type Reload = oneshot::Sender<Result<Reloaded, String>>;

/// Answers whoever connects, for ever.
pub(super) async fn serve(listener: UnixListener, daemon: Arc<Daemon>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let daemon = Arc::clone(&daemon);
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, &daemon).await {
                        tracing::debug!("control socket: {error}");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("control socket: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: UnixStream, daemon: &Daemon) -> io::Result<()> {
    // The socket's mode says the same; this holds if somebody changed that.
    let (peer, us) = (stream.peer_cred()?.uid(), rustix::process::geteuid());
    if peer != us.as_raw() && peer != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(MOST_ASKED));
    tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await??;
    let said = answer(&line, daemon).await;
    let version = VERSION;
    let mut text = serde_json::to_string(&Answer { version, said })?;
    text.push('\n');
    tokio::time::timeout(PATIENCE, writer.write_all(text.as_bytes())).await?
}

async fn answer(line: &str, daemon: &Daemon) -> Said {
    let request: Request = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => return Said::Error(format!("not a request: {error}")),
    };
    if request.version != VERSION {
        let theirs = request.version;
        return Said::Error(format!(
            "this daemon (agent-trace {}) speaks version {VERSION} of the control protocol, \
             not {theirs}",
            env!("CARGO_PKG_VERSION")
        ));
    }
    match request.command.as_str() {
        "status" => Said::Status(Box::new(daemon.status())),
        "stop" => {
            daemon.shutdown.cancel();
            let drain_ms = daemon.drain().as_millis();
            Said::Stopping(Stopping {
                drain_ms: u64::try_from(drain_ms).unwrap_or(u64::MAX),
            })
        }
        "reload" => match daemon.ask_for_reload().await {
            Ok(reloaded) => Said::Reloaded(reloaded),
            Err(why) => Said::Error(why),
        },
        other => {
            let other: String = other.chars().take(40).collect();
            Said::Error(format!(
                "this daemon (agent-trace {}) knows status, stop and reload, not {other:?}",
                env!("CARGO_PKG_VERSION")
            ))
        }
    }
}
