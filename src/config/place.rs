//! Where the configuration file and the data directory are.

use super::{ENV_CONFIG, ENV_STORE, Flags, Origin, config_error};
use crate::error::CommandError;
use std::path::{Path, PathBuf};

/// Where the file is, and what is in it if it is there.
pub(super) fn text_of_file(
    flags: &Flags,
) -> Result<(Option<PathBuf>, Option<String>), CommandError> {
    let named = flags.config.clone().or_else(|| path_from(ENV_CONFIG));
    let must_exist = named.is_some();
    let path = named.or_else(|| Some(config_folder()?.join("config.toml")));
    let text = match path.as_deref().map(std::fs::read_to_string) {
        Some(Ok(text)) => Some(text),
        Some(Err(error)) if must_exist || error.kind() != std::io::ErrorKind::NotFound => {
            return Err(config_error(path.as_deref(), error));
        }
        _ => None,
    };
    Ok((path, text))
}

/// Where to record, by all that may say so.
pub(super) fn data_directory(
    flags: &Flags,
    file: Option<&Path>,
    in_file: Option<&Path>,
) -> Result<(PathBuf, Origin), CommandError> {
    // What is relative in the file is relative to the file.
    let beside = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let in_file = in_file.map(|store| beside.join(store));
    let candidates = [
        (flags.store.clone(), Origin::Flag),
        (path_from(ENV_STORE), Origin::Environment(ENV_STORE)),
        (in_file, Origin::File),
        (data_folder(), Origin::Default),
    ];
    let store = candidates
        .into_iter()
        .find_map(|(path, origin)| Some((path?, origin)))
        .ok_or(CommandError::Usage {
            what: "no place to record to: neither a store nor a home directory is known".into(),
            hint: "give --store DIR or set AGENT_TRACE_DIR",
        })?;
    if store.0.components().any(|part| part.as_os_str() == "~") {
        return Err(CommandError::Usage {
            what: format!("{}: only a shell knows what ~ is", store.0.display()),
            hint: "give the whole path",
        });
    }
    Ok(store)
}

/// The path that an environment variable holds; an empty one counts as none.
pub(super) fn path_from(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable)?;
    (!value.is_empty()).then(|| value.into())
}

/// Where the platform keeps applications' data.
fn data_folder() -> Option<PathBuf> {
    platform_folder("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")
}

/// Where the platform keeps applications' configuration.
fn config_folder() -> Option<PathBuf> {
    platform_folder("XDG_CONFIG_HOME", ".config", "APPDATA")
}

fn platform_folder(xdg: &str, home: &str, windows: &str) -> Option<PathBuf> {
    let ours = |base: PathBuf| base.join("agent-trace");
    if cfg!(windows) {
        return path_from(windows).map(ours);
    }
    // The specification: a relative path in these variables is to be ignored.
    if let Some(base) = path_from(xdg).filter(|base| base.is_absolute()) {
        return Some(ours(base));
    }
    let user = path_from("HOME")?;
    Some(ours(if cfg!(target_os = "macos") {
        user.join("Library/Application Support")
    } else {
        user.join(home)
    }))
}
