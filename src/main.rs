//! The `agent-trace` binary: arguments, configuration, wiring, and what is printed.
//!
//! - [`cli`]: the command line
//! - [`config`]: settings, and where each of them came from
//! - [`commands`]: one module for each command
//! - [`recording`]: what all relays do alike about recording
//! - [`serving`]: a recorder and an HTTP relay in front of it, from their start to their end
//! - [`daemon`]: the process that runs the relays of the configuration
//! - [`judge`]: verdicts, and the check command of the configuration
//! - [`render`]: how runs look in a terminal and as JSON
//! - [`error`]: what is said when something could not be done, and exit codes

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
mod serving;
mod units;

use clap::Parser;
use error::{CommandError, exit};
use std::process::ExitCode;

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
fn init_log(level: tracing::level_filters::LevelFilter) {
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // Nobody may read it any more; to complain about that would end the thread.
        .log_internal_errors(false)
        .with_target(false)
        .compact()
        .init();
}
