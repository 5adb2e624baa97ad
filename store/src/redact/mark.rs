//! Markers and fingerprints: what stands where a secret stood.
//!
//! `[REDACTED:kind:abcd1234]`: the eight digits are a keyed hash of the secret, so that equal
//! secrets stay comparable and nobody without the key can test a guess.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use super::Key;

const HEAD: &[u8] = b"[REDACTED:";
/// The longest kind; longer kinds of users' rules are refused.
pub(super) const MAX_KIND: usize = 40;

/// What kind of secret was hidden, as its marker names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(Name);

#[derive(Clone, Debug)]
enum Name {
    Known(&'static str),
    User(Arc<str>),
}

impl Kind {
    pub(super) const fn known(name: &'static str) -> Self {
        Self(Name::Known(name))
    }

    pub(super) fn user(name: &str) -> Self {
        Self(Name::User(name.into()))
    }

    /// The kind as markers spell it: `[a-z0-9-]+`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::User(name) => name,
        }
    }
}

// By text, so that a user's `token` is the built-in `token`.
impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

/// Whether `text` could be a marker's kind.
pub(super) fn is_kind(text: &[u8]) -> bool {
    (1..=MAX_KIND).contains(&text.len())
        && text
            .iter()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// One thing that was hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction {
    /// Offset of the marker in the redacted text.
    pub at: u32,
    /// Length of the marker (of its quotes too, where it replaces a bare JSON number).
    pub marker: u32,
    /// Length of what it replaced, in bytes of the original text.
    pub original: u32,
    /// What kind of secret it was.
    pub kind: Kind,
}

/// How specific a kind is; of kinds that meet in one place the higher names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A name that says secret.
    Name,
    /// A value known to be secret.
    Literal,
    /// A structure, as a URL with a password.
    Structure,
    /// A shape that only one kind of secret has.
    Shape,
    /// The user said so.
    User,
}

/// A secret found in a text, before anything is replaced.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    pub(super) rank: Rank,
    /// Fingerprint of the secret with its escapes resolved.
    pub(super) print: u32,
    /// It is a JSON number, in so many JSON strings: the marker needs quotes.
    pub(super) bare: Option<usize>,
}

/// The fingerprint of a secret.
pub(super) fn print(key: &Key, secret: &[u8]) -> u32 {
    let hash = blake3::keyed_hash(&key.0, secret);
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// Length of the marker that `text` starts with.
pub(super) fn marker_len(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(HEAD)?;
    let kind = rest
        .iter()
        .take(MAX_KIND + 1)
        .position(|&byte| byte == b':')?;
    let (kind, rest) = (&rest[..kind], &rest[kind + 1..]);
    let digits = rest.first_chunk::<9>()?;
    let hex = digits[..8]
        .iter()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_kind(kind) && hex && digits[8] == b']').then_some(HEAD.len() + kind.len() + 1 + 9)
}

/// Whether `text` is markers and white space, and at least one marker.
pub(super) fn is_marked(text: &[u8]) -> bool {
    let mut rest = text.trim_ascii();
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let Some(len) = marker_len(rest) else {
            return false;
        };
        rest = rest[len..].trim_ascii_start();
    }
    true
}

/// The markers that `text` already has.
fn markers(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut free = 0;
    for at in memmem::find_iter(text, HEAD) {
        if at >= free
            && let Some(len) = marker_len(&text[at..])
        {
            free = at + len;
            found.push(at..free);
        }
    }
    found
}

/// Brings hits into order: none within or across a marker of an earlier pass, none cutting a
/// character, and those that meet made one. `decoded` gives the fingerprint of a range that
/// is no single hit's.
pub(super) fn settle(text: &[u8], hits: &mut Vec<Hit>, decoded: impl Fn(Range<usize>) -> u32) {
    let markers = markers(text);
    hits.retain_mut(|hit| {
        let touched = markers.partition_point(|marker| marker.end <= hit.range.start);
        let touched = markers[touched..]
            .iter()
            .take_while(|marker| marker.start < hit.range.end);
        let mut wider = hit.range.clone();
        for marker in touched {
            wider = wider.start.min(marker.start)..wider.end.max(marker.end);
        }
        while wider.start > 0 && is_continuation(text, wider.start) {
            wider.start -= 1;
        }
        while is_continuation(text, wider.end) {
            wider.end += 1;
        }
        if wider != hit.range {
            hit.print = decoded(wider.clone());
            hit.range = wider;
        }
        !hit.range.is_empty() && !is_marked(&text[hit.range.clone()])
    });
    hits.sort_by(|a, b| {
        (a.range.start, b.range.end, b.rank, &a.kind, a.print).cmp(&(
            b.range.start,
            a.range.end,
            a.rank,
            &b.kind,
            b.print,
        ))
    });
    let mut grown = vec![];
    hits.dedup_by(|next, last| {
        if next.range.start >= last.range.end {
            return false;
        }
        if next.rank > last.rank {
            last.rank = next.rank;
            last.kind = next.kind.clone();
        }
        if next.range.end > last.range.end {
            last.range.end = next.range.end;
            // Hashed once at the end: many hits can meet.
            if grown.last() != Some(&last.range.start) {
                grown.push(last.range.start);
            }
        }
        last.bare = last.bare.or(next.bare);
        true
    });
    let mut grown = grown.into_iter().peekable();
    for hit in hits {
        if grown.next_if_eq(&hit.range.start).is_some() {
            hit.print = decoded(hit.range.clone());
        }
    }
}

fn is_continuation(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80)
}

/// Appends `text` to `out` with a marker for each hit; hits are settled. `spans` are those of
/// earlier passes over the same text and become those of all passes.
pub(super) fn write(text: &[u8], hits: &[Hit], out: &mut Vec<u8>, spans: &mut Vec<Redaction>) {
    let base = out.len();
    let mut earlier = std::mem::take(spans).into_iter().peekable();
    let mut copied = 0;
    for hit in hits {
        // Spans before the hit move, spans within it add what they replaced.
        let mut original = hit.range.len();
        while let Some(span) = earlier.next_if(|span| (span.at as usize) < hit.range.end) {
            if (span.at as usize) < hit.range.start {
                let at = out.len() - base + (span.at as usize - copied);
                spans.push(Redaction {
                    at: clamp(at),
                    ..span
                });
            } else {
                original = (original + span.original as usize).saturating_sub(span.marker as usize);
            }
        }
        out.extend_from_slice(&text[copied..hit.range.start]);
        copied = hit.range.end;
        let start = out.len();
        let quote = hit.bare.map_or_else(String::new, |level| {
            // Each JSON string around it doubles the backslashes and adds one for the quote.
            "\\".repeat((1 << level.min(8)) - 1) + "\""
        });
        let marker = format!(
            "{quote}[REDACTED:{}:{:08x}]{quote}",
            hit.kind.as_str(),
            hit.print
        );
        out.extend_from_slice(marker.as_bytes());
        spans.push(Redaction {
            at: clamp(start - base),
            marker: clamp(marker.len()),
            original: clamp(original),
            kind: hit.kind.clone(),
        });
    }
    for span in earlier {
        let at = out.len() - base + (span.at as usize - copied);
        spans.push(Redaction {
            at: clamp(at),
            ..span
        });
    }
    out.extend_from_slice(&text[copied..]);
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(range: Range<usize>, kind: &'static str, rank: Rank) -> Hit {
        Hit {
            range,
            kind: Kind::known(kind),
            rank,
            print: 7,
            bare: None,
        }
    }

    #[test]
    fn markers_are_recognised() {
        assert_eq!(marker_len(b"[REDACTED:jwt:0123abcd] x"), Some(23));
        for text in [
            "[REDACTED:jwt:0123abcd",
            "[REDACTED:jwt:0123ABCD]",
            "[REDACTED::0123abcd]",
            "[REDACTED:a b:0123abcd]",
            "[REDACTED:jwt:0123abc]",
            "[REDACTED",
        ] {
            assert_eq!(marker_len(text.as_bytes()), None, "{text}");
        }
        assert!(is_marked(b" [REDACTED:a:00000000] [REDACTED:b:00000000]"));
        assert!(!is_marked(b"[REDACTED:a:00000000]x"));
        assert!(!is_marked(b"  "));
    }

    #[test]
    fn hits_that_meet_become_one_of_the_more_specific_kind() {
        let mut hits = vec![
            hit(4..8, "name", Rank::Name),
            hit(2..6, "shape", Rank::Shape),
            hit(9..10, "name", Rank::Name),
        ];
        settle(b"0123456789ab", &mut hits, |_| 9);
        let all: Vec<_> = hits
            .iter()
            .map(|hit| (hit.range.clone(), hit.kind.as_str(), hit.print))
            .collect();
        assert_eq!(all, [(2..8, "shape", 9), (9..10, "name", 7)]);
    }

    #[test]
    fn hits_neither_cut_characters_nor_markers() {
        let text = "ab€ [REDACTED:x:00000000] cd".as_bytes();
        let mut hits = vec![
            hit(3..4, "a", Rank::Name),
            hit(8..12, "b", Rank::Name),
            hit(20..30, "c", Rank::Name),
        ];
        settle(text, &mut hits, |_| 9);
        let all: Vec<_> = hits.iter().map(|hit| hit.range.clone()).collect();
        assert_eq!(all, [2..5, 6..30]);
    }

    #[test]
    fn spans_of_two_passes_add_up() {
        let (mut first, mut spans) = (Vec::new(), Vec::new());
        write(
            b"aaa SECRET bb SECRET cc",
            &[hit(4..10, "x", Rank::Name), hit(14..20, "x", Rank::Name)],
            &mut first,
            &mut spans,
        );
        let text = String::from_utf8(first.clone()).unwrap();
        assert_eq!(
            text,
            "aaa [REDACTED:x:00000007] bb [REDACTED:x:00000007] cc"
        );
        let mut second = b"before".to_vec();
        write(
            &first,
            &[hit(26..28, "y", Rank::Name)],
            &mut second,
            &mut spans,
        );
        assert_eq!(
            spans
                .iter()
                .map(|span| (span.at, span.original))
                .collect::<Vec<_>>(),
            [(4, 6), (26, 2), (48, 6)]
        );
        let (mut third, mut more) = (Vec::new(), spans);
        let second = second.split_off(6);
        write(
            &second,
            &[hit(0..47, "z", Rank::Name)],
            &mut third,
            &mut more,
        );
        assert_eq!(more.len(), 2);
        assert_eq!(more[0].original, 13);
        for span in &more {
            let at = span.at as usize;
            assert!(is_marked(&third[at..at + span.marker as usize]));
        }
    }
}
