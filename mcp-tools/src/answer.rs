//! What fits in an answer, and what is said of the rest.
//!
//! Clients cut answers that are too long, at places of their choosing, or refuse them. So an
//! answer has a budget in bytes: what does not fit is left out as a whole, named, and can be
//! asked for.

use crate::text::Text;
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;

/// Bytes of an answer unless that is set.
pub const BYTES: usize = 32 << 10;
/// The least that can be set: what stands around an answer needs some.
pub const LEAST: usize = 24 << 10;
/// What is told of what cannot be read, at most.
const WARNED: usize = 2 << 10;
/// What stands around an answer, and warnings.
const AROUND: usize = (1 << 10) + WARNED;

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Cut {
    /// What was left out, in words.
    pub(crate) what: String,
    /// How to get it.
    pub(crate) get: String,
}

impl Cut {
    pub(crate) fn new(what: impl Into<String>, get: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            get: get.into(),
        }
    }
}

/// What could not be read to answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Warnings {
    /// How much there is.
    count: usize,
    recorded: WarningsText,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
struct WarningsText {
    /// The first of it, in one line each.
    lines: Vec<Text>,
}

impl Warnings {
    /// These lines, as many as there is always room for; none where there are none.
    pub(crate) fn of<'a>(lines: impl ExactSizeIterator<Item = &'a String>) -> Option<Self> {
        let mut budget = Budget { left: WARNED - 100 };
        let count = lines.len();
        let (lines, _) = budget.fill(lines.map(Text::line));
        let recorded = WarningsText { lines };
        (count > 0).then_some(Self { count, recorded })
    }
}

/// What is left of an answer's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            left: bytes.saturating_sub(AROUND),
        }
    }

    /// Whether this fits; then it is taken.
    pub(crate) fn takes(&mut self, part: &impl Serialize) -> bool {
        let cost = cost(part);
        let fits = cost <= self.left;
        if fits {
            self.left -= cost;
        }
        fits
    }

    /// Keeps so many bytes of what is left for something else.
    pub(crate) fn set_aside(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        Self { left: bytes }
    }

    /// Takes from the front of a list what fits, and tells how many do not.
    pub(crate) fn fill<T: Serialize>(
        &mut self,
        all: impl IntoIterator<Item = T>,
    ) -> (Vec<T>, usize) {
        let (taken, _, left) = self.fill_or(all, |_| {});
        (taken, left)
    }

    /// The same, where an item that does not fit is first made smaller. Tells how many were, and
    /// how many still do not fit. The first item always fits once it is small.
    pub(crate) fn fill_or<T: Serialize>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        shrink: impl Fn(&mut T),
    ) -> (Vec<T>, usize, usize) {
        let mut all = all.into_iter();
        let (mut taken, mut shrunk) = (Vec::new(), 0);
        while let Some(mut one) = all.next() {
            if !self.takes(&one) {
                shrink(&mut one);
                if !self.takes(&one) {
                    return (taken, shrunk, 1 + all.count());
                }
                shrunk += 1;
            }
            taken.push(one);
        }
        (taken, shrunk, 0)
    }

    /// What was set aside and not taken.
    pub(crate) fn give_back(&mut self, rest: Self) {
        self.left += rest.left;
    }

    /// How many bytes of text are left.
    pub(crate) fn text(&self) -> usize {
        self.left
    }
}

/// How many bytes a part takes of an answer: it stands there twice, as JSON and as JSON in a
/// string.
pub(crate) fn cost(part: &impl Serialize) -> usize {
    let text = serde_json::to_string(part).unwrap_or_default();
    let escaped = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    2 * text.len() + escaped + 2
}

/// Bytes of an error's message.
const MESSAGE: usize = 1_000;

/// For members that are left out where they say nothing.
pub(crate) fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Why a tool has no answer. The words are ours, or the caller's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ToolError {
    /// What is wrong, in one word.
    pub(crate) error: &'static str,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// In how many seconds to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<u32>,
}

impl ToolError {
    /// The message may hold words of the caller's, who may have them from a recording.
    pub(crate) fn new(error: &'static str, message: impl AsRef<str>) -> Self {
        Self {
            error,
            message: Text::of(message.as_ref(), MESSAGE).into_string(),
            hint: None,
            retry_after: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same as what a tool answers: a model reads it.
    pub(crate) fn result(&self) -> CallToolResult {
        let text = serde_json::to_string(self).unwrap_or_default();
        CallToolResult::error(vec![ContentBlock::text(text)])
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn warnings_have_their_room() {
        assert!(Warnings::of([].iter()).is_none());
        let lines = vec!["\"\u{202e}".repeat(1_000); 1_000];
        let warnings = Warnings::of(lines.iter()).unwrap();
        assert_eq!(warnings.count, 1_000);
        assert!(!warnings.recorded.lines.is_empty());
        assert!(cost(&warnings) <= WARNED, "{}", cost(&warnings));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut budget = Budget::new(AROUND + 50);
        let (taken, left) = budget.fill(["\"aaaaa\""; 9]);
        assert_eq!(taken.len() + left, 9);
        let twice = serde_json::to_string(&serde_json::to_string(&taken).unwrap_or_default());
        assert!(twice.unwrap_or_default().len() <= 50 && !taken.is_empty());
    }
}
