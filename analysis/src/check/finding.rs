//! What is reported.

use super::rule::{Party, Severity};
use serde::Serialize;

/// How many bytes of a recording are quoted.
const QUOTED: usize = 240;

/// Something that is wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that found it.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Whose doing it is.
    pub party: Party,
    /// What is wrong, in a line. It may hold names from the recording.
    pub what: String,
    /// Position of the session among those of the run.
    pub session: usize,
    /// What that session's server is called.
    pub server: String,
    /// The step, where it is about one.
    pub step: Option<usize>,
    /// The tool that the step calls.
    pub tool: Option<String>,
    /// What shows it, as it was recorded; empty where nothing does.
    pub quote: Quote,
    /// What tells it from other findings, and is the same in another run.
    pub key: String,
}

/// A piece of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quote {
    /// Its bytes; what is no UTF-8 is U+FFFD.
    pub text: String,
    /// Whether only the beginning is here.
    pub cut: bool,
}

impl Quote {
    /// The beginning of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut end = bytes.len().min(QUOTED);
        // Not in the middle of a character.
        while end < bytes.len() && end > QUOTED - 4 && bytes[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        Self {
            text: String::from_utf8_lossy(&bytes[..end]).into_owned(),
            cut: end < bytes.len(),
        }
    }

    /// Whether there is nothing to quote.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_exact_and_bounded() {
        assert_eq!(Quote::of(b"{\"a\":1.0}").text, "{\"a\":1.0}");
        let long = "é".repeat(200);
        let quote = Quote::of(long.as_bytes());
        assert!(quote.cut && long.starts_with(&quote.text), "{quote:?}");
        assert_eq!(quote.text.len(), 240);
        let shifted = format!("x{long}");
        let quote = Quote::of(shifted.as_bytes());
        assert!(quote.cut && shifted.starts_with(&quote.text), "{quote:?}");
        // Bytes that are no text do not make it walk back to nothing.
        assert!(Quote::of(&[0x80; 500]).text.len() > 200);
    }
}
