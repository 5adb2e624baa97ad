//! Between recorded bytes and those who read them: a terminal, a page, a model.
//!
//! Control characters could move the cursor or rewrite what was printed, format characters
//! could reorder or hide text, invalid UTF-8 could be taken for either: all are shown as
//! escapes.

use std::fmt::Write;

/// The bytes as text that is safe to print, cut after about `limit` characters (0: not cut).
#[must_use]
pub fn text(bytes: &[u8], limit: usize) -> String {
    let mut out = String::with_capacity(bytes.len().min(256));
    let mut left = if limit == 0 { usize::MAX } else { limit };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                out.push('…');
                return out;
            }
            left -= 1;
            push(&mut out, c);
        }
        for byte in chunk.invalid() {
            if left == 0 {
                out.push('…');
                return out;
            }
            left -= 1;
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// JSON text with the same characters as JSON escapes. Outside of strings there are none.
#[must_use]
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && (c.is_control() || is_format(c)) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_control() || is_format(c) => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Characters that are not seen but change what is: general category Cf and the line
/// separators, variation selectors and fillers (Unicode 17, `DerivedGeneralCategory.txt` and
/// `PropList.txt`).
#[must_use]
pub fn is_format(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x34f
        | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
        | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
        | 0xfff0..=0xfffb | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x1bca0..=0x1bca3
        | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(text(b"\x1b[2Jx\x07\r\n\t", 0), "\\u{1b}[2Jx\\u{7}\\r\\n\\t");
        assert_eq!(
            text("a\u{202e}b\u{200b}c\u{e0041}\u{9b}".as_bytes(), 0),
            "a\\u{202e}b\\u{200b}c\\u{e0041}\\u{9b}"
        );
        assert_eq!(text(b"\xff\xfeok \xf0\x9f", 0), "\\xff\\xfeok \\xf0\\x9f");
    }

    #[test]
    fn json_stays_json() {
        let text = "{\"a\":\"x\u{7f}\u{9b}\u{e0041}é\"}\n";
        let escaped = json(text);
        assert_eq!(escaped, "{\"a\":\"x\\u007f\\u009b\\udb40\\udc41é\"}\n");
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&escaped), same(text));
    }

    #[test]
    fn ordinary_text_is_as_it_was_and_long_text_is_cut() {
        assert_eq!(text("é 😀 漢".as_bytes(), 0), "é 😀 漢");
        assert_eq!(text("abcdef".as_bytes(), 3), "abc…");
        assert_eq!(text("abc".as_bytes(), 3), "abc");
    }
}
