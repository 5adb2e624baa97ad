//! `mcp-scan pins`: what servers define, what of it changed, and what is accepted.

use crate::cli::Format;
use crate::cli::scan::{PinsCommand, Which};
use crate::config::{Config, WORKSPACE};
use crate::error::{CommandError, exit};
use crate::judge;
use crate::query::Index;
use crate::render::escape::text;
use crate::render::table::{self, Align};
use crate::render::words::count;
use crate::render::{json, time};
use agent_trace_index::RunsError;
use agent_trace_index::listing::Projects;
use agent_trace_index::pins::{self, Pin, PinChange, PinsQuery, Standing};
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_scanners::pin::Kind;
use agent_trace_scanners::pin::diff::Change;
use agent_trace_store::state::{Entry, State};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

pub(super) fn run(command: &PinsCommand, config: &Config) -> Result<u8, CommandError> {
    match command {
        PinsCommand::Show { which, format } => show(config, which, *format),
        PinsCommand::Diff { which, format } => diff(config, which, *format),
        PinsCommand::Approve { which, all, format } => approve(config, which, *all, *format),
    }
}

/// The pins that are meant.
fn ask(config: &Config, which: &Which, texts: bool) -> Result<Vec<Pin>, CommandError> {
    let index = Index::of(config.store())?;
    let mut query = PinsQuery {
        workspace: WORKSPACE.into(),
        projects: Projects::All,
        server: which.server.clone(),
        name: which.name.clone(),
        texts,
        after: 0,
    };
    let mut all = Vec::new();
    loop {
        let Reply::Pins(page) = index.ask(Query::Pins(query.clone()))? else {
            return Err(RunsError::Unknown(None).into());
        };
        all.extend(page.pins);
        match page.next {
            Some(next) => query.after = next,
            None => break,
        }
    }
    if all.is_empty() && (which.server.is_some() || which.name.is_some()) {
        return Err(CommandError::Usage {
            what: "no server defines that, as far as is recorded".into(),
            hint: "`agent-trace mcp-scan pins show` lists what servers define",
        });
    }
    Ok(all)
}

fn show(config: &Config, which: &Which, format: Format) -> Result<u8, CommandError> {
    let pins = ask(config, which, false)?;
    let lines = || pins.iter().map(Line::of);
    match format {
        Format::Text => print(&mut anstream::stdout().lock(), &pins)?,
        Format::Json => json::document(&lines().collect::<Vec<_>>())?,
        Format::Jsonl => lines().try_for_each(|line| json::line(&line))?,
    }
    Ok(exit::SUCCESS)
}

fn print(out: &mut impl Write, pins: &[Pin]) -> io::Result<()> {
    if pins.is_empty() {
        return writeln!(out, "no server was seen to define anything");
    }
    use Align::{Left, Right};
    let heading = [
        ("SERVER", Left),
        ("DEFINES", Left),
        ("NAME", Left),
        ("HASH", Left),
        ("FORMS", Right),
        ("FIRST SEEN", Left),
        ("STANDS", Left),
    ];
    let row = |pin: &Pin| {
        let standing = pin.standing.as_str();
        let hash = pin.forms.first().map_or("", |form| &form.hash);
        [
            text(pin.server.as_bytes(), 48),
            pin.kind.as_str().to_owned(),
            text(pin.name.as_bytes(), 40),
            hash.get(..12).unwrap_or_default().to_owned(),
            pin.forms.len().to_string(),
            pin.first.map_or_else(|| "-".into(), time::date),
            match pin.standing {
                Standing::Changed => standing.red().to_string(),
                Standing::New => standing.yellow().to_string(),
                Standing::Seen | Standing::Approved => standing.to_owned(),
            },
        ]
    };
    let rows: Vec<[String; 7]> = pins.iter().map(row).collect();
    table::print(out, heading, &rows)
}

fn diff(config: &Config, which: &Which, format: Format) -> Result<u8, CommandError> {
    let mut pins = ask(config, which, false)?;
    pins.retain(|pin| pin.standing == Standing::Changed);
    let lines = || pins.iter().map(Line::of);
    match format {
        Format::Text => {
            let mut out = anstream::stdout().lock();
            for pin in &pins {
                for one in &pin.changes {
                    change(&mut out, pin, one)?;
                }
            }
            if pins.is_empty() {
                writeln!(out, "nothing changed")?;
            }
        }
        Format::Json => json::document(&lines().collect::<Vec<_>>())?,
        Format::Jsonl => lines().try_for_each(|line| json::line(&line))?,
    }
    Ok(match pins.is_empty() {
        true => exit::SUCCESS,
        false => exit::FOUND,
    })
}

fn change(out: &mut impl Write, pin: &Pin, change: &PinChange) -> io::Result<()> {
    let server = text(pin.server.as_bytes(), 0);
    let since = match change.from_approved {
        true => "since it was approved",
        false => "since it was seen before",
    };
    writeln!(
        out,
        "{} {} {} of {server}: changed {} {since}",
        change.found.severity.as_str().red(),
        pin.kind.as_str(),
        text(pin.name.as_bytes(), 0).cyan(),
        time::date(change.when),
    )?;
    if change.fields.is_empty() {
        writeln!(out, "    too long to be compared field by field")?;
    }
    change.fields.iter().try_for_each(|one| field(out, one))
}

/// A field that changed: what stood there and what does, escaped.
pub(super) fn field(out: &mut impl Write, field: &Change) -> io::Result<()> {
    let (start, end) = field.bytes;
    let pointer = text(field.pointer.as_bytes(), 200);
    writeln!(out, "    {pointer} bytes {start}-{end}")?;
    if let Some(old) = &field.old {
        writeln!(out, "    {} {}", "-".red(), text(old.as_bytes(), 0))?;
    }
    if let Some(new) = &field.new {
        writeln!(out, "    {} {}", "+".green(), text(new.as_bytes(), 0))?;
    }
    Ok(())
}

fn approve(config: &Config, which: &Which, all: bool, format: Format) -> Result<u8, CommandError> {
    if which.server.is_none() && !all {
        return Err(CommandError::Usage {
            what: "it is not said which server is approved".into(),
            hint: "give a server as `mcp-scan pins show` names it, or --all",
        });
    }
    let mut pins = ask(config, which, true)?;
    pins.retain(|pin| pin.standing != Standing::Approved);
    let at = judge::now();
    let approvals: Vec<Entry> = pins
        .iter()
        .map(|pin| Entry::Approval(pins::approval(WORKSPACE, pin, at)))
        .collect();
    let state = State::of(&config.store());
    if !approvals.is_empty() {
        state.append_all(&approvals)?;
    }
    match format {
        Format::Text => {
            let mut out = anstream::stdout().lock();
            for pin in &pins {
                writeln!(
                    out,
                    "approved {} {} of {}",
                    pin.kind.as_str(),
                    text(pin.name.as_bytes(), 0).cyan(),
                    text(pin.server.as_bytes(), 0)
                )?;
            }
            writeln!(out, "{} approved", count(pins.len(), "definition"))?;
        }
        Format::Json | Format::Jsonl => {
            for pin in &mut pins {
                pin.standing = Standing::Approved;
                pin.approved = Some(at);
                pin.changes.clear();
                pin.forms.iter_mut().for_each(|form| form.approved = true);
            }
            let lines: Vec<Line<'_>> = pins.iter().map(Line::of).collect();
            match format {
                Format::Json => json::document(&lines)?,
                _ => lines.iter().try_for_each(json::line)?,
            }
        }
    }
    Ok(exit::SUCCESS)
}

/// A pin as JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// What identifies the server.
    server: &'a str,
    /// What it was called.
    called: &'a [String],
    kind: Kind,
    name: &'a str,
    standing: Standing,
    /// Those in which it is told now, the newest first.
    forms: Vec<FormLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ChangeLine<'a>>,
}

#[derive(Serialize)]
struct FormLine<'a> {
    hash: &'a str,
    approved: bool,
    views: usize,
}

#[derive(Serialize)]
struct ChangeLine<'a> {
    code: &'a str,
    severity: &'a str,
    time: String,
    session: String,
    old_hash: &'a str,
    new_hash: &'a str,
    /// Whether the old one is what was approved.
    from_approved: bool,
    fields: &'a [Change],
}

impl<'a> Line<'a> {
    fn of(pin: &'a Pin) -> Self {
        let form = |form: &'a pins::PinForm| FormLine {
            hash: &form.hash,
            approved: form.approved,
            views: form.views.len(),
        };
        let change = |change: &'a PinChange| ChangeLine {
            code: &change.found.code,
            severity: change.found.severity.as_str(),
            time: time::rfc3339(change.when),
            session: change.at.session.to_string(),
            old_hash: &change.old,
            new_hash: &change.new,
            from_approved: change.from_approved,
            fields: &change.fields,
        };
        Self {
            server: &pin.server,
            called: &pin.called,
            kind: pin.kind,
            name: &pin.name,
            standing: pin.standing,
            forms: pin.forms.iter().map(form).collect(),
            first_seen: pin.first.map(time::rfc3339),
            approved: pin.approved.map(time::rfc3339),
            changes: pin.changes.iter().map(change).collect(),
        }
    }
}
