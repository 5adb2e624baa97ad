//! Whose files are looked at: a home, a project, an environment, and how files are read.

use crate::catalogue::{Base, Place};
use crate::document::LARGEST;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How many names of one folder are looked at.
const MOST_NAMES: usize = 1000;

/// The operating systems that files are known for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux, and whatever else keeps files as it does.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl System {
    /// The one that this runs on.
    #[must_use]
    pub fn here() -> Self {
        if cfg!(target_os = "macos") {
            Self::Mac
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

/// How files are read.
pub trait Files {
    /// The bytes of a file; none where there is no such file.
    ///
    /// # Errors
    /// When it is there and cannot be read, or is larger than [`LARGEST`].
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>>;

    /// The names in a folder, in order, up to a bound; none where there is no such folder.
    fn names(&self, folder: &Path) -> Vec<OsString>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let absent = |error: &io::Error| {
            use io::ErrorKind::{NotADirectory, NotFound};
            matches!(error.kind(), NotFound | NotADirectory)
        };
        // Asked before: opening a pipe would wait for someone to write.
        let about = match std::fs::metadata(path) {
            Err(error) if absent(&error) => return Ok(None),
            about => about?,
        };
        if !about.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut bytes = Vec::new();
        let limit = LARGEST as u64 + 1;
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        if bytes.len() > LARGEST {
            let what = format!("it is larger than {} MiB", LARGEST >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        Ok(Some(bytes))
    }

    fn names(&self, folder: &Path) -> Vec<OsString> {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return Vec::new();
        };
        let names = entries.flatten().take(MOST_NAMES);
        let mut names: Vec<OsString> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }
}

/// Whose files are looked at.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// The system whose places count.
    pub system: System,
    /// The user's home.
    pub home: &'a Path,
    /// The project's folder; without it files of projects are left out.
    pub project: Option<&'a Path>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// How files are read.
    pub files: &'a dyn Files,
}

impl Machine<'_> {
    /// Every path that a place may mean; those with a `*` only as far as they are there.
    #[must_use]
    pub fn paths(&self, place: &Place) -> Vec<PathBuf> {
        if !place.systems.contains(&self.system) {
            return Vec::new();
        }
        let Some(base) = self.base(place.base) else {
            return Vec::new();
        };
        let mut paths = vec![base];
        for part in place.path.split('/').filter(|part| !part.is_empty()) {
            if let Some((start, end)) = part.split_once('*') {
                let fits = |name: &OsStr| {
                    name.to_str().is_some_and(|name| {
                        name.len() >= part.len() - 1
                            && name.starts_with(start)
                            && name.ends_with(end)
                    })
                };
                let inside = paths.iter().flat_map(|folder| {
                    let names = self.files.names(folder).into_iter();
                    names
                        .filter(|name| fits(name))
                        .map(|name| folder.join(name))
                });
                paths = inside.collect();
            } else {
                paths.iter_mut().for_each(|path| path.push(part));
            }
        }
        paths
    }

    fn base(&self, base: Base) -> Option<PathBuf> {
        let folder = match base {
            Base::Home => self.home.to_owned(),
            Base::Project => self.project?.to_owned(),
            Base::Xdg => self.folder("XDG_CONFIG_HOME", ".config"),
            Base::Settings => match self.system {
                System::Linux => self.folder("XDG_CONFIG_HOME", ".config"),
                System::Mac => self.home.join("Library/Application Support"),
                System::Windows => self.folder("APPDATA", "AppData/Roaming"),
            },
            Base::Variable(name, otherwise) => self.folder(name, otherwise),
        };
        Some(folder)
    }

    /// What an environment variable names, if it is absolute; else this in the home.
    fn folder(&self, variable: &str, otherwise: &str) -> PathBuf {
        let named = (self.env)(variable).map(PathBuf::from);
        named
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| self.home.join(otherwise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::client;

    fn paths(id: &str, system: System, env: &[(&str, &str)]) -> Vec<String> {
        let env = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let machine = Machine {
            system,
            home: Path::new("/h"),
            project: Some(Path::new("/p")),
            env: &env,
            files: &Disk,
        };
        let places = client(id).unwrap().places.iter();
        let paths = places.flat_map(|place| machine.paths(place));
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn paths_follow_the_system_and_the_environment() {
        assert_eq!(
            paths("codex", System::Linux, &[]),
            ["/h/.codex/config.toml", "/p/.codex/config.toml"]
        );
        assert_eq!(
            paths("codex", System::Linux, &[("CODEX_HOME", "/x")])[0],
            "/x/config.toml"
        );
        assert_eq!(
            paths("codex", System::Linux, &[("CODEX_HOME", "x")])[0],
            "/h/.codex/config.toml"
        );
        let desktop = |system, env: &[(&str, &str)]| paths("claude-desktop", system, env).remove(0);
        assert_eq!(
            desktop(System::Linux, &[("XDG_CONFIG_HOME", "/c")]),
            "/c/Claude/claude_desktop_config.json"
        );
        assert_eq!(
            desktop(System::Mac, &[("XDG_CONFIG_HOME", "/c")]),
            "/h/Library/Application Support/Claude/claude_desktop_config.json"
        );
        assert_eq!(
            desktop(System::Windows, &[("APPDATA", "/a")]),
            "/a/Claude/claude_desktop_config.json"
        );
        assert_eq!(
            paths("goose", System::Mac, &[]),
            ["/h/.config/goose/config.yaml"]
        );
        assert_eq!(
            paths(
                "cline",
                System::Linux,
                &[("CLINE_MCP_SETTINGS_PATH", "/f.json")]
            )[0],
            "/f.json"
        );
    }

    #[test]
    fn what_is_no_file_is_an_error_and_what_is_not_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Disk.read(folder.path()).is_err());
        assert_eq!(Disk.read(&folder.path().join("none")).unwrap(), None);
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert_eq!(Disk.read(&file.join("below")).unwrap(), None);
        assert_eq!(Disk.read(&file).unwrap(), Some(b"x".to_vec()));
        File::create(&file)
            .unwrap()
            .set_len(LARGEST as u64 + 1)
            .unwrap();
        let error = Disk.read(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
