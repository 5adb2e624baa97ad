//! `daemon`: run the relays of the configuration, and talk to the process that does.

use crate::cli::serve::DaemonCommand;
use crate::config::Flags;
use crate::error::CommandError;

#[cfg(not(unix))]
pub(crate) fn run(_: DaemonCommand, _: &Flags) -> Result<u8, CommandError> {
    Err(CommandError::Usage {
        what: "there is no daemon on this system".into(),
        hint: "`agent-trace relay` relays one server",
    })
}

#[cfg(unix)]
pub(crate) fn run(command: DaemonCommand, flags: &Flags) -> Result<u8, CommandError> {
    unix::run(command, flags)
}

#[cfg(unix)]
mod unix {
    use super::{CommandError, DaemonCommand, Flags};
    use crate::cli::Format;
    use crate::cli::serve::{Run, Status as StatusArgs, Unit};
    use crate::config::Config;
    use crate::daemon::client::{self, ClientError};
    use crate::daemon::protocol::{Reloaded, Status};
    use crate::daemon::{self, launch, unit};
    use crate::error::exit;
    use crate::render::escape;
    use crate::render::words::count;
    use owo_colors::OwoColorize;
    use serde_json::json;
    use std::io::{self, Write};

    pub(super) fn run(command: DaemonCommand, flags: &Flags) -> Result<u8, CommandError> {
        let store = || Config::find_store(flags);
        match command {
            DaemonCommand::Run(args) => foreground(&args, flags),
            DaemonCommand::Start => started(&launch::start(flags)?),
            DaemonCommand::Stop => {
                launch::stop(&store()?)?;
                writeln!(anstream::stdout(), "the daemon ended")?;
                Ok(exit::SUCCESS)
            }
            DaemonCommand::Status(args) => status(&args, client::status(&store()?)),
            DaemonCommand::Reload => reloaded(&client::reload(&store()?)?),
            DaemonCommand::Unit(args) => print_unit(&args, flags),
        }
    }

    fn foreground(args: &Run, flags: &Flags) -> Result<u8, CommandError> {
        if args.detach {
            let left = rustix::process::setsid().map_err(io::Error::from);
            left.map_err(CommandError::failed("cannot leave the terminal's session"))?;
        }
        daemon::run(flags)?;
        Ok(exit::SUCCESS)
    }

    fn started(status: &Status) -> Result<u8, CommandError> {
        let mut out = anstream::stdout().lock();
        print(&mut out, status)?;
        let is_whole = status.relays.iter().all(|relay| relay.error.is_none());
        Ok(if is_whole { exit::SUCCESS } else { exit::FOUND })
    }

    fn status(args: &StatusArgs, answer: Result<Status, ClientError>) -> Result<u8, CommandError> {
        let mut out = anstream::stdout().lock();
        let (status, code) = match answer {
            Ok(status) => (Some(status), exit::SUCCESS),
            Err(ClientError::NotRunning(_)) => (None, exit::FOUND),
            Err(error) => return Err(error.into()),
        };
        let document = match &status {
            Some(status) => {
                let mut document = json!(status);
                document["running"] = json!(true);
                document
            }
            None => json!({ "running": false }),
        };
        match (args.format, &status) {
            (Format::Json, _) => writeln!(out, "{document:#}")?,
            (Format::Jsonl, _) => writeln!(out, "{document}")?,
            (Format::Text, Some(status)) => print(&mut out, status)?,
            (Format::Text, None) => writeln!(out, "no daemon runs for this store")?,
        }
        Ok(code)
    }

    fn reloaded(reloaded: &Reloaded) -> Result<u8, CommandError> {
        let mut out = anstream::stdout().lock();
        if reloaded.changes.is_empty() && reloaded.problems.is_empty() {
            writeln!(out, "nothing changed")?;
        }
        for line in &reloaded.changes {
            writeln!(out, "{}", shown(line))?;
        }
        for line in &reloaded.problems {
            writeln!(out, "{} {}", "but:".yellow(), shown(line))?;
        }
        Ok(if reloaded.problems.is_empty() {
            exit::SUCCESS
        } else {
            exit::FOUND
        })
    }

    fn print(out: &mut impl Write, status: &Status) -> io::Result<()> {
        let ending = if status.stopping { ", ending" } else { "" };
        writeln!(
            out,
            "daemon {} runs as process {} since {}{ending}",
            shown(&status.program),
            status.pid,
            shown(&status.since)
        )?;
        writeln!(out, "store: {}", shown(&status.store.to_string_lossy()))?;
        if let Some(config) = &status.config {
            writeln!(out, "configuration: {}", shown(&config.to_string_lossy()))?;
        }
        let place = &status.admin;
        match (&place.error, &place.address) {
            (Some(error), _) => writeln!(out, "{} {}", "wrong:".red(), shown(error))?,
            (None, Some(address)) => {
                writeln!(out, "metrics: http://{}/metrics", shown(address))?;
            }
            (None, None) => {}
        }
        let recorded = &status.recording;
        let why = shown(recorded.why.as_deref().unwrap_or("on"));
        writeln!(
            out,
            "recording: {why}; {} in {}, {}",
            count(recorded.frames, "frame"),
            count(recorded.sessions, "session"),
            count(recorded.gaps, "gap")
        )?;
        if status.relays.is_empty() {
            writeln!(out, "no relays: the configuration has no [[relay]]")?;
        }
        for relay in &status.relays {
            let name = relay
                .name
                .as_deref()
                .map(|name| format!("{}: ", shown(name)));
            let name = name.unwrap_or_default();
            let way = format!("{name}{} -> {}", shown(&relay.url), shown(&relay.to));
            match &relay.error {
                Some(error) => writeln!(out, "  {way}\n    {} {}", "wrong:".red(), shown(error))?,
                None => {
                    let totals = relay.totals;
                    let mut counts = format!(
                        "{}, {} open",
                        count(totals.exchanges, "exchange"),
                        totals.open
                    );
                    for (number, what) in [(totals.failed, "failed"), (totals.refused, "refused")] {
                        if number > 0 {
                            counts.push_str(&format!(", {number} {what}"));
                        }
                    }
                    writeln!(out, "  {way}\n    {counts}")?;
                }
            }
        }
        Ok(())
    }

    /// What a daemon says goes to a terminal.
    fn shown(text: &str) -> String {
        escape::text(text.as_bytes(), 0)
    }

    fn print_unit(args: &Unit, flags: &Flags) -> Result<u8, CommandError> {
        let launchd = args.launchd || cfg!(target_os = "macos") && !args.systemd;
        let text = if launchd {
            unit::launchd(flags)?
        } else {
            unit::systemd(flags)?
        };
        write!(anstream::stdout(), "{text}")?;
        Ok(exit::SUCCESS)
    }
}
