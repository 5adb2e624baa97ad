//! An HTTP exchange: heads, and how it ended. Everything in it is redacted.

use crate::end::Finish;
use crate::stream::Stream;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One HTTP exchange, as far as it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// The exchanges of a session by their numbers.
pub type Exchanges = BTreeMap<u32, Exchange>;

/// The head of an HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its connection's ordinal within the process, from 1.
    #[serde(default)]
    pub connection: u32,
    /// The client's end of the connection.
    #[serde(default)]
    pub peer: String,
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// As `HTTP/1.1`.
    #[serde(default)]
    pub version: String,
    /// Names and values in their order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
}

/// The head of an HTTP answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// As `HTTP/1.1`.
    #[serde(default)]
    pub version: String,
    /// Names and values in their order.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
}

/// Header lines after a body, redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trailers {
    /// Names and values in their order.
    pub headers: Vec<(String, String)>,
}

/// What was sent, and what was forwarded in its place; redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Altered {
    /// What was sent.
    pub from: String,
    /// What was forwarded.
    pub to: String,
}

/// Why a body was not decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotDecoded {
    /// The content coding.
    pub coding: String,
    /// `unknown`, `broken`, or `bound`: it grew beyond what is decoded.
    pub reason: String,
}

/// The end of an HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// How it ended.
    pub finish: Finish,
    /// Bytes of the request's body, as forwarded.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes of the answer's body, as forwarded (with its content coding).
    #[serde(default)]
    pub response_bytes: u64,
}
