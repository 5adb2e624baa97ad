//! `key`: make, list and revoke keys for those who ask over MCP.
//!
//! - [`entry`]: entries for configurations of assistants

mod entry;

use crate::cli::Format;
use crate::cli::assistants::{Create, Key as Args, KeyCommand};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::render::escape::text;
use crate::render::json;
use crate::render::table::{self, Align};
use crate::render::time::{date, now, rfc3339};
use agent_trace_mcp_tools::key::{self, Wanted};
use agent_trace_store::State;
use agent_trace_store::audit::{Audit, Place};
use agent_trace_store::state::keys::Revoked;
use agent_trace_store::state::{Entry, Key};
use serde::Serialize;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    match &args.command {
        KeyCommand::Create(wanted) => create(wanted, config)?,
        KeyCommand::List(args) => list(args.format, config)?,
        KeyCommand::Revoke { key } => revoke(key, config)?,
    }
    Ok(exit::SUCCESS)
}

fn create(args: &Create, config: &Config) -> Result<(), CommandError> {
    let state = State::of(&config.store());
    let mut known = state.keys()?;
    let is_live = |revoked: Option<u64>| revoked.is_none();
    if known
        .iter()
        .any(|(key, revoked)| key.name == args.name && is_live(revoked))
    {
        return Err(CommandError::Usage {
            what: format!("there is a key {:?} already", args.name),
            hint: "revoke it first, or choose another name; `agent-trace key list` has them",
        });
    }
    let now = now();
    let expires = args.expires.map(|span| {
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        now.saturating_add(span)
    });
    let scopes = args.scopes.to_string();
    let wanted = Wanted {
        name: args.name.clone(),
        scopes: scopes.split(',').map(str::to_owned).collect(),
        workspace: args.workspace.clone(),
        user: args.user.clone(),
        expires,
        limit: args.limit.unwrap_or_default(),
    };
    let (secret, kept) = loop {
        let made = key::make(wanted.clone(), now);
        let (secret, kept) =
            made.map_err(|error| CommandError::failed("no random bytes")(io::Error::other(error)))?;
        if known.get(&kept.id).is_none() {
            break (secret, kept);
        }
        known = state.keys()?;
    };
    // First where it is handed to, so that no key counts that nobody has.
    if let Some(path) = &args.key_file {
        write(path, &secret)?;
    }
    state.append(&Entry::Key(kept.clone()))?;
    let mut out = anstream::stdout().lock();
    match (&args.key_file, args.client) {
        (None, _) => {
            writeln!(out, "{secret}")?;
            let mut errors = anstream::stderr().lock();
            writeln!(errors, "key {} ({scopes}): it is not shown again", kept.id)?;
        }
        (Some(path), client) => {
            let mut errors = anstream::stderr().lock();
            writeln!(
                errors,
                "key {} ({scopes}) is in {}",
                kept.id,
                path.display()
            )?;
            if let Some(client) = client {
                let path = std::path::absolute(path).map_err(CommandError::path(path))?;
                write!(out, "{}", entry::of(client, &path, config)?)?;
            }
        }
    }
    Ok(())
}

/// Writes a key to a new file that only its owner can read.
fn write(path: &Path, key: &str) -> Result<(), CommandError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::Exists {
            path: path.to_owned(),
        },
        _ => CommandError::path(path)(error),
    })?;
    let written = writeln!(file, "{key}").and_then(|()| file.sync_all());
    written.map_err(CommandError::path(path))
}

/// A key in a list.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    workspace: &'a str,
    scopes: &'a [String],
    /// Calls, and seconds in which.
    limit: (u32, u32),
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<String>,
    /// Whether it still counts.
    valid: bool,
}

fn list(format: Format, config: &Config) -> Result<(), CommandError> {
    let store = config.store();
    let keys = State::of(&store).keys()?;
    let mut used: HashMap<String, u64> = HashMap::new();
    let audit = Audit::of(&store);
    let read = audit.since(&mut Place::default(), &mut |call| {
        let last = used.entry(call.key).or_default();
        *last = (*last).max(call.at);
    });
    read.map_err(CommandError::failed("cannot read the audit log"))?;
    let now = now();
    let last_used = |key: &Key| used.get(&key.id).copied();
    match format {
        Format::Json => {
            let lines = keys
                .iter()
                .map(|(key, revoked)| Line::of(key, revoked, last_used(key), now));
            json::document(&lines.collect::<Vec<_>>())?;
        }
        Format::Jsonl => keys.iter().try_for_each(|(key, revoked)| {
            json::line(&Line::of(key, revoked, last_used(key), now))
        })?,
        Format::Text => {
            let rows: Vec<[String; 7]> = keys
                .iter()
                .map(|(key, revoked)| {
                    let counts = match (revoked, key.expires) {
                        (Some(at), _) => format!("revoked {}", date(at)),
                        (None, Some(end)) if end <= now => format!("expired {}", date(end)),
                        (None, Some(end)) => format!("until {}", date(end)),
                        (None, None) => "always".into(),
                    };
                    [
                        key.id.clone(),
                        text(key.name.as_bytes(), 24),
                        text(key.user.as_bytes(), 24),
                        text(key.workspace.as_bytes(), 24),
                        text(key.scopes.join(",").as_bytes(), 60),
                        counts,
                        used.get(&key.id).map_or("never".into(), |at| date(*at)),
                    ]
                })
                .collect();
            let heading = [
                "key",
                "name",
                "user",
                "workspace",
                "scopes",
                "counts",
                "last used",
            ];
            let heading = heading.map(|name| (name, Align::Left));
            table::print(&mut anstream::stdout().lock(), heading, &rows)?;
        }
    }
    Ok(())
}

impl<'a> Line<'a> {
    fn of(key: &'a Key, revoked: Option<u64>, last_used: Option<u64>, now: u64) -> Self {
        Self {
            id: &key.id,
            name: &key.name,
            user: &key.user,
            workspace: &key.workspace,
            scopes: &key.scopes,
            limit: key.limit,
            created: rfc3339(key.created),
            expires: key.expires.map(rfc3339),
            revoked: revoked.map(rfc3339),
            last_used: last_used.map(rfc3339),
            valid: revoked.is_none() && key.expires.is_none_or(|end| now < end),
        }
    }
}

fn revoke(name: &str, config: &Config) -> Result<(), CommandError> {
    let state = State::of(&config.store());
    let keys = state.keys()?;
    let is_it = |key: &Key| key.id == name || key.name == name;
    let live = keys.iter().filter(|(_, revoked)| revoked.is_none());
    let Some((key, _)) = live.into_iter().find(|(key, _)| is_it(key)) else {
        return Err(CommandError::Usage {
            what: format!("there is no key {name:?} that still counts"),
            hint: "`agent-trace key list` has them",
        });
    };
    state.append(&Entry::Revoked(Revoked {
        id: key.id.clone(),
        at: now(),
    }))?;
    writeln!(anstream::stderr(), "key {} is revoked", key.id)?;
    Ok(())
}
