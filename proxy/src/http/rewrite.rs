//! The two places where a relay on another address cannot be transparent, and what is done
//! about them. What was changed is told to the tap.
//!
//! - The first event of a legacy event stream (2024-11-05), `endpoint`, may name the address
//!   to post to as an absolute URI. Clients would post past the relay.
//! - OAuth metadata of a protected resource (RFC 9728) names the server's own address as
//!   `resource`, and challenges name the address of that metadata. Clients that compare them
//!   with the address they use refuse. Rewritten where the user asked for it.

use super::exchange::Exchange;
use super::settings::Settings;
use super::upstream::Upstream;
use agent_trace_wire::{message, sse};
use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, Response, StatusCode, Uri, request};
use hyper::body::Incoming;

/// The most bytes of an event or a document that are held back to be rewritten; what is longer
/// passes as it is.
const HELD: usize = 64 << 10;
/// A first event that begins otherwise is none of ours.
const BEGINNING: &[u8] = b"event: endpoint";

/// What stands for the listener where the server named itself.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) upstream: Upstream,
    /// Scheme and authority under which the client called.
    pub(super) listener: String,
}

impl Places {
    /// The URL at the listener that stands for this one, if this one is at the server.
    pub(super) fn moved(&self, url: &[u8]) -> Option<String> {
        let uri = Uri::try_from(url).ok()?;
        let tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        // `http://host` and `http://host/` are told apart by some.
        let path = if url.ends_with(b"/") || path != "/" {
            path
        } else {
            ""
        };
        self.upstream
            .is_at(tls, uri.authority()?)
            .then(|| format!("{}{path}", self.listener))
    }
}

/// Which rewriting the answer to a request may need.
#[derive(Clone, Debug)]
pub(super) struct Rewriting {
    places: Places,
    endpoint: bool,
    metadata: bool,
    challenges: bool,
}

impl Rewriting {
    /// None for most requests.
    pub(super) fn of(parts: &mut request::Parts, settings: &Settings) -> Option<Self> {
        let get = parts.method == Method::GET;
        if !get && !settings.rewrite_oauth_metadata {
            return None;
        }
        let well_known = "/.well-known/oauth-protected-resource";
        let metadata =
            settings.rewrite_oauth_metadata && get && parts.uri.path().starts_with(well_known);
        if metadata {
            // What is coded cannot be rewritten.
            let plain = HeaderValue::from_static("identity");
            parts.headers.insert(ACCEPT_ENCODING, plain);
        }
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        Some(Self {
            places: Places {
                upstream: settings.upstream.clone(),
                listener: format!("http://{}", host.unwrap_or_default()),
            },
            endpoint: get,
            metadata,
            challenges: settings.rewrite_oauth_metadata,
        })
    }

    pub(super) fn rewriter(
        self,
        response: &mut Response<Incoming>,
        exchange: &Exchange,
    ) -> Option<Rewriter> {
        let places = self.places;
        if self.challenges && response.status() == StatusCode::UNAUTHORIZED {
            for (name, value) in response.headers_mut() {
                if *name == WWW_AUTHENTICATE
                    && let Some(moved) = challenge(value.as_bytes(), &places)
                    && let Ok(new) = HeaderValue::from_bytes(&moved)
                {
                    exchange.altered(Bytes::copy_from_slice(value.as_bytes()), moved.into());
                    *value = new;
                }
            }
        }
        let headers = response.headers();
        let of_type = |wanted: &[u8]| {
            headers.get(CONTENT_TYPE).is_some_and(|value| {
                let value = value.as_bytes();
                value.len() >= wanted.len() && value[..wanted.len()].eq_ignore_ascii_case(wanted)
            })
        };
        let plain = !headers.contains_key(CONTENT_ENCODING);
        if !plain || response.status() != StatusCode::OK {
            return None;
        }
        if self.metadata && of_type(b"application/json") {
            response.headers_mut().remove(CONTENT_LENGTH);
            return Some(Rewriter::metadata(places));
        }
        let stream = of_type(b"text/event-stream") && !headers.contains_key(CONTENT_LENGTH);
        (self.endpoint && stream).then(|| Rewriter::endpoint(places))
    }
}

/// Rewrites the beginning of a body, or all of a small one.
#[derive(Debug)]
pub(super) struct Rewriter {
    places: Places,
    what: What,
    held: BytesMut,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Endpoint,
    Metadata,
}

impl Rewriter {
    /// For an event stream that may begin with `endpoint`.
    pub(super) fn endpoint(places: Places) -> Self {
        Self::new(places, What::Endpoint)
    }

    /// For a metadata document.
    pub(super) fn metadata(places: Places) -> Self {
        Self::new(places, What::Metadata)
    }

    fn new(places: Places, what: What) -> Self {
        Self {
            places,
            what,
            held: BytesMut::new(),
            done: false,
        }
    }

    /// Whether everything that follows passes as it is.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Takes bytes; returns what can be forwarded by now.
    pub(super) fn push(&mut self, bytes: Bytes, exchange: &Exchange) -> Bytes {
        if self.done {
            return bytes;
        }
        self.held.extend_from_slice(&bytes);
        match self.what {
            What::Endpoint => self.event(exchange),
            What::Metadata if self.held.len() > HELD => self.release(),
            What::Metadata => Bytes::new(),
        }
    }

    /// The body ended.
    pub(super) fn finish(&mut self, exchange: &Exchange) -> Bytes {
        if self.what == What::Metadata && !self.done {
            let place = message::member(&self.held, "resource")
                .and_then(|value| place(&self.held, value))
                // Without its quotes; a URL has no escapes worth resolving.
                .map(|range| range.start + 1..range.end.saturating_sub(1))
                .filter(|range| range.start <= range.end);
            if let Some(range) = place {
                self.replace(range, exchange);
            }
        }
        self.release()
    }

    fn event(&mut self, exchange: &Exchange) -> Bytes {
        // A byte order mark, comments and blank lines may come first, and need not wait.
        let from = preamble(&self.held);
        let event = &self.held[from..];
        let known = event.len().min(BEGINNING.len());
        let compact = b"event:endpoint";
        // A comment or a byte order mark may have come in part only.
        let may_be = event[..known] == BEGINNING[..known]
            || event[..event.len().min(compact.len())] == compact[..event.len().min(compact.len())]
            || event.starts_with(b":")
            || event.len() < 3 && from == 0 && b"\xef\xbb\xbf".starts_with(event);
        if !may_be || event.len() > HELD {
            return self.release();
        }
        let Some(end) = end_of_event(event) else {
            return self.held.split_to(from).freeze();
        };
        let fields = sse::fields(&event[..end]);
        if fields.event == Some(b"endpoint")
            && let std::borrow::Cow::Borrowed(uri) = fields.data
            && let Some(range) = place(&self.held, uri)
        {
            self.replace(range, exchange);
        }
        self.release()
    }

    fn replace(&mut self, range: std::ops::Range<usize>, exchange: &Exchange) {
        let Some(moved) = self.places.moved(&self.held[range.clone()]) else {
            return;
        };
        exchange.altered(
            Bytes::copy_from_slice(&self.held[range.clone()]),
            Bytes::copy_from_slice(moved.as_bytes()),
        );
        let mut new = BytesMut::with_capacity(self.held.len() + moved.len());
        new.extend_from_slice(&self.held[..range.start]);
        new.extend_from_slice(moved.as_bytes());
        new.extend_from_slice(&self.held[range.end..]);
        self.held = new;
    }

    /// Lets everything go as it is.
    pub(super) fn release(&mut self) -> Bytes {
        self.done = true;
        std::mem::take(&mut self.held).freeze()
    }
}

/// A `WWW-Authenticate` value with the place of the metadata moved to the listener.
fn challenge(value: &[u8], places: &Places) -> Option<Vec<u8>> {
    const NAME: &[u8] = b"resource_metadata=\"";
    let at = memchr::memmem::find(value, NAME)? + NAME.len();
    let end = at + memchr::memchr(b'"', &value[at..])?;
    let moved = places.moved(&value[at..end])?;
    Some([&value[..at], moved.as_bytes(), &value[end..]].concat())
}

/// How many bytes of whole lines stand before the first event.
fn preamble(bytes: &[u8]) -> usize {
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    while let Some(first) = bytes.get(at) {
        let length = match first {
            b'\r' | b'\n' => 1,
            b':' => match memchr::memchr2(b'\r', b'\n', &bytes[at..]) {
                Some(end) => end + 1,
                None => break,
            },
            _ => break,
        };
        at += length;
    }
    at
}

/// Where the first event ends: after the first blank line.
fn end_of_event(event: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let end = at + memchr::memchr2(b'\r', b'\n', &event[at..])?;
        let next = match &event[end..] {
            [b'\r', b'\n', ..] => end + 2,
            _ => end + 1,
        };
        if end == at && at > 0 {
            return Some(next);
        }
        at = next;
    }
}

/// Where a part lies in the whole, if it is a slice of that.
fn place(whole: &[u8], part: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let range = start..start + part.len();
    whole.get(range.clone()).map(|_| range)
}
