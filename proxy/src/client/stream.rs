//! Events that a server streams: in answer to a request, or, in the manner of 2024, all that it
//! says.

use super::Fault;
use super::message::Heard;
use agent_trace_wire::Budget;
use agent_trace_wire::frame::Event;
use agent_trace_wire::sse::{Decoder, fields};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::collections::VecDeque;
use tokio::task::AbortHandle;

/// An open connection; dropping it closes it.
pub(super) struct Connection(pub(super) AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body that holds events.
pub(super) struct Events {
    body: Incoming,
    decoder: Decoder,
    /// The longest event, in bytes.
    most: usize,
    /// Events that came and were not looked at: type and data.
    came: VecDeque<(Vec<u8>, Vec<u8>)>,
    cut: bool,
    _connection: Connection,
}

impl Events {
    pub(super) fn new(body: Incoming, connection: Connection, most: usize) -> Self {
        Self {
            body,
            decoder: Decoder::new(most, &Budget::new(most * 2)),
            most,
            came: VecDeque::new(),
            cut: false,
            _connection: connection,
        }
    }

    /// The next event; none at the end.
    pub(super) async fn next(
        &mut self,
        heard: &mut Heard,
        method: &'static str,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>, Fault> {
        loop {
            if let Some(event) = self.came.pop_front() {
                return Ok(Some(event));
            }
            if self.cut {
                return Err(heard.too_long(method));
            }
            let Some(Ok(frame)) = self.body.frame().await else {
                return Ok(None);
            };
            let Some(bytes) = frame.data_ref() else {
                continue;
            };
            heard.count(bytes.len(), method)?;
            let Self {
                decoder, came, cut, ..
            } = self;
            decoder.push(bytes, &mut |event| {
                let Event::Frame(frame) = event else { return };
                if frame.truncated() {
                    *cut = true;
                    return;
                }
                let fields = fields(frame.raw);
                if fields.has_data {
                    let kind = fields.event.unwrap_or(b"message").to_vec();
                    came.push_back((kind, fields.data.into_owned()));
                }
            });
            // One without an end is told before its end.
            self.cut |= self.decoder.pending() >= self.most;
        }
    }
}
