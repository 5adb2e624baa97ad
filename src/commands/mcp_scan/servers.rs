//! Servers that are started or called in order to see what they list.

use super::{Found, Scanned, words};
use crate::cli::scan::Scan;
use crate::error::{CommandError, discreet};
use crate::serving::signals::runtime;
use agent_trace_proxy::client::{Client, Command, Limits, Target, Url};
use agent_trace_scanners::answers;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A server to look at.
pub(super) struct Server {
    /// What it is called in findings.
    pub(super) name: String,
    pub(super) target: Target,
    /// The file that names it, and the bytes of its name there.
    pub(super) file: Option<(PathBuf, std::ops::Range<usize>)>,
}

/// The variables that every server gets beside its own: those by which programs find each other,
/// their home and their language, and no others. Source: what the SDKs of MCP pass on
/// (`getDefaultEnvironment`, `get_default_environment`), and the language and folders beside.
const ESSENTIAL: [&str; 27] = [
    "APPDATA",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LANGUAGE",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SHELL",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The environment of a server: what is essential, and its own.
pub(super) fn environment(
    own: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_essential = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| ESSENTIAL.contains(&name) || name.starts_with("LC_"))
    };
    let mut all: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| is_essential(name))
        .collect();
    for (name, value) in own {
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
    all
}

/// The one server of the command line. Who typed its command wants it to be run.
pub(super) fn given(args: &Scan) -> Result<Server, CommandError> {
    let target = match (&args.server, &args.url) {
        (Some(line), _) => Target::Command(Command {
            argv: words::split(line)?
                .into_iter()
                .map(OsString::from)
                .collect(),
            environment: environment(passed(&args.env)?),
            folder: None,
        }),
        (None, url) => Target::Url(Url {
            url: url.clone().unwrap_or_default(),
            headers: headers(&args.header)?,
        }),
    };
    let name = match (&args.name, &target) {
        (Some(name), _) => name.clone(),
        (None, Target::Command(command)) => {
            let program = command
                .argv
                .first()
                .map(Path::new)
                .and_then(Path::file_name);
            program.unwrap_or_default().to_string_lossy().into_owned()
        }
        // Without what may be a key in it.
        (None, Target::Url(url)) => url
            .url
            .split(['?', '#'])
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    Ok(Server {
        name,
        target,
        file: None,
    })
}

/// Variables of ours that are named, and those with a value.
fn passed(given: &[String]) -> Result<Vec<(OsString, OsString)>, CommandError> {
    let variable = |given: &String| match given.split_once('=') {
        Some((name, value)) => Ok((name.into(), value.into())),
        None => match std::env::var_os(given) {
            Some(value) => Ok((given.into(), value)),
            None => Err(CommandError::Usage {
                what: format!("{given} is not set"),
                hint: "give it a value with `--env NAME=VALUE`, or set it before",
            }),
        },
    };
    given.iter().map(variable).collect()
}

fn headers(lines: &[String]) -> Result<Vec<(String, String)>, CommandError> {
    let header = |line: &String| match line.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(CommandError::Usage {
            what: "a header has no colon".into(),
            hint: "give it as `--header 'Authorization: Bearer …'`",
        }),
    };
    lines.iter().map(header).collect()
}

/// Asks each of the servers for what it lists, one after the other, and scans that.
pub(super) fn scan(
    servers: &[Server],
    limits: Limits,
    scanned: &mut Scanned,
) -> Result<(), CommandError> {
    let client = Client::new(limits);
    let runtime = runtime()?;
    for server in servers {
        let listed = runtime.block_on(client.list(&server.target));
        let texts = listed.answers.iter().map(|a| (a.method, &a.text[..]));
        let found = answers(&server.name, texts);
        scanned.tools += found.listing.tools;
        scanned.others += found.listing.others;
        scanned
            .findings
            .extend(found.listing.findings.into_iter().map(|finding| {
                Found {
                    file: server
                        .file
                        .as_ref()
                        .map(|(path, _)| path.display().to_string()),
                    file_bytes: server.file.as_ref().map(|(_, at)| (at.start, at.end)),
                    ..Found::from(finding)
                }
            }));
        let not = |why: String| format!("{}: {}", server.name, discreet(&why));
        let faults = listed.faults.iter().map(|fault| not(fault.to_string()));
        scanned.not_scanned.extend(faults);
        if found.not_scanned > 0 {
            let why = format!(
                "{} of its answers cannot be read as JSON",
                found.not_scanned
            );
            scanned.not_scanned.push(not(why));
        }
    }
    Ok(())
}
