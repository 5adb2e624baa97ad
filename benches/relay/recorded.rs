//! Whether what was recorded is what was sent.

use crate::Result;
use crate::client::{Tally, Traffic};
use crate::verdict::Recorded;
use agent_trace_model::Stream;
use agent_trace_store::Store;
use agent_trace_store::trace::{Session, Sessions};

/// Compares the runs of a store, all of which have ended, with the sessions that they record,
/// in the order in which these began. There are no secrets in the traffic, so payloads are
/// what was sent.
pub(crate) fn exactly(store: &Store, sessions: &[Traffic]) -> Result<Recorded> {
    compare(store, sessions, |run, stream, tally| {
        let mut frames: Vec<_> = frames(run, stream).collect();
        // The order of the times is that of the wire within a stream only as far as the
        // clock is: the numbers are what counts.
        frames.sort_by_key(|record| record.envelope.sequence);
        let mut found = Tally::default();
        for record in frames {
            found.add(&record.payload);
        }
        found.is_same_as(tally)
    })
}

/// The same for traffic that is redacted or too large to be kept: only lengths are compared.
pub(crate) fn in_length(store: &Store, sessions: &[Traffic]) -> Result<Recorded> {
    compare(store, sessions, |_, _, _| true)
}

fn compare(
    store: &Store,
    sessions: &[Traffic],
    is_same: impl Fn(&Session, Stream, &Tally) -> bool,
) -> Result<Recorded> {
    let listing = store.list()?;
    let (found, expected) = (listing.runs.len(), sessions.len());
    if !listing.unreadable.is_empty() || found != expected {
        let what = format!("{found} of {expected} runs");
        return Ok(Recorded::Differs(what));
    }
    let mut result = Recorded::All;
    // Listed newest first.
    for (entry, traffic) in listing.runs.iter().rev().zip(sessions) {
        let run = store.open(entry)?;
        let Some(end) = &run.end else {
            return Ok(Recorded::Differs("no end".into()));
        };
        if !run.damage.is_empty() || !run.unreadable.is_empty() {
            return Ok(Recorded::Differs("damaged".into()));
        }
        let missing: u64 = run.gaps.iter().map(|(_, gap)| gap.bytes).sum();
        if missing != end.lost {
            let what = format!("{missing} bytes in gaps, {} lost", end.lost);
            return Ok(Recorded::Differs(what));
        }
        for (stream, tally) in [
            (Stream::ClientToServer, &traffic.sent),
            (Stream::ServerToClient, &traffic.received),
        ] {
            let gaps = gaps(&run, stream);
            let length: u64 = frames(&run, stream).map(|r| r.envelope.length).sum();
            // Bytes that were lost within a message are in the length of its frame, those
            // between messages are not.
            let fits = (length..=length + gaps).contains(&tally.bytes);
            let seen = end.bytes[stream as usize];
            if !fits || seen != tally.bytes {
                let what = format!(
                    "{stream:?}: {} sent, {seen} seen, {length} in frames, {gaps} in gaps",
                    tally.bytes
                );
                return Ok(Recorded::Differs(what));
            }
            if gaps == 0 && !is_same(&run, stream, tally) {
                return Ok(Recorded::Differs(format!("{stream:?}: other bytes")));
            }
        }
        if missing > 0 {
            result = result.and(Recorded::WithGaps(missing));
        }
    }
    Ok(result)
}

fn frames(
    run: &Session,
    stream: Stream,
) -> impl Iterator<Item = &agent_trace_store::journal::Record> {
    let of_stream =
        move |record: &&agent_trace_store::journal::Record| record.envelope.stream == stream;
    run.frames
        .iter()
        .map(|frame| &frame.record)
        .filter(of_stream)
}

/// What gaps of this stream count, and those that do not tell their stream.
fn gaps(run: &Session, stream: Stream) -> u64 {
    let gaps = run.gaps.iter().map(|(_, gap)| gap);
    let here = gaps.filter(|gap| gap.stream.is_none_or(|of| of == stream));
    here.map(|gap| gap.bytes).sum()
}
