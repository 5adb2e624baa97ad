//! Poisoned tools and results in what was recorded.

use super::Tool;
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, Opened, blocking};
use crate::scope::Scope;
use crate::text::Text;
use agent_trace_index::listing::RunsQuery;
use agent_trace_scanners::run::{self, ScannedRun};
use agent_trace_scanners::{Confidence, Finding, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The newest runs that are scanned unless that is asked for, and the most.
const RUNS: usize = 50;
const MOST: usize = 1_000;
/// Runs that are listed at once.
const BLOCK: usize = 20;

/// `mcp_scan`.
pub(crate) struct McpScan;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only this run: its id, the beginning of it, or `latest`. Without it the newest runs.
    run: Option<String>,
    /// How many of the newest runs, 50 unless given, no more than 1,000.
    last: Option<usize>,
    /// Also weak signs, which harmless texts have too.
    #[serde(default)]
    sensitive: bool,
    /// Only findings after so many.
    #[serde(default)]
    after: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// How many runs were scanned.
    runs: usize,
    /// How many definitions of tools.
    tools: usize,
    /// How many other definitions: prompts, resources, what servers say of themselves.
    others: usize,
    /// How many results and errors.
    results: usize,
    /// How many answers could not be scanned.
    not_scanned: usize,
    /// What was found, the most severe first. What was found in several runs is told once.
    findings: Vec<FindingView>,
    /// Where to go on, if there are more: pass it as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

/// Something that was found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FindingView {
    /// Stable code: `agent-trace mcp-scan explain CODE` tells what it means.
    code: &'static str,
    /// The same in a few words.
    title: &'static str,
    /// info, low, medium, high or critical.
    severity: &'static str,
    /// How sure it is: low, medium or high.
    confidence: &'static str,
    /// The run in which it was last seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The number of the step whose answer it stands in.
    step: usize,
    /// In how many of the scanned runs it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_runs: Option<usize>,
    /// First byte of it in the string that the pointer names, and the byte after its last.
    bytes: (usize, usize),
    recorded: FindingText,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FindingText {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Text>,
    /// Where it stands in the answer, as a JSON pointer.
    pointer: Text,
    /// What stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    quote: Option<Text>,
    /// What was read there, where it was encoded or not visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    decoded: Option<Text>,
}

impl FindingView {
    /// A finding in a step; its words only where they may be shown.
    pub(crate) fn of(step: usize, finding: &Finding, quoted: bool) -> Self {
        let text = |text: &String| Text::line(text);
        Self {
            code: finding.code,
            title: finding.title,
            severity: finding.severity.as_str(),
            confidence: match finding.confidence {
                Confidence::Low => "low",
                Confidence::Medium => "medium",
                Confidence::High => "high",
            },
            run: None,
            step,
            in_runs: None,
            bytes: (finding.start, finding.end),
            recorded: FindingText {
                server: finding.server.as_ref().map(Text::name),
                tool: finding.tool.as_ref().map(Text::name),
                pointer: Text::name(&finding.pointer),
                quote: quoted.then(|| text(&finding.quote)),
                decoded: finding.decoded.as_ref().filter(|_| quoted).map(text),
            },
        }
    }
}

impl Tool for McpScan {
    const NAME: &'static str = "mcp_scan";
    const TITLE: &'static str = "Scan for poisoned tools";
    const DESCRIPTION: &'static str = "Looks for instructions to the model in what MCP servers \
        said: definitions of tools, prompts and resources, and results, as they were recorded \
        (hidden characters, orders to conceal, secrets to be read or sent, tools that redirect \
        others, ...). No server is started and no model is involved. Use it when asked whether \
        a tool or a server can be trusted.";
    const SCOPE: Scope = Scope::ScanRun;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let least = match input.sensitive {
            true => Severity::Info,
            false => Severity::Medium,
        };
        let mut found = Found::default();
        if let Some(name) = &input.run {
            found.scan(asked.open(name).await?, least).await?;
        } else {
            let last = input.last.unwrap_or(RUNS).clamp(1, MOST);
            // Also those that only listed: what they were told is what others were told.
            let mut query = RunsQuery {
                probes: true,
                last,
                limit: BLOCK,
                ..asked.query(None)
            };
            loop {
                let page = asked.runs(query.clone()).await?;
                for run in &page.runs {
                    // One that is not there any more was removed meanwhile.
                    let Ok(file) = asked.find(&run.row.id.to_string()).await else {
                        continue;
                    };
                    found.scan(asked.read(file).await?, least).await?;
                    asked.tell(found.runs, Some(last)).await;
                }
                match page.cursor {
                    Some(next) => query.cursor = Some(next),
                    None => break,
                }
            }
        }
        let mut budget = asked.budget();
        let mut all: Vec<(Severity, FindingView)> = found.all.into_values().collect();
        all.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        let views = all.into_iter().map(|(_, view)| view);
        let (findings, left) = budget.fill(views.skip(input.after));
        let truncated = (left > 0)
            .then(|| Cut::new(format!("{left} findings"), "ask with `after` set to `next`"));
        Ok(Output {
            runs: found.runs,
            tools: found.counts.tools,
            others: found.counts.others,
            results: found.counts.results,
            not_scanned: found.counts.not_scanned,
            next: (left > 0).then_some(input.after + findings.len()),
            findings,
            truncated: truncated.into_iter().collect(),
        })
    }
}

/// What tells a finding from others: code, server, tool, place and words.
type Same = (&'static str, Option<String>, Option<String>, String, String);

/// What was found so far.
#[derive(Default)]
struct Found {
    runs: usize,
    counts: ScannedRun,
    all: BTreeMap<Same, (Severity, FindingView)>,
}

impl Found {
    async fn scan(&mut self, opened: Opened, least: Severity) -> Result<(), ToolError> {
        let id = opened.run.row.id.to_string();
        let scanned = blocking(move || run::run(&opened.story)).await?;
        self.runs += 1;
        self.counts.tools += scanned.tools;
        self.counts.others += scanned.others;
        self.counts.results += scanned.results;
        self.counts.not_scanned += scanned.not_scanned;
        let mut here = BTreeMap::new();
        for found in scanned.findings {
            let finding = found.finding;
            if finding.severity < least {
                continue;
            }
            let view = FindingView {
                run: Some(id.clone()),
                ..FindingView::of(found.step, &finding, true)
            };
            let Finding {
                severity,
                code,
                server,
                tool,
                pointer,
                quote,
                ..
            } = finding;
            here.entry((code, server, tool, pointer, quote))
                .or_insert((severity, view));
        }
        for (same, view) in here {
            let (_, known) = self.all.entry(same).or_insert(view);
            *known.in_runs.get_or_insert(0) += 1;
        }
        Ok(())
    }
}
