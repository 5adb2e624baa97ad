//! Labelled rows, for measuring: lines in, verdicts out, through the same scans as all else.
//!
//! A line is `{"id", "kind": "tool", "server", "tool", "with": [server, ...]}`, or
//! `{"id", "kind": "result" | "prompt", "text"}`. Lines `{"kind": "server", "server", "tools"}`
//! come first and name the servers that `with` refers to. A verdict is
//! `{"id", "flagged", "severity", "codes"}`.

use crate::finding::{Finding, Severity};
use crate::scan::{self, Server};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A line.
#[derive(Debug, Deserialize)]
struct Row {
    id: Option<String>,
    kind: String,
    server: Option<String>,
    tool: Option<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    with: Vec<String>,
    text: Option<String>,
}

/// What is said of a row.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// The row's.
    pub id: String,
    /// Whether anything is reported.
    pub flagged: bool,
    /// How bad the worst of it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// All codes.
    pub codes: Vec<&'static str>,
    /// All findings.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

/// Answers lines. Tools are answered at the end, since a server's tools are looked at together.
///
/// # Errors
/// If a line is no such row.
pub fn answer<'a>(
    lines: impl Iterator<Item = &'a str>,
    least: Severity,
) -> Result<Vec<Verdict>, serde_json::Error> {
    let mut known: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut out: Vec<Verdict> = Vec::new();
    let mut tools: BTreeMap<String, Vec<(usize, Value)>> = BTreeMap::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let row: Row = serde_json::from_str(line)?;
        let Some(id) = row.id else {
            known.insert(row.server.unwrap_or_default(), row.tools);
            continue;
        };
        let findings = match (row.kind.as_str(), row.tool, row.text) {
            ("tool", Some(tool), _) => {
                let others = row.with.iter().filter_map(|name| {
                    let (name, tools) = known.get_key_value(name)?;
                    Some(Server { name, tools })
                });
                let others: Vec<Server<'_>> = others.collect();
                let found = scan::tool(row.server.as_deref(), &tool, &others);
                tools
                    .entry(row.server.unwrap_or_default())
                    .or_default()
                    .push((out.len(), tool));
                found
            }
            (_, _, Some(text)) => scan::result("", &text),
            _ => Vec::new(),
        };
        out.push(Verdict {
            id,
            flagged: false,
            severity: None,
            codes: Vec::new(),
            findings,
        });
    }
    for (server, tools) in &tools {
        let values: Vec<&Value> = tools.iter().map(|(_, tool)| tool).collect();
        for (tool, finding) in scan::server(Some(server), &values) {
            out[tools[tool].0].findings.push(finding);
        }
    }
    for verdict in &mut out {
        verdict.findings.retain(|finding| finding.severity >= least);
        verdict.severity = verdict
            .findings
            .iter()
            .map(|finding| finding.severity)
            .max();
        verdict.flagged = !verdict.findings.is_empty();
        verdict.codes = verdict
            .findings
            .iter()
            .map(|finding| finding.code)
            .collect();
    }
    Ok(out)
}
