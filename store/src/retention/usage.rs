//! What the disk is used for, by workspace, server and month.

use super::day;
use super::plan::{last_time, size};
use crate::journal::Kind;
use crate::journal::header::{Meta, SessionOpen};
use crate::journal::reader::{Segment, first_record, peek};
use crate::layout::{SegmentPath, Store};
use crate::trace::processes;
use crate::trace::session::server_name;
use agent_trace_model::ProcessId;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// What stands for a server of which nothing is known.
const UNKNOWN: &str = "?";

/// What one server used in one month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The workspace.
    pub workspace: String,
    /// What the server is called.
    pub server: String,
    /// The month (`yyyy-mm`, UTC) in which its processes began, or of an HTTP relay's file in
    /// which its last record was made.
    pub month: String,
    /// How many sessions have records there.
    pub sessions: usize,
    /// Bytes on the disk. Where servers share a file, it is divided by the length of their
    /// records.
    pub bytes: u64,
}

/// What is counted.
#[derive(Default)]
struct Used {
    sessions: BTreeSet<(ProcessId, u32)>,
    bytes: u64,
}

/// What the disk is used for.
///
/// # Errors
/// When the store cannot be listed.
pub fn usage(store: &Store) -> io::Result<Vec<Usage>> {
    // By workspace, server and month.
    let mut all: BTreeMap<[String; 3], Used> = BTreeMap::new();
    for (process, files) in processes(store)? {
        for file in &files {
            let header = peek(file).ok();
            let started = header.as_ref().map_or(0, |header| header.started);
            let workspace = header.map_or(String::new(), |header| header.workspace);
            let (shares, month) = match stdio_server(file) {
                Some(server) => (vec![(1, server, size(file))], month(started)),
                None => (shares(file), month(last_time(file))),
            };
            for (session, server, bytes) in shares {
                let key = [workspace.clone(), server, month.clone()];
                let used = all.entry(key).or_default();
                if session > 0 {
                    used.sessions.insert((process, session));
                }
                used.bytes += bytes;
            }
        }
    }
    let mut usage: Vec<Usage> = all
        .into_iter()
        .map(|([workspace, server, month], used)| Usage {
            workspace,
            server,
            month,
            sessions: used.sessions.len(),
            bytes: used.bytes,
        })
        .collect();
    usage.sort_by(|a, b| (b.bytes, &a.server, &a.month).cmp(&(a.bytes, &b.server, &b.month)));
    Ok(usage)
}

/// The server of a relay of stdio, as each of its files says first.
fn stdio_server(file: &SegmentPath) -> Option<String> {
    let record = first_record(file).ok()??;
    if record.envelope.kind != Kind::Meta {
        return None;
    }
    match serde_json::from_slice(&record.payload) {
        Ok(Meta::SessionOpen(open)) if open.transport != "http" => {
            Some(server_name(&open).to_owned())
        }
        _ => None,
    }
}

/// The sessions in a file, with what each one's server is called and its part of the file.
fn shares(file: &SegmentPath) -> Vec<(u32, String, u64)> {
    let whole = size(file);
    let Ok(segment) = Segment::open(file) else {
        return vec![(0, UNKNOWN.to_owned(), whole)];
    };
    let mut lengths: BTreeMap<u32, u64> = BTreeMap::new();
    let mut openings: BTreeMap<u32, SessionOpen> = BTreeMap::new();
    for view in segment.views().flatten() {
        let session = view.envelope.session;
        *lengths.entry(session).or_default() += view.raw.len() as u64;
        if view.envelope.kind == Kind::Meta
            && let Ok(Meta::SessionOpen(open)) = serde_json::from_slice(view.payload)
        {
            openings.insert(session, open);
        }
    }
    // What is about the process itself is everybody's.
    lengths.remove(&0);
    let sum: u64 = lengths.values().sum();
    if sum == 0 {
        return vec![(0, UNKNOWN.to_owned(), whole)];
    }
    let mut left = whole;
    let count = lengths.len();
    let share = |(position, (session, length)): (usize, (u32, u64))| {
        let part = u128::from(whole) * u128::from(length) / u128::from(sum);
        // What division leaves over goes to the last.
        let part = match position + 1 == count {
            true => left,
            false => u64::try_from(part).unwrap_or(0),
        };
        left -= part.min(left);
        let server = openings.get(&session).map_or(UNKNOWN, server_name);
        (session, server.to_owned(), part)
    };
    lengths.into_iter().enumerate().map(share).collect()
}

/// The month (`yyyy-mm`, UTC) of a moment in nanoseconds since 1970.
fn month(nanoseconds: u64) -> String {
    let mut day = day(nanoseconds);
    day.truncate(7);
    day
}
