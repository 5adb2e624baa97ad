//! `relay`: relay an MCP server that speaks HTTP, and record both directions.

use crate::cap::Cap;
use crate::cli::serve::Relay;
use crate::config::{Config, DRAIN, Flags, default_session_gap, default_workers};
use crate::error::{CommandError, exit, in_one_line};
use crate::recording::{is_off, options, say};
use crate::serving::Serving;
use crate::serving::signals::{Hangup, Signals, runtime};
use agent_trace_store::recorder::Setup;

/// The number of the one listener.
const SOURCE: u32 = 1;

/// Returns when it was told to end.
pub(crate) fn run(args: &Relay, flags: &Flags) -> Result<u8, CommandError> {
    let listener = args.listener()?;
    let runtime = runtime()?;
    let _context = runtime.enter();
    let mut signals = Signals::new(Hangup::End)?;

    let config = Config::load(flags);
    let session_gap = config
        .as_ref()
        .map_or_else(|_| default_session_gap(), |config| config.session_gap().0);
    let drain = args.drain.unwrap_or(DRAIN);
    let workers = args
        .workers
        .map_or_else(default_workers, |n| n.get().into());
    // A configuration that cannot be read may hold rules for secrets: better no record than
    // one that was made without them.
    let (no_redact, bodies) = (args.no_redact, args.bodies);
    let limits = config.as_ref().ok().and_then(Cap::of);
    let setup = move || {
        let config = config.map_err(|error| in_one_line(&error))?;
        Ok(Setup {
            store: config.store(),
            options: options(&config, no_redact, bodies),
            session: None,
        })
    };
    let serving = Serving::start(workers, setup, say, limits)?;
    let address = serving.listen(SOURCE, &listener, session_gap)?;
    let note = if is_off() { " (not recorded)" } else { "" };
    say(&format!(
        "relaying {} -> {}{note}",
        listener.url(address),
        listener.to
    ));

    runtime.block_on(async {
        signals.end().await;
        serving.stop(drain, signals.end()).await;
    });
    Ok(exit::SUCCESS)
}
