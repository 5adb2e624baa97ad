//! Secrets in JSON: each string is a text of its own, and members' names judge their values.
//!
//! Only values that are strings (or strings in an array) belong to a name: an object under
//! `password` is a schema, not a password. `{"name": "API_KEY", "value": "x"}`, arguments as
//! `["--token", "x"]` and browsers' lists of cookies are names with values too.

use std::ops::Range;

use agent_trace_wire::json::{Scanner, Token, unescape};

use super::anchor::{Finder, What};
use super::header;
use super::mark::{Hit, Kind, Rank, is_marked, print};
use super::name::{Says, Strength, is_opaque, name_says_secret};
use super::pair::is_weak_secret;
use super::text::Text;
use super::value::{is_path, is_reference};
use super::view::Scan;

/// Deeper arrays and objects are looked at without what they are part of.
const MAX_DEPTH: usize = 512;

/// What is known of an open object or array.
#[derive(Clone, Default)]
struct Frame {
    object: bool,
    /// The name of the array says that its strings are secret.
    says: Option<Says>,
    /// The array, or the array around the object, is one of cookies.
    cookies: bool,
    /// The object has a member `name` that says secret.
    named: Option<Says>,
    /// The object has a member `value`.
    value: Option<Range<usize>>,
}

/// The walk through one JSON text.
struct Walk<'a, 's, 'r> {
    text: &'a [u8],
    scan: &'s mut Scan<'r>,
    level: usize,
    hits: &'s mut Vec<Hit>,
    finder: Finder<'a>,
    /// Offset of the first backslash that was not passed yet.
    backslash: usize,
    /// What the user's rules say of the text as a whole.
    user: std::iter::Peekable<std::vec::IntoIter<(Range<usize>, Kind)>>,
}

/// Looks for secrets in `text` if it is one JSON text, and says whether it is. Of what is
/// none, nothing is kept.
pub(super) fn json<'a, 'r: 'a>(
    scan: &mut Scan<'r>,
    text: &'a [u8],
    level: usize,
    hits: &mut Vec<Hit>,
) -> bool {
    let before = hits.len();
    let user = scan.user_hits(text, level);
    let finder = scan.redactor.filter.find(text);
    let mut walk = Walk {
        text,
        scan,
        level,
        hits,
        finder,
        backslash: 0,
        user: user.into_iter().peekable(),
    };
    let valid = walk.run();
    if !valid {
        hits.truncate(before);
    }
    valid
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> bool {
        let mut here = Frame::default();
        let mut stack: Vec<Frame> = Vec::new();
        let mut deep = 0_usize;
        let mut key = 0..0;
        let mut key_says = None;
        let mut flag: Option<Says> = None;
        for item in Scanner::new(self.text) {
            let Ok(item) = item else {
                return false;
            };
            match item.token {
                Token::Key => {
                    key = item.start + 1..item.end - 1;
                    key_says = self.key(key.clone());
                }
                Token::ObjectOpen | Token::ArrayOpen => {
                    let object = item.token == Token::ObjectOpen;
                    let says = key_says.take().filter(|_| !object);
                    let cookies = says.is_some_and(|says| says.kind == "cookie")
                        || object && here.cookies && !here.object;
                    let next = Frame {
                        object,
                        says,
                        cookies,
                        ..Frame::default()
                    };
                    if stack.len() < MAX_DEPTH {
                        stack.push(std::mem::replace(&mut here, next));
                    } else {
                        deep += 1;
                        here = next;
                    }
                    flag = None;
                }
                Token::ObjectClose | Token::ArrayClose => {
                    if let (Some(says), Some(value)) = (here.named, here.value.take()) {
                        self.field(says, value, b"");
                    }
                    here = if deep > 0 {
                        deep -= 1;
                        Frame {
                            object: false,
                            ..Frame::default()
                        }
                    } else {
                        stack.pop().unwrap_or_default()
                    };
                    key_says = None;
                    flag = None;
                }
                Token::String => {
                    let value = item.start + 1..item.end - 1;
                    let name = if key.is_empty() {
                        &[][..]
                    } else {
                        &self.text[key.clone()]
                    };
                    let closer = self.string(value.clone(), name);
                    if here.object {
                        if let Some(says) = key_says.take() {
                            self.field(says, value.clone(), name);
                        } else if is_value_name(name) {
                            if here.cookies {
                                self.field(
                                    Says {
                                        strength: Strength::Strong,
                                        kind: "cookie",
                                    },
                                    value.clone(),
                                    b"",
                                );
                            }
                            here.value = Some(value.clone());
                        }
                        if closer && is_name_name(name) {
                            here.named = name_says_secret(&self.decoded(value));
                        }
                    } else {
                        let text = &self.text[value.clone()];
                        if let Some(says) = here.says {
                            self.field(says, value.clone(), b"");
                        } else if let Some(says) = flag.take()
                            && !text.starts_with(b"-")
                        {
                            self.field(says, value.clone(), b"");
                        }
                        let is_flag = closer && text.starts_with(b"-") && !text.contains(&b'=');
                        flag = if is_flag {
                            name_says_secret(text)
                        } else {
                            None
                        };
                    }
                    key = 0..0;
                }
                Token::Number | Token::Literal => {
                    self.number(item.start..item.end, key_says.take());
                    key = 0..0;
                    flag = None;
                }
            }
        }
        true
    }

    /// Looks at a member's name, which may itself hold a secret.
    fn key(&mut self, key: Range<usize>) -> Option<Says> {
        if !self.string(key.clone(), b"") {
            return None;
        }
        if self.text[key.clone()].contains(&b'\\') {
            return name_says_secret(&unescape(&self.text[key]).bytes);
        }
        name_says_secret(&self.text[key])
    }

    /// Looks at a string's content; `false` if nothing in it can say or be secret.
    fn string(&mut self, content: Range<usize>, name: &[u8]) -> bool {
        self.whole_text_hits(&content, false);
        let escaped = self.is_escaped(&content);
        let candidate = self
            .finder
            .peek()
            .is_some_and(|found| found.at < content.end);
        if !(candidate
            || self.scan.always
            || escaped && self.scan.is_worth_unescaping(&self.text[content.clone()]))
        {
            return false;
        }
        let opaque = is_opaque(name);
        let first = self.hits.len();
        if escaped {
            self.finder.skip_to(content.end);
            let view = unescape(&self.text[content.clone()]);
            self.scan
                .inner(&view.bytes, self.level + 1, opaque, self.hits);
            for hit in &mut self.hits[first..] {
                let raw = view.raw_range(hit.range.clone());
                hit.range = content.start + raw.start..content.start + raw.end;
            }
            return true;
        }
        let text = &self.text[content.clone()];
        let mut view = Text::new(self.scan.redactor, text, self.hits, &mut self.scan.notes);
        self.finder.skip_to(content.start);
        while let Some(mut candidate) = self.finder.next_before(content.end) {
            // An anchor that reaches over the closing quote is none.
            if candidate.at + candidate.len <= content.end {
                candidate.at -= content.start;
                view.candidate(candidate, opaque);
            }
        }
        view.whole(self.scan.aws);
        self.scan.beside(text, self.level, opaque, self.hits, first);
        for hit in &mut self.hits[first..] {
            hit.range = content.start + hit.range.start..content.start + hit.range.end;
        }
        true
    }

    fn is_escaped(&mut self, content: &Range<usize>) -> bool {
        if self.backslash < content.start {
            let rest = &self.text[content.start..];
            self.backslash = content.start + memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        }
        self.backslash < content.end
    }

    fn decoded(&self, content: Range<usize>) -> Vec<u8> {
        unescape(&self.text[content]).bytes
    }

    /// Hides the value of a name that says secret, if it is one.
    fn field(&mut self, says: Says, content: Range<usize>, name: &[u8]) {
        let view = unescape(&self.text[content.clone()]);
        let value = view.bytes.as_slice();
        let secret = header::secret_part(value, says.kind);
        let part = &value[secret.clone()];
        let no_secret = part.trim_ascii().is_empty() || is_marked(part) || is_reference(part);
        let file = is_path(part) && (says.kind != "password" || name.eq_ignore_ascii_case(b"pwd"));
        let accepted = match says.strength {
            _ if no_secret || file => false,
            Strength::Strong => true,
            Strength::Weak => is_weak_secret(part, says),
        };
        if accepted {
            let print = print(&self.scan.redactor.key, part);
            let raw = view.raw_range(secret);
            let range = content.start + raw.start..content.start + raw.end;
            self.hits.push(Hit {
                range,
                kind: Kind::known(says.kind),
                rank: Rank::Name,
                print,
                bare: false,
            });
        }
    }

    /// A number is secret if it is a literal, or a password of digits.
    fn number(&mut self, range: Range<usize>, says: Option<Says>) {
        self.whole_text_hits(&range, true);
        let text = &self.text[range.clone()];
        self.finder.skip_to(range.start);
        while let Some(found) = self.finder.next_before(range.end) {
            if let What::Literal(number) = found.what
                && let Some(literal) = self
                    .scan
                    .redactor
                    .literals
                    .starting(number, self.text, found.at)
                && literal.range == range
            {
                let print = literal.print.unwrap_or_default();
                self.hits.push(Hit {
                    range: range.clone(),
                    kind: literal.kind,
                    rank: Rank::Literal,
                    print,
                    bare: true,
                });
            }
        }
        let password =
            says.is_some_and(|says| says.strength == Strength::Strong && says.kind == "password");
        if password && text.len() >= 4 && text.iter().all(u8::is_ascii_digit) {
            let print = print(&self.scan.redactor.key, text);
            self.hits.push(Hit {
                range,
                kind: Kind::known("password"),
                rank: Rank::Name,
                print,
                bare: true,
            });
        }
    }

    /// Takes over what the user's rules found in the text as a whole, as far as it lies within
    /// `range`: a string's content, or a number.
    fn whole_text_hits(&mut self, range: &Range<usize>, bare: bool) {
        while let Some((found, kind)) = self.user.next_if(|(found, _)| found.start < range.end) {
            let part = found.start.max(range.start)..found.end.min(range.end);
            if !part.is_empty() {
                let part = if bare { range.clone() } else { part };
                let print = print(
                    &self.scan.redactor.key,
                    &unescape(&self.text[part.clone()]).bytes,
                );
                self.hits.push(Hit {
                    range: part,
                    kind,
                    rank: Rank::User,
                    print,
                    bare,
                });
            }
        }
    }
}

/// `name` in `{"name": "API_KEY", "value": "x"}`.
fn is_name_name(name: &[u8]) -> bool {
    [
        &b"name"[..],
        b"key",
        b"header",
        b"variable",
        b"var",
        b"env",
        b"field",
        b"parameter",
    ]
    .iter()
    .any(|known| name.eq_ignore_ascii_case(known))
}

/// `value` in `{"name": "API_KEY", "value": "x"}`.
fn is_value_name(name: &[u8]) -> bool {
    [&b"value"[..], b"val", b"content", b"secretvalue"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}
