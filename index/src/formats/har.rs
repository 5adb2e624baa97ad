//! HTTP Archive 1.2 (the format of the W3C Web Performance group's draft), for runs over HTTP.
//!
//! An entry is an exchange. Bodies are put together from the messages that were recorded in
//! them: what was sent, without content codings; events of a stream without their comments.

use super::error::FormatError;
use super::export::{Export, Left, leave};
use super::time::to_rfc3339;
use agent_trace_model::Stream;
use agent_trace_model::exchange::Exchange;
use agent_trace_model::step::{Message, Step};
use agent_trace_model::story::{Session, Story};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;

pub(super) struct Har<W> {
    out: W,
    first: bool,
    left: Left,
}

impl<W: Write> Har<W> {
    pub(super) fn begin(mut out: W) -> Result<Self, FormatError> {
        let creator = json!({"name": "agent-trace", "version": env!("CARGO_PKG_VERSION")});
        write!(
            out,
            "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"entries\":["
        )
        .map_err(FormatError::Output)?;
        Ok(Self {
            out,
            first: true,
            left: Left::new(),
        })
    }
}

impl<W: Write> Export for Har<W> {
    fn add(&mut self, story: &Story) -> Result<(), FormatError> {
        if story
            .sessions
            .iter()
            .all(|session| session.exchanges.is_empty())
        {
            return Err(FormatError::Nothing {
                run: story.id.to_string(),
                format: "HAR",
                why: "it has no HTTP exchanges",
            });
        }
        for (position, session) in story.sessions.iter().enumerate() {
            let mut bodies: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
            for step in story.steps.iter().filter(|step| step.session == position) {
                match step.exchange {
                    0 => leave(&mut self.left, "steps that were not sent over HTTP"),
                    exchange => bodies.entry(exchange).or_default().push(step),
                }
            }
            for (number, exchange) in &session.exchanges {
                let steps = bodies.remove(number).unwrap_or_default();
                let entry = entry(story, session, exchange, &steps);
                let before = if std::mem::take(&mut self.first) {
                    "\n"
                } else {
                    ",\n"
                };
                write!(self.out, "{before}{entry}").map_err(FormatError::Output)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Left, FormatError> {
        let ended = self.out.write_all(b"\n]}}\n");
        ended
            .and_then(|()| self.out.flush())
            .map_err(FormatError::Output)?;
        Ok(std::mem::take(&mut self.left))
    }
}

fn entry(story: &Story, session: &Session, exchange: &Exchange, steps: &[&Step]) -> Value {
    let milliseconds = |span: u64| span as f64 / 1e6;
    let time = exchange.duration.map_or(0.0, milliseconds);
    let finished = exchange.finished.as_ref();
    let finish = finished.map_or(json!("not recorded"), |finished| json!(finished.finish));
    json!({
        "startedDateTime": to_rfc3339(exchange.wall),
        "time": time,
        "request": request(session, exchange, steps),
        "response": response(exchange, steps),
        "cache": {},
        // When the first byte of an answer came is not told apart from its end.
        "timings": {"blocked": -1, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": time, "receive": 0},
        "connection": exchange.request.as_ref().map_or(0, |r| r.connection).to_string(),
        "_run": story.id.to_string(),
        "_session": session.id.to_string(),
        "_finish": finish,
    })
}

fn request(session: &Session, exchange: &Exchange, steps: &[&Step]) -> Value {
    let empty = agent_trace_model::exchange::Request::default();
    let head = exchange.request.as_ref().unwrap_or(&empty);
    let upstream = session.upstream.as_deref().unwrap_or_default();
    let query = head.target.split_once('?').map_or("", |(_, query)| query);
    let query: Vec<Value> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({"name": name, "value": value})
        })
        .collect();
    let mut request = json!({
        "method": head.method,
        "url": format!("{}{}", origin(upstream), head.target),
        "httpVersion": head.version,
        "cookies": [],
        "headers": headers(&head.headers),
        "queryString": query,
        "headersSize": -1,
        "bodySize": size(exchange, |finished| finished.request_bytes),
    });
    let asked = steps.iter().flat_map(|step| {
        [
            (step.from, &step.request),
            (other(step.from), &step.response),
        ]
    });
    let text = body(asked, Stream::ClientToServer, false);
    if !text.is_empty() {
        let kind = exchange.request_header("content-type").unwrap_or_default();
        request["postData"] = json!({"mimeType": kind, "params": [], "text": text});
    }
    request
}

fn response(exchange: &Exchange, steps: &[&Step]) -> Value {
    let empty = agent_trace_model::exchange::Response::default();
    let head = exchange.response.as_ref().unwrap_or(&empty);
    let kind = exchange.response_header("content-type").unwrap_or_default();
    let events = exchange.content_type() == Some("text/event-stream");
    let answered = steps.iter().flat_map(|step| {
        [
            (step.from, &step.request),
            (other(step.from), &step.response),
        ]
    });
    let text = body(answered, Stream::ServerToClient, events);
    json!({
        "status": head.status,
        "statusText": "",
        "httpVersion": head.version,
        "cookies": [],
        "headers": headers(&head.headers),
        "content": {"size": text.len(), "mimeType": kind, "text": text},
        "redirectURL": exchange.response_header("location").unwrap_or_default(),
        "headersSize": -1,
        "bodySize": size(exchange, |finished| finished.response_bytes),
    })
}

/// What one side said, in order; each frame once, of a batch all messages.
fn body<'a>(
    messages: impl Iterator<Item = (Stream, &'a Option<Message>)>,
    from: Stream,
    events: bool,
) -> String {
    let ours = messages.filter(|(stream, _)| *stream == from);
    let mut said: Vec<&Message> = ours.filter_map(|(_, message)| message.as_ref()).collect();
    said.sort_by_key(|message| message.frame);
    let texts: Vec<_> = said
        .iter()
        .map(|message| String::from_utf8_lossy(&message.text))
        .collect();
    match (events, &texts[..]) {
        (true, _) => texts
            .iter()
            .map(|text| format!("data: {text}\n\n"))
            .collect(),
        (false, [one]) => one.clone().into_owned(),
        (false, []) => String::new(),
        (false, _) => format!("[{}]", texts.join(",")),
    }
}

fn other(stream: Stream) -> Stream {
    match stream {
        Stream::ClientToServer => Stream::ServerToClient,
        Stream::ServerToClient | Stream::Stderr => Stream::ClientToServer,
    }
}

fn size(exchange: &Exchange, of: impl Fn(&agent_trace_model::exchange::Finished) -> u64) -> i64 {
    let bytes = exchange.finished.as_ref().map(of);
    bytes
        .and_then(|bytes| i64::try_from(bytes).ok())
        .unwrap_or(-1)
}

fn headers(headers: &[(String, String)]) -> Vec<Value> {
    let pair = |(name, value): &(String, String)| json!({"name": name, "value": value});
    headers.iter().map(pair).collect()
}

/// Scheme and authority of a URL: the target of a request has the rest.
fn origin(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.trim_end_matches('/');
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    &url[..scheme.len() + 3 + authority.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_all_before_the_path() {
        for (url, expected) in [
            ("https://a.example:8/mcp?x", "https://a.example:8"),
            ("http://[::1]:4/", "http://[::1]:4"),
            ("", ""),
        ] {
            assert_eq!(origin(url), expected);
        }
    }
}
