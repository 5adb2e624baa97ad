//! The first stage of the search for anchors: two bytes at a step, and one look into a table.
//!
//! An anchor begins either at a step or one byte before the next one. Each pair of bytes
//! therefore has four fields of bits, one bit for each group of anchors: it can be an anchor's
//! first two bytes, its third and fourth, its first byte after any other, its second and third.
//! Where a field of one step and the next field of the step after share a bit, an anchor may
//! begin.

use super::LEAST;

/// More groups stop it less often, and need a larger table.
const GROUPS: usize = 4;
/// How far the fields of a first step are above those of a second.
const FIRST: u32 = 2 * GROUPS as u32;

/// By the two bytes as a little-endian number. From the lowest: third and fourth byte, second
/// and third, first and second, any and first.
pub(super) struct Pairs(Box<[u16; 1 << 16]>);

impl Pairs {
    /// Of anchors that have [`LEAST`] bytes or more; with true, letters match in both cases.
    pub(super) fn new<'a>(anchors: impl Iterator<Item = (&'a [u8], bool)>) -> Self {
        let mut table = Box::new([0; 1 << 16]);
        // What holds for every byte before or after this one.
        let (mut after_any, mut before_any) = ([0; 256], [0; 256]);
        for (number, (text, fold)) in anchors.enumerate() {
            let group = 1_u16 << (number % GROUPS);
            let second = group << GROUPS;
            let cases = |at: usize| {
                let byte = text[at];
                let other = if fold {
                    byte.to_ascii_uppercase()
                } else {
                    byte
                };
                [byte, other]
            };
            let mut both = |at: usize, bits: u16| {
                for first in cases(at) {
                    for second in cases(at + 1) {
                        table[index([first, second])] |= bits;
                    }
                }
            };
            both(0, group << FIRST);
            both(1, second);
            if text.len() > LEAST {
                both(2, group);
            } else {
                for byte in cases(2) {
                    before_any[usize::from(byte)] |= group;
                }
            }
            for byte in cases(0) {
                after_any[usize::from(byte)] |= second << FIRST;
            }
        }
        for (row, any) in table.chunks_exact_mut(256).zip(after_any) {
            for (entry, before) in row.iter_mut().zip(before_any) {
                *entry |= any | before;
            }
        }
        Self(table)
    }

    /// How many bytes of `text` can be passed over: an anchor may begin at the byte after
    /// them, or fewer than four bytes are left.
    #[inline]
    pub(super) fn skip(&self, text: &[u8]) -> usize {
        let (pairs, _) = text.as_chunks::<2>();
        let Some((&pair, pairs)) = pairs.split_first() else {
            return 0;
        };
        let mut before = self.0[index(pair)];
        let mut passed = 0;
        let mut step = |pair| {
            let fields = self.0[index(pair)];
            let both = before >> FIRST & fields;
            before = fields;
            both
        };
        // Four steps at a time make it a third faster.
        let (fours, rest) = pairs.as_chunks::<4>();
        for four in fours {
            for (&pair, at) in four.iter().zip([0, 2, 4, 6]) {
                let both = step(pair);
                if both != 0 {
                    return passed + at + begins(both);
                }
            }
            passed += 8;
        }
        for &pair in rest {
            let both = step(pair);
            if both != 0 {
                return passed + begins(both);
            }
            passed += 2;
        }
        passed
    }
}

/// Whether an anchor may begin at the first of two steps, or only a byte after it.
fn begins(both: u16) -> usize {
    usize::from(both & ((1 << GROUPS) - 1) == 0)
}

fn index(pair: [u8; 2]) -> usize {
    usize::from(u16::from_le_bytes(pair))
}
