//! Pieces of JSON text: looked at and written without changing a digit.
//!
//! What foreign files hold is hostile: nothing here recurses, and nesting costs one bit a level.

use agent_trace_wire::json::{Invalid, Scanner, Token};

pub(super) use agent_trace_wire::json::is_valid;
use agent_trace_wire::message;
use std::borrow::Cow;

/// Hands out the members of the one object that `text` is: names, decoded, and values as JSON
/// text. The whole text is checked.
///
/// # Errors
/// Where it is not JSON, or no object.
pub(super) fn members<'a>(
    text: &'a [u8],
    mut each: impl FnMut(&str, &'a [u8]),
) -> Result<(), Invalid> {
    let mut scanner = Scanner::new(text);
    match scanner.next().transpose()? {
        Some(item) if item.token == Token::ObjectOpen => {}
        Some(item) => return Err(Invalid { at: item.start }),
        None => return Err(Invalid { at: text.len() }),
    }
    let mut name: Option<Cow<'_, str>> = None;
    let mut start = 0;
    while let Some(item) = scanner.next().transpose()? {
        match (item.token, scanner.depth()) {
            (Token::Key, 1) => name = message::string(&text[item.start..item.end]),
            (Token::ObjectOpen | Token::ArrayOpen, 2) => start = item.start,
            (Token::ObjectClose | Token::ArrayClose, 1) => {
                each(&name.take().unwrap_or_default(), &text[start..item.end]);
            }
            (Token::String | Token::Number | Token::Literal, 1) => {
                each(
                    &name.take().unwrap_or_default(),
                    &text[item.start..item.end],
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// Hands out the elements of the array that `text` is, as JSON text; nothing where it is none.
pub(super) fn elements(text: &[u8]) -> Vec<&[u8]> {
    let mut scanner = Scanner::new(text);
    let mut found = Vec::new();
    if !matches!(scanner.next(), Some(Ok(item)) if item.token == Token::ArrayOpen) {
        return found;
    }
    let mut start = 0;
    while let Some(Ok(item)) = scanner.next() {
        match (item.token, scanner.depth()) {
            (Token::ObjectOpen | Token::ArrayOpen, 2) => start = item.start,
            (Token::ObjectClose | Token::ArrayClose, 1) => found.push(&text[start..item.end]),
            (Token::String | Token::Number | Token::Literal, 1) => {
                found.push(&text[item.start..item.end]);
            }
            _ => {}
        }
    }
    found
}

/// A text without white space around it and the byte order mark that some put before it: it
/// is going to stand in another text.
pub(super) fn bare(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    text.strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(text)
        .trim_ascii()
}

/// A member of an object as text, if it is a string.
pub(super) fn text_of<'a>(object: &'a [u8], key: &str) -> Option<Cow<'a, str>> {
    message::string(message::member(object, key)?)
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    // Strings cannot fail.
    serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec())
}

/// Whether this JSON text is an object.
pub(super) fn is_object(value: &[u8]) -> bool {
    value.first() == Some(&b'{')
}

/// Whether this JSON text is a string.
pub(super) fn is_string(value: &[u8]) -> bool {
    value.first() == Some(&b'"')
}

/// Whether this JSON text is a number.
pub(super) fn is_number(value: &[u8]) -> bool {
    value
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-')
}

/// What a value says as text: of a string its content, of anything else its JSON.
pub(super) fn shown(value: &[u8]) -> Cow<'_, str> {
    message::string(value).unwrap_or_else(|| String::from_utf8_lossy(value))
}

/// The same JSON text without white space between its tokens.
pub(super) fn compact(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for item in Scanner::new(text).map_while(Result::ok) {
        between(&text[at..item.start], &mut out);
        out.extend_from_slice(&text[item.start..item.end]);
        at = item.end;
    }
    out
}

/// What stands between two tokens: a comma or a colon, if anything.
fn between(gap: &[u8], out: &mut Vec<u8>) {
    out.extend(gap.iter().filter(|byte| matches!(byte, b',' | b':')));
}

/// What [`portable`] could not say as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flattened {
    /// Values nested too deeply, and numbers with too many digits, that became strings.
    pub(super) values: u64,
}

/// Values nested more deeply become strings of their text: readers written with recursion end
/// there.
const MOST_DEPTH: usize = 100;
/// Python refuses whole numbers of more than 4300 digits.
const MOST_DIGITS: usize = 4000;

/// The same JSON text for readers of less stamina: in ASCII, since some split lines at U+2028
/// and the like, without white space, and nothing too deep or too long in it. Bytes that are
/// no UTF-8 become U+FFFD.
pub(super) fn portable(text: &[u8], flattened: &mut Flattened) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut scanner = Scanner::new(text);
    let mut at = 0;
    while let Some(Ok(item)) = scanner.next() {
        between(&text[at..item.start], &mut out);
        let token = &text[item.start..item.end];
        at = item.end;
        match item.token {
            Token::ObjectOpen | Token::ArrayOpen if scanner.depth() > MOST_DEPTH => {
                let inside = scanner.depth();
                while scanner.depth() >= inside {
                    match scanner.next() {
                        Some(Ok(item)) => at = item.end,
                        _ => break,
                    }
                }
                let whole = String::from_utf8_lossy(&text[item.start..at]);
                ascii(&quoted(&whole), &mut out);
                flattened.values += 1;
            }
            Token::Number if token.len() > MOST_DIGITS => {
                ascii(&quoted(&String::from_utf8_lossy(token)), &mut out);
                flattened.values += 1;
            }
            Token::Key | Token::String => ascii(token, &mut out),
            _ => out.extend_from_slice(token),
        }
    }
    out
}

/// Appends a JSON string in ASCII.
fn ascii(string: &[u8], out: &mut Vec<u8>) {
    if string.is_ascii() {
        return out.extend_from_slice(string);
    }
    for character in String::from_utf8_lossy(string).chars() {
        if character.is_ascii() {
            out.push(character as u8);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        }
    }
}

/// Python writes and reads three numbers that JSON does not know. With each of them as a
/// string the text may be JSON; none where it holds none of them.
pub(super) fn without_python_numbers(text: &[u8]) -> Option<Vec<u8>> {
    const NAMES: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut out = Vec::with_capacity(text.len() + 16);
    let (mut at, mut any, mut quoted) = (0, false, false);
    while at < text.len() {
        let byte = text[at];
        if quoted && byte == b'\\' {
            out.extend_from_slice(&text[at..text.len().min(at + 2)]);
            at += 2;
            continue;
        }
        quoted ^= byte == b'"';
        let name = NAMES
            .iter()
            .find(|name| !quoted && text[at..].starts_with(name));
        match name {
            Some(name) => {
                out.push(b'"');
                out.extend_from_slice(name);
                out.push(b'"');
                at += name.len();
                any = true;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    any.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<(String, String)>, Invalid> {
        let mut found = Vec::new();
        members(text.as_bytes(), |name, value| {
            let value = String::from_utf8_lossy(value).into_owned();
            found.push((name.to_owned(), value));
        })?;
        Ok(found)
    }

    #[test]
    fn members_come_as_they_are_written() {
        let found = all(r#" {"a" : 1.50, "b\n": {"a":[{}]} ,"c":"x","d":[] } "#).unwrap();
        let expected = [
            ("a", "1.50"),
            ("b\n", r#"{"a":[{}]}"#),
            ("c", "\"x\""),
            ("d", "[]"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.into(), b.into())));
        for (text, at) in [("[1]", 0), ("", 0), ("{\"a\":1", 6), ("{} x", 3), ("7", 0)] {
            assert_eq!(all(text), Err(Invalid { at }), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_no_trouble() {
        let depth = 1 << 20;
        let text = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(all(&text).unwrap()[0].1.len(), 2 * depth);
        assert_eq!(elements(&text.as_bytes()[5..]).len(), 1);
    }

    #[test]
    fn what_goes_out_is_ascii_and_neither_deep_nor_long() {
        let mut flattened = Flattened::default();
        let mut out = |text: &str| {
            let out = portable(text.as_bytes(), &mut flattened);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            out(" { \"ä\" : [ 1.50 , \"\u{2028}😀\" ] } "),
            "{\"\\u00e4\":[1.50,\"\\u2028\\ud83d\\ude00\"]}"
        );
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(out(&deep(100)), deep(100));
        let expected = format!("{}\"[1]\",2{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(out(&deep(101).replace("[1]", "[1],2")), expected);
        assert_eq!(out(&"7".repeat(5000)).len(), 5002);
        assert_eq!(flattened.values, 2);
        assert_eq!(portable(b"\"\xff\"", &mut flattened), b"\"\\ufffd\"");
    }

    #[test]
    fn compact_leaves_strings_alone() {
        assert_eq!(compact(b"{\n \"a b\" : [ 1 ,\r\n2 ] }"), b"{\"a b\":[1,2]}");
    }

    #[test]
    fn elements_are_found() {
        let found = elements(br#"[1, "a", {"b":[2]}, []]"#);
        assert_eq!(found, [&b"1"[..], b"\"a\"", br#"{"b":[2]}"#, b"[]"]);
        assert!(elements(b"{}").is_empty());
    }

    #[test]
    fn pythons_numbers_become_strings_outside_of_strings_only() {
        let text = br#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \" NaN"}"#;
        let expected = br#"{"a":"NaN","b":["-Infinity","Infinity"],"c":"NaN \" NaN"}"#;
        assert_eq!(without_python_numbers(text).unwrap(), expected);
        assert_eq!(without_python_numbers(b"{\"a\":\"NaN\"}"), None);
        assert_eq!(without_python_numbers(b"\"\\"), None);
    }
}
