//! Numbers in as few bytes as they need: seven bits a byte, the lowest first, the highest bit of
//! a byte set where more follow (LEB128, as WebAssembly and Protocol Buffers have it).

/// No 64-bit number takes more.
const LONGEST: usize = 10;

/// Appends a number.
pub(super) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number that may be negative: small ones take little room on either side of 0.
pub(super) fn put_signed(number: i64, out: &mut Vec<u8>) {
    put(((number << 1) ^ (number >> 63)).cast_unsigned(), out);
}

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoNumber {
    /// The bytes end before it does.
    Cut,
    /// It is longer than any.
    TooLong,
}

/// Reads bytes from their beginning.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader that begins at this offset.
    pub(super) fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Where it is.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// The next so many bytes.
    pub(super) fn chunk<const N: usize>(&mut self) -> Result<[u8; N], NoNumber> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let chunk = rest.first_chunk().ok_or(NoNumber::Cut)?;
        self.at += N;
        Ok(*chunk)
    }

    /// The next number.
    pub(super) fn number(&mut self) -> Result<u64, NoNumber> {
        let mut number = 0;
        for place in 0..LONGEST {
            let [byte] = self.chunk()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(NoNumber::TooLong)
    }

    /// The next number that fits in 32 bits.
    pub(super) fn narrow(&mut self) -> Result<u32, NoNumber> {
        u32::try_from(self.number()?).map_err(|_| NoNumber::TooLong)
    }

    /// The next number that was put as a signed one.
    pub(super) fn signed(&mut self) -> Result<i64, NoNumber> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, small in -70_i64..70) {
            let mut out = Vec::new();
            put(number, &mut out);
            put_signed(signed, &mut out);
            let length = out.len();
            put_signed(small, &mut out);
            prop_assert!(out.len() - length <= 2);
            let mut reader = Reader::at(&out, 0);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.signed(), Ok(small));
            prop_assert_eq!(reader.number(), Err(NoNumber::Cut));
        }
    }

    #[test]
    fn what_is_no_number_is_told() {
        assert_eq!(Reader::at(&[0x80; 3], 0).number(), Err(NoNumber::Cut));
        assert_eq!(Reader::at(&[0x80; 11], 0).number(), Err(NoNumber::TooLong));
        assert_eq!(
            Reader::at(&[0xff, 0xff, 0xff, 0xff, 0x1f], 0).narrow(),
            Err(NoNumber::TooLong)
        );
        assert_eq!(Reader::at(&[1], 9).number(), Err(NoNumber::Cut));
    }
}
