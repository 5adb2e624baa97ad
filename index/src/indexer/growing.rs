//! A journal that is being written.

use super::files::path;
use super::write::Update;
use crate::digest::Digests;
use crate::digest::scan::Scanner;
use crate::rows::{FileRow, ProcessRow};
use agent_trace_model::ProcessId;
use agent_trace_store::Store;
use agent_trace_store::journal::reader::{Damage, OpenError, Segment};
use agent_trace_store::journal::{Header, Kind};
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::trace::flow::Flow;
use agent_trace_store::trace::tail::{Records, Tail};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The journal of a process that lives, as far as it was read.
#[derive(Debug)]
pub(super) struct Growing {
    process: ProcessId,
    tail: Tail,
    flow: Flow,
    digests: Digests,
    sessions: BTreeSet<u32>,
    /// Files that cannot be read, and why.
    unreadable: Vec<String>,
    /// What was written of it before.
    written: Option<ProcessRow>,
}

/// What is read between records.
enum Between {
    Header(Box<Header>),
    Damage(Damage),
    Unreadable(OpenError),
}

impl Growing {
    /// A journal whose first file has this number.
    pub(super) fn new(
        store: &Store,
        process: ProcessId,
        first: u32,
        idle: u64,
        scanner: &Arc<Scanner>,
    ) -> Self {
        Self {
            process,
            tail: Tail::new(store, process, first),
            flow: Flow::new(process, true),
            digests: Digests::new(idle, scanner),
            sessions: BTreeSet::new(),
            unreadable: Vec::new(),
            written: None,
        }
    }

    /// How many records were read.
    pub(super) fn records(&self) -> u64 {
        self.flow.counts().0
    }

    /// The number of the file that is read; those before it were read to their end.
    pub(super) fn file(&self) -> u32 {
        self.tail.place().0
    }

    /// Whether what was read of a file holds now that it is this one: it grew, or was sealed
    /// and no more. Sealed ones are written anew to take sessions out of them.
    pub(super) fn still_has(&self, store: &Store, before: &FileRow, now: &FileRow) -> bool {
        match (before.is_journal(), now.is_journal()) {
            (true, true) => true,
            // That of one session is removed as a whole.
            (true, false) if !self.flow.is_http() => true,
            (true, false) => is_whole(&path(store, self.process, now)),
            (false, _) => before == now,
        }
    }

    /// Whether the process has ended and everything was read.
    pub(super) fn is_over(&self) -> bool {
        self.tail.is_over()
    }

    /// Reads what is new.
    pub(super) fn poll(&mut self) -> Result<(), OpenError> {
        loop {
            let mut read = Records::default();
            let more = self.tail.poll_some(&mut read)?;
            self.take(read);
            if !more {
                break;
            }
        }
        if self.tail.is_over() {
            self.flow.finish(&mut self.digests);
        }
        Ok(())
    }

    fn take(&mut self, read: Records) {
        let headers = read.headers.into_iter();
        let headers =
            headers.map(|(at, header)| (at, header.segment, Between::Header(header.into())));
        let unreadable = read.unreadable.into_iter();
        let unreadable = unreadable.map(|(at, file, why)| (at, file, Between::Unreadable(why)));
        let damage = read.damage.into_iter();
        let damage = damage.map(|(at, damage)| (at, u32::MAX, Between::Damage(damage)));
        let mut between: Vec<_> = headers.chain(unreadable).chain(damage).collect();
        between.sort_by_key(|(at, file, _)| (*at, *file));
        let mut between = between.into_iter().peekable();
        for (at, record) in read.records.into_iter().enumerate() {
            while let Some((.., what)) = between.next_if(|(before, ..)| *before <= at) {
                self.note(what);
            }
            self.flow.take(record, &mut self.digests);
        }
        for (.., what) in between {
            self.note(what);
        }
    }

    fn note(&mut self, what: Between) {
        match what {
            Between::Header(header) => self.flow.begin_file(*header),
            Between::Damage(damage) => self.flow.damage(damage),
            Between::Unreadable(error) => {
                self.flow.cannot_read(&error);
                self.unreadable.push(super::why(&error));
            }
        }
    }

    /// What there is to be written, if there is anything.
    pub(super) fn update(&mut self, files: Vec<FileRow>) -> Option<Update> {
        let rows = self.digests.take_rows(&mut self.flow);
        self.sessions
            .extend(rows.iter().map(|one| one.row.id.ordinal));
        let over = self.tail.is_over();
        let (records, damaged) = self.flow.counts();
        let header = self.flow.header();
        let process = ProcessRow {
            process: self.process,
            workspace: header.map_or_else(String::new, |header| header.workspace.clone()),
            files,
            finished: over,
            ended: over,
            http: self.flow.is_http(),
            records,
            damaged,
            unreadable: self.unreadable.clone(),
            sessions: self.sessions.iter().copied().collect(),
        };
        let first = self.written.is_none();
        if rows.is_empty() && self.written.as_ref() == Some(&process) {
            return None;
        }
        self.written = Some(process.clone());
        Some(Update::Rows {
            process,
            sessions: rows,
            all: first,
        })
    }
}

/// Whether nothing was taken out of a sealed file.
fn is_whole(path: &SegmentPath) -> bool {
    Segment::open(path).is_ok_and(|segment| {
        let mut records = segment.views().flatten();
        records.all(|record| record.envelope.kind != Kind::Removed)
    })
}
