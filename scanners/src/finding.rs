//! What is reported, and how bad it is.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How bad a finding is. *Flagged* means medium or above; below that it is shown on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// A sign that harmless texts have too.
    Low,
    /// Likely meant to steer the model.
    Medium,
    /// Meant to steer the model to something harmful.
    High,
    /// As high, and hidden as well.
    Critical,
}

impl Severity {
    /// Its name, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How sure a rule is of what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Harmless texts often look so.
    Low,
    /// Harmless texts seldom look so.
    Medium,
    /// Next to no harmless text looks so.
    High,
}

/// What kind of text was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A tool's, prompt's or parameter's name.
    Name,
    /// Text that describes something: descriptions, titles, annotations, a server's instructions.
    Description,
    /// A value in a schema: default, enum, const, example, pattern.
    Value,
    /// The text of a tool's result, a resource, a prompt's message or an error.
    Result,
    /// The arguments of a call.
    Call,
}

/// Something that a scan reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable code, such as `AT1001`; `explain` tells what it means.
    pub code: &'static str,
    /// What it says, in a few words.
    pub title: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// The server, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool, where it is about one; its name is cut after 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The kind of text.
    pub place: Place,
    /// JSON pointer of the string (RFC 6901), from the tool or message that was given; empty
    /// where that was a bare text. Keys of more than 200 bytes are cut and end in `…`.
    pub pointer: String,
    /// First byte of the place in the string as it was, escapes of JSON resolved.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// What stands there, escaped for display, cut after 240 characters.
    pub quote: String,
    /// What was read there, where it was encoded or not visible; escaped as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoded: Option<String>,
}

impl Finding {
    /// Whether it is reported without being asked for.
    #[must_use]
    pub fn flagged(&self) -> bool {
        self.severity >= Severity::Medium
    }
}

/// How many characters are quoted.
const QUOTED: usize = 240;

/// A text with all that is not seen, or that steers a terminal, as escapes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(QUOTED));
    for (count, c) in text.chars().enumerate() {
        if count == QUOTED {
            out.push('…');
            break;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control()
                || crate::view::invisible(c)
                || matches!(c, '\u{2028}' | '\u{2029}') =>
            {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_shows_what_is_not_seen() {
        assert_eq!(
            escaped("a\u{200b}b\u{1b}[8m\n\u{e0041}é"),
            "a\\u{200b}b\\u{1b}[8m\\n\\u{e0041}é"
        );
        assert_eq!(escaped(&"x".repeat(300)).chars().count(), 241);
    }
}
