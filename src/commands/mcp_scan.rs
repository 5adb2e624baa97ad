//! `mcp-scan`: instructions to the model in what MCP servers say.
//!
//! - [`pins`]: what servers define, and what changed
//! - [`store`]: all that was recorded
//! - [`watch`]: what is being recorded

mod pins;
mod store;
mod watch;

use crate::cli::Format;
use crate::cli::scan::{Scan, ScanCommand};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::escape;
use crate::render::json;
use crate::render::words::count;
use agent_trace_model::id::SHORT_ID;
use agent_trace_scanners::codes::{self, CODES, Code};
use agent_trace_scanners::pin::diff::Change;
use agent_trace_scanners::{Finding, Severity, listing, rows, run};
use owo_colors::OwoColorize;
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
        return explain(code.as_deref(), *format);
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
    let mut scanned = match &args.run {
        Some(run) => of_run(run, &load()?)?,
        None if args.file.is_none() => store::scan(&load()?, least)?,
        None => of_file(args)?,
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
    match args.format {
        Format::Text => print(&mut anstream::stdout().lock(), &scanned)?,
        Format::Json => json::document(&scanned)?,
        Format::Jsonl => scanned.findings.iter().try_for_each(json::line)?,
    }
    let fails = |found: &Found| found.finding.severity >= Severity::from(args.fail_on);
    Ok(match scanned.findings.iter().any(fails) {
        true => exit::FOUND,
        false => exit::SUCCESS,
    })
}

/// What was scanned and found.
#[derive(Serialize)]
struct Scanned {
    /// How many tools were scanned.
    tools: usize,
    /// How many other definitions.
    others: usize,
    /// How many results and errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<usize>,
    findings: Vec<Found>,
}

/// What was found, and in a run where.
#[derive(Serialize)]
struct Found {
    /// The run in which it was first seen, in what was recorded.
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
    #[serde(flatten)]
    finding: Finding,
}

impl Found {
    fn of(step: Option<usize>, finding: Finding) -> Self {
        Self {
            run: None,
            sessions: None,
            identity: None,
            fields: Vec::new(),
            step,
            finding,
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
    let Some(scanned) = listing(args.server.as_deref(), &file) else {
        return Err(CommandError::Usage {
            what: format!("{} lists no definitions", path.display()),
            hint: "give a JSON file with `tools`, `prompts`, `resources` or `instructions`, such \
                   as a server's answer to `tools/list`",
        });
    };
    let found = |finding| Found::of(None, finding);
    Ok(Scanned {
        tools: scanned.tools,
        others: scanned.others,
        results: None,
        findings: scanned.findings.into_iter().map(found).collect(),
    })
}

fn of_run(name: &str, config: &Config) -> Result<Scanned, CommandError> {
    let scanned = run::run(&query::story(config, name)?);
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
    let found = |found: run::InRun| Found::of(Some(found.step), found.finding);
    Ok(Scanned {
        tools: scanned.tools,
        others: scanned.others,
        results: Some(scanned.results),
        findings: scanned.findings.into_iter().map(found).collect(),
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

fn print(out: &mut impl Write, scanned: &Scanned) -> io::Result<()> {
    for found in &scanned.findings {
        self::found(out, found)?;
    }
    let mut looked_at = vec![count(scanned.tools, "tool")];
    if scanned.others > 0 {
        looked_at.push(count(scanned.others, "other definition"));
    }
    looked_at.extend(scanned.results.map(|results| count(results, "result")));
    let looked_at = looked_at.join(", ");
    match scanned.findings.len() {
        0 => writeln!(out, "nothing found in {looked_at}"),
        found => writeln!(out, "{} in {looked_at}", count(found, "finding")),
    }
}

/// One finding.
fn found(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let finding = &found.finding;
    let tool = finding.tool.as_deref().unwrap_or("");
    let step = found.step.map(|step| format!("step {step}, "));
    let run = found.run.as_ref().map(|run| {
        let run = run.get(..SHORT_ID).unwrap_or(run);
        let server = escape::text(finding.server.as_deref().unwrap_or("").as_bytes(), 40);
        let sessions = found.sessions.filter(|sessions| *sessions > 1);
        let sessions = sessions.map(|sessions| format!(" and {} more sessions", sessions - 1));
        format!("{server}, run {run}{}, ", sessions.unwrap_or_default())
    });
    writeln!(
        out,
        "{} {} {}: {}",
        severity(finding.severity),
        finding.code.bold(),
        escape::text(tool.as_bytes(), 80).cyan(),
        finding.title
    )?;
    writeln!(
        out,
        "         {}{} bytes {}-{}",
        run.unwrap_or_default() + &step.unwrap_or_default(),
        escape::text(finding.pointer.as_bytes(), 200),
        finding.start,
        finding.end
    )?;
    writeln!(out, "         {}", finding.quote.dimmed())?;
    if let Some(decoded) = &finding.decoded {
        writeln!(out, "         {}", decoded.dimmed())?;
    }
    for field in found.fields.iter().skip(1) {
        pins::field(out, field)?;
    }
    Ok(())
}

fn severity(severity: Severity) -> String {
    let name = format!("{:<8}", severity.as_str());
    match severity {
        Severity::Critical | Severity::High => name.red().to_string(),
        Severity::Medium => name.yellow().to_string(),
        Severity::Low | Severity::Info => name.dimmed().to_string(),
    }
}

fn explain(code: Option<&str>, format: Format) -> Result<u8, CommandError> {
    let known: Vec<&Code> = match code {
        None => CODES.iter().collect(),
        Some(code) => match codes::explain(code) {
            Some(code) => vec![code],
            None => {
                return Err(CommandError::Usage {
                    what: format!("there is no code {code}"),
                    hint: "`agent-trace mcp-scan explain` lists all codes",
                });
            }
        },
    };
    match format {
        Format::Json => json::document(&known)?,
        Format::Jsonl => known.iter().try_for_each(json::line)?,
        Format::Text => {
            let mut out = anstream::stdout().lock();
            for one in &known {
                writeln!(out, "{} {}", one.code.bold(), one.title)?;
                if code.is_some() {
                    writeln!(
                        out,
                        "\n{}\n\n{}\n\n{}",
                        one.meaning,
                        one.advice,
                        one.tags.join(", ").dimmed()
                    )?;
                }
            }
        }
    }
    Ok(exit::SUCCESS)
}
