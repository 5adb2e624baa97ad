//! `Expect: 100-continue`: the client's body waits until the server wants it.

use super::body::{Gate, RequestBody};
use http::header::EXPECT;
use http::{Request, StatusCode, Version, request};
use hyper::body::{Body, Incoming};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a client is kept waiting for a server that says nothing. Clients themselves wait
/// about as long.
const AT_MOST: Duration = Duration::from_secs(1);

/// Whether the client waits to be told to go on, and whether it was.
pub(super) struct Expectation {
    /// None for most requests.
    waits: Option<Rc<Waits>>,
}

struct Waits {
    /// The server said so; told from within hyper, hence not a cell.
    go_on: CancellationToken,
    state: Cell<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Sent,
    /// The server answered without the body, which is not asked for any more.
    Answered,
}

impl Expectation {
    pub(super) fn of(parts: &request::Parts, body: &Incoming) -> Self {
        let asks = parts
            .headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let waits = asks && parts.version == Version::HTTP_11 && !body.is_end_stream();
        Self {
            waits: waits.then(|| {
                Rc::new(Waits {
                    go_on: CancellationToken::new(),
                    state: Cell::new(State::Waiting),
                })
            }),
        }
    }

    /// What the body waits for, if it does.
    pub(super) fn gate(&self) -> Option<Gate> {
        let waits = Rc::clone(self.waits.as_ref()?);
        if waits.state.get() == State::Sent {
            return None;
        }
        Some(Box::pin(async move {
            _ = tokio::time::timeout(AT_MOST, waits.go_on.cancelled()).await;
            if waits.state.get() == State::Answered {
                // To end the body with an error would end what is still to come of the answer.
                std::future::pending::<()>().await;
            }
            waits.state.set(State::Sent);
        }))
    }

    /// Has the server heard.
    pub(super) fn listen(&self, request: &mut Request<RequestBody>) {
        if let Some(waits) = &self.waits
            && waits.state.get() == State::Waiting
        {
            let go_on = waits.go_on.clone();
            hyper::ext::on_informational(request, move |answer| {
                if answer.status() == StatusCode::CONTINUE {
                    go_on.cancel();
                }
            });
        }
    }

    /// The body may be sent.
    pub(super) fn go_on(&self) {
        if let Some(waits) = &self.waits {
            waits.go_on.cancel();
        }
    }

    /// The server answered. Returns whether the body was sent, or is being sent, so that
    /// further requests can follow on the same connection.
    pub(super) fn answered(&self) -> bool {
        let Some(waits) = &self.waits else {
            return true;
        };
        if waits.state.get() == State::Waiting {
            waits.state.set(State::Answered);
        }
        waits.state.get() == State::Sent
    }
}
