//! Recorded bytes in answers.
//!
//! A model reads them, and what shows its answer may draw them: so characters that are not seen
//! or that steer are shown as `\u{...}`, and so is one character of everything that would become
//! a link or a picture. Line breaks and tabs stay, JSON escapes them.

use agent_trace_analysis::escape::is_format;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write;

/// Bytes of a name.
pub(crate) const NAME: usize = 100;
/// Bytes of a line that is quoted.
pub(crate) const LINE: usize = 300;

/// Text that others wrote, made safe to show. It stands under members named `recorded` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Text(String);

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl Text {
    /// These bytes, cut to so many bytes of what is shown.
    pub(crate) fn of(bytes: impl AsRef<[u8]>, limit: usize) -> Self {
        let mut out = String::new();
        for chunk in bytes.as_ref().utf8_chunks() {
            let text = chunk.valid();
            for (at, c) in text.char_indices() {
                if out.len() >= limit {
                    out.push('…');
                    return Self(out);
                }
                let is_hidden = (c != '\n' && c != '\t' && c.is_control()) || is_format(c);
                if is_hidden || links(&text[..at], &text[at..]) {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                } else {
                    out.push(c);
                }
            }
            for byte in chunk.invalid() {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
        Self(out)
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    /// What stands in place of text that is not shown unasked.
    pub(crate) fn withheld() -> Self {
        Self(
            "(withheld: flagged by a scan, see mcp_scan; get_step with include_flagged shows it)"
                .into(),
        )
    }

    /// A name.
    pub(crate) fn name(name: impl AsRef<[u8]>) -> Self {
        Self::of(name, NAME)
    }

    /// A line.
    pub(crate) fn line(line: impl AsRef<[u8]>) -> Self {
        Self::of(line, LINE)
    }
}

/// Elements that load, link or run something.
const ELEMENTS: [&str; 20] = [
    "a", "audio", "base", "body", "button", "embed", "form", "frame", "iframe", "image", "img",
    "input", "link", "math", "meta", "object", "script", "style", "svg", "video",
];

/// Whether the character that `rest` begins with makes a link or a picture, after what is
/// `before` it: `://`, the `](` and `]:` of Markdown, `www.`, `mailto:`, a `//` after `="`, the
/// `<` of an element that loads something or of an address in angle brackets.
fn links(before: &str, rest: &str) -> bool {
    let ends = |end: &str| {
        let from = before.len().checked_sub(end.len());
        let tail = from.and_then(|from| before.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    match rest.as_bytes().first() {
        Some(b'/') => ends(":/") || ends("\"/") || ends("'/"),
        Some(b'(') => ends("]"),
        Some(b'.') => ends("www"),
        Some(b':') => ends("]") || ends("mailto"),
        Some(b'<') => {
            let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
            let rest = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len()).min(40);
            let name = rest.get(..end).unwrap_or_default();
            let is_element = ELEMENTS
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known));
            is_element || (name.len() > 1 && rest[name.len()..].starts_with(':'))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        Text::of(text, 1_000).0
    }

    #[test]
    fn what_steers_or_hides_is_shown() {
        assert_eq!(text("a\u{1b}[2J\u{202e}b\r"), "a\\u{1b}[2J\\u{202e}b\\u{d}");
        assert_eq!(text("tag \u{e0041}"), "tag \\u{e0041}");
        assert_eq!(text("two\n\tlines"), "two\n\tlines");
        assert_eq!(Text::of(b"\xffok", 9).0, "\\xffok");
    }

    #[test]
    fn nothing_is_a_link() {
        for (link, shown) in [
            ("https://evil.example/x", "https:/\\u{2f}evil.example/x"),
            ("[see](/x)", "[see]\\u{28}/x)"),
            ("WWW.evil.example", "WWW\\u{2e}evil.example"),
            ("mailto:a@b.example", "mailto\\u{3a}a@b.example"),
            ("x=\"//evil.example\"", "x=\"/\\u{2f}evil.example\""),
            ("<img src=//e/p.png>", "\\u{3c}img src=//e/p.png>"),
            ("<tel:123>", "\\u{3c}tel:123>"),
            ("<javascript:alert>", "\\u{3c}javascript:alert>"),
            ("[y]: //evil.example", "[y]\\u{3a} //evil.example"),
        ] {
            assert_eq!(text(link), shown);
        }
        let code = "a // b: Vec<u8> = x[0](1); ww.w C:\\dir <T as A>";
        assert_eq!(
            text(code),
            "a // b: Vec<u8> = x[0]\\u{28}1); ww.w C:\\dir <T as A>"
        );
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(Text::of("abcdef", 3).0, "abc…");
    }
}
