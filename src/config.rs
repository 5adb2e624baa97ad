//! Settings, and where each of them came from.
//!
//! A flag counts before an environment variable, that before the configuration file, that
//! before the default. The file is TOML; unknown names in it are refused.

use crate::error::CommandError;
use crate::units;
use agent_trace_store::Store;
use agent_trace_store::journal::Bodies;
use agent_trace_store::recorder::Durability;
use agent_trace_store::redact::UserRule;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the data directory is.
pub(crate) const ENV_STORE: &str = "AGENT_TRACE_DIR";
/// Where the configuration file is.
pub(crate) const ENV_CONFIG: &str = "AGENT_TRACE_CONFIG";
/// `off` relays without recording.
pub(crate) const ENV_SWITCH: &str = "AGENT_TRACE";

/// The configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// The data directory.
    pub(crate) store: Option<PathBuf>,
    pub(crate) record: Record,
    pub(crate) redact: Redact,
    pub(crate) retention: Retention,
}

/// `[record]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Record {
    pub(crate) redact: Option<bool>,
    pub(crate) bodies: Option<Bodies>,
    pub(crate) durability: Option<Durability>,
}

/// `[redact]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Redact {
    /// `[[redact.rule]]`
    pub(crate) rule: Vec<UserRule>,
}

/// `[retention]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retention {
    #[serde(deserialize_with = "duration")]
    pub(crate) max_age: Option<Duration>,
    #[serde(deserialize_with = "bytes")]
    pub(crate) max_bytes: Option<u64>,
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::duration(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::bytes(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment(&'static str),
    File,
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(name) => f.write_str(name),
            Self::File => f.write_str("file"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The settings of one invocation.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The file that was read, or would have been.
    pub(crate) path: Option<PathBuf>,
    /// Whether there is one.
    pub(crate) exists: bool,
    pub(crate) file: File,
    pub(crate) store: (PathBuf, Origin),
}

/// What the command line says about the configuration itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) store: Option<PathBuf>,
}

impl Config {
    /// Reads the configuration file, if there is one, and finds the data directory.
    pub(crate) fn load(flags: &Flags) -> Result<Self, CommandError> {
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
        let exists = text.is_some();
        let file: File = toml::from_str(&text.unwrap_or_default())
            .map_err(|error| config_error(path.as_deref(), error))?;
        // What is relative in the file is relative to the file.
        let beside = path
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(Path::new(""));
        let in_file = file.store.as_deref().map(|store| beside.join(store));
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
        Ok(Self {
            path,
            exists,
            file,
            store,
        })
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(&self.store.0)
    }

    pub(crate) fn redact(&self) -> (bool, Origin) {
        or_default(self.file.record.redact, true)
    }

    pub(crate) fn bodies(&self) -> (Bodies, Origin) {
        or_default(self.file.record.bodies, Bodies::default())
    }

    pub(crate) fn durability(&self) -> (Durability, Origin) {
        or_default(self.file.record.durability, Durability::default())
    }
}

fn or_default<T>(setting: Option<T>, default: T) -> (T, Origin) {
    match setting {
        Some(value) => (value, Origin::File),
        None => (default, Origin::Default),
    }
}

fn config_error(
    path: Option<&Path>,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CommandError {
    CommandError::Config {
        path: path.unwrap_or(Path::new("")).to_owned(),
        source: source.into(),
    }
}

/// The path that an environment variable holds; an empty one counts as none.
fn path_from(variable: &str) -> Option<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_unknown_names_are_refused() {
        let file: File = toml::from_str(
            r#"
            store = "/data"
            [record]
            bodies = "digest"
            durability = "always"
            [retention]
            max_age = "30d"
            max_bytes = "10GB"
            "#,
        )
        .unwrap();
        assert_eq!(file.store, Some("/data".into()));
        assert_eq!(file.record.bodies, Some(Bodies::Digest));
        assert_eq!(file.retention.max_bytes, Some(10_000_000_000));
        let error = toml::from_str::<File>("[record]\nbody = 1").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(
            error.to_string().contains("unknown field `body`"),
            "{error}"
        );
    }
}
