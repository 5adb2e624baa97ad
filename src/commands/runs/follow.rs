//! `runs --follow`: sessions as they begin and end.

use crate::cli::Format;
use crate::commands::wait;
use crate::error::CommandError;
use crate::render::escape::text;
use crate::render::json;
use crate::render::time::{Clock, rfc3339, span};
use crate::render::words::count;
use crate::render::{short, status};
use agent_trace_analysis::outcomes::failures;
use agent_trace_store::Store;
use agent_trace_store::trace::follow::{Change, Watcher};
use agent_trace_store::trace::{Session, story};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

/// Goes on until it is interrupted, or nobody reads any more.
pub(super) fn run(store: &Store, format: Format) -> Result<u8, CommandError> {
    if format == Format::Json {
        return Err(CommandError::Usage {
            what: "what goes on is no JSON document".into(),
            hint: "`--format jsonl` prints an object for each run that begins or ends",
        });
    }
    let clock = Clock::local();
    let mut watcher = Watcher::new(store).map_err(CommandError::path(store.root()))?;
    let mut out = anstream::stdout().lock();
    loop {
        let changes = watcher.poll().map_err(CommandError::path(store.root()))?;
        for change in changes {
            match format {
                Format::Text => line(&mut out, &change, &clock)?,
                Format::Json | Format::Jsonl => json::line(&Event::of(&change))?,
            }
        }
        out.flush()?;
        wait::a_moment()?;
    }
}

/// A session that began or ended, as JSON.
#[derive(Serialize)]
struct Event<'a> {
    event: &'static str,
    /// The run that it is, or an id that its run also goes by.
    run: String,
    session: String,
    started: String,
    client: String,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
}

impl<'a> Event<'a> {
    fn of(change: &'a Change) -> Self {
        let (event, session) = match change {
            Change::Began(session) => ("began", session),
            Change::Ended(session) => ("ended", session),
        };
        let ended = event == "ended";
        let calls = session.steps.iter().filter(|step| step.tool().is_some());
        Self {
            event,
            run: session.entry.id.to_string(),
            session: session.entry.session.to_string(),
            started: rfc3339(session.entry.started),
            client: session.client(),
            server: session.server(),
            duration: ended.then(|| session.last.saturating_sub(session.entry.started)),
            calls: ended.then(|| calls.count()),
            status: ended.then(|| status_of(session)),
        }
    }
}

/// How an ended session stands, in a few words.
fn status_of(session: &Session) -> String {
    let story = story::of(session.entry.id, Vec::new(), &[session]);
    status(&story, &failures(&story))
}

/// `12:03:01.512 began ab12cd34 editor → github`
fn line(out: &mut impl Write, change: &Change, clock: &Clock) -> io::Result<()> {
    let names = |run: &Session| {
        let (client, server) = (run.client(), run.server().to_owned());
        let (client, server) = (text(client.as_bytes(), 40), text(server.as_bytes(), 40));
        format!("{} {client} → {server}", short(run.entry.id).bold())
    };
    match change {
        Change::Began(run) => {
            let time = clock.time(run.entry.started);
            writeln!(out, "{} began {}", time.dimmed(), names(run))
        }
        Change::Ended(run) => {
            let calls = run.steps.iter().filter(|step| step.tool().is_some());
            let took = run.last.saturating_sub(run.entry.started);
            writeln!(
                out,
                "{} ended {}, {}, {}, {}",
                clock.time(run.last).dimmed(),
                names(run),
                span(took),
                count(calls.count(), "call"),
                status_of(run)
            )
        }
    }
}
