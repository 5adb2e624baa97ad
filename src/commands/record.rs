//! `record`: relay a stdio server and record both directions.

use crate::cap::Cap;
use crate::cli::Record;
use crate::config::{Config, Flags};
use crate::error::in_one_line;
use crate::recording::{acknowledge, is_off, options, say};
use agent_trace_model::{End, Ending, NoTap, Tap};
use agent_trace_proxy::stdio::{self, LastWill, Server};
use agent_trace_store::process::{self, RUN_MARK, TASK_MARK};
use agent_trace_store::recorder::{Hooks, Recorder, Setup, StdioSession};
use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The one session of a stdio relay.
const SESSION: u32 = 1;
/// How long a session's end waits for its last records. A disk that is slower than that
/// loses them; the client does not wait.
const FLUSH: Duration = Duration::from_millis(500);

/// Exits with the server's own status.
pub(crate) fn run(args: Record, flags: Flags) -> ExitCode {
    if let Some(relay) = stdio::already_relayed_by() {
        tracing::info!("process {relay} already relays this server; stepping aside");
        return fail(&stdio::become_server(&args.command));
    }
    // First of all, while there is one thread: the server's guardian is a fork of us.
    let started = Server::start(&args.command);
    let recorder = if is_off() {
        None
    } else {
        start_recorder(args, flags, started.as_ref().ok())
    };
    let tap: Arc<dyn Tap> = recorder
        .as_ref()
        .map_or_else(|| Arc::new(NoTap) as _, Recorder::tap);
    let server = match started {
        Ok(server) => server,
        Err(error) => {
            let code = fail(&error);
            finish(recorder, error.end());
            return code;
        }
    };
    tracing::info!(pid = server.pid(), "session started");
    match stdio::relay(server, SESSION, &tap) {
        Ok(end) => {
            let status = stdio::exit_status(&end);
            tracing::info!(status, "session ended");
            finish(recorder, end);
            // An exit status is a byte; that is all the system passes on.
            ExitCode::from(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
        }
        Err(error) => {
            say(&format!(
                "cannot use the standard streams: {}",
                in_one_line(&error)
            ));
            finish(recorder, not_relayed(&error));
            ExitCode::from(u8::try_from(stdio::EXIT_NOT_STARTED).unwrap_or(u8::MAX))
        }
    }
}

/// The end of a session that never got going.
fn not_relayed(error: &io::Error) -> End {
    End {
        ending: Ending::NotStarted,
        exit_code: None,
        signal: None,
        killed: true,
        error: Some(error.to_string()),
    }
}

fn start_recorder(args: Record, flags: Flags, server: Option<&Server>) -> Option<Recorder> {
    let pid = server.map(Server::pid);
    let cap: Arc<OnceLock<Cap>> = Arc::default();
    let limits = Arc::clone(&cap);
    let setup = move || setup(args, &flags, pid, &limits).map_err(|error| in_one_line(&error));
    let will: Option<LastWill> = server.map(Server::last_will);
    let opened = move |file: &File| {
        if let Some(will) = &will {
            will.sync(file);
        }
        // On the recorder's thread, each time that a file is begun.
        if let Some(cap) = cap.get() {
            cap.look_after();
        }
    };
    let hooks = Hooks {
        report: Box::new(say),
        acknowledge: acknowledge(),
        opened: Some(Box::new(opened)),
    };
    Recorder::start(setup, hooks)
        .map_err(|error| say(&format!("not recording: {error}")))
        .ok()
}

/// Runs on the recorder's thread.
fn setup(
    args: Record,
    flags: &Flags,
    pid: Option<u32>,
    limits: &OnceLock<Cap>,
) -> Result<Setup, crate::error::CommandError> {
    // A configuration that cannot be read may hold rules for secrets: better no record than
    // one that was made without them.
    let config = Config::load(flags)?;
    if let Some(cap) = Cap::of(&config) {
        let _ = limits.set(cap);
    }
    Ok(Setup {
        store: config.store(),
        options: options(&config, args.no_redact, args.bodies),
        session: Some(StdioSession {
            run: args.run.or_else(|| process::marked(RUN_MARK)),
            task: args.task.or_else(|| process::marked(TASK_MARK)),
            client: args.client,
            server: args.server,
            command: args.command,
            environment: std::env::vars_os().collect(),
            folder: std::env::current_dir().unwrap_or_default(),
            pid,
        }),
    })
}

fn finish(recorder: Option<Recorder>, end: End) {
    if let Some(recorder) = recorder
        && !recorder.finish(SESSION, end, FLUSH)
    {
        tracing::warn!("the disk was too slow for the last records");
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    say(&in_one_line(error));
    ExitCode::from(u8::try_from(stdio::EXIT_NOT_STARTED).unwrap_or(u8::MAX))
}
