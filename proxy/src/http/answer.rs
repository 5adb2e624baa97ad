//! What the listener answers by itself, where nothing can be forwarded.

use agent_trace_model::Finish;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

/// An answer of our own.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) finish: Finish,
}

impl Answer {
    /// An answer that says which side failed, and why; `why` is plain text of ours or of the
    /// system's.
    pub(super) fn new(status: StatusCode, side: &str, why: &str, finish: Finish) -> Self {
        let body = format!(
            r#"{{"error":{{"status":{},"side":"{side}","message":"{}","answered_by":"agent-trace"}}}}"#,
            status.as_u16(),
            escaped(why),
        );
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        Self {
            status,
            headers,
            body: body.into(),
            finish,
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
