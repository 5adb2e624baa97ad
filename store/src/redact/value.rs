//! How far a value in running text reaches.

use std::ops::Range;

use super::class::Class;
use super::mark::marker_len;

/// A value is judged by so much of its beginning; this also bounds the work for each anchor.
pub(super) const JUDGED: usize = 256;

/// The end of an unquoted value that starts at `start`, looking at `most` bytes.
///
/// White space, quotes and `<` end it. `&`, `;`, `,` and the like end it only where something
/// else follows them, since passwords hold them too.
pub(super) fn plain_end(text: &[u8], start: usize, most: usize) -> usize {
    let limit = text.len().min(start.saturating_add(most));
    let mut at = start;
    while at < limit {
        match text[at] {
            0..=b' ' | b'"' | b'\'' | b'`' | b'<' | 0x7F => break,
            b'&' | b';' | b',' | b'#' | b'|' if starts_member(text, at + 1) => break,
            b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\'')) => break,
            b'&' if is_entity(&text[at..]) => break,
            b'[' => at += marker_len(&text[at..]).unwrap_or(1),
            _ => at += 1,
        }
    }
    if at < limit || at == text.len() {
        at = trim_end(text, start, at);
    }
    at
}

/// A block of YAML (`|` or `>`, then lines that are indented alike), if one starts at `at`.
pub(super) fn block(text: &[u8], at: usize) -> Option<Range<usize>> {
    const MAX: usize = 16 * 1024;
    let rest = &text[at..text.len().min(at + MAX)];
    let [b'|' | b'>', after @ ..] = rest else {
        return None;
    };
    let mark = after
        .iter()
        .take_while(|byte| matches!(byte, b'-' | b'+' | b'0'..=b'9' | b' ' | b'\r'))
        .count();
    let mut end = 1 + mark;
    let (mut start, mut indent) = (None, 0);
    if rest.get(end) != Some(&b'\n') {
        return None;
    }
    for line in rest[end + 1..].split_inclusive(|&byte| byte == b'\n') {
        let blanks = line
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if blanks == 0 || blanks < indent || line.trim_ascii().is_empty() {
            break;
        }
        if start.is_none() {
            indent = blanks;
            start = Some(end + 1 + blanks);
        }
        end += line.len();
    }
    Some(trim(text, at + start?..at + end + 1))
}

/// HTML's way to write a quote or a bracket.
fn is_entity(text: &[u8]) -> bool {
    [&b"&quot;"[..], b"&lt;", b"&gt;", b"&#3", b"&#x", b"&amp;"]
        .iter()
        .any(|entity| text.starts_with(entity))
}

/// Whether the text goes on with another `name=` or ends, so that a separator before `at` is
/// one.
fn starts_member(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        None | Some(b'"' | b'\'' | b'`' | 0..=b' ') => return true,
        _ => {}
    }
    let mut rest = text[at..].iter().take(48).skip_while(|&&byte| byte == b' ');
    let mut letters = 0;
    let found = rest.find(|&&byte| {
        let name = Class::DOTTED.has(byte) || matches!(byte, b'[' | b']' | b'"' | b'\'');
        letters += usize::from(Class::LETTER.has(byte));
        !name
    });
    letters >= 1 && matches!(found, Some(b'=' | b':'))
}

/// Cuts off punctuation of the sentence or expression around a value. Brackets stay where
/// they are opened within.
fn trim_end(text: &[u8], start: usize, mut end: usize) -> usize {
    while end > start {
        let open = match text[end - 1] {
            b'.' | b',' | b';' | b':' | b'*' => {
                end -= 1;
                continue;
            }
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => break,
        };
        let within = &text[start.max(end.saturating_sub(JUDGED))..end];
        let count = |bracket| within.iter().filter(|&&byte| byte == bracket).count();
        if count(open) >= count(text[end - 1]) {
            break;
        }
        end -= 1;
    }
    end
}

/// The content of a quoted value and whether its closing quote was found. `start` is after
/// the opening quote, `slashes` how many backslashes stood before that.
pub(super) fn quoted_end(
    text: &[u8],
    start: usize,
    quote: u8,
    slashes: usize,
    most: usize,
) -> (usize, bool) {
    let limit = text.len().min(start.saturating_add(most));
    let mut run = 0;
    for (at, &byte) in text[..limit].iter().enumerate().skip(start) {
        match byte {
            b'\\' => run += 1,
            b'\n' | b'\r' => return (at, false),
            byte if byte == quote && (run == slashes || (slashes == 0 && run % 2 == 0)) => {
                return (at - run.min(slashes), true);
            }
            // A quote of an outer string: the value was cut.
            byte if byte == quote && run < slashes => return (at - run, false),
            _ => run = 0,
        }
    }
    (limit, false)
}

/// The bytes of `range` without what is white space at its ends.
pub(super) fn trim(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_ascii_start().len());
    start..start + part.trim_ascii().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_values_end_where_something_else_begins() {
        for (text, value) in [
            ("hunter2 next", "hunter2"),
            ("hunter2&next=1", "hunter2"),
            ("hunter2&next", "hunter2&next"),
            ("Tr0ub4dor&3;x", "Tr0ub4dor&3;x"),
            ("hunter2;Database=x", "hunter2"),
            ("hunter2, user=x", "hunter2"),
            ("hunter2,", "hunter2"),
            ("hunter2).", "hunter2"),
            ("f(x)2)", "f(x)2"),
            ("hunter2\\\"x", "hunter2"),
            ("[REDACTED:a:00000000]&b=c", "[REDACTED:a:00000000]"),
            ("[REDACTED:a:00000000],", "[REDACTED:a:00000000]"),
            ("", ""),
        ] {
            let end = plain_end(text.as_bytes(), 0, 4096);
            assert_eq!(&text[..end], value, "{text}");
        }
    }

    #[test]
    fn quoted_values_end_at_their_own_quote() {
        for (text, slashes, end) in [
            ("ab\" c", 0, (2, true)),
            ("a\\\"b\" c", 0, (4, true)),
            ("ab\\\\\" c", 0, (4, true)),
            ("ab\\\" c", 1, (2, true)),
            ("ab\\\\\\\"c\\\" d", 1, (7, true)),
            ("ab\" c", 1, (2, false)),
            ("ab c", 0, (4, false)),
            ("ab\nc\"", 0, (2, false)),
        ] {
            assert_eq!(
                quoted_end(text.as_bytes(), 0, b'"', slashes, 4096),
                end,
                "{text}"
            );
        }
    }
}
