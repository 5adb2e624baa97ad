//! The sessions of a process, in one pass over its files.

use super::listing::opening;
use super::session::{Session, Standing};
use super::{SegmentPath, SessionEntry};
use crate::journal::header::Removed;
use crate::journal::reader::{Damage, OpenError, Segment};
use crate::journal::{Kind, Record};
use std::collections::BTreeMap;
use std::io;

/// One session.
pub(super) fn one(entry: &SessionEntry) -> Result<Session, OpenError> {
    let mut runs = all(&[entry]);
    runs.pop().unwrap_or_else(|| {
        Err(OpenError::Io {
            path: Default::default(),
            source: io::ErrorKind::NotFound.into(),
        })
    })
}

/// These sessions of one process, in the same order.
pub(super) fn all(entries: &[&SessionEntry]) -> Vec<Result<Session, OpenError>> {
    let mut pass = Pass {
        sequence: Sequence::from(1),
        ..Pass::default()
    };
    for entry in entries {
        let ordinal = entry.session.ordinal;
        pass.records.insert(ordinal, Vec::new());
    }
    // A single session has all that is there, whatever its records say.
    pass.alone = entries
        .first()
        .filter(|e| !e.http)
        .map(|e| e.session.ordinal);
    let mut files: BTreeMap<u32, &SegmentPath> = BTreeMap::new();
    for path in entries.iter().flat_map(|entry| &entry.segments) {
        files.insert(path.number, path);
    }
    let mut failed: BTreeMap<u32, OpenError> = BTreeMap::new();
    for (number, path) in files {
        match Segment::open(path) {
            Ok(segment) => pass.read(&segment),
            Err(error) => {
                if pass.alone.is_none() {
                    pass.sequence = Sequence::default();
                }
                failed.insert(number, error);
            }
        }
    }
    let mut run = |entry: &&SessionEntry| {
        let own = entry.segments.iter().filter_map(|path| {
            let error = failed.get(&path.number)?;
            Some(copy(error))
        });
        let mut unreadable: Vec<OpenError> = own.collect();
        if unreadable.len() == entry.segments.len()
            && let Some(error) = unreadable.pop()
        {
            return Err(error);
        }
        Ok(pass.run(entry, unreadable))
    };
    entries.iter().map(&mut run).collect()
}

/// Errors of the system have no copies.
pub(super) fn copy(error: &OpenError) -> OpenError {
    let (path, kind) = match error {
        OpenError::Io { path, source } => (path, source.kind()),
        OpenError::Header { path, .. } => (path, io::ErrorKind::InvalidData),
    };
    let cause = std::error::Error::source(error).map(ToString::to_string);
    OpenError::Io {
        path: path.clone(),
        source: io::Error::new(kind, cause.unwrap_or_default()),
    }
}

/// One pass over the files of a process.
#[derive(Default)]
struct Pass {
    /// The records of each session that is wanted.
    records: BTreeMap<u32, Vec<Record>>,
    /// The one session that the process has, if it is known to have one.
    alone: Option<u32>,
    losses: Vec<Loss>,
    sequence: Sequence,
    /// The monotonic clock of the last record.
    clock: u64,
    /// Number of the last file.
    file: u32,
}

/// Something that is not there, between two moments of the monotonic clock.
struct Loss {
    between: (u64, u64),
    what: Lost,
}

#[derive(Clone)]
enum Lost {
    Missing(u64),
    Damaged(Damage),
    Gap(Record),
}

impl Pass {
    fn read(&mut self, segment: &Segment) {
        // By what the file says of itself: in an imported one's name may be another number.
        let number = segment.header().segment;
        if number != self.file.saturating_add(1) {
            // What was before has gone: it was too old, or belongs to other runs.
            self.sequence = Sequence::from(number);
        }
        self.file = number;
        for view in segment.views() {
            match view {
                Ok(view) => self.take(view.record()),
                // A torn end is how a killed process ends; the missing end record says so.
                Err(damage) if damage.torn_end => {}
                Err(damage) => self.lose((self.clock, self.clock), Lost::Damaged(damage)),
            }
        }
    }

    fn take(&mut self, record: Record) {
        let envelope = &record.envelope;
        let missing = self.sequence.missing_before(&record);
        if missing > 0 {
            let between = (self.clock, envelope.monotonic);
            self.lose(between, Lost::Missing(missing));
        }
        if envelope.kind == Kind::Removed {
            return;
        }
        self.clock = envelope.monotonic;
        let session = self.alone.unwrap_or(envelope.session);
        if session == 0 {
            if envelope.kind == Kind::Gap {
                let between = (envelope.monotonic, envelope.monotonic);
                self.lose(between, Lost::Gap(record));
            }
        } else if let Some(records) = self.records.get_mut(&session) {
            records.push(record);
        }
    }

    fn lose(&mut self, between: (u64, u64), what: Lost) {
        self.losses.push(Loss { between, what });
    }

    /// What was read of a session.
    fn run(&mut self, entry: &SessionEntry, unreadable: Vec<OpenError>) -> Session {
        let ordinal = entry.session.ordinal;
        let mut records = self.records.remove(&ordinal).unwrap_or_default();
        // A relay records what it has forwarded, so an answer may be recorded before its
        // request; the times tell. The monotonic ones: the wall clock may be set meanwhile.
        records.sort_by_key(|record| record.envelope.monotonic);
        let mut run = Session::new(entry.clone());
        run.unreadable = unreadable;
        let clock = |record: Option<&Record>| record.map_or(0, |r| r.envelope.monotonic);
        let began = clock(records.first());
        let ended = records.iter().any(|r| r.envelope.kind == Kind::End);
        let end = if ended || !entry.live {
            clock(records.last())
        } else {
            u64::MAX
        };
        for loss in &self.losses {
            let (from, to) = loss.between;
            if self.alone.is_some() || (from <= end && to >= began) {
                match loss.what.clone() {
                    Lost::Missing(count) => run.missing += count,
                    Lost::Damaged(damage) => run.damage.push(damage),
                    Lost::Gap(record) => run.push(record),
                }
            }
        }
        if !run.is_whole() {
            run.lose(u64::MAX);
        }
        // What ties exchanges together may become known later than the first of them.
        let openings = records.iter().filter(|r| r.envelope.kind == Kind::Meta);
        if let Some(open) = openings.rev().find_map(|r| opening(&r.payload)) {
            run.open(open);
        }
        for record in records {
            run.push(record);
        }
        if run.standing() != Standing::Live {
            run.finish();
        }
        run
    }
}

/// Counts the records that are missing in a journal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// The last number, where it is known what must follow.
    last: Option<u64>,
}

impl Sequence {
    /// The beginning of the file with this number.
    pub(super) fn from(file: u32) -> Self {
        Self {
            last: (file <= 1).then_some(0),
        }
    }

    /// How many records are missing before this one.
    pub(super) fn missing_before(&mut self, record: &Record) -> u64 {
        let number = record.envelope.sequence;
        let before = self.last.replace(number);
        let here = removed(record).unwrap_or(1);
        let expected = before.map_or(number, |last| last.saturating_add(here));
        number.saturating_sub(expected)
    }
}

/// How many records were where this one is, if it is there in place of them.
pub(crate) fn removed(record: &Record) -> Option<u64> {
    if record.envelope.kind != Kind::Removed {
        return None;
    }
    let removed: Removed = serde_json::from_slice(&record.payload).ok()?;
    Some(removed.records)
}
