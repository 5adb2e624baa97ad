//! Every assistant that is known: where its files lie, and what stands where in them.
//!
//! All of it is data, one place for each assistant (`clients`). What is new in an
//! assistant is a line there.

mod clients;

pub use clients::CLIENTS;

use crate::document::Format;
use crate::machine::System;

/// An assistant.
#[derive(Debug)]
pub struct Client {
    /// What it is called on the command line, and in traces.
    pub id: &'static str,
    /// What its makers call it.
    pub name: &'static str,
    /// Where its files lie.
    pub places: &'static [Place],
    /// Where these facts come from.
    pub source: &'static str,
}

/// The assistant with this id.
#[must_use]
pub fn client(id: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == id)
}

/// Where files of one kind lie, and what is in them.
#[derive(Debug)]
pub struct Place {
    /// Whose servers these are.
    pub scope: Scope,
    /// The folder that `path` begins in.
    pub base: Base,
    /// The file, with `/`. One `*` in a part stands for anything: all such files count.
    pub path: &'static str,
    /// Where it lies there.
    pub systems: &'static [System],
    /// How it is written.
    pub format: Format,
    /// Where in it servers are: keys, of which `*` stands for each. What is there is a map from
    /// names to entries, or a list of entries with a `name`.
    pub servers: &'static [&'static [&'static str]],
    /// What the parts of an entry are called.
    pub members: &'static Members,
    /// Whether the assistant writes it while it runs, for other reasons than its servers.
    pub is_state: bool,
}

/// Whose servers a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The user's, in every project.
    User,
    /// The user's in one project, in a file of the user.
    Local,
    /// A project's, in a file that is often under version control.
    Project,
}

impl Scope {
    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Local => "local",
            Self::Project => "project",
        }
    }
}

/// A folder that paths begin in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The user's home.
    Home,
    /// Where programs keep what the user set: `~/.config` (or `$XDG_CONFIG_HOME`),
    /// `~/Library/Application Support`, `%APPDATA%`.
    Settings,
    /// `$XDG_CONFIG_HOME`, else `~/.config`, on every system.
    Xdg,
    /// The folder (or, with an empty path, the file) that this variable names, else this one
    /// in the home.
    Variable(&'static str, &'static str),
    /// The project's folder.
    Project,
}

/// What the parts of an entry are called: of each the first that is there counts.
#[derive(Debug)]
pub struct Members {
    /// The command: a text; a list of it and its arguments; or a map with `path`, `args` and
    /// `env`.
    pub command: &'static [&'static str],
    /// The list of arguments.
    pub args: &'static str,
    /// Maps of environment variables.
    pub env: &'static [&'static str],
    /// Lists of names of environment variables that are passed on.
    pub env_names: &'static [&'static str],
    /// Where a server listens.
    pub url: &'static [&'static str],
    /// Maps of header lines.
    pub headers: &'static [&'static str],
    /// Switches that must not be false.
    pub on: &'static [&'static str],
    /// Switches that must not be true.
    pub off: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_words_and_there_once_and_paths_can_be_joined() {
        let mut ids = BTreeSet::new();
        for client in CLIENTS {
            assert!(ids.insert(client.id));
            let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(client.id.chars().all(is_word), "{}", client.id);
            assert!(!client.source.is_empty() && !client.places.is_empty());
            for place in client.places {
                assert!(!place.path.starts_with('/') && !place.path.contains(".."));
                let is_file = matches!(place.base, Base::Variable(..));
                assert!(is_file || !place.path.is_empty());
                assert_eq!(place.scope == Scope::Project, place.base == Base::Project);
                for part in place.path.split('/') {
                    assert!(part.matches('*').count() <= 1, "{part}");
                }
            }
        }
        assert_eq!(client("codex").map(|client| client.name), Some("Codex"));
    }
}
