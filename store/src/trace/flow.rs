//! The sessions of a process, record by record and in bounded memory.
//!
//! This is how an index reads: once, in the order of the journal, whether that is finished or
//! still grows. Records are put in the order of their times within a recorder's tick; what
//! comes of them depends on the records alone, not on when they were read.

use super::follow::TICK;
use super::listing::{is_stdio_opening, opening};
use super::read::{Sequence, copy};
use super::session::Session;
use super::{SessionEntry, run_id};
use crate::journal::header::Header;
use crate::journal::reader::{Damage, OpenError, Segment};
use crate::journal::{Kind, Record};
use crate::layout::SegmentPath;
use agent_trace_model::{ProcessId, SessionId, Stream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// So long after its end, in nanoseconds of the monotonic clock, nothing more is expected of
/// a session.
const AFTER_END: u64 = 1_000_000_000;

/// What is told of the sessions.
pub trait Watch {
    /// A record of this session was taken, none where the session is over. Positions in its
    /// steps: those that are new, and those about which nothing more will be learned.
    /// Steps that were told of as settled, and frames, are gone soon after.
    fn took(
        &mut self,
        session: &Session,
        record: Option<&Taken>,
        new: Range<usize>,
        settled: &[usize],
    );

    /// Nothing more will come of this session.
    fn over(&mut self, session: Session, files: (u32, u32));
}

/// A record, without its payload.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// What it is.
    pub kind: Kind,
    /// Which stream it was on.
    pub stream: Stream,
    /// The HTTP exchange, or 0.
    pub exchange: u32,
    /// When, in nanoseconds since 1970.
    pub wall: u64,
    /// When, on the monotonic clock.
    pub monotonic: u64,
    /// Length on the wire.
    pub length: u64,
}

/// The sessions of a process while its journal is read.
#[derive(Debug)]
pub struct Flow {
    process: ProcessId,
    header: Option<Header>,
    /// Whether the process still writes.
    live: bool,
    /// The process has one session, whatever its records say.
    alone: bool,
    /// It relays HTTP.
    http: bool,
    /// Any record was taken.
    begun: bool,
    sessions: BTreeMap<u32, Flowing>,
    /// Sessions that are over.
    over: BTreeSet<u32>,
    /// The sessions that have an end and are not over, by the monotonic clock at that.
    ending: BTreeSet<(u64, u32)>,
    /// Sessions of which something became known since that was asked.
    touched: BTreeSet<u32>,
    /// What is not there, and after which moment. Of many sessions each takes note of it when
    /// it goes on.
    lost: Vec<(u64, Lost)>,
    /// How much of that sessions were told when that was asked.
    told: usize,
    /// Records that wait for those that belong before them, in the order of their times.
    held: VecDeque<Record>,
    /// The latest time on the monotonic clock.
    newest: u64,
    sequence: Sequence,
    /// The monotonic clock of the last record.
    clock: u64,
    /// The last file that was read.
    file: u32,
    /// How many records were read.
    records: u64,
    damaged: u64,
}

#[derive(Debug)]
struct Flowing {
    session: Session,
    /// The first and the last file with records of it.
    files: (u32, u32),
    /// The monotonic clock at its end.
    ended: Option<u64>,
    /// How much of what is not there was taken note of. The rest belongs to the session if it
    /// goes on.
    noted: usize,
}

/// Something that is not there.
#[derive(Debug)]
enum Lost {
    Missing(u64),
    Damaged(Damage),
    Gap(Record),
    Unreadable(OpenError),
}

impl Flow {
    /// The beginning of a process's journal; `live` while the process writes it.
    #[must_use]
    pub fn new(process: ProcessId, live: bool) -> Self {
        Self {
            process,
            header: None,
            live,
            alone: false,
            http: false,
            begun: false,
            sessions: BTreeMap::new(),
            over: BTreeSet::new(),
            ending: BTreeSet::new(),
            touched: BTreeSet::new(),
            lost: Vec::new(),
            told: 0,
            held: VecDeque::new(),
            newest: 0,
            sequence: Sequence::from(1),
            clock: 0,
            file: 0,
            records: 0,
            damaged: 0,
        }
    }

    /// What the first file that can be read says of itself.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Whether it relays HTTP.
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.http
    }

    /// How many records were read, and how many bytes cannot be.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.records, self.damaged)
    }

    /// Takes a file that is finished.
    ///
    /// # Errors
    /// When it cannot be read; that was taken note of.
    pub fn read(&mut self, path: &SegmentPath, watch: &mut dyn Watch) -> Result<(), OpenError> {
        let segment = match Segment::open(path) {
            Ok(segment) => segment,
            Err(error) => {
                self.cannot_read(&error);
                return Err(error);
            }
        };
        self.begin_file(segment.header().clone());
        for view in segment.views() {
            match view {
                Ok(view) => self.take(view.record(), watch),
                // A torn end is how a killed process ends; the missing end record says so.
                Err(damage) if damage.torn_end => {}
                Err(damage) => self.damage(damage),
            }
        }
        Ok(())
    }

    /// Another file begins.
    pub fn begin_file(&mut self, header: Header) {
        let number = header.segment;
        if number != self.file.saturating_add(1) {
            // What was before has gone: it was too old, or belongs to other runs.
            self.sequence = Sequence::from(number);
        }
        self.file = number;
        self.header.get_or_insert(header);
    }

    /// A file cannot be read.
    pub fn cannot_read(&mut self, error: &OpenError) {
        if !self.alone {
            self.sequence = Sequence::default();
        }
        self.file = self.file.saturating_add(1);
        let from = self.clock;
        self.lose(from, Lost::Unreadable(copy(error)));
    }

    /// Something in the journal cannot be read.
    pub fn damage(&mut self, damage: Damage) {
        self.damaged += damage.bytes;
        let from = self.clock;
        self.lose(from, Lost::Damaged(damage));
    }

    /// Takes the next record.
    pub fn take(&mut self, record: Record, watch: &mut dyn Watch) {
        self.records += 1;
        let missing = self.sequence.missing_before(&record);
        let envelope = &record.envelope;
        let (kind, monotonic) = (envelope.kind, envelope.monotonic);
        let from = self.clock;
        if !self.begun && kind != Kind::Removed {
            self.begun = true;
            self.alone = is_stdio_opening(&record);
        }
        let ordinal = match self.alone {
            true => 1,
            false => envelope.session,
        };
        self.http |= !self.alone
            && (envelope.exchange > 0
                || envelope.session > 1
                || (envelope.session == 0 && kind != Kind::Removed));
        if ordinal > 0 && kind != Kind::Removed {
            self.arrived(ordinal, &record);
        }
        if missing > 0 {
            self.lose(from, Lost::Missing(missing));
        }
        if kind == Kind::Removed {
            return;
        }
        self.clock = monotonic;
        if ordinal == 0 {
            if kind == Kind::Gap {
                self.lose(monotonic, Lost::Gap(record));
            }
        } else if !self.over.contains(&ordinal) {
            let later = self.held.iter().rev();
            let later = later.take_while(|held| held.envelope.monotonic > monotonic);
            let at = self.held.len() - later.count();
            self.held.insert(at, record);
        }
        if monotonic > self.newest {
            self.newest = monotonic;
            self.release(monotonic.saturating_sub(TICK), watch);
        }
    }

    /// Nothing more will come: the process has ended.
    pub fn finish(&mut self, watch: &mut dyn Watch) {
        self.live = false;
        self.release(u64::MAX, watch);
        for (ordinal, flowing) in std::mem::take(&mut self.sessions) {
            self.over.insert(ordinal);
            flowing.finish(watch);
        }
    }

    /// The sessions of which something became known since this was asked last, as they would
    /// be if nothing more came for now, told to what `watch` gives for each. The files are
    /// those that hold records of the session.
    pub fn touched(&mut self, mut each: impl FnMut(u32, &mut dyn FnMut(&mut dyn Watch) -> Seen)) {
        let lost = &self.lost[self.told..];
        for (ordinal, flowing) in self.sessions.iter().filter(|_| !lost.is_empty()) {
            if lost.iter().any(|(from, _)| flowing.lacks(*from)) {
                self.touched.insert(*ordinal);
            }
        }
        self.told = self.lost.len();
        for ordinal in std::mem::take(&mut self.touched) {
            let Some(flowing) = self.sessions.get(&ordinal) else {
                continue;
            };
            let (lost, held, live) = (&self.lost, &self.held, self.live);
            each(ordinal, &mut |watch| flowing.peek(lost, held, live, watch));
        }
    }

    fn arrived(&mut self, ordinal: u32, record: &Record) {
        if self.over.contains(&ordinal) {
            return;
        }
        self.touched.insert(ordinal);
        let kind = record.envelope.kind;
        let told = (kind == Kind::Meta).then(|| opening(&record.payload));
        let told = told.flatten();
        self.http |= told.as_ref().is_some_and(|open| open.transport == "http");
        let (http, file, noted) = (self.http, self.file, self.lost.len());
        let new = || Flowing {
            noted,
            ..Flowing::new(self.process, self.header.as_ref(), ordinal, record, file)
        };
        let flowing = self.sessions.entry(ordinal).or_insert_with(new);
        flowing.files.1 = file;
        flowing.session.entry.http = http;
        for lost in flowing.lacking(&self.lost) {
            flowing.session.take_loss(lost);
        }
        flowing.noted = noted;
        // What ties exchanges together may become known later than the first of them.
        if let Some(open) = told {
            if http && open.started > 0 {
                flowing.session.entry.started = open.started;
            }
            flowing.session.open(open);
        }
        if kind == Kind::End {
            let ended = record.envelope.monotonic;
            if let Some(before) = flowing.ended.replace(ended) {
                self.ending.remove(&(before, ordinal));
            }
            self.ending.insert((ended, ordinal));
        }
    }

    /// Something is not there, after this moment.
    fn lose(&mut self, from: u64, lost: Lost) {
        if !self.alone {
            self.lost.push((from, lost));
        } else if let Some(mut only) = self.sessions.first_entry() {
            only.get_mut().session.take_loss(lost);
            self.touched.insert(*only.key());
        }
    }

    fn release(&mut self, until: u64, watch: &mut dyn Watch) {
        while let Some(record) = self.held.front() {
            if record.envelope.monotonic > until {
                break;
            }
            let Some(record) = self.held.pop_front() else {
                break;
            };
            let ordinal = if self.alone {
                1
            } else {
                record.envelope.session
            };
            if let Some(flowing) = self.sessions.get_mut(&ordinal) {
                flowing.push(record, watch);
            }
        }
        let gone = until.saturating_sub(AFTER_END);
        while self.http
            && self.newest < u64::MAX
            && let Some((ended, ordinal)) = self.ending.first().copied()
            && ended < gone
        {
            self.ending.pop_first();
            if let Some(flowing) = self.sessions.remove(&ordinal) {
                self.over.insert(ordinal);
                flowing.finish(watch);
            }
        }
    }
}

/// A session as it would be if nothing more came for now.
pub type Seen = (Session, (u32, u32));

impl Flowing {
    fn new(
        process: ProcessId,
        header: Option<&Header>,
        ordinal: u32,
        record: &Record,
        file: u32,
    ) -> Self {
        let session = SessionId { process, ordinal };
        let header = header.cloned().unwrap_or_else(|| Header::unknown(process));
        let entry = SessionEntry {
            id: run_id(&header.workspace, session),
            session,
            http: false,
            started: match header.started {
                0 => record.envelope.wall,
                started => started,
            },
            header,
            segments: Vec::new(),
            live: true,
        };
        Self {
            session: Session::new(entry),
            files: (file, file),
            ended: None,
            noted: 0,
        }
    }

    fn push(&mut self, record: Record, watch: &mut dyn Watch) {
        push(&mut self.session, record, watch);
    }

    fn finish(mut self, watch: &mut dyn Watch) {
        finish(&mut self.session, watch);
        watch.over(self.session, self.files);
    }

    /// Whether what is missing after this moment may be a part of it.
    fn lacks(&self, from: u64) -> bool {
        self.ended.is_none_or(|ended| ended >= from)
    }

    /// What it lacks and has not taken note of.
    fn lacking(&self, lost: &[(u64, Lost)]) -> Vec<Lost> {
        let new = lost.get(self.noted..).unwrap_or_default().iter();
        let own = new.filter(|(from, _)| self.lacks(*from));
        own.map(|(_, lost)| lost.fork()).collect()
    }

    fn peek(
        &self,
        lost: &[(u64, Lost)],
        held: &VecDeque<Record>,
        live: bool,
        watch: &mut dyn Watch,
    ) -> Seen {
        let mut session = self.session.fork();
        let ordinal = session.entry.session.ordinal;
        for lost in self.lacking(lost) {
            session.take_loss(lost);
        }
        for record in held {
            if record.envelope.session == ordinal || !session.entry.http {
                push(&mut session, record.clone(), watch);
            }
        }
        if self.ended.is_some() || !live {
            finish(&mut session, watch);
        }
        (session, self.files)
    }
}

impl Lost {
    fn fork(&self) -> Self {
        match self {
            Self::Missing(count) => Self::Missing(*count),
            Self::Damaged(damage) => Self::Damaged(*damage),
            Self::Gap(record) => Self::Gap(record.clone()),
            Self::Unreadable(error) => Self::Unreadable(copy(error)),
        }
    }
}

impl Session {
    fn take_loss(&mut self, lost: Lost) {
        match lost {
            Lost::Gap(record) => return self.push(record),
            Lost::Missing(count) => self.missing += count,
            Lost::Damaged(damage) => self.damage.push(damage),
            Lost::Unreadable(error) => self.unreadable.push(error),
        }
        self.lose(u64::MAX);
    }
}

fn push(session: &mut Session, record: Record, watch: &mut dyn Watch) {
    let envelope = &record.envelope;
    let taken = Taken {
        kind: envelope.kind,
        stream: envelope.stream,
        exchange: envelope.exchange,
        wall: envelope.wall,
        monotonic: envelope.monotonic,
        length: envelope.length,
    };
    let before = session.steps.len();
    session.push(record);
    let settled = session.steps.take_settled();
    let new = before..session.steps.len();
    watch.took(session, Some(&taken), new, &settled);
    session.forget(taken.exchange);
}

fn finish(session: &mut Session, watch: &mut dyn Watch) {
    let before = session.steps.len();
    session.entry.live = false;
    session.finish();
    let settled = session.steps.take_settled();
    let new = before..session.steps.len();
    watch.took(session, None, new, &settled);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Envelope, Flags};
    use agent_trace_wire::frame::Framing;

    /// The gaps of the sessions that are over.
    #[derive(Default)]
    struct Over(BTreeMap<u32, usize>);

    impl Watch for Over {
        fn took(&mut self, _: &Session, _: Option<&Taken>, _: Range<usize>, _: &[usize]) {}

        fn over(&mut self, session: Session, _: (u32, u32)) {
            let gaps = session.gaps.len();
            self.0.insert(session.entry.session.ordinal, gaps);
        }
    }

    struct Journal(Flow, Over, u64);

    impl Journal {
        fn record(&mut self, session: u32, kind: Kind, at: u64) {
            self.2 += 1;
            let envelope = Envelope {
                kind,
                stream: Stream::ClientToServer,
                framing: Framing::Stray,
                flags: Flags::default(),
                session,
                exchange: 0,
                sequence: self.2,
                wall: at,
                monotonic: at,
                length: 0,
                digest: None,
                spans: vec![],
            };
            let payload = match kind {
                Kind::Gap => br#"{"reason":"queue_full","frames":1,"bytes":1}"#.to_vec(),
                _ => b"{}".to_vec(),
            };
            self.0.take(Record { envelope, payload }, &mut self.1);
        }
    }

    #[test]
    fn what_is_lost_is_kept_once_and_belongs_to_those_that_go_on() {
        const SECOND: u64 = 1_000_000_000;
        let flow = Flow::new(ProcessId::from_bytes([1; 16]), true);
        let mut journal = Journal(flow, Over::default(), 0);
        for session in 1..=1_000 {
            journal.record(session, Kind::Frame, SECOND);
        }
        journal.record(1, Kind::End, 2 * SECOND);
        for _ in 0..50 {
            journal.record(0, Kind::Gap, 3 * SECOND);
        }
        assert_eq!(journal.0.lost.len(), 50);
        let mut touched = 0;
        journal.0.touched(|_, _| touched += 1);
        assert_eq!(touched, 1_000);
        journal.record(0, Kind::Gap, 3 * SECOND);
        touched = 0;
        journal.0.touched(|_, _| touched += 1);
        assert_eq!(touched, 999, "one had ended before");
        // Of those that end one goes on after it.
        journal.record(2, Kind::Frame, 4 * SECOND);
        journal.record(2, Kind::End, 5 * SECOND);
        journal.record(3, Kind::Frame, 7 * SECOND);
        assert_eq!(journal.1.0, BTreeMap::from([(1, 0), (2, 51)]));
        assert!(journal.0.ending.is_empty());
        journal.0.finish(&mut journal.1);
        assert_eq!(journal.1.0.len(), 1_000);
        assert_eq!((journal.1.0[&3], journal.1.0[&4]), (51, 0));
    }
}
