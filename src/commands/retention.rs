//! `retention`: seal finished journals, and remove what is beyond the limits; say what would go,
//! and what the disk is used for.
//!
//! - [`shown`]: plans and usage, as text and as JSON

mod shown;

use crate::cap;
use crate::cli::retention::{Action, Apply, Limits, Retention};
use crate::config::Config;
use crate::error::{CommandError, exit, in_one_line};
use crate::render::time::bytes;
use crate::render::words::count;
use agent_trace_store::retention::{self, Policy};
use owo_colors::OwoColorize;
use std::io::Write;

pub(crate) fn run(args: Retention, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let out = &mut anstream::stdout().lock();
    match args.action() {
        Action::Plan(args) => {
            let policy = policy(&args.limits, config);
            let plan =
                retention::plan(&store, &policy).map_err(CommandError::path(store.root()))?;
            shown::plan(out, &plan, &policy, &args)?;
        }
        Action::Usage(args) => {
            let usage = retention::usage(&store).map_err(CommandError::path(store.root()))?;
            shown::usage(out, &usage, args.format)?;
        }
        Action::Apply(args) if args.in_background => return in_background(&args, config),
        Action::Apply(args) => return apply(out, &args, config),
    }
    Ok(exit::SUCCESS)
}

fn apply(out: &mut impl Write, args: &Apply, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let applied = retention::apply(&store, policy(&args.limits, config))
        .map_err(CommandError::path(store.root()))?;
    writeln!(
        out,
        "sealed {}, removed {}: {} before, {} now",
        count(applied.sealed, "file"),
        count(applied.removed.len(), "session"),
        bytes(applied.bytes.0),
        bytes(applied.bytes.1)
    )?;
    for error in &applied.failed {
        writeln!(
            anstream::stderr(),
            "{} {}",
            "warning:".yellow(),
            in_one_line(error)
        )?;
    }
    Ok(if applied.failed.is_empty() {
        exit::SUCCESS
    } else {
        exit::FAILURE
    })
}

/// On behalf of a relay, which has told that it is time.
fn in_background(args: &Apply, config: &Config) -> Result<u8, CommandError> {
    #[cfg(unix)]
    let _ = rustix::process::nice(cap::NICE);
    let store = config.store();
    let applied = retention::apply(&store, policy(&args.limits, config))
        .map_err(CommandError::path(store.root()));
    // Nobody sees this process, so it leaves word.
    let failed = match &applied {
        Ok(applied) => applied.failed.first().map(|first| {
            let more = applied.failed.len() - 1;
            match more {
                0 => in_one_line(first),
                more => format!("{} (and {more} more)", in_one_line(first)),
            }
        }),
        Err(error) => Some(in_one_line(error)),
    };
    let _ = retention::note_outcome(&store, failed.as_deref());
    let applied = applied?;
    tracing::info!(
        sealed = applied.sealed,
        removed = applied.removed.len(),
        failed = applied.failed.len(),
        "limits were looked after"
    );
    Ok(if failed.is_none() {
        exit::SUCCESS
    } else {
        exit::FAILURE
    })
}

/// The limits of the command line where there are any, else those of the configuration.
fn policy(args: &Limits, config: &Config) -> Policy {
    let given = retention::Limits {
        age: args.max_age,
        sessions: args.max_sessions,
        bytes: args.max_bytes,
    };
    let configured = config.retention();
    match &args.workspace {
        // The other workspaces are left alone.
        Some(name) => {
            let own = configured.workspaces.get(name).copied();
            let own = or(given, own.unwrap_or_default());
            Policy {
                all: retention::Limits::default(),
                workspaces: [(name.clone(), own)].into(),
            }
        }
        None => Policy {
            all: or(given, configured.all),
            workspaces: configured.workspaces,
        },
    }
}

fn or(given: retention::Limits, configured: retention::Limits) -> retention::Limits {
    retention::Limits {
        age: given.age.or(configured.age),
        sessions: given.sessions.or(configured.sessions),
        bytes: given.bytes.or(configured.bytes),
    }
}
