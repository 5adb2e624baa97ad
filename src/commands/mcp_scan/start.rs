//! Which servers of configurations are started: those that the user said yes to.

use super::Scanned;
use super::clients::{all_expanded, expanded, folder};
use super::servers::{Server, environment};
use crate::cli::scan::Scan;
use crate::config::Config;
use crate::error::{CommandError, discreet};
use crate::render::escape;
use crate::render::time::now;
use crate::render::words::count;
use agent_trace_assistants::discover::{Standing, Values};
use agent_trace_assistants::{Entry, Scope};
use agent_trace_proxy::client::{Command, Target, Url};
use agent_trace_store::key;
use agent_trace_store::state::consents::{self, Consent};
use agent_trace_store::state::{self, State};
use owo_colors::OwoColorize;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// A server that could be started.
pub(super) struct Candidate {
    server: Server,
    /// The assistant, and the file.
    whose: String,
    shared: bool,
    /// The variables, or header lines, that its entry gives it.
    own: Vec<(OsString, OsString)>,
    /// Why it cannot be started.
    fault: Option<String>,
}

impl Candidate {
    pub(super) fn of(entry: &Entry, values: &Values, home: &Path, project: &Path) -> Self {
        let folder = folder(entry, home, project);
        let (target, own, fault) = match target(entry, values, &folder) {
            Ok((target, own)) => (target, own, None),
            Err(why) => (Target::Url(Url::default()), Vec::new(), Some(why)),
        };
        Self {
            server: Server {
                name: entry.name.clone(),
                target,
                file: Some((entry.file.clone(), entry.name_span.clone())),
            },
            whose: format!("{}, {}", entry.client.name, entry.file.display()),
            shared: entry.scope == Scope::Project || lies_in(&entry.file, project, home),
            own,
            fault,
        }
    }

    /// What runs, in words: a command or URL without what may be secret.
    fn shown(&self) -> String {
        match &self.server.target {
            Target::Command(command) => {
                let words: Vec<_> = command
                    .argv
                    .iter()
                    .map(|word| word.to_string_lossy())
                    .collect();
                discreet(&words.join(" "))
            }
            Target::Url(url) => discreet(url.url.split(['?', '#']).next().unwrap_or_default()),
        }
    }

    fn id(&self, key: &agent_trace_store::redact::Key) -> String {
        match &self.server.target {
            Target::Command(command) => {
                let folder = command.folder.as_deref().unwrap_or(Path::new(""));
                consents::id(key, &command.argv, &self.own, folder.as_os_str())
            }
            Target::Url(url) => consents::id(key, &[(&url.url).into()], &self.own, "".as_ref()),
        }
    }
}

/// Whether a file lies in a project, whichever way it was found: a variable of the environment may
/// lead into one as well.
fn lies_in(file: &Path, project: &Path, home: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (project, home) = (real(project), real(home));
    !home.starts_with(&project) && real(file).starts_with(&project)
}

type Own = Vec<(OsString, OsString)>;

/// What an entry says is started or called, and what it gives the server.
fn target(entry: &Entry, values: &Values, folder: &Path) -> Result<(Target, Own), String> {
    // Where our relay stands before it the server itself is meant.
    let words: Vec<&str> = match &entry.standing {
        Standing::Wrapped { original, .. } => original.iter().map(String::as_str).collect(),
        _ => values.words.iter().map(|word| &word.text[..]).collect(),
    };
    if words.is_empty() {
        let url = values.url.as_ref().map_or("", |url| &url.text);
        let mut own = all_expanded(&values.headers, folder)?;
        for pair in &values.headers_from {
            let name = &pair.value.text;
            let value = std::env::var_os(name);
            let value = value.ok_or_else(|| format!("the variable {name} is not set"))?;
            own.push((OsString::from(&pair.name), value));
        }
        let text = |text: &OsString| text.to_string_lossy().into_owned();
        let url = Url {
            url: expanded(url, folder)?,
            headers: own
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
        };
        return Ok((Target::Url(url), own));
    }
    let argv = words
        .into_iter()
        .map(|word| expanded(word, folder).map(OsString::from));
    let argv = argv.collect::<Result<Vec<OsString>, String>>()?;
    let mut own = all_expanded(&values.env, folder)?;
    for name in &values.passed {
        own.extend(std::env::var_os(&name.text).map(|value| (OsString::from(&name.text), value)));
    }
    let folder = match &values.folder {
        Some(given) => folder.join(expanded(&given.text, folder)?),
        None => folder.to_owned(),
    };
    let command = Command {
        argv,
        environment: environment(own.clone()),
        folder: Some(folder),
    };
    Ok((Target::Command(command), own))
}

/// Shows what would be started, and asks. What was said yes to is remembered.
pub(super) fn choose(
    candidates: Vec<Candidate>,
    names: &[String],
    args: &Scan,
    scanned: &mut Scanned,
    load: impl FnOnce() -> Result<Config, CommandError>,
) -> Result<Vec<Server>, CommandError> {
    if args.yes && names.is_empty() {
        return Err(CommandError::Usage {
            what: "--yes starts only servers that are named".into(),
            hint: "name them: `--start NAME… --yes`",
        });
    }
    let is = |candidate: &&Candidate, name: &String| candidate.server.name == *name;
    if let Some(name) = names
        .iter()
        .find(|name| !candidates.iter().any(|c| is(&c, name)))
    {
        return Err(CommandError::Usage {
            what: format!("no assistant has a server {name} that it may start"),
            hint: "`mcp-scan --clients --start` without names shows all",
        });
    }
    let store = load()?.store();
    let secret = key::load_or_create(&store).map_err(CommandError::path(store.root()))?;
    let state = State::of(&store);
    let consents = state.consents()?;
    let mut seen = HashSet::new();
    let mut known = Vec::new();
    let mut asked = Vec::new();
    for candidate in candidates {
        if !names.is_empty() && !names.contains(&candidate.server.name) {
            continue;
        }
        let mut not = |why: &str| {
            let name = &candidate.server.name;
            scanned
                .not_scanned
                .push(format!("{name} ({}): {why}", candidate.whose));
        };
        if let Some(fault) = &candidate.fault {
            not(fault);
            continue;
        }
        if candidate.shared && !args.trust_project {
            not("a project's file names it; --trust-project allows that");
            continue;
        }
        let id = candidate.id(&secret);
        // One that several files name is started once.
        if !seen.insert(id.clone()) {
            continue;
        }
        match consents.has(&id) {
            true => known.push(candidate.server),
            false => asked.push((id, candidate)),
        }
    }
    if asked.is_empty() {
        return Ok(known);
    }
    show(&asked)?;
    if !args.yes {
        if !confirmed(asked.len())? {
            let left = asked
                .iter()
                .map(|(_, c)| format!("{}: not started", c.server.name));
            scanned.not_scanned.extend(left);
            return Ok(known);
        }
        for (id, candidate) in &asked {
            let consent = Consent {
                id: id.clone(),
                what: candidate.shown(),
                at: now(),
            };
            state.append(&state::Entry::Consent(consent))?;
        }
    }
    known.extend(asked.into_iter().map(|(_, candidate)| candidate.server));
    Ok(known)
}

/// What would be started: commands, and names of what is given to them.
fn show(asked: &[(String, Candidate)]) -> io::Result<()> {
    let mut out = anstream::stderr().lock();
    for (_, candidate) in asked {
        let line = |text: &str| escape::text(text.as_bytes(), 0);
        let name = line(&candidate.server.name);
        writeln!(out, "{} ({})", name.bold(), line(&candidate.whose))?;
        let does = match &candidate.server.target {
            Target::Command(_) => "runs",
            Target::Url(_) => "calls",
        };
        writeln!(out, "  {does} {}", line(&candidate.shown()))?;
        if let Target::Command(Command {
            folder: Some(folder),
            ..
        }) = &candidate.server.target
        {
            writeln!(out, "  in {}", line(&folder.to_string_lossy()))?;
        }
        let own: Vec<_> = candidate
            .own
            .iter()
            .map(|(name, _)| name.to_string_lossy())
            .collect();
        if !own.is_empty() {
            writeln!(out, "  given {}", line(&own.join(", ")))?;
        }
    }
    Ok(())
}

fn confirmed(servers: usize) -> Result<bool, CommandError> {
    if !io::stdin().is_terminal() {
        return Err(CommandError::Usage {
            what: "nobody can be asked: standard input is no terminal".into(),
            hint: "look at the list above; `--start NAME… --yes` starts those that are named",
        });
    }
    let mut out = anstream::stderr().lock();
    write!(out, "Run {} as you? [y/N] ", count(servers, "server"))?;
    out.flush()?;
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(CommandError::failed("cannot read the answer"))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
