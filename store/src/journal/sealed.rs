//! The compressed form of a finished journal file.
//!
//! ```text
//! file     SEALED_MAGIC(8) and header as in a journal
//! block    BLOCK_MAGIC(4)  u32 compressed length  u32 true length  u32 records
//!          u64 first sequence number  u32 crc32c of all before and of the data  zstd data
//! footer   JSON: offsets of the blocks, time range, chain head; then the word filter
//! trailer  u64 offset of the footer  u32 JSON length  u32 filter length
//!          u32 crc32c of footer and trailer  TRAILER_MAGIC(4)
//! ```
//! A block holds about 256 whole records as they were in the journal, but for magic and checksum
//! of each, which are made again: the block has its own. A damaged block costs its records; a
//! damaged footer costs nothing but speed.
//!
//! The footer's chain is a keyed BLAKE3 hash over the header's JSON and all records in their
//! order, with the marks of the hash chain (`chain`) between them: whoever changes the file
//! without the store's key cannot make a new one. The marks of a journal are kept when it is
//! sealed, and none are made for what had none, so that sealing proves nothing that was not proven
//! before. Only what is written here in the first place, such as an import, gets new ones: one at
//! the end of each block.

use super::bloom;
use super::chain::{Chain, Hash, Moment, NONE, What};
use super::format::{GUARD, Kind, narrow, restore, u32_at, u64_at};
use super::header::{Header, HeaderError, framed};
use super::pack::{pack, unpack};
use super::reader::{Damage, Segment};
use serde::{Deserialize, Serialize};
use std::io;

/// The first bytes of a sealed file.
pub const SEALED_MAGIC: [u8; 8] = *b"\x89ATS\r\n\x1a\n";
const BLOCK_MAGIC: [u8; 4] = [0xf5, 0xa8, 0xff, 0xc1];
const TRAILER_MAGIC: [u8; 4] = [0xf5, 0xa9, 0xff, 0xc1];
const BLOCK_HEADER: usize = 28;
const TRAILER: usize = 24;
/// Compresses 4 % better than 64 of them, and unpacks no slower.
const BLOCK_RECORDS: u32 = 256;
const BLOCK_BYTES: usize = 1 << 20;
/// The largest block that a reader unpacks: one record of the largest size and some.
const MOST_BLOCK: usize = super::format::MOST_PAYLOAD + (2 << 20);
/// The most that a reader unpacks of one file, whatever its blocks claim.
pub const MOST_FILE: usize = 1 << 30;

/// The end of a sealed file: how to find things in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// Each block's offset in the file and its first sequence number.
    pub blocks: Vec<(u64, u64)>,
    /// Wall clock of the first and the last record, in nanoseconds since 1970.
    pub time: (u64, u64),
    /// How many records there are.
    pub records: u64,
    /// Keyed hash over header and records, in hexadecimal digits.
    pub chain: String,
    /// When the file was written, what it was made of had been changed, as its own chain told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flawed: bool,
    /// Which words the text may hold ([`bloom`]).
    #[serde(skip)]
    pub words: Vec<u8>,
}

pub(super) fn magic(sealed: bool) -> &'static [u8; 8] {
    if sealed {
        &SEALED_MAGIC
    } else {
        &super::format::FILE_MAGIC
    }
}

/// Builds a sealed file record by record.
pub struct Sealer {
    out: Vec<u8>,
    block: Vec<u8>,
    /// Records in the block, without and with marks.
    records: u32,
    marked: u32,
    first: u64,
    footer: Footer,
    words: bloom::Builder,
    /// Over the whole file.
    chain: blake3::Hasher,
    /// Makes marks, where the records have none.
    marks: Option<Chain>,
    last: Moment,
    ends: Ends,
}

/// How a file that is written anew is tied to those around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// What the file before ended with.
    pub(crate) before: Hash,
    /// How it ends.
    pub(crate) what: What,
    /// What the file that it stands for ended with.
    pub(crate) end: Hash,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            before: NONE,
            what: What::End,
            end: NONE,
        }
    }
}

impl Sealer {
    /// A sealed file with this header; `key` is a hasher keyed for chains
    /// ([`Key::chain`](crate::redact::Key::chain)).
    ///
    /// # Errors
    /// When compression fails, or the header cannot be written as JSON, which does not happen.
    pub fn new(header: &Header, key: blake3::Hasher) -> io::Result<Self> {
        Self::between(header, key, Ends::default())
    }

    /// The same in place of another one.
    pub(crate) fn between(header: &Header, key: blake3::Hasher, ends: Ends) -> io::Result<Self> {
        let json = serde_json::to_vec(header)?;
        let mut sealer = Self::unmarked(&json, key.clone());
        let mut marks = Chain::new(key, &json);
        sealer.last.wall = header.started;
        sealer.ends = ends;
        let mut mark = Vec::new();
        marks.mark(What::Begin, ends.before, sealer.last, &mut mark);
        sealer.marks = Some(marks);
        sealer.put(&mark);
        Ok(sealer)
    }

    /// A sealed file of records that have marks between them.
    fn unmarked(json: &[u8], mut chain: blake3::Hasher) -> Self {
        chain.update(json);
        Self {
            out: framed(&SEALED_MAGIC, json),
            block: Vec::new(),
            records: 0,
            marked: 0,
            first: 0,
            footer: Footer::default(),
            words: bloom::Builder::default(),
            chain,
            marks: None,
            last: Moment::default(),
            ends: Ends::default(),
        }
    }

    /// A sealed file of records that nothing proves.
    pub(crate) fn unproven(header: &Header, key: blake3::Hasher) -> io::Result<Self> {
        Ok(Self::unmarked(&serde_json::to_vec(header)?, key))
    }

    /// Takes note that what the records come from had been changed.
    pub(crate) fn flawed(&mut self, flawed: bool) {
        self.footer.flawed |= flawed;
    }

    /// Makes no more marks: nothing proves the records that follow.
    pub(crate) fn leave_open(&mut self) {
        if self
            .marks
            .as_ref()
            .is_some_and(|marks| marks.ends_with().is_none())
        {
            self.mark(What::On, NONE);
        }
        self.marks = None;
    }

    /// Adds a record, given with its bytes as they are in a journal.
    ///
    /// # Errors
    /// When compression fails.
    pub fn add(&mut self, record: &super::Record, raw: &[u8]) -> io::Result<()> {
        let envelope = &record.envelope;
        if envelope.kind == Kind::Mark {
            if self.marks.is_none() {
                self.put(raw);
            }
            return Ok(());
        }
        // Not before the next record: a mark belongs to those before it.
        if self.is_full() {
            self.close_block()?;
        }
        if self.records == 0 {
            self.first = envelope.sequence;
        }
        if self.footer.records == 0 {
            self.footer.time.0 = envelope.wall;
        }
        self.footer.time.1 = self.footer.time.1.max(envelope.wall);
        self.footer.records += 1;
        if matches!(envelope.kind, Kind::Frame | Kind::Stderr) {
            self.words.add(&record.payload);
        }
        if let Some(marks) = &mut self.marks {
            marks.add(raw);
        }
        self.last = Moment::of(envelope);
        self.put(raw);
        self.records += 1;
        if self.is_full() {
            self.mark(What::On, NONE);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.records >= BLOCK_RECORDS || self.block.len() >= BLOCK_BYTES
    }

    fn put(&mut self, raw: &[u8]) {
        self.chain.update(raw);
        self.block.extend_from_slice(&raw[GUARD..]);
        self.marked += 1;
    }

    fn mark(&mut self, what: What, link: Hash) {
        if let Some(marks) = &mut self.marks {
            let mut mark = Vec::new();
            marks.mark(what, link, self.last, &mut mark);
            self.put(&mark);
        }
    }

    /// The whole file.
    ///
    /// # Errors
    /// When compression fails.
    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        self.mark(self.ends.what, self.ends.end);
        self.complete()
    }

    /// The whole file of several, and what the one after it has to name.
    pub(crate) fn finish_as(mut self, what: What) -> io::Result<(Vec<u8>, Hash)> {
        self.mark(what, NONE);
        let end = self.marks.as_ref().map_or(NONE, Chain::head);
        Ok((self.complete()?, end))
    }

    fn complete(mut self) -> io::Result<Vec<u8>> {
        self.close_block()?;
        self.chain.update(&[u8::from(self.footer.flawed)]);
        self.footer.chain = self.chain.finalize().to_hex().to_string();
        let json = serde_json::to_vec(&self.footer)?;
        let words = self.words.build();
        let offset = self.out.len();
        self.out.extend_from_slice(&json);
        self.out.extend_from_slice(&words);
        self.out.extend_from_slice(&(offset as u64).to_le_bytes());
        self.out
            .extend_from_slice(&narrow::<u32>(json.len()).to_le_bytes());
        self.out
            .extend_from_slice(&narrow::<u32>(words.len()).to_le_bytes());
        let crc = crc32c::crc32c(&self.out[offset..]);
        self.out.extend_from_slice(&crc.to_le_bytes());
        self.out.extend_from_slice(&TRAILER_MAGIC);
        Ok(self.out)
    }

    fn close_block(&mut self) -> io::Result<()> {
        if self.marked == 0 {
            return Ok(());
        }
        let data = pack(&self.block)?;
        let start = self.out.len();
        self.footer.blocks.push((start as u64, self.first));
        self.out.extend_from_slice(&BLOCK_MAGIC);
        for number in [narrow(data.len()), narrow(self.block.len()), self.marked] {
            self.out.extend_from_slice(&number.to_le_bytes());
        }
        self.out.extend_from_slice(&self.first.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&self.out[start..]), &data);
        self.out.extend_from_slice(&crc.to_le_bytes());
        self.out.extend_from_slice(&data);
        self.block.clear();
        (self.records, self.marked) = (0, 0);
        Ok(())
    }
}

/// Seals a journal's bytes; `key` is a hasher keyed for chains. What is damaged in it stays
/// behind.
///
/// # Errors
/// When compression fails.
pub fn seal(segment: &Segment, key: blake3::Hasher) -> io::Result<Vec<u8>> {
    seal_as(segment, false, key)
}

/// The same; `flawed` says that it is known not to be what was recorded.
pub(crate) fn seal_as(segment: &Segment, flawed: bool, key: blake3::Hasher) -> io::Result<Vec<u8>> {
    let mut sealer = Sealer::unmarked(segment.json(), key);
    sealer.flawed(flawed);
    for view in segment.with_marks().flatten() {
        sealer.add(&view.record(), view.raw)?;
    }
    sealer.finish()
}

/// What the footer's chain has to be, so that the file is what was sealed: hexadecimal digits.
pub(crate) fn chain(segment: &Segment, flawed: bool, mut key: blake3::Hasher) -> String {
    key.update(segment.json());
    for view in segment.with_marks().flatten() {
        key.update(view.raw);
    }
    key.update(&[u8::from(flawed)]);
    key.finalize().to_hex().to_string()
}

/// The footer of a sealed file, if it is whole.
#[must_use]
pub fn footer(file: &[u8]) -> Option<Footer> {
    let trailer = file.get(file.len().checked_sub(TRAILER)?..)?;
    let offset = usize::try_from(u64_at(trailer, 0)).ok()?;
    let (json, words) = (u32_at(trailer, 8) as usize, u32_at(trailer, 12) as usize);
    let body = file.get(offset..file.len() - TRAILER)?;
    let checked = file.get(offset..file.len() - 8)?;
    let whole = trailer[20..] == TRAILER_MAGIC
        && body.len() == json.checked_add(words)?
        && crc32c::crc32c(checked) == u32_at(trailer, 16);
    if !whole {
        return None;
    }
    let mut footer: Footer = serde_json::from_slice(&body[..json]).ok()?;
    footer.words = body[json..].to_vec();
    Some(footer)
}

/// The word filter of a sealed file; empty, which says yes to everything, where the file has
/// none that can be read.
///
/// # Errors
/// When the file cannot be read.
#[cfg(unix)]
pub fn words(file: &std::fs::File) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let length = file.metadata()?.len();
    let mut trailer = [0; TRAILER];
    let Some(at) = length.checked_sub(TRAILER as u64) else {
        return Ok(Vec::new());
    };
    file.read_exact_at(&mut trailer, at)?;
    let offset = u64_at(&trailer, 0);
    let (json, words) = (u32_at(&trailer, 8) as usize, u32_at(&trailer, 12) as usize);
    let fits = json.checked_add(words).map(|all| all as u64) == at.checked_sub(offset);
    if trailer[20..] != TRAILER_MAGIC || !fits {
        return Ok(Vec::new());
    }
    // The checksum is over both.
    let mut footer = vec![0; json + words];
    file.read_exact_at(&mut footer, offset)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&footer), &trailer[..16]);
    if crc != u32_at(&trailer, 16) {
        return Ok(Vec::new());
    }
    Ok(footer.split_off(json))
}

/// What is in a sealed file.
pub(super) struct Unsealed {
    pub(super) header: Header,
    /// Where the header ends.
    pub(super) start: usize,
    /// Its records as they were in the journal.
    pub(super) bytes: Vec<u8>,
    pub(super) damage: Vec<Damage>,
    /// None where it is lost.
    pub(super) footer: Option<Footer>,
}

/// Reads a sealed file.
pub(super) fn unseal(file: &[u8]) -> Result<Unsealed, HeaderError> {
    let (header, start) = Header::decode_as(&SEALED_MAGIC, file)?;
    let footer = footer(file);
    let end = match &footer {
        Some(_) => usize::try_from(u64_at(&file[file.len() - TRAILER..], 0)).unwrap_or_default(),
        None => file.len(),
    };
    let (mut at, mut bytes, mut damage) = (start, Vec::new(), Vec::new());
    while at < end {
        let rest = &file[at..end];
        if let Some(length) = block(rest, MOST_FILE - bytes.len(), &mut bytes) {
            at += length;
            continue;
        }
        let next = memchr::memmem::find(&rest[1..], &BLOCK_MAGIC).map_or(end, |i| at + 1 + i);
        damage.push(Damage {
            at: at as u64,
            bytes: (next - at) as u64,
            torn_end: next == end && footer.is_none(),
        });
        at = next;
    }
    Ok(Unsealed {
        header,
        start,
        bytes,
        damage,
        // The word filter is large, and read by who wants it.
        footer: footer.map(|footer| Footer {
            words: Vec::new(),
            ..footer
        }),
    })
}

/// Where a sealed file's first block ends, given the beginning of the file; none where that
/// does not hold all of it.
pub(super) fn first_block_end(file: &[u8]) -> Option<usize> {
    let (_, start) = Header::decode_as(&SEALED_MAGIC, file).ok()?;
    let block = file.get(start..start + BLOCK_HEADER)?;
    let end = start + BLOCK_HEADER + u32_at(block, 4) as usize;
    (block[..4] == BLOCK_MAGIC && end <= file.len()).then_some(end)
}

/// Appends the records of the block at the beginning of `bytes`. Returns its length there.
fn block(bytes: &[u8], most: usize, out: &mut Vec<u8>) -> Option<usize> {
    let header = bytes.first_chunk::<BLOCK_HEADER>()?;
    let (length, unpacked) = (u32_at(header, 4) as usize, u32_at(header, 8) as usize);
    if header[..4] != BLOCK_MAGIC || unpacked > MOST_BLOCK.min(most) {
        return None;
    }
    let end = BLOCK_HEADER.checked_add(length)?;
    let data = bytes.get(BLOCK_HEADER..end)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..24]), data);
    if crc != u32_at(header, 24) {
        return None;
    }
    let mut records = Vec::new();
    if !unpack(data, unpacked, &mut records) {
        return None;
    }
    let (mut at, length) = (0, out.len());
    out.reserve(records.len() + u32_at(header, 12) as usize * GUARD);
    while at < records.len() {
        let Some(length) = restore(&records[at..], out) else {
            out.truncate(length);
            return None;
        };
        at += length;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::super::format::FILE_MAGIC;
    use super::super::format::tests::{encoded, envelope};
    use super::super::header::tests::header;
    use super::*;

    fn journal(records: u64) -> Segment {
        let mut bytes = header().encode(&FILE_MAGIC).unwrap();
        for sequence in 1..=records {
            bytes.extend(encoded(
                &envelope(sequence),
                format!("payload {sequence}").as_bytes(),
            ));
        }
        Segment::from_bytes(bytes, false, false).unwrap()
    }

    fn hasher() -> blake3::Hasher {
        blake3::Hasher::new_keyed(&[1; 32])
    }

    fn payloads(segment: &Segment) -> Vec<Vec<u8>> {
        segment
            .records()
            .filter_map(|r| r.ok().map(|r| r.payload))
            .collect()
    }

    #[test]
    fn sealed_and_unsealed_read_alike() {
        let records = u64::from(4 * BLOCK_RECORDS) - 9;
        let journal = journal(records);
        let file = seal(&journal, hasher()).unwrap();
        let sealed = Segment::from_bytes(file.clone(), true, false).unwrap();
        assert_eq!(sealed.header(), journal.header());
        assert!(sealed.records().eq(journal.records()));
        let footer = footer(&file).unwrap();
        assert_eq!((footer.records, footer.blocks.len()), (records, 4));
        assert!(bloom::may_hold(&footer.words, b"\"payload 7\"", false));
    }

    #[test]
    fn a_damaged_block_costs_itself_and_a_lost_footer_nothing() {
        let block = BLOCK_RECORDS as usize;
        let journal = journal(3 * block as u64);
        let mut file = seal(&journal, hasher()).unwrap();
        let second = usize::try_from(footer(&file).unwrap().blocks[1].0).unwrap();
        file[second + 40] ^= 1;
        file.pop();
        assert!(footer(&file).is_none());
        let sealed = Segment::from_bytes(file, true, false).unwrap();
        assert_eq!(payloads(&sealed).len(), 2 * block);
    }

    #[test]
    fn the_chain_depends_on_key_and_records() {
        let chain = |records, key: [u8; 32]| {
            let file = seal(&journal(records), blake3::Hasher::new_keyed(&key)).unwrap();
            footer(&file).unwrap().chain
        };
        assert_eq!(chain(3, [1; 32]), chain(3, [1; 32]));
        assert_ne!(chain(3, [1; 32]), chain(3, [2; 32]));
        assert_ne!(chain(3, [1; 32]), chain(4, [1; 32]));
    }
}
