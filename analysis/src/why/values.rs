//! Which values are looked for.

use super::said::{Part, Said};
use crate::scalars::{self, Spot, Value};
use std::collections::HashMap;

/// What is longer is looked for by its beginning.
pub(super) const LENGTH: usize = 200;

/// Bytes of all values that are looked for inside texts. Steps that are nearer to the one that
/// is asked about come first.
const BYTES: usize = 1 << 20;

/// Words of one string that are looked for.
const WORDS: usize = 32;

/// How a value is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anywhere.
    Distinct,
    /// Under a member with the same name only.
    Short,
    /// Not at all.
    Common,
}

impl Kind {
    pub(super) fn of(spot: &Spot<'_>, value: &Value<'_>) -> Self {
        let length = value.content().len();
        match value {
            Value::Literal(_) | Value::Other(_) => Self::Common,
            Value::Number(b"0" | b"1") => Self::Common,
            Value::Number(text) if is_small(text) => match spot.name() {
                Some(_) => Self::Short,
                None => Self::Common,
            },
            Value::Number(_) => Self::Distinct,
            Value::String(_) | Value::Document(_) => match length {
                0..=1 => Self::Common,
                2..=3 if spot.name().is_none() => Self::Common,
                2..=3 => Self::Short,
                _ => Self::Distinct,
            },
        }
    }
}

/// Whether a number is one of a hundred.
fn is_small(text: &[u8]) -> bool {
    text.strip_prefix(b"-").unwrap_or(text).len() <= 2
}

/// Whether a text is unlikely to stand in another by chance: it is not short, and no plain
/// word.
pub(super) fn is_unlikely(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || *byte >= 0x80;
    let plain =
        text.iter().skip(1).all(is_plain) && text.first().is_some_and(|b| !b.is_ascii_digit());
    text.len() >= 16 || text.len() >= 5 && !plain
}

/// The values of a piece: all but the metadata of the protocol.
pub(super) fn each(piece: &Said<'_>, each: &mut dyn FnMut(&Spot<'_>, &Value<'_>)) {
    scalars::each(piece.text, &mut |spot, value| {
        if !spot.is_under("_meta") {
            each(spot, value);
        }
    });
}

/// The words of a string that are worth a search: with a digit in them, and not short.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte) || *byte >= 0x80;
    let words = text[..text.len().min(1 << 16)].split(move |byte| !inside(byte));
    let words = words.map(|word| word.trim_ascii());
    words
        .filter(move |word| {
            let worth = (4..=LENGTH).contains(&word.len()) && word.len() < text.len();
            worth && word.iter().any(u8::is_ascii_digit)
        })
        .take(WORDS)
}

/// The values that are looked for, each with a number.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By their text.
    distinct: HashMap<Vec<u8>, usize>,
    /// By the number of the name, and text.
    short: HashMap<(u64, Vec<u8>), usize>,
    /// Those that are looked for inside texts.
    pub(super) inside: Vec<(Vec<u8>, usize)>,
    pub(super) count: usize,
}

impl Wanted {
    /// The values that the step, or one before it, took.
    pub(super) fn of(said: &[Said<'_>], target: usize) -> Self {
        let mut wanted = Self::default();
        let mut bytes = 0;
        for piece in said.iter().rev().filter(|piece| piece.part.is_taken()) {
            if piece.part != Part::Arguments && piece.step != target {
                // What the server asked in between led to no step of the chain.
                continue;
            }
            each(piece, &mut |spot, value| match Kind::of(spot, value) {
                Kind::Distinct => {
                    wanted.add(value.content(), &mut bytes);
                    for word in words(value.content()) {
                        wanted.add(word, &mut bytes);
                    }
                }
                Kind::Short => {
                    let name = spot.name_id().unwrap_or_default();
                    let key = (name, value.content().to_vec());
                    let count = &mut wanted.count;
                    wanted.short.entry(key).or_insert_with(|| {
                        *count += 1;
                        *count - 1
                    });
                }
                Kind::Common => {}
            });
        }
        wanted
    }

    fn add(&mut self, text: &[u8], bytes: &mut usize) {
        if self.distinct.contains_key(text) {
            return;
        }
        let number = self.count;
        self.count += 1;
        self.distinct.insert(text.to_vec(), number);
        let length = text.len().min(LENGTH);
        if *bytes + length <= BYTES {
            *bytes += length;
            self.inside.push((text.to_vec(), number));
        }
    }

    /// The number of a value.
    pub(super) fn whole(&self, spot: &Spot<'_>, value: &Value<'_>) -> Option<usize> {
        match Kind::of(spot, value) {
            Kind::Distinct => self.word(value.content()),
            Kind::Short => {
                let key = (spot.name_id()?, value.content().to_vec());
                self.short.get(&key).copied()
            }
            Kind::Common => None,
        }
    }

    /// The number of a word.
    pub(super) fn word(&self, word: &[u8]) -> Option<usize> {
        self.distinct.get(word).copied()
    }
}
