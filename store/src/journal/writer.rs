//! Appending to a journal, rolling over, going on after a full disk.
//!
//! Records are gathered in a batch and written with one `write(2)`: what that acknowledged
//! survives the process. When a write fails, the file is cut back to its last whole record,
//! so that nothing is ever glued to a torn one.

use super::chain::{Chain, Hash, Moment, NONE, What};
use super::format::{Envelope, FILE_MAGIC, FILE_PREFIX, encode};
use super::header::Header;
use crate::layout::{SegmentPath, Store, create_private};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that has grown this large is followed by a new one.
pub const ROLL_AT: u64 = 64 << 20;
/// A batch that has grown this large is written at once.
const BATCH: usize = 1 << 20;
/// The batch's memory is given back beyond this.
const BATCH_KEPT: usize = 256 << 10;

/// A process's journal, open for appending.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    header: Header,
    file: Arc<File>,
    /// Bytes of whole records in the file.
    good: u64,
    /// A write failed and the file may hold more than `good` bytes.
    torn: bool,
    batch: Vec<u8>,
    /// The last sequence number in the batch, and in the file.
    batched: u64,
    acknowledged: u64,
    /// How many records are in the batch, and when the last one was made.
    records: u32,
    last: Moment,
    /// The hash chain of the file, if it has one.
    chain: Option<Chain>,
}

impl Writer {
    /// Begins a process's journal. The file is locked for as long as it is open: readers take
    /// a file that is not locked for one whose process is dead.
    ///
    /// # Errors
    /// When the directory or file cannot be made, or the header cannot be written.
    pub fn create(store: &Store, header: Header) -> io::Result<Self> {
        Self::begin(store, header, None)
    }

    /// The same with a hash chain in its files: `key` is a hasher keyed for chains
    /// ([`Key::chain`](crate::redact::Key::chain)).
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn chained(store: &Store, header: Header, key: blake3::Hasher) -> io::Result<Self> {
        Self::begin(store, header, Some(key))
    }

    fn begin(store: &Store, header: Header, key: Option<blake3::Hasher>) -> io::Result<Self> {
        store.make(&store.live())?;
        let (file, good, chain) = begin(store, &header, key, NONE, Moment::default())?;
        Ok(Self {
            store: store.clone(),
            header,
            file: Arc::new(file),
            good,
            torn: false,
            batch: Vec::new(),
            batched: 0,
            acknowledged: 0,
            records: 0,
            last: Moment::default(),
            chain,
        })
    }

    /// What the current file says of itself.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The current file.
    #[must_use]
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// How many bytes of whole records the current file holds.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.good
    }

    /// The last sequence number that was written; everything up to it survives us.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Adds a record to the batch, which is written when it has grown large.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn append(&mut self, envelope: &Envelope, payload: &[u8]) -> io::Result<()> {
        encode(envelope, payload, &mut self.batch);
        self.batched = envelope.sequence;
        self.records += 1;
        self.last = Moment::of(envelope);
        if payload.len() < BATCH {
            self.batch.extend_from_slice(payload);
            return if self.batch.len() >= BATCH {
                self.flush()
            } else {
                Ok(())
            };
        }
        // A large payload is written from where it is instead of being copied.
        let mut batch = std::mem::take(&mut self.batch);
        let written = self.write(&mut batch, payload);
        self.recycle(batch);
        written
    }

    /// Writes the batch.
    ///
    /// # Errors
    /// When the disk does not take it. The batch is then dropped: the caller reports a gap.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let mut batch = std::mem::take(&mut self.batch);
        let written = self.write(&mut batch, &[]);
        self.recycle(batch);
        written
    }

    /// Whether the current file is large enough to be followed by a new one.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.good >= ROLL_AT
    }

    /// Goes on in a new file. The batch must have been flushed.
    ///
    /// # Errors
    /// When the new file cannot be made; the old one is then still in use.
    pub fn roll(&mut self) -> io::Result<()> {
        let mut header = self.header.clone();
        header.segment += 1;
        self.end(What::Rolled)?;
        let (key, link) = match &self.chain {
            Some(chain) => (Some(chain.key()), chain.head()),
            None => (None, NONE),
        };
        let (file, good, chain) = begin(&self.store, &header, key, link, self.last)?;
        self.header = header;
        self.file = Arc::new(file);
        self.good = good;
        self.torn = false;
        self.chain = chain;
        Ok(())
    }

    /// Says in the hash chain that nothing more comes. The batch must have been flushed; more
    /// may be written all the same.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn close(&mut self) -> io::Result<()> {
        self.end(What::End)
    }

    fn end(&mut self, what: What) -> io::Result<()> {
        let Some(chain) = &self.chain else {
            return Ok(());
        };
        // What was said last may have been just that.
        if chain.ends_with() == Some(what) {
            return Ok(());
        }
        let (mut chain, mut mark) = (chain.clone(), Vec::new());
        chain.mark(what, NONE, self.last, &mut mark);
        self.put(&[&mark])?;
        self.chain = Some(chain);
        Ok(())
    }

    /// Writes the batch, of which these are the bytes, and what is to follow it; behind that a
    /// mark of the hash chain, if it is time for one.
    fn write(&mut self, batch: &mut Vec<u8>, more: &[u8]) -> io::Result<()> {
        let records = std::mem::take(&mut self.records);
        // Of what the disk does not take, the chain of the file must not know.
        let mut next = self.chain.clone();
        let mut mark = Vec::new();
        if let Some(next) = &mut next {
            next.add(batch);
            next.add(more);
            next.count(records);
            if next.is_due() {
                next.mark(What::On, NONE, self.last, &mut mark);
            }
        }
        if more.is_empty() {
            batch.append(&mut mark);
        }
        self.put(&[batch, more, &mark])?;
        self.chain = next;
        self.acknowledged = self.batched;
        Ok(())
    }

    fn put(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.mend()?;
        for part in parts {
            if let Err(error) = (&*self.file).write_all(part) {
                self.torn = true;
                // Whatever the reason, try to leave whole records behind.
                let _ = self.mend();
                return Err(error);
            }
        }
        self.good += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Cuts off what a failed write left.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.good)?;
            io::Seek::seek(&mut &*self.file, io::SeekFrom::Start(self.good))?;
            self.torn = false;
        }
        Ok(())
    }

    fn recycle(&mut self, mut batch: Vec<u8>) {
        if batch.capacity() <= BATCH_KEPT.max(2 * batch.len()) {
            batch.clear();
            self.batch = batch;
        }
    }
}

/// Makes and locks a file and writes its header; removes it again when that fails.
fn begin(
    store: &Store,
    header: &Header,
    key: Option<blake3::Hasher>,
    link: Hash,
    at: Moment,
) -> io::Result<(File, u64, Option<Chain>)> {
    let mut bytes = header.encode(&FILE_MAGIC).map_err(io::Error::other)?;
    let chain = key.map(|key| {
        let mut chain = Chain::new(key, &bytes[FILE_PREFIX..]);
        chain.mark(What::Begin, link, at, &mut bytes);
        chain
    });
    let path = store
        .live()
        .join(SegmentPath::name(header.process, header.segment, false));
    // A journal has its name only once it is locked and has its header: what has none of these
    // would be taken for one that a dead process left, and be sealed or removed.
    if path.exists() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let begun = begun_path(&path);
    let file = create_private(&begun)?;
    let written = file
        .lock()
        .and_then(|()| (&file).write_all(&bytes))
        .and_then(|()| std::fs::rename(&begun, &path));
    match written {
        Ok(()) => Ok((file, bytes.len() as u64, chain)),
        Err(error) => {
            let _ = std::fs::remove_file(&begun);
            Err(error)
        }
    }
}

/// Under which name a journal is begun.
fn begun_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(BEGUN);
    path.with_file_name(name)
}

/// What the name of a journal ends with that is just being begun.
pub(crate) const BEGUN: &str = ".new";

#[cfg(test)]
mod tests {
    use super::super::format::tests::envelope;
    use super::super::header::tests::header;
    use super::super::reader::Segment;
    use super::*;

    #[test]
    fn what_was_appended_is_read_back_over_several_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let mut writer = Writer::create(&store, header()).unwrap();
        let large = vec![b'x'; BATCH + 1];
        writer.append(&envelope(1), b"one").unwrap();
        assert_eq!(writer.acknowledged(), 0, "still in the batch");
        writer.append(&envelope(2), &large).unwrap();
        assert_eq!(writer.acknowledged(), 2);
        writer.append(&envelope(3), b"three").unwrap();
        writer.flush().unwrap();
        writer.roll().unwrap();
        writer.append(&envelope(4), b"four").unwrap();
        writer.flush().unwrap();

        let mut payloads = Vec::new();
        let mut live = Vec::new();
        for path in store.segments().unwrap() {
            let segment = Segment::open(&path).unwrap();
            live.push(segment.is_live());
            payloads.extend(segment.records().map(|r| r.unwrap().payload));
        }
        let expected: [&[u8]; 4] = [b"one", &large, b"three", b"four"];
        assert_eq!(payloads, expected);
        assert_eq!(
            live,
            [false, true],
            "a file that was rolled over is finished"
        );
    }

    #[test]
    fn a_journal_has_its_name_when_it_is_locked_and_has_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        store.make(&store.live()).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looker = scope.spawn(|| {
                let mut seen = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for path in store.segments().unwrap() {
                        // Each is removed by this thread only.
                        let segment = Segment::open(&path).unwrap();
                        assert!(segment.is_live());
                        std::fs::remove_file(&path.path).unwrap();
                        seen += 1;
                    }
                }
                seen
            });
            let mut writers = Vec::new();
            for n in 0..500 {
                let mut header = header();
                header.process = agent_trace_model::ProcessId::new(n, [1; 10]);
                writers.push(Writer::create(&store, header).unwrap());
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            looker.join().unwrap();
        });
    }

    #[test]
    fn large_records_are_marked_like_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let key = super::super::chain::tests::key();
        let mut writer = Writer::chained(&store, header(), key).unwrap();
        let large = vec![b'x'; BATCH];
        for sequence in 1..=u64::from(super::super::chain::EVERY) {
            writer.append(&envelope(sequence), &large).unwrap();
        }
        writer.flush().unwrap();
        let path = store.segments().unwrap().remove(0);
        let segment = Segment::open(&path).unwrap();
        let last = segment.with_marks().last().unwrap().unwrap();
        assert_eq!(last.envelope.kind, super::super::Kind::Mark);
        assert_eq!(
            last.envelope.sequence,
            u64::from(super::super::chain::EVERY)
        );
    }

    #[test]
    fn what_is_written_at_once_has_one_mark_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let key = super::super::chain::tests::key();
        let mut writer = Writer::chained(&store, header(), key).unwrap();
        for sequence in 1..=500 {
            writer.append(&envelope(sequence), b"small").unwrap();
        }
        writer.flush().unwrap();
        let path = store.segments().unwrap().remove(0);
        let segment = Segment::open(&path).unwrap();
        let numbers: Vec<_> = segment
            .with_marks()
            .map(|item| item.unwrap().envelope)
            .filter(|envelope| envelope.kind == super::super::Kind::Mark)
            .map(|mark| mark.sequence)
            .collect();
        assert_eq!(numbers, [0, 500]);
    }

    #[test]
    fn a_failed_write_leaves_whole_records_and_the_next_one_is_not_glued_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let mut writer = Writer::create(&store, header()).unwrap();
        writer.append(&envelope(1), b"one").unwrap();
        writer.flush().unwrap();
        // As a full disk leaves it: half a record is in the file.
        (&*writer.file)
            .write_all(b"\xf5\xa7 half a record")
            .unwrap();
        writer.torn = true;
        writer.append(&envelope(2), b"two").unwrap();
        writer.flush().unwrap();
        let path = store.segments().unwrap().remove(0);
        let records: Vec<_> = Segment::open(&path).unwrap().records().collect();
        assert!(records.iter().all(Result::is_ok), "{records:?}");
        assert_eq!(records.len(), 2);
    }
}
