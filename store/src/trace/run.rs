//! Everything that was recorded of one run.

use super::RunEntry;
use super::step::{Frame, Step, Steps};
use crate::journal::header::{Gap, Meta, SessionEnd, SessionOpen};
use crate::journal::reader::{Damage, OpenError, Segment};
use crate::journal::{Envelope, Kind, Record};
use agent_trace_model::{Ending, Outcome};
use std::collections::BTreeMap;

/// A run in memory.
#[derive(Debug)]
pub struct Run {
    /// What is known from the headers of its files.
    pub entry: RunEntry,
    /// How it began.
    pub opening: SessionOpen,
    /// How it ended, if it did and that was recorded.
    pub end: Option<SessionEnd>,
    /// What happened, in the order in which it began.
    pub steps: Vec<Step>,
    /// Every frame, in the order in which it was read from its sender. Steps refer to it by position.
    pub frames: Vec<Frame>,
    /// Lines of the server's standard error.
    pub errors: Vec<Record>,
    /// What was not recorded.
    pub gaps: Vec<(Envelope, Gap)>,
    /// What was recorded and cannot be read.
    pub damage: Vec<Damage>,
    /// How many records are missing between those that can be read, as their numbers tell.
    /// Of a file that was sealed or exported this is all that is left of its damage.
    pub missing: u64,
    /// Files that cannot be read at all.
    pub unreadable: Vec<OpenError>,
    /// When its last record was written, in nanoseconds since 1970.
    pub last: u64,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is being recorded.
    Live,
    /// It ended.
    Ended,
    /// The server ended it by failing: it did not start, or exited by itself with an error.
    Crashed,
    /// Its end was not recorded: the recording process was killed, or the disk was full.
    CutOff,
}

/// Why a run counts as failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server could not be started, or exited by itself with an error.
    Crashed,
    /// A request was never answered.
    Unanswered {
        /// Number of the step.
        step: usize,
    },
    /// The last call of a tool ended in an error.
    LastCallFailed {
        /// The tool.
        tool: String,
        /// Number of the step.
        step: usize,
    },
}

impl Run {
    pub(super) fn read(entry: &RunEntry) -> Result<Self, OpenError> {
        let mut run = Self {
            entry: entry.clone(),
            opening: SessionOpen::default(),
            end: None,
            steps: Vec::new(),
            frames: Vec::new(),
            errors: Vec::new(),
            gaps: Vec::new(),
            damage: Vec::new(),
            missing: 0,
            unreadable: Vec::new(),
            last: entry.header.started,
        };
        let mut sequence = 0;
        for path in &entry.segments {
            match Segment::open(path) {
                Ok(segment) => run.add(&segment, &mut sequence),
                Err(error) => run.unreadable.push(error),
            }
        }
        if run.unreadable.len() == entry.segments.len()
            && let Some(error) = run.unreadable.pop()
        {
            return Err(error);
        }
        // A relay records what it has forwarded, so an answer may be recorded before its
        // request; the times tell. The monotonic ones: the wall clock may be set meanwhile.
        run.frames
            .sort_by_key(|frame| frame.record.envelope.monotonic);
        let over = run.standing() != Standing::Live;
        let lost = run
            .gaps
            .iter()
            .map(|(envelope, _)| envelope.monotonic)
            .max();
        let damaged = !run.is_whole();
        run.steps = Steps::default()
            .with_loss_at(if damaged { Some(u64::MAX) } else { lost })
            .pair(&run.frames, over);
        Ok(run)
    }

    /// Adds a file; `sequence` is the number of the last record before it and in it.
    fn add(&mut self, segment: &Segment, sequence: &mut u64) {
        for record in segment.records() {
            match record {
                Ok(record) => {
                    let number = record.envelope.sequence;
                    self.missing += number.saturating_sub(sequence.saturating_add(1));
                    *sequence = number;
                    self.take(record);
                }
                // A torn end is how a killed process ends; the missing end record says so.
                Err(damage) if damage.torn_end => {}
                Err(damage) => self.damage.push(damage),
            }
        }
    }

    fn take(&mut self, record: Record) {
        let payload = &record.payload[..];
        self.last = self.last.max(record.envelope.wall);
        match record.envelope.kind {
            Kind::Frame => self.frames.push(Frame::new(record)),
            Kind::Stderr => self.errors.push(record),
            Kind::Meta => {
                if let Ok(Meta::SessionOpen(opening)) = serde_json::from_slice(payload) {
                    self.opening = opening;
                }
            }
            Kind::Gap => {
                if let Ok(gap) = serde_json::from_slice(payload) {
                    self.gaps.push((record.envelope, gap));
                }
            }
            Kind::End => self.end = serde_json::from_slice(payload).ok(),
            Kind::Finding | Kind::Unknown(_) => {}
        }
    }

    /// Whether everything that was recorded can be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing == 0 && self.damage.is_empty() && self.unreadable.is_empty()
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Some(SessionEnd { end, .. }) = &self.end else {
            return if self.entry.live {
                Standing::Live
            } else {
                Standing::CutOff
            };
        };
        match end.ending {
            Ending::NotStarted => Standing::Crashed,
            Ending::ServerExited if end.exit_code != Some(0) => Standing::Crashed,
            _ => Standing::Ended,
        }
    }

    /// What to call the server: its given name, else what its command looks like.
    #[must_use]
    pub fn server(&self) -> &str {
        self.opening
            .server
            .as_deref()
            .unwrap_or_else(|| command_name(&self.opening.command))
    }

    /// What to call the client: its given name, else the name it gave itself, else its
    /// process's.
    #[must_use]
    pub fn client(&self) -> String {
        let introduced = self
            .steps
            .iter()
            .find_map(|step| step.client_name(&self.frames));
        let process = || self.entry.header.client.as_ref().map(|p| p.name.clone());
        let given = self.opening.client.clone();
        given.or(introduced).or_else(process).unwrap_or_default()
    }

    /// Why it counts as failed; empty where it does not. Errors that a later success of the
    /// same tool made good do not count.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        let mut failures = Vec::new();
        if self.standing() == Standing::Crashed {
            failures.push(Failure::Crashed);
        }
        let mut last: BTreeMap<&str, &Step> = BTreeMap::new();
        for step in &self.steps {
            if step.outcome == Outcome::Unanswered && step.is_clients() {
                failures.push(Failure::Unanswered { step: step.number });
            } else if let Some(tool) = step.tool()
                && !matches!(
                    step.outcome,
                    Outcome::Pending | Outcome::Cancelled | Outcome::NotRecorded
                )
            {
                last.insert(tool, step);
            }
        }
        for (tool, step) in last {
            if step.outcome.is_failure() {
                let (tool, step) = (tool.to_owned(), step.number);
                failures.push(Failure::LastCallFailed { tool, step });
            }
        }
        failures
    }
}

/// What a command looks like to a person: of `npx -y @scope/server-x --flag` it is
/// `server-x`, of `python -m pkg.server` it is `pkg.server`.
fn command_name(command: &[String]) -> &str {
    let words = || {
        command
            .iter()
            .filter(|word| !word.starts_with('-'))
            // Of a script for a shell, the first command.
            .filter_map(|word| word.split_ascii_whitespace().next())
            .map(|word| word.rsplit(['/', '\\']).next().unwrap_or(word))
    };
    let launchers = [
        "npx", "npm", "exec", "node", "bunx", "bun", "deno", "uvx", "uv", "run", "pipx", "python",
        "python3", "sh", "bash", "env", "docker",
    ];
    words()
        .find(|word| !word.is_empty() && !launchers.contains(word))
        .or_else(|| words().next())
        .unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_what_its_command_looks_like() {
        let name = |command: &str| {
            let words: Vec<String> = command.split(' ').map(Into::into).collect();
            command_name(&words).to_owned()
        };
        assert_eq!(
            name("npx -y @modelcontextprotocol/server-git --x"),
            "server-git"
        );
        assert_eq!(
            name("/usr/bin/python3 -m mcp_server.time"),
            "mcp_server.time"
        );
        assert_eq!(name("./target/server"), "server");
        assert_eq!(name("npx"), "npx");
        let script = ["sh", "-c", "./serve --port 1 >/dev/null"].map(String::from);
        assert_eq!(command_name(&script), "serve");
        assert_eq!(command_name(&[]), "?");
    }
}
