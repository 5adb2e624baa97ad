//! Whether the journal is what was recorded: nothing changed, cut off or taken out.
//!
//! The [hash chain](crate::journal) proves that to whoever has the store's key, against all who
//! have not. What it does not prove is in `docs/format.md`.
//!
//! - `file`: one file
//! - here: the files of a process, which refer to each other

mod file;

use crate::journal::chain;
use crate::journal::reader::{OpenError, Segment, is_locked};
use crate::key;
use crate::layout::{SegmentPath, Store};
use crate::redact::Key;
use crate::trace::processes;
use agent_trace_model::ProcessId;
use std::io;

pub(crate) use file::{Checked, file};

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of thing it is.
    pub kind: FaultKind,
    /// The file's number in its process's journal.
    pub file: u32,
    /// Numbers of the first and the last record of the stretch that it is in, where it is in
    /// one.
    pub records: Option<(u64, u64)>,
    /// What is wrong, in words.
    pub what: String,
}

/// Kinds of things that are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Records are whole, and not those that were recorded.
    Changed,
    /// Records are missing, or a file.
    Missing,
    /// The end is missing, although something says that there was more.
    Cut,
    /// Bytes cannot be read.
    Damaged,
}

impl FaultKind {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Cut => "cut",
            Self::Damaged => "damaged",
        }
    }
}

/// What can be said of a process's journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many files there are.
    pub files: usize,
    /// How many records there are.
    pub records: u64,
    /// How many of them are what was recorded.
    pub proven: u64,
    /// How many were removed by who has the key: runs were forgotten, or left behind by an
    /// export.
    pub removed: u64,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// What is to be known beside that.
    pub notes: Vec<Note>,
}

/// Something that is not wrong, but limits what is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The process is still writing; its last records are not proven yet.
    Live(u64),
    /// The process was killed, or the end was cut off: the last records are not proven.
    OpenEnd(u64),
    /// The file has no chain.
    Unchained(u32),
    /// The file was written with the key of another store.
    OtherKey(u32),
    /// Files before this one are not there: they were too old, or somebody removed them.
    Clipped(u32),
}

impl Note {
    /// Whether it is about records that can't be judged at all.
    #[must_use]
    pub fn is_doubt(&self) -> bool {
        matches!(self, Self::Unchained(_) | Self::OtherKey(_))
    }
}

impl Report {
    /// Whether something is wrong.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Whether a part of it can't be judged.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.notes.iter().any(Note::is_doubt)
    }
}

/// Checks the journal of each of these processes, or of all that there are, and hands out what
/// can be said of it.
///
/// # Errors
/// When the store cannot be listed, or has no key.
pub fn each(
    store: &Store,
    of: Option<&[ProcessId]>,
    mut each: impl FnMut(ProcessId, Report),
) -> io::Result<()> {
    let key = key::load(store)?;
    for (process, files) in processes(store)? {
        if of.is_none_or(|of| of.contains(&process))
            && let Some(report) = one(store, process, files, &key)?
        {
            each(process, report);
        }
    }
    Ok(())
}

/// Checks the journal of one process; none where it was removed meanwhile.
fn one(
    store: &Store,
    process: ProcessId,
    mut files: Vec<SegmentPath>,
    key: &Key,
) -> io::Result<Option<Report>> {
    let mut tries = 0;
    loop {
        let report = process_files(store, &files, key);
        if !report.is_faulty() || tries == TRIES {
            return Ok(Some(report));
        }
        // Files that are sealed, written anew or removed in this moment are no fault.
        let now = processes(store)?.remove(&process).unwrap_or_default();
        if now.is_empty() {
            return Ok(None);
        }
        if now == files {
            return Ok(Some(report));
        }
        (files, tries) = (now, tries + 1);
    }
}

/// How often files are looked for again that were moved meanwhile.
const TRIES: u32 = 20;

fn process_files(store: &Store, files: &[SegmentPath], key: &Key) -> Report {
    let mut report = Report::default();
    let mut before: Option<Checked> = None;
    for path in files {
        report.files += 1;
        let what = match Segment::open(path).map_err(Problem::from) {
            Ok(segment) => {
                let checked = file(&segment, path, key);
                follow(before.as_ref(), &checked, &mut report);
                checked.tell(&mut report);
                before = Some(checked);
                continue;
            }
            // It has just been begun.
            Err(Problem::Torn) if is_locked(&path.path).unwrap_or(false) => continue,
            Err(Problem::Torn) => "it ends inside its header".to_owned(),
            Err(Problem::Unreadable(what)) => what,
        };
        let fault = of_file(FaultKind::Damaged, path.number, what);
        report.faults.push(fault);
        before = None;
    }
    if let (Some(last), Some(path)) = (before, files.last()) {
        // It may have gone on since the folder was read.
        let next = SegmentPath::name(path.process, last.number + 1, false);
        let goes_on = store.live().join(next).exists();
        last.tell_of_end(goes_on, &mut report);
    }
    report
}

enum Problem {
    Torn,
    Unreadable(String),
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        use crate::journal::header::HeaderError::Torn;
        match error {
            OpenError::Header { source: Torn, .. } => Self::Torn,
            OpenError::Header { source, .. } => Self::Unreadable(source.to_string()),
            OpenError::Io { source, .. } => Self::Unreadable(source.to_string()),
        }
    }
}

/// Whether a file goes on where the one before it ended.
fn follow(before: Option<&Checked>, checked: &Checked, report: &mut Report) {
    let number = checked.number;
    let mut fault = |kind, file, what: String| report.faults.push(of_file(kind, file, what));
    // Imported: it stands for itself.
    if !checked.stands_in_order {
        return;
    }
    let Some(before) = before.filter(|before| before.stands_in_order) else {
        if number > 1 && checked.http {
            report.notes.push(Note::Clipped(number));
        } else if number > 1 {
            let what = format!("files before number {number} are not there");
            fault(FaultKind::Missing, number, what);
        }
        return;
    };
    if before.number + 1 != number {
        let what = match number - before.number - 1 {
            1 => format!("file {} is not there", number - 1),
            _ => format!(
                "files {} to {} are not there",
                before.number + 1,
                number - 1
            ),
        };
        return fault(FaultKind::Missing, number, what);
    }
    // One that was written anew without those around it refers to none.
    let begin = checked.begin.filter(|begin| *begin != chain::NONE);
    if begin.is_some() && begin != before.end {
        if before.has_end || before.end.is_none() {
            let what = "it does not begin where the file before it ends".to_owned();
            fault(FaultKind::Changed, number, what);
        } else {
            let what = "its end is not there, and the next file says that there was one";
            fault(FaultKind::Cut, before.number, what.to_owned());
        }
    }
    let cut = report
        .faults
        .iter()
        .any(|fault| fault.kind == FaultKind::Cut);
    if let Some(missing) = checked.missing_after(before).filter(|_| !cut) {
        let what = format!("{missing} records are missing before its first one");
        report
            .faults
            .push(of_file(FaultKind::Missing, number, what));
    }
}

fn of_file(kind: FaultKind, file: u32, what: String) -> Fault {
    Fault {
        kind,
        file,
        records: None,
        what,
    }
}
