//! JSON with comments and trailing commas.
//!
//! More forgiving than `wire::json`, which reads what programs send: these files are written by
//! people. And than libraries for such files: one that refuses half of a surrogate pair cannot
//! read a state file that has a text cut off in the middle of an emoji.

use super::{BOM, Budget, Fault, Member, Node, Value};
use std::ops::Range;

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let at = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at,
        budget: Budget::default(),
    };
    reader.skip()?;
    if reader.at == text.len() {
        return Ok(Node {
            span: text.len()..text.len(),
            value: Value::Null,
        });
    }
    let root = reader.value(0)?;
    reader.skip()?;
    if reader.at < text.len() {
        return Err(reader.fault("something stands behind the end"));
    }
    Ok(root)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    budget: Budget,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn fault(&self, what: &str) -> Fault {
        let what = if self.at < self.bytes.len() {
            what
        } else {
            "the file ends too early"
        };
        Fault::new(self.at, what)
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            let rest = &self.bytes[self.at..];
            match rest {
                [b' ' | b'\t' | b'\r' | b'\n', ..] => self.at += 1,
                [b'/', b'/', ..] => {
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.at += end.unwrap_or(rest.len());
                }
                [b'/', b'*', ..] => {
                    let Some(length) = self.text[self.at + 2..].find("*/") else {
                        return Err(self.fault("this comment has no end"));
                    };
                    self.at += length + 4;
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        self.budget.take(self.at, depth)?;
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            _ => self.word()?,
        };
        Ok(Node {
            span: start..self.at,
            value,
        })
    }

    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.fault("a key in double quotes, or `}`, is missing here")),
            }
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.fault("`:` is missing here"));
            }
            self.at += 1;
            self.skip()?;
            let value = self.value(depth + 1)?;
            members.push(Member {
                key,
                key_span,
                value,
            });
            if !self.comma(b'}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::Map(members))
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.value(depth + 1)?);
            if !self.comma(b']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::List(items))
    }

    /// Skips a comma; false where the end stands instead.
    fn comma(&mut self, end: u8) -> Result<bool, Fault> {
        self.skip()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => Ok(false),
            _ if end == b'}' => Err(self.fault("`,` or `}` is missing here")),
            _ => Err(self.fault("`,` or `]` is missing here")),
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end) {
                None => return Err(self.fault("this text has no end")),
                Some(b'"') => break,
                // Whatever is escaped: only a quote and a backslash matter here.
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let text = self.unescaped(start..end)?;
        self.at = end + 1;
        Ok(text)
    }

    fn unescaped(&self, range: Range<usize>) -> Result<String, Fault> {
        let raw = &self.text[range.clone()];
        let mut text = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(escape) = rest.find('\\') {
            text.push_str(&rest[..escape]);
            let at = range.end - rest.len() + escape;
            let wrong = || Fault::new(at, "this escape is unknown");
            let mut after = rest[escape + 1..].chars();
            match after.next().ok_or_else(wrong)? {
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                't' => text.push('\t'),
                'u' => {
                    let unit = hex(after.as_str()).ok_or_else(wrong)?;
                    let mut next = &after.as_str()[4..];
                    let low = next.strip_prefix("\\u").and_then(hex);
                    let pair = low.map(|low| [unit, low]);
                    let both = pair.and_then(|pair| String::from_utf16(&pair).ok());
                    if let (0xd800..0xdc00, Some(both)) = (unit, both) {
                        text.push_str(&both);
                        next = &next[6..];
                    } else {
                        text.push(char::from_u32(unit.into()).unwrap_or('\u{fffd}'));
                    }
                    rest = next;
                    continue;
                }
                same @ ('"' | '\\' | '/') => text.push(same),
                _ => return Err(wrong()),
            }
            rest = after.as_str();
        }
        text.push_str(rest);
        Ok(text)
    }

    fn word(&mut self) -> Result<Value, Fault> {
        let rest = &self.bytes[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
        let length = rest.iter().position(|byte| !is_part(byte));
        let word = &rest[..length.unwrap_or(rest.len())];
        let value = match word {
            b"true" => Value::Bool(true),
            b"false" => Value::Bool(false),
            b"null" => Value::Null,
            [b'-' | b'0'..=b'9', ..] => Value::Other,
            _ => return Err(self.fault("a value is missing here")),
        };
        self.at += word.len();
        Ok(value)
    }
}

/// A number of four hexadecimal digits at the beginning.
fn hex(text: &str) -> Option<u16> {
    let digits = text.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (usize, String) {
        let fault = read(text).unwrap_err();
        (fault.at, fault.what)
    }

    #[test]
    fn comments_commas_marks_and_line_ends_are_read_and_places_are_exact() {
        let text =
            "\u{feff}// one\r\n{\t\"a\" /* {\" */ : [1, true,], \"b\\u00e9\": \"x\\\"y\",\r\n}//";
        let root = read(text).unwrap();
        assert_eq!(&text[root.span.clone()], &text[11..text.len() - 2]);
        let list = root.get("a").unwrap();
        assert_eq!(&text[list.span.clone()], "[1, true,]");
        assert_eq!(list.items()[1].value, Value::Bool(true));
        let member = root.member("bé").unwrap();
        assert_eq!(&text[member.key_span.clone()], "\"b\\u00e9\"");
        assert_eq!(&text[member.value.span.clone()], "\"x\\\"y\"");
        assert_eq!(member.value.text(), Some("x\"y"));
    }

    #[test]
    fn of_two_equal_keys_the_last_counts() {
        let root = read(r#"{"a": 1, "a": "x"}"#).unwrap();
        assert_eq!(root.get("a").unwrap().text(), Some("x"));
        assert_eq!(root.members().len(), 2);
    }

    #[test]
    fn surrogates_are_read_in_pairs_and_halves_of_them_do_not_matter() {
        let root = read(r#"["\ud83d\ude00", "\ud83d", "\ud83d\u0041", "\ude00x"]"#).unwrap();
        let texts = root.texts().unwrap();
        assert_eq!(texts, ["😀", "\u{fffd}", "\u{fffd}A", "\u{fffd}x"]);
    }

    #[test]
    fn a_file_without_a_value_is_null() {
        for text in ["", "\u{feff}", " \n// nothing\n"] {
            assert_eq!(read(text).unwrap().value, Value::Null, "{text:?}");
        }
    }

    #[test]
    fn faults_name_their_place() {
        assert_eq!(fault("{\"a\" 1}").0, 5);
        assert_eq!(fault("{\"a\": 1 \"b\": 2}").0, 8);
        assert_eq!(fault("{'a': 1}").0, 1);
        assert_eq!(fault("{} x").0, 3);
        assert_eq!(fault("[\"a\\x\"]").0, 3);
        assert_eq!(fault("[\"a\\u12\u{e9}\"]").0, 3);
        assert_eq!(fault("[undefined]").0, 1);
        assert_eq!(fault("[,]").0, 1);
        for cut in ["{", "{\"a", "{\"a\":", "[1", "/*", "\"\\", "[\"\\u"] {
            assert!(read(cut).is_err(), "{cut}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(fault(&deep).1, "values lie too deep in each other");
        let many = format!("[{}]", "1,".repeat(1_000_001));
        assert_eq!(fault(&many).1, "the file has too many values");
    }
}
