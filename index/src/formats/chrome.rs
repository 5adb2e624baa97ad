//! Trace events ("Trace Event Format", the JSON of `chrome://tracing`), which Perfetto opens.
//!
//! Each session is a process. Steps that took time are complete events (`X`); such that overlap
//! lie on different threads, so that none hides another. What took no time is an instant (`i`).
//! Times are microseconds since the beginning of the first run.

use super::error::FormatError;
use super::export::{Export, Left};
use super::json::quoted;
use super::time::decimal;
use agent_trace_model::Outcome;
use agent_trace_model::step::{Message, Step};
use agent_trace_model::story::Story;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// Longer messages are cut: the viewer holds all of them in memory.
const MOST_TEXT: usize = 4096;

pub(super) struct Chrome<W> {
    out: W,
    first: bool,
    /// When the first run began, in nanoseconds since 1970.
    epoch: Option<u64>,
    /// How many sessions there were before.
    processes: usize,
    cut: u64,
}

impl<W: Write> Chrome<W> {
    pub(super) fn begin(mut out: W) -> Result<Self, FormatError> {
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")
            .map_err(FormatError::Output)?;
        Ok(Self {
            out,
            first: true,
            epoch: None,
            processes: 0,
            cut: 0,
        })
    }

    /// Writes an event, given as JSON without its braces.
    fn event(&mut self, members: &str) -> io::Result<()> {
        let before = if std::mem::take(&mut self.first) {
            "\n{"
        } else {
            ",\n{"
        };
        write!(self.out, "{before}{members}}}")
    }

    fn name(&mut self, what: &str, process: usize, thread: usize, name: &str) -> io::Result<()> {
        let name = string(name);
        self.event(&format!(
            "\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":{name}}}"
        ))
    }

    fn story(&mut self, story: &Story) -> io::Result<()> {
        let epoch = *self.epoch.get_or_insert(story.started());
        for (position, session) in story.sessions.iter().enumerate() {
            self.processes += 1;
            let process = self.processes;
            let mut run = story.id.to_string();
            run.truncate(8);
            let name = format!("{} ({run})", session.server);
            self.name("process_name", process, 0, &name)?;
            let steps = story.steps.iter().filter(|step| step.session == position);
            // Without an end a step goes on for as long as the session.
            let end = |step: &Step| match (step.duration, step.outcome) {
                (Some(_), _) => Some(step.ended()),
                (None, Outcome::Unanswered | Outcome::Pending | Outcome::NotRecorded) => {
                    Some(session.last.max(step.wall))
                }
                _ => None,
            };
            // Threads by the moment from which on they are free.
            let mut lanes: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
            for step in steps {
                let Some(ends) = end(step) else {
                    self.step(step, process, 0, epoch, None)?;
                    continue;
                };
                let free = lanes
                    .peek()
                    .is_some_and(|Reverse((busy, _))| *busy <= step.wall);
                let lane = match if free { lanes.pop() } else { None } {
                    Some(Reverse((_, lane))) => lane,
                    None => {
                        let lane = lanes.len();
                        let name = format!("calls {}", lane + 1);
                        self.name("thread_name", process, lane + 1, &name)?;
                        lane
                    }
                };
                lanes.push(Reverse((ends, lane)));
                self.step(step, process, lane + 1, epoch, Some(ends))?;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        step: &Step,
        process: usize,
        thread: usize,
        epoch: u64,
        ends: Option<u64>,
    ) -> io::Result<()> {
        let method = step.method.as_deref().unwrap_or(step.kind.as_str());
        let name = string(step.target.as_deref().unwrap_or(method));
        let category = string(method);
        let time = decimal(step.wall.saturating_sub(epoch), 3);
        let phase = match ends {
            Some(ends) => {
                let span = decimal(ends.saturating_sub(step.wall), 3);
                format!("\"ph\":\"X\",\"dur\":{span}")
            }
            None => "\"ph\":\"i\",\"s\":\"t\"".into(),
        };
        let mut args = format!("\"step\":{},\"outcome\":\"{}\"", step.number, step.outcome);
        for (name, message) in [("request", &step.request), ("response", &step.response)] {
            if let Some(message) = message {
                let text = self.text(message);
                args.push_str(&format!(",\"{name}\":{text}"));
            }
        }
        self.event(&format!(
            "{phase},\"name\":{name},\"cat\":{category},\"pid\":{process},\"tid\":{thread},\"ts\":{time},\"args\":{{{args}}}"
        ))
    }

    fn text(&mut self, message: &Message) -> String {
        let kept = &message.text[..message.text.len().min(MOST_TEXT)];
        let mut text = String::from_utf8_lossy(kept).into_owned();
        if kept.len() < message.text.len() {
            self.cut += 1;
            text.push('…');
        }
        string(&text)
    }
}

impl<W: Write> Export for Chrome<W> {
    fn add(&mut self, story: &Story) -> Result<(), FormatError> {
        self.story(story).map_err(FormatError::Output)
    }

    fn finish(&mut self) -> Result<Left, FormatError> {
        let ended = self.out.write_all(b"\n]}\n");
        ended
            .and_then(|()| self.out.flush())
            .map_err(FormatError::Output)?;
        let mut left = Left::new();
        if self.cut > 0 {
            left.insert("messages beyond 4 KiB, of which the rest".into(), self.cut);
        }
        Ok(left)
    }
}

fn string(text: &str) -> String {
    String::from_utf8_lossy(&quoted(text)).into_owned()
}
