//! Kinds of bytes, as sets that a table answers in one look-up.

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    pub(super) const LOWER: Self = Self(1);
    pub(super) const UPPER: Self = Self(2);
    pub(super) const DIGIT: Self = Self(4);
    const UNDERSCORE: Self = Self(8);
    const DASH: Self = Self(16);
    const DOT: Self = Self(32);
    /// `+` and `/`
    const BASE64: Self = Self(64);
    const EQUALS: Self = Self(128);

    pub(super) const LETTER: Self = Self::LOWER.and(Self::UPPER);
    pub(super) const ALNUM: Self = Self::LETTER.and(Self::DIGIT);
    pub(super) const CAPITAL: Self = Self::UPPER.and(Self::DIGIT);
    /// Letters, digits and `_`.
    pub(super) const WORD: Self = Self::ALNUM.and(Self::UNDERSCORE);
    /// The alphabet of base64url, and of nearly all vendors' tokens.
    pub(super) const TOKEN: Self = Self::WORD.and(Self::DASH);
    /// Tokens that have parts: names, JWTs, SendGrid.
    pub(super) const DOTTED: Self = Self::TOKEN.and(Self::DOT);
    /// The alphabet of base64, without padding.
    pub(super) const BASE64_CORE: Self = Self::ALNUM.and(Self::BASE64);
    /// Both alphabets of base64, with padding.
    pub(super) const BASE64_ANY: Self = Self::TOKEN.and(Self::BASE64).and(Self::EQUALS);
    /// What an Authorization header may carry (RFC 9110 token68).
    pub(super) const TOKEN68: Self = Self::DOTTED.and(Self::BASE64).and(Self::EQUALS);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub(super) fn has(self, byte: u8) -> bool {
        TABLE[usize::from(byte)] & self.0 != 0
    }

    /// Whether all of `text` is in the set.
    pub(super) fn all(self, text: &[u8]) -> bool {
        text.iter().all(|&byte| self.has(byte))
    }

    /// Whether any byte of `text` is in the set.
    pub(super) fn any(self, text: &[u8]) -> bool {
        text.iter().any(|&byte| self.has(byte))
    }

    /// Offset after the run of these bytes that starts at `at`.
    pub(super) fn run(self, text: &[u8], at: usize) -> usize {
        text[at..]
            .iter()
            .position(|&byte| !self.has(byte))
            .map_or(text.len(), |found| at + found)
    }

    /// Offset of the run of these bytes that ends before `at`, at most `most` bytes back.
    pub(super) fn run_back(self, text: &[u8], at: usize, most: usize) -> usize {
        let floor = at.saturating_sub(most);
        text[floor..at]
            .iter()
            .rposition(|&byte| !self.has(byte))
            .map_or(floor, |found| floor + found + 1)
    }
}

static TABLE: [u8; 256] = table();

const fn table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => Class::LOWER.0,
            b'A'..=b'Z' => Class::UPPER.0,
            b'0'..=b'9' => Class::DIGIT.0,
            b'_' => Class::UNDERSCORE.0,
            b'-' => Class::DASH.0,
            b'.' => Class::DOT.0,
            b'+' | b'/' => Class::BASE64.0,
            b'=' => Class::EQUALS.0,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Whether a word could start at `at`: no letter or digit stands before.
pub(super) fn starts_word(text: &[u8], at: usize) -> bool {
    at == 0 || !Class::ALNUM.has(text[at - 1])
}

/// Offset after the spaces and tabs from `at` on.
pub(super) fn skip_blanks(text: &[u8], at: usize) -> usize {
    at + text[at..]
        .iter()
        .take_while(|&&byte| byte == b' ' || byte == b'\t')
        .count()
}

/// Whether `text` has `needle` at `at`, whatever its case; `needle` is lower case.
pub(super) fn has_folded(text: &[u8], at: usize, needle: &[u8]) -> bool {
    text.get(at..at + needle.len())
        .is_some_and(|part| part.eq_ignore_ascii_case(needle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_foreign_bytes_and_at_the_text() {
        assert_eq!(Class::ALNUM.run(b"ab1-c", 0), 3);
        assert_eq!(Class::TOKEN.run(b"ab1-c", 1), 5);
        assert_eq!(Class::ALNUM.run(b"", 0), 0);
        assert_eq!(Class::ALNUM.run_back(b"x abc", 5, 64), 2);
        assert_eq!(Class::ALNUM.run_back(b"x abc", 5, 2), 3);
        assert_eq!(Class::ALNUM.run_back(b"abc", 3, 64), 0);
    }
}
