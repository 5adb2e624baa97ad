//! Where values appeared first.

use super::Likeness;
use super::said::{Part, Said};
use super::values::{self, Kind, LENGTH, Wanted};
use crate::quote;
use crate::scalars::{Place, Spot, Value};
use aho_corasick::AhoCorasick;

/// Characters of a quote.
const QUOTE: usize = 120;

/// How often a long value is compared with what begins like it.
const COMPARISONS: u32 = 32;

/// How many places in texts are looked at where a value may stand. Values that begin like one
/// another stand at the same place, so there could be thousands of them at each byte.
const PLACES: usize = 20_000_000;

/// Where a value appeared.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Position of the piece.
    pub(super) piece: usize,
    pub(super) at: Place,
    pub(super) likeness: Likeness,
    pub(super) quote: String,
}

/// The first appearances of values by their numbers.
#[derive(Debug)]
pub(super) struct Index {
    /// Surely the value.
    sure: Vec<Option<Found>>,
    /// Perhaps by chance.
    perhaps: Vec<Option<Found>>,
    /// From which piece on texts were not searched for it any more.
    searched: Vec<usize>,
}

impl Index {
    /// Where a value appeared before this piece. Where it was surely given counts more than a
    /// place where it may stand by chance, but not where it was used only: the word in a text
    /// before that may be where it was taken from.
    pub(super) fn of(&self, said: &[Said<'_>], number: usize, piece: usize) -> Option<&Found> {
        let before = |found: &&Found| found.piece < piece;
        let sure = self.sure[number].as_ref().filter(before);
        let perhaps = self.perhaps[number].as_ref().filter(before);
        match (sure, perhaps) {
            (Some(sure), Some(perhaps)) => {
                let is_used = said[sure.piece].part.is_taken();
                let first = is_used && perhaps.piece < sure.piece;
                Some(if first { perhaps } else { sure })
            }
            (sure, perhaps) => sure.or(perhaps),
        }
    }

    /// Whether every text before this piece was searched for a value.
    pub(super) fn is_searched(&self, number: usize, piece: usize) -> bool {
        self.searched[number] >= piece
    }
}

/// Looks for the first appearance of each value that is wanted.
pub(super) fn first(said: &[Said<'_>], wanted: &Wanted) -> Index {
    first_within(said, wanted, PLACES)
}

fn first_within(said: &[Said<'_>], wanted: &Wanted, places: usize) -> Index {
    let automaton = automaton(wanted);
    let mut searched = vec![0; wanted.count];
    if automaton.is_some() {
        for (_, number) in &wanted.inside {
            searched[*number] = usize::MAX;
        }
    }
    let mut search = Search {
        wanted,
        automaton,
        compared: vec![0; wanted.inside.len()],
        places,
        index: Index {
            sure: vec![None; wanted.count],
            perhaps: vec![None; wanted.count],
            searched,
        },
    };
    for (at, piece) in said.iter().enumerate() {
        values::each(piece, &mut |spot, value| {
            search.look(at, piece.part, spot, value);
        });
    }
    search.index
}

/// Finds the beginnings of all values in one pass. None if there are none, or more than the
/// automaton has room for: then only whole values are found.
fn automaton(wanted: &Wanted) -> Option<AhoCorasick> {
    let beginnings = wanted.inside.iter();
    let beginnings = beginnings.map(|(text, _)| &text[..text.len().min(LENGTH)]);
    AhoCorasick::new(beginnings)
        .ok()
        .filter(|_| !wanted.inside.is_empty())
}

struct Search<'a> {
    wanted: &'a Wanted,
    automaton: Option<AhoCorasick>,
    compared: Vec<u32>,
    /// How many more are looked at.
    places: usize,
    index: Index,
}

impl Search<'_> {
    fn look(&mut self, piece: usize, part: Part, spot: &Spot<'_>, value: &Value<'_>) {
        if let Some(number) = self.wanted.whole(spot, value)
            && self.index.sure[number].is_none()
        {
            self.index.sure[number] = Some(Found {
                piece,
                at: spot.place(),
                likeness: Likeness::Same,
                quote: quote::head(value.content(), QUOTE),
            });
        }
        // The values of a document follow; what is short is looked for as a whole only.
        let Value::String(text) = value else {
            return;
        };
        if Kind::of(spot, value) == Kind::Distinct {
            self.look_inside(piece, part, spot, text);
        }
    }

    fn look_inside(&mut self, piece: usize, part: Part, spot: &Spot<'_>, text: &[u8]) {
        let Some(automaton) = &self.automaton else {
            return;
        };
        for found in automaton.find_overlapping_iter(text) {
            if self.places == 0 {
                let searched = self.index.searched.iter_mut();
                searched.for_each(|until| *until = piece.min(*until));
                self.automaton = None;
                return;
            }
            self.places -= 1;
            let pattern = found.pattern().as_usize();
            let (value, number) = &self.wanted.inside[pattern];
            if self.index.sure[*number].is_some() {
                continue;
            }
            let (start, end) = (found.start(), found.start() + value.len());
            if value.len() > LENGTH {
                if self.compared[pattern] == COMPARISONS {
                    let until = &mut self.index.searched[*number];
                    *until = piece.min(*until);
                    continue;
                }
                self.compared[pattern] += 1;
                if !text[start..].starts_with(value) {
                    continue;
                }
            }
            if !stands_alone(text, start, end) {
                continue;
            }
            let unlikely = values::is_unlikely(value);
            let (place, likeness) = match unlikely {
                true => (&mut self.index.sure[*number], Likeness::Inside),
                false if part == Part::Definition => continue,
                false => (&mut self.index.perhaps[*number], Likeness::Word),
            };
            place.get_or_insert_with(|| Found {
                piece,
                at: spot.place(),
                likeness,
                quote: quote::around(text, start..end, QUOTE),
            });
        }
    }
}

/// Whether a piece of a text is not a part of a longer word or number.
fn stands_alone(text: &[u8], start: usize, end: usize) -> bool {
    let word = |at: usize| {
        text.get(at)
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let point = |at: usize| matches!(text.get(at), Some(b'.' | b','));
    let goes_on = word(end) || digit(end - 1) && point(end) && digit(end + 1);
    let after = !(word(end - 1) && goes_on);
    let began = start > 0
        && (word(start - 1) || start > 1 && digit(start) && point(start - 1) && digit(start - 2));
    after && !(word(start) && began)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tale;

    #[test]
    fn values_that_begin_alike_cost_no_more_than_is_set() {
        // Thousands of values begin at each of a million bytes.
        let begin = "a".repeat(LENGTH);
        let mut tale = Tale::new().call("read", "{}").text(&"a".repeat(1_000_000));
        for number in 0..4_000 {
            tale = tale
                .call("write", &format!("{{\"text\":\"{begin} {number:04}\"}}"))
                .text("done");
        }
        let story = tale.told();
        let said = crate::why::said::all(&story);
        let wanted = Wanted::of(&said, story.steps.len() - 1);
        let begun = std::time::Instant::now();
        let index = first(&said, &wanted);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
        let number = wanted.word(format!("{begin} 3999").as_bytes()).unwrap();
        assert!(!index.is_searched(number, said.len() - 1));
        // Little of it is enough for the rest of the run.
        let index = first_within(&said, &wanted, 100);
        assert!(!index.is_searched(number, said.len() - 1));
        assert!(index.sure[number].is_some(), "whole values are found");
    }

    #[test]
    fn a_word_ends_where_letters_and_digits_do() {
        for (text, alone) in [
            ("8213", true),
            ("#8213.", true),
            ("id=8213,x", true),
            ("18213", false),
            ("8213x", false),
            ("8213_", false),
            ("8213.5", false),
            ("1,8213", false),
            ("é8213é", true),
        ] {
            let start = text.find("8213").unwrap();
            assert_eq!(
                stands_alone(text.as_bytes(), start, start + 4),
                alone,
                "{text}"
            );
        }
    }
}
