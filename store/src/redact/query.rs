//! Parameters of a query or a form.

use std::ops::Range;

use super::binding::Name;
use super::class::Class;

/// Whether the name follows a `?` or `&`; two of these are a shell's.
pub(super) fn is_in_query(text: &[u8], name: &Name) -> bool {
    let before = &text[name.start.saturating_sub(2)..name.start];
    matches!(before, [.., b'?'] | [b'&']) || matches!(before, [other, b'&'] if *other != b'&')
}

/// Where a value that runs from `start` to `end` ends in a query: there, what would end it is
/// encoded.
pub(super) fn value_end(text: &[u8], start: usize, end: usize) -> usize {
    text[start..end]
        .iter()
        .position(|byte| matches!(byte, b'&' | b'#'))
        .map_or(end, |found| start + found)
}

/// Whether the query or form around a `code` has other parts of an OAuth exchange.
pub(super) fn is_grant(text: &[u8], name: &Name, end: usize) -> bool {
    let around = &text[around(text, name, end)];
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

/// The value of the parameter `state` beside a `code`.
pub(super) fn state(text: &[u8], name: &Name, end: usize) -> Option<Range<usize>> {
    const STATE: &[u8] = b"state=";
    let around = around(text, name, end);
    let found = around.start + memchr::memmem::find(&text[around.clone()], STATE)?;
    let whole = found == around.start || !Class::TOKEN.has(text[found - 1]);
    let start = found + STATE.len();
    let value = &text[start..around.end];
    let len = value
        .iter()
        .position(|byte| matches!(byte, b'&' | b'#' | b';' | b'['))
        .unwrap_or(value.len());
    (whole && len >= 6).then_some(start..start + len)
}

/// The query or form that a parameter stands in, as far as that is near.
fn around(text: &[u8], name: &Name, end: usize) -> Range<usize> {
    const NEAR: usize = 512;
    let blank = |byte: &u8| matches!(byte, 0..=b' ' | b'"' | b'\'' | b'`' | b'<' | b'>');
    let floor = name.start.saturating_sub(NEAR);
    let start = text[floor..name.start]
        .iter()
        .rposition(blank)
        .map_or(floor, |found| floor + found + 1);
    let limit = text.len().min(end + NEAR);
    let stop = text[end..limit]
        .iter()
        .position(blank)
        .map_or(limit, |found| end + found);
    start..stop
}
