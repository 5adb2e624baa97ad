//! Quotes: where they stand, and the proof that they stand there.

use super::result::{Quote, Quoted, Side};
use super::walk;
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;
use std::ops::Range;

/// Bytes of a quote at most.
pub(super) const LENGTH: usize = 200;

/// A place in a message that may become a quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The sibling that it is in; none for the run itself.
    pub(super) sibling: Option<usize>,
    /// Position of the step.
    pub(super) at: usize,
    pub(super) side: Side,
    pub(super) range: Range<usize>,
}

impl Spot {
    /// A place in the run itself.
    pub(super) fn new(at: usize, side: Side, range: Range<usize>) -> Self {
        Self {
            sibling: None,
            at,
            side,
            range,
        }
    }

    /// All of a message, or of a part of it.
    pub(super) fn of(at: usize, step: &Step, side: Side, part: &[u8]) -> Option<Self> {
        let range = range_in(text(step, side)?, part)?;
        Some(Self::new(at, side, range))
    }

    pub(super) fn in_sibling(mut self, sibling: usize) -> Self {
        self.sibling = Some(sibling);
        self
    }

    /// The quote, unless there is no such place, or no text at it.
    pub(super) fn quote(&self, story: &Story) -> Option<Quote> {
        let step = story.steps.get(self.at)?;
        let message = text(step, self.side)?;
        let range = trimmed(message, self.range.clone())?;
        let said = str::from_utf8(message.get(range.clone())?).ok()?;
        Some(Quote {
            run: self.sibling.map(|_| story.id.to_string()),
            step: step.number,
            message: self.side,
            offset: range.start,
            length: range.len(),
            recorded: Quoted {
                pointer: walk::pointer_at(message, range.start),
                text: said.to_owned(),
            },
        })
    }
}

impl Quote {
    /// Whether it is word for word what is stored in this run.
    #[must_use]
    pub fn stands_in(&self, story: &Story) -> bool {
        let message = story
            .step(self.step)
            .and_then(|step| text(step, self.message));
        let end = self.offset.checked_add(self.length);
        let stored = message.zip(end);
        let stored = stored.and_then(|(message, end)| message.get(self.offset..end));
        !self.recorded.text.is_empty() && stored == Some(self.recorded.text.as_bytes())
    }
}

/// The stored text of a message.
pub(super) fn text(step: &Step, side: Side) -> Option<&[u8]> {
    let message = match side {
        Side::Request => &step.request,
        Side::Response => &step.response,
    };
    message.as_ref().map(|message| &message.text[..])
}

/// Where a part of a text stands in it.
pub(super) fn range_in(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

/// At most so much of it as a quote has, in whole characters.
fn trimmed(text: &[u8], range: Range<usize>) -> Option<Range<usize>> {
    let inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let mut start = range.start;
    while inside(start) && start < range.end {
        start += 1;
    }
    let mut end = range.end.min(text.len()).min(start + LENGTH);
    while inside(end) && end > start {
        end -= 1;
    }
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tale;

    #[test]
    fn quotes_are_what_is_stored() {
        let story = Tale::new()
            .call("read", r#"{"id":"Höhle 8213"}"#)
            .text(&"ä".repeat(500))
            .told();
        let text = text(&story.steps[0], Side::Request).unwrap();
        let range = walk::locate(text, "/params/arguments/id").unwrap();
        let quote = Spot::new(0, Side::Request, range).quote(&story).unwrap();
        assert_eq!(quote.recorded.text, "\"Höhle 8213\"");
        assert_eq!(quote.recorded.pointer, "/params/arguments/id");
        assert_eq!(
            &text[quote.offset..quote.offset + quote.length],
            quote.recorded.text.as_bytes()
        );
        // Cut, and in whole characters, wherever it begins.
        let response = super::text(&story.steps[0], Side::Response).unwrap();
        let first = response.iter().position(|b| *b >= 0x80).unwrap();
        let spot = Spot::new(0, Side::Response, first + 1..response.len());
        let quote = spot.quote(&story).unwrap();
        assert_eq!(quote.length, LENGTH);
        assert!(quote.recorded.text.chars().all(|c| c == 'ä'));
    }

    #[test]
    fn what_is_not_stored_is_no_quote() {
        let story = Tale::new().call("read", "{}").text("x").told();
        for range in [0..0, 10_000..10_010] {
            assert_eq!(Spot::new(0, Side::Response, range).quote(&story), None);
        }
        assert_eq!(Spot::new(7, Side::Response, 0..4).quote(&story), None);
        let mut quote = Spot::new(0, Side::Response, 0..4).quote(&story).unwrap();
        assert!(quote.stands_in(&story));
        quote.recorded.text = "{\"js".to_owned() + "x";
        assert!(!quote.stands_in(&story));
    }
}
