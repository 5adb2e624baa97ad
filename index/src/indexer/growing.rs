//! A journal that is being written.

use super::write::Update;
use crate::digest::Digests;
use crate::rows::{FileRow, ProcessRow};
use agent_trace_model::ProcessId;
use agent_trace_store::Store;
use agent_trace_store::journal::reader::OpenError;
use agent_trace_store::trace::flow::Flow;
use agent_trace_store::trace::tail::{Records, Tail};
use std::collections::BTreeSet;

/// The journal of a process that lives, as far as it was read.
#[derive(Debug)]
pub(super) struct Growing {
    process: ProcessId,
    tail: Tail,
    flow: Flow,
    digests: Digests,
    sessions: BTreeSet<u32>,
    /// What was written of it before.
    written: Option<ProcessRow>,
}

impl Growing {
    /// A journal whose first file has this number.
    pub(super) fn new(store: &Store, process: ProcessId, first: u32, idle: u64) -> Self {
        Self {
            process,
            tail: Tail::new(store, process, first),
            flow: Flow::new(process, true),
            digests: Digests::new(idle),
            sessions: BTreeSet::new(),
            written: None,
        }
    }

    /// How many records were read.
    pub(super) fn records(&self) -> u64 {
        self.flow.counts().0
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
        let mut headers = read.headers.into_iter().peekable();
        let mut damage = read.damage.into_iter().peekable();
        for (at, record) in read.records.into_iter().enumerate() {
            while let Some((_, header)) = headers.next_if(|(before, _)| *before <= at) {
                self.flow.begin_file(header);
            }
            while let Some((_, damage)) = damage.next_if(|(before, _)| *before <= at) {
                self.flow.damage(damage);
            }
            self.flow.take(record, &mut self.digests);
        }
        for (_, header) in headers {
            self.flow.begin_file(header);
        }
        for (_, damage) in damage {
            self.flow.damage(damage);
        }
    }

    /// What there is to be written, if there is anything.
    pub(super) fn update(&mut self, files: Vec<FileRow>) -> Option<Update> {
        let rows = self.digests.take_rows(&mut self.flow);
        self.sessions.extend(rows.iter().map(|row| row.id.ordinal));
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
            unreadable: Vec::new(),
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
