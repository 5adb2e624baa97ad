//! The scalars of a JSON text, each with where it stands.
//!
//! A string that is JSON itself is looked into once: tools often answer with a document as
//! text. A text that is cut off is read as far as it goes. Work and memory are linear in the
//! length of the text, whatever it is; what is nested too deeply counts as one piece.

use agent_trace_wire::json::{self, Scanner, Token, unescape};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Levels of nesting that are told apart.
const DEPTH: usize = 64;

/// Characters of a pointer that are kept.
const POINTER: usize = 300;

/// Where a value stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// JSON pointer (RFC 6901) from the arguments, the result or whatever part is spoken of.
    /// One that is very long is cut.
    pub pointer: String,
    /// JSON pointer in the document that is the string there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.pointer.is_empty() { "(all)" } else { "" };
        write!(f, "{whole}{}", self.pointer)?;
        match &self.inside {
            Some(inside) => write!(f, " » {inside}"),
            None => Ok(()),
        }
    }
}

/// A value that holds no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// What a string says.
    String(Cow<'a, [u8]>),
    /// The string says a JSON document, whose values follow.
    Document(Cow<'a, [u8]>),
    /// A number's text.
    Number(&'a [u8]),
    /// `true`, `false` or `null`.
    Literal(&'a [u8]),
    /// `{}` or `[]`, or the text of what is nested too deeply.
    Other(&'a [u8]),
}

impl Value<'_> {
    /// What it says, or its text.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        match self {
            Self::String(content) | Self::Document(content) => content,
            Self::Number(text) | Self::Literal(text) | Self::Other(text) => text,
        }
    }
}

/// Where the value that is being looked at stands.
#[derive(Debug)]
pub struct Spot<'a> {
    path: &'a Path<'a>,
    outer: Option<&'a Self>,
}

impl Spot<'_> {
    /// As it is shown.
    #[must_use]
    pub fn place(&self) -> Place {
        match self.outer {
            None => Place {
                pointer: self.path.pointer(),
                inside: None,
            },
            Some(outer) => Place {
                pointer: outer.path.pointer(),
                inside: Some(self.path.pointer()),
            },
        }
    }

    /// The name of the member that it is, or whose list it is in.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        self.key().map(|key| &*key.name)
    }

    /// A number for that name: equal names have equal ones, as with [`Self::id`].
    pub(crate) fn name_id(&self) -> Option<u64> {
        self.key().map(|key| key.id)
    }

    fn key(&self) -> Option<&Key<'_>> {
        let levels = self.path.levels.iter().rev();
        levels.map(|level| &level.at).find_map(|at| match at {
            At::Member(key) => Some(key),
            At::Item(_) => None,
        })
    }

    /// Whether it is, or is in, the outermost member with this name.
    #[must_use]
    pub fn is_under(&self, member: &str) -> bool {
        let spot = self.outer.unwrap_or(self);
        let first = spot.path.levels.first().map(|level| &level.at);
        matches!(first, Some(At::Member(key)) if *key.name == *member.as_bytes())
    }

    /// A number for this place: equal places have equal ones, different places nearly always
    /// different ones. Not the same in another process.
    #[must_use]
    pub fn id(&self) -> u64 {
        let own = self.path.levels.last().map_or(0, Level::id);
        match self.outer {
            None => own,
            Some(outer) => hash((outer.id(), own)),
        }
    }
}

/// Hands out the scalars of a JSON text in their order. A text in which there is none, since it
/// is no JSON, is one string.
pub fn each(text: &[u8], each: &mut dyn FnMut(&Spot<'_>, &Value<'_>)) {
    let mut begun = false;
    walk(text, &mut |path, value| {
        begun = true;
        let spot = Spot { path, outer: None };
        let Value::String(content) = &value else {
            return each(&spot, &value);
        };
        if !is_document(content) {
            return each(&spot, &value);
        }
        each(&spot, &Value::Document(content.clone()));
        walk(content, &mut |path, value| {
            let outer = Some(&spot);
            each(&Spot { path, outer }, &value);
        });
    });
    if !begun && !text.is_empty() {
        let path = Path::default();
        let spot = Spot {
            path: &path,
            outer: None,
        };
        each(&spot, &Value::String(text.into()));
    }
}

/// A number for what a JSON text says: the order of members, white space and escapes do not
/// matter, the digits of numbers do. Members of the outermost object with a name in `but` are
/// left out. Not the same in another process.
#[must_use]
pub fn digest(text: &[u8], but: &[&str]) -> u64 {
    let mut sum = 0_u64;
    each(text, &mut |spot, value| {
        let kind = match value {
            // Its values are what counts.
            Value::Document(_) => return,
            Value::String(_) => 0_u8,
            Value::Number(_) | Value::Literal(_) | Value::Other(_) => 1,
        };
        if !but.iter().any(|name| spot.is_under(name)) {
            sum = sum.wrapping_add(hash((spot.id(), kind, value.content())));
        }
    });
    sum
}

/// A hash that nobody can foresee.
pub(crate) fn hash(what: impl std::hash::Hash) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(what)
}

fn is_document(content: &[u8]) -> bool {
    let first = content.trim_ascii_start().first();
    matches!(first, Some(b'{' | b'[')) && json::is_valid(content)
}

fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.contains(&b'\\') {
        Cow::Owned(unescape(raw).bytes)
    } else {
        Cow::Borrowed(raw)
    }
}

/// The way from the outside to a value.
#[derive(Debug, Default)]
struct Path<'a> {
    levels: Vec<Level<'a>>,
}

#[derive(Debug)]
struct Level<'a> {
    at: At<'a>,
    /// The number of the container.
    outer: u64,
    /// The number of what is at `at`.
    id: u64,
    is_empty: bool,
    start: usize,
}

#[derive(Debug)]
enum At<'a> {
    Member(Key<'a>),
    Item(usize),
}

/// The name of a member. It is decoded and hashed once, not for each scalar below it: a name
/// may be as long as all the rest.
#[derive(Debug, Default)]
struct Key<'a> {
    name: Cow<'a, [u8]>,
    id: u64,
}

impl Level<'_> {
    fn id(&self) -> u64 {
        self.id
    }
}

impl<'a> Path<'a> {
    fn open(&mut self, object: bool, start: usize) {
        let outer = self.levels.last().map_or(0, Level::id);
        let at = match object {
            true => At::Member(Key::default()),
            false => At::Item(0),
        };
        let id = hash((outer, 0_usize));
        self.levels.push(Level {
            at,
            outer,
            id,
            is_empty: true,
            start,
        });
    }

    fn member(&mut self, name: Cow<'a, [u8]>) {
        if let Some(level) = self.levels.last_mut() {
            let id = hash(&*name);
            level.id = hash((level.outer, id));
            level.at = At::Member(Key { name, id });
        }
    }

    /// The value here is over.
    fn next(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.is_empty = false;
            if let At::Item(index) = &mut level.at {
                *index += 1;
                level.id = hash((level.outer, *index));
            }
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        let mut left = POINTER;
        for level in &self.levels {
            let segment = match &level.at {
                At::Member(key) => {
                    // Enough for what is kept of it.
                    let name = &key.name[..key.name.len().min(4 * POINTER + 4)];
                    let name = String::from_utf8_lossy(name);
                    Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
                }
                At::Item(index) => Cow::Owned::<str>(index.to_string()),
            };
            pointer.push('/');
            for c in segment.chars() {
                if left == 0 {
                    pointer.push('…');
                    return pointer;
                }
                left -= 1;
                pointer.push(c);
            }
        }
        pointer
    }
}

fn walk<'a>(text: &'a [u8], each: &mut dyn FnMut(&Path<'_>, Value<'a>)) {
    let mut path = Path::default();
    let mut deep: Option<(usize, usize)> = None;
    let mut scanner = Scanner::new(text);
    while let Some(Ok(item)) = scanner.next() {
        let raw = &text[item.start..item.end];
        if let Some((depth, start)) = deep {
            if scanner.depth() < depth {
                deep = None;
                each(&path, Value::Other(&text[start..item.end]));
                path.next();
            }
            continue;
        }
        match item.token {
            Token::Key => {
                path.member(decoded(&raw[1..raw.len() - 1]));
                continue;
            }
            Token::ObjectOpen | Token::ArrayOpen => {
                if path.levels.len() == DEPTH {
                    deep = Some((scanner.depth(), item.start));
                } else {
                    path.open(item.token == Token::ObjectOpen, item.start);
                }
                continue;
            }
            Token::ObjectClose | Token::ArrayClose => {
                if let Some(level) = path.levels.pop()
                    && level.is_empty
                {
                    each(&path, Value::Other(&text[level.start..item.end]));
                }
            }
            Token::String => each(&path, Value::String(decoded(&raw[1..raw.len() - 1]))),
            Token::Number => each(&path, Value::Number(raw)),
            Token::Literal => each(&path, Value::Literal(raw)),
        }
        path.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        each(text.as_bytes(), &mut |spot, value| {
            let content = String::from_utf8_lossy(value.content()).into_owned();
            found.push(format!("{} = {content}", spot.place()));
        });
        found
    }

    #[test]
    fn scalars_stand_at_pointers() {
        let text = r#"{"a":[1,{"b/c":"x\ny"},[]],"":null,"d":{},"~":-0.0}"#;
        let expected = [
            "/a/0 = 1",
            "/a/1/b~1c = x\ny",
            "/a/2 = []",
            "/ = null",
            "/d = {}",
            "/~0 = -0.0",
        ];
        assert_eq!(found(text), expected);
        assert_eq!(found("7"), ["(all) = 7"]);
        assert_eq!(found("not json"), ["(all) = not json"]);
    }

    #[test]
    fn a_document_in_a_string_is_looked_into_once() {
        let text = r#"{"text":"{\"n\":[7,\"[8]\"]}"}"#;
        let expected = [
            "/text = {\"n\":[7,\"[8]\"]}",
            "/text » /n/0 = 7",
            "/text » /n/1 = [8]",
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn what_is_cut_off_is_read_as_far_as_it_goes() {
        assert_eq!(found(r#"{"a":[1,2,"thr"#), ["/a/0 = 1", "/a/1 = 2"]);
    }

    #[test]
    fn depth_and_long_names_cost_nothing() {
        let open = "[".repeat(100_000);
        let text = format!("{open}1{}", "]".repeat(100_000));
        let deep = found(&text);
        assert_eq!(deep.len(), 1);
        // Nothing in it is whole, so it is text.
        assert_eq!(found(&open).len(), 1);
        let long = format!("{{\"{}\":{{\"x\":1}}}}", "k".repeat(1_000));
        assert_eq!(
            found(&long)[0].chars().count(),
            POINTER + "/… = 1".len() - 2
        );
    }

    #[test]
    fn a_long_name_with_escapes_is_read_once() {
        // Read for each of its scalars this would be 10^11 bytes.
        let name = "\\n".repeat(500_000);
        let many = "7,".repeat(100_000);
        let text = format!("{{\"{name}\":[{many}7]}}");
        let begun = std::time::Instant::now();
        let (mut count, mut ids) = (0, std::collections::HashSet::new());
        each(text.as_bytes(), &mut |spot, _| {
            count += usize::from(!spot.is_under("_meta") && spot.name().is_some());
            ids.insert(spot.name_id());
        });
        assert_eq!((count, ids.len()), (100_001, 1));
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    #[test]
    fn digests_are_of_what_is_said() {
        let same =
            |a: &str, b: &str| digest(a.as_bytes(), &["_meta"]) == digest(b.as_bytes(), &["_meta"]);
        assert!(same(
            r#"{"a":1,"b":[2,"x"]}"#,
            r#" {"b":[2,"\u0078"], "a" : 1}"#
        ));
        assert!(same(
            r#"{"a":1,"_meta":{"t":1}}"#,
            r#"{"_meta":{"t":2},"a":1}"#
        ));
        for (a, b) in [
            ("[1,2]", "[2,1]"),
            ("1", "\"1\""),
            ("1", "1.0"),
            (r#"{"a":{}}"#, r#"{"a":[]}"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            ("9007199254740993", "9007199254740992"),
            ("[[1],2]", "[1,[2]]"),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }
}
