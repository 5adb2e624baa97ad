//! What a call did, by the words of its tool's name and by what its arguments name.

use super::{Call, cut, text_of};
use crate::lexicon::{Lexicon, Token};
use crate::params::words;
use crate::signal::Sig;
use crate::view::View;

/// What a call can have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Did {
    /// Read a file or a record.
    Reads,
    /// Read something that holds keys or credentials.
    Secret,
    /// Read what is the user's own: mail, messages, contacts, notes.
    Private,
    /// Brought text from outside that anybody can write.
    Outside,
    /// Sent something out.
    Sends,
    /// Packed files into one.
    Archives,
    /// Wrote to a place outside of the workspace that decides what runs or who may log in.
    WritesOut,
    /// Listed the variables of the environment.
    DumpsEnv,
}

pub(super) const COUNT: usize = 8;
pub(super) const ALL: [Did; COUNT] = [
    Did::Reads,
    Did::Secret,
    Did::Private,
    Did::Outside,
    Did::Sends,
    Did::Archives,
    Did::WritesOut,
    Did::DumpsEnv,
];

/// A set of kinds.
#[derive(Clone, Copy, Default)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) fn has(self, kind: Did) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    fn add(&mut self, kind: Did, holds: bool) {
        self.0 |= u8::from(holds) << kind as u8;
    }
}

/// What a call did, and the argument that tells it.
pub(super) struct Done {
    pub(super) kinds: Kinds,
    pub(super) quote: Option<String>,
}

/// Arguments longer than this are content and name nothing.
const LONGEST: usize = 1000;

const READ: [&str; 12] = [
    "read", "get", "list", "search", "find", "show", "view", "query", "fetch", "load", "open",
    "cat",
];
const WRITE: [&str; 10] = [
    "write", "edit", "create", "append", "save", "move", "copy", "replace", "update", "put",
];
const SEND: [&str; 12] = [
    "send", "post", "publish", "upload", "share", "forward", "reply", "tweet", "email", "comment",
    "push", "submit",
];
const OUTSIDE: [&str; 12] = [
    "fetch", "browse", "browser", "web", "page", "url", "http", "scrape", "crawl", "issue",
    "issues", "website",
];
const PRIVATE: [&str; 16] = [
    "inbox", "mail", "mails", "email", "emails", "message", "messages", "contact", "contacts",
    "calendar", "note", "notes", "dm", "chat", "photos", "customer",
];
const SECRET: [&str; 10] = [
    "secret",
    "secrets",
    "credential",
    "credentials",
    "password",
    "passwords",
    "vault",
    "keychain",
    "token",
    "tokens",
];

/// What a call did.
pub(super) fn of(call: &Call<'_>, project: Option<&str>) -> Done {
    let name = words(cut(call.tool, 256));
    let has = |list: &[&str]| name.iter().any(|word| list.contains(&word.as_str()));
    let text = text_of(call.arguments);
    let names: Vec<&str> = text.lines().filter(|line| line.len() <= LONGEST).collect();
    let shell = has(&[
        "shell", "bash", "command", "exec", "execute", "terminal", "run", "cmd",
    ]);
    let command = |what: &[&str]| {
        shell
            && names.iter().any(|line| {
                line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '('))
                    .any(|word| what.contains(&word))
            })
    };
    let secret = names.iter().find(|line| names_secret(line));
    let writes = has(&WRITE);
    let sends = (has(&SEND) && !has(&["get", "list", "read", "search"]))
        || command(&["curl", "wget", "scp", "nc", "sendmail", "rsync"]);
    let reads = (has(&READ) && !writes) || command(&["cat", "less", "head", "tail", "grep"]);
    let outward = writes && !sends;
    let outside = names
        .iter()
        .find(|line| outward && leads_out(line, project));
    let mut kinds = Kinds::default();
    kinds.add(Did::Reads, reads);
    kinds.add(Did::Secret, reads && (secret.is_some() || has(&SECRET)));
    kinds.add(Did::Private, reads && has(&PRIVATE) && !sends);
    kinds.add(
        Did::Outside,
        !sends && !writes && (has(&OUTSIDE) || call.steers),
    );
    kinds.add(Did::Sends, sends);
    kinds.add(
        Did::Archives,
        has(&["zip", "archive", "compress", "tar"])
            || command(&["tar", "zip", "gzip", "7z", "bzip2", "xz"]),
    );
    kinds.add(Did::WritesOut, outside.is_some());
    kinds.add(
        Did::DumpsEnv,
        (has(&["env", "environ", "environment"]) && reads && !has(&["virtual", "venv"]))
            || command(&["printenv", "env", "/proc/self/environ"]),
    );
    let quote = outside.or(secret).map(|line| (*line).to_owned());
    Done { kinds, quote }
}

/// Whether an argument names a file that holds keys or credentials.
fn names_secret(line: &str) -> bool {
    let view = View::of(line, 0, false);
    let mut tokens: Vec<Token> = Vec::new();
    Lexicon::get().tokens(&view.text, &mut tokens);
    // Settings that are no secret by themselves.
    let harmless = [
        ".example",
        "/etc/hosts",
        "mcp.json",
        ".bashrc",
        ".profile",
        ".zshrc",
    ];
    tokens.iter().any(|token| token.sig == Sig::Path)
        && !harmless.iter().any(|name| view.text.ends_with(name))
}

/// Folders of the system, and files of a home that decide what runs or who may log in.
const SYSTEM: [&str; 8] = [
    "/etc/",
    "/usr/",
    "/bin/",
    "/sbin/",
    "/boot/",
    "/lib/",
    "/root/",
    "/library/launch",
];
const STARTS: [&str; 12] = [
    "/.bashrc",
    "/.zshrc",
    "/.profile",
    "/.bash_profile",
    "/.ssh/",
    "/.config/autostart/",
    "/.gitconfig",
    "/.npmrc",
    "/launchagents/",
    "/.cursor/mcp.json",
    "/.claude/",
    "/crontab",
];

/// Whether an argument is a path to such a place, outside of the folder that is worked in.
fn leads_out(line: &str, project: Option<&str>) -> bool {
    if line.contains(char::is_whitespace) {
        return false;
    }
    let path = line.to_lowercase();
    let inside = project.is_some_and(|project| {
        let project = project.to_lowercase();
        let project = project.trim_end_matches('/');
        !project.is_empty()
            && !path.contains("..")
            && path
                .strip_prefix(project)
                .is_some_and(|rest| rest.starts_with('/'))
    });
    let rooted = path.starts_with(['/', '~', '$']) || path.contains("../");
    let starts = STARTS.iter().any(|part| format!("{path}/").contains(part));
    rooted && !inside && (starts || SYSTEM.iter().any(|part| path.starts_with(part)))
}
