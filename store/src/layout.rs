//! Where things lie in the data directory, and who may read them.
//!
//! ```text
//! <data>/key                                   the store's secret key, mode 0600
//! <data>/journal/lock                          held while finished files are changed
//! <data>/journal/live/<process>.<n>.atj        journals, written or left by a dead process
//! <data>/journal/<yyyy-mm-dd>/<process>.<n>.ats  sealed, by the day they were begun
//! <data>/journal/import-<digits>/<process>.<n>.ats  what one import brought
//! <data>/journal/import-<digits>/replaces      what it took the place of, until that is removed
//! <data>/import.lock, <data>/importing/        one import at a time, before it is published
//! <data>/index/                                what is derived from them
//! <data>/index.broken-<seconds>/               one of before that could not be used, if any
//! <data>/daemon.lock, <data>/index.lock        see [`crate::lock`]
//! ```
//! Directories have mode 0700, files 0600.

use agent_trace_model::ProcessId;
use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The file name ending of a journal.
pub const JOURNAL_ENDING: &str = "atj";
/// The file name ending of a sealed segment.
pub const SEALED_ENDING: &str = "ats";

/// In the folder of an import: the files that it takes the place of, one a line.
pub(crate) const REPLACES: &str = "replaces";

/// How the name of an index begins that was put aside.
const ASIDE: &str = "index.broken-";
/// The folder of journals that are not sealed.
const LIVE: &str = "live";

/// A data directory. Nothing is read or made until it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store in this directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The data directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of the store's secret key.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.root.join("key")
    }

    /// The folder of all journals.
    #[must_use]
    pub fn journals(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Where journals are written.
    #[must_use]
    pub fn live(&self) -> PathBuf {
        self.root.join("journal").join(LIVE)
    }

    /// Where sealed segments of this day (`yyyy-mm-dd`) lie.
    #[must_use]
    pub fn day(&self, day: &str) -> PathBuf {
        self.root.join("journal").join(day)
    }

    /// Every journal and sealed segment, in no particular order. Of a segment that is there
    /// in both forms (its sealing was interrupted before the journal was removed) only the
    /// sealed one.
    ///
    /// # Errors
    /// When a directory that exists cannot be read.
    pub fn segments(&self) -> io::Result<Vec<SegmentPath>> {
        // Journals first: one that is sealed meanwhile is then found there, or in the folder
        // to which it went, or in both.
        let mut files = entries(&self.live())?;
        for folder in entries(&self.root.join("journal"))? {
            if folder != self.live() {
                files.extend(entries(&folder)?);
            }
        }
        let replaces = files.iter().filter(|file| file.ends_with(REPLACES));
        let replaced = self.replaced(replaces)?;
        files.retain(|file| !replaced.contains(file));
        let mut found: Vec<SegmentPath> =
            files.into_iter().filter_map(SegmentPath::parse).collect();
        found.sort_by(|a, b| (a.process, a.number, b.sealed).cmp(&(b.process, b.number, a.sealed)));
        found.dedup_by(|later, kept| (later.process, later.number) == (kept.process, kept.number));
        Ok(found)
    }

    /// The file that is locked while a daemon runs.
    #[must_use]
    pub fn daemon_lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }

    /// The file that is locked by who owns the index.
    #[must_use]
    pub fn index_lock(&self) -> PathBuf {
        self.root.join("index.lock")
    }

    /// Where the index lies.
    #[must_use]
    pub fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    /// Renames an index that cannot be used, so that one can be begun anew, and removes what
    /// was put aside so before: it can be derived again, and is kept only for whoever wants to
    /// know what became of it. Returns its new place. Only who owns the index may do this.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn put_index_aside(&self) -> io::Result<PathBuf> {
        for path in entries(&self.root)? {
            let name = path.file_name().unwrap_or_default();
            if name.to_string_lossy().starts_with(ASIDE) {
                remove(&path)?;
            }
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let name = format!("{ASIDE}{}", now.unwrap_or_default().as_secs());
        let aside = self.root.join(name);
        std::fs::rename(self.index(), &aside)?;
        Ok(aside)
    }

    /// The folders of journals and sealed segments: their names, and when something was last
    /// added to or removed from each, in nanoseconds since 1970.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn folders(&self) -> io::Result<Vec<(String, u64)>> {
        let mut folders = Vec::new();
        for folder in entries(&self.root.join("journal"))? {
            let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let data = match folder.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                data => data?,
            };
            if data.is_dir() {
                folders.push((name.to_owned(), changed(&data)));
            }
        }
        Ok(folders)
    }

    /// The journals and sealed segments in one folder, in no particular order.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn segments_in(&self, folder: &str) -> io::Result<Vec<SegmentPath>> {
        let mut files = entries(&self.day(folder))?;
        if folder != LIVE {
            let replaced = self.replaced(&self.replacing()?)?;
            files.retain(|file| !replaced.contains(file));
        }
        Ok(files.into_iter().filter_map(SegmentPath::parse).collect())
    }

    /// Where imports say what they take the place of: one that is over does not any more.
    fn replacing(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = entries(&self.journals())?;
        found.iter_mut().for_each(|folder| folder.push(REPLACES));
        found.retain(|file| file.is_file());
        Ok(found)
    }

    /// The files that these say.
    fn replaced<'a>(
        &self,
        replacing: impl IntoIterator<Item = &'a PathBuf>,
    ) -> io::Result<HashSet<PathBuf>> {
        let mut found = HashSet::new();
        for file in replacing {
            let names = match std::fs::read_to_string(file) {
                // They were removed meanwhile, and so was it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                names => names?,
            };
            let path = |name: &str| {
                let (folder, file) = name.split_once('/')?;
                let path = self.day(folder).join(file);
                (folder != ".." && !file.contains('/')).then_some(path)
            };
            found.extend(names.lines().filter_map(path));
        }
        Ok(found)
    }

    /// These files as they stand in a file of those that are replaced.
    pub(crate) fn names(&self, files: &[PathBuf]) -> String {
        let mut names = String::new();
        for file in files {
            if let Ok(name) = file.strip_prefix(self.journals()) {
                names.push_str(&name.to_string_lossy());
                names.push('\n');
            }
        }
        names
    }

    /// Removes the files that imports took the place of. The store must be locked.
    ///
    /// # Errors
    /// When one cannot be removed; it is still not read.
    pub(crate) fn remove_replaced(&self) -> io::Result<()> {
        for replacing in self.replacing()? {
            for file in self.replaced([&replacing])? {
                remove_if_there(&file)?;
                // Its folder may be empty now; one that is not stays.
                let _ = file.parent().map(std::fs::remove_dir);
            }
            std::fs::remove_file(replacing)?;
        }
        Ok(())
    }

    /// How many bytes the disk under the store still takes, where that can be known.
    #[must_use]
    pub fn free_space(&self) -> Option<u64> {
        #[cfg(unix)]
        {
            let there = self.root.ancestors().find(|folder| folder.exists())?;
            let disk = rustix::fs::statvfs(there).ok()?;
            Some(disk.f_bavail.saturating_mul(disk.f_frsize))
        }
        #[cfg(not(unix))]
        None
    }

    /// Makes a file where journals are written, and removes it again.
    ///
    /// # Errors
    /// When that cannot be done, so that nothing can be recorded.
    pub fn try_writing(&self) -> io::Result<()> {
        self.make(&self.live())?;
        let path = self.live().join(format!("try.{}", std::process::id()));
        let tried =
            create_private(&path).and_then(|mut file| io::Write::write_all(&mut file, b"x"));
        let _ = std::fs::remove_file(&path);
        tried
    }

    /// Waits until no other process changes finished files, and keeps others from it until
    /// what it returns is dropped. Recording does not need this.
    ///
    /// # Errors
    /// When the lock cannot be had.
    pub fn lock(&self) -> io::Result<File> {
        let journal = self.root.join("journal");
        self.make(&journal)?;
        let lock = open_lock(&journal.join("lock"))?;
        lock.lock()?;
        // Of an import that was killed. What cannot be removed is at least not read.
        let _ = self.remove_replaced();
        Ok(lock)
    }

    /// Everything in the journal's folders whose name begins with the process's: its files,
    /// and what an interrupted sealing left of them.
    ///
    /// # Errors
    /// When a directory that exists cannot be read.
    pub fn files_of(&self, process: ProcessId) -> io::Result<Vec<PathBuf>> {
        let prefix = format!("{process}.");
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(&prefix)
        };
        let mut found = Vec::new();
        for folder in entries(&self.root.join("journal"))? {
            found.extend(entries(&folder)?.into_iter().filter(is_ours));
        }
        Ok(found)
    }

    /// Makes a directory of the store and those above it, for its owner alone.
    ///
    /// # Errors
    /// When one of them cannot be made.
    pub fn make(&self, directory: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)
    }
}

/// Opens a file that is there to be locked.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a file that must not exist yet, for its owner alone.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a file that must not exist yet, for its owner alone, so that it is there as a whole
/// and on the disk, or not at all.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Aside::write(path, bytes)?.publish()
}

/// A file on the disk that has not got its name yet. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Aside {
    aside: PathBuf,
    path: PathBuf,
}

impl Aside {
    /// Writes what is to become the file at this place.
    pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".tmp{}", std::process::id()));
        let this = Self {
            aside: path.with_file_name(name),
            path: path.to_owned(),
        };
        let mut file = create_private(&this.aside)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        Ok(this)
    }

    /// Gives it its name, unless that is taken.
    pub(crate) fn publish(self) -> io::Result<()> {
        publish(&self.aside, &self.path)
    }

    /// Gives it its name, in place of what has it.
    pub(crate) fn replace(self) -> io::Result<()> {
        std::fs::rename(&self.aside, &self.path)?;
        sync_folder(&self.path)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.aside);
    }
}

/// Gives a file its name, unless that is taken.
fn publish(aside: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(aside, path) {
        // A file system without links: what is left is a moment in which another may come.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            if path.exists() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            std::fs::rename(aside, path)?;
        }
        linked => linked?,
    }
    sync_folder(path)
}

/// The name, too, has to survive.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().map(File::open) {
        Some(Ok(folder)) => folder.sync_all().or(Ok(())),
        _ => Ok(()),
    }
}

/// Removes a file, unless somebody else did.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a file, or a folder with what is in it.
fn remove(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}

/// When a file was changed, in nanoseconds since 1970; 0 where that is not known.
pub(crate) fn changed(data: &std::fs::Metadata) -> u64 {
    let since = data.modified().ok();
    let since = since.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match folder.read_dir() {
        Ok(list) => list.map(|entry| Ok(entry?.path())).collect(),
        // A stray file beside the folders, or a folder that was just removed.
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// One file of a process's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPath {
    /// Where it is.
    pub path: PathBuf,
    /// Whose journal it belongs to.
    pub process: ProcessId,
    /// Which part of that journal it is, from 1.
    pub number: u32,
    /// Whether it is sealed.
    pub sealed: bool,
}

impl SegmentPath {
    /// The file name of a segment.
    #[must_use]
    pub fn name(process: ProcessId, number: u32, sealed: bool) -> String {
        let ending = if sealed {
            SEALED_ENDING
        } else {
            JOURNAL_ENDING
        };
        format!("{process}.{number}.{ending}")
    }

    /// Its length in bytes, and when it was changed, in nanoseconds since 1970.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn state(&self) -> io::Result<(u64, u64)> {
        let data = self.path.metadata()?;
        Ok((data.len(), changed(&data)))
    }

    /// What a file of the journal is, by its name; none where the name is none of ours.
    #[must_use]
    pub fn parse(path: PathBuf) -> Option<Self> {
        let mut parts = path.file_name()?.to_str()?.split('.');
        let (process, number) = (parts.next()?, parts.next()?);
        let sealed = match parts.next()? {
            JOURNAL_ENDING => false,
            SEALED_ENDING => true,
            _ => return None,
        };
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            process: process.parse().ok()?,
            number: number.parse().ok()?,
            sealed,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_known_by_its_name() {
        let process = ProcessId::new(1, [3; 10]);
        for sealed in [false, true] {
            let name = SegmentPath::name(process, 2, sealed);
            let parsed = SegmentPath::parse(PathBuf::from("x").join(name)).unwrap();
            assert_eq!(
                (parsed.process, parsed.number, parsed.sealed),
                (process, 2, sealed)
            );
        }
        assert_eq!(SegmentPath::parse("x/y.1.atj".into()), None);
        assert_eq!(
            SegmentPath::parse(format!("{process}.1.atj.tmp").into()),
            None
        );
    }

    #[test]
    fn a_segment_in_both_forms_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        assert_eq!(store.segments().unwrap(), vec![]);
        let process = ProcessId::new(1, [3; 10]);
        for (place, sealed) in [(store.live(), false), (store.day("2026-11-30"), true)] {
            store.make(&place).unwrap();
            create_private(&place.join(SegmentPath::name(process, 1, sealed))).unwrap();
        }
        let found = store.segments().unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].sealed);
    }

    #[test]
    fn one_index_is_kept_aside() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        std::fs::create_dir(folder.path().join("index.broken-1")).unwrap();
        std::fs::write(folder.path().join("index.broken-1/db"), "").unwrap();
        std::fs::write(folder.path().join("index.broken-x"), "").unwrap();
        store.make(&store.index()).unwrap();
        std::fs::write(store.index().join("db"), "x").unwrap();
        let aside = store.put_index_aside().unwrap();
        assert_eq!(std::fs::read(aside.join("db")).unwrap(), b"x");
        assert_eq!(entries(folder.path()).unwrap(), [aside]);
        // A file can be in the way, too.
        std::fs::write(store.index(), "").unwrap();
        assert!(store.put_index_aside().unwrap().is_file());
    }
}
