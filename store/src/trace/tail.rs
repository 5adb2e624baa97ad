//! What a process appends to its journal, as it does.
//!
//! Only what is new is read, file after file. A file that is finished, sealed and removed
//! meanwhile is read to its end through the handle that is open.

use crate::journal::format::{RECORD_MAGIC, Unreadable, decode};
use crate::journal::header::{Header, HeaderError};
use crate::journal::reader::{Damage, OpenError, Segment, next_record};
use crate::journal::{Kind, Record};

use crate::layout::{SegmentPath, Store};
use agent_trace_model::ProcessId;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// How often a file without a header is looked at before its process counts as dead: it was
/// made but not locked yet.
const PATIENCE: u32 = 20;

/// The growing journal of a process.
#[derive(Debug)]
pub struct Tail {
    store: Store,
    process: ProcessId,
    /// The file that is read, and its number.
    number: u32,
    file: Option<File>,
    /// Offset after the last whole record that was read.
    at: u64,
    /// The file's length when it was read.
    seen: u64,
    /// How much is read at once.
    chunk: u64,
    waited: u32,
    over: bool,
}

/// How much is read at once, unless a record is longer.
const CHUNK: u64 = 8 << 20;

/// What was read.
#[derive(Debug, Default)]
pub struct Records {
    /// Records in the order of the journal.
    pub records: Vec<Record>,
    /// What cannot be read between them, each with the position of the record after it.
    pub damage: Vec<(usize, Damage)>,
    /// Where in the records a file begins, and its number.
    pub files: Vec<(usize, u32)>,
    /// Likewise what each file says of itself, once that can be read.
    pub headers: Vec<(usize, Header)>,
    /// Likewise which sealed files cannot be read, and why.
    pub unreadable: Vec<(usize, u32, OpenError)>,
}

impl Tail {
    /// Reads the journal of this process from the file with this number on.
    #[must_use]
    pub fn new(store: &Store, process: ProcessId, number: u32) -> Self {
        Self {
            store: store.clone(),
            process,
            number,
            file: None,
            at: 0,
            seen: 0,
            chunk: CHUNK,
            waited: 0,
            over: false,
        }
    }

    /// Whether the process has ended and everything was read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// When a file cannot be read, or is none of ours.
    pub fn poll(&mut self, read: &mut Records) -> Result<(), OpenError> {
        while self.poll_some(read)? {}
        Ok(())
    }

    /// Reads some of what is new. Whether there may be more.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub fn poll_some(&mut self, read: &mut Records) -> Result<bool, OpenError> {
        Ok(!self.over && self.step(read)?)
    }

    /// The number of the file that is read, and how much of it was.
    #[must_use]
    pub fn place(&self) -> (u32, u64) {
        (self.number, self.at)
    }

    /// Reads what is new in the current file. Whether there is another one.
    fn step(&mut self, read: &mut Records) -> Result<bool, OpenError> {
        if self.file.is_none() && !self.begin(read)? {
            return Ok(true);
        }
        let Some(file) = &self.file else {
            return Ok(!self.over);
        };
        // Asked before reading: what is then there is all that there will be.
        let followed = self.path(self.number + 1).exists();
        let free = !followed && is_free(file);
        if !self.read(read)? {
            return Ok(true);
        }
        if followed || (free && self.next_exists()?) {
            self.finish(read);
            return Ok(true);
        }
        if free {
            self.waited += 1;
            if self.at > 0 || self.waited > PATIENCE {
                self.finish(read);
                self.over = true;
            }
        }
        Ok(false)
    }

    /// Opens the current file. False where it was sealed, and is read by that.
    fn begin(&mut self, read: &mut Records) -> Result<bool, OpenError> {
        let path = self.path(self.number);
        match File::open(&path) {
            Ok(file) => {
                (self.file, self.at, self.seen) = (Some(file), 0, 0);
                read.files.push((read.records.len(), self.number));
                return Ok(true);
            }
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(OpenError::Io { path, source });
            }
            Err(_) => {}
        }
        let all = self.store.segments().map_err(self.io())?;
        let next = all
            .into_iter()
            .find(|s| s.process == self.process && s.number >= self.number);
        match next {
            Some(sealed) if sealed.sealed => {
                self.number = sealed.number + 1;
                let at = read.records.len();
                let segment = match Segment::open(&sealed) {
                    Ok(segment) => segment,
                    // It was removed just now.
                    Err(OpenError::Io { source, .. })
                        if source.kind() == io::ErrorKind::NotFound =>
                    {
                        return Ok(false);
                    }
                    // That costs the file, and not those after it.
                    Err(error) => {
                        read.unreadable.push((at, sealed.number, error));
                        return Ok(false);
                    }
                };
                read.files.push((at, sealed.number));
                read.headers.push((at, segment.header().clone()));
                for record in segment.records() {
                    match record {
                        Ok(record) => read.records.push(record),
                        Err(damage) => read.damage.push((read.records.len(), damage)),
                    }
                }
            }
            // Those before it have gone.
            Some(journal) => self.number = journal.number,
            None => self.over = true,
        }
        Ok(false)
    }

    /// Reads what is new in the open file, up to a bound. Whether that was all of it.
    fn read(&mut self, read: &mut Records) -> Result<bool, OpenError> {
        let io = self.io();
        let Some(file) = &mut self.file else {
            return Ok(true);
        };
        let length = file.metadata().map_err(&io)?.len();
        if length == self.seen || length <= self.at {
            return Ok(true);
        }
        let end = length.min(self.at.saturating_add(self.chunk));
        let all = end == length;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.at)).map_err(&io)?;
        file.take(end - self.at)
            .read_to_end(&mut bytes)
            .map_err(&io)?;
        let mut rest = &bytes[..];
        if self.at == 0 {
            match Header::decode(rest) {
                Ok((header, length)) => {
                    read.headers.push((read.records.len(), header));
                    rest = &rest[length..];
                }
                Err(HeaderError::Torn) => {
                    self.seen = length;
                    return Ok(true);
                }
                Err(source) => {
                    let path = self.path(self.number);
                    return Err(OpenError::Header { path, source });
                }
            }
        }
        // What follows may not be written yet; it is read anew next time.
        rest = whole(
            rest,
            self.at + (bytes.len() - rest.len()) as u64,
            false,
            read,
        );
        let taken = (bytes.len() - rest.len()) as u64;
        self.at += taken;
        self.chunk = match taken {
            // A record that is longer.
            0 if !all => self.chunk.saturating_mul(2),
            _ => CHUNK,
        };
        self.seen = if all { length } else { self.at };
        Ok(all)
    }

    /// Nothing more comes in this file.
    fn finish(&mut self, read: &mut Records) {
        if let Some(file) = &mut self.file {
            let mut bytes = Vec::new();
            let left = file
                .seek(SeekFrom::Start(self.at))
                .and_then(|_| file.read_to_end(&mut bytes));
            if left.is_ok() && self.at > 0 {
                whole(&bytes, self.at, true, read);
            }
        }
        self.file = None;
        self.number += 1;
        self.waited = 0;
    }

    fn path(&self, number: u32) -> PathBuf {
        let name = SegmentPath::name(self.process, number, false);
        self.store.live().join(name)
    }

    /// Whether the process went on in another file.
    fn next_exists(&self) -> Result<bool, OpenError> {
        if self.path(self.number + 1).exists() {
            return Ok(true);
        }
        let all = self.store.segments().map_err(self.io())?;
        let later = |s: &SegmentPath| s.process == self.process && s.number > self.number;
        Ok(all.iter().any(later))
    }

    fn io(&self) -> impl Fn(io::Error) -> OpenError + use<> {
        let path = self.path(self.number);
        move |source| OpenError::Io {
            path: path.clone(),
            source,
        }
    }
}

/// Takes the whole records at the beginning of `bytes`, which begin at this offset of their
/// file. Returns what is left; that may become one, unless this is `all`.
fn whole<'a>(bytes: &'a [u8], at: u64, all: bool, read: &mut Records) -> &'a [u8] {
    let mut rest = bytes;
    while !rest.is_empty() {
        let error = match decode(rest) {
            // Nothing was recorded there.
            Ok((record, length)) if record.envelope.kind == Kind::Mark => {
                rest = &rest[length..];
                continue;
            }
            Ok((record, length)) => {
                read.records.push(record);
                rest = &rest[length..];
                continue;
            }
            Err(error) => error,
        };
        if error == Unreadable::Torn && !all {
            break;
        }
        let Some(next) = next_record(rest, &mut 0) else {
            // A torn end is how a killed process ends.
            let begins = rest.len() < RECORD_MAGIC.len() || rest.starts_with(&RECORD_MAGIC);
            if all && !(begins && error == Unreadable::Torn) {
                let damage = Damage {
                    at: at + (bytes.len() - rest.len()) as u64,
                    bytes: rest.len() as u64,
                    torn_end: false,
                };
                read.damage.push((read.records.len(), damage));
            }
            break;
        };
        let damage = Damage {
            at: at + (bytes.len() - rest.len()) as u64,
            bytes: next as u64,
            torn_end: false,
        };
        read.damage.push((read.records.len(), damage));
        rest = &rest[next..];
    }
    rest
}

/// Whether nobody holds the lock that a writer holds.
fn is_free(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            true
        }
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => true,
    }
}
