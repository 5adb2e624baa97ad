//! Bodies on their way through: handed on chunk by chunk as they come, with a copy of each.

use super::exchange::Exchange;
use super::head;
use super::link::Link;
use super::rewrite::Rewriter;
use super::turns::{Turns, Whose};
use agent_trace_model::{Finish, Stream};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The body of an answer: the server's, or one of our own.
pub(super) type AnswerBody = Either<ResponseBody, OwnBody>;

/// Resolves when a client that asked (`Expect: 100-continue`) is to send its body.
pub(super) type Gate = Pin<Box<dyn Future<Output = ()>>>;

/// The most bytes of a request that are read though no server takes them.
const DRAINED: usize = 1 << 20;
/// For how long they are waited for.
const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// What a client sends.
pub(super) struct RequestBody {
    inner: Incoming,
    exchange: Rc<Exchange>,
    /// Whether hyper passes trailers on.
    trailers: bool,
    gate: Option<Gate>,
}

impl RequestBody {
    pub(super) fn new(
        inner: Incoming,
        exchange: &Rc<Exchange>,
        headers: &HeaderMap,
        gate: Option<Gate>,
    ) -> Self {
        if inner.is_end_stream() {
            exchange.close(Stream::ClientToServer);
        }
        Self {
            inner,
            exchange: Rc::clone(exchange),
            trailers: head::announces_trailers(headers),
            gate,
        }
    }

    /// Reads what no server will take, so that the trace has what was asked and the client
    /// hears the answer: as much as comes soon.
    pub(super) async fn drain(mut self) {
        let read = async {
            let mut left = DRAINED;
            while let Some(Ok(frame)) = self.inner.frame().await {
                let Ok(bytes) = frame.into_data() else { break };
                left = match left.checked_sub(bytes.len()) {
                    Some(left) => left,
                    None => break,
                };
                self.exchange.undelivered(bytes);
            }
        };
        // One that waits to be told to go on is not told so.
        if self.gate.is_none() {
            _ = tokio::time::timeout(DRAIN_LIMIT, read).await;
        }
        self.exchange.close(Stream::ClientToServer);
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(gate) = &mut self.gate {
            // hyper tells the client to go on when its body is asked for; not before.
            ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        let this = &mut *self;
        let turns = &this.exchange.turns;
        let frame = ready!(take(&mut this.inner, turns, Whose::Client, cx));
        match &frame {
            Some(Ok(frame)) => {
                tell(&self.exchange, Stream::ClientToServer, frame, self.trailers);
                if self.inner.is_end_stream() {
                    self.exchange.close(Stream::ClientToServer);
                }
            }
            Some(Err(error)) => self.exchange.ends(if is_gone(error) {
                Finish::ClientGone
            } else {
                Finish::ClientBroke
            }),
            None => self.exchange.close(Stream::ClientToServer),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// What a server answers.
pub(super) struct ResponseBody {
    inner: Incoming,
    exchange: Rc<Exchange>,
    /// Whether hyper passes trailers on.
    trailers: bool,
    rewriter: Option<Rewriter>,
    /// What waits for what the rewriter held back: trailers, or that the server broke off.
    last: Option<Result<Frame<Bytes>, hyper::Error>>,
    /// The connection that it comes on, where no other exchange will use that.
    link: Option<Link>,
}

impl ResponseBody {
    pub(super) fn new(inner: Incoming, exchange: Rc<Exchange>, trailers: bool) -> Self {
        if inner.is_end_stream() {
            exchange.close(Stream::ServerToClient);
        }
        Self {
            inner,
            exchange,
            trailers,
            rewriter: None,
            last: None,
            link: None,
        }
    }

    /// This may change it.
    pub(super) fn rewritten(self, rewriter: Option<Rewriter>) -> Self {
        Self { rewriter, ..self }
    }

    /// This connection ends with it.
    pub(super) fn with_link(self, link: Option<Link>) -> Self {
        let link = link.filter(|_| !self.inner.is_end_stream());
        Self { link, ..self }
    }

    /// The next frame as it is forwarded.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(last) = self.last.take() {
            return Poll::Ready(Some(last));
        }
        loop {
            let turns = &self.exchange.turns;
            let frame = ready!(take(&mut self.inner, turns, Whose::Server, cx));
            let Some(rewriter) = &mut self.rewriter else {
                return Poll::Ready(frame);
            };
            let out = match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => rewriter.push(bytes, &self.exchange),
                    Err(trailers) => {
                        self.last = Some(Ok(trailers));
                        rewriter.finish(&self.exchange)
                    }
                },
                Some(Err(error)) => {
                    self.last = Some(Err(error));
                    rewriter.release()
                }
                None => rewriter.finish(&self.exchange),
            };
            if rewriter.is_done() {
                self.rewriter = None;
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out))));
            }
            if let Some(last) = self.last.take() {
                return Poll::Ready(Some(last));
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(self.next(cx));
        match &frame {
            Some(Ok(frame)) => {
                tell(&self.exchange, Stream::ServerToClient, frame, self.trailers);
                if self.is_end_stream() {
                    self.exchange.close(Stream::ServerToClient);
                    self.link = None;
                }
            }
            Some(Err(_)) => self.exchange.ends(Finish::ServerBroke),
            None => {
                self.exchange.close(Stream::ServerToClient);
                self.link = None;
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rewriter.is_none() && self.last.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rewriter {
            Some(_) => SizeHint::default(),
            None => self.inner.size_hint(),
        }
    }
}

/// What we answer by ourselves.
pub(super) struct OwnBody {
    inner: Full<Bytes>,
    /// Ends with the body.
    _exchange: Rc<Exchange>,
}

impl OwnBody {
    pub(super) fn new(body: Bytes, exchange: Rc<Exchange>) -> Self {
        if !body.is_empty() {
            exchange.chunk(Stream::ServerToClient, exchange.now(), body.clone());
        }
        exchange.close(Stream::ServerToClient);
        Self {
            inner: Full::new(body),
            _exchange: exchange,
        }
    }
}

impl Body for OwnBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(|never| match never {})))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Takes a frame of what is received on the connection of this side, which need not look
/// after the last one.
fn take(
    body: &mut Incoming,
    turns: &Turns,
    from: Whose,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let act = || {
        let frame = Pin::new(&mut *body).poll_frame(cx);
        (frame, body.is_end_stream())
    };
    turns.without_waking(from, act, |(_, is_last)| *is_last).0
}

fn tell(exchange: &Exchange, stream: Stream, frame: &Frame<Bytes>, trailers: bool) {
    if let Some(bytes) = frame.data_ref() {
        exchange.chunk(stream, exchange.now(), bytes.clone());
    } else if let Some(lines) = frame.trailers_ref().filter(|_| trailers) {
        exchange.trailers(stream, head::lines(lines));
    }
}

/// Whether the peer went away, rather than sending something wrong.
pub(super) fn is_gone(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || error.is_canceled() || error.is_closed() || is_io(error)
}

fn is_io(error: &hyper::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() != std::io::ErrorKind::InvalidInput)
    })
}
