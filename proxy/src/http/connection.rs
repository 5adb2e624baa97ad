//! One connection of a client, from its first byte to its last.

use super::copies::Copies;
use super::exchange::Exchange;
use super::link::Link;
use super::meter::{Clock, Metered, Side};
use super::settings::Settings;
use super::stats::Stats;
use super::tls::Tls;
use super::turns::{Turns, Whose};
use agent_trace_model::{Caller, Finish, Tap};
use http::HeaderValue;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// What all connections of a process share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) tap: Arc<dyn Tap>,
    pub(super) stats: Arc<Stats>,
    /// The last numbers that were given.
    pub(super) exchanges: Arc<AtomicU32>,
    pub(super) connections: Arc<AtomicU32>,
    /// Every listener is to go.
    pub(super) stopping: CancellationToken,
    /// Close at once what is still open.
    pub(super) cut: CancellationToken,
}

/// An accepted connection on its way to the thread that will serve it.
pub(super) struct Accepted {
    pub(super) stream: std::net::TcpStream,
    pub(super) caller: Caller,
    pub(super) source: u32,
    pub(super) settings: Arc<Settings>,
    pub(super) tls: Option<Arc<Tls>>,
    /// The listener is gone, or the relay is being stopped: finish what is on its way.
    pub(super) gone: CancellationToken,
}

/// One connection of a client.
pub(super) struct Connection {
    pub(super) shared: Rc<Shared>,
    pub(super) copies: Rc<Copies>,
    pub(super) clock: Rc<Clock>,
    pub(super) turns: Rc<Turns>,
    pub(super) caller: Caller,
    pub(super) settings: Arc<Settings>,
    pub(super) tls: Option<Arc<Tls>>,
    /// The one connection to the server, while no request is being sent on it.
    pub(super) link: RefCell<Option<Link>>,
    pub(super) current: RefCell<Weak<Exchange>>,
    /// A `Host` that was found to be allowed.
    pub(super) allowed: RefCell<Option<HeaderValue>>,
}

/// Serves a connection to its end.
pub(super) async fn serve(accepted: Accepted, shared: Shared) {
    let Accepted {
        stream,
        caller,
        source,
        settings,
        tls,
        gone,
    } = accepted;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!("cannot serve a connection: {error}"),
    };
    super::socket::prepare(&stream);
    let _open = Open::new(&shared.stats);
    let clock = Clock::new(Arc::clone(&shared.tap), Arc::clone(&shared.stats));
    let copies = Rc::new(Copies::new(
        Arc::clone(&shared.tap),
        Rc::clone(&clock),
        source,
    ));
    let turns = Turns::new();
    let io = Metered::new(TokioIo::new(stream), Side::Client, Rc::clone(&clock));
    let connection = Rc::new(Connection {
        copies: Rc::clone(&copies),
        clock,
        turns: Rc::clone(&turns),
        caller,
        settings,
        tls,
        link: RefCell::new(None),
        current: RefCell::default(),
        allowed: RefCell::default(),
        shared: Rc::new(shared),
    });
    let serving = {
        let connection = Rc::clone(&connection);
        let relay = move |request| super::forward::relay(Rc::clone(&connection), request);
        http1::Builder::new()
            .preserve_header_case(true)
            .auto_date_header(false)
            .serve_connection(io, service_fn(relay))
    };
    let mut serving = pin!(serving);
    let mut gone = pin!(gone.cancelled());
    let mut idle = pin!(connection.idle());
    let has_bound = connection.settings.idle.is_some();
    let mut graceful = false;
    let mut take = |whose, cx: &mut Context<'_>| {
        match whose {
            Whose::Client => {
                let ended = ready!(serving.as_mut().poll(cx));
                if let Err(error) = ended {
                    tracing::debug!("connection of a client: {error}");
                }
                return Poll::Ready(());
            }
            Whose::Server => turns.poll_server(cx),
            Whose::End => {
                if !graceful && gone.as_mut().poll(cx).is_ready() {
                    graceful = true;
                    serving.as_mut().graceful_shutdown();
                    turns.is_due(Whose::Client);
                }
                if has_bound && idle.as_mut().poll(cx).is_ready() {
                    if let Some(exchange) = connection.current.borrow().upgrade() {
                        exchange.ends(Finish::Idle);
                    }
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    };
    poll_fn(|cx| {
        connection.clock.goes_on();
        turns.poll(cx, &mut take, || copies.flush())
    })
    .await;
}

impl Connection {
    /// Resolves when an exchange was idle for too long, where there is a bound.
    async fn idle(&self) {
        let Some(bound) = self.settings.idle else {
            return std::future::pending().await;
        };
        loop {
            let current = self.current.borrow().upgrade();
            let moved = current.and_then(|exchange| exchange.moved());
            let left = moved.map(|moved| bound.checked_sub(moved.elapsed()));
            match left {
                Some(None) => return,
                Some(Some(left)) => tokio::time::sleep(left.max(Duration::from_millis(10))).await,
                None => tokio::time::sleep(bound).await,
            }
        }
    }
}

/// Counts a connection for as long as it lives.
struct Open(Arc<Stats>);

impl Open {
    fn new(stats: &Arc<Stats>) -> Self {
        stats.connections.fetch_add(1, Ordering::Relaxed);
        stats.connections_open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(stats))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}
