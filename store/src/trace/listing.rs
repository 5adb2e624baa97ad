//! Which sessions there are.
//!
//! The journal of a stdio relay says in its first record that it holds one session. Of an HTTP
//! relay's journal all records have to be looked at to find its sessions.

use super::{Listing, SessionEntry, run_id};
use crate::journal::header::{Meta, SessionOpen};
use crate::journal::reader::{OpenError, Segment, View, first_record, is_locked, peek};
use crate::journal::{Envelope, Kind, Record};
use crate::layout::{SegmentPath, Store};
use agent_trace_model::{ProcessId, SessionId};
use std::collections::BTreeMap;
use std::io;

/// Every session, newest first.
pub(super) fn list(store: &Store) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for (process, segments) in processes(store)? {
        of_process(process, &segments, &mut listing);
    }
    listing.runs.sort_by(|a, b| {
        let key = |run: &SessionEntry| (run.started, run.session);
        key(b).cmp(&key(a))
    });
    Ok(listing)
}

/// The files of each process in their order.
pub(crate) fn processes(store: &Store) -> io::Result<BTreeMap<ProcessId, Vec<SegmentPath>>> {
    let mut processes: BTreeMap<ProcessId, Vec<SegmentPath>> = BTreeMap::new();
    for segment in store.segments()? {
        processes.entry(segment.process).or_default().push(segment);
    }
    Ok(processes)
}

/// The sessions of one process.
fn of_process(process: ProcessId, segments: &[SegmentPath], listing: &mut Listing) {
    // The first file that can be read speaks for all.
    let (mut header, mut failed) = (None, Vec::new());
    for segment in segments {
        match peek(segment) {
            Ok(found) => {
                header = Some((segment, found));
                break;
            }
            Err(error) => failed.push(error),
        }
    }
    listing.unreadable.append(&mut failed);
    let Some((first, header)) = header else {
        return;
    };
    let live = is_live(segments);
    let entry = |ordinal, started, live, http, segments: &[SegmentPath]| {
        let session = SessionId { process, ordinal };
        SessionEntry {
            id: run_id(&header.workspace, session),
            session,
            http,
            started,
            live,
            header: header.clone(),
            segments: segments.to_vec(),
        }
    };
    if !is_stdio(first) {
        let scan = Scan::of(segments, &mut listing.unreadable);
        if scan.http {
            for (ordinal, seen) in scan.sessions {
                let live = live && !seen.ended;
                let own = segments.get(seen.files.0..=seen.files.1);
                let run = entry(ordinal, seen.started(), live, true, own.unwrap_or(segments));
                listing.runs.push(run);
            }
            return;
        }
        // Nothing was relayed yet, or nothing is left of it.
        if scan.is_empty {
            return;
        }
    }
    let run = entry(1, header.started, live, false, segments);
    listing.runs.push(run);
}

/// Whether a file's first record says that its process relays stdio.
fn is_stdio(first: &SegmentPath) -> bool {
    let record = first_record(first).ok().flatten();
    record.is_some_and(|record| is_stdio_opening(&record))
}

/// Whether this, the first record of a process, says that it relays stdio.
pub(super) fn is_stdio_opening(record: &Record) -> bool {
    let opening = match record.envelope.kind {
        Kind::Meta => serde_json::from_slice(&record.payload).ok(),
        _ => None,
    };
    matches!(opening, Some(Meta::SessionOpen(open)) if open.transport != HTTP)
}

/// The transport of sessions of which a process has many.
const HTTP: &str = "http";

/// What the records of a process say of its sessions.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// It relays HTTP.
    pub(crate) http: bool,
    /// The sessions by their ordinals.
    pub(crate) sessions: BTreeMap<u32, Seen>,
    /// Its files hold nothing but what they say of themselves.
    pub(crate) is_empty: bool,
}

/// A session, as far as a look at its records tells.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) opening: Option<SessionOpen>,
    /// When its first record was made.
    first: u64,
    ended: bool,
    /// Positions of its first and its last file.
    files: (usize, usize),
}

impl Scan {
    pub(crate) fn of(segments: &[SegmentPath], unreadable: &mut Vec<OpenError>) -> Self {
        let mut scan = Self {
            is_empty: true,
            ..Self::default()
        };
        for (position, path) in segments.iter().enumerate() {
            match Segment::open(path) {
                Ok(segment) => scan.add(&segment, position),
                Err(error) => {
                    scan.is_empty = false;
                    // Those before the first that can be read are known.
                    if position > 0 && peek(path).is_ok() {
                        unreadable.push(error);
                    }
                }
            }
        }
        scan
    }

    pub(crate) fn add(&mut self, segment: &Segment, position: usize) {
        for view in segment.views() {
            match view {
                Ok(view) => self.see(&view, position),
                Err(_) => self.is_empty = false,
            }
        }
    }

    fn see(&mut self, view: &View<'_>, position: usize) {
        let Envelope {
            session,
            exchange,
            wall,
            kind,
            ..
        } = view.envelope;
        self.http |= exchange > 0 || session > 1;
        if session == 0 {
            // Only a process with many sessions is told from them.
            self.http |= kind != Kind::Removed;
            return;
        }
        self.is_empty = false;
        let seen = self.sessions.entry(session).or_insert_with(|| Seen {
            opening: None,
            first: wall,
            ended: false,
            files: (position, position),
        });
        seen.files.1 = position;
        if kind == Kind::End {
            seen.ended = true;
        } else if kind == Kind::Meta
            && let Some(open) = opening(view.payload)
        {
            self.http |= open.transport == HTTP;
            seen.opening = Some(open);
        }
    }
}

impl Seen {
    fn started(&self) -> u64 {
        let opening = self.opening.as_ref().map(|open| open.started);
        opening.filter(|at| *at > 0).unwrap_or(self.first)
    }
}

/// The beginning of a session, if that is what these facts are. Others are not looked at.
pub(super) fn opening(payload: &[u8]) -> Option<SessionOpen> {
    let start = &payload[..payload.len().min(64)];
    memchr::memmem::find(start, b"session_open")?;
    match serde_json::from_slice(payload) {
        Ok(Meta::SessionOpen(open)) => Some(open),
        _ => None,
    }
}

/// Whether a process still writes its journal, of which these are the known files.
#[must_use]
pub fn is_live(segments: &[SegmentPath]) -> bool {
    let Some(last) = segments.iter().rfind(|segment| !segment.sealed) else {
        return false;
    };
    let (mut path, mut number) = (last.path.clone(), last.number);
    loop {
        if is_locked(&path).unwrap_or(false) {
            return true;
        }
        // It may have gone on in a new file since the folder was read.
        number += 1;
        path.set_file_name(SegmentPath::name(last.process, number, false));
        if !path.exists() {
            return false;
        }
    }
}
