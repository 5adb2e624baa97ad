//! From a command's name to a program, and what to say when there is none.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What to start for this name. On Unix the system itself searches PATH.
#[cfg(unix)]
pub(crate) fn program(name: &OsStr) -> OsString {
    name.to_owned()
}

/// Not run on Windows yet. Finds `npx.cmd` for `npx` (the system itself only adds `.exe`);
/// the standard library then quotes arguments for `.cmd` and `.bat` safely.
#[cfg(windows)]
pub(crate) fn program(name: &OsStr) -> OsString {
    let path = Path::new(name);
    if path.extension().is_some() {
        return name.to_owned();
    }
    let endings = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".into());
    let folders = match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => vec![folder.to_owned()],
        None => std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
    };
    for folder in folders {
        for ending in endings.split(';').filter(|e| !e.is_empty()) {
            let mut candidate = folder
                .join(path.file_name().unwrap_or(name))
                .into_os_string();
            candidate.push(ending);
            if Path::new(&candidate).is_file() {
                return candidate;
            }
        }
    }
    name.to_owned()
}

/// Why a command could not be started, in the words of someone who has to mend it.
pub(crate) fn why_not(name: &OsStr, error: &std::io::Error) -> String {
    let path = Path::new(name);
    if name.is_empty() {
        return "the command is empty".into();
    }
    if path.components().count() > 1 {
        return if error.kind() == std::io::ErrorKind::NotFound && path.exists() {
            format!("{error}; the file exists, so what its first line (#!) names may be missing")
        } else {
            format!("{error}; a path was given, so PATH was not searched")
        };
    }
    match std::env::var_os("PATH") {
        Some(list) => format!("{error}; searched PATH={}", list.to_string_lossy()),
        None => format!("{error}; PATH is not set"),
    }
}
