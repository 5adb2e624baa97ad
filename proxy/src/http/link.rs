//! The connection to the server that belongs to one connection of a client.

use super::body::RequestBody;
use super::copies::Copies;
use super::meter::{Clock, Metered, Side};
use super::settings::Settings;
use super::tls::Tls;
use super::turns::{Driven, Turns};
use super::upstream::Upstream;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("cannot resolve {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("cannot connect to {host}: {source}")]
    Connect { host: String, source: io::Error },
    #[error("no TLS connection to {host}: {source}")]
    Tls { host: String, source: io::Error },
    #[error("{host} does not speak HTTP: {source}")]
    Handshake { host: String, source: hyper::Error },
    #[error("connecting to {host} took longer than {seconds} s")]
    TimedOut { host: String, seconds: u64 },
}

/// An open connection. Dropping it closes it at once.
pub(super) struct Link {
    sender: Sender,
    _driver: Driver,
}

/// What drives a connection.
enum Driver {
    /// The task of the client's connection.
    Turns(#[expect(dead_code, reason = "what counts is that it is kept")] Driven),
    /// One of its own.
    Task(AbortHandle),
}

/// What a connection needs of the one that it belongs to.
pub(super) struct Near {
    pub(super) clock: Rc<Clock>,
    pub(super) copies: Rc<Copies>,
    pub(super) turns: Rc<Turns>,
}

enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

impl Link {
    pub(super) async fn open(
        settings: &Settings,
        tls: Option<&Arc<Tls>>,
        near: Near,
    ) -> Result<Self, LinkError> {
        let limit = settings.connect_timeout;
        let opening = Self::connect(settings, tls, near);
        tokio::time::timeout(limit, opening)
            .await
            .unwrap_or_else(|_| {
                Err(LinkError::TimedOut {
                    host: settings.upstream.authority(),
                    seconds: limit.as_secs(),
                })
            })
    }

    async fn connect(
        settings: &Settings,
        tls: Option<&Arc<Tls>>,
        near: Near,
    ) -> Result<Self, LinkError> {
        let clock = Rc::clone(&near.clock);
        let upstream = &settings.upstream;
        let stream = tcp(upstream).await?;
        super::socket::prepare(&stream);
        let host = || upstream.authority();
        let Some(tls) = tls else {
            let io = Metered::new(TokioIo::new(stream), Side::Server, clock);
            let link = Self::handshake(io, settings.http2, near).await;
            return link.map_err(|source| LinkError::Handshake {
                host: host(),
                source,
            });
        };
        let failed = |source| LinkError::Tls {
            host: host(),
            source,
        };
        let name = ServerName::try_from(upstream.host().to_owned())
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let stream = tls
            .connector()
            .connect(name, stream)
            .await
            .map_err(failed)?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = Metered::new(TokioIo::new(stream), Side::Server, clock);
        let link = Self::handshake(io, http2, near).await;
        link.map_err(|source| LinkError::Handshake {
            host: host(),
            source,
        })
    }

    async fn handshake<T>(io: Metered<T>, http2: bool, near: Near) -> hyper::Result<Self>
    where
        T: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    {
        if http2 {
            let (sender, connection) = http2::Builder::new(Local)
                .max_header_list_size(MOST_HEADERS)
                .handshake(io)
                .await?;
            return Ok(Self {
                sender: Sender::Http2(sender),
                _driver: Driver::Task(spawn(connection, near.copies)),
            });
        }
        let (sender, connection) = http1::Builder::new()
            .preserve_header_case(true)
            .handshake(io)
            .await?;
        Ok(Self {
            sender: Sender::Http1(sender),
            _driver: Driver::Turns(near.turns.drive(logged(connection))),
        })
    }

    pub(super) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    /// Waits until a request can be sent; false if the server closed the connection.
    pub(super) async fn ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => sender.ready().await.is_ok(),
            Sender::Http2(sender) => sender.ready().await.is_ok(),
        }
    }

    /// Sends a request. Where nothing of it was sent, the request comes back.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Box<TrySendError<Request<RequestBody>>>> {
        match &mut self.sender {
            Sender::Http1(sender) => sender.try_send_request(request).await,
            Sender::Http2(sender) => sender.try_send_request(request).await,
        }
        .map_err(Box::new)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Self::Task(task) = self {
            task.abort();
        }
    }
}

/// The largest head that a server may send over HTTP/2, in bytes.
const MOST_HEADERS: u32 = 256 << 10;

/// Drives a connection with a task of its own; copies of what it moved are handed over after
/// each step.
fn spawn<C>(connection: C, copies: Rc<Copies>) -> AbortHandle
where
    C: Future<Output = hyper::Result<()>> + 'static,
{
    let task = async move {
        let mut connection = pin!(connection);
        logged(poll_fn(|cx| {
            let polled = connection.as_mut().poll(cx);
            copies.flush();
            polled
        }))
        .await;
    };
    tokio::task::spawn_local(task).abort_handle()
}

async fn logged(connection: impl Future<Output = hyper::Result<()>>) {
    if let Err(error) = connection.await {
        tracing::debug!("connection to the server: {error}");
    }
}

pub(super) async fn tcp(upstream: &Upstream) -> Result<TcpStream, LinkError> {
    let host = upstream.authority();
    let found = tokio::net::lookup_host((upstream.host(), upstream.port())).await;
    let addresses = match found {
        Ok(addresses) => addresses,
        Err(source) => return Err(LinkError::Resolve { host, source }),
    };
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = Some(error),
        }
    }
    Err(match failed {
        Some(source) => LinkError::Connect { host, source },
        None => LinkError::NoAddress { host },
    })
}

/// Runs what HTTP/2 needs beside the connection on the same thread.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F> hyper::rt::Executor<F> for Local
where
    F: Future + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}
