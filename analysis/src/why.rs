//! Why a step was as it was: the chain of steps whose values flow into it.
//!
//! A value in what a step took (its arguments) *flows* from where it appeared first in the run:
//! in an earlier result, notification or question of the server, in a tool's definition, or in
//! the arguments of an earlier step, by which the assistant or the user brought it in. The steps
//! whose answers it came from have arguments too, and so on.
//!
//! # When two values are the same
//! - A number, or a string of at least four characters, is the same as a whole string or number
//!   with the same text. Numbers are compared by their text: `1.0` is not `1`.
//! - It is also the same where it stands inside a text as whole words: no letter or digit may
//!   follow on one of its own. Where it could stand there by chance (a plain word, a short
//!   number), this is said: see [`Likeness::Word`]. Such words in definitions do not count.
//! - Shorter strings and numbers below 100 count only under a member with the same name
//!   (`"number": 7` and `"number": 7`), and `true`, `false`, `null`, 0, 1, and strings of one
//!   character never: they are everywhere.
//! - Of a string that appeared nowhere as a whole, words that are unlikely by chance are looked
//!   for: those with a digit in them, of four characters and more.
//!
//! `find` looks once at each byte of what was said up to the step, and at a bounded number of
//! places: the time it takes is linear in that. A value that was not looked for everywhere is
//! told as such.
//!
//! - `said`: what was said, piece by piece
//! - `values`: which values are looked for
//! - `find`: where they appeared first

mod find;
mod said;
mod values;

use crate::quote::head;
use crate::scalars::Place;
use agent_trace_model::step::Step;
use agent_trace_model::story::{Session, Story};
use find::{Found, Index};
pub use said::Part;
use said::Said;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet, VecDeque};
use values::{Kind, Wanted};

/// Steps that a chain has at most.
pub const CHAIN: usize = 50;

/// Values of one step that are told at most.
pub const FLOWS: usize = 30;

/// Why a step was as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The step first, then those whose values flow into it, then those whose values flow into
    /// these, ….
    pub chain: Vec<Link>,
    /// How many steps of the chain are left out.
    pub more: usize,
    /// How many messages before the step were not kept whole: a value may have been there.
    pub not_whole: usize,
    /// The servers of which something before the step may be missing in the recording: gaps,
    /// what cannot be read or was removed, and bodies that were kept as digests only.
    pub not_recorded: Vec<String>,
}

impl Why {
    /// Whether everything before the step was recorded, so that what was not found was not
    /// there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.not_whole == 0 && self.not_recorded.is_empty()
    }
}

/// A step and where its values came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The step's number.
    pub step: usize,
    /// Its values.
    pub flows: Vec<Flow>,
    /// How many of its values are left out.
    pub more: usize,
    /// How many of its values are everywhere: true, false, null, 0, 1.
    pub common: usize,
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// What of the step it stands in.
    pub part: Part,
    /// Where in that.
    pub at: Place,
    /// The value, cut; or the word of it that appeared before.
    pub value: String,
    /// Where it appeared first.
    #[serde(flatten)]
    pub source: Source,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Source {
    /// It appeared before.
    Before(Origin),
    /// It appeared nowhere before: whoever said it brought it in.
    Nowhere,
    /// No whole value before was the same. It may stand inside a text: not all of them were
    /// searched for it.
    NotSearched,
    /// It is too short to be told from chance, and did not appear under this name.
    TooShort,
}

/// Where a value appeared first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The number of the step.
    pub step: usize,
    /// What of it.
    pub origin: Part,
    /// Where in that.
    pub origin_at: Place,
    /// How like the two are.
    pub likeness: Likeness,
    /// What stands there, cut.
    pub quote: String,
}

/// How like two values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// They are equal.
    Same,
    /// It stands in a text, and hardly by chance.
    Inside,
    /// It stands in a text as a word: this can be chance.
    Word,
}

/// Why a step was as it was; none if there is no step with this number.
#[must_use]
pub fn of(story: &Story, number: usize) -> Option<Why> {
    let target = story.position(number)?;
    let said = said::all(story);
    // What was said when the last of the step's own parts was.
    let own = said
        .iter()
        .rposition(|piece| piece.step == target && piece.part.is_taken());
    let before = own.map_or(&said[..0], |own| &said[..=own]);
    let wanted = Wanted::of(before, target);
    let index = find::first(before, &wanted);
    let mut taken: Vec<Vec<usize>> = vec![Vec::new(); target.max(story.steps.len())];
    for (at, piece) in before.iter().enumerate() {
        if piece.part.is_taken() {
            taken[piece.step].push(at);
        }
    }
    let mut why = Why {
        chain: Vec::new(),
        more: 0,
        not_whole: not_whole(&story.steps[..target]),
        not_recorded: not_recorded(story, story.steps[target].wall),
    };
    let mut known = HashSet::from([target]);
    let mut next = VecDeque::from([target]);
    while let Some(step) = next.pop_front() {
        if why.chain.len() == CHAIN {
            why.more = next.len() + 1;
            break;
        }
        let mut link = Link {
            step: story.steps[step].number,
            flows: Vec::new(),
            more: 0,
            common: 0,
        };
        let mut causes = BTreeSet::new();
        for at in &taken[step] {
            causes.extend(trace(story, &mut link, before, *at, &wanted, &index));
        }
        why.chain.push(link);
        // The latest first, as one goes back.
        next.extend(
            causes
                .into_iter()
                .rev()
                .filter(|cause| known.insert(*cause)),
        );
    }
    Some(why)
}

/// Tells where the values of a piece came from, and returns the steps that gave them.
fn trace(
    story: &Story,
    link: &mut Link,
    said: &[Said<'_>],
    at: usize,
    wanted: &Wanted,
    index: &Index,
) -> Vec<usize> {
    let piece = &said[at];
    let mut causes = Vec::new();
    values::each(piece, &mut |spot, value| {
        let kind = Kind::of(spot, value);
        if kind == Kind::Common {
            link.common += usize::from(!matches!(value, crate::scalars::Value::Other(_)));
            return;
        }
        let number = wanted.whole(spot, value);
        let whole = number.and_then(|number| index.of(said, number, at));
        let mut sources: Vec<(&[u8], Source)> = Vec::new();
        match whole {
            Some(found) => sources.push((value.content(), origin(story, said, found))),
            None if kind == Kind::Short => sources.push((value.content(), Source::TooShort)),
            None => {
                let words = values::words(value.content());
                let words = words.filter_map(|word| {
                    let found = index.of(said, wanted.word(word)?, at)?;
                    Some((word, found))
                });
                sources.extend(words.map(|(word, found)| (word, origin(story, said, found))));
                if sources.is_empty() {
                    let searched = number.is_some_and(|number| index.is_searched(number, at));
                    let source = match searched {
                        true => Source::Nowhere,
                        false => Source::NotSearched,
                    };
                    sources.push((value.content(), source));
                }
            }
        }
        for (shown, source) in sources {
            if link.flows.len() == FLOWS {
                link.more += 1;
                continue;
            }
            if let Source::Before(origin) = &source
                && origin.origin.is_given()
            {
                causes.extend(story.position(origin.step));
            }
            link.flows.push(Flow {
                part: piece.part,
                at: spot.place(),
                value: head(shown, 120),
                source,
            });
        }
    });
    causes
}

fn origin(story: &Story, said: &[Said<'_>], found: &Found) -> Source {
    let piece = &said[found.piece];
    Source::Before(Origin {
        step: story.steps[piece.step].number,
        origin: piece.part,
        origin_at: found.at.clone(),
        likeness: found.likeness,
        quote: found.quote.clone(),
    })
}

fn not_whole(steps: &[Step]) -> usize {
    let messages = steps
        .iter()
        .flat_map(|step| [&step.request, &step.response]);
    messages
        .flatten()
        .filter(|message| !message.is_whole())
        .count()
}

/// The servers of which something may be missing before this time, each once.
fn not_recorded(story: &Story, wall: u64) -> Vec<String> {
    let lacks = |session: &&Session| {
        session.started <= wall
            && (session.gaps.iter().any(|gap| gap.wall <= wall)
                || !session.is_whole()
                || session.clipped
                || session.digested)
    };
    let servers = story.sessions.iter().filter(lacks);
    let servers: BTreeSet<&str> = servers.map(|session| &session.server[..]).collect();
    servers
        .into_iter()
        .map(|name| head(name.as_bytes(), 60))
        .collect()
}

#[cfg(test)]
mod tests;
