//! `replay`: a run step by step, as fast as it was or faster.

use crate::cli::understand::{Lines, Replay as Args, Speed};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::json;
use crate::render::short;
use crate::render::time::Clock;
use crate::render::words::{Named, answers, asks, count, head, is_answered, label};
use crate::serving::signals::{Hangup, Signals, runtime};
use agent_trace_model::story::Story;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, Instant};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let story = query::story(config, &args.run)?;
    if args.from == 0 || args.from > story.steps.len().max(1) {
        return Err(CommandError::Usage {
            what: format!(
                "run {} has no step {}: it has {}",
                short(story.id),
                args.from,
                count(story.steps.len(), "step")
            ),
            hint: "`agent-trace show RUN -n` prints the numbers of the steps",
        });
    }
    runtime()?.block_on(play(args, &story))?;
    Ok(exit::SUCCESS)
}

/// Something that is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    /// When, in nanoseconds since 1970.
    at: u64,
    /// Position of the step.
    step: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Begins,
    Ends,
}

/// What is seen from a step on, in its order.
fn events(story: &Story, from: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut now = 0;
    for (step, told) in story.steps.iter().enumerate().skip(from - 1) {
        // A clock that is set back does not change the order.
        now = now.max(told.wall);
        let what = What::Begins;
        events.push(Event {
            at: now,
            step,
            what,
        });
        if let Some(took) = told.duration.filter(|_| is_answered(told)) {
            let (at, what) = (now.saturating_add(took), What::Ends);
            events.push(Event { at, step, what });
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

async fn play(args: &Args, story: &Story) -> Result<(), CommandError> {
    let mut screen = Screen {
        story,
        clock: Clock::local(),
        limit: args.string_limit,
        open: None,
    };
    // Before anything is printed. What never waits can as well be ended as it is.
    let mut signals = match args.speed {
        Speed::Max => None,
        Speed::Factor(_) => Some(Signals::new(Hangup::End)?),
    };
    let mut out = anstream::stdout().lock();
    if args.format == Lines::Text {
        writeln!(out, "{}", head(story))?;
    }
    let events = events(story, args.from);
    let mut watch = Watch::new(args, events.first().map_or(0, |event| event.at));
    for event in &events {
        if watch.must_wait(event.at)
            && let Some(signals) = &mut signals
        {
            out.flush()?;
            if watch.wait(signals).await == Next::Stop {
                screen.break_line(&mut out)?;
                out.flush()?;
                drop(out);
                let before = story.steps[event.step].number;
                writeln!(anstream::stderr(), "stopped before step {before}")?;
                return Ok(());
            }
        }
        match args.format {
            Lines::Text => screen.show(&mut out, event)?,
            Lines::Jsonl => json::line(&Line::of(story, event, events[0].at))?,
        }
    }
    screen.break_line(&mut out)?;
    Ok(out.flush()?)
}

#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// When it is time.
struct Watch {
    speed: Speed,
    longest: Option<Duration>,
    begun: Instant,
    /// Of the run, the moment that was reached.
    reached: u64,
    /// How long after the beginning of the replay that is.
    due: Duration,
}

impl Watch {
    fn new(args: &Args, first: u64) -> Self {
        Self {
            speed: args.speed,
            longest: args.max_pause,
            begun: Instant::now(),
            reached: first,
            due: Duration::ZERO,
        }
    }

    /// Goes on to this moment of the run; whether it has yet to come.
    fn must_wait(&mut self, at: u64) -> bool {
        let Speed::Factor(factor) = self.speed else {
            return false;
        };
        let pause = at.saturating_sub(self.reached) as f64 / 1e9 / factor;
        self.reached = self.reached.max(at);
        let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX);
        let pause = self.longest.map_or(pause, |longest| pause.min(longest));
        self.due = self.due.saturating_add(pause);
        self.due > self.begun.elapsed()
    }

    async fn wait(&self, signals: &mut Signals) -> Next {
        let rest = self.due.saturating_sub(self.begun.elapsed());
        tokio::select! {
            () = tokio::time::sleep(rest) => Next::GoOn,
            _ = signals.next() => Next::Stop,
        }
    }
}

/// Lines as strace prints them: what is answered at once stands in one line.
struct Screen<'a> {
    story: &'a Story,
    clock: Clock,
    limit: usize,
    /// The step whose line has not ended.
    open: Option<usize>,
}

impl Screen<'_> {
    fn show(&mut self, out: &mut impl Write, event: &Event) -> io::Result<()> {
        let step = &self.story.steps[event.step];
        let goes_on = self.open == Some(event.step);
        if !goes_on {
            self.break_line(out)?;
        }
        let time = self.clock.time(event.at);
        let start = format!("{:>5} {}", step.number, time.dimmed());
        match event.what {
            What::Begins => {
                write!(out, "{start} {}", asks(self.story, step, self.limit))?;
                if is_answered(step) && step.duration.is_some() {
                    self.open = Some(event.step);
                } else if is_answered(step) {
                    writeln!(out, " = {}", answers(self.story, step, self.limit))?;
                } else {
                    writeln!(out)?;
                }
            }
            What::Ends => {
                if !goes_on {
                    let resumed = format!("<... {} resumed>", label(self.story, step));
                    write!(out, "{start} {}", resumed.dimmed())?;
                }
                writeln!(out, " = {}", answers(self.story, step, self.limit))?;
                self.open = None;
            }
        }
        Ok(())
    }

    fn break_line(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.open.take() {
            Some(_) => writeln!(out, " {}", "<unfinished ...>".dimmed()),
            None => Ok(()),
        }
    }
}

/// What is seen, as JSON.
#[derive(Serialize)]
struct Line<'a> {
    event: What,
    /// Nanoseconds since the first event.
    at: u64,
    #[serde(flatten)]
    step: Named<'a>,
}

impl<'a> Line<'a> {
    fn of(story: &'a Story, event: &Event, first: u64) -> Self {
        Self {
            event: event.what,
            at: event.at - first,
            step: Named::of(story, &story.steps[event.step]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_analysis::testing::{START, Tale};

    fn story() -> Story {
        Tale::new()
            .call("slow", "{}")
            .text("x")
            .takes(100)
            .at(20)
            .call("quick", "{}")
            .text("y")
            .takes(10)
            .at(200)
            .call("lost", "{}")
            .told()
    }

    #[test]
    fn answers_come_when_they_came() {
        let events = events(&story(), 1);
        let seen: Vec<_> = events
            .iter()
            .map(|e| ((e.at - START) / 1_000_000, e.step))
            .collect();
        assert_eq!(seen, [(0, 0), (20, 1), (30, 1), (100, 0), (200, 2)]);
    }

    #[test]
    fn what_is_interrupted_is_resumed() {
        let story = story();
        let mut screen = Screen {
            story: &story,
            clock: Clock::local(),
            limit: 40,
            open: None,
        };
        let mut out = Vec::new();
        for event in events(&story, 1) {
            screen
                .show(&mut anstream::StripStream::new(&mut out), &event)
                .unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        // Without the moments, which are local.
        let lines = text.lines().map(|line| [&line[..5], &line[18..]].concat());
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        1 notes tools/call slow({}) <unfinished ...>
        2 notes tools/call quick({}) = {"content":[{"type":"text","text":"y"}]} <0.010>
        1 <... notes slow resumed> = {"content":[{"type":"text","text":"x"}]} <0.100>
        3 notes tools/call lost({}) = ? (unanswered)
        "#);
    }

    #[test]
    fn pauses_are_as_long_as_asked_for() {
        let args = |speed, max_pause| Args {
            run: String::new(),
            speed,
            from: 1,
            max_pause,
            string_limit: 0,
            format: Lines::Text,
        };
        let due = |speed, longest| {
            let mut watch = Watch::new(&args(speed, longest), 0);
            watch.must_wait(10_000_000_000);
            watch.due
        };
        assert_eq!(due(Speed::Factor(2.0), None), Duration::from_secs(5));
        assert_eq!(due(Speed::Factor(1e-300), None), Duration::MAX);
        let longest = Some(Duration::from_secs(1));
        assert_eq!(due(Speed::Factor(0.5), longest), Duration::from_secs(1));
        assert_eq!(due(Speed::Max, None), Duration::ZERO);
    }
}
