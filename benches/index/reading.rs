//! What reading costs without an index: what an indexer has to live with.

use crate::Result;
use crate::generate::needle;
use crate::place::{Place, There};
use crate::report::{Goal, Measured};
use crate::verdict::Recorded;
use agent_trace_store::journal::Segment;
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::search::Words;
use agent_trace_store::trace::{SessionEntry, Sessions};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// The newest so many runs are searched.
pub(crate) const LAST: usize = 10_000;

pub(crate) fn run(place: &Place, there: &There) -> Result<Vec<Measured>> {
    let store = place.store();
    let mut lines = Vec::new();
    let started = Instant::now();
    let segments = store.segments()?;
    lines.push(line(
        "finding all files, ms",
        started.elapsed().as_secs_f64() * 1e3,
        format!("{} files", segments.len()),
        count("files", segments.len() as u64, there.made.files),
    ));
    let started = Instant::now();
    let entries = store.list()?.runs;
    let sessions = there.made.sessions;
    lines.push(line(
        "listing all sessions without an index, ms",
        started.elapsed().as_secs_f64() * 1e3,
        format!("{} sessions", entries.len()),
        count("sessions", entries.len() as u64, sessions),
    ));
    let (records, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    each(&segments, 1, |path| {
        if let Ok(segment) = Segment::open(path) {
            for view in segment.views().flatten() {
                records.fetch_add(1, Ordering::Relaxed);
                bytes.fetch_add(view.raw.len() as u64, Ordering::Relaxed);
            }
        }
    });
    let took = started.elapsed().as_secs_f64();
    lines.push(line(
        "checking every record, thousands/s on one processor",
        records.load(Ordering::Relaxed) as f64 / took / 1e3,
        format!(
            "{:.0} MB/s",
            bytes.load(Ordering::Relaxed) as f64 / took / 1e6
        ),
        count("records", records.into_inner(), there.made.records),
    ));
    for threads in [1, 2] {
        let frames = AtomicU64::new(0);
        let started = Instant::now();
        let groups = by_process(&entries);
        each(&groups, threads, |group| {
            store.open_each(group, &mut |_, session| {
                let read = session.map_or(0, |session| session.frames.len() as u64);
                frames.fetch_add(read, Ordering::Relaxed);
            });
        });
        let took = started.elapsed().as_secs_f64();
        let frames = frames.into_inner();
        lines.push(line(
            &format!("reading and pairing all, thousand events/s, threads: {threads}"),
            frames as f64 / took / 1e3,
            format!("{took:.1} s"),
            count("events", frames, there.made.events),
        ));
    }
    lines.push(search(&segments)?);
    Ok(lines)
}

/// A whole word in the newest files.
fn search(segments: &[SegmentPath]) -> Result<Measured> {
    let newest = &segments[segments.len().saturating_sub(LAST)..];
    let words = Words::new(vec![vec![needle(0)]])?;
    let look = || -> Result<usize> {
        let found = newest.iter().map(|path| words.may_be_in([path]));
        let found: Vec<bool> = found.collect::<std::io::Result<_>>()?;
        Ok(found.into_iter().filter(|found| *found).count())
    };
    look()?;
    let started = Instant::now();
    let found = look()?;
    Ok(line(
        "a word in the last 10,000 files, ms",
        started.elapsed().as_secs_f64() * 1e3,
        format!(
            "perhaps in {found} of {} files, on one processor",
            newest.len()
        ),
        Recorded::All,
    ))
}

/// The sessions of each process, which share files.
fn by_process(entries: &[SessionEntry]) -> Vec<Vec<SessionEntry>> {
    let mut entries = entries.to_vec();
    entries.sort_by_key(|entry| entry.session);
    let groups = entries.chunk_by(|a, b| a.session.process == b.session.process);
    groups.map(<[SessionEntry]>::to_vec).collect()
}

fn each<T: Sync>(list: &[T], threads: usize, work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}

fn line(what: &str, value: f64, detail: String, recorded: Recorded) -> Measured {
    Measured {
        what: what.to_owned(),
        goal: Goal::None,
        value,
        detail,
        recorded,
        gaps_allowed: false,
    }
}

/// Whether as many were found as there are.
pub(crate) fn count(what: &str, found: u64, expected: u64) -> Recorded {
    if found == expected {
        Recorded::All
    } else {
        Recorded::Differs(format!("{found} of {expected} {what}"))
    }
}
