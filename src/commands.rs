//! One module for each command.

mod check;
mod config;
mod daemon;
mod demo;
mod diff;
mod doctor;
mod explain;
mod export;
mod forget;
mod generate;
mod import;
mod index;
mod key;
mod mcp;
mod mcp_scan;
mod record;
mod redact;
mod relay;
mod replay;
mod retention;
mod run;
mod runs;
mod search;
mod show;
mod stats;
mod suspects;
mod timeline;
mod tree;
mod verdict;
mod verify;
mod wait;
mod why;

use crate::cli::{Cli, Command};
use crate::config::Config;
use crate::error::{CommandError, exit};
use std::process::ExitCode;

/// Carries out a command.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    let flags = cli.flags();
    let load = || Config::load(&flags);
    let code = match cli.command {
        // Reads its configuration itself, beside the relay.
        Command::Record(args) => return Ok(record::run(args, flags)),
        Command::Run(args) => return run::run(&args),
        Command::Relay(args) => relay::run(&args, &flags)?,
        Command::Daemon(args) => daemon::run(args.command(), &flags)?,
        Command::Runs(args) => runs::run(&args, &load()?)?,
        Command::Search(args) => search::run(&args, &load()?)?,
        Command::Stats(args) => stats::run(&args, &load()?)?,
        Command::Show(args) => show::run(&args, &load()?)?,
        Command::Timeline(args) => timeline::run(&args, &load()?)?,
        Command::Explain(args) => explain::run(&args, &load()?)?,
        Command::Why(args) => why::run(&args, &load()?)?,
        Command::Suspects(args) => suspects::run(&args, &load()?)?,
        Command::Diff(args) => diff::run(&args, &load()?)?,
        Command::Tree(args) => tree::run(&args, &load()?)?,
        Command::Replay(args) => replay::run(&args, &load()?)?,
        Command::Check(args) => check::run(&args, &load()?)?,
        Command::McpScan(args) => mcp_scan::run(&args, load)?,
        Command::Export(args) => export::run(&args, &load()?)?,
        Command::Import(args) => import::run(&args, &load()?)?,
        Command::Mcp(args) => mcp::run(&args, &load()?)?,
        Command::Key(args) => key::run(&args, &load()?)?,
        Command::Verdict(args) => verdict::run(&args, &load()?)?,
        Command::Forget(args) => forget::run(&args, &load()?)?,
        Command::Redact(args) => redact::run(&args, &load()?)?,
        Command::Verify(args) => verify::run(&args, &load()?)?,
        Command::Retention(args) => retention::run(args, &load()?)?,
        Command::Index(args) => index::run(&args, &load()?)?,
        Command::Doctor => doctor::run(&load())?,
        Command::Config => config::run(&load()?)?,
        Command::Demo(args) => demo::run(&args, &flags)?,
        Command::Completions(args) => generate::completions(&args)?,
        Command::Man(args) => generate::man(&args)?,
        Command::DemoServer => demo::server::run()?,
    };
    debug_assert!(code <= exit::FAILURE);
    Ok(code.into())
}
