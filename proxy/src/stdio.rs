//! The stdio relay: started by a client in place of its server, it starts the server and
//! moves bytes between the two.
//!
//! - [`relay`] wires it: start the server, start the pumps, keep watch, end in order
//! - `pump`: one direction, a blocking thread: read, write, hand the copy to the tap
//! - `life`: who ends when, and how
//!
//! Plain threads, because asynchronous standard input and output would cost a thread hop for
//! each read. Any bytes pass, in any framing or none; the two directions know nothing of
//! each other.

mod life;
mod pump;

use crate::os::descriptors::{from_child, take_stderr, take_stdin, take_stdout};
use crate::os::group::{self, Group, Guardian};
use crate::os::{nested, resolve, watch};
use agent_trace_model::{Channel, End, Ending, Stream, Tap};
use life::{Event, Life};
use pump::{Pump, Pumped};
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// The exit status for a server that could not be started, as a shell would have it.
pub const EXIT_NOT_STARTED: i32 = 127;

/// A server that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {}: {why}", command.to_string_lossy())]
pub struct StartError {
    /// The command, as it was given.
    pub command: OsString,
    /// What is wrong with it, PATH included where it was searched.
    pub why: String,
}

impl StartError {
    /// How this stands in a trace.
    #[must_use]
    pub fn end(&self) -> End {
        End {
            ending: Ending::NotStarted,
            exit_code: None,
            signal: None,
            killed: false,
            error: Some(self.to_string()),
        }
    }
}

/// The process id of the relay of ours that already stands between the client and this
/// process, if there is one. This process should then become the server itself.
#[must_use]
pub fn already_relayed_by() -> Option<u32> {
    nested::relaying_ancestor()
}

/// Replaces this process by the server. Returns only when that fails.
#[must_use]
pub fn become_server(command: &[OsString]) -> StartError {
    let Some((program, arguments)) = command.split_first() else {
        return start_error(OsStr::new(""), &io::ErrorKind::NotFound.into());
    };
    let mut server = Command::new(resolve::program(program));
    server.args(arguments);
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut server);
    #[cfg(not(unix))]
    let error = match server.status() {
        // Only reached where another relay was found, which does not happen there yet.
        Ok(_) => io::ErrorKind::Unsupported.into(),
        Err(error) => error,
    };
    start_error(program, &error)
}

/// A server that was started and waits for its relay.
#[derive(Debug)]
pub struct Server {
    child: Child,
    group: Group,
    guardian: Guardian,
    events: std::sync::mpsc::Receiver<Event>,
    report: Sender<Event>,
}

impl Server {
    /// Starts the server: in a process group of its own, with our environment, folder and
    /// these arguments.
    ///
    /// Must be called from the main thread, while it is the only one: the guardian is a fork,
    /// and the server's death signal is tied to the calling thread.
    ///
    /// # Errors
    /// When the command cannot be started.
    pub fn start(command: &[OsString]) -> Result<Self, StartError> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(start_error(OsStr::new(""), &io::ErrorKind::NotFound.into()));
        };
        let guardian = Guardian::fork().unwrap_or_else(|error| {
            tracing::warn!("no guardian: {error}");
            Guardian::absent()
        });
        let (report, events) = channel();
        // Before the start, so that a signal that comes meanwhile is not lost.
        let to = report.clone();
        if let Err(error) = watch::signals(move |s| _ = to.send(Event::Sighting(s))) {
            tracing::warn!("signals are not passed on: {error}");
        }
        let mut server = Command::new(resolve::program(program));
        server
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        group::prepare(&mut server);
        let child = match server.spawn() {
            Ok(child) => child,
            Err(error) => {
                guardian.release();
                return Err(start_error(program, &error));
            }
        };
        let group = Group::of(&child);
        guardian.watch_over(group);
        Ok(Self {
            child,
            group,
            guardian,
            events,
            report,
        })
    }

    /// The server's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What has to be done when this process is gone.
    #[must_use]
    pub fn last_will(&self) -> LastWill {
        LastWill(self.guardian.clone())
    }
}

/// What has to be done when this process is gone, and who does it then.
#[derive(Clone, Debug)]
pub struct LastWill(Guardian);

impl LastWill {
    /// Has a file forced to the disk; only the last one that was named. The client, which
    /// waits for this process, does not wait for that.
    pub fn sync(&self, file: &std::fs::File) {
        self.0.sync_at_end(file);
    }
}

/// Moves bytes between the client (our standard streams) and the server until both are done.
/// Returns how the session ended; see [`exit_status`] for what to exit with.
///
/// # Errors
/// When our standard streams cannot be used at all; the server is then ended.
pub fn relay(mut server: Server, source: u32, tap: &Arc<dyn Tap>) -> io::Result<End> {
    let channel = |stream| Channel {
        source,
        exchange: 0,
        stream,
    };
    let client_out = Arc::new(take_stdout()?);
    let to = server.report.clone();
    let output_watch = watch::surroundings(Arc::clone(&client_out), move |s| {
        _ = to.send(Event::Sighting(s));
    })?;
    let to = server.report.clone();
    watch::server_exit(&server.child, move |s| _ = to.send(Event::Sighting(s)))?;

    let output = server.child.stdout.take().map(|pipe| {
        let pump = Pump::new(channel(Stream::ServerToClient), tap, from_child(pipe));
        let done = reporter(&server.report, Event::OutputEnded);
        pump.spawn(client_out, move |how| {
            // The client must see the end of its pipe, so nobody else may hold it open.
            drop(output_watch);
            done(how);
        })
    });
    let output = output.transpose()?;
    let input = server.child.stdin.take().map(|pipe| {
        let pump = Pump::new(channel(Stream::ClientToServer), tap, take_stdin()?);
        let (report, output) = (server.report.clone(), output.clone());
        pump.spawn(pipe, move |how| {
            // Asked now, before the server can see the end of its input and follow.
            let in_answer = output.is_some_and(|output| output.has_ended());
            _ = report.send(Event::InputEnded { how, in_answer });
        })
    });
    let errors = server.child.stderr.take().map(|pipe| {
        let pump = Pump::new(channel(Stream::Stderr), tap, from_child(pipe));
        pump.spawn(
            take_stderr()?,
            reporter(&server.report, |_| Event::ErrorsEnded),
        )
    });
    // Nothing of the pipes is left in here: they are the pumps' alone.
    let life = Life {
        group: server.group,
        source,
        tap: Arc::clone(tap),
        output,
        errors: errors.transpose()?,
    };
    drop(input.transpose()?);
    let outcome = life.run(&server.events, &mut server.child);
    if outcome.leave_group {
        server.guardian.release();
    }
    Ok(outcome.end)
}

/// What this process exits with after a session: the server's own status, or 128 plus the
/// number of the signal that ended it.
#[must_use]
pub fn exit_status(end: &End) -> i32 {
    match (end.exit_code, end.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => EXIT_NOT_STARTED,
    }
}

fn reporter(
    report: &Sender<Event>,
    event: fn(Pumped) -> Event,
) -> impl FnOnce(Pumped) + Send + 'static {
    let report = report.clone();
    move |how| _ = report.send(event(how))
}

fn start_error(command: &OsStr, error: &io::Error) -> StartError {
    StartError {
        command: command.to_owned(),
        why: resolve::why_not(command, error),
    }
}
