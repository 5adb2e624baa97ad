//! Settings, and where each of them came from.
//!
//! A flag counts before an environment variable, that before the configuration file, that
//! before the default. The file is TOML; unknown names in it are refused.
//!
//! - [`mod@file`]: the tables of the file
//! - [`relay`]: HTTP listeners
//! - [`place`]: where the file and the data directory are
//! - [`fault`]: what is wrong with a file, in words

mod fault;
mod file;
mod place;
pub(crate) mod relay;

use crate::error::CommandError;
use agent_trace_store::Store;
use agent_trace_store::journal::Bodies;
use agent_trace_store::recorder::{Durability, Options};
use agent_trace_store::retention::{Limits, Policy};
use fault::Fault;
use file::duration;
use place::{data_directory, path_from, text_of_file};
use relay::Listener;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::level_filters::LevelFilter;

pub(crate) use file::{File, Judge};

/// Where the data directory is.
pub(crate) const ENV_STORE: &str = "AGENT_TRACE_DIR";
/// Where the configuration file is.
pub(crate) const ENV_CONFIG: &str = "AGENT_TRACE_CONFIG";
/// `off` relays without recording.
pub(crate) const ENV_SWITCH: &str = "AGENT_TRACE";

/// The workspace that everything belongs to on a machine of one user.
pub(crate) const WORKSPACE: &str = "default";

/// Where the daemon tells how it does, unless that is set.
const ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4747);
/// How long open exchanges may go on when a relay ends, unless that is set.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);
/// After how long of silence a client that sends no session id begins a new session, unless
/// that is set.
const SESSION_GAP: Duration = Duration::from_secs(600);
/// From which duration on a step is slow, unless that is set.
const SLOW: Duration = Duration::from_nanos(agent_trace_analysis::outcomes::SLOW);
/// How long a check command may take, unless that is set.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);
/// More threads than this do not make a relay faster.
const MOST_WORKERS: usize = 8;

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
    /// The HTTP listeners that the file declares.
    pub(crate) listeners: Vec<Listener>,
    pub(crate) store: (PathBuf, Origin),
}

/// The command that judges runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// The program and its arguments; at least the program.
    pub(crate) command: Vec<String>,
    /// Where it runs: the folder of the configuration file.
    pub(crate) folder: PathBuf,
    /// How long it may take.
    pub(crate) timeout: Duration,
}

/// What is said for all commands: on the command line, before anything else is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) store: Option<PathBuf>,
    /// What to log, for a daemon that is started.
    pub(crate) log: Option<LevelFilter>,
}

impl Config {
    /// Reads the configuration file, if there is one, and finds the data directory.
    pub(crate) fn load(flags: &Flags) -> Result<Self, CommandError> {
        let (path, text) = text_of_file(flags)?;
        let exists = text.is_some();
        let text = text.unwrap_or_default();
        let (file, listeners) =
            read(&text).map_err(|fault| config_error(path.as_deref(), fault))?;
        let store = data_directory(flags, path.as_deref(), file.store.as_deref())?;
        Ok(Self {
            path,
            exists,
            file,
            listeners,
            store,
        })
    }

    /// The data directory alone, also where something else is wrong with the file: who talks
    /// to a daemon needs no more.
    pub(crate) fn find_store(flags: &Flags) -> Result<Store, CommandError> {
        let is_known = flags.store.is_some() || path_from(ENV_STORE).is_some();
        let (path, text) = match text_of_file(flags) {
            Err(_) if is_known => (None, None),
            read => read?,
        };
        let table = match toml::from_str::<toml::Table>(&text.unwrap_or_default()) {
            Err(_) if is_known => toml::Table::new(),
            table => table.map_err(|error| config_error(path.as_deref(), Fault::from(error)))?,
        };
        let in_file = table.get("store").and_then(toml::Value::as_str);
        let (root, _) = data_directory(flags, path.as_deref(), in_file.map(Path::new))?;
        Ok(Store::at(root))
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

    /// How to record.
    pub(crate) fn recording(&self) -> Options {
        Options {
            redact: self.redact().0,
            bodies: self.bodies().0,
            durability: self.durability().0,
            user_rules: self.file.redact.rule.clone(),
            workspace: WORKSPACE.into(),
        }
    }

    /// What to keep.
    pub(crate) fn retention(&self) -> Policy {
        let set = &self.file.retention;
        let own = |limits: &file::Limits| Limits {
            age: limits.max_age,
            sessions: limits.max_sessions,
            bytes: limits.max_bytes,
        };
        let workspaces = set.workspace.iter();
        Policy {
            all: Limits {
                age: set.max_age,
                sessions: set.max_sessions,
                bytes: set.max_bytes,
            },
            workspaces: workspaces
                .map(|(name, limits)| (name.clone(), own(limits)))
                .collect(),
        }
    }

    /// Where the daemon tells how it does, if it is to.
    pub(crate) fn admin(&self) -> (Option<SocketAddr>, Origin) {
        let set = self.file.daemon.listen.as_ref();
        or_default(set.map(|admin| admin.get_ref().address()), Some(ADMIN))
    }

    pub(crate) fn drain(&self) -> (Duration, Origin) {
        or_default(self.file.daemon.drain, DRAIN)
    }

    pub(crate) fn workers(&self) -> (usize, Origin) {
        let set = self.file.daemon.workers;
        or_default(set.map(Into::into), default_workers())
    }

    /// The command that judges runs, if one is declared.
    pub(crate) fn check(&self) -> Option<Check> {
        let mut command = self.file.check.command.clone()?;
        let program = command.first_mut()?;
        let folder = self.path.as_deref().and_then(Path::parent);
        // Absolute, since it is the command's own folder: what is relative to it then means the
        // same for all.
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::path::absolute(folder.unwrap_or(Path::new("."))).ok()?;
        // A path, which is relative to the file; a bare name is looked for as a shell does.
        if program.contains('/') {
            *program = folder.join(&*program).to_string_lossy().into_owned();
        }
        let timeout = self.check_timeout().0;
        Some(Check {
            command,
            folder,
            timeout,
        })
    }

    pub(crate) fn check_timeout(&self) -> (Duration, Origin) {
        or_default(self.file.check.timeout, CHECK_TIMEOUT)
    }

    /// From which duration on a step is slow.
    pub(crate) fn slow(&self) -> (Duration, Origin) {
        or_default(self.file.steps.slow, SLOW)
    }

    /// How many bytes an answer to an assistant has at most.
    pub(crate) fn answer(&self) -> (usize, Origin) {
        let set = self.file.mcp.answer;
        let set = set.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        or_default(set, agent_trace_mcp_tools::BYTES)
    }

    pub(crate) fn session_gap(&self) -> (Duration, Origin) {
        or_default(self.file.daemon.session_gap, SESSION_GAP)
    }
}

/// How many threads relay, unless that is set: one for every two processors, since clients,
/// servers and the recorder want some too. On two, one thread relays more than two do.
pub(crate) fn default_workers() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    (processors / 2).clamp(1, MOST_WORKERS)
}

/// The session gap where there is no configuration that could be read.
pub(crate) fn default_session_gap() -> Duration {
    SESSION_GAP
}

/// Reads the file's text, and looks at what must fit together.
fn read(text: &str) -> Result<(File, Vec<Listener>), Fault> {
    let mut file: File = toml::from_str(text)?;
    let mut taken: Vec<(SocketAddr, String)> = Vec::new();
    match &file.daemon.listen {
        Some(listen) => {
            if let Some(admin) = listen.get_ref().address() {
                if !admin.ip().is_loopback() {
                    let what = format!(
                        "{admin} can be reached from other machines; [daemon] listens on \
                         loopback addresses only"
                    );
                    return Err(Fault::at(text, &listen.span(), &what));
                }
                let line = fault::line(text, &listen.span());
                taken.push((admin, format!("`listen` of [daemon] (line {line})")));
            }
        }
        None => taken.push((ADMIN, "the default of `listen` of [daemon]".into())),
    }
    let mut listeners = Vec::new();
    for (number, table) in std::mem::take(&mut file.relay).into_iter().enumerate() {
        let place = table.listen.span();
        let listener = Listener::from(table);
        if let Err(refused) = listener.check() {
            let what = format!("{refused}; {}", refused.hint());
            return Err(Fault::at(text, &place, &what));
        }
        let name = listener.name.as_ref();
        let name = name.map_or_else(|| (number + 1).to_string(), |name| format!("{name:?}"));
        let address = listener.listen;
        if let Some((_, by)) = taken
            .iter()
            .find(|(other, _)| relay::clash(*other, address))
        {
            let what = format!("`listen` {address} of relay {name} is that of {by}");
            return Err(Fault::at(text, &place, &what));
        }
        let line = fault::line(text, &place);
        taken.push((address, format!("relay {name} (line {line})")));
        listeners.push(listener);
    }
    Ok((file, listeners))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_unknown_names_are_refused() {
        let (file, listeners) = read(
            r#"
            store = "/data"
            [record]
            bodies = "digest"
            durability = "always"
            [retention]
            max_age = "30d"
            max_bytes = "10GB"
            [daemon]
            listen = "off"
            workers = 3
            [[relay]]
            listen = "localhost:4747"
            to = "https://mcp.example.com/mcp"
            "#,
        )
        .unwrap();
        assert_eq!(file.store, Some("/data".into()));
        assert_eq!(file.record.bodies, Some(Bodies::Digest));
        assert_eq!(file.retention.max_bytes, Some(10_000_000_000));
        assert_eq!(listeners.len(), 1);
        for (text, place, what) in [
            ("[record]\nbody = 1", "line 2", "did you mean `bodies`?"),
            ("[deamon]", "line 1", "did you mean `daemon`?"),
            (
                "[[relay]]\nlisen = \"x\"",
                "line 2",
                "did you mean `listen`?",
            ),
            (
                "[record]\nbodies = \"ful\"",
                "line 2",
                "did you mean `full`?",
            ),
            ("[daemon]\nworkers = 0", "line 2", "nonzero"),
            ("\n\n[daemon]\ndrain = \"5\"", "line 4", "needs units"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(what), "{error}");
        }
    }

    #[test]
    fn the_settings_are_documented_as_they_are() {
        let text = include_str!("config/settings.toml");
        let (file, listeners) = read(text).unwrap();
        // What is said to be the default is it.
        assert_eq!(file.daemon.drain, Some(DRAIN));
        assert_eq!(file.check.timeout, Some(CHECK_TIMEOUT));
        assert_eq!(file.steps.slow, Some(SLOW));
        assert_eq!(file.daemon.session_gap, Some(SESSION_GAP));
        assert_eq!(file.daemon.listen.unwrap().get_ref().address(), Some(ADMIN));
        assert_eq!(listeners[0].connect_timeout, relay::CONNECT_TIMEOUT);
        // Each name that there is stands in it: an unknown one makes the parser list them.
        for table in [
            "",
            "[record]",
            "[retention]",
            "[check]",
            "[steps]",
            "[daemon]",
            "[[relay]]",
        ] {
            let error = read(&format!("{table}\nzzz = 1")).unwrap_err().to_string();
            let (_, names) = error.split_once("expected ").unwrap();
            for name in names.split('`').skip(1).step_by(2) {
                let mut lines = text.lines();
                let known = |line: &str| {
                    line.starts_with(&format!("{name} =")) || line.contains(&format!("[{name}"))
                };
                assert!(lines.any(known), "{table} {name}");
            }
        }
    }

    #[test]
    fn addresses_that_are_taken_twice_are_refused_with_both_names() {
        let relay = |name: &str, listen: &str| {
            format!("[[relay]]\nname = {name:?}\nlisten = {listen:?}\nto = \"http://x\"\n")
        };
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refused(&(relay("a", "127.0.0.1:1") + &relay("b", "localhost:1"))),
            "line 7: `listen` 127.0.0.1:1 of relay \"b\" is that of relay \"a\" (line 3)"
        );
        assert_eq!(
            refused(&relay("a", "127.0.0.1:4747")),
            "line 3: `listen` 127.0.0.1:4747 of relay \"a\" is that of the default of \
             `listen` of [daemon]"
        );
        let admin = "[daemon]\nlisten = \"127.0.0.1:9\"\n".to_owned();
        assert_eq!(
            refused(&(admin + &relay("a", "127.0.0.1:9"))),
            "line 5: `listen` 127.0.0.1:9 of relay \"a\" is that of `listen` of [daemon] (line 2)"
        );
        let open = refused("[daemon]\nlisten = \"0.0.0.0:9\"");
        assert!(open.contains("line 2: 0.0.0.0:9 can be reached"), "{open}");
        let open = refused(&relay("a", "0.0.0.0:9"));
        assert!(open.contains("line 3: 0.0.0.0:9 can be reached"), "{open}");
        let own = "[[relay]]\nlisten = \"127.0.0.1:9\"\nto = \"http://a:b@c\"";
        assert!(refused(own).contains("clients send their own credentials"));
    }
}
