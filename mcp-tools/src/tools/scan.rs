//! Poisoned tools and results in what was recorded, and definitions that changed.
//!
//! What was recorded was scanned when it was indexed: what is filed is told.

use super::Tool;
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, unknown};
use crate::scope::Scope;
use crate::text::Text;
use crate::view::moment;
use agent_trace_index::filed::{InStore, ScanQuery, StoreScan};
use agent_trace_index::pins::{Pin, PinsQuery, Standing};
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_scanners::{Confidence, Finding, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fields of a change that are told.
const FIELDS: usize = 10;

/// `mcp_scan`.
pub(crate) struct McpScan;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only this run: its id, the beginning of it, or `latest`. Without it all that is recorded.
    run: Option<String>,
    /// List what servers define and how it stands (changed, new, seen, approved), in place of
    /// findings.
    #[serde(default)]
    pins: bool,
    /// Of the pins only those of this server.
    server: Option<String>,
    /// Also weak signs, which harmless texts have too.
    #[serde(default)]
    sensitive: bool,
    /// Only findings, or pins, after so many.
    #[serde(default)]
    after: usize,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// How many servers there are, in all that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<u64>,
    /// How many tools they define.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<u64>,
    /// How many other definitions: prompts, resources, what servers say of themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<u64>,
    /// What was found, the most severe first. What was found in several sessions is told once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<FindingView>,
    /// What servers define, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pins: Vec<PinView>,
    /// Where to go on, if there are more: pass it as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

/// A definition of a server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PinView {
    /// tool, prompt, resource, template or instructions.
    kind: &'static str,
    /// changed (and nobody approved that), new (others of the server are approved), seen or
    /// approved.
    standing: &'static str,
    /// The hash of its form as it is told now.
    hash: String,
    /// When it was first seen, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen: Option<String>,
    /// When it was approved, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<String>,
    recorded: PinText,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PinText {
    /// What identifies the server: its package, image, URL or command.
    server: Text,
    name: Text,
    /// What changed, field by field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<FieldText>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FieldText {
    /// Where it stands, as a JSON pointer from the definition.
    pointer: Text,
    /// What stood there.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Text>,
    /// What stands there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Text>,
}

impl PinView {
    fn of(pin: &Pin) -> Self {
        let fields = pin.changes.iter().flat_map(|change| &change.fields);
        let field = |field: &agent_trace_scanners::pin::diff::Change| FieldText {
            pointer: Text::name(&field.pointer),
            old: field.old.as_ref().map(Text::line),
            new: field.new.as_ref().map(Text::line),
        };
        Self {
            kind: pin.kind.as_str(),
            standing: pin.standing.as_str(),
            hash: pin
                .forms
                .first()
                .map_or_else(String::new, |form| form.hash.clone()),
            first_seen: pin.first.map(moment),
            approved: pin.approved.map(moment),
            recorded: PinText {
                server: Text::name(&pin.server),
                name: Text::name(&pin.name),
                changes: fields.take(FIELDS).map(field).collect(),
            },
        }
    }
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
    /// The run in which it was first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The number of the step whose answer it stands in, where it is known without reading the
    /// run: get_run has the steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    /// In how many sessions it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
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
    pub(crate) fn of(step: impl Into<Option<usize>>, finding: &Finding, quoted: bool) -> Self {
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
            step: step.into(),
            sessions: None,
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
        others, ...), and definitions that changed since they were first seen or approved. No \
        server is started and no model is involved. Use it when asked whether a tool or a server \
        can be trusted.";
    const SCOPE: Scope = Scope::ScanRun;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let least = match input.sensitive {
            true => Severity::Info,
            false => Severity::Medium,
        };
        if input.pins {
            return pins(asked, input).await;
        }
        let mut budget = asked.budget();
        let mut output = Output::default();
        let (views, next) = match &input.run {
            Some(name) => {
                let opened = asked.open(name).await?;
                let id = opened.run.row.id.to_string();
                let mut found: Vec<_> = opened.findings.iter().collect();
                found.retain(|found| found.finding.severity >= least);
                found.sort_by_key(|found| std::cmp::Reverse(found.finding.severity));
                let view = |found: &agent_trace_scanners::run::InRun| FindingView {
                    run: Some(id.clone()),
                    ..FindingView::of(found.step, &found.finding, true)
                };
                let views = found.into_iter().skip(input.after).map(view);
                if opened.more_findings > 0 {
                    let what = format!("{} findings of this run", opened.more_findings);
                    output.truncated.push(Cut::new(what, "they are not kept"));
                }
                (views.collect::<Vec<_>>(), None)
            }
            None => {
                let query = Query::Scan(ScanQuery {
                    workspace: asked.caller.workspace.clone(),
                    projects: asked.caller.projects.clone(),
                    least,
                    after: input.after,
                });
                let Reply::Scanned(scan) = asked.ask(query).await? else {
                    return Err(unknown());
                };
                let StoreScan {
                    findings,
                    next,
                    servers,
                    tools,
                    others,
                } = scan;
                (output.servers, output.tools) = (Some(servers), Some(tools));
                output.others = Some(others);
                let views = findings.iter().filter_map(in_store);
                (views.collect(), next)
            }
        };
        let (findings, left) = budget.fill(views);
        output.next = match left {
            0 => next,
            _ => Some(input.after + findings.len()),
        };
        output.findings = findings;
        if output.next.is_some() {
            let what = match left {
                0 => "further findings".into(),
                left => format!("{left} findings"),
            };
            let cut = Cut::new(what, "ask with `after` set to `next`");
            output.truncated.push(cut);
        }
        Ok(output)
    }
}

fn in_store(found: &InStore) -> Option<FindingView> {
    let finding = found.found.finding(&found.server)?;
    let step = found.step.and_then(|step| usize::try_from(step).ok());
    Some(FindingView {
        run: found.run.map(|run| run.to_string()),
        sessions: Some(found.sessions),
        ..FindingView::of(step, &finding, true)
    })
}

/// What servers define; what changed comes first.
async fn pins(asked: &Asked, input: Input) -> Result<Output, ToolError> {
    let mut query = PinsQuery {
        workspace: asked.caller.workspace.clone(),
        projects: asked.caller.projects.clone(),
        server: input.server,
        ..PinsQuery::default()
    };
    let mut pins = Vec::new();
    loop {
        let Reply::Pins(page) = asked.ask(Query::Pins(query.clone())).await? else {
            return Err(unknown());
        };
        pins.extend(page.pins);
        match page.next {
            Some(next) => query.after = next,
            None => break,
        }
    }
    pins.sort_by_key(|pin| pin.standing != Standing::Changed);
    let mut budget = asked.budget();
    let views = pins.iter().skip(input.after).map(PinView::of);
    let (pins, left) = budget.fill(views);
    let truncated = (left > 0).then(|| {
        let what = format!("{left} definitions");
        Cut::new(what, "ask with `after` set to `next`, or for one server")
    });
    Ok(Output {
        next: (left > 0).then_some(input.after + pins.len()),
        pins,
        truncated: truncated.into_iter().collect(),
        ..Output::default()
    })
}
