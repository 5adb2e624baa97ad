//! The bytes of a state log.
//!
//! ```text
//! file    magic(8) = 89 41 54 4C 0D 0A 1A 0A   u16 major   u16 minor   u32 0   records…
//! ```
//! A record is one of a journal (kind 3, session 0). Its sequence numbers grow; where entries
//! were removed there are holes.

use crate::journal::format::{self, Envelope, Flags, Kind, Unreadable};
use crate::journal::reader::next_record;
use agent_trace_model::Stream;
use agent_trace_wire::frame::Framing;
use std::io;
use std::ops::Range;
use std::path::Path;

const MAGIC: [u8; 8] = *b"\x89ATL\r\n\x1a\n";
/// Files of another major version cannot be read.
const MAJOR: u16 = 1;
/// A newer minor version only adds what an older reader may skip.
const MINOR: u16 = 0;
/// Bytes before the first record.
const HEADER: usize = 16;

/// What could not be done with the state log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("cannot use the state log")]
    Io(#[from] io::Error),
    /// It was written by a newer version.
    #[error("the state log is written in format {major}, and this version reads format {MAJOR}")]
    Version {
        /// The file's major version.
        major: u16,
    },
}

/// A log in memory.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    pub(super) records: Vec<Place>,
    /// The greatest sequence number.
    pub(super) last: u64,
    /// Bytes of the file.
    pub(super) length: u64,
    /// How many of them, at its end, are a record that is not whole.
    pub(super) torn: u64,
    /// How many others cannot be read.
    pub(super) damaged: u64,
}

/// Where a record is.
#[derive(Debug)]
pub(super) struct Place {
    raw: Range<usize>,
    payload: usize,
}

/// The bytes of a file without records.
pub(super) fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&MAJOR.to_le_bytes());
    bytes.extend_from_slice(&MINOR.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// The bytes of a record.
pub(super) fn record(sequence: u64, wall: u64, payload: &[u8]) -> Vec<u8> {
    let envelope = Envelope {
        kind: Kind::Meta,
        stream: Stream::ClientToServer,
        framing: Framing::Stray,
        flags: Flags::default(),
        session: 0,
        exchange: 0,
        sequence,
        wall,
        monotonic: 0,
        length: payload.len() as u64,
        digest: None,
        spans: Vec::new(),
    };
    let mut bytes = Vec::new();
    format::encode(&envelope, payload, &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

impl Log {
    /// Reads a file; none where there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, StateError> {
        match std::fs::read(path) {
            Ok(bytes) => Self::of(bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn of(bytes: Vec<u8>) -> Result<Self, StateError> {
        let mut log = Self {
            length: bytes.len() as u64,
            bytes,
            ..Self::default()
        };
        let (mut at, mut checked) = (0, 0);
        if log.bytes.starts_with(&MAGIC) && log.bytes.len() >= HEADER {
            let major = u16::from_le_bytes([log.bytes[8], log.bytes[9]]);
            if major != MAJOR {
                return Err(StateError::Version { major });
            }
            at = HEADER;
        }
        while at < log.bytes.len() {
            let rest = &log.bytes[at..];
            let error = match format::decode(rest) {
                Ok((record, length)) => {
                    log.last = log.last.max(record.envelope.sequence);
                    log.records.push(Place {
                        raw: at..at + length,
                        payload: at + length - record.payload.len(),
                    });
                    at += length;
                    continue;
                }
                Err(error) => error,
            };
            match next_record(rest, &mut checked) {
                Some(offset) => {
                    log.damaged += offset as u64;
                    at += offset;
                }
                None => {
                    let left = rest.len() as u64;
                    match error {
                        Unreadable::Torn => log.torn = left,
                        Unreadable::Damaged => log.damaged += left,
                    }
                    break;
                }
            }
        }
        Ok(log)
    }

    /// All bytes of the file but those of these records, which are given in their order.
    pub(super) fn without(&self, records: &[&Place]) -> Vec<u8> {
        let (mut bytes, mut at) = (Vec::with_capacity(self.bytes.len()), 0);
        for record in records {
            bytes.extend_from_slice(&self.bytes[at..record.raw.start]);
            at = record.raw.end;
        }
        bytes.extend_from_slice(&self.bytes[at..]);
        bytes
    }

    pub(super) fn payload(&self, place: &Place) -> &[u8] {
        &self.bytes[place.payload..place.raw.end]
    }

    pub(super) fn raw(&self, place: &Place) -> &[u8] {
        &self.bytes[place.raw.clone()]
    }
}
