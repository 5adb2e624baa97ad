//! Findings as text, JSON, SARIF and JUnit.

use super::{Found, Outcome, Scanned, pins};
use crate::cli::scan::Report;
use crate::render::junit::{Came, Suite};
use crate::render::words::count;
use crate::render::{escape, json};
use agent_trace_analysis::baseline::Entry;
use agent_trace_model::id::SHORT_ID;
use agent_trace_scanners::Severity;
use agent_trace_scanners::codes::{self, CODES};
use agent_trace_scanners::sarif::{self, InFile, Reported};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

pub(super) fn print(report: Report, outcome: &Outcome<'_>) -> io::Result<()> {
    match report {
        Report::Text => text(&mut anstream::stdout().lock(), outcome),
        Report::Json => json::document(&Document {
            scanned: &outcome.scanned,
            accepted: &outcome.accepted,
            gone: &outcome.gone,
        }),
        Report::Jsonl => outcome.scanned.findings.iter().try_for_each(json::line),
        Report::Sarif => json::document(&log(outcome)),
        Report::Junit => io::stdout().lock().write_all(junit(outcome).as_bytes()),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    scanned: &'a Scanned,
    /// What the baseline accepts.
    #[serde(skip_serializing_if = "<[Found]>::is_empty")]
    accepted: &'a [Found],
    /// Entries of the baseline that were not found any more.
    #[serde(skip_serializing_if = "<[&Entry]>::is_empty")]
    gone: &'a [&'a Entry],
}

fn log(outcome: &Outcome<'_>) -> serde_json::Value {
    let new = outcome.scanned.findings.iter().map(|found| (found, false));
    let accepted = outcome.accepted.iter().map(|found| (found, true));
    let reported = new.chain(accepted).map(|(found, accepted)| Reported {
        finding: &found.finding,
        key: &found.key,
        file: found.file.as_deref().map(|path| InFile {
            path,
            bytes: found.file_bytes.map(|(start, end)| start..end),
            quoted: found.quoted,
        }),
        at: found.step.map(|step| {
            let run = found.run.as_deref().map(begin).unwrap_or_default();
            format!("run {run}, step {step},")
        }),
        accepted,
    });
    let reported: Vec<Reported<'_>> = reported.collect();
    let version = env!("CARGO_PKG_VERSION");
    sarif::log(version, &reported, &outcome.scanned.not_scanned)
}

/// Each code of which nothing was found is a test that passed; each finding is one that failed,
/// or was skipped where it does not make the scan fail.
fn junit(outcome: &Outcome<'_>) -> String {
    let mut suite = Suite::new("mcp-scan");
    let all = outcome.scanned.findings.iter().chain(&outcome.accepted);
    let there: BTreeSet<&str> = all.map(|found| found.finding.code).collect();
    for code in CODES.iter().filter(|code| !there.contains(code.code)) {
        suite.add(code.code, Came::Passed);
    }
    let mut known = BTreeSet::new();
    for found in &outcome.scanned.findings {
        if !known.insert(&found.key) {
            continue;
        }
        let message = found.finding.title;
        if outcome.counts(found) {
            let finding = &found.finding;
            let decoded = finding.decoded.as_deref().unwrap_or_default();
            let failed = Came::Failed {
                message,
                kind: finding.severity.as_str(),
                text: &format!("{}\n{}\n{decoded}", place(found), finding.quote),
            };
            suite.add(&name(found), failed);
        } else {
            suite.add(&name(found), Came::Skipped { message });
        }
    }
    for found in &outcome.accepted {
        if known.insert(&found.key) {
            let message = &format!("accepted: {}", found.finding.title);
            suite.add(&name(found), Came::Skipped { message });
        }
    }
    for what in &outcome.scanned.not_scanned {
        let failed = Came::Failed {
            message: "not scanned",
            kind: "not-scanned",
            text: what,
        };
        suite.add(what, failed);
    }
    suite.document("definitions and results")
}

/// What a finding is called: the same each time.
fn name(found: &Found) -> String {
    let mut name = found.finding.code.to_owned();
    for part in [&found.finding.server, &found.finding.tool]
        .into_iter()
        .flatten()
    {
        name.push(' ');
        name.push_str(part);
    }
    format!("{name} [{}]", found.key)
}

fn text(out: &mut impl Write, outcome: &Outcome<'_>) -> io::Result<()> {
    let scanned = &outcome.scanned;
    for found in &scanned.findings {
        finding(out, found)?;
    }
    let mut looked_at = Vec::new();
    looked_at.extend(
        scanned
            .servers
            .map(|servers| count(servers, "configured server")),
    );
    if scanned.servers.is_none() || scanned.tools > 0 {
        looked_at.push(count(scanned.tools, "tool"));
    }
    if scanned.others > 0 {
        looked_at.push(count(scanned.others, "other definition"));
    }
    looked_at.extend(scanned.results.map(|results| count(results, "result")));
    let looked_at = looked_at.join(", ");
    let mut line = match scanned.findings.len() {
        0 => format!("nothing found in {looked_at}"),
        found => format!("{} in {looked_at}", count(found, "finding")),
    };
    if !outcome.accepted.is_empty() {
        line.push_str(&format!(", {} accepted", outcome.accepted.len()));
    }
    writeln!(out, "{line}")?;
    for entry in &outcome.gone {
        let gone = "accepted, but not found any more:".yellow();
        let what = format!("{} {}: {}", entry.code, entry.server, entry.what);
        writeln!(out, "{gone} {}", escape::text(what.as_bytes(), 200))?;
    }
    for what in &scanned.not_scanned {
        let not = "not scanned:".yellow();
        writeln!(out, "{not} {}", escape::text(what.as_bytes(), 0))?;
    }
    Ok(())
}

/// One finding.
pub(super) fn finding(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let finding = &found.finding;
    let tool = finding.tool.as_deref().or(finding.server.as_deref());
    let tool = tool.unwrap_or("message");
    writeln!(
        out,
        "{} {} {}: {}",
        severity(finding.severity),
        finding.code.bold(),
        escape::text(tool.as_bytes(), 80).cyan(),
        finding.title
    )?;
    writeln!(out, "         {}", place(found))?;
    writeln!(out, "         {}", finding.quote.dimmed())?;
    if let Some(decoded) = &finding.decoded {
        writeln!(out, "         {}", decoded.dimmed())?;
    }
    for field in found.fields.iter().skip(1) {
        pins::field(out, field)?;
    }
    Ok(())
}

/// Where it was found: `tools.json, /tools/0/description bytes 18-82`.
fn place(found: &Found) -> String {
    let finding = &found.finding;
    let name = |name: &str| format!("{}, ", escape::text(name.as_bytes(), 200));
    let mut at = String::new();
    if let Some(file) = &found.file {
        at = name(file);
    } else if let Some(run) = &found.run {
        at = finding.server.as_deref().map(name).unwrap_or_default();
        at.push_str(&format!("run {}", begin(run)));
        if let Some(more @ 1..) = found.sessions.map(|sessions| sessions.saturating_sub(1)) {
            at.push_str(&format!(" and {}", count(more, "more session")));
        }
        at.push_str(", ");
        if let Some(step) = found.step {
            at.push_str(&format!("step {step}, "));
        }
    } else if let Some(server) = &finding.server {
        at = name(server);
    }
    // Of an entry of a configuration the bytes are those of the file.
    let (start, end) = match found.file_bytes {
        Some(bytes) if codes::is_of_entry(finding.code) => bytes,
        _ => (finding.start, finding.end),
    };
    let pointer = escape::text(finding.pointer.as_bytes(), 200);
    format!("{at}{pointer} bytes {start}-{end}")
}

/// The beginning of a run's id, as lists have it.
fn begin(run: &str) -> &str {
    run.get(..SHORT_ID).unwrap_or(run)
}

fn severity(severity: Severity) -> String {
    let name = format!("{:<8}", severity.as_str());
    match severity {
        Severity::Critical | Severity::High => name.red().to_string(),
        Severity::Medium => name.yellow().to_string(),
        Severity::Low | Severity::Info => name.dimmed().to_string(),
    }
}
