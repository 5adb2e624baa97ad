//! Prose, as tools return it: made once, then taken from in slices.

use super::random::Random;

const WORDS: usize = 6_000;
const LENGTH: usize = 8 << 20;
/// Share of the words that are numbers or look like commits.
const NUMBERS: f64 = 0.06;

/// A long text that may stand within a JSON string.
#[derive(Debug)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// Words by Zipf's law, in lines, with numbers and hexadecimal ids among them.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, u64::MAX);
        let words: Vec<String> = (0..WORDS).map(|rank| word(rank, &mut random)).collect();
        let mut text = Vec::with_capacity(LENGTH + 64);
        while text.len() < LENGTH {
            if random.happens(NUMBERS) {
                let number = random.next();
                let number = match number % 3 {
                    0 => format!("{:010x}", number >> 24),
                    1 => format!("{}", number >> 44),
                    _ => format!("{}.{:02}", number >> 56, (number >> 8) % 100),
                };
                text.extend_from_slice(number.as_bytes());
            } else {
                text.extend_from_slice(words[random.zipf(WORDS)].as_bytes());
            }
            text.extend_from_slice(match random.below(24) {
                0 | 1 => b". ",
                2 => b", ",
                // As JSON writes the end of a line.
                3 => b"\\n ",
                _ => b" ",
            });
        }
        Self(text)
    }

    /// A piece of about this length, of whole words.
    pub(crate) fn piece(&self, length: usize, random: &mut Random) -> &[u8] {
        let length = length.min(LENGTH / 2);
        let text = &self.0[random.below(LENGTH - length)..];
        let start = text.iter().position(|byte| *byte == b' ').unwrap_or(0) + 1;
        let text = &text[start.min(text.len())..];
        let piece = &text[..length.min(text.len())];
        let end = piece.iter().rposition(|byte| *byte == b' ');
        // One word, without the half of an escape at its end.
        let word = || piece.iter().position(|byte| *byte == b'\\');
        &piece[..end.or_else(word).unwrap_or(piece.len())]
    }
}

/// Frequent words are short.
fn word(rank: usize, random: &mut Random) -> String {
    const STARTS: [&str; 20] = [
        "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr",
        "pl", "ch", "sh",
    ];
    const ENDS: [&str; 12] = [
        "a", "e", "i", "o", "u", "an", "en", "er", "in", "on", "ea", "or",
    ];
    let syllables = match rank {
        0..40 => 1,
        40..800 => 2,
        _ => 2 + random.below(3),
    };
    (0..syllables)
        .map(|_| [STARTS[random.below(20)], ENDS[random.below(12)]].concat())
        .collect()
}
