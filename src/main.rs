//! The `agent-trace` binary: arguments, configuration, wiring, and what is printed.
//!
//! - [`cli`]: the command line
//! - [`config`]: settings, and where each of them came from
//! - [`commands`]: one module for each command
//! - [`recording`]: what all relays do alike about recording
//! - [`serving`]: a recorder and an HTTP relay in front of it, from their start to their end
//! - [`daemon`]: the process that runs the relays of the configuration
//! - [`baseline`]: the file of accepted findings
//! - [`answering`]: what our MCP server answers from
//! - [`judge`]: verdicts, and the check command of the configuration
//! - [`render`]: how runs look in a terminal and as JSON
//! - [`error`]: what is said when something could not be done, and exit codes

mod answering;
mod baseline;
mod cap;
mod cli;
mod commands;
mod config;
#[cfg(unix)]
mod daemon;
mod error;
mod judge;
mod query;
mod recording;
mod render;
mod secret;
mod serving;
mod units;

use clap::Parser;
use error::{CommandError, exit};
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            // What was typed may hold a secret, and the message repeats it.
            let plain = message.render().to_string();
            let shown = error::discreet(&plain);
            if message.use_stderr() && shown != plain {
                let _ = std::io::Write::write_all(&mut std::io::stderr(), shown.as_bytes());
            } else {
                let _ = message.print();
            }
            let code = if message.use_stderr() {
                exit::FAILURE
            } else {
                exit::SUCCESS
            };
            return code.into();
        }
    };
    init_log(cli.log());
    commands::run(cli).unwrap_or_else(|error| match error {
        // Whoever closed our output has seen enough.
        CommandError::BrokenPipe => exit::SUCCESS.into(),
        error => error.report(),
    })
}

/// Logs go to standard error: in a relay, standard output is the protocol.
fn init_log(level: LevelFilter) {
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::{Layer, SubscriberExt};
    use tracing_subscriber::util::SubscriberInitExt;
    // What a client asks wrongly is answered to the client; a log need not repeat it.
    let of_rmcp = if level > LevelFilter::WARN {
        level
    } else {
        LevelFilter::OFF
    };
    let targets = Targets::new()
        .with_default(level)
        .with_target("rmcp", of_rmcp);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // Nobody may read it any more; to complain about that would end the thread.
        .log_internal_errors(false)
        .with_target(false)
        .compact();
    tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .init();
}
