//! How one listener relays.

use super::Upstream;
use std::time::Duration;

/// How one listener relays.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to.
    pub upstream: Upstream,
    /// Names under which the listener may be called, in `Host` and in `Origin`, beside those
    /// of this machine itself (`localhost`, 127.0.0.0/8, `[::1]`): host names or addresses,
    /// without port, in lower case. `*` allows all.
    pub allowed_hosts: Vec<String>,
    /// What the server is told as `Host`.
    pub host: HostHeader,
    /// Whether the `resource` of OAuth metadata, and the place of that metadata in
    /// challenges, are rewritten from the server's address to the listener's.
    pub rewrite_oauth_metadata: bool,
    /// How long an exchange may go without a byte in either direction; none: forever.
    pub idle: Option<Duration>,
    /// How long connecting to the server may take.
    pub connect_timeout: Duration,
    /// Whether to speak HTTP/2 to a server without TLS. With TLS, both sides agree on it.
    pub http2: bool,
}

impl Settings {
    /// The defaults for this upstream.
    #[must_use]
    pub fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            allowed_hosts: Vec::new(),
            host: HostHeader::Auto,
            rewrite_oauth_metadata: false,
            idle: None,
            connect_timeout: Duration::from_secs(10),
            http2: false,
        }
    }
}

/// What the server is told as `Host`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// What the client said if the server is on this machine, so that the server's own check
    /// against DNS rebinding works; else the server's own name, without which it would not
    /// answer.
    #[default]
    Auto,
    /// What the client said.
    Keep,
    /// The server's own name.
    Upstream,
}
