//! Scripted servers.

use super::super::wait_for;
use super::Wire;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A server that does nothing by itself: a test accepts its connections.
#[derive(Debug)]
pub(crate) struct Origin {
    listener: TcpListener,
    waiting: Vec<TcpStream>,
}

impl Origin {
    pub(crate) fn new() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// One at the same address as an earlier one.
    pub(crate) fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            waiting: Vec::new(),
        }
    }

    /// One to which nobody can connect, although it is there: as many wait already as it lets
    /// wait.
    pub(crate) fn full() -> Self {
        let mut origin = Self::new();
        rustix::net::listen(&origin.listener, 0).unwrap();
        let address = origin.address();
        let brief = Duration::from_millis(200);
        while let Ok(stream) = TcpStream::connect_timeout(&address, brief) {
            origin.waiting.push(stream);
        }
        origin
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The next connection.
    #[track_caller]
    pub(crate) fn accept(&self) -> Wire {
        wait_for("a connection to the server", || self.try_accept())
    }

    /// The next connection, if one waits.
    pub(crate) fn try_accept(&self) -> Option<Wire> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).unwrap();
        Some(Wire::over(stream))
    }

    /// Whether nobody connects for so long.
    pub(crate) fn is_left_alone_for(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if self.try_accept().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// From now on answers by itself, each connection in a thread of its own, until it is
    /// dropped. What panics there fails the test.
    pub(crate) fn serving(self, serve: impl Fn(Wire) + Clone + Send + 'static) -> Serving {
        let address = self.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let accept = move || {
            let mut threads: Vec<JoinHandle<()>> = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                match self.try_accept() {
                    Some(wire) => {
                        let serve = serve.clone();
                        threads.push(std::thread::spawn(move || serve(wire)));
                    }
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
            let failed = threads.into_iter().filter(JoinHandle::is_finished);
            for thread in failed {
                thread.join().expect("the scripted server");
            }
        };
        Serving {
            address,
            stop,
            thread: Mutex::new(Some(std::thread::spawn(accept))),
        }
    }

    /// Answers each request with the same bytes, as long as requests come.
    pub(crate) fn answering(self, bytes: impl Into<Vec<u8>>) -> Serving {
        let bytes = bytes.into();
        self.serving(move |mut wire| {
            while wire.has_more() {
                wire.read_message();
                if !wire.try_send(&bytes) {
                    return;
                }
            }
        })
    }
}

/// An [`Origin`] that answers by itself.
pub(crate) struct Serving {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Serving {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.get_mut().unwrap().take();
        let ended = thread.map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(!matches!(ended, Some(Err(_))), "the scripted server failed");
        }
    }
}
