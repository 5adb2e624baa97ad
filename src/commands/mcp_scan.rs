//! `mcp-scan`: instructions to the model in what MCP servers say.
//!
//! - [`store`]: all that was recorded
//! - [`watch`]: what is being recorded
//! - [`servers`]: servers that are started or called
//! - [`pins`]: what servers define, and what changed
//! - [`report`]: findings as text, JSON, SARIF and JUnit
//! - [`clients`]: the configurations of assistants
//! - [`explain`]: what codes mean
//! - `start`: which of the configured servers are started
//! - `words`: a command line as one text

mod clients;
mod explain;
mod pins;
mod report;
mod servers;
mod start;
mod store;
mod watch;
mod words;

use crate::baseline;
use crate::cli::scan::{Scan, ScanCommand};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::escape;
use crate::render::words::count;
use agent_trace_analysis::baseline::{Acceptable, Entry};
use agent_trace_proxy::client::Limits;
use agent_trace_scanners::pin::diff::Change;
use agent_trace_scanners::{Finding, Severity, key, listing, rows, run, spot};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The largest file that is read, in bytes.
const MOST: u64 = 256 << 20;

pub(crate) fn run(
    args: &Scan,
    load: impl FnOnce() -> Result<Config, CommandError>,
) -> Result<u8, CommandError> {
    if let Some(ScanCommand::Explain { code, format }) = &args.command {
        return explain::print(code.as_deref(), *format);
    }
    let least = match args.sensitive {
        true => Severity::Info,
        // What is to fail the scan is shown as well.
        false => Severity::Medium.min(args.fail_on.into()),
    };
    if let Some(ScanCommand::Pins { command }) = &args.command {
        return pins::run(command, &load()?);
    }
    if args.watch {
        return watch::run(&load()?, least, args.format);
    }
    if let Some(path) = &args.rows {
        return verdicts(path, least);
    }
    let limits = Limits {
        time: args.timeout,
        ..Limits::default()
    };
    let mut scanned = if let Some(run) = &args.run {
        of_run(run, &load()?)?
    } else if args.server.is_some() || args.url.is_some() {
        let mut scanned = Scanned::default();
        servers::scan(&[servers::given(args)?], limits, &mut scanned)?;
        scanned
    } else if let Some(named) = &args.clients {
        clients::scan(args, named, limits, load)?
    } else if args.file.is_some() {
        of_file(args)?
    } else {
        store::scan(&load()?, least)?
    };
    scanned
        .findings
        .retain(|found| found.finding.severity >= least);
    scanned.findings.sort_by(|a, b| {
        let severity = b.finding.severity.cmp(&a.finding.severity);
        let place = |found: &Found| {
            let run = found.run.clone();
            (run, found.step, found.finding.pointer.clone())
        };
        severity.then_with(|| place(a).cmp(&place(b)))
    });
    let baseline = baseline::read(&args.accepted)?;
    if baseline::write(&args.accepted, &scanned.findings, &baseline)? {
        let mut out = anstream::stderr().lock();
        for what in &scanned.not_scanned {
            writeln!(out, "not scanned: {}", escape::text(what.as_bytes(), 0))?;
        }
        return Ok(match scanned.not_scanned.is_empty() {
            true => exit::SUCCESS,
            false => exit::FAILURE,
        });
    }
    let accepted = baseline.take_accepted(&mut scanned.findings);
    let outcome = Outcome {
        gone: baseline.gone(&accepted),
        accepted,
        scanned,
        fail_on: args.fail_on.into(),
    };
    report::print(args.format, &outcome)?;
    Ok(outcome.exit())
}

/// What a scan came to.
struct Outcome<'a> {
    /// What is new.
    scanned: Scanned,
    /// What the baseline accepts.
    accepted: Vec<Found>,
    /// What the baseline accepts and was not found any more.
    gone: Vec<&'a Entry>,
    fail_on: Severity,
}

impl Outcome<'_> {
    /// Whether a finding makes the scan fail.
    fn counts(&self, found: &Found) -> bool {
        found.finding.severity >= self.fail_on
    }

    /// A finding weighs more than something that could not be scanned.
    fn exit(&self) -> u8 {
        if self.scanned.findings.iter().any(|found| self.counts(found)) {
            exit::FOUND
        } else if self.scanned.not_scanned.is_empty() {
            exit::SUCCESS
        } else {
            exit::FAILURE
        }
    }
}

/// What was scanned and found.
#[derive(Default, Serialize)]
struct Scanned {
    /// How many servers are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<usize>,
    /// How many tools were scanned.
    tools: usize,
    /// How many other definitions.
    others: usize,
    /// How many results and errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<usize>,
    /// What could not be scanned, in a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_scanned: Vec<String>,
    findings: Vec<Found>,
}

/// What was found, and where.
#[derive(Serialize)]
struct Found {
    /// What tells it from other findings, the next time as well.
    key: String,
    /// The run's id; of what is recorded again and again the first one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// In how many sessions it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// What identifies the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// What changed in a definition, field by field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Change>,
    /// The number of the step whose answer it stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    /// The file in which it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// First byte in the file of the quote, of the part of an entry that it is about, or of the
    /// name of the server that said it; and the byte after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_bytes: Option<(usize, usize)>,
    /// Whether the quote stands there.
    #[serde(skip)]
    quoted: bool,
    #[serde(flatten)]
    finding: Finding,
}

impl From<Finding> for Found {
    fn from(finding: Finding) -> Self {
        Self {
            key: key::key(&finding),
            run: None,
            sessions: None,
            identity: None,
            fields: Vec::new(),
            step: None,
            file: None,
            file_bytes: None,
            quoted: false,
            finding,
        }
    }
}

impl Acceptable for Found {
    fn key(&self) -> &str {
        &self.key
    }

    fn entry(&self) -> Entry {
        Entry {
            key: self.key.clone(),
            code: self.finding.code.to_owned(),
            server: self.finding.server.clone().unwrap_or_default(),
            tool: self.finding.tool.clone(),
            what: format!("{}: {}", self.finding.title, self.finding.quote),
            reason: None,
        }
    }
}

fn of_file(args: &Scan) -> Result<Scanned, CommandError> {
    let path = args.file.as_deref().unwrap_or(Path::new("-"));
    let text = read(path)?;
    let unreadable = |source: serde_json::Error| CommandError::Config {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let file = serde_json::from_str(&text).map_err(unreadable)?;
    let Some(listed) = listing(args.name.as_deref(), &file) else {
        return Err(CommandError::Usage {
            what: format!("{} lists no definitions", path.display()),
            hint: "give a JSON file with `tools`, `prompts`, `resources` or `instructions`, such \
                   as a server's answer to `tools/list`",
        });
    };
    let findings: Vec<&Finding> = listed.findings.iter().collect();
    let spots = spot::spots(text.as_bytes(), &findings);
    // Where something is no text, what was read is not what stands there.
    let exact = !text.contains(char::REPLACEMENT_CHARACTER);
    let name = (path != Path::new("-")).then(|| path.display().to_string());
    let found = listed.findings.into_iter().zip(spots);
    let found = found.map(|(finding, spot)| Found {
        file: name.clone(),
        file_bytes: spot.filter(|_| exact).map(|at| (at.start, at.end)),
        quoted: true,
        ..Found::from(finding)
    });
    Ok(Scanned {
        tools: listed.tools,
        others: listed.others,
        findings: found.collect(),
        ..Scanned::default()
    })
}

fn of_run(name: &str, config: &Config) -> Result<Scanned, CommandError> {
    let story = query::story(config, name)?;
    let scanned = run::run(&story);
    if scanned.more > 0 {
        writeln!(
            anstream::stderr(),
            "more: {} findings are left out",
            scanned.more
        )?;
    }
    if scanned.not_scanned > 0 {
        let answers = count(scanned.not_scanned, "answer");
        writeln!(
            anstream::stderr(),
            "{answers} not scanned: no JSON, or not kept whole"
        )?;
    }
    let id = story.id.to_string();
    let found = scanned.findings.into_iter().map(|found| Found {
        run: Some(id.clone()),
        step: Some(found.step),
        ..Found::from(found.finding)
    });
    Ok(Scanned {
        tools: scanned.tools,
        others: scanned.others,
        results: Some(scanned.results),
        findings: found.collect(),
        ..Scanned::default()
    })
}

fn read(path: &Path) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let most = MOST + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    }
    .map_err(CommandError::path(path))?;
    if bytes.len() as u64 > MOST {
        return Err(CommandError::Usage {
            what: format!("{} is larger than {} MiB", path.display(), MOST >> 20),
            hint: "give the definitions in several files",
        });
    }
    // What is no text cannot be read by a model either; the rest is scanned.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Verdicts on labelled rows, one a line.
fn verdicts(path: &Path, least: Severity) -> Result<u8, CommandError> {
    let text = read(path)?;
    let answers = rows::answer(text.lines(), least).map_err(|source| CommandError::Config {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for answer in answers {
        serde_json::to_writer(&mut out, &answer).map_err(io::Error::from)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(exit::SUCCESS)
}
