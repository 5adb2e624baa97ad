//! Arguments of what serves HTTP: `relay` and `daemon`.

use super::{BodiesArg, Format};
use crate::config::relay::{Address, CONNECT_TIMEOUT, HostHeader, HostName, Listener};
use crate::error::CommandError;
use agent_trace_proxy::http::Upstream;
use clap::{Args, Subcommand};
use std::num::NonZeroU16;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Relay {
    /// Where clients connect to: an address of this machine and a port (0: any that is free)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Address,
    /// The server's URL, as it stands in the assistant's configuration
    #[arg(long, value_name = "URL")]
    to: String,
    /// What to call the client in the trace
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// What to call the server in the trace
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// A further name or address under which clients may call the relay; `*` allows all
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<HostName>,
    /// Whose `Host` header the server gets
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    host_header: HostHeader,
    /// Put the relay's address for the server's into OAuth metadata, for clients that refuse
    /// to log in otherwise; the trace says so
    #[arg(long)]
    rewrite_oauth_metadata: bool,
    /// End exchanges in which nothing moves for so long, such as 1h [default: never]
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    idle: Option<Duration>,
    /// How long connecting to the server may take [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    connect_timeout: Option<Duration>,
    /// Speak HTTP/2 to a server without TLS; with TLS, both sides agree on it
    #[arg(long)]
    http2: bool,
    /// Record secrets as they are; the trace says so
    #[arg(long)]
    pub(crate) no_redact: bool,
    /// Keep arguments and results in full, or only keyed digests of them
    #[arg(long, value_name = "WHAT")]
    pub(crate) bodies: Option<BodiesArg>,
    /// How long open exchanges may go on after the signal to end [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) drain: Option<Duration>,
    /// How many threads relay [default: one for every two processors, at most 8]
    #[arg(long, value_name = "COUNT")]
    pub(crate) workers: Option<NonZeroU16>,
}

impl Relay {
    /// The listener that is asked for.
    pub(crate) fn listener(&self) -> Result<Listener, CommandError> {
        let listener = Listener {
            name: self.server.clone(),
            client: self.client.clone(),
            listen: self.listen.0,
            to: Upstream::parse(&self.to)?,
            allow_host: self.allow_host.iter().map(|name| name.0.clone()).collect(),
            host_header: self.host_header,
            rewrite_oauth_metadata: self.rewrite_oauth_metadata,
            idle: self.idle,
            connect_timeout: self.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            http2: self.http2,
        };
        listener.check().map_err(|refused| CommandError::Usage {
            what: refused.to_string(),
            hint: refused.hint(),
        })?;
        Ok(listener)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Daemon {
    #[command(subcommand)]
    command: Option<DaemonCommand>,
}

impl Daemon {
    /// Whether this process becomes the daemon.
    pub(super) fn runs(&self) -> bool {
        matches!(self.command, None | Some(DaemonCommand::Run(_)))
    }

    pub(crate) fn command(self) -> DaemonCommand {
        self.command
            .unwrap_or(DaemonCommand::Run(Run { detach: false }))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run in the foreground; so does `daemon` alone
    Run(Run),
    /// Start it in the background, and say where it listens
    Start,
    /// End it: open exchanges get the time that `drain` gives them
    Stop,
    /// Say whether it runs, where it listens, and what it did
    Status(Status),
    /// Make it read its configuration again; open exchanges go on
    ///
    /// SIGHUP does the same. If there is an error in the file, it goes on as before.
    Reload,
    /// Print a unit for the system's service manager, to start it at login
    Unit(Unit),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Leave the terminal's session: how `start` starts it
    #[arg(long, hide = true)]
    pub(crate) detach: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Unit {
    /// A property list for launchd (macOS)
    #[arg(long, conflicts_with = "systemd")]
    pub(crate) launchd: bool,
    /// A user unit for systemd (Linux)
    #[arg(long)]
    pub(crate) systemd: bool,
}
