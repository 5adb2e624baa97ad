//! The daemon over HTTP: how it does (`/healthz`, `/readyz`, `/metrics`: no secrets are in any
//! of them), and `/mcp`, where assistants ask what was recorded.

use super::{Daemon, metrics};
use agent_trace_mcp_tools::http::Endpoint;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How long a client may take for the head of a request, or be silent between two.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many are served at once.
const AT_ONCE: usize = 64;

/// Answers whoever connects, for ever.
pub(super) async fn serve(listener: TcpListener, daemon: Arc<Daemon>, endpoint: Endpoint) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (daemon, endpoint) = (Arc::clone(&daemon), endpoint.clone());
                tokio::spawn(async move {
                    converse(stream, daemon, endpoint).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("admin address: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, daemon: Arc<Daemon>, endpoint: Endpoint) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (daemon, endpoint) = (Arc::clone(&daemon), endpoint.clone());
        async move {
            // Under a name of others it is refused below, like everything.
            let answer = match request.uri().path() {
                "/mcp" if is_local(&request) => endpoint.answer(request).await,
                _ => answer(&request, &daemon).map(BodyExt::boxed),
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("admin address: {error}");
    }
}

fn answer(request: &Request<Incoming>, daemon: &Daemon) -> Response<Full<Bytes>> {
    // A page that a browser shows could otherwise have its own name point here and read
    // the answer.
    if !is_local(request) {
        let what = "this address is asked for under names of this machine only\n";
        return plain(StatusCode::FORBIDDEN, what);
    }
    let path = request.uri().path();
    if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        let what = "there are /healthz, /readyz, /metrics and /mcp\n";
        return plain(StatusCode::NOT_FOUND, what);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        answer.headers_mut().insert(ALLOW, allowed);
        return answer;
    }
    match path {
        "/healthz" => plain(StatusCode::OK, "ok"),
        "/readyz" => match daemon.ready() {
            Ok(how) => plain(StatusCode::OK, how),
            Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        _ => {
            let mut answer = plain(StatusCode::OK, daemon.metrics());
            let kind = HeaderValue::from_static(metrics::MEDIA_TYPE);
            answer.headers_mut().insert(CONTENT_TYPE, kind);
            answer
        }
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Whether it was asked under a name of this machine: one `Host` header, and where the
/// request line names a host, that one.
fn is_local(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let target = request.uri().authority().map(|a| a.as_str());
    hosts.next().is_none() && host.is_some_and(is_ours) && target.is_none_or(is_ours)
}

/// Whether host and perhaps port mean this machine.
fn is_ours(authority: &str) -> bool {
    let (host, rest) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) => (host, rest),
        Some(None) => return false,
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            authority.split_at(end)
        }
    };
    let port_is_one = match rest.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok(),
        None => rest.is_empty(),
    };
    let is_loopback = host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    port_is_one && (host.eq_ignore_ascii_case("localhost") || is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_ours() {
        for ours in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1:4747",
            "127.1.2.3",
            "[::1]:1",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.1.1",
            "localhost:x",
            "[::1",
            "[::1]x",
            "evil@localhost",
        ] {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }
}
