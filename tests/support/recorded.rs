//! What stands in the trace: the streams as they were recorded, and what is said about each
//! frame.

use super::{Home, assert_same};
use agent_trace_analysis::outcomes::{self, Failure};
use agent_trace_model::{Outcome, Stream};
use agent_trace_store::journal::{Flags, Kind, Record};
use agent_trace_store::trace::Session as Run;
use agent_trace_store::trace::step::StepKind;
use agent_trace_store::trace::story;
use agent_trace_wire::frame::Framing;

pub(crate) use agent_trace_model::Stream::{ClientToServer, ServerToClient, Stderr};

/// The records of one stream in the order of the journal.
pub(crate) fn records(run: &Run, stream: Stream) -> Vec<&Record> {
    let frames = run.frames.iter().map(|frame| &frame.record);
    let mut records: Vec<&Record> = frames
        .chain(&run.errors)
        .filter(|record| record.envelope.stream == stream)
        .collect();
    records.sort_by_key(|record| record.envelope.sequence);
    records
}

/// All recorded bytes of one stream.
pub(crate) fn stream(run: &Run, stream: Stream) -> Vec<u8> {
    let records = records(run, stream);
    let payloads: Vec<&[u8]> = records.iter().map(|r| &r.payload[..]).collect();
    payloads.concat()
}

/// Each frame of one stream in a few words: `newline`, `stray incomplete`, ….
pub(crate) fn frames(run: &Run, stream: Stream) -> Vec<String> {
    let describe = |record: &&Record| {
        let envelope = &record.envelope;
        let mut words = vec![match envelope.framing {
            Framing::Newline => "newline",
            Framing::ContentLength => "content-length",
            Framing::Event => "event",
            Framing::Body => "body",
            Framing::Stray => "stray",
        }];
        let flags = [
            (Flags::CUT, "cut"),
            (Flags::INCOMPLETE, "incomplete"),
            (Flags::LOSSY, "lossy"),
            (Flags::UNDELIVERED, "undelivered"),
            (Flags::BODIES_DIGESTED, "digested"),
        ];
        let set = flags.iter().filter(|(flag, _)| envelope.flags.has(*flag));
        words.extend(set.map(|(_, word)| *word));
        words.join(" ")
    };
    records(run, stream).iter().map(describe).collect()
}

/// Why a session counts as failed.
pub(crate) fn failures(run: &Run) -> Vec<Failure> {
    let story = story::of(run.entry.id, Vec::new(), &[run]);
    outcomes::failures(&story)
}

/// The steps in a few words: method or kind, target, outcome.
pub(crate) fn steps(run: &Run) -> Vec<String> {
    let describe = |step: &agent_trace_store::trace::Step| {
        let what = match step.kind {
            StepKind::Stray => "stray",
            StepKind::Other => "other",
            StepKind::Answer => "answer",
            StepKind::Request | StepKind::Notification | StepKind::Http => {
                step.method.as_deref().unwrap_or_default()
            }
        };
        let target = step
            .target
            .as_deref()
            .map_or(String::new(), |t| format!(" {t}"));
        let outcome = if step.kind == StepKind::Request {
            format!(": {}", step.outcome)
        } else {
            String::new()
        };
        format!("{what}{target}{outcome}")
    };
    run.steps.iter().map(describe).collect()
}

/// The outcomes of the requests.
pub(crate) fn outcomes(run: &Run) -> Vec<Outcome> {
    let requests = run
        .steps
        .iter()
        .filter(|step| step.kind == StepKind::Request);
    requests.map(|step| step.outcome).collect()
}

/// What was recorded is what was sent, byte for byte, and nothing was left out.
#[track_caller]
pub(crate) fn assert_recorded(run: &Run, of: Stream, sent: &[u8]) {
    assert_same(&stream(run, of), sent, &format!("the record of {of:?}"));
    let total: u64 = records(run, of).iter().map(|r| r.envelope.length).sum();
    assert_eq!(total, sent.len() as u64, "the recorded lengths of {of:?}");
    assert!(run.gaps.is_empty() && run.damage.is_empty(), "{run:?}");
}

/// Whether the end of the run says that bytes were not recorded.
pub(crate) fn lost(run: &Run) -> u64 {
    run.end.as_ref().map_or(0, |end| end.lost)
}

/// The last sequence number of the run with none missing before it.
pub(crate) fn contiguous(run: &Run) -> u64 {
    let mut numbers = sequence_numbers(run);
    numbers.sort_unstable();
    let in_place = |(index, number): &(usize, &u64)| **number == *index as u64 + 1;
    numbers.iter().enumerate().take_while(in_place).count() as u64
}

/// The sequence numbers of all records in a run's files, in the order of the files.
pub(crate) fn sequence_numbers(run: &Run) -> Vec<u64> {
    use agent_trace_store::journal::Segment;
    let segments = run.entry.segments.iter();
    let read = |path| Segment::open(path).unwrap();
    let numbers = |segment: Segment| -> Vec<u64> {
        let records = segment.records().flatten();
        records.map(|record| record.envelope.sequence).collect()
    };
    segments.map(read).flat_map(numbers).collect()
}

/// Where in a journal file its records lie: offset, length, kind.
pub(crate) fn places(home: &Home) -> Vec<(usize, usize, Kind)> {
    use agent_trace_store::journal::{Header, format};
    let bytes = std::fs::read(home.only_journal()).unwrap();
    let (_, mut at) = Header::decode(&bytes).unwrap();
    let mut places = Vec::new();
    while at < bytes.len() {
        let (record, length) = format::decode(&bytes[at..]).unwrap();
        if record.envelope.kind != Kind::Mark {
            places.push((at, length, record.envelope.kind));
        }
        at += length;
    }
    places
}
