//! The servers in the configurations of assistants: how they are started is looked at, and
//! where the user says so they are started and what they list is scanned.

use super::servers;
use super::start::{self, Candidate};
use super::{Found, Scanned};
use crate::cli::scan::Scan;
use crate::config::Config;
use crate::error::CommandError;
use agent_trace_assistants::discover::{Pair, Standing, Values, discover_client, values};
use agent_trace_assistants::machine::{Disk, Machine, System};
use agent_trace_assistants::{CLIENTS, Client, Entry, Scope, catalogue, discover};
use agent_trace_proxy::client::Limits;
use agent_trace_scanners::launch::{Launch, Part, launch};
use agent_trace_store::key;
use agent_trace_store::redact::Redactor;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(super) fn scan(
    args: &Scan,
    named: &[String],
    limits: Limits,
    load: impl FnOnce() -> Result<Config, CommandError>,
) -> Result<Scanned, CommandError> {
    let home = std::env::home_dir().ok_or_else(|| CommandError::Usage {
        what: "it is not known where your home is".into(),
        hint: "set HOME",
    })?;
    let project = std::env::current_dir().map_err(CommandError::failed("no current folder"))?;
    let env = |name: &str| std::env::var_os(name);
    let machine = Machine {
        system: System::here(),
        home: &home,
        // In the home the user's own files would be found once more, as a project's.
        project: (project != home).then_some(&project),
        env: &env,
        files: &Disk,
    };
    let found = match named {
        [] => vec![discover(&machine)],
        named => {
            let clients = named.iter().map(|name| client(name));
            let clients: Vec<&'static Client> = clients.collect::<Result<_, _>>()?;
            let looked = clients
                .into_iter()
                .map(|client| discover_client(&machine, client));
            looked.collect()
        }
    };
    let mut scanned = Scanned {
        servers: Some(0),
        ..Scanned::default()
    };
    let mut candidates: Vec<Candidate> = Vec::new();
    let redactor = redactor()?;
    for found in found {
        for problem in found.problems {
            let place = problem
                .place
                .map(|(line, column)| format!(" line {line}, column {column}:"));
            let (file, what, remedy) = (problem.file.display(), problem.what, problem.remedy);
            let place = place.unwrap_or_default();
            scanned
                .not_scanned
                .push(format!("{file}:{place} {what}; {remedy}"));
        }
        for entry in found.entries {
            scanned.servers = scanned.servers.map(|servers| servers + 1);
            let read = values(&machine, &entry).map_err(CommandError::path(&entry.file))?;
            let Some(values) = read else { continue };
            scanned
                .findings
                .extend(static_facts(&entry, &values, &redactor));
            if args.start.is_some() && entry.enabled && entry.standing != Standing::Ours {
                candidates.push(Candidate::of(&entry, &values, &home, &project));
            }
        }
    }
    if let Some(names) = &args.start {
        let chosen = start::choose(candidates, names, args, &mut scanned, load)?;
        servers::scan(&chosen, limits, &mut scanned)?;
    }
    Ok(scanned)
}

fn client(name: &str) -> Result<&'static Client, CommandError> {
    catalogue::client(name).ok_or_else(|| {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.id).collect();
        CommandError::Usage {
            what: format!(
                "there is no assistant {name}; known are {}",
                known.join(", ")
            ),
            hint: "`--clients` without names looks at all of them",
        }
    })
}

/// What can be told of an entry without starting it.
fn static_facts(entry: &Entry, values: &Values, redactor: &Redactor) -> Vec<Found> {
    let words: Vec<&str> = values.words.iter().map(|word| &word.text[..]).collect();
    let pairs = |pairs: &[Pair]| -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|pair| (pair.name.clone(), pair.value.text.clone()))
            .collect()
    };
    let (environment, headers) = (pairs(&values.env), pairs(&values.headers));
    let environment = borrowed(&environment);
    let headers = borrowed(&headers);
    let launched = Launch {
        server: &entry.name,
        shared: entry.scope == Scope::Project,
        words: &words,
        environment: &environment,
        url: values.url.as_ref().map_or("", |url| &url.text),
        headers: &headers,
    };
    // As redaction would see it in a configuration that is recorded.
    let is_secret = |name: &str, value: &str| {
        let whole = format!("{}={value}", name.trim_start_matches('-'));
        redactor.text(&whole) != whole
    };
    let found = launch(&launched, &is_secret).into_iter();
    let pointer: String = entry
        .path
        .iter()
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .collect();
    let found = found.map(|(part, mut finding)| {
        finding.pointer.clone_from(&pointer);
        let at = span(part, values).unwrap_or_else(|| entry.name_span.clone());
        Found {
            file: Some(entry.file.display().to_string()),
            file_bytes: Some((at.start, at.end)),
            ..Found::from(finding)
        }
    });
    found.collect()
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (&name[..], &value[..]))
        .collect()
}

fn span(part: Part, values: &Values) -> Option<Range<usize>> {
    let text = match part {
        Part::Word(at) => values.words.get(at),
        Part::Environment(at) => values.env.get(at).map(|pair| &pair.value),
        Part::Url => values.url.as_ref(),
        Part::Header(at) => values.headers.get(at).map(|pair| &pair.value),
    };
    text.map(|text| text.span.clone())
}

fn redactor() -> Result<Redactor, CommandError> {
    let key = key::random().map_err(CommandError::failed("no random numbers"))?;
    Ok(Redactor::new(key, &[])?)
}

/// The folder that a server is started in. For the user's servers it is the home, for those of one
/// project as well: a project that is not trusted is not to decide what `npx` finds.
pub(super) fn folder(entry: &Entry, home: &Path, project: &Path) -> PathBuf {
    match entry.scope {
        Scope::User | Scope::Local => home.to_owned(),
        Scope::Project => project.to_owned(),
    }
}

/// A value of an entry with what stands for others filled in, as assistants do it.
///
/// # Errors
/// Names what cannot be filled in.
pub(super) fn expanded(text: &str, folder: &Path) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            return Err("a `${` that does not end".into());
        };
        rest = after;
        match name {
            "workspaceFolder" | "workspaceRoot" | "cwd" => out.push_str(&folder.to_string_lossy()),
            "userHome" => out.push_str(&std::env::home_dir().unwrap_or_default().to_string_lossy()),
            _ if name.starts_with("input:") => {
                return Err(format!(
                    "the assistant asks for {}",
                    &name["input:".len()..]
                ));
            }
            name => {
                let name = name.strip_prefix("env:").unwrap_or(name);
                let (name, otherwise) = match name.split_once(":-") {
                    Some((name, otherwise)) => (name, Some(otherwise)),
                    None => (name, None),
                };
                let value = std::env::var(name).ok();
                match value.or_else(|| otherwise.map(str::to_owned)) {
                    Some(value) => out.push_str(&value),
                    None => return Err(format!("the variable {name} is not set")),
                }
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The same of pairs.
pub(super) fn all_expanded(
    pairs: &[Pair],
    folder: &Path,
) -> Result<Vec<(OsString, OsString)>, String> {
    let pair = |pair: &Pair| {
        let value = expanded(&pair.value.text, folder)?;
        Ok((OsString::from(&pair.name), OsString::from(value)))
    };
    pairs.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_in() {
        let folder = Path::new("/p");
        let of = |text: &str| expanded(text, folder);
        assert_eq!(of("a$b").as_deref(), Ok("a$b"));
        assert_eq!(of("${workspaceFolder}/x").as_deref(), Ok("/p/x"));
        assert_eq!(of("${NO_SUCH_VARIABLE:-7}!").as_deref(), Ok("7!"));
        let path = std::env::var("PATH").unwrap();
        assert_eq!(of("${env:PATH}"), Ok(path.clone()));
        assert_eq!(of("${PATH}"), Ok(path));
        for wrong in ["${input:key}", "${NO_SUCH_VARIABLE}", "${x"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
