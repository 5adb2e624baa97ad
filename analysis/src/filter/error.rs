//! What is wrong with a filter, and where.

/// How many characters of a filter are shown around what is wrong with it.
const SHOWN: usize = 72;

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (column {column})")]
pub struct FilterError {
    /// What is wrong, and what was expected: a lower-case fragment.
    pub what: String,
    /// Offset in the text of the byte where it is wrong; its length where something is missing
    /// at the end.
    pub at: usize,
    /// The same in characters, from 1.
    pub column: usize,
    /// The characters that are wrong, at least one.
    pub width: usize,
    /// What was probably meant.
    pub hint: Option<String>,
    line: String,
    indent: usize,
}

impl FilterError {
    pub(super) fn new(text: &str, at: usize, end: usize, what: impl Into<String>) -> Self {
        let at = floor(text, at);
        let before = text[..at].chars().count();
        let width = text[at..floor(text, end.max(at))].chars().count().max(1);
        // Of a long text the part around the place.
        let skipped = if before > SHOWN / 2 && text.chars().nth(SHOWN).is_some() {
            before - SHOWN / 2
        } else {
            0
        };
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let mut line: String = if skipped > 0 {
            "…".into()
        } else {
            String::new()
        };
        line.extend(text.chars().skip(skipped).take(SHOWN).map(visible));
        if text.chars().nth(skipped + SHOWN).is_some() {
            line.push('…');
        }
        Self {
            what: what.into(),
            at,
            column: before + 1,
            width,
            hint: None,
            line,
            indent: before - skipped + usize::from(skipped > 0),
        }
    }

    pub(super) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The part of the filter where it is wrong, and under it a caret: two lines without a
    /// line end. Characters that would steer a terminal are blank.
    #[must_use]
    pub fn caret(&self) -> String {
        let room = self.line.chars().count().saturating_sub(self.indent).max(1);
        let carets = "^".repeat(self.width.min(room));
        format!("{}\n{}{carets}", self.line, " ".repeat(self.indent))
    }
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
