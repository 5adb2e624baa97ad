//! A session as it happens, and sessions as they begin and end.

use super::listing::{is_live, opening, processes};
use super::read::Sequence;
use super::tail::{Records, Tail};
use super::{Session, SessionEntry, Sessions, run_id};
use crate::journal::header::{Header, SessionOpen};
use crate::journal::reader::{OpenError, peek};
use crate::journal::{Kind, Record};
use crate::layout::{SegmentPath, Store};
use agent_trace_model::{ProcessId, SessionId};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Records of two streams stand in the order of their times within a recorder's tick only;
/// so long, in nanoseconds of the monotonic clock, one waits for those that belong before it.
pub(super) const TICK: u64 = 10_000_000;

/// A session that may still grow.
#[derive(Debug)]
pub struct Follower {
    run: Session,
    tail: Tail,
    held: Vec<Record>,
    sequence: Sequence,
    over: bool,
    /// How many gaps and lines of standard error were told.
    told: (usize, usize),
}

/// What is new of a session.
#[derive(Debug, Default)]
pub struct News {
    /// Positions of the steps about which nothing more will be learned.
    pub steps: Vec<usize>,
    /// Positions of new gaps.
    pub gaps: Range<usize>,
    /// Positions of new lines of standard error.
    pub errors: Range<usize>,
    /// Whether the session has ended; nothing more will come.
    pub over: bool,
}

impl News {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.gaps.is_empty() && self.errors.is_empty()
    }
}

impl Follower {
    /// Follows a session from its beginning on.
    ///
    /// # Errors
    /// When it has ended and none of its files can be read.
    pub fn new(store: &Store, entry: &SessionEntry) -> Result<Self, OpenError> {
        let first = entry.segments.first().map_or(1, |file| file.number);
        Ok(Self {
            run: match entry.live {
                true => Session::new(entry.clone()),
                false => store.open(entry)?,
            },
            tail: Tail::new(store, entry.session.process, first),
            held: Vec::new(),
            sequence: Sequence::from(first),
            over: !entry.live,
            told: (0, 0),
        })
    }

    /// The session as far as it is known.
    #[must_use]
    pub fn run(&self) -> &Session {
        &self.run
    }

    /// Takes what was recorded since the last time.
    ///
    /// # Errors
    /// When a file of the session cannot be read.
    pub fn poll(&mut self) -> Result<News, OpenError> {
        let (gaps, errors) = self.told;
        if !self.over {
            let mut new = Records::default();
            self.tail.poll(&mut new)?;
            self.take(new);
        }
        self.told = (self.run.gaps.len(), self.run.errors.len());
        let mut steps = self.run.steps.take_settled();
        steps.sort_unstable();
        Ok(News {
            steps,
            gaps: gaps..self.told.0,
            errors: errors..self.told.1,
            over: self.over,
        })
    }

    fn take(&mut self, new: Records) {
        if !new.damage.is_empty() {
            self.run.lose(u64::MAX);
            let damage = new.damage.into_iter().map(|(_, damage)| damage);
            self.run.damage.extend(damage);
        }
        if !new.unreadable.is_empty() {
            self.run.lose(u64::MAX);
            let errors = new.unreadable.into_iter().map(|(.., error)| error);
            self.run.unreadable.extend(errors);
        }
        let before = self.held.len();
        for record in new.records {
            let missing = self.sequence.missing_before(&record);
            let session = record.envelope.session;
            let begun = !self.held.is_empty() || self.run.has_begun();
            if begun && missing > 0 {
                self.run.missing += missing;
                self.run.lose(u64::MAX);
            }
            let of_all = begun && session == 0 && record.envelope.kind == Kind::Gap;
            let entry = &self.run.entry;
            if !entry.http || session == entry.session.ordinal || of_all {
                // What ties exchanges together may become known later than the first of them.
                if record.envelope.kind == Kind::Meta
                    && let Some(open) = opening(&record.payload)
                {
                    self.run.open(open);
                }
                self.held.push(record);
            }
        }
        let ended = |record: &Record| record.envelope.kind == Kind::End;
        let ending = self.run.end.is_some() || self.held.iter().any(ended);
        let calm = self.held.len() == before;
        self.held.sort_by_key(|record| record.envelope.monotonic);
        let newest = self.held.last().map_or(0, |r| r.envelope.monotonic);
        let until = match calm || self.tail.is_over() {
            true => u64::MAX,
            false => newest.saturating_sub(TICK),
        };
        let ready = self.held.partition_point(|r| r.envelope.monotonic <= until);
        for record in self.held.drain(..ready) {
            self.run.push(record);
        }
        if self.tail.is_over() || (ending && calm) {
            self.over = true;
            self.run.entry.live = false;
            self.run.finish();
        }
    }
}

/// All processes that record, and the sessions that begin and end in them.
#[derive(Debug)]
pub struct Watcher {
    store: Store,
    watched: BTreeMap<ProcessId, Watched>,
    /// Processes that have ended.
    dead: HashSet<ProcessId>,
    /// When the folder of journals was changed when it was last read.
    changed: Option<SystemTime>,
}

/// A process that records.
#[derive(Debug)]
struct Watched {
    tail: Tail,
    /// The file that is read.
    file: u32,
    header: Header,
    /// The sessions that are open, and the file that each began in.
    open: BTreeMap<u32, (u32, SessionOpen)>,
}

/// A session that began or ended.
#[derive(Debug)]
pub enum Change {
    /// It began; what it is is known, and nothing of what happens in it.
    Began(Box<Session>),
    /// It ended.
    Ended(Box<Session>),
}

impl Watcher {
    /// Watches a store. What is going on already does not begin any more, but its end will
    /// be told.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn new(store: &Store) -> io::Result<Self> {
        let mut watcher = Self {
            store: store.clone(),
            watched: BTreeMap::new(),
            dead: HashSet::new(),
            changed: None,
        };
        for (process, segments) in processes(store)? {
            if is_live(&segments) {
                watcher.watch(process, &segments);
            } else {
                watcher.dead.insert(process);
            }
        }
        watcher.poll()?;
        Ok(watcher)
    }

    /// What happened since the last time.
    ///
    /// # Errors
    /// When the store cannot be read. A journal that cannot be is left alone.
    pub fn poll(&mut self) -> io::Result<Vec<Change>> {
        self.look_for_processes()?;
        let (mut changes, mut ended) = (Vec::new(), Vec::new());
        let mut over = Vec::new();
        for (process, watched) in &mut self.watched {
            let mut new = Records::default();
            let failed = watched.tail.poll(&mut new).is_err();
            let mut files = new.files.into_iter().peekable();
            for (at, record) in new.records.into_iter().enumerate() {
                while let Some((_, file)) = files.next_if(|(start, _)| *start <= at) {
                    watched.file = file;
                }
                let ordinal = record.envelope.session;
                match record.envelope.kind {
                    Kind::Meta => {
                        let Some(open) = opening(&record.payload) else {
                            continue;
                        };
                        // It is told again in each file.
                        let known = watched.open.get(&ordinal).map(|(file, _)| *file);
                        let began = known.unwrap_or(watched.file);
                        let entry = watched.entry(*process, ordinal, &open, (began, true));
                        watched.open.insert(ordinal, (began, open.clone()));
                        if known.is_none() {
                            let mut run = Session::new(entry);
                            run.open(open);
                            changes.push(Change::Began(Box::new(run)));
                        }
                    }
                    Kind::End => {
                        let open = watched.open.remove(&ordinal);
                        ended.extend(open.map(|(began, open)| {
                            watched.entry(*process, ordinal, &open, (began, false))
                        }));
                    }
                    _ => {}
                }
            }
            if failed || watched.tail.is_over() {
                over.push(*process);
                for (ordinal, (began, open)) in std::mem::take(&mut watched.open) {
                    ended.push(watched.entry(*process, ordinal, &open, (began, false)));
                }
            }
        }
        for process in over {
            self.watched.remove(&process);
            self.dead.insert(process);
        }
        self.end(ended, &mut changes)?;
        Ok(changes)
    }

    /// Finds the processes that are new.
    fn look_for_processes(&mut self) -> io::Result<()> {
        let folder = self.store.live();
        let changed = folder.metadata().and_then(|data| data.modified()).ok();
        // What changes within a tick of the file system's clock looks unchanged.
        let fresh = |at: &SystemTime| at.elapsed().is_ok_and(|age| age < Duration::from_secs(1));
        if changed == self.changed && !changed.as_ref().is_some_and(fresh) {
            return Ok(());
        }
        self.changed = changed;
        let files = match folder.read_dir() {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for file in files {
            let Some(path) = SegmentPath::parse(file?.path()) else {
                continue;
            };
            let process = path.process;
            if !self.watched.contains_key(&process) && !self.dead.contains(&process) {
                self.watch(process, &[path]);
            }
        }
        Ok(())
    }

    fn watch(&mut self, process: ProcessId, segments: &[SegmentPath]) {
        // One without a header is looked at again.
        let Some((first, header)) = segments
            .iter()
            .find_map(|path| peek(path).ok().map(|header| (path.number, header)))
        else {
            self.changed = None;
            return;
        };
        let watched = Watched {
            tail: Tail::new(&self.store, process, first),
            file: first,
            header,
            open: BTreeMap::new(),
        };
        self.watched.insert(process, watched);
    }

    /// Reads what ended, each file from the one on that a session began in once for all.
    fn end(&self, mut ended: Vec<SessionEntry>, changes: &mut Vec<Change>) -> io::Result<()> {
        if ended.is_empty() {
            return Ok(());
        }
        let files = processes(&self.store)?;
        for entry in &mut ended {
            let first = entry.segments.first().map_or(1, |file| file.number);
            let own = files.get(&entry.session.process).into_iter().flatten();
            entry.segments = own.filter(|file| file.number >= first).cloned().collect();
        }
        self.store.open_each(&ended, &mut |_, run| {
            changes.extend(run.map(|run| Change::Ended(Box::new(run))));
        });
        Ok(())
    }
}

impl Watched {
    /// A session that began in this file, and whether it goes on.
    fn entry(
        &self,
        process: ProcessId,
        ordinal: u32,
        open: &SessionOpen,
        (file, live): (u32, bool),
    ) -> SessionEntry {
        let session = SessionId { process, ordinal };
        let http = open.transport == "http";
        SessionEntry {
            id: run_id(&self.header.workspace, session),
            session,
            http,
            started: if http {
                open.started
            } else {
                self.header.started
            },
            header: self.header.clone(),
            segments: vec![SegmentPath {
                path: SegmentPath::name(process, file, false).into(),
                process,
                number: file,
                sealed: false,
            }],
            live,
        }
    }
}
