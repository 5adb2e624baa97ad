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
use super::view::{Scan, shift};
use super::words::{is_path, is_reference, is_vocabulary};

/// Deeper arrays and objects are looked at without what they are part of.
const MAX_DEPTH: usize = 512;

/// What is known of an open object or array.
#[derive(Clone, Default)]
struct Frame {
    object: bool,
    /// The array belongs to a name that says secret.
    says: Option<Says>,
    /// The array, or the array around the object, is one of cookies.
    cookies: bool,
    /// The array is in an array, as one of a list of pairs.
    listed: bool,
    /// Values in the array so far.
    count: usize,
    /// What the object's member `name` or the array's first string says.
    named: Option<Says>,
    /// The object's member `value`, or the array's second string.
    value: Option<Range<usize>>,
    /// Names in the object are properties of a JSON schema.
    schema: bool,
    /// What the array's last string says, as a flag of a command.
    flag: Option<Says>,
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
    here: Frame,
    around: Vec<Frame>,
    /// How many levels of nesting `around` has no room for.
    deep: usize,
    /// The name of the member whose value comes next.
    key: Range<usize>,
    /// What it says.
    says: Option<Says>,
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
    let user = scan.user_hits(text).into_iter().peekable();
    let finder = scan.redactor.filter.find(text);
    let mut walk = Walk {
        text,
        scan,
        level,
        hits,
        finder,
        backslash: 0,
        user,
        // No array: what is at the root is in nothing.
        here: Frame {
            object: true,
            ..Frame::default()
        },
        around: Vec::new(),
        deep: 0,
        key: 0..0,
        says: None,
    };
    let valid = walk.run();
    if !valid {
        hits.truncate(before);
    }
    valid
}

impl Walk<'_, '_, '_> {
    fn run(&mut self) -> bool {
        for item in Scanner::new(self.text) {
            let Ok(item) = item else {
                return false;
            };
            match item.token {
                Token::Key => {
                    self.key = item.start + 1..item.end - 1;
                    self.says = self.name(self.key.clone()).filter(|_| !self.here.schema);
                }
                Token::ObjectOpen => self.open(true),
                Token::ArrayOpen => self.open(false),
                Token::ObjectClose | Token::ArrayClose => self.close(),
                Token::String if self.here.object => self.member(item.start + 1..item.end - 1),
                Token::String => self.element(item.start + 1..item.end - 1),
                Token::Number | Token::Literal => {
                    self.number(item.start..item.end);
                    self.here.count += 1;
                    self.here.flag = None;
                }
            }
        }
        true
    }

    fn open(&mut self, object: bool) {
        let says = self.says.take().filter(|_| !object);
        let in_array = !self.here.object;
        let cookies = says.is_some_and(|says| says.kind == "cookie")
            || object && in_array && self.here.cookies;
        self.here.count += 1;
        self.here.flag = None;
        let schema = object
            && self.here.object
            && matches!(
                &self.text[self.key.clone()],
                b"dependentRequired" | b"dependencies"
            );
        let next = Frame {
            object,
            schema,
            says,
            cookies,
            listed: !object && in_array,
            ..Frame::default()
        };
        let outer = std::mem::replace(&mut self.here, next);
        if self.around.len() < MAX_DEPTH {
            self.around.push(outer);
        } else {
            self.deep += 1;
        }
    }

    fn close(&mut self) {
        let pair = self.here.object || self.here.listed && self.here.count == 2;
        if let (true, Some(says), Some(value)) = (pair, self.here.named, self.here.value.take()) {
            self.field(says, value, b"");
        }
        self.here = match self.deep.checked_sub(1) {
            Some(less) => {
                self.deep = less;
                // An array's strings pass for members without a name.
                Frame {
                    object: true,
                    ..Frame::default()
                }
            }
            None => self.around.pop().unwrap_or_default(),
        };
        self.says = None;
    }

    /// A string that is a member's value.
    fn member(&mut self, value: Range<usize>) {
        let text = self.text;
        let name = &text[self.key.clone()];
        let worth = self.string(value.clone(), is_opaque(name));
        if let Some(says) = self.says.take() {
            self.field(says, value.clone(), name);
        } else if is_value_name(name) {
            if self.here.cookies {
                self.field(
                    Says {
                        strength: Strength::Strong,
                        kind: "cookie",
                    },
                    value.clone(),
                    b"",
                );
            }
            self.here.value = Some(value.clone());
        }
        if worth && is_name_name(name) {
            self.here.named = name_says_secret(&unescape(&text[value]).bytes);
        }
    }

    /// A string in an array.
    fn element(&mut self, value: Range<usize>) {
        let text = &self.text[value.clone()];
        let worth = self.string(value.clone(), false);
        let after_flag = self.here.flag.take().filter(|_| !text.starts_with(b"-"));
        if let Some(says) = self.here.says.or(after_flag) {
            self.field(says, value.clone(), b"");
        }
        if worth && text.starts_with(b"-") && !text.contains(&b'=') {
            self.here.flag = name_says_secret(text);
        }
        match self.here.count {
            0 if worth => self.here.named = name_says_secret(text),
            1 => self.here.value = Some(value),
            _ => {}
        }
        self.here.count += 1;
    }

    /// Looks at a member's name, which may itself hold a secret.
    fn name(&mut self, key: Range<usize>) -> Option<Says> {
        if !self.string(key.clone(), false) {
            return None;
        }
        if self.text[key.clone()].contains(&b'\\') {
            return name_says_secret(&unescape(&self.text[key]).bytes);
        }
        name_says_secret(&self.text[key])
    }

    /// Looks at a string's content; `false` if nothing in it can say or be secret.
    fn string(&mut self, content: Range<usize>, opaque: bool) -> bool {
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
        let first = self.hits.len();
        if escaped {
            self.finder.skip_to(content.end);
            let raw = &self.text[content.clone()];
            self.scan.unescaped(raw, self.level + 1, opaque, self.hits);
            shift(&mut self.hits[first..], content.start);
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
        view.whole(self.scan.aws.filter(|_| !opaque));
        self.scan.beside(text, self.level, opaque, self.hits);
        shift(&mut self.hits[first..], content.start);
        true
    }

    fn is_escaped(&mut self, content: &Range<usize>) -> bool {
        if self.backslash < content.start {
            let rest = &self.text[content.start..];
            self.backslash = content.start + memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        }
        self.backslash < content.end
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
            // What `fetch` may do with credentials.
            Strength::Strong if says.kind == "credential" && is_vocabulary(part) => false,
            Strength::Strong => true,
            Strength::Weak => is_weak_secret(part, says),
        };
        if accepted {
            let print = print(&self.scan.redactor.key, part);
            let raw = view.raw_range(secret);
            let range = content.start + raw.start..content.start + raw.end;
            let hit = Hit {
                range,
                kind: Kind::known(says.kind),
                rank: Rank::Name,
                print,
                bare: None,
            };
            self.scan.notes.keep(self.hits, hit);
        }
    }

    /// A number is secret if it is a literal, or a password of digits.
    fn number(&mut self, range: Range<usize>) {
        let says = self.says.take();
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
                let hit = Hit {
                    range: range.clone(),
                    kind: literal.kind,
                    rank: Rank::Literal,
                    print,
                    bare: Some(self.level),
                };
                self.scan.notes.keep(self.hits, hit);
            }
        }
        let password =
            says.is_some_and(|says| says.strength == Strength::Strong && says.kind == "password");
        if password && text.len() >= 4 && text.iter().all(u8::is_ascii_digit) {
            let print = print(&self.scan.redactor.key, text);
            let hit = Hit {
                range,
                kind: Kind::known("password"),
                rank: Rank::Name,
                print,
                bare: Some(self.level),
            };
            self.scan.notes.keep(self.hits, hit);
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
                let hit = Hit {
                    range: part,
                    kind,
                    rank: Rank::User,
                    print,
                    bare: bare.then_some(self.level),
                };
                self.scan.notes.keep(self.hits, hit);
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
