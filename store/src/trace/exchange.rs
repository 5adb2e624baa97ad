//! The HTTP exchanges of a session, put together from what its records tell.

use crate::journal::Envelope;
use crate::journal::header::Meta;
pub use agent_trace_model::exchange::{Exchange, Exchanges};

/// Takes what a record tells of an exchange.
pub(super) fn take(exchange: &mut Exchange, envelope: &Envelope, meta: &Meta) {
    let stream = envelope.stream;
    match meta {
        Meta::Request(request) => {
            exchange.wall = envelope.wall;
            exchange.monotonic = envelope.monotonic;
            exchange.request = Some(request.clone());
        }
        // Before the real one there may be interim answers (1xx).
        Meta::Response(response) => exchange.response = Some(response.clone()),
        Meta::Trailers(trailers) => exchange.trailers.push((stream, trailers.clone())),
        Meta::Altered(altered) => exchange.altered.push((stream, altered.clone())),
        Meta::NotDecoded(what) => exchange.not_decoded.push((stream, what.clone())),
        Meta::Finished(finished) => {
            exchange.finished = Some(finished.clone());
            exchange.duration = envelope.monotonic.checked_sub(exchange.monotonic);
        }
        Meta::SessionOpen(_) | Meta::Unknown => {}
    }
}
