//! Who takes part, on which processors, and where they write.

use crate::process::{Pinned, Tree, allowed_processors};
use crate::{Result, nginx};
use agent_trace_store::Store;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// First arguments with which this program plays a part.
pub(crate) const ORIGIN: &str = "origin";
pub(crate) const FLOOD: &str = "flood";
pub(crate) const HOLD: &str = "hold";

/// What can stand between the client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Nothing.
    Direct,
    /// What the relay is compared with.
    Nginx,
    /// `agent-trace relay`, which records and redacts.
    Relay,
    /// The same with recording switched off, for information.
    Off,
}

impl Contender {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Relay => "agent-trace",
            Self::Off => "not recording",
        }
    }
}

/// All that can take part here.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = vec![Contender::Direct];
    all.extend(nginx::find().map(|_| Contender::Nginx));
    all.extend([Contender::Relay, Contender::Off]);
    all
}

/// Which processors client, server and what is between them run on. Left to itself the
/// system changes its mind about it, and with it the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    Any,
    /// All on one.
    One,
    /// Client and server on one, what is between them on another.
    Apart,
}

impl Processors {
    /// Those that can be had here.
    pub(crate) fn all() -> Vec<Self> {
        match allowed_processors().len() {
            ..2 => vec![Self::One],
            _ => vec![Self::One, Self::Apart, Self::Any],
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "anywhere",
            Self::One => "on one processor",
            Self::Apart => "across processors",
        }
    }
}

/// A server, and a temporary folder with the store and all other files.
pub(crate) struct Place {
    folder: TempDir,
    this: PathBuf,
    pub(crate) origin: Standing,
    /// The processor of what is before the server, where it differs.
    apart: Option<u32>,
    _pinned: Option<Pinned>,
}

impl Place {
    pub(crate) fn new(processors: Processors) -> Result<Self> {
        let allowed = allowed_processors();
        let first = allowed.first().copied().unwrap_or_default();
        let last = allowed.last().copied().unwrap_or_default();
        let pinned = match processors {
            Processors::Any => None,
            _ => Some(Pinned::to(first)?),
        };
        let this = std::env::current_exe()?;
        let mut origin = Command::new(&this)
            .arg(ORIGIN)
            .stdout(Stdio::piped())
            .spawn()?;
        let address = line(&mut BufReader::new(
            origin.stdout.take().ok_or("no output")?,
        ))?;
        let place = Self {
            folder: tempfile::tempdir()?,
            this,
            origin: Standing {
                address: address.parse()?,
                child: Some(origin),
            },
            apart: (processors == Processors::Apart).then_some(last),
            _pinned: pinned,
        };
        // The defaults, whatever the user's own configuration says.
        std::fs::write(place.path("config.toml"), "")?;
        Ok(place)
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.path("store"))
    }

    /// Starts the contender in front of the server.
    pub(crate) fn start(&self, contender: Contender) -> Result<Standing> {
        let origin = self.origin.address;
        if contender == Contender::Direct {
            return Ok(Standing {
                address: origin,
                child: None,
            });
        }
        // Free until a moment ago.
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let command = match nginx::find() {
            Some(nginx) if contender == Contender::Nginx => {
                nginx::command(&nginx, &self.path("nginx"), listen, origin)?
            }
            _ => self.relay(contender == Contender::Relay, listen),
        };
        let child = self
            .placed(&command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Standing {
            address: listen,
            child: Some(child),
        })
    }

    fn relay(&self, recording: bool, listen: SocketAddr) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-trace"));
        command
            .arg("--store")
            .arg(self.path(if recording { "store" } else { "unused" }))
            .arg("--config")
            .arg(self.path("config.toml"))
            .args(["relay", "--listen", &listen.to_string()])
            .args(["--to", &format!("http://{}", self.origin.address)]);
        // The switch that turns recording off.
        command.env_remove("AGENT_TRACE");
        if !recording {
            command.env("AGENT_TRACE", "off");
        }
        command
    }

    /// The command on its processor.
    fn placed(&self, command: &Command) -> Command {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(processor) = self.apart {
            words = vec!["taskset".into(), "-c".into(), processor.to_string().into()];
        }
        words.push(command.get_program().into());
        words.extend(command.get_args().map(Into::into));
        let mut placed = Command::new(&words[0]);
        placed.args(&words[1..]);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => placed.env(name, value),
                None => placed.env_remove(name),
            };
        }
        placed
    }

    /// Starts many connections.
    pub(crate) fn crowd(&self, part: &str, plan: &impl serde::Serialize) -> Result<Crowd> {
        let mut child = Command::new(&self.this)
            .arg(part)
            .arg(serde_json::to_string(plan)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Crowd { child, lines })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Something that listens.
pub(crate) struct Standing {
    pub(crate) address: SocketAddr,
    child: Option<Child>,
}

impl Standing {
    /// Its processes, of which there are none where nothing stands between.
    pub(crate) fn tree(&self) -> Tree {
        match &self.child {
            Some(child) => Tree::of(child.id()),
            None => Tree::default(),
        }
    }

    /// Ends it, and waits until it has written what it has to.
    pub(crate) fn stop(mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let pid = child.id().to_string();
        // By a program, since std has no call for it.
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill()?;
        child.wait()?;
        Err("it did not end when it was told to".into())
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process with many connections.
pub(crate) struct Crowd {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Crowd {
    /// Waits for a line that it prints.
    pub(crate) fn line(&mut self) -> Result<String> {
        line(&mut self.lines)
    }

    /// Lets it close its connections and end.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("many connections: {status}").into())
        }
    }
}

fn line(from: &mut BufReader<ChildStdout>) -> Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    if line.is_empty() {
        return Err("a part that this program plays ended early".into());
    }
    Ok(line.trim_end().to_owned())
}
