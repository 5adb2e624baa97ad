//! A name in running text, and what binds a value to it.

use super::class::{Class, has_folded, skip_blanks};
use super::mark::marker_len;
use super::name::{Says, is_qualified, name_says_secret};

/// Names are looked at so far to both sides of their anchor.
pub(super) const REACH: usize = 64;
/// Blanks between name, sign and value.
pub(super) const BLANKS: usize = 24;

/// A name in the text and how it is written.
pub(super) struct Name {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Offset after the quote, bracket or asterisks that close it.
    after: usize,
    pub(super) quote: Option<u8>,
    /// `--name`
    pub(super) flag: bool,
}

/// What binds a name to its value, and where the value starts.
#[derive(Clone, Copy)]
pub(super) struct Sign {
    pub(super) kind: SignKind,
    pub(super) value: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SignKind {
    /// `=` without blanks.
    Attached,
    /// `=`, `:=`, `=>`
    Spaced,
    Colon,
    /// `<name>`
    Element,
    /// Another member holds the value: `"name": "API_KEY", "value": "x"`.
    Elsewhere,
    Space,
    /// `name is x`, `name == x`
    Is,
}

impl Name {
    pub(super) fn around(text: &[u8], at: usize) -> Option<Self> {
        let mut start = Class::DOTTED.run_back(text, at, REACH);
        let mut end = Class::DOTTED.run(&text[..text.len().min(at + REACH)], at);
        if at - start >= REACH || end - at >= REACH {
            return None;
        }
        // A path of code, or the kind in a marker.
        if text[..start].ends_with(b"::") || is_in_marker(text, start) {
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

    pub(super) fn sign(&self, text: &[u8]) -> Option<Sign> {
        let at = blanks(text, self.after)?;
        let next = text.get(at + 1).copied();
        let (kind, value) = match text.get(at)? {
            b'=' => match next {
                Some(b'=') => (
                    SignKind::Is,
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

    pub(super) fn says(&self, text: &[u8]) -> Option<Says> {
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
    pub(super) fn is_loud(&self, text: &[u8]) -> bool {
        let name = &text[self.start..self.end];
        !Class::LOWER.any(name) && Class::UPPER.any(name)
    }

    /// Whether the name is a word as texts have it.
    pub(super) fn is_word(&self, text: &[u8]) -> bool {
        let name = &text[self.start..self.end];
        Class::LETTER.all(name) && (Class::LOWER.all(&name[1..]) || !Class::LOWER.any(name))
    }

    /// Whether the name is written as headers are.
    pub(super) fn is_header(&self, text: &[u8]) -> bool {
        !self.flag && self.quote.is_none() && text[self.start..self.end].contains(&b'-')
    }

    /// Whether only blanks, a dash or a quote stand before the name on its line.
    pub(super) fn starts_line(&self, text: &[u8]) -> bool {
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

/// Whether a marker's kind starts at `at`.
fn is_in_marker(text: &[u8], at: usize) -> bool {
    const HEAD: usize = "[REDACTED:".len();
    at >= HEAD && marker_len(&text[at - HEAD..]).is_some()
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
    let link = LINKS.iter().find(|link| has_folded(text, at, link));
    if let Some(link) = link {
        return (SignKind::Is, at + link.len());
    }
    owned(text, at).map_or((SignKind::Space, at), |value| (SignKind::Is, value))
}

/// `password for user bob: x`: the place of the value.
fn owned(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at
        + [&b"for "[..], b"of "]
            .iter()
            .find(|link| has_folded(text, at, link))?
            .len();
    for _ in 0..3 {
        let word = |byte: &&u8| Class::DOTTED.has(**byte) || matches!(byte, b'@' | b'\'' | b'"');
        let len = text[at..].iter().take(40).take_while(word).count();
        at += len;
        match text.get(at..at + 2) {
            _ if len == 0 => return None,
            Some([b':', b' ']) => return Some(at + 2),
            Some([b' ', b'i']) if has_folded(text, at, b" is ") => return Some(at + 4),
            Some([b' ', _]) => at += 1,
            _ => return None,
        }
    }
    None
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

/// `password: str = "x"`: the place of the value behind a type.
pub(super) fn after_type(text: &[u8], at: usize, kind: SignKind) -> Option<usize> {
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
    let len = if text
        .get(at)
        .is_some_and(|&byte| Class::LETTER.has(byte) || byte == b'&')
    {
        len
    } else {
        0
    };
    let sign = text.get(value) == Some(&b'=') && !matches!(text.get(value + 1), Some(b'=' | b'>'));
    let value = skip_blanks(text, (value + 1).min(text.len()));
    (len > 0 && sign && opening(text, value).is_some()).then_some(value)
}

/// An opening quote at `at`: the quote, the backslashes before it, and where the content starts.
pub(super) fn opening(text: &[u8], at: usize) -> Option<(u8, usize, usize)> {
    // `Some("…")`, `SecretStr('…')`, as programs print their configuration.
    const WRAPPERS: &[&[u8]] = &[
        b"Some(",
        b"Just(",
        b"Ok(",
        b"Secret(",
        b"SecretStr(",
        b"SecretString(",
        b"Password(",
        b"Token(",
        b"ApiKey(",
    ];
    let rest = text.get(at..)?;
    let wrapper = WRAPPERS.iter().find(|name| rest.starts_with(name));
    let at = at + wrapper.map_or(0, |name| name.len());
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
