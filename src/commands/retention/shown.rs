//! Plans and usage, as text and as JSON.

use crate::cli::Format;
use crate::cli::retention::Plan as Args;
use crate::render::table::{self, Align};
use crate::render::time::{self, bytes, rfc3339};
use crate::render::words::count;
use crate::render::{escape, json, short};
use crate::units;
use agent_trace_store::retention::{Fate, Limits, Part, Plan, Policy, Reason, Usage};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;

pub(super) fn plan(
    out: &mut impl Write,
    plan: &Plan,
    policy: &Policy,
    args: &Args,
) -> io::Result<()> {
    let goes = |part: &&Part| matches!(part.fate, Fate::Goes(..));
    let listed = || plan.parts.iter().filter(|part| args.all || goes(part));
    let (before, after) = plan.bytes();
    match args.format {
        Format::Json => {
            return json::document(&PlanTold {
                bytes: before,
                bytes_left: after,
                parts: listed().map(|part| PartTold::of(part, policy)).collect(),
            });
        }
        Format::Jsonl => {
            return listed().try_for_each(|part| json::line(&PartTold::of(part, policy)));
        }
        Format::Text => {}
    }
    let row = |part: &Part| {
        [
            runs(part),
            time::date(part.time),
            bytes(part.bytes),
            escape::text(part.workspace.as_bytes(), 40),
            why(part, policy),
        ]
    };
    let rows: Vec<[String; 5]> = listed().map(row).collect();
    if !rows.is_empty() {
        use Align::{Left, Right};
        let heading = [
            ("RUNS", Left),
            ("TIME", Left),
            ("SIZE", Right),
            ("WORKSPACE", Left),
            ("WHY", Left),
        ];
        table::print(out, heading, &rows)?;
    }
    let gone = plan.parts.iter().filter(goes);
    let sessions: usize = gone.map(|part| part.sessions.len()).sum();
    if policy.is_empty() {
        writeln!(
            out,
            "no limits are set: nothing goes, {} are kept",
            bytes(before)
        )
    } else {
        writeln!(
            out,
            "{} to go: {} now, {} then; sealing first may make it less",
            count(sessions, "session"),
            bytes(before),
            bytes(after)
        )
    }
}

pub(super) fn usage(out: &mut impl Write, usage: &[Usage], format: Format) -> io::Result<()> {
    let told = |usage: &Usage| UsageTold {
        workspace: usage.workspace.clone(),
        server: usage.server.clone(),
        month: usage.month.clone(),
        sessions: usage.sessions,
        bytes: usage.bytes,
    };
    match format {
        Format::Json => json::document(&usage.iter().map(told).collect::<Vec<_>>()),
        Format::Jsonl => usage
            .iter()
            .map(told)
            .try_for_each(|line| json::line(&line)),
        Format::Text => {
            let row = |usage: &Usage| {
                [
                    escape::text(usage.server.as_bytes(), 40),
                    usage.month.clone(),
                    usage.sessions.to_string(),
                    bytes(usage.bytes),
                    escape::text(usage.workspace.as_bytes(), 40),
                ]
            };
            let rows: Vec<[String; 5]> = usage.iter().map(row).collect();
            use Align::{Left, Right};
            let heading = [
                ("SERVER", Left),
                ("MONTH", Left),
                ("SESSIONS", Right),
                ("SIZE", Right),
                ("WORKSPACE", Left),
            ];
            table::print(out, heading, &rows)?;
            let all: u64 = usage.iter().map(|usage| usage.bytes).sum();
            writeln!(out, "{} in all", bytes(all))
        }
    }
}

/// The runs that go with a part.
fn runs(part: &Part) -> String {
    match &part.sessions[..] {
        [] => "a part of one".into(),
        [one] => short(one),
        [first, ..] => format!("{} and {} more", short(first), part.sessions.len() - 1),
    }
}

/// Why a part goes or stays.
fn why(part: &Part, policy: &Policy) -> String {
    let (reason, own) = match part.fate {
        Fate::Kept => return "kept: within the limits".into(),
        Fate::Live => return "kept: it is being written".into(),
        Fate::Goes(reason, own) => (reason, own),
    };
    let limits = limits_of(part, policy, own);
    let of = match own {
        true => " in the workspace",
        false => "",
    };
    match reason {
        Reason::Age => {
            let limit = limits.age.map(units::shown);
            format!("older than {}{of}", limit.unwrap_or_default())
        }
        Reason::Sessions => {
            let limit = limits.sessions.unwrap_or_default();
            format!("more than {}{of}", count(limit, "session"))
        }
        Reason::Bytes => format!("more than {}{of}", bytes(limits.bytes.unwrap_or_default())),
    }
}

fn limits_of(part: &Part, policy: &Policy, own: bool) -> Limits {
    match own {
        true => policy
            .workspaces
            .get(&part.workspace)
            .copied()
            .unwrap_or_default(),
        false => policy.all,
    }
}

#[derive(Serialize)]
struct PlanTold {
    bytes: u64,
    bytes_left: u64,
    parts: Vec<PartTold>,
}

#[derive(Serialize)]
struct PartTold {
    runs: Vec<String>,
    time: String,
    bytes: u64,
    workspace: String,
    /// `goes`, `kept` or `live`.
    fate: &'static str,
    /// `age`, `sessions` or `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// The limit: nanoseconds, a count or bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// Whether the limit is that of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_workspace: Option<bool>,
}

impl PartTold {
    fn of(part: &Part, policy: &Policy) -> Self {
        let goes = match part.fate {
            Fate::Goes(reason, own) => Some((reason, own)),
            _ => None,
        };
        let nanoseconds = |age: Duration| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        let limit = goes.and_then(|(reason, own)| {
            let limits = limits_of(part, policy, own);
            match reason {
                Reason::Age => limits.age.map(nanoseconds),
                Reason::Sessions => limits.sessions.map(|count| count as u64),
                Reason::Bytes => limits.bytes,
            }
        });
        Self {
            runs: part.sessions.iter().map(ToString::to_string).collect(),
            time: rfc3339(part.time),
            bytes: part.bytes,
            workspace: part.workspace.clone(),
            fate: match part.fate {
                Fate::Goes(..) => "goes",
                Fate::Kept => "kept",
                Fate::Live => "live",
            },
            reason: goes.map(|(reason, _)| match reason {
                Reason::Age => "age",
                Reason::Sessions => "sessions",
                Reason::Bytes => "bytes",
            }),
            limit,
            of_workspace: goes.map(|(_, own)| own),
        }
    }
}

#[derive(Serialize)]
struct UsageTold {
    workspace: String,
    server: String,
    month: String,
    sessions: usize,
    bytes: u64,
}
