//! The bytes of a journal file; `docs/format.md` is the same in prose.
//!
//! All numbers are little-endian.
//!
//! ```text
//! file    FILE_MAGIC(8)  u16 major  u16 minor  u32 length  u32 crc32c  JSON header  records…
//! record  0  RECORD_MAGIC(4)   u32 crc32c of all that follows, payload included
//!         8  u64 clocks: wall clock less monotonic clock
//!        16  u8 kind   u8 stream and framing
//!            flags   session   exchange   header length   payload length
//!            true length on the wire less payload length (signed)
//!            sequence number   monotonic clock, ns since the recorder's start
//!            32 bytes keyed digest, if flagged
//!            number of redacted spans; for each: offset in payload, length there, true length
//!            (what a newer minor version adds stands here and is skipped)
//!            payload
//! ```
//! Numbers of no stated size take as many bytes as they need (`varint`). What is the same in
//! most records of a file stands together, which sealed files gain by.

use super::varint::{self, NoNumber, Reader};
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
/// Magic and checksum of a record, which stand before all else.
pub(super) const GUARD: usize = 8;
/// Bytes of a keyed digest.
pub const DIGEST: usize = 32;
/// How many spans fit; the rest is only flagged.
pub(crate) const MOST_SPANS: usize = 4096;
/// The longest header that a reader takes for possible.
const MOST_HEADER: usize = 64 << 10;
/// A stream takes so many bits of a byte, framing the others.
const STREAM_BITS: u8 = 2;
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
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&[0; GUARD - RECORD_MAGIC.len()]);
    let clocks = envelope.wall.wrapping_sub(envelope.monotonic);
    out.extend_from_slice(&clocks.to_le_bytes());
    out.push(envelope.kind.number());
    out.push(envelope.stream as u8 | framing_number(envelope.framing) << STREAM_BITS);
    for number in [flags.0.into(), envelope.session, envelope.exchange] {
        varint::put(number.into(), out);
    }
    let at = out.len();
    let length = payload.len() as u64;
    varint::put(length, out);
    let differs = envelope.length.wrapping_sub(length).cast_signed();
    varint::put_signed(differs, out);
    varint::put(envelope.sequence, out);
    varint::put(envelope.monotonic, out);
    out.extend_from_slice(envelope.digest.as_ref().map_or(&[][..], |d| &d[..]));
    varint::put(spans.len() as u64, out);
    for span in spans {
        for number in [span.at, span.length, span.original] {
            varint::put(number.into(), out);
        }
    }
    put_header_length(start, at, out);
    let crc = crc32c::crc32c(&out[start + GUARD..]);
    let crc = crc32c::crc32c_append(crc, payload);
    out[start + RECORD_MAGIC.len()..start + GUARD].copy_from_slice(&crc.to_le_bytes());
}

/// Puts the length of a header that begins at `start` into it, at `at`.
fn put_header_length(start: usize, at: usize, out: &mut Vec<u8>) {
    let without = out.len() - start;
    // As many bytes as it takes, its own among them.
    let own = (1..)
        .find(|own| (without + own) >> (7 * own) == 0)
        .unwrap_or(1);
    let mut length = Vec::with_capacity(own);
    varint::put((without + own) as u64, &mut length);
    out.splice(at..at, length);
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
    let (lead, mut reader) = Lead::read(bytes, GUARD)?;
    let range = lead.payload.clone();
    let record = bytes.get(..range.end).ok_or(Unreadable::Torn)?;
    if u32_at(record, RECORD_MAGIC.len()) != crc32c::crc32c(&record[GUARD..]) {
        return Err(Unreadable::Damaged);
    }
    let envelope = lead.envelope(&record[..range.start], &mut reader);
    envelope
        .map(|envelope| (envelope, range))
        .ok_or(Unreadable::Damaged)
}

/// The beginning of a record's header: what stands before its sequence number.
#[derive(Clone, Debug)]
struct Lead {
    clocks: u64,
    kind: u8,
    place: u8,
    flags: u64,
    session: u32,
    exchange: u32,
    /// Where the payload lies.
    payload: std::ops::Range<usize>,
    differs: i64,
}

impl Lead {
    /// That of a record in these bytes, of which the first `guard` are magic and checksum, and
    /// a reader of what follows. Lengths are possible ones.
    fn read(bytes: &[u8], guard: usize) -> Result<(Self, Reader<'_>), Unreadable> {
        let mut reader = Reader::at(bytes, guard);
        let clocks = u64::from_le_bytes(reader.chunk()?);
        let [kind, place] = reader.chunk()?;
        let flags = reader.number()?;
        let (session, exchange) = (reader.narrow()?, reader.narrow()?);
        let (header, length) = (reader.number()?, reader.number()?);
        if header > MOST_HEADER as u64 || length > MOST_PAYLOAD as u64 {
            return Err(Unreadable::Damaged);
        }
        // It counts magic and checksum, whether they are there or not.
        let start = (header as usize + guard)
            .checked_sub(GUARD)
            .ok_or(Unreadable::Damaged)?;
        let lead = Self {
            clocks,
            kind,
            place,
            flags,
            session,
            exchange,
            payload: start..start + length as usize,
            differs: reader.signed()?,
        };
        if start < reader.offset() {
            return Err(Unreadable::Damaged);
        }
        Ok((lead, reader))
    }

    /// All of the header. None where it does not end where it says.
    fn envelope(&self, header: &[u8], rest: &mut Reader<'_>) -> Option<Envelope> {
        let flags = Flags(u16::try_from(self.flags & u64::from(u16::MAX)).ok()?);
        let mut reader = Reader::at(header, rest.offset());
        let (sequence, monotonic) = (reader.number().ok()?, reader.number().ok()?);
        let digest = match flags.has(Flags::DIGEST) {
            true => Some(reader.chunk().ok()?),
            false => None,
        };
        let count = reader.number().ok()?;
        if count > MOST_SPANS as u64 {
            return None;
        }
        let spans = (0..count).map(|_| {
            Some(Span {
                at: reader.narrow().ok()?,
                length: reader.narrow().ok()?,
                original: reader.narrow().ok()?,
            })
        });
        Some(Envelope {
            kind: Kind::from_number(self.kind),
            stream: Stream::from_number(self.place & ((1 << STREAM_BITS) - 1))?,
            framing: framing_from(self.place >> STREAM_BITS),
            flags,
            session: self.session,
            exchange: self.exchange,
            sequence,
            wall: self.clocks.wrapping_add(monotonic),
            monotonic,
            length: (self.payload.len() as u64).wrapping_add_signed(self.differs),
            digest,
            spans: spans.collect::<Option<_>>()?,
        })
    }
}

impl From<NoNumber> for Unreadable {
    fn from(none: NoNumber) -> Self {
        match none {
            NoNumber::Cut => Self::Torn,
            NoNumber::TooLong => Self::Damaged,
        }
    }
}

/// Appends a record that stands without magic and checksum at the beginning of `bytes` as it was
/// with them. Returns how long it is there; none where there is none.
pub(super) fn restore(bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let (lead, _) = Lead::read(bytes, 0).ok()?;
    let record = bytes.get(..lead.payload.end)?;
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&crc32c::crc32c(record).to_le_bytes());
    out.extend_from_slice(record);
    Some(record.len())
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

/// How long the record at the beginning of `bytes` says it is; 0 where it does not.
pub(super) fn claimed(bytes: &[u8]) -> usize {
    Lead::read(bytes, GUARD).map_or(0, |(lead, _)| lead.payload.end)
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
        let mut newer = encoded(&envelope(1), b"");
        let at = newer
            .iter()
            .rposition(|&byte| usize::from(byte) == newer.len());
        newer[at.unwrap()] += 8;
        newer[16] = 200;
        newer.extend_from_slice(&[1; 8]);
        let crc = crc32c::crc32c(&newer[GUARD..]);
        newer[4..8].copy_from_slice(&crc.to_le_bytes());
        let (record, length) = decode(&newer).unwrap();
        assert_eq!((record.payload.len(), length), (0, newer.len()));
        assert_eq!(record.envelope.kind, Kind::Unknown(200));
    }

    #[test]
    fn an_ordinary_header_is_small() {
        let mut ordinary = envelope(1_000);
        (ordinary.session, ordinary.exchange) = (3, 400);
        ordinary.monotonic = 3_600_000_000_000;
        let bytes = encoded(&ordinary, &[b'x'; 500]);
        assert_eq!(bytes.len() - 500, 36);
    }

    #[test]
    fn headers_of_all_lengths_say_how_long_they_are() {
        for spans in (0..200).chain([MOST_SPANS]) {
            let mut long = envelope(1);
            long.spans = vec![
                Span {
                    at: u32::MAX,
                    length: 2,
                    original: u32::MAX
                };
                spans
            ];
            let bytes = encoded(&long, b"hello");
            let (record, length) = decode(&bytes).unwrap();
            assert_eq!((record.envelope, length), (long, bytes.len()));
        }
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_noticed(at in 0_usize..60, change in 1_u8..) {
            let mut bytes = encoded(&envelope(3), b"a payload of some bytes");
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= change;
            prop_assert!(decode(&bytes).is_err());
        }

        #[test]
        fn a_record_cut_short_is_torn(cut in 0_usize..35) {
            let bytes = encoded(&envelope(3), b"a payload");
            prop_assert_eq!(decode(&bytes[..cut]).unwrap_err(), Unreadable::Torn);
        }

        #[test]
        fn a_record_is_restored_without_its_guard(sequence: u64, wall: u64, length: u64) {
            let any = Envelope { wall, length, ..envelope(sequence) };
            let bytes = encoded(&any, b"a payload");
            let mut restored = Vec::new();
            let without = restore(&[&bytes[GUARD..], b"more"].concat(), &mut restored);
            prop_assert_eq!(without, Some(bytes.len() - GUARD));
            prop_assert_eq!(&restored, &bytes);
            prop_assert_eq!(decode(&restored).unwrap().0.envelope, any);
            prop_assert_eq!(restore(&bytes[GUARD..bytes.len() - 1], &mut restored), None);
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
