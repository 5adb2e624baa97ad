//! Heads of HTTP messages: what is always hidden in them, beside what the rules find.
//!
//! A header whose name says credential has one, whatever it looks like. An `Mcp-Session-Id`
//! is a credential, and so is the id in the URI of the older transport: in a query
//! (`sessionId=…`) or as a part of the path.

use std::ops::Range;

use super::header::after_any_scheme;
use super::judge::{Binding, is_plausible};
use super::mark::{self, Hit, Kind, Rank, is_marked};
use super::{Redaction, Redactor, Strength, entropy, name_says_secret};

/// Longer parts of a path are no ids of sessions, and shorter ones neither.
const PATH_ID: Range<usize> = 16..129;

impl Redactor {
    /// The value of a header without its secrets; none where there is nothing to hide. The
    /// `rules` for texts are followed if so said, credentials by their header's name are
    /// hidden in any case.
    #[must_use]
    pub fn header(&self, name: &[u8], value: &[u8], rules: bool) -> Option<Vec<u8>> {
        let mut hits = Vec::new();
        if let Some(kind) = credential(name, value) {
            let skip = if kind == "authorization" {
                after_any_scheme(value)
            } else {
                0
            };
            hits.push(self.hit(value, skip..value.len(), kind));
        } else {
            self.session_ids(value, &mut hits);
            let is_uri = [&b"location"[..], b"content-location", b"referer"];
            if is_uri.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                self.ids_in_path(value, &mut hits);
            }
            if rules {
                // The name says what its value is.
                let line = [name, b": ", value].concat();
                let before = line.len() - value.len();
                let found = if self.is_worth_a_look(&line) {
                    self.hits(&line)
                } else {
                    Vec::new()
                };
                hits.extend(found.into_iter().filter_map(|hit| {
                    let start = hit.range.start.max(before) - before;
                    let range = start..hit.range.end.checked_sub(before)?;
                    (!range.is_empty()).then_some(Hit { range, ..hit })
                }));
            }
        }
        self.settled(value, hits).map(|(hidden, _)| hidden)
    }

    /// A request's target, or the URI of an `endpoint` event, without its secrets, and what
    /// was hidden; none where there is nothing to hide.
    #[must_use]
    pub fn target(&self, target: &[u8], rules: bool) -> Option<(Vec<u8>, Vec<Redaction>)> {
        let mut hits = Vec::new();
        self.session_ids(target, &mut hits);
        self.ids_in_path(target, &mut hits);
        if rules && self.is_worth_a_look(target) {
            hits.extend(self.hits(target));
        }
        self.settled(target, hits)
    }

    /// The keyed fingerprint of a secret, as its marker has it.
    #[must_use]
    pub fn fingerprint(&self, secret: &[u8]) -> String {
        format!("{:08x}", mark::print(&self.key, secret))
    }

    fn settled(&self, text: &[u8], mut hits: Vec<Hit>) -> Option<(Vec<u8>, Vec<Redaction>)> {
        self.settle(text, &mut hits);
        if hits.is_empty() {
            return None;
        }
        let (mut out, mut spans) = (Vec::new(), Vec::new());
        mark::write(text, &hits, &mut out, &mut spans);
        Some((out, spans))
    }

    fn hit(&self, text: &[u8], range: Range<usize>, kind: &'static str) -> Hit {
        Hit {
            print: mark::print(&self.key, &text[range.clone()]),
            range,
            kind: Kind::known(kind),
            rank: Rank::User,
            bare: None,
        }
    }

    /// The parts of the path that look like an id that someone drew.
    fn ids_in_path(&self, uri: &[u8], hits: &mut Vec<Hit>) {
        let end = uri
            .iter()
            .position(|byte| matches!(byte, b'?' | b'#'))
            .unwrap_or(uri.len());
        let after_scheme = memchr::memmem::find(&uri[..end], b"://").map_or(0, |at| at + 3);
        let slashes = memchr::memchr_iter(b'/', &uri[after_scheme..end]);
        for start in slashes.map(|slash| after_scheme + slash + 1) {
            let part = &uri[start..end];
            let length = memchr::memchr(b'/', part).unwrap_or(part.len());
            if is_drawn(&part[..length]) {
                hits.push(self.hit(uri, start..start + length, "mcp-session-id"));
            }
        }
    }

    /// The values of `sessionId` and its like among the parameters of a URI in `text`.
    fn session_ids(&self, text: &[u8], hits: &mut Vec<Hit>) {
        for equals in memchr::memchr_iter(b'=', text) {
            let before = &text[..equals];
            let name = before
                .iter()
                .rposition(|byte| matches!(byte, b'?' | b'&' | b';'))
                .map(|at| &before[at + 1..]);
            let is = |names: &[&str]| {
                let is =
                    |known: &&str| name.is_some_and(|n| n.eq_ignore_ascii_case(known.as_bytes()));
                names.iter().any(is)
            };
            let says = is(&["sessionid", "session_id", "session-id", "mcp-session-id"]);
            let may = is(&[
                "sid",
                "session",
                "sess",
                "sessid",
                "phpsessid",
                "jsessionid",
            ]);
            if says || may {
                let start = equals + 1;
                let end = text[start..]
                    .iter()
                    .position(|byte| {
                        matches!(
                            byte,
                            0..=b' ' | b'&' | b'#' | b';' | b'"' | b'\'' | b'<' | b'>'
                        )
                    })
                    .map_or(text.len(), |found| start + found);
                if end > start && (says || is_id(&text[start..end])) {
                    hits.push(self.hit(text, start..end, "mcp-session-id"));
                }
            }
        }
    }
}

/// The kind of credential that a header's value is by its name.
fn credential(name: &[u8], value: &[u8]) -> Option<&'static str> {
    if value.is_empty() || is_marked(value) {
        return None;
    }
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("authorization") || is("proxy-authorization") {
        Some("authorization")
    } else if is("cookie") || is("set-cookie") {
        Some("cookie")
    } else if is("mcp-session-id") || is("x-session-id") || is("session-id") {
        Some("mcp-session-id")
    } else {
        name_says_secret(name)
            .filter(|says| says.strength == Strength::Strong)
            .filter(|_| is_plausible(value, Binding::Member, false))
            .map(|says| says.kind)
    }
}

/// Whether a part of a path looks like an id that someone drew.
fn is_drawn(id: &[u8]) -> bool {
    let hex = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
    let drawn =
        id.iter().all(hex) && id.iter().any(u8::is_ascii_digit) || entropy::looks_random(id);
    PATH_ID.contains(&id.len()) && id.iter().all(is_token) && drawn
}

/// Whether the value of something that may name a session is long enough for an id, and may
/// be one.
fn is_id(value: &[u8]) -> bool {
    value.len() >= PATH_ID.start
        && value.iter().all(is_token)
        && value.iter().any(u8::is_ascii_digit)
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap()
    }

    fn header(name: &str, value: &str) -> String {
        let hidden = redactor().header(name.as_bytes(), value.as_bytes(), true);
        hidden.map_or_else(
            || value.to_owned(),
            |hidden| String::from_utf8(hidden).unwrap(),
        )
    }

    fn target(target: &str) -> String {
        let hidden = redactor().target(target.as_bytes(), true);
        hidden.map_or_else(
            || target.to_owned(),
            |(hidden, _)| String::from_utf8(hidden).unwrap(),
        )
    }

    #[test]
    fn credentials_are_hidden_by_the_name_of_their_header() {
        for (name, value, kept) in [
            ("Authorization", "Bearer abc", "Bearer "),
            ("proxy-authorization", "Basic dTpw", "Basic "),
            ("Authorization", "abc", ""),
            ("Cookie", "a=b", ""),
            ("Set-Cookie", "sid=1; Path=/", ""),
            ("MCP-Session-Id", "1", ""),
            ("X-Api-Key", "abc", ""),
        ] {
            let hidden = header(name, value);
            assert!(
                hidden.starts_with(&format!("{kept}[REDACTED:")),
                "{name}: {hidden}"
            );
            assert!(hidden.ends_with(']'), "{name}: {hidden}");
            let unruled = redactor().header(name.as_bytes(), value.as_bytes(), false);
            assert_eq!(unruled, Some(hidden.into_bytes()), "{name}");
        }
    }

    #[test]
    fn what_is_no_credential_stays() {
        for (name, value) in [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("User-Agent", "node-fetch/1.0 (+https://example.com)"),
            (
                "WWW-Authenticate",
                "Bearer realm=\"x\", error=\"invalid_token\"",
            ),
            ("MCP-Protocol-Version", "2025-11-25"),
            ("Mcp-Name", "get_token"),
            ("Last-Event-ID", "7"),
            ("Access-Control-Allow-Credentials", "true"),
            (
                "Access-Control-Allow-Headers",
                "authorization, mcp-session-id",
            ),
            ("Cookie", ""),
        ] {
            assert_eq!(header(name, value), value, "{name}");
        }
    }

    #[test]
    fn ids_of_sessions_have_one_marker_wherever_they_are() {
        let id = "5f0c2a44-91d3-4c58-9d55-0a2b6e1f7c3d";
        let marker = header("mcp-session-id", id);
        assert!(marker.starts_with("[REDACTED:mcp-session-id:"), "{marker}");
        assert_eq!(
            target(&format!("/message?sessionId={id}")),
            format!("/message?sessionId={marker}")
        );
        assert_eq!(
            target(&format!("/m?a=1&SESSION_ID={id}&b=2")),
            format!("/m?a=1&SESSION_ID={marker}&b=2")
        );
        assert_eq!(
            target(&format!("http://x:1/m/{id}?a=b")),
            format!("http://x:1/m/{marker}?a=b")
        );
        assert_eq!(
            header("Location", &format!("/m?session_id={id}")),
            format!("/m?session_id={marker}")
        );
        for path in [
            "/messages/ID/",
            "/mcp/ID/messages?a=b",
            "/m?sid=ID",
            "/m?session=ID",
        ] {
            let (given, hidden) = (path.replace("ID", id), path.replace("ID", &marker));
            assert_eq!(target(&given), hidden);
            for name in ["location", "Content-Location", "Referer"] {
                assert_eq!(
                    header(name, &format!("http://x:1{given}")),
                    format!("http://x:1{hidden}")
                );
            }
        }
        for name in ["x-session-id", "Session-Id"] {
            assert_eq!(header(name, id), marker);
        }
        assert_eq!(
            target("/m?sessionId=1"),
            format!("/m?sessionId={}", header("mcp-session-id", "1"))
        );
        for plain in [
            "/mcp",
            "/",
            "",
            "/.well-known/oauth-protected-resource/mcp",
            "/a?session=x",
            "/a?sid=a-long-name-of-something",
            "http://a1b2c3d4e5f60718/mcp",
            "/m?sessionId=",
        ] {
            assert_eq!(target(plain), plain);
        }
    }

    #[test]
    fn tokens_in_a_query_are_hidden() {
        let hidden = target("/mcp?api_key=abcdef123456&x=1");
        assert!(
            !hidden.contains("abcdef") && hidden.ends_with("&x=1"),
            "{hidden}"
        );
    }
}
