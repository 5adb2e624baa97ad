//! The values of a JSON text with the bytes that they stand in, which [`scalars`](crate::scalars)
//! does not tell.

use agent_trace_wire::json::{Scanner, Token, unescape};
use std::borrow::Cow;
use std::ops::Range;

/// Levels of nesting that are told apart.
const DEPTH: usize = 64;

/// Bytes of a pointer that are kept.
const POINTER: usize = 300;

/// A value that holds no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    String,
    Number,
    Literal,
    /// `{}`
    Object,
    /// `[]`
    Array,
}

/// The way to a value: keys with their quotes, and positions.
#[derive(Debug)]
pub(super) struct Way<'a> {
    text: &'a [u8],
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    key: Option<Range<usize>>,
    index: usize,
    start: usize,
    is_empty: bool,
    is_object: bool,
}

impl<'a> Way<'a> {
    /// How deep the value stands; 0 is the text itself.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The name of the member at this level, from the outside; none of a list's item.
    pub(super) fn key(&self, level: usize) -> Option<Cow<'a, [u8]>> {
        let key = self.levels.get(level)?.key.clone()?;
        Some(decoded(&self.text[key]))
    }

    /// The name of the member that the value is.
    pub(super) fn name(&self) -> Option<Cow<'a, [u8]>> {
        self.key(self.depth().checked_sub(1)?)
    }

    /// The JSON pointer (RFC 6901) to it; one that is very long ends with an ellipsis.
    pub(super) fn pointer(&self) -> String {
        self.pointer_of(self.depth())
    }

    /// The pointer to what is around it at this depth.
    fn pointer_of(&self, depth: usize) -> String {
        let mut pointer = String::new();
        for level in &self.levels[..depth] {
            pointer.push('/');
            match &level.key {
                Some(key) => {
                    let raw = &self.text[key.start..key.end.min(key.start + 6 * POINTER)];
                    let key = decoded(raw);
                    let key = String::from_utf8_lossy(&key);
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
                None => pointer.push_str(&level.index.to_string()),
            }
            if pointer.len() > POINTER {
                let mut end = POINTER;
                while !pointer.is_char_boundary(end) {
                    end -= 1;
                }
                pointer.truncate(end);
                pointer.push('…');
                break;
            }
        }
        pointer
    }

    fn next(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.is_empty = false;
            if !level.is_object {
                level.index += 1;
            }
        }
    }
}

fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    match raw.contains(&b'\\') {
        true => Cow::Owned(unescape(raw).bytes),
        false => Cow::Borrowed(raw),
    }
}

/// Hands out the values of a text that hold no other, until told to stop; strings with their
/// quotes. What is nested too deeply is passed over. Returns whether all was looked at.
pub(super) fn leaves<'a>(
    text: &'a [u8],
    each: &mut dyn FnMut(&Way<'a>, Leaf, Range<usize>) -> bool,
) -> bool {
    let mut way = Way {
        text,
        levels: Vec::new(),
    };
    let mut scanner = Scanner::new(text);
    let mut deep = None;
    while let Some(Ok(item)) = scanner.next() {
        if let Some(depth) = deep {
            if scanner.depth() < depth {
                deep = None;
                way.next();
            }
            continue;
        }
        let leaf = match item.token {
            Token::Key => {
                if let Some(level) = way.levels.last_mut() {
                    level.key = Some(item.start + 1..item.end - 1);
                }
                continue;
            }
            Token::ObjectOpen | Token::ArrayOpen => {
                if way.levels.len() == DEPTH {
                    deep = Some(scanner.depth());
                    continue;
                }
                way.levels.push(Level {
                    key: None,
                    index: 0,
                    start: item.start,
                    is_empty: true,
                    is_object: item.token == Token::ObjectOpen,
                });
                continue;
            }
            Token::ObjectClose | Token::ArrayClose => {
                let empty = way.levels.pop().filter(|level| level.is_empty);
                let Some(level) = empty else {
                    way.next();
                    continue;
                };
                let leaf = match level.is_object {
                    true => Leaf::Object,
                    false => Leaf::Array,
                };
                if !each(&way, leaf, level.start..item.end) {
                    return false;
                }
                way.next();
                continue;
            }
            Token::String => Leaf::String,
            Token::Number => Leaf::Number,
            Token::Literal => Leaf::Literal,
        };
        if !each(&way, leaf, item.start..item.end) {
            return false;
        }
        way.next();
    }
    true
}

/// The pointer to the innermost value in which this byte stands; the empty one where the text is
/// no JSON.
pub(super) fn pointer_at(text: &[u8], offset: usize) -> String {
    let mut found = String::new();
    leaves(text, &mut |way, _, range| {
        if range.end <= offset {
            return true;
        }
        found = match range.start <= offset {
            true => way.pointer(),
            // In front of the value, but inside of something that is around it.
            false => {
                let around = way.levels.iter().filter(|level| level.start <= offset);
                way.pointer_of(around.count().saturating_sub(1))
            }
        };
        false
    });
    found
}

/// Where the value that a pointer names stands, a string with its quotes. Values that hold
/// others are found by their first.
pub(super) fn locate(text: &[u8], pointer: &str) -> Option<Range<usize>> {
    let depth = pointer.matches('/').count();
    let mut found = None;
    leaves(text, &mut |way, _, range| {
        if way.depth() >= depth {
            let here = way.pointer();
            let inside = here.strip_prefix(pointer);
            if inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
                found = Some(range);
            }
        }
        found.is_none()
    });
    found
}

/// The texts of the items of a list.
pub(super) fn items(list: &[u8]) -> Vec<&[u8]> {
    let mut scanner = Scanner::new(list);
    let mut items = Vec::new();
    let mut start = None;
    if !matches!(scanner.next(), Some(Ok(item)) if item.token == Token::ArrayOpen) {
        return items;
    }
    while let Some(Ok(item)) = scanner.next() {
        let begun = *start.get_or_insert(item.start);
        match (scanner.depth(), item.token) {
            (1, _) => {
                items.push(&list[begun..item.end]);
                start = None;
            }
            (0, _) => break,
            _ => {}
        }
    }
    items
}

/// What a string says, `raw` being its JSON text with the quotes.
pub(super) fn said(raw: &[u8]) -> Cow<'_, [u8]> {
    decoded(inside(raw))
}

/// A string's text without its quotes.
pub(super) fn inside(raw: &[u8]) -> &[u8] {
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_their_bytes() {
        let text = br#"{"a":[1,{"b/c":"x\ny"},[]],"d":{}}"#;
        let mut found = Vec::new();
        leaves(text, &mut |way, leaf, range| {
            let raw = String::from_utf8_lossy(&text[range]).into_owned();
            found.push((way.pointer(), leaf, raw));
            true
        });
        let expected = [
            ("/a/0", Leaf::Number, "1"),
            ("/a/1/b~1c", Leaf::String, "\"x\\ny\""),
            ("/a/2", Leaf::Array, "[]"),
            ("/d", Leaf::Object, "{}"),
        ];
        let expected = expected.map(|(p, l, r)| (p.to_owned(), l, r.to_owned()));
        assert_eq!(found, expected);
        assert_eq!(pointer_at(text, 18), "/a/1/b~1c");
        assert_eq!(pointer_at(text, 5), "/a");
        assert_eq!(pointer_at(text, 8), "/a/1");
        assert_eq!(pointer_at(text, 0), "");
        assert_eq!(locate(text, "/a/1/b~1c"), Some(15..21));
        assert_eq!(locate(text, "/a/1"), Some(15..21));
        assert_eq!(locate(text, "/x"), None);
    }

    #[test]
    fn items_are_whole() {
        let text = br#" [ {"a":[1]}, [2,[3]] ,"x",[],7] "#;
        let items: Vec<&[u8]> = items(text);
        let expected: [&[u8]; 5] = [b"{\"a\":[1]}", b"[2,[3]]", b"\"x\"", b"[]", b"7"];
        assert_eq!(items, expected);
        assert!(super::items(b"{}").is_empty());
        assert!(super::items(b"[[[").is_empty());
    }

    #[test]
    fn depth_costs_nothing() {
        let text = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
        let mut count = 0;
        assert!(leaves(text.as_bytes(), &mut |_, _, _| {
            count += 1;
            true
        }));
        assert_eq!(count, 0);
        assert!(items(text.as_bytes()).len() == 1);
    }
}
