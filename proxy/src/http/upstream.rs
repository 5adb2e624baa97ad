//! Where a listener forwards to.

use http::Uri;
use http::uri::{Authority, Scheme};
use std::fmt;
use std::net::IpAddr;

/// The server behind a listener: scheme, host and port of a URL. Its path is kept to be
/// shown, since requests bring their own.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    tls: bool,
    /// Host without brackets.
    host: String,
    loopback: bool,
    port: u16,
    path: String,
}

/// Why a text is no URL to forward to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It cannot be read as a URL.
    #[error("not a URL like http://127.0.0.1:3000 or https://mcp.example.com/mcp")]
    NoUrl,
    /// It begins with something other than `http:` or `https:`.
    #[error("only http:// and https:// can be relayed")]
    Scheme,
    /// It holds a user name or a password.
    #[error("a URL with a user name or password; clients send their own credentials")]
    Credentials,
    /// It holds a query, which requests would have to carry.
    #[error("a URL with a query; clients have to send it themselves")]
    Query,
}

impl Upstream {
    /// Reads a URL.
    ///
    /// # Errors
    /// Says why it cannot be forwarded to.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let uri: Uri = text.trim().parse().map_err(|_| UpstreamError::NoUrl)?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(UpstreamError::NoUrl);
        };
        let tls = *scheme == Scheme::HTTPS;
        if !tls && *scheme != Scheme::HTTP {
            return Err(UpstreamError::Scheme);
        }
        if authority.as_str().contains('@') {
            return Err(UpstreamError::Credentials);
        }
        if uri.query().is_some() {
            return Err(UpstreamError::Query);
        }
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let after = authority.as_str().len() - authority.host().len();
        if host.is_empty() || after > 0 && authority.port_u16().is_none() {
            return Err(UpstreamError::NoUrl);
        }
        let host = host.to_ascii_lowercase();
        Ok(Self {
            tls,
            loopback: is_loopback(&host),
            host,
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            path: uri.path().to_owned(),
        })
    }

    /// Whether to speak TLS.
    #[must_use]
    pub fn tls(&self) -> bool {
        self.tls
    }

    /// Its host, an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL's path, `/` if it has none: what a client has to ask for.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Host and port as in a `Host` header: without the port that the scheme implies.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == if self.tls { 443 } else { 80 } {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }

    /// Scheme, host and port as a URL without path.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// Whether an authority (host and perhaps port) of a URL with this scheme means the same
    /// server. The names of this machine all mean the same.
    pub(super) fn is_at(&self, tls: bool, authority: &Authority) -> bool {
        let other = format!("http{}://{authority}", if tls { "s" } else { "" });
        Self::parse(&other).is_ok_and(|other| {
            (self.tls, self.port) == (other.tls, other.port)
                && (self.host == other.host || self.is_loopback() && other.is_loopback())
        })
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

impl fmt::Display for Upstream {
    /// The whole URL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path == "/" { "" } else { &self.path };
        write!(f, "{}{path}", self.origin())
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_bad_ones_named() {
        let of = |text: &str| Upstream::parse(text).map(|u| u.to_string());
        assert_eq!(
            of("http://127.0.0.1:3000"),
            Ok("http://127.0.0.1:3000".into())
        );
        assert_eq!(
            of("https://MCP.example.com/mcp"),
            Ok("https://mcp.example.com/mcp".into())
        );
        assert_eq!(of("http://[::1]:80/"), Ok("http://[::1]".into()));
        assert_eq!(of("localhost:3000"), Err(UpstreamError::NoUrl));
        assert_eq!(of("ftp://x"), Err(UpstreamError::Scheme));
        assert_eq!(of("http://a:b@c"), Err(UpstreamError::Credentials));
        assert_eq!(of("http://c/?key=1"), Err(UpstreamError::Query));
        assert_eq!(of("http://c:99999"), Err(UpstreamError::NoUrl));
    }

    #[test]
    fn names_of_this_machine_mean_the_same() {
        let upstream = Upstream::parse("http://127.0.0.1:3000").unwrap();
        let at = |text: &str| upstream.is_at(false, &text.parse().unwrap());
        assert!(at("localhost:3000") && at("[::1]:3000") && at("127.0.0.1:3000"));
        assert!(!at("localhost:3001") && !at("example.com:3000"));
        assert!(!upstream.is_at(true, &"localhost:3000".parse().unwrap()));
    }
}
