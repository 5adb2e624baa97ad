//! The threads that serve connections, each with a runtime of its own: a connection and its
//! way to the server stay on one thread, so that a chunk wakes nobody but that thread.

use super::connection::{Accepted, Shared, serve};
use super::settings::Settings;
use super::tls::Tls;
use agent_trace_model::Caller;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Something for a thread to do.
pub(super) enum Work {
    Listen(Listening),
    Serve(Box<Accepted>),
}

/// A listener, and what its connections need.
pub(super) struct Listening {
    pub(super) listener: TcpListener,
    pub(super) source: u32,
    pub(super) settings: watch::Receiver<(Arc<Settings>, Option<Arc<Tls>>)>,
    pub(super) gone: CancellationToken,
}

/// All threads, as those who have work for them see them.
#[derive(Clone)]
pub(super) struct Workers {
    queues: Arc<[mpsc::UnboundedSender<Work>]>,
    next: Arc<AtomicUsize>,
}

impl Workers {
    /// Starts the threads.
    pub(super) fn start(count: usize, shared: &Shared) -> io::Result<(Self, Vec<JoinHandle<()>>)> {
        let (queues, receivers): (Vec<_>, Vec<_>) =
            (0..count.max(1)).map(|_| mpsc::unbounded_channel()).unzip();
        let workers = Self {
            queues: queues.into(),
            next: Arc::default(),
        };
        let mut threads = Vec::new();
        for (number, work) in receivers.into_iter().enumerate() {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let (shared, workers) = (shared.clone(), workers.clone());
            let run = move || {
                let local = LocalSet::new();
                runtime.block_on(local.run_until(run(work, workers, shared)));
                // What is still open is closed here, on the thread that it belongs to.
                drop(local);
            };
            let thread = std::thread::Builder::new().name(format!("relay-{number}"));
            threads.push(thread.spawn(run)?);
        }
        Ok((workers, threads))
    }

    /// Gives work to the thread whose turn it is.
    pub(super) fn give(&self, work: Work) -> io::Result<()> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.queues.len();
        self.queues[turn]
            .send(work)
            .map_err(|_| io::Error::other("the relay is stopped"))
    }
}

async fn run(mut queue: mpsc::UnboundedReceiver<Work>, workers: Workers, shared: Shared) {
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            () = shared.cut.cancelled() => break,
            Some(work) = queue.recv() => {
                let shared = shared.clone();
                match work {
                    Work::Listen(listening) => {
                        tasks.spawn_local(accept(listening, workers.clone(), shared));
                    }
                    Work::Serve(accepted) => {
                        tasks.spawn_local(serve(*accepted, shared));
                    }
                }
            }
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                if ended.is_err_and(|error| error.is_panic()) {
                    tracing::error!("a connection failed; the others go on");
                }
            }
        }
    }
    // Each has something to say at its end.
    tasks.shutdown().await;
}

/// Accepts connections until the listener is to go.
async fn accept(listening: Listening, workers: Workers, shared: Shared) {
    let Listening {
        listener,
        source,
        settings,
        gone,
    } = listening;
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("cannot listen: {error}"),
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gone.cancelled() => return,
        };
        let accepted = accepted.and_then(|(stream, peer)| {
            let caller = Caller {
                connection: shared.connections.fetch_add(1, Ordering::Relaxed) + 1,
                peer,
                local: stream.local_addr()?,
            };
            Ok((stream.into_std()?, caller))
        });
        match accepted {
            Ok((stream, caller)) => {
                let (settings, tls) = settings.borrow().clone();
                let accepted = Accepted {
                    stream,
                    caller,
                    source,
                    settings,
                    tls,
                    gone: gone.clone(),
                };
                _ = workers.give(Work::Serve(Box::new(accepted)));
            }
            // The connection was gone before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
}
