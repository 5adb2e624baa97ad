//! Options of sockets.

use tokio::net::TcpStream;

/// Sends at once what is written, and finds out about a peer that vanished: after a minute of
/// silence it is asked every quarter of a minute, and given up after four questions.
pub(super) fn prepare(stream: &TcpStream) {
    let set = || -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        #[cfg(unix)]
        {
            use rustix::net::sockopt;
            use std::time::Duration;
            sockopt::set_socket_keepalive(stream, true)?;
            #[cfg(not(target_os = "macos"))]
            sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
            sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
            sockopt::set_tcp_keepcnt(stream, 4)?;
        }
        Ok(())
    };
    if let Err(error) = set() {
        tracing::debug!("socket options: {error}");
    }
}
