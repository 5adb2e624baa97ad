//! What is on the disk, and what of it is new since it was looked at last.
//!
//! A folder is read when something was added to it or removed from it. Of files in it those
//! of finished processes do not change, but for sealed ones that are written anew, which
//! changes their folder too.

use super::SETTLED;
use crate::engine::{Batch, Engine, EngineError};
use crate::keys;
use crate::rows::{FileRow, ProcessRow, decode, encode};
use agent_trace_model::ProcessId;
use agent_trace_store::Store;
use agent_trace_store::layout::SegmentPath;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of journals.
const LIVE: &str = "live";
/// Up to so many journals are all looked at each time, in case somebody changed one that is
/// finished.
const FEW: usize = 1_000;

/// What is known of the files of all processes.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// As they were when they were read.
    known: BTreeMap<ProcessId, Vec<FileRow>>,
    /// The processes with files in each folder.
    places: BTreeMap<String, BTreeSet<ProcessId>>,
    /// As they are, where that is something else.
    now: BTreeMap<ProcessId, Vec<FileRow>>,
    /// Processes that have to be looked at each time.
    unfinished: BTreeSet<ProcessId>,
    /// When each folder was changed when it was read.
    folders: BTreeMap<String, u64>,
    /// Folders of which that is not in the index.
    unsaved: bool,
}

/// The journals that are not sealed.
#[derive(Debug, Default)]
struct Journals {
    /// When their folder was changed, before they were listed; none where there is none.
    changed: Option<u64>,
    /// All of them, unless that nothing was added is enough to know.
    listed: Option<Vec<(ProcessId, FileRow)>>,
}

/// The files of a process.
#[derive(Debug)]
pub(super) struct Of {
    known: Vec<FileRow>,
    now: Vec<FileRow>,
}

impl Files {
    /// What an index knows.
    pub(super) fn load(engine: &dyn Engine) -> Result<Self, EngineError> {
        let mut files = Self::default();
        engine.scan(&[keys::kind::PROCESS], None, &mut |_, row| {
            if let Some(row) = decode::<ProcessRow>(row) {
                if !row.finished {
                    files.unfinished.insert(row.process);
                }
                files.know(row.process, row.files);
            }
            true
        })?;
        engine.scan(&[keys::kind::FOLDER], None, &mut |key, row| {
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            if let Some(changed) = decode(row) {
                files.folders.insert(name, changed);
            }
            true
        })?;
        Ok(files)
    }

    /// The processes of which something may be new.
    pub(super) fn look(&mut self, store: &Store) -> io::Result<BTreeSet<ProcessId>> {
        let journals = self.look_at_journals(store)?;
        self.look_at_days(store, journals)
    }

    /// Journals are looked at first: one that is sealed meanwhile is then seen in either place,
    /// and not in none. Where there are few, each is looked at even if nothing was added.
    fn look_at_journals(&self, store: &Store) -> io::Result<Journals> {
        let mut journals = Journals::default();
        let mut folders = store.folders()?.into_iter();
        let Some((_, changed)) = folders.find(|(name, _)| name == LIVE) else {
            return Ok(journals);
        };
        journals.changed = Some(changed);
        let is_new = self.folders.get(LIVE) != Some(&changed);
        let are_few = |there: &BTreeSet<ProcessId>| there.len() <= FEW;
        if !is_new && !self.places.get(LIVE).is_none_or(are_few) {
            return Ok(journals);
        }
        let files = store.segments_in(LIVE)?;
        let few = !is_new || files.len() <= FEW;
        let rows = files.into_iter().filter_map(|file| {
            let known = (!few).then(|| self.known_file(&file)).flatten();
            Some((file.process, known.or_else(|| row(&file, LIVE))?))
        });
        journals.listed = Some(rows.collect());
        Ok(journals)
    }

    fn look_at_days(
        &mut self,
        store: &Store,
        journals: Journals,
    ) -> io::Result<BTreeSet<ProcessId>> {
        let mut folders: BTreeMap<String, u64> = store.folders()?.into_iter().collect();
        // As it was before it was read.
        folders.remove(LIVE);
        folders.extend(journals.changed.map(|changed| (LIVE.to_owned(), changed)));
        let gone = self.folders.keys();
        let gone = gone.filter(|name| !folders.contains_key(*name));
        let mut read: BTreeSet<String> = gone.cloned().collect();
        let mut listed: BTreeMap<ProcessId, Vec<FileRow>> = BTreeMap::new();
        for (name, changed) in &folders {
            if name != LIVE && self.folders.get(name) != Some(changed) {
                read.insert(name.clone());
                for file in store.segments_in(name)? {
                    let process = file.process;
                    listed.entry(process).or_default().extend(row(&file, name));
                }
            }
        }
        if let Some(journals) = journals.listed {
            read.insert(LIVE.to_owned());
            for (process, row) in journals {
                listed.entry(process).or_default().push(row);
            }
        }
        let mut new = self.compare(&read, &listed);
        new.extend(&self.unfinished);
        for (name, changed) in &folders {
            // What changes within a tick of the file system's clock looks unchanged.
            if now().saturating_sub(*changed) >= SETTLED {
                self.unsaved |= self.folders.insert(name.clone(), *changed) != Some(*changed);
            }
        }
        let before = self.folders.len();
        self.folders.retain(|name, _| folders.contains_key(name));
        self.unsaved |= before != self.folders.len();
        Ok(new)
    }

    fn known_file(&self, path: &SegmentPath) -> Option<FileRow> {
        let known = self.known.get(&path.process)?;
        let same = |file: &&FileRow| file.number == path.number && file.is_journal();
        known.iter().find(same).cloned()
    }

    /// The processes whose files in these folders are others than they were.
    fn compare(
        &mut self,
        read: &BTreeSet<String>,
        listed: &BTreeMap<ProcessId, Vec<FileRow>>,
    ) -> BTreeSet<ProcessId> {
        let mut new = BTreeSet::new();
        if read.is_empty() {
            return new;
        }
        let in_read = |file: &FileRow| read.contains(&file.folder);
        let known = read.iter().filter_map(|name| self.places.get(name));
        let known = known.flatten().copied();
        let all: BTreeSet<ProcessId> = known.chain(listed.keys().copied()).collect();
        for process in all {
            let before = self.known.get(&process).map_or(&[][..], Vec::as_slice);
            let kept = before.iter().filter(|file| !in_read(file)).cloned();
            let found = listed.get(&process).into_iter().flatten().cloned();
            let now = once(kept.chain(found).collect());
            if now == before {
                self.now.remove(&process);
            } else {
                self.now.insert(process, now);
                new.insert(process);
            }
        }
        new
    }

    /// The files of a process.
    pub(super) fn of(&self, process: ProcessId) -> Of {
        let known = self.known.get(&process).cloned().unwrap_or_default();
        let now = self.now.get(&process).cloned();
        Of {
            now: now.unwrap_or_else(|| known.clone()),
            known,
        }
    }

    /// What was read of a process, and whether it is finished.
    pub(super) fn done(&mut self, process: ProcessId, files: Vec<FileRow>, finished: bool) {
        self.now.remove(&process);
        if finished {
            self.unfinished.remove(&process);
        } else {
            self.unfinished.insert(process);
        }
        self.know(process, files);
    }

    fn know(&mut self, process: ProcessId, files: Vec<FileRow>) {
        for file in self.known.remove(&process).iter().flatten() {
            if let Some(processes) = self.places.get_mut(&file.folder) {
                processes.remove(&process);
            }
        }
        for file in &files {
            let there = self.places.entry(file.folder.clone()).or_default();
            there.insert(process);
        }
        if !files.is_empty() {
            self.known.insert(process, files);
        }
    }

    /// Whether none of these was changed just now.
    pub(super) fn are_settled(&self, files: &[FileRow]) -> bool {
        let last = files.iter().map(|file| file.changed).max();
        now().saturating_sub(last.unwrap_or(0)) >= SETTLED
    }

    /// Keeps what is known of folders, once everything in them is in the index.
    pub(super) fn settle(&mut self, engine: &dyn Engine) -> Result<(), EngineError> {
        if !std::mem::take(&mut self.unsaved) {
            return Ok(());
        }
        let mut batch = Batch::default();
        engine.scan(&[keys::kind::FOLDER], None, &mut |key, _| {
            batch.remove(key.to_vec());
            true
        })?;
        for (name, changed) in &self.folders {
            batch.put(keys::folder(name), encode(changed));
        }
        engine.apply(batch)
    }
}

impl Of {
    pub(super) fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    /// Where they are.
    pub(super) fn paths(&self, store: &Store, process: ProcessId) -> Vec<SegmentPath> {
        let path = |file: &FileRow| path(store, process, file);
        self.now.iter().map(path).collect()
    }

    /// As they are now. One that is not there any more has no length.
    pub(super) fn states(&self, store: &Store, process: ProcessId) -> Vec<FileRow> {
        let state = |file: &FileRow| {
            let (length, changed) = path(store, process, file).state().unwrap_or_default();
            FileRow {
                length,
                changed,
                ..file.clone()
            }
        };
        self.now.iter().map(state).collect()
    }

    /// Whether what was read of the files before this number holds no more: one is gone, or
    /// is another than it was. One that was sealed may be known still.
    pub(super) fn are_others_before(
        &self,
        number: u32,
        still: impl Fn(&FileRow, &FileRow) -> bool,
    ) -> bool {
        let before = self.known.iter().filter(|file| file.number < number);
        before.clone().any(|file| {
            let now = self.now.iter().find(|now| now.number == file.number);
            !now.is_some_and(|now| still(file, now))
        })
    }

    /// Whether they were read as they are now.
    pub(super) fn unchanged(&self, now: &[FileRow]) -> bool {
        self.known == now
    }
}

/// What these files are, in their order; of one that is there in both forms the sealed one.
pub(super) fn rows(files: impl Iterator<Item = SegmentPath>) -> Vec<FileRow> {
    let row = |file: SegmentPath| {
        let folder = file.path.parent().and_then(|folder| folder.file_name());
        let folder = folder.unwrap_or_default().to_string_lossy().into_owned();
        row(&file, &folder)
    };
    once(files.filter_map(row).collect())
}

fn row(file: &SegmentPath, folder: &str) -> Option<FileRow> {
    // One that is gone by now is none.
    let (length, changed) = file.state().ok()?;
    Some(FileRow {
        number: file.number,
        folder: folder.to_owned(),
        length,
        changed,
    })
}

fn once(mut files: Vec<FileRow>) -> Vec<FileRow> {
    files.sort_by_key(|file| (file.number, file.is_journal()));
    files.dedup_by_key(|file| file.number);
    files
}

pub(crate) fn path(store: &Store, process: ProcessId, file: &FileRow) -> SegmentPath {
    let name = SegmentPath::name(process, file.number, !file.is_journal());
    SegmentPath {
        path: store.day(&file.folder).join(name),
        process,
        number: file.number,
        sealed: !file.is_journal(),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

impl FileRow {
    /// Whether it is a journal, and not sealed.
    #[must_use]
    pub fn is_journal(&self) -> bool {
        self.folder == LIVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_journal_that_is_sealed_during_the_look_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let process = ProcessId::from_bytes([7; 16]);
        let day = store.day("2026-11-30");
        let journal = store.live().join(SegmentPath::name(process, 1, false));
        store.make(&store.live()).unwrap();
        store.make(&day).unwrap();
        fs::write(&journal, "x").unwrap();
        let mut files = Files::default();
        assert!(files.look(&store).unwrap().contains(&process));
        files.done(process, files.of(process).now, true);

        let journals = files.look_at_journals(&store).unwrap();
        let sealed = day.join(SegmentPath::name(process, 1, true));
        fs::rename(&journal, &sealed).unwrap();
        assert!(
            files
                .look_at_days(&store, journals)
                .unwrap()
                .contains(&process)
        );
        let paths = files.of(process).paths(&store, process);
        assert_eq!(paths[0].path, sealed);

        fs::remove_file(sealed).unwrap();
        files.look(&store).unwrap();
        assert!(files.of(process).is_empty());
    }
}
