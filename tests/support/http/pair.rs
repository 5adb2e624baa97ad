//! A scripted server with a relay before it.

use super::super::{ANSWER, Home, REQUEST};
use super::{EVENTS, Message, Origin, Relay, Wire, chunk, get_events, json_answer, post};
use std::time::{Duration, Instant};

/// Soon enough for a person, and for a machine with much to do.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// A server and a relay before it.
pub(crate) struct Pair {
    pub(crate) home: Home,
    pub(crate) origin: Origin,
    pub(crate) relay: Relay,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let (home, origin) = (Home::new(), Origin::new());
        let relay = home.relay(origin.url()).start();
        Self {
            home,
            origin,
            relay,
        }
    }

    /// A client's connection over which something was sent, and the server's that belongs to it.
    #[track_caller]
    pub(crate) fn connect(&self, request: impl AsRef<[u8]>) -> (Wire, Wire) {
        let mut client = self.relay.connect();
        client.send(request);
        (client, self.origin.accept())
    }

    /// Sends a request and this answer to it; returns both as they arrived.
    #[track_caller]
    pub(crate) fn exchange(
        &self,
        request: impl AsRef<[u8]>,
        answer: impl AsRef<[u8]>,
    ) -> (Message, Message) {
        let (mut client, mut server) = self.connect(request);
        let asked = server.read_message();
        server.send(answer);
        let answered = client.read_message();
        (asked, answered)
    }

    /// A client with an open event stream, of which one event has come.
    #[track_caller]
    pub(crate) fn stream(&self) -> (Wire, Wire) {
        let (mut client, mut server) = self.connect(get_events("/mcp", ""));
        server.read_head();
        server.send(EVENTS);
        server.send(chunk("data: 1\n\n"));
        client.read_head();
        assert_eq!(client.read_chunked(9), b"data: 1\n\n");
        (client, server)
    }

    /// Another client is served as ever.
    #[track_caller]
    pub(crate) fn serves(&self) {
        let (asked, answered) = self.exchange(post(REQUEST), json_answer(ANSWER));
        assert_eq!((asked.text(), answered.text()), (REQUEST, ANSWER));
    }

    /// Another client is served as ever, and soon.
    #[track_caller]
    pub(crate) fn serves_soon(&self) {
        let began = Instant::now();
        self.serves();
        let took = began.elapsed();
        assert!(took < SOON, "{took:?}");
    }
}
