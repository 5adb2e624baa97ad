//! gzip (RFC 1952) and deflate (RFC 1950, and RFC 1951 without the wrapping, as many send it).

use std::ops::ControlFlow;

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{Problem, Step};

/// Undoes one of the two.
pub(super) struct Inflate {
    inner: Decompress,
    state: State,
    gzip: bool,
    crc: Crc,
}

/// Where in the stream the next byte is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before its first byte (deflate).
    Start,
    /// In the ten bytes that open a member.
    Opening {
        at: u8,
        flags: u8,
    },
    /// In a part of its header: extra field with this many bytes, name, comment, checksum.
    Header {
        flags: u8,
        extra: Extra,
    },
    Data,
    /// In checksum and length after the data.
    Closing {
        at: u8,
        value: u64,
    },
    /// After the first member.
    Between,
    /// What follows is padding.
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Low,
    High(u8),
    Left(u16),
}

const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const OPENING: [u8; 3] = [0x1F, 0x8B, 8];

impl Inflate {
    pub(super) fn gzip() -> Self {
        Self {
            inner: Decompress::new(false),
            state: State::Opening { at: 0, flags: 0 },
            gzip: true,
            crc: Crc::new(),
        }
    }

    pub(super) fn deflate() -> Self {
        Self {
            inner: Decompress::new(true),
            state: State::Start,
            gzip: false,
            crc: Crc::new(),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self.state, State::Between | State::Over)
    }

    /// Uses some of the input. Returns how much, and how many bytes were made.
    pub(super) fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Step {
        let mut used = 0;
        while self.state != State::Data {
            let Some(&byte) = input.get(used) else {
                return Ok((used, 0, ControlFlow::Continue(())));
            };
            used += usize::from(self.frame(byte)?);
            if self.state == State::Over {
                return Ok((input.len(), 0, ControlFlow::Break(())));
            }
        }
        let (before_in, before_out) = (self.inner.total_in(), self.inner.total_out());
        let status = self
            .inner
            .decompress(&input[used..], piece, FlushDecompress::None)
            .map_err(|_| Problem::Broken)?;
        used += usize::try_from(self.inner.total_in() - before_in).unwrap_or_default();
        let made = usize::try_from(self.inner.total_out() - before_out).unwrap_or_default();
        if self.gzip {
            self.crc.update(&piece[..made]);
        }
        if status == Status::StreamEnd {
            self.state = if self.gzip {
                State::Closing { at: 0, value: 0 }
            } else {
                State::Over
            };
        }
        Ok((used, made, ControlFlow::Continue(())))
    }

    /// Takes a byte of what is around the data; false if the data begins with it.
    fn frame(&mut self, byte: u8) -> Result<bool, Problem> {
        self.state = match self.state {
            State::Start => {
                // The wrapping names the method, 8, where raw data could only begin so with
                // bits that are never set.
                if byte & 0x0F != 8 {
                    self.inner = Decompress::new(false);
                }
                self.state = State::Data;
                return Ok(false);
            }
            State::Opening { at: 0..3, .. } if self.opening() != Some(byte) => {
                return Err(Problem::Broken);
            }
            State::Opening { at: 9, flags } => after(flags),
            State::Opening { at: 3, .. } => State::Opening { at: 4, flags: byte },
            State::Opening { at, flags } => State::Opening { at: at + 1, flags },
            State::Header { flags, extra } => header(flags, extra, byte),
            State::Closing { at, value } => {
                let value = value | u64::from(byte) << (8 * at);
                if at < 7 {
                    State::Closing { at: at + 1, value }
                } else if value == u64::from(self.crc.sum()) | u64::from(self.crc.amount()) << 32 {
                    State::Between
                } else {
                    return Err(Problem::Broken);
                }
            }
            State::Between if byte == OPENING[0] => {
                self.inner.reset(false);
                self.crc.reset();
                State::Opening { at: 1, flags: 0 }
            }
            State::Between | State::Over => State::Over,
            State::Data => return Ok(false),
        };
        Ok(true)
    }

    fn opening(&self) -> Option<u8> {
        match self.state {
            State::Opening { at, .. } => OPENING.get(usize::from(at)).copied(),
            _ => None,
        }
    }
}

/// What comes next in a header of which these parts are still to come.
fn after(flags: u8) -> State {
    if flags & (HAS_EXTRA | HAS_NAME | HAS_COMMENT | HAS_CHECKSUM) == 0 {
        return State::Data;
    }
    State::Header {
        flags,
        extra: Extra::Low,
    }
}

fn header(flags: u8, extra: Extra, byte: u8) -> State {
    let same = |extra| State::Header { flags, extra };
    if flags & HAS_EXTRA != 0 {
        return match extra {
            Extra::Low => same(Extra::High(byte)),
            Extra::High(low) => match u16::from_le_bytes([low, byte]) {
                0 => after(flags & !HAS_EXTRA),
                left => same(Extra::Left(left)),
            },
            Extra::Left(1) => after(flags & !HAS_EXTRA),
            Extra::Left(left) => same(Extra::Left(left - 1)),
        };
    }
    for part in [HAS_NAME, HAS_COMMENT] {
        if flags & part != 0 {
            return if byte == 0 {
                after(flags & !part)
            } else {
                same(extra)
            };
        }
    }
    // The checksum has two bytes.
    match extra {
        Extra::Low => same(Extra::High(byte)),
        _ => after(flags & !HAS_CHECKSUM),
    }
}
