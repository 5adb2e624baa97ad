//! Names with values in running text: `password=x`, `"apiKey": "x"`, `--token x`,
//! `API key: x`, `<secret>x</secret>`, `password x`.

use super::binding::{BLANKS, Name, REACH, Sign, SignKind, after_type, opening};
use super::class::{Class, skip_blanks};
use super::entropy::{is_digest, looks_random};
use super::header;
use super::judge::{Binding, is_code, is_plausible};
use super::mark::{Rank, is_marked, marker_len};
use super::name::{Says, Strength};
use super::query::{self, is_grant, is_in_query};
use super::text::Text;
use super::value::{self, JUDGED, plain_end, quoted_end, trim};
use super::words::is_prose;

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
    if sign.kind == SignKind::Colon
        && says.strength == Strength::Strong
        && let Some(block) = value::block(bytes, at)
    {
        let first = bytes[block.clone()]
            .split(|&byte| byte == b'\n')
            .next()
            .unwrap_or_default();
        if !is_prose(first) && is_plausible(first.trim_ascii(), Binding::Element, false) {
            text.known(block, says.kind, Rank::Name);
        }
        return;
    }
    let at = after_type(bytes, at, sign.kind).unwrap_or(at);
    match opening(bytes, at).filter(|_| sign.kind != SignKind::Element) {
        Some((quote, slashes, start)) => {
            quoted(text, name, sign.kind, says, (quote, slashes, start));
        }
        None if bytes.get(at) == Some(&b'[') && marker_len(&bytes[at..]).is_none() => {
            // A list of features or formats is more frequent than one of secrets.
            if name.quote.is_some() || sign.kind == SignKind::Colon {
                list(text, name, says, at + 1);
            }
        }
        None => plain(text, name, sign.kind, says, at),
    }
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
        (Strength::Weak, SignKind::Space | SignKind::Is) => false,
        (Strength::Weak, _) => is_weak_secret(&value[skip..], says),
        // The quote ends a string that the name stands in: `"Password: ", x`.
        _ if !opens_value(value) => false,
        // `PASSWORD 'x'` is SQL, `the password "x"` is prose.
        (_, SignKind::Space | SignKind::Is) if !name.flag => {
            is_plausible(value, Binding::Quoted, true)
                && (name.is_loud(bytes) && name.is_word(bytes)
                    || is_plausible(value, Binding::Flag, true))
        }
        _ => is_plausible(&value[skip..], binding, says.kind == "password"),
    };
    if accepted {
        let (end, _) = quoted_end(bytes, start, quote, slashes, usize::MAX);
        text.known(start + skip..end, says.kind, Rank::Name);
    }
}

/// Whether a value, and not what follows a string, starts behind a quote.
fn opens_value(value: &[u8]) -> bool {
    !matches!(
        value.first(),
        Some(b' ' | b',' | b')' | b';' | b']' | b'}' | b'+' | b'"' | b'\'')
    ) && value.iter().any(u8::is_ascii_alphanumeric)
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
    let in_query = kind == SignKind::Attached && is_in_query(bytes, name);
    let reach = |most| match kind {
        SignKind::Element => element_end(bytes, start, most),
        _ if in_query => query::value_end(bytes, start, plain_end(bytes, start, most)),
        _ => plain_end(bytes, start, most),
    };
    let end = reach(JUDGED);
    let value = &bytes[start..end];
    // `0x0005`, `4000 + 247`
    let number = value.len() < 12 && value.starts_with(b"0x")
        || SignKind::Colon == kind && value.first() == Some(&b'+');
    if number {
        return;
    }
    let unclosed = kind == SignKind::Element && !bytes[end..].starts_with(b"</");
    if value.is_empty() || is_marked(value) || unclosed {
        return;
    }
    // A form has no mark before its first name.
    let followed = bytes.get(end) == Some(&b'&') && end + 1 < bytes.len();
    let parameter = in_query || kind == SignKind::Attached && followed;
    let binding = match kind {
        SignKind::Attached if parameter => Binding::Parameter,
        SignKind::Attached if name.is_loud(bytes) => Binding::Shouted,
        SignKind::Attached if name.flag => Binding::Shouted,
        SignKind::Attached => Binding::Attached,
        SignKind::Spaced => Binding::Spaced,
        SignKind::Element => Binding::Element,
        SignKind::Space if name.flag && value.len() >= 6 && is_last(bytes, end) => {
            Binding::Attached
        }
        SignKind::Space if name.flag => Binding::Flag,
        SignKind::Space if !name.is_word(bytes) => return,
        SignKind::Space => Binding::Space,
        // `X-Api-Key: x`
        SignKind::Colon if name.is_header(bytes) && value.len() >= 6 => Binding::Shouted,
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
        Strength::Weak if parameter => is_weak_parameter(value, says),
        Strength::Weak => is_weak_secret(value, says) && !is_code(value),
    };
    if !accepted {
        return;
    }
    let end = reach(usize::MAX);
    text.known(trim(bytes, start..end), says.kind, Rank::Name);
    if parameter
        && says.kind == "code"
        && let Some(state) = query::state(bytes, name, end)
    {
        text.known(state, "oauth-state", Rank::Name);
    }
}

/// `?key=x`: more than elsewhere, this is a key.
fn is_weak_parameter(value: &[u8], says: Says) -> bool {
    if says.kind == "signature" {
        return value.len() >= 16 && (is_digest(value) || looks_random(value));
    }
    // Of all hexadecimal numbers, `?key=` with so many digits is a key.
    if says.kind == "key" && value.len() == 32 && value.iter().all(u8::is_ascii_hexdigit) {
        return true;
    }
    let chosen = value.len() >= 8 && Class::DIGIT.any(value) && Class::LETTER.any(value);
    let plain = is_digest(value)
        || is_code(value)
        || value
            .iter()
            .any(|byte| matches!(byte, b'/' | b'(' | b'{' | b'[' | b'.' | b' '));
    is_weak_secret(value, says)
        || chosen && !plain && matches!(says.kind, "key" | "session" | "authorization" | "code")
}

/// Whether a value under a name that says little is secret.
pub(super) fn is_weak_secret(value: &[u8], says: Says) -> bool {
    looks_random(value) || says.kind == "authorization" && header::is_user_and_password(value)
}

/// A keyword argument of a call, `connect(user=user, password=pw)`, or a declaration.
fn is_argument(text: &[u8], binding: Binding, value: &[u8], end: usize) -> bool {
    let argument = binding == Binding::Attached && matches!(text.get(end), Some(b',' | b')'));
    // `const X: TYPE1 = …`
    let typed = binding == Binding::Colon && text[end..].starts_with(b" = ");
    Class::WORD.all(value) && (typed || argument && !Class::DIGIT.any(value))
}

/// Whether the command ends at `end`, or the next flag follows.
fn is_last(text: &[u8], end: usize) -> bool {
    ends_line(text, end) || text[end..].starts_with(b" -")
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
    let sql = quote == b'\'' || bytes[at] == b'I';
    if closed
        && sql
        && quote != b'`'
        && !is_prose(value)
        && is_plausible(value, Binding::Quoted, true)
    {
        text.known(start..end, "password", Rank::Name);
    }
}
