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
pub(crate) const NAME: usize = 120;
/// Bytes of a line that is quoted.
pub(crate) const LINE: usize = 400;

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
        // What a link is told by needs the characters before.
        let mut tail = Tail::default();
        for chunk in bytes.as_ref().utf8_chunks() {
            for c in chunk.valid().chars() {
                if out.len() >= limit {
                    out.push('…');
                    return Self(out);
                }
                let acts = tail.push(c);
                if acts || (c != '\n' && c != '\t' && c.is_control()) || is_format(c) {
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

/// The last characters, in lower case.
#[derive(Default)]
struct Tail([char; 4]);

impl Tail {
    /// Whether this character, after those before, makes a link of what follows: `://`, the
    /// `](` of Markdown, `www.`, `mailto:`, and a `//` after `="` or `='`.
    fn push(&mut self, c: char) -> bool {
        let [a, b, d, e] = self.0;
        let c = c.to_ascii_lowercase();
        self.0 = [b, d, e, c];
        match c {
            '/' => e == '/' && matches!(d, ':' | '"' | '\''),
            '(' => e == ']',
            '.' => [b, d, e] == ['w'; 3],
            ':' => [a, b, d, e] == ['i', 'l', 't', 'o'],
            _ => false,
        }
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
            (
                "<img src=\"//evil.example\">",
                "<img src=\"/\\u{2f}evil.example\">",
            ),
        ] {
            assert_eq!(text(link), shown);
        }
        let code = "a // b: Vec<u8> = x[0](1); ww.w C:\\dir http";
        assert_eq!(
            text(code),
            "a // b: Vec<u8> = x[0]\\u{28}1); ww.w C:\\dir http"
        );
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(Text::of("abcdef", 3).0, "abc…");
    }
}
