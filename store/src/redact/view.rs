//! The views of a text: as it is, and with its escapes resolved.
//!
//! A secret in a JSON string can be written with escapes, the string can hold JSON that has
//! strings, and these again; a query is percent-encoded, a log line coloured. Each of these is
//! a view, in which rules see plain text; what they find is mapped back to where it stands.

use std::ops::Range;

use agent_trace_wire::json::unescape;

use super::Redactor;
use super::json::json;
use super::mark::{Hit, Kind, Rank, print};
use super::shape::{AwsSecrets, aws_secrets};
use super::text::{Notes, Text};

/// So many layers of escapes are resolved.
const MAX_LEVEL: usize = 4;

/// So much of a text is looked at in one view.
const PIECE: usize = 512 << 10;
/// So much of it again with what follows: more than the longest secrets.
const OVERLAP: usize = 32 << 10;

/// One pass over one message.
pub(super) struct Scan<'r> {
    pub(super) redactor: &'r Redactor,
    pub(super) notes: Notes,
    /// Look for secrets of AWS.
    pub(super) aws: Option<AwsSecrets>,
    /// Each string must be looked at, with anchors or without.
    pub(super) always: bool,
}

impl<'r> Scan<'r> {
    /// All secrets in one message: JSON if it is, else text.
    pub(super) fn message(redactor: &'r Redactor, text: &[u8]) -> (Vec<Hit>, Notes) {
        let mut hits = Vec::new();
        let lone = has_lone_secret(text) || has_escaped_slash(text);
        let mut scan = Self {
            redactor,
            notes: Notes::default(),
            aws: lone.then_some(AwsSecrets::Lone),
            always: lone || !redactor.user.is_empty(),
        };
        scan.any(text, &mut hits);
        if scan.notes.aws {
            hits.clear();
            scan.aws = Some(AwsSecrets::Near);
            scan.always = true;
            scan.any(text, &mut hits);
        }
        if scan.notes.too_many {
            hits = vec![whole(redactor, text)];
        }
        (hits, scan.notes)
    }

    fn any(&mut self, text: &[u8], hits: &mut Vec<Hit>) {
        let start = text
            .iter()
            .find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xEF | 0xBB | 0xBF));
        if matches!(start, Some(b'{' | b'[' | b'"')) && json(self, text, 0, hits) {
            // Whatever a string leaves open ends with the string.
            self.notes.open_key = false;
            return;
        }
        self.decoded(text, 0, false, hits);
        self.lines(text, hits);
    }

    /// JSON in lines, perhaps behind a label: names there judge arrays and the like too.
    fn lines(&mut self, text: &[u8], hits: &mut Vec<Hit>) {
        let mut start = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let trimmed = line.trim_ascii_end();
            if let Some(b'}' | b']') = trimmed.last()
                && let Some(open) = trimmed
                    .iter()
                    .take(256)
                    .position(|byte| matches!(byte, b'{' | b'['))
            {
                let first = hits.len();
                json(self, &trimmed[open..], 0, hits);
                shift(&mut hits[first..], start + open);
            }
            start += line.len();
        }
    }

    /// A text whose outer escapes are resolved.
    pub(super) fn inner(&mut self, text: &[u8], level: usize, opaque: bool, hits: &mut Vec<Hit>) {
        let trimmed = text.trim_ascii();
        let json_like = matches!(
            (trimmed.first(), trimmed.last()),
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
        );
        if !(json_like && level <= MAX_LEVEL && json(self, text, level, hits)) {
            self.decoded(text, level, opaque, hits);
        }
    }

    fn decoded(&mut self, text: &[u8], level: usize, opaque: bool, hits: &mut Vec<Hit>) {
        let found = self.text(text, opaque, hits);
        if found || self.always {
            self.beside(text, level, opaque, hits);
        }
        if level < MAX_LEVEL
            && memchr::memchr(b'\\', text).is_some()
            && (found || self.always || self.is_worth_unescaping(text))
        {
            self.unescaped(text, level + 1, opaque, hits);
        }
    }

    /// Looks at a text with its escapes resolved; at a long one piece by piece, since a view
    /// takes more memory than its text.
    pub(super) fn unescaped(
        &mut self,
        raw: &[u8],
        level: usize,
        opaque: bool,
        hits: &mut Vec<Hit>,
    ) {
        let mut start = 0;
        loop {
            let end = raw.len().min(start + PIECE);
            let view = unescape(&raw[start..end]);
            if view.bytes.len() < end - start {
                let first = hits.len();
                self.inner(&view.bytes, level, opaque, hits);
                for hit in &mut hits[first..] {
                    let raw = view.raw_range(hit.range.clone());
                    hit.range = start + raw.start..start + raw.end;
                }
            }
            if end == raw.len() {
                return;
            }
            // The next piece begins with a whole escape or byte, far enough back for a secret
            // that this one cut.
            let back = view.bytes.len().saturating_sub(OVERLAP);
            start += view.raw_range(back..back + 1).start.max(1);
        }
    }

    /// Looks at a text as it is; says whether it had any anchor.
    fn text(&mut self, text: &[u8], opaque: bool, hits: &mut Vec<Hit>) -> bool {
        let mut finder = self.redactor.filter.find(text);
        let found = finder.peek().is_some();
        let mut view = Text::new(self.redactor, text, hits, &mut self.notes);
        while let Some(candidate) = finder.next_before(usize::MAX) {
            view.candidate(candidate, opaque);
        }
        view.whole(self.aws.filter(|_| !opaque));
        found
    }

    /// The views beside a text that has anchors: percent-decoded, without colours.
    pub(super) fn beside(&mut self, text: &[u8], level: usize, opaque: bool, hits: &mut Vec<Hit>) {
        if level > MAX_LEVEL {
            return;
        }
        for rewrite in [Rewritten::percent, Rewritten::colours] {
            let mut start = 0;
            loop {
                let end = text.len().min(start + PIECE);
                if let Some(view) = rewrite(&text[start..end]) {
                    let first = hits.len();
                    self.text(&view.bytes, opaque, hits);
                    for hit in &mut hits[first..] {
                        let raw = view.raw_range(&hit.range);
                        hit.range = start + raw.start..start + raw.end;
                    }
                }
                if end == text.len() {
                    break;
                }
                start = end - OVERLAP;
            }
        }
    }

    /// What the user's rules find in a JSON text as a whole.
    pub(super) fn user_hits(&self, text: &[u8]) -> Vec<(Range<usize>, Kind)> {
        let mut found = Vec::new();
        for (rule, kind) in &self.redactor.user {
            let secrets = rule
                .captures_iter(text)
                .filter_map(|found| found.get(1).or_else(|| found.get(0)));
            found.extend(secrets.map(|secret| (secret.range(), kind.clone())));
        }
        found.sort_by_key(|(range, _)| (range.start, range.end));
        found
    }

    /// Whether escapes in `text` can hide an anchor.
    pub(super) fn is_worth_unescaping(&self, text: &[u8]) -> bool {
        self.redactor.literals_escaped || has_odd_escape(text)
    }
}

/// Whether `text` has what can be a secret of AWS.
pub(super) fn has_lone_secret(text: &[u8]) -> bool {
    aws_secrets(text, AwsSecrets::Lone).next().is_some()
}

/// Whether `text` has an escaped slash, behind which a secret of AWS hides.
fn has_escaped_slash(text: &[u8]) -> bool {
    has_pair(text, |first, second| (first == b'\\') & (second == b'/'))
}

/// Whether `text` has a `\u` or `\/`: other escapes stand for bytes that no anchor has.
pub(super) fn has_odd_escape(text: &[u8]) -> bool {
    has_pair(text, |first, second| {
        (first == b'\\') & ((second == b'u') | (second == b'/'))
    })
}

/// Whether two bytes beside each other are such. Text in JSON has escapes by the dozen, and
/// stopping at each costs more than looking at all bytes: within a chunk nothing branches.
fn has_pair(text: &[u8], is: impl Fn(u8, u8) -> bool) -> bool {
    const CHUNK: usize = 128;
    let seconds = text.get(1..).unwrap_or_default();
    text.chunks(CHUNK)
        .zip(seconds.chunks(CHUNK))
        .any(|(firsts, seconds)| {
            let pairs = firsts.iter().zip(seconds);
            pairs.fold(false, |any, (&first, &second)| any | is(first, second))
        })
}

/// All of a message as one secret, in which JSON stays JSON.
fn whole(redactor: &Redactor, text: &[u8]) -> Hit {
    let range = super::value::trim(text, 0..text.len());
    let json = agent_trace_wire::json::is_valid(text);
    Hit {
        print: print(&redactor.key, &text[range.clone()]),
        range,
        kind: Kind::known("too-many"),
        rank: Rank::Shape,
        bare: json.then_some(0),
    }
}

pub(super) fn shift(hits: &mut [Hit], by: usize) {
    for hit in hits {
        hit.range = hit.range.start + by..hit.range.end + by;
    }
}

/// A text in which pieces were replaced by one byte or left out.
struct Rewritten {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

/// Bytes that were taken over as they are, or (`raw_len` not `len`) a replaced piece.
struct Piece {
    at: usize,
    len: usize,
    raw: usize,
    raw_len: usize,
}

impl Rewritten {
    /// `text` percent-decoded, if that changes it.
    fn percent(text: &[u8]) -> Option<Self> {
        Self::new(text, b'%', |rest| {
            let digit = |at: usize| rest.get(at).and_then(|&byte| char::from(byte).to_digit(16));
            Some((3, Some((digit(1)? << 4 | digit(2)?) as u8)))
        })
    }

    /// `text` without escape sequences of terminals, if it has any.
    fn colours(text: &[u8]) -> Option<Self> {
        Self::new(text, 0x1B, |rest| {
            if rest.get(1) != Some(&b'[') {
                return None;
            }
            let parameters = rest[2..]
                .iter()
                .take(32)
                .take_while(|byte| matches!(byte, b'0'..=b'?'))
                .count();
            let letter = rest.get(2 + parameters)?;
            letter
                .is_ascii_alphabetic()
                .then_some((parameters + 3, None))
        })
    }

    /// Replaces what starts with `mark` as `replace` says: its length, and what it becomes.
    fn new(
        text: &[u8],
        mark: u8,
        replace: impl Fn(&[u8]) -> Option<(usize, Option<u8>)>,
    ) -> Option<Self> {
        let mut new = Self {
            bytes: Vec::new(),
            pieces: Vec::new(),
        };
        let mut copied = 0;
        for at in memchr::memchr_iter(mark, text) {
            if at < copied {
                continue;
            }
            let Some((len, byte)) = replace(&text[at..]) else {
                continue;
            };
            new.copy(text, copied..at);
            if let Some(byte) = byte {
                new.pieces.push(Piece {
                    at: new.bytes.len(),
                    len: 1,
                    raw: at,
                    raw_len: len,
                });
                new.bytes.push(byte);
            }
            copied = at + len;
        }
        if copied == 0 {
            return None;
        }
        new.copy(text, copied..text.len());
        Some(new)
    }

    fn copy(&mut self, text: &[u8], raw: Range<usize>) {
        if !raw.is_empty() {
            self.pieces.push(Piece {
                at: self.bytes.len(),
                len: raw.len(),
                raw: raw.start,
                raw_len: raw.len(),
            });
            self.bytes.extend_from_slice(&text[raw]);
        }
    }

    /// Where a range that is not empty comes from.
    fn raw_range(&self, range: &Range<usize>) -> Range<usize> {
        let (first, last) = (self.raw(range.start), self.raw(range.end.saturating_sub(1)));
        first.start..last.end
    }

    fn raw(&self, at: usize) -> Range<usize> {
        let after = self.pieces.partition_point(|piece| piece.at <= at);
        let Some(piece) = after
            .checked_sub(1)
            .and_then(|piece| self.pieces.get(piece))
        else {
            return 0..0;
        };
        if piece.len == piece.raw_len {
            let raw = piece.raw + (at - piece.at).min(piece.len - 1);
            raw..raw + 1
        } else {
            piece.raw..piece.raw + piece.raw_len
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_views_map_back() {
        let view = Rewritten::percent(b"a%20b%3Dc%zz%4").unwrap();
        assert_eq!(view.bytes, b"a b=c%zz%4");
        for (range, raw) in [
            (0..1, 0..1),
            (1..2, 1..4),
            (2..5, 4..9),
            (0..10, 0..14),
            (3..4, 5..8),
        ] {
            assert_eq!(view.raw_range(&range), raw, "{range:?}");
        }
        assert!(Rewritten::percent(b"100% of it").is_none());
    }

    #[test]
    fn colours_are_left_out() {
        let view = Rewritten::colours(b"\x1b[3mtoken\x1b[0m\x1b[2m=\x1b[0mx").unwrap();
        assert_eq!(view.bytes, b"token=x");
        assert_eq!(view.raw_range(&(0..5)), 4..9);
        assert_eq!(view.raw_range(&(5..7)), 17..23);
        assert!(Rewritten::colours(b"\x1b7").is_none());
    }

    fn redacted(text: &str) -> String {
        let redactor = Redactor::new(crate::redact::Key::from_bytes([1; 32]), &[]).unwrap();
        redactor.text(text)
    }

    #[test]
    fn in_a_long_text_secrets_are_found_wherever_pieces_meet() {
        let secret = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
        for fill in [PIECE - 50, PIECE - 10, PIECE + 10, 2 * PIECE] {
            // Escapes make a view necessary; the backslash before the token hides its start.
            let fill = "\\n".repeat(fill / 3);
            let text = format!("{{\"a\":\"{fill}\\u0067{}{fill}\"}}", &secret[1..]);
            let out = redacted(&text);
            assert!(!out.contains(&secret[8..]), "{}", fill.len());
            assert!(agent_trace_wire::json::is_valid(out.as_bytes()));
            assert_eq!(out.matches("[REDACTED:github-token:").count(), 1);
        }
    }

    #[test]
    fn a_message_with_too_many_secrets_is_one_secret() {
        let many = "password=hunter2abc ".repeat(20_000);
        let json = redacted(&format!("{{\"a\":\"{many}\"}}\n"));
        assert!(
            json.starts_with("\"[REDACTED:too-many:") && json.ends_with("]\"\n"),
            "{json:.60}"
        );
        assert!(agent_trace_wire::json::is_valid(json.as_bytes()));
        let text = redacted(&format!("{many}\n"));
        assert!(text.starts_with("[REDACTED:too-many:") && text.ends_with("] \n"));
        assert_eq!(redacted(&json), json);
    }

    #[test]
    fn odd_escapes() {
        assert!(has_odd_escape(br"a\nb\u0041"));
        assert!(has_odd_escape(br"a\/b"));
        assert!(has_odd_escape(br"a\\u0041"));
        assert!(!has_odd_escape(br#"a\n\"\\b"#));
        for at in 0..300 {
            let text = [&vec![b'/'; at][..], b"\\/", &vec![b'u'; 300 - at]].concat();
            assert!(has_odd_escape(&text) && has_escaped_slash(&text), "{at}");
            assert!(!has_odd_escape(&text[..=at]) && !has_odd_escape(&text[at + 1..]));
        }
    }
}
