//! Reading a segment, whatever state it is in.
//!
//! Damage costs the record that it hit: the reader reports it and goes on at the next
//! record. A torn end is the end, and says nothing about the records before it.

use super::format::{
    Envelope, FILE_PREFIX, Kind, RECORD_MAGIC, Record, Unreadable, decode_borrowed,
};
use super::header::{Header, HeaderError};
use super::sealed;
use crate::layout::SegmentPath;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::PathBuf;

/// Why a segment cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is none of ours, or its header is lost.
    #[error("cannot read {}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: HeaderError,
    },
}

/// A part of a segment that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins in the file (of a sealed file: in its uncompressed form).
    pub at: u64,
    /// How many bytes were passed over.
    pub bytes: u64,
    /// It is at the end of the file and looks like a record that was not written to its end,
    /// which is what a killed process leaves.
    pub torn_end: bool,
}

/// A record in the bytes of its file.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// All but the payload.
    pub envelope: Envelope,
    /// The payload.
    pub payload: &'a [u8],
    /// The whole record.
    pub raw: &'a [u8],
}

impl View<'_> {
    /// A copy.
    #[must_use]
    pub fn record(&self) -> Record {
        Record {
            envelope: self.envelope.clone(),
            payload: self.payload.to_vec(),
        }
    }
}

/// A segment in memory, open for reading.
#[derive(Debug)]
pub struct Segment {
    header: Header,
    live: bool,
    bytes: Vec<u8>,
    start: usize,
    /// The header as it stands in the file.
    json: Vec<u8>,
    damage: Vec<Damage>,
    /// Of a sealed file, unless it is lost.
    footer: Option<sealed::Footer>,
}

impl Segment {
    /// Reads a journal or a sealed file.
    ///
    /// # Errors
    /// When the file cannot be read or its header is not one of ours.
    pub fn open(path: &SegmentPath) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io {
            path: path.path.clone(),
            source,
        };
        let mut file = File::open(&path.path).map_err(io)?;
        // Before it is read: what a writer that ends in between still writes is then read too.
        let live = !path.sealed && is_held(&file);
        let length = file.metadata().map_or(0, |about| about.len());
        let mut bytes = Vec::new();
        let room = usize::try_from(length).unwrap_or(usize::MAX);
        let reserved = bytes.try_reserve_exact(room).map_err(Into::into);
        reserved
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(io)?;
        Self::from_bytes(bytes, path.sealed, live).map_err(|source| OpenError::Header {
            path: path.path.clone(),
            source,
        })
    }

    /// The segment that these bytes are.
    ///
    /// # Errors
    /// When they do not begin with a header.
    pub fn from_bytes(file: Vec<u8>, sealed: bool, live: bool) -> Result<Self, HeaderError> {
        if sealed {
            let unsealed = sealed::unseal(&file)?;
            return Ok(Self {
                header: unsealed.header,
                live: false,
                bytes: unsealed.bytes,
                start: 0,
                json: file[FILE_PREFIX..unsealed.start].to_vec(),
                damage: unsealed.damage,
                footer: unsealed.footer,
            });
        }
        let (header, start) = Header::decode(&file)?;
        Ok(Self {
            header,
            live,
            json: file[FILE_PREFIX..start].to_vec(),
            bytes: file,
            start,
            damage: Vec::new(),
            footer: None,
        })
    }

    /// What the file says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The same as it stands in the file: JSON.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }

    /// The end of a sealed file, unless it is lost.
    pub(crate) fn footer(&self) -> Option<&sealed::Footer> {
        self.footer.as_ref()
    }

    /// Whether its process is still writing it.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The records in their order, with what could not be read between them.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, Damage>> {
        self.raw_records()
            .map(|item| item.map(|(record, _)| record))
    }

    /// The same, each with its bytes as they are in the file.
    pub fn raw_records(&self) -> impl Iterator<Item = Result<(Record, &[u8]), Damage>> {
        self.views()
            .map(|item| item.map(|view| (view.record(), view.raw)))
    }

    /// The same without copies.
    pub fn views(&self) -> impl Iterator<Item = Result<View<'_>, Damage>> {
        let is_mark = |view: &View<'_>| view.envelope.kind == Kind::Mark;
        self.with_marks()
            .filter(move |item| !item.as_ref().is_ok_and(is_mark))
    }

    /// The same with the marks of the hash chain between them.
    pub(crate) fn with_marks(&self) -> impl Iterator<Item = Result<View<'_>, Damage>> {
        let records = Records {
            bytes: &self.bytes,
            at: self.start,
            live: self.live,
            checked: 0,
        };
        self.damage.iter().copied().map(Err).chain(records)
    }
}

/// Reads only a journal's header: enough to list it.
///
/// # Errors
/// As [`Segment::open`].
pub fn peek(path: &SegmentPath) -> Result<Header, OpenError> {
    let io = |source| OpenError::Io {
        path: path.path.clone(),
        source,
    };
    // Longer headers are rare; then all is read.
    let mut start = Vec::with_capacity(4096);
    let mut file = File::open(&path.path).map_err(io)?;
    file.by_ref()
        .take(4096)
        .read_to_end(&mut start)
        .map_err(io)?;
    let magic = sealed::magic(path.sealed);
    let mut decoded = Header::decode_as(magic, &start);
    if matches!(decoded, Err(HeaderError::Torn)) && start.len() == 4096 {
        file.read_to_end(&mut start).map_err(io)?;
        decoded = Header::decode_as(magic, &start);
    }
    decoded
        .map(|(header, _)| header)
        .map_err(|source| OpenError::Header {
            path: path.path.clone(),
            source,
        })
}

/// The first record of a file, if it can be read from the beginning of it. With
/// [`peek`] that is mostly enough to tell what a journal is about.
///
/// # Errors
/// When the file cannot be read.
pub fn first_record(path: &SegmentPath) -> io::Result<Option<Record>> {
    let mut file = File::open(&path.path)?;
    let mut start = Vec::new();
    for length in BEGINNINGS {
        let wanted = length - start.len() as u64;
        if file.by_ref().take(wanted).read_to_end(&mut start)? == 0 {
            break;
        }
        // Of a sealed file no more is unpacked than has to be.
        let end = match path.sealed {
            true => sealed::first_block_end(&start),
            false => Some(start.len()),
        };
        // Live, so that what is cut off here is no damage.
        let bytes = start[..end.unwrap_or_default()].to_vec();
        let segment = Segment::from_bytes(bytes, path.sealed, true).ok();
        let mut records = segment.iter().flat_map(Segment::views);
        if let Some(view) = records.find_map(Result::ok) {
            return Ok(Some(view.record()));
        }
    }
    Ok(None)
}

/// How much of a file is read to find its first record: as a rule the first is enough, and of a
/// sealed one the second.
const BEGINNINGS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Whether someone holds the lock that a writer holds.
///
/// # Errors
/// When the file cannot be opened.
pub fn is_locked(path: &std::path::Path) -> io::Result<bool> {
    Ok(is_held(&File::open(path)?))
}

fn is_held(file: &File) -> bool {
    match file.try_lock_shared() {
        // Given back at once: a writer that begins may want it.
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        // A file system without locks: nothing is recorded there, for want of one.
        Err(TryLockError::Error(_)) => false,
    }
}

struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    live: bool,
    /// Bytes that were summed up in searches for the next record.
    checked: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<View<'a>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let error = match decode_borrowed(rest) {
            Ok((envelope, payload)) => {
                self.at += payload.end;
                return Some(Ok(View {
                    envelope,
                    raw: &rest[..payload.end],
                    payload: &rest[payload],
                }));
            }
            Err(error) => error,
        };
        let next = next_record(rest, &mut self.checked);
        let start = self.at;
        self.at = next.map_or(self.bytes.len(), |offset| start + offset);
        // The end of a file that is being written is not damaged, just not there yet.
        if next.is_none() && self.live {
            return None;
        }
        Some(Err(Damage {
            at: start as u64,
            bytes: (self.at - start) as u64,
            torn_end: next.is_none() && error == Unreadable::Torn,
        }))
    }
}

/// Offset of the next whole record after a place where there is none.
pub(crate) fn next_record(bytes: &[u8], checked: &mut usize) -> Option<usize> {
    // Candidates are found by their magic and judged by their checksum. A length that lies
    // cannot make this slow: what is checked at one place is bounded by the limit on
    // candidates that claim to be long.
    for offset in memchr::memmem::find_iter(&bytes[1..], &RECORD_MAGIC) {
        let candidate = &bytes[offset + 1..];
        match decode_borrowed(candidate) {
            Ok(_) => return Some(offset + 1),
            Err(Unreadable::Torn) => {}
            Err(Unreadable::Damaged) => {
                // A claim beyond the end was refused without summing anything up.
                let claimed = super::format::claimed(candidate);
                *checked += if claimed <= candidate.len() {
                    claimed
                } else {
                    0
                };
                if *checked > MOST_CHECKED {
                    return None;
                }
            }
        }
    }
    None
}

/// How many bytes of one file may be summed up in searches for the next record.
const MOST_CHECKED: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::super::format::FILE_MAGIC;
    use super::super::format::tests::{encoded, envelope};
    use super::super::header::tests::header;
    use super::*;
    use proptest::prelude::*;

    fn file(records: u64) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header().encode(&FILE_MAGIC).unwrap();
        let mut ends = vec![bytes.len()];
        for sequence in 1..=records {
            bytes.extend(encoded(
                &envelope(sequence),
                format!("payload {sequence}").as_bytes(),
            ));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn read(bytes: Vec<u8>) -> (Vec<u64>, Vec<Damage>) {
        let segment = Segment::from_bytes(bytes, false, false).unwrap();
        let (mut good, mut bad) = (vec![], vec![]);
        for record in segment.records() {
            match record {
                Ok(record) => good.push(record.envelope.sequence),
                Err(damage) => bad.push(damage),
            }
        }
        (good, bad)
    }

    #[test]
    fn a_damaged_record_costs_itself_only() {
        for field in [0, 5, 9, 17, 22, 30] {
            let (mut bytes, ends) = file(3);
            bytes[ends[1] + field] ^= 0xff;
            let (good, bad) = read(bytes);
            assert_eq!(good, [1, 3], "byte {field}");
            assert_eq!(bad.len(), 1);
            assert_eq!(bad[0].bytes as usize, ends[2] - ends[1]);
            assert!(!bad[0].torn_end);
        }
    }

    #[test]
    fn the_first_record_is_found_whatever_its_size() {
        let folder = tempfile::tempdir().unwrap();
        for size in [5, 9 << 10, 100 << 10, 2 << 20] {
            let mut bytes = header().encode(&FILE_MAGIC).unwrap();
            bytes.extend(encoded(&envelope(1), &vec![b'x'; size]));
            bytes.extend(encoded(&envelope(2), b"second"));
            let segment = Segment::from_bytes(bytes.clone(), false, false).unwrap();
            let chain = blake3::Hasher::new_keyed(&[1; 32]);
            let packed = sealed::seal(&segment, chain).unwrap();
            for (file, sealed) in [(bytes, false), (packed, true)] {
                let process = segment.header().process;
                let name = SegmentPath::name(process, 1, sealed);
                let path = SegmentPath::parse(folder.path().join(name)).unwrap();
                std::fs::write(&path.path, file).unwrap();
                let first = first_record(&path).unwrap();
                let length = first.map(|record| record.payload.len());
                // The largest is not worth the time.
                let expected = Some(size).filter(|_| size < 1 << 20 || sealed);
                assert_eq!(length, expected, "{sealed}");
            }
        }
    }

    #[test]
    fn a_torn_end_is_told_from_damage() {
        let (bytes, ends) = file(3);
        let (good, bad) = read(bytes[..ends[3] - 2].to_vec());
        assert_eq!(good, [1, 2]);
        assert!(bad[0].torn_end);
    }

    #[test]
    fn the_unwritten_end_of_a_live_file_is_no_damage() {
        let (bytes, ends) = file(2);
        let segment = Segment::from_bytes(bytes[..ends[2] - 2].to_vec(), false, true).unwrap();
        let read: Vec<_> = segment
            .records()
            .map(|r| r.unwrap().envelope.sequence)
            .collect();
        assert_eq!(read, [1]);
    }

    proptest! {
        #[test]
        fn any_bytes_after_a_header_are_survived(
            junk in proptest::collection::vec(any::<u8>(), 0..300),
            magics in 0_usize..4,
        ) {
            let (mut bytes, _) = file(1);
            for _ in 0..magics {
                bytes.extend(RECORD_MAGIC);
                bytes.extend(&junk);
            }
            bytes.extend(encoded(&envelope(9), b"last"));
            let (good, _) = read(bytes);
            prop_assert_eq!(good.last(), Some(&9));
        }
    }
}
