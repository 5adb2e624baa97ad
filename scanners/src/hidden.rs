//! What is in a text and not seen by whoever reads it: comments, elements that are not
//! displayed, text pushed out of sight, and characters that hide or reorder others.

use crate::view::{invisible, mixes_scripts};

/// A part of a text that is not displayed, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// No more regions than this are looked at in one text, and no more bytes of one.
const MOST: usize = 512;
const LONGEST: usize = 4 << 10;

/// What tells that an element is not displayed, in its opening tag.
const UNSEEN: [&str; 14] = [
    " hidden",
    "display:none",
    "display: none",
    "visibility:hidden",
    "visibility: hidden",
    "font-size:0",
    "font-size: 0",
    "font-size:1px",
    "opacity:0",
    "opacity: 0",
    "color:white",
    "color:#fff",
    "color: white",
    "left:-9999",
];

/// Comments, hidden elements, and what comes after a long stretch of nothing.
pub(crate) fn regions(raw: &str) -> Vec<Region> {
    let mut out = Vec::new();
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| matches!(b, b'<' | b'[')) {
        let start = at + found;
        at = start + 1;
        if out.len() >= MOST {
            return out;
        }
        let rest = &bytes[start..(start + LONGEST).min(bytes.len())];
        if rest.starts_with(b"<!--") {
            let length = find(rest, b"-->").map_or(rest.len(), |end| end + 3);
            out.push(region(raw, start + 4, start + length));
            at = start + length;
        } else if rest.starts_with(b"[//]: #") || rest.starts_with(b"[comment]: #") {
            let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            out.push(region(raw, start + 7, start + length));
            at = start + length;
        } else if rest[0] == b'<' && rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            let tag = rest.iter().take(400).position(|b| *b == b'>');
            if let Some(tag) = tag
                && unseen(&rest[..tag])
            {
                let length = find(&rest[tag..], b"</").map_or(rest.len(), |end| tag + end);
                out.push(region(raw, start + tag + 1, start + length));
                at = start + length;
            }
        }
    }
    pushed_away(raw, &mut out);
    out
}

/// Text after so many blanks or empty lines that it is out of sight.
fn pushed_away(raw: &str, out: &mut Vec<Region>) {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        let mut lines = 0;
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            lines += usize::from(bytes[at] == b'\n');
            at += 1;
        }
        let blanks = at - start - lines;
        if (lines >= 20 || (lines == 0 && blanks >= 120)) && at < bytes.len() && out.len() < MOST {
            out.push(region(raw, at, (at + LONGEST).min(bytes.len())));
        }
    }
}

fn unseen(tag: &[u8]) -> bool {
    let tag = String::from_utf8_lossy(tag).to_ascii_lowercase();
    UNSEEN.iter().any(|mark| tag.contains(mark)) && !tag.starts_with("<input")
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Whole characters only.
fn region(raw: &str, start: usize, end: usize) -> Region {
    let mut start = start.min(raw.len());
    let mut end = end.clamp(start, raw.len());
    while !raw.is_char_boundary(start) {
        start += 1;
    }
    while !raw.is_char_boundary(end) {
        end -= 1;
    }
    Region {
        start,
        end: end.max(start),
    }
}

/// A kind of character that should not be in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// Zero width, soft hyphens, selectors in the middle of words.
    Invisible,
    /// Tag characters.
    Tags,
    /// Controls of the direction of writing.
    Direction,
    /// Escape sequences of terminals.
    Terminal,
    /// A word of Latin letters and others that look alike.
    Mixed,
}

/// The first of each kind of odd character, with its bytes.
pub(crate) fn odd(raw: &str) -> Vec<(Odd, usize, usize)> {
    let mut out: Vec<(Odd, usize, usize)> = Vec::new();
    let mut put = |kind, start, end| {
        if !out.iter().any(|(known, _, _)| *known == kind) {
            out.push((kind, start, end));
        }
    };
    if let Some(at) = raw.find('\u{1b}') {
        put(Odd::Terminal, at, (at + 2).min(raw.len()).max(at + 1));
    }
    if raw.is_ascii() {
        return out;
    }
    let mut before = '\0';
    let mut word = 0;
    let mut tags = 0;
    for (at, c) in raw.char_indices().chain([(raw.len(), '\0')]) {
        let end = at + c.len_utf8();
        if u32::from(c) >= 0xe0000 && u32::from(c) <= 0xe007f {
            tags += 1;
            // Three to seven make the flag of a region, after a black flag.
            if tags > 7 || before != '\u{1f3f4}' && tags == 1 {
                put(Odd::Tags, at, end);
            }
            continue;
        }
        tags = 0;
        match c {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => put(Odd::Direction, at, end),
            // In emoji and in scripts that need joiners they are as they should be.
            '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' if !before.is_ascii() => {}
            '\u{feff}' if at == 0 => {}
            '\u{fe0f}' | '\u{ad}' => {}
            _ if invisible(c) => put(Odd::Invisible, at, end),
            _ => {}
        }
        if !c.is_alphabetic() {
            if at > word && mixes_scripts(&raw[word..at]) && at - word > 3 {
                put(Odd::Mixed, word, at);
            }
            word = end;
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(raw: &str) -> Vec<&str> {
        regions(raw).iter().map(|r| &raw[r.start..r.end]).collect()
    }

    #[test]
    fn what_is_not_displayed_is_found() {
        assert_eq!(hidden("a <!-- b --> c"), [" b -->"]);
        assert_eq!(hidden("a <p style=\"display:none\">b</p> c"), ["b"]);
        assert_eq!(hidden("<details hidden>x</details>"), ["x"]);
        assert_eq!(hidden("[//]: # (note)\nx"), [" (note)"]);
        assert_eq!(hidden(&format!("a{}b", "\n".repeat(30))), ["b"]);
        assert!(hidden("<p class=\"x\">shown</p>").is_empty());
    }

    #[test]
    fn odd_characters_are_told_from_ordinary_ones() {
        let kinds = |raw: &str| {
            odd(raw)
                .into_iter()
                .map(|(kind, _, _)| kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds("hid\u{200b}den"), [Odd::Invisible]);
        assert_eq!(kinds("a\u{202e}b"), [Odd::Direction]);
        assert_eq!(kinds("a\u{e0041}\u{e0042}b"), [Odd::Tags]);
        assert_eq!(kinds("\u{1b}[8mx"), [Odd::Terminal]);
        assert_eq!(kinds("pаypal"), [Odd::Mixed]);
        assert!(kinds("👩‍💻 ❤️ Übergröße в Москве").is_empty());
    }
}
