//! What a frame says in JSON-RPC: kind, id, method, and the batch taken apart.
//!
//! The classes are those of JSON-RPC 2.0 as MCP uses it, told by members alone; nothing is
//! rejected for a missing `"jsonrpc"`. Where an object names a member twice the last one
//! counts, as it does for nearly every JSON library a peer may use. Names are compared after
//! their escapes are resolved, so `"\u0069d"` is `"id"`, as it is for the peer.

use std::borrow::Cow;

use crate::json::{Invalid, Scanner, Token, unescape};

/// The class of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// `method` and `id`. An id of `null` counts: whoever sends one expects an answer.
    Request,
    /// `method` alone.
    Notification,
    /// `id` and `result`.
    Response,
    /// `error`, with or without an `id`. An `error` of `null` beside a `result` (the custom
    /// of JSON-RPC 1.0) makes a response.
    Error,
    /// Anything else that is JSON.
    #[default]
    Other,
}

/// One JSON-RPC message. Every slice is a piece of the text as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its class.
    pub kind: MessageKind,
    /// The id's JSON text: `1`, `1.0` and `"1"` are three ids, and `null` is one too. It may
    /// be any JSON value.
    pub id: Option<&'a [u8]>,
    /// The method, decoded. Absent if `method` is no string.
    pub method: Option<Cow<'a, str>>,
    /// The JSON text of `params`.
    pub params: Option<&'a [u8]>,
    /// The JSON text of `result`.
    pub result: Option<&'a [u8]>,
    /// The JSON text of `error`.
    pub error: Option<&'a [u8]>,
    /// The JSON text of the whole message; in a batch, of this element.
    pub text: &'a [u8],
}

/// The messages in one JSON text: the elements of a batch array, or else the text itself.
///
/// # Errors
///
/// The text is not JSON.
pub fn messages(text: &[u8]) -> Result<Messages<'_>, Invalid> {
    let mut scanner = Scanner::new(text);
    let start = scanner
        .clone()
        .next()
        .unwrap_or(Err(Invalid { at: text.len() }))?;
    if start.token == Token::ArrayOpen {
        // Checked as a whole first: a list of its elements, kept, would take far more memory
        // than a hostile `[1,1,1,…]` itself.
        scanner.clone().try_for_each(|item| item.map(drop))?;
        scanner.next();
        return Ok(Messages {
            single: None,
            batch: Some(Elements { text, scanner }),
        });
    }
    let single = next_value(&mut scanner, text)?;
    match scanner.next() {
        Some(Err(invalid)) => Err(invalid),
        _ => Ok(Messages {
            single,
            batch: None,
        }),
    }
}

/// What the beginning of a message says, the rest of which was not kept: the members that are
/// whole, and `params`, `result` or `error` as far as they go.
///
/// None if it does not begin with the beginning of an object.
#[must_use]
pub fn beginning(text: &[u8]) -> Option<Message<'_>> {
    let mut scanner = Scanner::new(text);
    if scanner.next()?.ok()?.token != Token::ObjectOpen {
        return None;
    }
    let mut message = Message {
        text,
        ..Message::default()
    };
    while let Some(Ok(key)) = scanner.next() {
        if key.token != Token::Key {
            break;
        }
        let value = scanner.next().and_then(Result::ok);
        let (token, start, end) = match value {
            Some(value) => (
                value.token,
                value.start,
                value_end(&mut scanner, value.token).ok(),
            ),
            None => (Token::Literal, text.len(), None),
        };
        let name = content_of(&text[key.start + 1..key.end - 1]);
        let is_whole = end.is_some();
        if is_whole || matches!(&*name, b"params" | b"result" | b"error") {
            message.set(&name, token, &text[start..end.unwrap_or(text.len())]);
        }
        if !is_whole {
            break;
        }
    }
    message.kind = kind(&message);
    Some(message)
}

/// Whether a request with this method stays open for as long as the session, so that having
/// no answer is nothing unusual: a subscription of MCP 2026-07-28.
#[must_use]
pub fn stays_open(method: Option<&str>) -> bool {
    method == Some("subscriptions/listen")
}

/// Iterates over the messages in one JSON text.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    single: Option<Message<'a>>,
    batch: Option<Elements<'a>>,
}

#[derive(Clone, Debug)]
struct Elements<'a> {
    text: &'a [u8],
    scanner: Scanner<'a>,
}

impl Messages<'_> {
    /// Whether the text is a batch array (which may be empty).
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.batch.is_some()
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    #[inline]
    fn next(&mut self) -> Option<Message<'a>> {
        match &mut self.batch {
            None => self.single.take(),
            Some(batch) => next_value(&mut batch.scanner, batch.text).ok().flatten(),
        }
    }
}

/// The JSON text of an object's member, `object` being the object's JSON text.
///
/// The last one if there are several; none if `object` is not one JSON object.
#[must_use]
pub fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut scanner = Scanner::new(object);
    if scanner.next()?.ok()?.token != Token::ObjectOpen {
        return None;
    }
    let mut found = None;
    members(&mut scanner, object, |name, _, value| {
        if name == key.as_bytes() {
            found = Some(value);
        }
    })
    .ok()?;
    found
}

/// The JSON text of a member of a member of …, from the outside in.
#[must_use]
pub fn member_at<'a>(object: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter()
        .try_fold(object, |object, key| member(object, key))
}

/// What a JSON string says, `value` being its JSON text with the quotes. Bytes that are no
/// UTF-8, and lone surrogates, become U+FFFD.
#[must_use]
pub fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    let content = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(match content_of(content) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

/// Reads the next value, or finds the end of the array around it.
#[inline]
fn next_value<'a>(
    scanner: &mut Scanner<'a>,
    text: &'a [u8],
) -> Result<Option<Message<'a>>, Invalid> {
    let Some(start) = scanner.next().transpose()? else {
        return Ok(None);
    };
    let mut message = Message::default();
    let end = match start.token {
        Token::ArrayClose => return Ok(None),
        Token::ObjectOpen => {
            let end = members(scanner, text, |name, token, value| {
                message.set(name, token, value);
            })?;
            message.kind = kind(&message);
            end
        }
        token => value_end(scanner, token)?,
    };
    message.text = &text[start.start..end];
    Ok(Some(message))
}

impl<'a> Message<'a> {
    #[inline]
    fn set(&mut self, name: &[u8], token: Token, value: &'a [u8]) {
        match name {
            b"id" => self.id = Some(value),
            b"method" if token == Token::String => self.method = string(value),
            b"method" => self.method = None,
            b"params" => self.params = Some(value),
            b"result" => self.result = Some(value),
            b"error" => self.error = Some(value),
            _ => {}
        }
    }
}

fn kind(message: &Message<'_>) -> MessageKind {
    let has_result = message.result.is_some();
    let has_error = message
        .error
        .is_some_and(|error| error != b"null" || !has_result);
    match (message.id.is_some(), message.method.is_some()) {
        (true, true) => MessageKind::Request,
        (false, true) => MessageKind::Notification,
        _ if has_error => MessageKind::Error,
        (true, false) if has_result => MessageKind::Response,
        _ => MessageKind::Other,
    }
}

/// Reads the members of an object that was just opened, and its end. Names come decoded.
#[inline]
fn members<'a>(
    scanner: &mut Scanner<'a>,
    text: &'a [u8],
    mut each: impl FnMut(&[u8], Token, &'a [u8]),
) -> Result<usize, Invalid> {
    while let Some(key) = scanner.next().transpose()? {
        if key.token != Token::Key {
            return Ok(key.end);
        }
        let Some(value) = scanner.next().transpose()? else {
            break;
        };
        let end = value_end(scanner, value.token)?;
        let name = content_of(&text[key.start + 1..key.end - 1]);
        each(&name, value.token, &text[value.start..end]);
    }
    Ok(Scanner::position(scanner))
}

/// Offset after the value that began with this token, the last one read.
#[inline]
fn value_end(scanner: &mut Scanner<'_>, token: Token) -> Result<usize, Invalid> {
    if matches!(token, Token::ObjectOpen | Token::ArrayOpen) {
        let inside = scanner.depth();
        while scanner.depth() >= inside {
            if scanner.next().transpose()?.is_none() {
                break;
            }
        }
    }
    Ok(Scanner::position(scanner))
}

/// A string's content with its escapes resolved, where it has any.
#[inline]
fn content_of(raw: &[u8]) -> Cow<'_, [u8]> {
    // Most are names of a few bytes, where a plain loop is the fastest.
    let escaped = match raw.len() {
        0..16 => raw.contains(&b'\\'),
        _ => memchr::memchr(b'\\', raw).is_some(),
    };
    if escaped {
        Cow::Owned(unescape(raw).bytes)
    } else {
        Cow::Borrowed(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Message<'_> {
        let mut all = messages(text.as_bytes()).expect("JSON");
        assert!(!all.is_batch());
        let message = all.next().expect("a message");
        assert_eq!(all.next(), None);
        message
    }

    #[test]
    fn kinds_follow_from_members() {
        for (text, kind) in [
            (r#"{"method":"ping","id":1}"#, MessageKind::Request),
            (r#"{"method":"ping","id":null}"#, MessageKind::Request),
            (r#"{"method":"a/b"}"#, MessageKind::Notification),
            (r#"{"id":1,"result":null}"#, MessageKind::Response),
            (
                r#"{"id":1,"result":{},"error":null}"#,
                MessageKind::Response,
            ),
            (r#"{"id":1,"result":null,"error":{}}"#, MessageKind::Error),
            (r#"{"id":1,"error":null}"#, MessageKind::Error),
            (r#"{"id":null,"error":{}}"#, MessageKind::Error),
            (r#"{"error":{"code":-32700}}"#, MessageKind::Error),
            (r#"{"method":7,"id":1}"#, MessageKind::Other),
            (r#"{"result":{}}"#, MessageKind::Other),
            (r#"{"id":1}"#, MessageKind::Other),
            ("{}", MessageKind::Other),
            ("17", MessageKind::Other),
            (" \"text\" ", MessageKind::Other),
        ] {
            assert_eq!(one(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn a_cut_message_is_known_by_its_beginning() {
        let whole = r#"{"jsonrpc":"2.0","id":7,"result":{"content":["text"]}}"#;
        for cut in 0..whole.len() {
            let message = beginning(&whole.as_bytes()[..cut]);
            assert_eq!(message.is_some(), cut > 0, "{cut}");
            let Some(message) = message else { continue };
            let expected = if cut > 31 {
                MessageKind::Response
            } else {
                MessageKind::Other
            };
            assert_eq!(message.kind, expected, "{}", &whole[..cut]);
            assert_eq!(message.id.is_some(), cut > 22, "{}", &whole[..cut]);
        }
        let request = beginning(br#"{"id":1,"method":"a","params":{"x":"yyy"#).expect("a request");
        assert_eq!(
            (request.kind, request.params),
            (MessageKind::Request, Some(&br#"{"x":"yyy"#[..]))
        );
        assert_eq!(beginning(b"[1"), None);
        assert_eq!(beginning(b""), None);
    }

    #[test]
    fn w22_w23_ids_keep_their_spelling() {
        for id in [
            "1",
            "1.0",
            "1e400",
            "-0.0",
            "\"1\"",
            "\"01\"",
            "null",
            "9007199254740993",
            "18446744073709551615",
            "\"\\ud800\"",
            "[1, {\"a\":2}]",
            "{\"id\":3}",
            "true",
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0", "id" : {id} ,"result":{{"id":5}}}}"#);
            assert_eq!(one(&text).id, Some(id.as_bytes()));
        }
    }

    #[test]
    fn members_are_raw_slices_and_methods_are_decoded() {
        let text = r#" {"id":1,"method":"tools\/call","params":{"name": "x"}} "#;
        let message = one(text);
        assert_eq!(message.method.as_deref(), Some("tools/call"));
        assert_eq!(message.params, Some(&br#"{"name": "x"}"#[..]));
        assert_eq!(message.text, text.trim().as_bytes());
        assert_eq!((message.result, message.error), (None, None));
    }

    #[test]
    fn a_member_named_with_escapes_is_the_same_member() {
        let message = one(r#"{"\u0069d":1,"meth\u006fd":"ping"}"#);
        assert_eq!(
            (message.kind, message.id),
            (MessageKind::Request, Some(&b"1"[..]))
        );
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts() {
        let message = one(r#"{"id":1,"id":2,"method":"a","method":"b"}"#);
        assert_eq!(message.id, Some(&b"2"[..]));
        assert_eq!(message.method.as_deref(), Some("b"));
        assert_eq!(member(br#"{"a":1,"a":2}"#, "a"), Some(&b"2"[..]));
    }

    #[test]
    fn w25_a_batch_is_taken_apart() {
        let text = br#" [{"id":1,"method":"tools/call"} , {"method":"ping","id":2},7,[],{"id":3,"result":[]}]"#;
        let all = messages(text).expect("JSON");
        assert!(all.is_batch());
        let kinds: Vec<_> = all.clone().map(|message| message.kind).collect();
        use MessageKind::{Other, Request, Response};
        assert_eq!(kinds, [Request, Request, Other, Other, Response]);
        let texts: Vec<_> = all.map(|message| message.text).collect();
        assert_eq!(texts[0], br#"{"id":1,"method":"tools/call"}"#);
        assert_eq!(texts[2..4], [&b"7"[..], b"[]"]);
    }

    #[test]
    fn w25_an_empty_batch_has_no_messages() {
        let mut all = messages(b"[ ]").expect("JSON");
        assert!(all.is_batch());
        assert_eq!(all.next(), None);
    }

    #[test]
    fn what_is_no_json_is_an_error_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("[{]", 2),
            ("[1] x", 4),
            ("{}{", 2),
            ("x", 0),
        ] {
            let found = messages(text.as_bytes()).map(|_| ()).expect_err(text);
            assert_eq!(found.at, at, "{text}");
        }
    }

    #[test]
    fn members_are_found_by_path() {
        let text = br#"{"params":{"x":{"name":1},"name":"a\nb"},"name":0}"#;
        let value = member_at(text, &["params", "name"]).expect("a member");
        assert_eq!(string(value).as_deref(), Some("a\nb"));
        assert_eq!(member(text, "x"), None);
        assert_eq!(member_at(text, &["name", "name"]), None);
        assert_eq!(member(b"[1]", "a"), None);
        assert_eq!(member(b"{\"a\":1", "a"), None);
    }

    #[test]
    fn w21_strings_that_are_no_unicode_are_shown_with_replacements() {
        assert_eq!(string(b"\"\xFF\xFE\"").as_deref(), Some("\u{FFFD}\u{FFFD}"));
        assert!(string(br#""\ud800""#).is_some_and(|text| text.contains('\u{FFFD}')));
        assert_eq!(string(br#""\ud83d\ude00""#).as_deref(), Some("😀"));
        assert_eq!((string(b"1"), string(b"\"")), (None, None));
    }
}
