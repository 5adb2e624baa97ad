//! Who takes part, on which processors, and where they write.

use crate::Result;
use crate::process::{Pinned, allowed_processors};
use agent_trace_store::Store;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// First arguments with which this program plays a part.
pub(crate) const SERVE: &str = "serve";
pub(crate) const MIRROR: &str = "mirror";
pub(crate) const PUMP: &str = "pump";
/// The parts that are servers.
pub(crate) const SERVERS: [&str; 2] = [SERVE, MIRROR];

/// What can stand between the client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Nothing.
    Direct,
    /// A byte pump.
    Pump,
    /// A byte pump that appends every chunk to a file: what the relay is compared with.
    Tee,
    /// `agent-trace record`, with redaction.
    Relay,
}

impl Contender {
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Pump, Self::Tee, Self::Relay];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Pump => "pump",
            Self::Tee => "pump+tee",
            Self::Relay => "agent-trace",
        }
    }
}

/// Which processors client, server and what is between them run on. Waking a process on
/// another processor can cost ten times what waking it on the same one does, and left to
/// itself the system now does the one, now the other; that would drown what is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    Any,
    /// All on one.
    One,
    /// Client and server on one, what is between them on another.
    Apart,
}

/// A temporary folder with the store and the pump's file, on the same disk; and processors.
pub(crate) struct Place {
    folder: TempDir,
    this: PathBuf,
    /// The processors of the server, and of what is before it, where they differ.
    apart: Option<(u32, u32)>,
    _pinned: Option<Pinned>,
}

impl Place {
    pub(crate) fn new(processors: Processors) -> Result<Self> {
        let allowed = allowed_processors();
        let first = allowed.first().copied().unwrap_or_default();
        let last = allowed.last().copied().unwrap_or_default();
        let place = Self {
            folder: tempfile::tempdir()?,
            this: std::env::current_exe()?,
            apart: (processors == Processors::Apart).then_some((first, last)),
            _pinned: match processors {
                Processors::Any => None,
                _ => Some(Pinned::to(first)?),
            },
        };
        // The defaults, whatever the user's own configuration says.
        std::fs::write(place.path("config.toml"), "")?;
        Ok(place)
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.path("store"))
    }

    /// The contender in front of a server of ours.
    pub(crate) fn command(&self, contender: Contender) -> Command {
        let this = self.this.clone().into_os_string();
        match contender {
            Contender::Direct => command(vec![this, SERVE.into()]),
            Contender::Pump => self.before(SERVE, vec![this, PUMP.into()]),
            Contender::Tee => {
                let file = self.path("tee").into();
                self.before(SERVE, vec![this, PUMP.into(), "--tee".into(), file])
            }
            Contender::Relay => self.relay(SERVE, true),
        }
    }

    /// The relay in front of a server that plays this part.
    pub(crate) fn relay(&self, part: &str, redact: bool) -> Command {
        let mut words: Vec<OsString> = vec![
            env!("CARGO_BIN_EXE_agent-trace").into(),
            "--store".into(),
            self.path("store").into(),
            "--config".into(),
            self.path("config.toml").into(),
            "record".into(),
        ];
        if !redact {
            words.push("--no-redact".into());
        }
        let mut command = self.before(part, words);
        // The switch that turns recording off.
        command.env_remove("AGENT_TRACE");
        command
    }

    /// These words, dashes, and the server.
    fn before(&self, part: &str, mut words: Vec<OsString>) -> Command {
        let mut server = vec![self.this.clone().into_os_string(), part.into()];
        if let Some((first, last)) = self.apart {
            words = on(last, words);
            server = on(first, server);
        }
        words.push("--".into());
        words.extend(server);
        command(words)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The command on this processor.
fn on(processor: u32, command: Vec<OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["taskset".into(), "-c".into()];
    words.push(processor.to_string().into());
    words.extend(command);
    words
}

fn command(words: Vec<OsString>) -> Command {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}
