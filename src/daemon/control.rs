//! The daemon's side of the control socket: its own commands, and questions about what was
//! recorded while it owns the index.

use super::Daemon;
use super::protocol::{Answer, Reloaded, Said, Stopping};
use agent_trace_index::control::server::{Asked, Handler, refusal};
use agent_trace_index::protocol::VERSION;
use std::pin::Pin;
use tokio::sync::oneshot;

/// Somebody wants the configuration to be read again.
pub(super) type Reload = oneshot::Sender<Result<Reloaded, String>>;

impl Handler for Daemon {
    fn answer(&self, asked: Asked) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async move {
            match asked {
                Asked::Command(command) => self.obey(&command).await,
                // Not awaited under the lock of its place.
                Asked::Query(query) => match self.index.answering() {
                    Some(index) => index.line(query).await,
                    None => {
                        let why = "the daemon does not have the index: it waits for another \
                                   process, or is ending";
                        refusal(self.program(), why.into())
                    }
                },
            }
        })
    }

    fn program(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
}

impl Daemon {
    async fn obey(&self, command: &str) -> String {
        let said = match command {
            "status" => Said::Status(Box::new(self.status())),
            "stop" => {
                self.shutdown.cancel();
                let drain_ms = self.drain().as_millis();
                Said::Stopping(Stopping {
                    drain_ms: u64::try_from(drain_ms).unwrap_or(u64::MAX),
                })
            }
            "reload" => match self.ask_for_reload().await {
                Ok(reloaded) => Said::Reloaded(reloaded),
                Err(why) => return refusal(self.program(), why),
            },
            other => {
                let other: String = other.chars().take(40).collect();
                let why = format!(
                    "this daemon (agent-trace {}) knows status, stop and reload, not {other:?}",
                    self.program()
                );
                return refusal(self.program(), why);
            }
        };
        let version = VERSION;
        let text = serde_json::to_string(&Answer { version, said });
        text.unwrap_or_else(|error| refusal(self.program(), error.to_string()))
    }
}
