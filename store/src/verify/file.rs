//! One file: stretch after stretch, from mark to mark.

use super::{Fault, FaultKind, Note, Report};
use crate::journal::chain::{Chain, Hash, Mark, What};
use crate::journal::reader::{Segment, View};
use crate::journal::sealed::{self, Ends};
use crate::journal::{Envelope, Kind};
use crate::layout::SegmentPath;
use crate::redact::Key;
use crate::trace::removed;

/// What checking a file told.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(super) number: u32,
    /// Its number is that of its header; one that was imported has another.
    pub(super) stands_in_order: bool,
    /// It holds records of several sessions.
    pub(super) http: bool,
    records: u64,
    proven: u64,
    removed: u64,
    live: bool,
    sealed: bool,
    faults: Vec<Fault>,
    doubt: Option<Note>,
    /// Records after the last mark.
    open: u64,
    /// What it says that the file before ended with, and what the next one has to refer to.
    pub(super) begin: Option<Hash>,
    pub(super) end: Option<Hash>,
    last: Option<What>,
    /// It has marks.
    chained: bool,
    /// How many of its records stand before the last mark that is right.
    covered: u64,
    /// Nothing stands after the mark of its end.
    pub(super) has_end: bool,
    /// How many records are missing before its first one, if nothing was before that.
    first: Option<(u64, u64)>,
    /// Number of its last record.
    last_number: u64,
}

/// Checks a file, which was read from this place.
pub(crate) fn file(segment: &Segment, path: &SegmentPath, key: &Key) -> Checked {
    let mut walk = Walk::new(segment, path, key);
    for item in segment.with_marks() {
        match item {
            Ok(view) => walk.take(&view),
            // As a killed process leaves it.
            Err(damage) if damage.torn_end && !path.sealed => {}
            Err(damage) => walk.damaged += damage.bytes,
        }
    }
    let footer = path.sealed.then(|| segment.footer());
    let right = segment
        .footer()
        .is_some_and(|footer| footer.chain == sealed::chain(segment, footer.flawed, key.chain()));
    walk.finish(footer, right)
}

/// A file while it is checked.
struct Walk {
    checked: Checked,
    chain: Chain,
    stretch: Stretch,
    /// Bytes that can't be read, in this stretch; of a sealed file, in any.
    damaged: u64,
    /// The number of the last record, as far as it is known what must follow.
    number: Option<u64>,
    /// Records of any kind but marks.
    entries: u64,
}

/// The records since the last mark.
#[derive(Default)]
struct Stretch {
    numbers: Option<(u64, u64)>,
    records: u64,
    missing: u64,
    /// A number stands where a larger one was before.
    disordered: bool,
}

impl Walk {
    fn new(segment: &Segment, path: &SegmentPath, key: &Key) -> Self {
        let header = segment.header();
        let doubt = (header.redaction.key != key.id()).then_some(Note::OtherKey(path.number));
        Self {
            checked: Checked {
                number: path.number,
                stands_in_order: path.number == header.segment,
                live: segment.is_live(),
                sealed: path.sealed,
                doubt,
                ..Checked::default()
            },
            chain: Chain::new(key.chain(), segment.json()),
            stretch: Stretch::default(),
            damaged: 0,
            number: (header.segment <= 1).then_some(0),
            entries: 0,
        }
    }

    fn take(&mut self, view: &View<'_>) {
        if view.envelope.kind == Kind::Mark {
            // One that can't be read proves nothing, and what follows it will not fit.
            if let Some(mark) = Mark::read(view.payload) {
                self.mark(&mark);
            }
            return;
        }
        let Envelope {
            sequence,
            session,
            exchange,
            kind,
            ..
        } = view.envelope;
        let gone = match kind {
            Kind::Removed => removed(&view.record()),
            _ => None,
        };
        self.checked.http |= exchange > 0 || session > 1 || (session == 0 && kind != Kind::Removed);
        let stands_for = gone.unwrap_or(1);
        self.entries += 1;
        self.checked.removed += gone.unwrap_or(0);
        self.checked.records += u64::from(gone.is_none());
        self.checked.first.get_or_insert((sequence, stands_for));
        let stretch = &mut self.stretch;
        if let Some(last) = self.number {
            stretch.missing += sequence.saturating_sub(last.saturating_add(stands_for));
            stretch.disordered |= sequence <= last;
        }
        self.number = Some(sequence);
        self.checked.last_number = sequence;
        let first = stretch.numbers.map_or(sequence, |(first, _)| first);
        stretch.numbers = Some((first, sequence));
        stretch.records += u64::from(gone.is_none());
        self.checked.has_end = false;
        self.chain.add(view.raw);
    }

    /// Judges the stretch that ends here.
    fn mark(&mut self, mark: &Mark) {
        let right = self.chain.hash(mark.what, mark.link) == mark.hash;
        let begins = mark.what == What::Begin;
        if begins {
            self.checked.begin = Some(mark.link);
        }
        let stretch = std::mem::take(&mut self.stretch);
        // With another store's key nothing is told by a hash that does not fit.
        if self.checked.doubt.is_none() {
            if right && (begins || self.checked.chained) {
                self.checked.proven += stretch.records;
                self.checked.covered = self.entries;
            }
            self.judge(&stretch, right, begins);
        }
        self.checked.chained |= begins;
        self.checked.end = Some(mark.end());
        self.checked.last = Some(mark.what);
        self.checked.has_end = mark.is_end();
        self.chain.restart(mark.hash);
        if !self.checked.sealed {
            self.damaged = 0;
        }
    }

    fn judge(&mut self, stretch: &Stretch, right: bool, begins: bool) {
        if !right && begins {
            let what = match stretch.records {
                0 => "what it says of its process and itself is not what was written",
                _ => "its beginning is not what was written",
            };
            return self.fault(FaultKind::Changed, stretch, what.into());
        }
        if self.damaged > 0 && (!self.checked.sealed || stretch.missing > 0) {
            let what = format!("{} bytes can't be read", self.damaged);
            self.fault(FaultKind::Damaged, stretch, what);
        } else if stretch.missing > 0 && !stretch.disordered {
            let what = match stretch.missing {
                1 => "a record is missing".into(),
                missing => format!("{missing} records are missing"),
            };
            self.fault(FaultKind::Missing, stretch, what);
        } else if !right {
            let what = match stretch.disordered {
                true => "records are not in the order in which they were written",
                false => "a record is not what was written",
            };
            self.fault(FaultKind::Changed, stretch, what.into());
        }
    }

    fn fault(&mut self, kind: FaultKind, stretch: &Stretch, what: String) {
        self.checked.faults.push(Fault {
            kind,
            file: self.checked.number,
            records: stretch.numbers,
            what,
        });
    }

    /// With the footer of a sealed file, if it is not lost, and whether its chain is right.
    fn finish(mut self, footer: Option<Option<&sealed::Footer>>, right: bool) -> Checked {
        let stretch = std::mem::take(&mut self.stretch);
        self.checked.open = stretch.records;
        self.judge(&stretch, true, false);
        self.after_end(&stretch);
        match footer {
            Some(None) => {
                let what = "its end is not there: nothing says where it was sealed";
                self.fault(FaultKind::Cut, &stretch, what.into());
            }
            Some(Some(footer)) => self.seal(&stretch, footer, right),
            None => {}
        }
        if !self.checked.chained && self.checked.faults.is_empty() {
            let number = self.checked.number;
            self.checked.doubt.get_or_insert(Note::Unchained(number));
        }
        self.checked
    }

    /// Judges records after the mark that says that nothing more comes.
    fn after_end(&mut self, stretch: &Stretch) {
        let ended = matches!(self.checked.last, Some(What::End | What::Rolled));
        // A process that goes on after all will make another mark.
        let goes_on = self.checked.live || self.checked.doubt.is_some();
        if ended && !goes_on && stretch.numbers.is_some() {
            let what = "they stand after the mark of its end";
            self.fault(FaultKind::Changed, stretch, what.into());
        }
    }

    /// Judges what the footer of a sealed file says of all of it.
    fn seal(&mut self, stretch: &Stretch, footer: &sealed::Footer, right: bool) {
        let unexplained = self.checked.faults.is_empty();
        let missing = footer.records.saturating_sub(self.entries);
        if self.damaged > 0 && unexplained {
            let what = format!("{} bytes can't be read", self.damaged);
            self.fault(FaultKind::Damaged, stretch, what);
        } else if missing > 0 && unexplained {
            let what = format!("{missing} records are missing");
            self.fault(FaultKind::Missing, stretch, what);
        } else if !right && unexplained && self.checked.doubt.is_none() {
            self.fault(
                FaultKind::Changed,
                stretch,
                "it is not what was sealed".into(),
            );
        }
        // Where its own marks do not tell what that was, all of it may be.
        if footer.flawed && right && self.checked.faults.is_empty() {
            let what = "it was changed before it was written anew";
            self.fault(FaultKind::Changed, &Stretch::default(), what.into());
            self.checked.proven = 0;
        }
    }
}

impl Checked {
    /// Whether it is known that it is not what was recorded.
    pub(crate) fn is_flawed(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Whether it has a hash chain.
    pub(crate) fn is_chained(&self) -> bool {
        self.chained
    }

    /// How many of its records stand before the last mark that is right: nothing proves those
    /// after it.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }

    /// How a file that takes its place is tied to those around it.
    pub(crate) fn ends(&self) -> Ends {
        match (self.begin, self.end, self.last) {
            (Some(before), Some(end), Some(last)) => Ends {
                before,
                what: if last == What::Begin { What::On } else { last },
                end,
            },
            _ => Ends::default(),
        }
    }

    /// How many records are missing between that file and this one.
    pub(super) fn missing_after(&self, before: &Self) -> Option<u64> {
        let (first, stands_for) = self.first?;
        let expected = before.last_number.saturating_add(stands_for);
        Some(first.saturating_sub(expected)).filter(|missing| *missing > 0)
    }

    pub(super) fn tell(&self, report: &mut Report) {
        report.records += self.records;
        report.proven += self.proven;
        report.removed += self.removed;
        report.faults.extend(self.faults.iter().cloned());
        report.notes.extend(self.doubt.clone());
    }

    /// What is to be said of the last file; whether there is a later one by now.
    pub(super) fn tell_of_end(&self, goes_on: bool, report: &mut Report) {
        if self.doubt.is_some() {
            return;
        }
        if self.live {
            report.notes.push(Note::Live(self.open));
        } else if !self.has_end && !self.is_cut() {
            report.notes.push(Note::OpenEnd(self.open));
        } else if self.last == Some(What::Rolled) && self.open == 0 && !goes_on {
            report.faults.push(Fault {
                kind: FaultKind::Missing,
                file: self.number,
                records: None,
                what: format!("file {} is not there", self.number + 1),
            });
        }
    }

    fn is_cut(&self) -> bool {
        let cut = |fault: &Fault| fault.kind == FaultKind::Cut;
        self.faults.iter().any(cut)
    }
}
