//! The HTTP exchanges of a run: heads, and how they ended.

use crate::journal::Envelope;
use crate::journal::header::{Altered, Finished, Meta, NotDecoded, Request, Response, Trailers};
use agent_trace_model::Stream;
use std::collections::BTreeMap;

/// One HTTP exchange, as far as it was recorded.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Its ordinal within the process.
    pub number: u32,
    /// When its first record was made, in nanoseconds since 1970.
    pub wall: u64,
    /// The same on the recorder's monotonic clock.
    pub monotonic: u64,
    /// The head of the request.
    pub request: Option<Request>,
    /// The head of the answer.
    pub response: Option<Response>,
    /// Header lines after the bodies.
    pub trailers: Vec<(Stream, Trailers)>,
    /// What the relay changed.
    pub altered: Vec<(Stream, Altered)>,
    /// Bodies that were not decoded.
    pub not_decoded: Vec<(Stream, NotDecoded)>,
    /// How it ended.
    pub finished: Option<Finished>,
    /// From its first record to its end, in nanoseconds.
    pub duration: Option<u64>,
}

impl Exchange {
    /// Takes what a record tells of it.
    pub(super) fn take(&mut self, envelope: &Envelope, meta: &Meta) {
        let stream = envelope.stream;
        match meta {
            Meta::Request(request) => {
                self.wall = envelope.wall;
                self.monotonic = envelope.monotonic;
                self.request = Some(request.clone());
            }
            // Before the real one there may be interim answers (1xx).
            Meta::Response(response) => self.response = Some(response.clone()),
            Meta::Trailers(trailers) => self.trailers.push((stream, trailers.clone())),
            Meta::Altered(altered) => self.altered.push((stream, altered.clone())),
            Meta::NotDecoded(what) => self.not_decoded.push((stream, what.clone())),
            Meta::Finished(finished) => {
                self.finished = Some(finished.clone());
                self.duration = envelope.monotonic.checked_sub(self.monotonic);
            }
            Meta::SessionOpen(_) | Meta::Unknown => {}
        }
    }

    /// A header of the request, the first of this name.
    #[must_use]
    pub fn request_header(&self, name: &str) -> Option<&str> {
        header(&self.request.as_ref()?.headers, name)
    }

    /// A header of the answer, the first of this name.
    #[must_use]
    pub fn response_header(&self, name: &str) -> Option<&str> {
        header(&self.response.as_ref()?.headers, name)
    }

    /// The media type of the answer, without parameters.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        let value = self.response_header("content-type")?;
        Some(value.split(';').next().unwrap_or(value).trim())
    }

    /// The answer's status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.response.as_ref().map(|response| response.status)
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| &value[..])
}

/// The exchanges of a run by their numbers.
pub type Exchanges = BTreeMap<u32, Exchange>;
