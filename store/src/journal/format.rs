//! The bytes of a journal file; `docs/format.md` is the same in prose.
//!
//! All numbers are little-endian.
//!
//! ```text
//! file    FILE_MAGIC(8)  u16 major  u16 minor  u32 length  u32 crc32c  JSON header  records…
//! record  0  RECORD_MAGIC(4)   u16 header length   u16 flags
//!         8  u32 payload length   u32 crc32c of all else in the record
//!        16  u8 kind  u8 stream  u8 framing  u8 0   u32 session
//!        24  u32 exchange   u32 redacted spans
//!        32  u64 sequence number
//!        40  u64 wall clock, ns since 1970
//!        48  u64 monotonic clock, ns since the recorder's start
//!        56  u64 true length on the wire
//!        64  32 bytes keyed digest, if flagged
//!            per redacted span: u32 offset in payload, u32 length there, u32 true length
//!            (what a newer minor version adds stands here and is skipped)
//!            payload
//! ```

use agent_trace_model::Stream;
use agent_trace_wire::frame::Framing;

/// The first bytes of a journal file.
pub const FILE_MAGIC: [u8; 8] = *b"\x89ATJ\r\n\x1a\n";
/// The first bytes of a record: bytes that no UTF-8 text holds, so that a reader which lost
/// its place finds the next record.
pub const RECORD_MAGIC: [u8; 4] = [0xf5, 0xa7, 0xff, 0xc1];
/// Files of another major version cannot be read.
pub const MAJOR: u16 = 1;
/// A newer minor version only adds what an older reader may skip.
pub const MINOR: u16 = 0;
/// Bytes before the JSON header.
pub const FILE_PREFIX: usize = 20;
/// The fixed part of a record's header.
pub const FIXED: usize = 64;
/// Bytes of a keyed digest.
pub const DIGEST: usize = 32;
const SPAN: usize = 12;
/// How many spans fit; the rest is only flagged.
pub(crate) const MOST_SPANS: usize = (u16::MAX as usize - FIXED - DIGEST) / SPAN;
/// The largest payload that a reader takes for possible.
pub const MOST_PAYLOAD: usize = 64 << 20;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The bytes of one frame.
    Frame,
    /// A line of the server's standard error.
    Stderr,
    /// Facts about a session, as JSON ([`super::header::Meta`]).
    Meta,
    /// Something was not recorded, as JSON ([`super::header::Gap`]).
    Gap,
    /// A finding of a scan, as JSON.
    Finding,
    /// The end of a session, as JSON ([`super::header::SessionEnd`]).
    End,
    /// In place of records that were removed, as JSON ([`super::header::Removed`]); its number
    /// is that of the last of them.
    Removed,
    /// A mark of the hash chain, which readers do not tell of.
    Mark,
    /// A kind that this version does not know.
    Unknown(u8),
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Frame => 1,
            Self::Stderr => 2,
            Self::Meta => 3,
            Self::Gap => 4,
            Self::Finding => 5,
            Self::End => 6,
            Self::Removed => 7,
            Self::Mark => 8,
            Self::Unknown(number) => number,
        }
    }

    fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Frame,
            2 => Self::Stderr,
            3 => Self::Meta,
            4 => Self::Gap,
            5 => Self::Finding,
            6 => Self::End,
            7 => Self::Removed,
            8 => Self::Mark,
            other => Self::Unknown(other),
        }
    }
}

/// What else is to be said about a record's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// Only the first part of the frame was kept; true length and digest are of all of it.
    pub const CUT: Self = Self(1);
    /// The stream ended inside the frame, or its declared length was absurd.
    pub const INCOMPLETE: Self = Self(1 << 1);
    /// Bytes are missing that the recorder had no room for.
    pub const LOSSY: Self = Self(1 << 2);
    /// A keyed digest of the true bytes follows the fixed header.
    pub const DIGEST: Self = Self(1 << 3);
    /// Arguments and results are digests (`--bodies digest`).
    pub const BODIES_DIGESTED: Self = Self(1 << 4);
    /// The bytes were read from their sender but could not be delivered.
    pub const UNDELIVERED: Self = Self(1 << 5);
    /// There were more redacted spans than are listed.
    pub const SPANS_CUT: Self = Self(1 << 6);
    /// The relay changed it: an [`Altered`](super::header::Altered) of the same exchange
    /// tells what was sent.
    pub const ALTERED: Self = Self(1 << 7);

    /// Whether all of these are set.
    #[must_use]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// These, and those if `set`.
    #[must_use]
    pub fn with_if(self, flags: Self, set: bool) -> Self {
        if set { self.with(flags) } else { self }
    }
}

/// A part of a payload that stands for something secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where the marker begins in the payload.
    pub at: u32,
    /// How long the marker is.
    pub length: u32,
    /// How long what it stands for was.
    pub original: u32,
}

/// All of a record but its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it is.
    pub kind: Kind,
    /// Which stream it was on.
    pub stream: Stream,
    /// How the frame was framed.
    pub framing: Framing,
    /// What else is to be said.
    pub flags: Flags,
    /// The session's ordinal in its process, or 0 for the process itself.
    pub session: u32,
    /// The HTTP exchange's ordinal in the session, or 0.
    pub exchange: u32,
    /// Number of the record in its process, from 1, without holes.
    pub sequence: u64,
    /// Wall clock in nanoseconds since 1970: for a frame, when its last bytes were read from
    /// their sender. Records of two streams stand in the order of their times within a tick
    /// (5 ms) only.
    pub wall: u64,
    /// The same on the monotonic clock, in nanoseconds since the recorder started.
    pub monotonic: u64,
    /// Length on the wire, which differs from the payload's where that was redacted or cut.
    pub length: u64,
    /// Keyed digest of the true bytes, where only a part was kept.
    pub digest: Option<[u8; DIGEST]>,
    /// What was redacted.
    pub spans: Vec<Span>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// All but the payload.
    pub envelope: Envelope,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// Appends the header of a record with this payload to `out`. The payload has to follow.
pub fn encode(envelope: &Envelope, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let spans = &envelope.spans[..envelope.spans.len().min(MOST_SPANS)];
    let flags = envelope
        .flags
        .with_if(Flags::DIGEST, envelope.digest.is_some())
        .with_if(Flags::SPANS_CUT, spans.len() < envelope.spans.len());
    let digest = if envelope.digest.is_some() { DIGEST } else { 0 };
    let header = FIXED + digest + spans.len() * SPAN;
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&narrow::<u16>(header).to_le_bytes());
    out.extend_from_slice(&flags.0.to_le_bytes());
    out.extend_from_slice(&narrow::<u32>(payload.len()).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[
        envelope.kind.number(),
        envelope.stream as u8,
        framing_number(envelope.framing),
        0,
    ]);
    out.extend_from_slice(&envelope.session.to_le_bytes());
    out.extend_from_slice(&envelope.exchange.to_le_bytes());
    out.extend_from_slice(&narrow::<u32>(spans.len()).to_le_bytes());
    for number in [
        envelope.sequence,
        envelope.wall,
        envelope.monotonic,
        envelope.length,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(envelope.digest.as_ref().map_or(&[][..], |d| &d[..]));
    for span in spans {
        for number in [span.at, span.length, span.original] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    let crc = checksum(&out[start..], payload);
    out[start + 12..start + 16].copy_from_slice(&crc.to_le_bytes());
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They may be the beginning of one, but end too early.
    Torn,
    /// They are none.
    Damaged,
}

/// The record at the beginning of `bytes`, and how many bytes it takes.
///
/// # Errors
/// Says whether more bytes could make it a record.
pub fn decode(bytes: &[u8]) -> Result<(Record, usize), Unreadable> {
    let (envelope, range) = decode_borrowed(bytes)?;
    let payload = bytes[range.clone()].to_vec();
    Ok((Record { envelope, payload }, range.end))
}

pub(super) fn decode_borrowed(
    bytes: &[u8],
) -> Result<(Envelope, std::ops::Range<usize>), Unreadable> {
    let known = bytes.len().min(RECORD_MAGIC.len());
    if bytes[..known] != RECORD_MAGIC[..known] {
        return Err(Unreadable::Damaged);
    }
    let Some(fixed) = bytes.first_chunk::<FIXED>() else {
        return Err(Unreadable::Torn);
    };
    let header = usize::from(u16_at(fixed, 4));
    let flags = Flags(u16_at(fixed, 6));
    let length = u32_at(fixed, 8) as usize;
    let digest = if flags.has(Flags::DIGEST) { DIGEST } else { 0 };
    let spans = u32_at(fixed, 28) as usize;
    let needed = spans.checked_mul(SPAN).map(|s| s + FIXED + digest);
    if length > MOST_PAYLOAD || needed.is_none_or(|needed| needed > header) {
        return Err(Unreadable::Damaged);
    }
    let end = header + length;
    let Some(record) = bytes.get(..end) else {
        return Err(Unreadable::Torn);
    };
    if u32_at(fixed, 12) != checksum(&record[..header], &record[header..]) {
        return Err(Unreadable::Damaged);
    }
    let Some(stream) = Stream::from_number(fixed[17]) else {
        return Err(Unreadable::Damaged);
    };
    let spans = record[FIXED + digest..][..spans * SPAN].chunks_exact(SPAN);
    let envelope = Envelope {
        kind: Kind::from_number(fixed[16]),
        stream,
        framing: framing_from(fixed[18]),
        flags,
        session: u32_at(fixed, 20),
        exchange: u32_at(fixed, 24),
        sequence: u64_at(fixed, 32),
        wall: u64_at(fixed, 40),
        monotonic: u64_at(fixed, 48),
        length: u64_at(fixed, 56),
        digest: record[FIXED..header]
            .first_chunk()
            .copied()
            .filter(|_| digest > 0),
        spans: spans
            .map(|span| Span {
                at: u32_at(span, 0),
                length: u32_at(span, 4),
                original: u32_at(span, 8),
            })
            .collect(),
    };
    Ok((envelope, header..end))
}

fn framing_number(framing: Framing) -> u8 {
    match framing {
        Framing::Stray => 0,
        Framing::Newline => 1,
        Framing::ContentLength => 2,
        Framing::Event => 3,
        Framing::Body => 4,
    }
}

fn framing_from(number: u8) -> Framing {
    match number {
        1 => Framing::Newline,
        2 => Framing::ContentLength,
        3 => Framing::Event,
        4 => Framing::Body,
        _ => Framing::Stray,
    }
}

/// How long the record at the beginning of `bytes` says it is.
pub(super) fn claimed(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, 4)) + u32_at(bytes, 8) as usize
}

/// CRC32C over the whole record but its checksum field.
fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&header[..12]);
    let crc = crc32c::crc32c_append(crc, &header[16..]);
    crc32c::crc32c_append(crc, payload)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u16::from_le_bytes(*b))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u32::from_le_bytes(*b))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u64::from_le_bytes(*b))
}

/// A length as the narrower number it is known to fit.
pub(crate) fn narrow<T: TryFrom<usize> + Default>(length: usize) -> T {
    debug_assert!(T::try_from(length).is_ok(), "{length} does not fit");
    T::try_from(length).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn envelope(sequence: u64) -> Envelope {
        Envelope {
            kind: Kind::Frame,
            stream: Stream::ServerToClient,
            framing: Framing::Newline,
            flags: Flags::default(),
            session: 1,
            exchange: 0,
            sequence,
            wall: 1_764_000_000_000_000_000,
            monotonic: 42,
            length: 5,
            digest: None,
            spans: vec![],
        }
    }

    pub(crate) fn encoded(envelope: &Envelope, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(envelope, payload, &mut out);
        out.extend_from_slice(payload);
        out
    }

    #[test]
    fn a_record_survives_its_bytes() {
        let mut full = envelope(7);
        full.digest = Some([9; DIGEST]);
        full.flags = Flags::CUT.with(Flags::DIGEST);
        full.spans = vec![
            Span {
                at: 1,
                length: 2,
                original: 3
            };
            3
        ];
        for envelope in [envelope(1), full] {
            let bytes = encoded(&envelope, b"hello");
            let (record, length) = decode(&bytes).unwrap();
            assert_eq!(length, bytes.len());
            assert_eq!(record.envelope, envelope);
            assert_eq!(record.payload, b"hello");
        }
    }

    #[test]
    fn more_spans_than_fit_are_flagged() {
        let mut many = envelope(1);
        many.spans = vec![
            Span {
                at: 1,
                length: 2,
                original: 3
            };
            MOST_SPANS + 1
        ];
        let (record, _) = decode(&encoded(&many, b"")).unwrap();
        assert_eq!(record.envelope.spans.len(), MOST_SPANS);
        assert!(record.envelope.flags.has(Flags::SPANS_CUT));
    }

    #[test]
    fn an_older_reader_skips_what_a_newer_version_added() {
        let bytes = encoded(&envelope(1), b"hello");
        let mut newer = bytes[..FIXED].to_vec();
        newer[4..6].copy_from_slice(&(FIXED as u16 + 8).to_le_bytes());
        newer[16] = 200;
        newer.extend_from_slice(&[1; 8]);
        let crc = checksum(&newer, b"hello");
        newer[12..16].copy_from_slice(&crc.to_le_bytes());
        newer.extend_from_slice(b"hello");
        let (record, length) = decode(&newer).unwrap();
        assert_eq!(
            (record.payload.as_slice(), length),
            (&b"hello"[..], newer.len())
        );
        assert_eq!(record.envelope.kind, Kind::Unknown(200));
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_noticed(at in 0_usize..80, change in 1_u8..) {
            let mut bytes = encoded(&envelope(3), b"a payload of some bytes");
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= change;
            prop_assert!(decode(&bytes).is_err());
        }

        #[test]
        fn a_record_cut_short_is_torn(cut in 0_usize..70) {
            let bytes = encoded(&envelope(3), b"a payload");
            prop_assert_eq!(decode(&bytes[..cut]).unwrap_err(), Unreadable::Torn);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            let _ = decode(&bytes);
            bytes.splice(0..0, RECORD_MAGIC);
            let _ = decode(&bytes);
        }
    }
}
