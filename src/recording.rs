//! What all relays do alike about recording: how it is set up, and how its troubles are told.

use crate::cli::BodiesArg;
use crate::config::{Config, ENV_SWITCH};
use agent_trace_store::recorder::Options;
use std::io::{self, Write};

/// Whether the user wants relays that do not record.
pub(crate) fn is_off() -> bool {
    std::env::var_os(ENV_SWITCH).is_some_and(|value| value == "off")
}

/// How to record, by the configuration and by the flags that count before it.
pub(crate) fn options(config: &Config, no_redact: bool, bodies: Option<BodiesArg>) -> Options {
    let from_file = config.recording();
    Options {
        redact: from_file.redact && !no_redact,
        bodies: bodies.map_or(from_file.bodies, Into::into),
        ..from_file
    }
}

/// One line on standard error. If nobody reads it, so be it.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "agent-trace: {text}");
}

pub(crate) type Acknowledge = Box<dyn FnMut(u64) + Send>;

/// Test builds can be told to write each acknowledged sequence number to a descriptor, so
/// that a test which kills us knows what must have survived.
#[cfg(all(debug_assertions, unix))]
pub(crate) fn acknowledge() -> Option<Acknowledge> {
    let path = std::env::var_os("AGENT_TRACE_TEST_ACKS")?;
    let mut file = std::fs::File::options().append(true).open(path).ok()?;
    let mut last = 0;
    Some(Box::new(move |sequence| {
        if sequence > last {
            last = sequence;
            let _ = file.write_all(format!("{sequence}\n").as_bytes());
        }
    }))
}

#[cfg(not(all(debug_assertions, unix)))]
pub(crate) fn acknowledge() -> Option<Acknowledge> {
    None
}
