//! Names with values in running text: `password=x`, `"apiKey": "x"`, `--token x`,
//! `API key: x`, `<secret>x</secret>`, `password x`.

use super::class::{Class, has_folded, skip_blanks};
use super::entropy::{is_digest, looks_random};
use super::header;
use super::mark::{Rank, is_marked, marker_len};
use super::name::{Says, Strength, is_qualified, name_says_secret};
use super::text::Text;
use super::value::{Binding, JUDGED, is_code, is_plausible, is_prose, plain_end, quoted_end, trim};

/// Names are looked at so far to both sides of their anchor.
const REACH: usize = 64;
/// Blanks between name, sign and value.
const BLANKS: usize = 24;

/// A word that names may hold stands at `at`.
pub(super) fn word(text: &mut Text<'_>, at: usize) {
    if at < text.done || at < text.named {
        return;
    }
    let bytes = text.bytes;
    let Some(name) = Name::around(bytes, at) else {
        text.named = Class::DOTTED.run(&bytes[..bytes.len().min(at + REACH)], at);
        return;
    };
    text.named = name.end;
    if let Some(sign) = name.sign(bytes)
        && let Some(says) = name.says(bytes)
    {
        value(text, &name, sign, says);
    }
}

/// A name in the text and how it is written.
struct Name {
    start: usize,
    end: usize,
    /// Offset after the quote, bracket or asterisks that close it.
    after: usize,
    quote: Option<u8>,
    /// `--name`
    flag: bool,
}

/// What binds a name to its value, and where the value starts.
#[derive(Clone, Copy)]
struct Sign {
    kind: SignKind,
    value: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SignKind {
    /// `=` without blanks.
    Attached,
    /// `=`, `:=`, `=>`, `==`
    Spaced,
    Colon,
    /// `<name>`
    Element,
    /// Another member holds the value: `"name": "API_KEY", "value": "x"`.
    Elsewhere,
    Space,
    /// `name is x`
    Is,
}

impl Name {
    fn around(text: &[u8], at: usize) -> Option<Self> {
        let mut start = Class::DOTTED.run_back(text, at, REACH);
        let mut end = Class::DOTTED.run(&text[..text.len().min(at + REACH)], at);
        if at - start >= REACH || end - at >= REACH {
            return None;
        }
        let flag = text[start] == b'-';
        while start < at && matches!(text[start], b'-' | b'.') {
            start += 1;
        }
        while end > at && matches!(text[end - 1], b'-' | b'.') {
            end -= 1;
        }
        let mut after = end;
        let slashes = text[after..]
            .iter()
            .take(8)
            .take_while(|&&byte| byte == b'\\')
            .count();
        let quote = text
            .get(after + slashes)
            .copied()
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        if quote.is_some() {
            after += slashes + 1;
        } else if has_folded(text, after, b"&quot;") {
            after += 6;
        }
        if text.get(after) == Some(&b']') {
            after += 1;
        }
        after += text[after..]
            .iter()
            .take(2)
            .take_while(|&&byte| byte == b'*')
            .count();
        Some(Self {
            start,
            end,
            after,
            quote,
            flag,
        })
    }

    fn sign(&self, text: &[u8]) -> Option<Sign> {
        let at = blanks(text, self.after)?;
        let next = text.get(at + 1).copied();
        let (kind, value) = match text.get(at)? {
            b'=' => match next {
                Some(b'=') => (
                    SignKind::Spaced,
                    at + 2 + usize::from(text.get(at + 2) == Some(&b'=')),
                ),
                Some(b'>') => (SignKind::Spaced, at + 2),
                Some(b'~') => return None,
                Some(b' ' | b'\t') => (SignKind::Spaced, at + 1),
                _ if at == self.after => (SignKind::Attached, at + 1),
                _ => (SignKind::Spaced, at + 1),
            },
            b':' => match next {
                Some(b':') => return None,
                Some(b'=') => (SignKind::Spaced, at + 2),
                _ => (SignKind::Colon, at + 1),
            },
            b'>' if at == self.end && self.start > 0 && text[self.start - 1] == b'<' => {
                (SignKind::Element, at + 1)
            }
            b'|' if text[..self.start].trim_ascii_end().ends_with(b"|") => {
                (SignKind::Colon, at + 1)
            }
            b',' | b'\n' | b'\r' => (SignKind::Elsewhere, value_member(text, at)?),
            // An attribute: `<add key="ApiKey" value="x"/>`.
            b'v' | b'V' if self.quote.is_some() => (SignKind::Elsewhere, value_member(text, at)?),
            _ if at > self.after && self.quote.is_none() => linked(text, at),
            _ => return None,
        };
        let mut value = blanks(text, value)?;
        if kind == SignKind::Colon || kind == SignKind::Space {
            // Bold in Markdown.
            value += text[value..]
                .iter()
                .take(2)
                .take_while(|&&byte| byte == b'*')
                .count();
            value = blanks(text, value)?;
        }
        Some(Sign { kind, value })
    }

    fn says(&self, text: &[u8]) -> Option<Says> {
        let name = &text[self.start..self.end];
        // `API key: x`, `next page token: x`: the word before belongs to the name.
        let before = self
            .start
            .checked_sub(1)
            .filter(|&at| text[at] == b' ' && self.quote.is_none());
        if let Some(blank) = before {
            let first = Class::LETTER.run_back(text, blank, 20);
            let both = [&text[first..blank], b"_", name].concat();
            if is_qualified(&both) {
                return name_says_secret(&both);
            }
        }
        name_says_secret(name)
    }

    /// Whether the name is written as environments write names.
    fn is_loud(&self, text: &[u8]) -> bool {
        let name = &text[self.start..self.end];
        !Class::LOWER.any(name) && Class::UPPER.any(name)
    }

    /// Whether only blanks, a dash or a quote stand before the name on its line.
    fn starts_line(&self, text: &[u8]) -> bool {
        let floor = self.start.saturating_sub(REACH);
        let before = &text[floor..self.start];
        let indent = before
            .iter()
            .rev()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'"' | b'\''))
            .count();
        let first = self.start - indent;
        first == 0 || matches!(text[first - 1], b'\n' | b'\r')
    }
}

/// Offset after the blanks at `at`, if they are few.
fn blanks(text: &[u8], at: usize) -> Option<usize> {
    let end = skip_blanks(&text[..text.len().min(at + BLANKS)], at.min(text.len()));
    (end < at + BLANKS).then_some(end)
}

/// A value behind a blank, perhaps linked by a word: `token is x`, `API key provided: x`.
fn linked(text: &[u8], at: usize) -> (SignKind, usize) {
    const LINKS: &[&[u8]] = &[
        b"is ",
        b"was ",
        b"provided: ",
        b"supplied: ",
        b"given: ",
        b"received: ",
        b"used: ",
        b"value: ",
        b"is: ",
        b"found: ",
    ];
    LINKS
        .iter()
        .find(|link| has_folded(text, at, link))
        .map_or((SignKind::Space, at), |link| {
            (SignKind::Is, at + link.len())
        })
}

/// The place of the value in `, "value": "x"`, `\n  value: x` or ` value="x"`.
fn value_member(text: &[u8], at: usize) -> Option<usize> {
    let limit = text.len().min(at + REACH);
    let skip = |at: usize| {
        at + text[at..limit.max(at)]
            .iter()
            .take_while(|byte| {
                matches!(
                    byte,
                    b' ' | b'\t' | b'\r' | b'\n' | b',' | b'"' | b'\'' | b'\\'
                )
            })
            .count()
    };
    let word = skip(at);
    let rest = [&b"value"[..], b"val"]
        .iter()
        .find(|name| has_folded(text, word, name))
        .map(|name| skip(word + name.len()))?;
    matches!(text.get(rest), Some(b'=' | b':')).then_some(rest + 1)
}

/// Judges the value of a name that says secret.
fn value(text: &mut Text<'_>, name: &Name, sign: Sign, says: Says) {
    let bytes = text.bytes;
    let at = sign.value;
    if says.strength == Strength::Strong
        && matches!(says.kind, "authorization" | "cookie")
        && matches!(sign.kind, SignKind::Colon)
        && !matches!(
            bytes.get(at),
            Some(b'"' | b'\'' | b'`' | b'\\' | b'[' | b'{')
        )
    {
        let before = name.start.checked_sub(1).map(|at| bytes[at]);
        let quote = before.filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        return header::header(text, at, quote, says.kind);
    }
    let at = after_type(bytes, at, sign.kind).unwrap_or(at);
    match opening(bytes, at) {
        Some((quote, slashes, start)) => {
            quoted(text, name, sign.kind, says, (quote, slashes, start))
        }
        None if bytes.get(at) == Some(&b'[') && marker_len(&bytes[at..]).is_none() => {
            list(text, name, says, at + 1)
        }
        None => plain(text, name, sign.kind, says, at),
    }
}

/// `password: str = "x"`: the place of the value behind a type.
fn after_type(text: &[u8], at: usize, kind: SignKind) -> Option<usize> {
    if kind != SignKind::Colon {
        return None;
    }
    let len = text[at..]
        .iter()
        .take(40)
        .take_while(|&&byte| {
            Class::DOTTED.has(byte)
                || matches!(
                    byte,
                    b'<' | b'>' | b'[' | b']' | b'&' | b'?' | b'|' | b' ' | b'*'
                )
        })
        .count();
    let value = at + len;
    let sign = text.get(value) == Some(&b'=') && !matches!(text.get(value + 1), Some(b'=' | b'>'));
    let value = skip_blanks(text, (value + 1).min(text.len()));
    (len > 0 && sign && opening(text, value).is_some()).then_some(value)
}

/// An opening quote at `at`: the quote, the backslashes before it, and where the content starts.
fn opening(text: &[u8], at: usize) -> Option<(u8, usize, usize)> {
    // `b"…"`, `r'…'`, `@"…"`
    let prefix = matches!(text.get(at), Some(b'b' | b'r' | b'f' | b'u' | b'@'))
        && matches!(text.get(at + 1), Some(b'"' | b'\''));
    let at = at + usize::from(prefix);
    let slashes = text
        .get(at..)?
        .iter()
        .take(8)
        .take_while(|&&byte| byte == b'\\')
        .count();
    let quote = text
        .get(at + slashes)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    Some((quote, slashes, at + slashes + 1))
}

fn quoted(
    text: &mut Text<'_>,
    name: &Name,
    kind: SignKind,
    says: Says,
    (quote, slashes, start): (u8, usize, usize),
) {
    let bytes = text.bytes;
    let (end, _) = quoted_end(bytes, start, quote, slashes, JUDGED);
    let value = &bytes[start..end];
    let member = name.quote.is_some()
        && matches!(
            kind,
            SignKind::Colon | SignKind::Elsewhere | SignKind::Spaced
        );
    let binding = if member {
        Binding::Member
    } else {
        Binding::Quoted
    };
    let skip = header::secret_part(value, says.kind).start;
    let accepted = match (says.strength, kind) {
        (Strength::Weak, _) => is_weak_secret(&value[skip..], says),
        // `PASSWORD 'x'` is SQL, `the password "x"` is prose.
        (_, SignKind::Space | SignKind::Is) if !name.flag => {
            is_plausible(value, Binding::Quoted, true)
                && (name.is_loud(bytes) || is_plausible(value, Binding::Flag, true))
        }
        _ => is_plausible(&value[skip..], binding, says.kind == "password"),
    };
    if accepted {
        let (end, _) = quoted_end(bytes, start, quote, slashes, usize::MAX);
        text.known(start + skip..end, says.kind, Rank::Name);
    }
}

/// `"tokens": ["x", "y"]`
fn list(text: &mut Text<'_>, name: &Name, says: Says, mut at: usize) {
    for _ in 0..64 {
        let bytes = text.bytes;
        at += bytes[at.min(bytes.len())..]
            .iter()
            .take(BLANKS)
            .take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b','))
            .count();
        let Some((quote, slashes, start)) = opening(bytes, at) else {
            return;
        };
        quoted(text, name, SignKind::Colon, says, (quote, slashes, start));
        let (end, closed) = quoted_end(bytes, start, quote, slashes, 4 * JUDGED);
        if !closed {
            return;
        }
        at = end + slashes + 1;
    }
}

fn plain(text: &mut Text<'_>, name: &Name, kind: SignKind, says: Says, start: usize) {
    let bytes = text.bytes;
    let most = JUDGED;
    let end = if kind == SignKind::Element {
        element_end(bytes, start, most)
    } else {
        plain_end(bytes, start, most)
    };
    let value = &bytes[start..end];
    if value.is_empty() || is_marked(value) {
        return;
    }
    let parameter = kind == SignKind::Attached && is_parameter(bytes, name, end);
    let binding = match kind {
        SignKind::Attached if parameter => Binding::Parameter,
        SignKind::Attached if name.is_loud(bytes) => Binding::Shouted,
        SignKind::Attached if name.flag => Binding::Shouted,
        SignKind::Attached => Binding::Attached,
        SignKind::Spaced => Binding::Spaced,
        SignKind::Element => Binding::Element,
        SignKind::Space if name.flag => Binding::Flag,
        SignKind::Space => Binding::Space,
        SignKind::Colon if ends_line(bytes, end) && name.starts_line(bytes) => Binding::ColonLine,
        SignKind::Colon | SignKind::Is => Binding::Colon,
        SignKind::Elsewhere => Binding::Element,
    };
    let path = (value.starts_with(b"/") || value.starts_with(b"~/") || value.starts_with(b"./"))
        && !looks_random(value);
    let accepted = match says.strength {
        _ if path && binding != Binding::Parameter => false,
        Strength::Strong => {
            is_plausible(value, binding, says.kind == "password")
                && !is_argument(bytes, binding, value, end)
        }
        Strength::Weak if kind == SignKind::Space => false,
        Strength::Weak if parameter && says.kind == "code" => {
            is_grant(bytes, name, end) && value.len() >= 6
        }
        Strength::Weak if parameter && says.kind == "signature" => {
            value.len() >= 16 && (is_digest(value) || looks_random(value))
        }
        Strength::Weak => is_weak_secret(value, says) && !is_code(value),
    };
    if !accepted {
        return;
    }
    let end = match kind {
        SignKind::Element => element_end(bytes, start, usize::MAX),
        _ => plain_end(bytes, start, usize::MAX),
    };
    text.known(trim(bytes, start..end), says.kind, Rank::Name);
}

/// Whether a value under a name that says little is secret.
pub(super) fn is_weak_secret(value: &[u8], says: Says) -> bool {
    looks_random(value) || says.kind == "authorization" && header::is_user_and_password(value)
}

/// Whether the pair stands in a query or a form.
fn is_parameter(text: &[u8], name: &Name, end: usize) -> bool {
    let before = name.start.checked_sub(1).map(|at| text[at]);
    matches!(before, Some(b'?' | b'&')) || text.get(end) == Some(&b'&') && end + 1 < text.len()
}

/// Whether the query or form around a `code` has other parts of an OAuth exchange.
fn is_grant(text: &[u8], name: &Name, end: usize) -> bool {
    let blank = |byte: &u8| matches!(byte, 0..=b' ' | b'"' | b'\'' | b'<' | b'>');
    let floor = name.start.saturating_sub(512);
    let start = text[floor..name.start]
        .iter()
        .rposition(blank)
        .map_or(floor, |found| floor + found + 1);
    let limit = text.len().min(end + 512);
    let stop = text[end..limit]
        .iter()
        .position(blank)
        .map_or(limit, |found| end + found);
    let around = &text[start..stop];
    [
        &b"state="[..],
        b"grant_type=",
        b"redirect_uri=",
        b"client_id=",
        b"callback",
        b"oauth",
        b"iss=",
    ]
    .iter()
    .any(|mark| memchr::memmem::find(around, mark).is_some())
}

/// A keyword argument of a call, `connect(user=user, password=pw1)`, if its value is a name.
fn is_argument(text: &[u8], binding: Binding, value: &[u8], end: usize) -> bool {
    binding == Binding::Attached
        && matches!(text.get(end), Some(b',' | b')'))
        && Class::WORD.all(value)
        && !Class::DIGIT.any(value)
}

fn ends_line(text: &[u8], end: usize) -> bool {
    matches!(text.get(skip_blanks(text, end)), None | Some(b'\n' | b'\r'))
}

fn element_end(text: &[u8], start: usize, most: usize) -> usize {
    let limit = text.len().min(start.saturating_add(most));
    text[start..limit]
        .iter()
        .position(|byte| matches!(byte, b'<' | b'\n' | b'\r'))
        .map_or(limit, |found| start + found)
}

/// SQL: `IDENTIFIED BY 'x'`. `at` is the place of the words.
pub(super) fn identified_by(text: &mut Text<'_>, at: usize) {
    let bytes = text.bytes;
    let start = skip_blanks(bytes, at + "identified by".len());
    let Some((quote, slashes, start)) = opening(bytes, start) else {
        return;
    };
    let (end, closed) = quoted_end(bytes, start, quote, slashes, 4 * JUDGED);
    let value = &bytes[start..end];
    if closed && !is_prose(value) && is_plausible(value, Binding::Quoted, true) {
        text.known(start..end, "password", Rank::Name);
    }
}
