//! HTTP listeners as they are declared: by `[[relay]]` in the file, or by the flags of `relay`.

use crate::units;
use agent_trace_proxy::http::{self, Settings, Upstream};
use agent_trace_store::recorder::HttpListener;
use clap::ValueEnum;
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;

/// How long connecting to a server may take, unless it is set.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// One listener, whoever declared it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// What to call the server in the trace.
    pub(crate) name: Option<String>,
    /// What to call the client in the trace.
    pub(crate) client: Option<String>,
    pub(crate) listen: SocketAddr,
    pub(crate) to: Upstream,
    pub(crate) allow_host: Vec<String>,
    pub(crate) host_header: HostHeader,
    pub(crate) rewrite_oauth_metadata: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) connect_timeout: Duration,
    pub(crate) http2: bool,
}

/// Why a listener is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0} can be reached from other machines")]
    Exposed(SocketAddr),
    #[error("{0} would relay to itself")]
    ToItself(SocketAddr),
}

impl Refused {
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Exposed(_) => {
                "listen on 127.0.0.1, or say with --allow-host NAME (`allow_host` in the file) \
                 under which names clients may call it"
            }
            Self::ToItself(_) => "give the server's own address as the place to relay to",
        }
    }
}

impl Listener {
    /// Whether it may be opened.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if !self.listen.ip().is_loopback() && self.allow_host.is_empty() {
            return Err(Refused::Exposed(self.listen));
        }
        let here = self.to.is_loopback() || self.to.host().parse() == Ok(self.listen.ip());
        if here && self.to.port() == self.listen.port() {
            return Err(Refused::ToItself(self.listen));
        }
        Ok(())
    }

    /// How it relays.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            allowed_hosts: self.allow_host.clone(),
            host: self.host_header.into(),
            rewrite_oauth_metadata: self.rewrite_oauth_metadata,
            idle: self.idle,
            connect_timeout: self.connect_timeout,
            http2: self.http2,
            ..Settings::new(self.to.clone())
        }
    }

    /// What the trace says of it.
    pub(crate) fn in_trace(&self, address: SocketAddr, session_gap: Duration) -> HttpListener {
        HttpListener {
            client: self.client.clone(),
            server: self.name.clone(),
            listen: address.to_string(),
            upstream: self.to.to_string(),
            session_gap,
        }
    }

    /// What a client has to be told to come this way, where it listens on this address.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        let path = self.to.path();
        let path = if path == "/" { "" } else { path };
        format!("http://{address}{path}")
    }
}

impl fmt::Display for Listener {
    /// Everything that was set, in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.listen, self.to)?;
        if let Some(client) = &self.client {
            write!(f, ", client {client}")?;
        }
        if !self.allow_host.is_empty() {
            write!(f, ", allow_host {}", self.allow_host.join(" "))?;
        }
        if self.host_header != HostHeader::Auto {
            write!(f, ", host_header {:?}", self.host_header)?;
        }
        if let Some(idle) = self.idle {
            write!(f, ", idle {}", units::shown(idle))?;
        }
        if self.connect_timeout != CONNECT_TIMEOUT {
            write!(
                f,
                ", connect_timeout {}",
                units::shown(self.connect_timeout)
            )?;
        }
        if self.rewrite_oauth_metadata {
            f.write_str(", rewrite_oauth_metadata")?;
        }
        if self.http2 {
            f.write_str(", http2")?;
        }
        Ok(())
    }
}

/// Whether two addresses cannot be listened on at the same time.
pub(crate) fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    let all = |address: SocketAddr| address.ip().is_unspecified();
    a.port() != 0 && a.port() == b.port() && (a.ip() == b.ip() || all(a) || all(b))
}

/// `[[relay]]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    name: Option<String>,
    client: Option<String>,
    pub(crate) listen: Spanned<Address>,
    to: Target,
    #[serde(default)]
    allow_host: Vec<HostName>,
    #[serde(default)]
    host_header: HostHeader,
    #[serde(default)]
    rewrite_oauth_metadata: bool,
    #[serde(default, deserialize_with = "super::duration")]
    idle: Option<Duration>,
    #[serde(default, deserialize_with = "super::duration")]
    connect_timeout: Option<Duration>,
    #[serde(default)]
    http2: bool,
}

impl From<Table> for Listener {
    fn from(table: Table) -> Self {
        Self {
            name: table.name,
            client: table.client,
            listen: table.listen.into_inner().0,
            to: table.to.0,
            allow_host: table.allow_host.into_iter().map(|name| name.0).collect(),
            host_header: table.host_header,
            rewrite_oauth_metadata: table.rewrite_oauth_metadata,
            idle: table.idle,
            connect_timeout: table.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            http2: table.http2,
        }
    }
}

/// An address to listen on: `127.0.0.1:4001`, `[::1]:4001` or `localhost:4001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Address(pub(crate) SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let local = || {
            let port = text.strip_prefix("localhost:")?.parse().ok()?;
            Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
        };
        text.parse()
            .ok()
            .or_else(local)
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no address and port like 127.0.0.1:4001"))
    }
}

/// The URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Target(Upstream);

/// A name under which a listener may be called, as the relay wants it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HostName(pub(crate) String);

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_lowercase();
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let bare = bare.unwrap_or(&name);
        let is_address = bare.parse::<IpAddr>().is_ok();
        let is_name = !bare.is_empty()
            && bare
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if is_address || is_name || bare == "*" {
            Ok(Self(bare.to_owned()))
        } else {
            Err(format!(
                "{text:?} is no host name or address (without scheme, port and path) and not `*`"
            ))
        }
    }
}

/// The server's answer to `Host`: see [`http::HostHeader`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostHeader {
    /// The client's for a server on this machine, else the server's own name
    #[default]
    Auto,
    /// The client's
    Keep,
    /// The server's own name
    Upstream,
}

impl From<HostHeader> for http::HostHeader {
    fn from(setting: HostHeader) -> Self {
        match setting {
            HostHeader::Auto => Self::Auto,
            HostHeader::Keep => Self::Keep,
            HostHeader::Upstream => Self::Upstream,
        }
    }
}

// Through `String`, so that what is wrong is told in our words, with the line.
macro_rules! from_string {
    ($name:ty, $parse:expr, $error:ty) => {
        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                $parse(&text)
            }
        }
    };
}
from_string!(Address, str::parse, String);
from_string!(HostName, str::parse, String);
from_string!(
    Target,
    |text: &str| Upstream::parse(text).map(Target),
    http::UpstreamError
);

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(listen: &str, to: &str) -> Listener {
        let table = format!("listen = {listen:?}\nto = {to:?}");
        toml::from_str::<Table>(&table).unwrap().into()
    }

    #[test]
    fn addresses_and_host_names_are_read_strictly() {
        let address = |text: &str| text.parse().map(|a: Address| a.0.to_string());
        assert_eq!(address("localhost:80"), Ok("127.0.0.1:80".into()));
        assert_eq!(address("[::1]:80"), Ok("[::1]:80".into()));
        for wrong in ["", "4001", "localhost", "example.com:80", "127.0.0.1:99999"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
        let host = |text: &str| text.parse().map(|name: HostName| name.0);
        assert_eq!(host("Box.Lan"), Ok("box.lan".into()));
        assert_eq!(host("[fe80::1]"), Ok("fe80::1".into()));
        assert_eq!(host("*"), Ok("*".into()));
        for wrong in ["", "http://x", "x:80", "x/y", "*.lan", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_listener_for_all_or_for_itself_is_refused() {
        let check = |listen, to| listener(listen, to).check();
        assert_eq!(check("127.0.0.1:1", "http://127.0.0.1:2"), Ok(()));
        let all = "0.0.0.0:1".parse().unwrap();
        assert_eq!(check("0.0.0.0:1", "http://x"), Err(Refused::Exposed(all)));
        let here = "127.0.0.1:1".parse().unwrap();
        assert_eq!(
            check("127.0.0.1:1", "http://localhost:1/mcp"),
            Err(Refused::ToItself(here))
        );
        let mut open = listener("0.0.0.0:1", "http://x");
        open.allow_host.push("box.lan".into());
        assert_eq!(open.check(), Ok(()));
    }

    #[test]
    fn addresses_clash_by_port_and_place() {
        let clash = |a: &str, b: &str| clash(a.parse().unwrap(), b.parse().unwrap());
        assert!(clash("127.0.0.1:1", "127.0.0.1:1"));
        assert!(clash("0.0.0.0:1", "127.0.0.1:1"));
        assert!(!clash("127.0.0.1:1", "127.0.0.2:1"));
        assert!(!clash("127.0.0.1:0", "127.0.0.1:0"));
    }
}
