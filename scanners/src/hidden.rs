//! What is in a text and not seen by whoever reads it: comments, elements that are not
//! displayed, text pushed out of sight, and characters that hide or reorder others.

use crate::view::{invisible, mixes_scripts};

/// A part of a text that is not displayed, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// No more than this is taken of a comment or element that is never closed, or of what comes
/// after a gap; and of an opening tag.
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
    let mut comments = Ends::new(b"-->");
    let mut elements = Ends::new(b"</");
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|b| matches!(b, b'<' | b'[')) {
        let start = at + found;
        at = start + 1;
        let rest = &bytes[start..];
        let unclosed = bytes.len().min(start + LONGEST);
        if rest.starts_with(b"<!--") {
            let end = comments.after(bytes, start).map(|end| end + 3);
            at = end.unwrap_or(unclosed);
            out.push(region(raw, start + 4, at));
        } else if rest.starts_with(b"[//]: #") || rest.starts_with(b"[comment]: #") {
            let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            at = start + length;
            out.push(region(raw, start + 7, at));
        } else if rest[0] == b'<' && rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            // Another tag begins where this one did not end: each byte is looked at once.
            let mut tag = rest.iter().take(LONGEST).skip(1);
            let tag = tag.position(|b| matches!(b, b'>' | b'<')).map(|at| at + 1);
            if let Some(tag) = tag
                && rest[tag] == b'>'
                && unseen(&rest[..tag])
            {
                let end = elements.after(bytes, start + tag);
                at = end.unwrap_or(unclosed).max(start + tag + 1);
                out.push(region(raw, start + tag + 1, at));
            }
        }
    }
    pushed_away(raw, &mut out);
    out
}

/// Where a mark stands next. A mark that is nowhere is looked for once.
struct Ends {
    mark: &'static [u8],
    none: bool,
}

impl Ends {
    fn new(mark: &'static [u8]) -> Self {
        Self { mark, none: false }
    }

    fn after(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        if self.none {
            return None;
        }
        let found = find(&bytes[at..], self.mark).map(|found| at + found);
        self.none = found.is_none();
        found
    }
}

/// Text after so many blanks or empty lines that it is out of sight.
fn pushed_away(raw: &str, out: &mut Vec<Region>) {
    let bytes = raw.as_bytes();
    let mut gaps: Vec<(usize, usize)> = Vec::new();
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
        if (lines >= 20 || (lines == 0 && blanks >= 120)) && at < bytes.len() {
            // What comes after the next gap is not said twice.
            if let Some(last) = gaps.last_mut() {
                *last = (last.0, last.1.min(start));
            }
            gaps.push((at, bytes.len().min(at + LONGEST)));
        }
    }
    out.extend(gaps.into_iter().map(|(start, end)| region(raw, start, end)));
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
        let style = format!("<p class=\"{}\" hidden>b</p>", "x".repeat(1000));
        assert_eq!(hidden(&style), ["b"]);
        let long = format!("<!--{}-->", "x".repeat(10_000));
        assert_eq!(hidden(&long)[0].len(), 10_003);
    }

    #[test]
    fn many_comments_are_no_way_out() {
        let text = format!("{}<!-- last -->", "<!-- x -->".repeat(2000));
        assert_eq!(hidden(&text).last(), Some(&" last -->"));
    }

    /// With work for each opening that grows with the text this would not end.
    #[test]
    fn what_is_never_closed_costs_little() {
        for piece in ["<a", "<!--", "<p hidden>", "<p hidden", "[//]: #"] {
            let _ = regions(&piece.repeat(4_000_000 / piece.len()));
        }
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
