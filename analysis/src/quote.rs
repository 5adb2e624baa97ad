//! Short exact pieces of what was recorded. They are as hostile as the whole: whoever prints
//! one escapes it.

use std::ops::Range;

/// The beginning of a text, at most so many characters; what is no UTF-8 becomes U+FFFD.
#[must_use]
pub fn head(text: &[u8], limit: usize) -> String {
    around(text, 0..0, limit)
}

/// A piece of a text with what is around it, about `limit` characters in all. An ellipsis
/// stands where something was left out.
#[must_use]
pub fn around(text: &[u8], piece: Range<usize>, limit: usize) -> String {
    let room = limit.saturating_sub(piece.len()) / if piece.start == 0 { 1 } else { 2 };
    let start = boundary(text, piece.start.saturating_sub(room));
    // Four bytes are the longest character.
    let end = (start + 4 * limit + 4).min(text.len());
    let shown = String::from_utf8_lossy(&text[start..end]);
    let mut quote = String::new();
    if start > 0 {
        quote.push('…');
    }
    let mut characters = shown.chars();
    quote.extend(characters.by_ref().take(limit));
    if characters.next().is_some() || end < text.len() {
        quote.push('…');
    }
    quote
}

/// The first offset from `at` on that is not inside of a character.
fn boundary(text: &[u8], at: usize) -> usize {
    let inside = |byte: &&u8| **byte & 0xC0 == 0x80;
    at + text[at..].iter().take(3).take_while(inside).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_whole_characters() {
        assert_eq!(head("äöü".as_bytes(), 2), "äö…");
        assert_eq!(head("äöü".as_bytes(), 3), "äöü");
        let text = "a long text in which Höhle 8213 stands somewhere".as_bytes();
        let at = text.windows(4).position(|w| w == b"8213").unwrap();
        assert_eq!(around(text, at..at + 4, 20), "… Höhle 8213 stands s…");
        assert_eq!(around(text, 0..6, 10), "a long tex…");
        assert_eq!(around(b"", 0..0, 10), "");
        assert_eq!(head(b"\xff\xfe", 10), "\u{fffd}\u{fffd}");
    }
}
