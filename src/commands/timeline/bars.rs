//! A timeline as aligned bars. Idleness is told and takes no room.

use crate::render::time::{seconds, span};
use crate::render::words::{count, fit, head, label, pad};
use agent_trace_analysis::timeline::{Bar, Idle, Phase, PhaseKind, Slow, Timeline};
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;
use owo_colors::OwoColorize;
use std::io::{self, Write};

/// Columns of a number, of a moment and of a duration, with what parts them.
const NUMBER: usize = 6;
const MOMENT: usize = 11;
const TOOK: usize = 11;

/// What is narrower is no picture any more.
const NARROWEST: usize = 60;

/// Columns of a label at most.
const LABEL: usize = 40;

pub(super) fn print(
    out: &mut impl Write,
    story: &Story,
    line: &Timeline,
    width: usize,
) -> io::Result<()> {
    let width = width.max(NARROWEST);
    writeln!(out, "{}, {}", head(story), span(line.duration))?;
    let bars = || line.phases.iter().flat_map(|phase| &phase.bars);
    let labels = bars().map(|bar| label(story, &story.steps[bar.step]).chars().count());
    let label = labels.max().unwrap_or(0).min(LABEL).min(width / 3);
    let ends = bars().map(|bar| bar.ended.unwrap_or(bar.started));
    let axis = Axis::new(&line.idle);
    let picture = Picture {
        story,
        line,
        width,
        label,
        room: width - NUMBER - MOMENT - label - 2 - TOOK,
        end: axis.at(ends.max().unwrap_or(0)).max(1),
        axis,
    };
    let mut idle = line.idle.iter().peekable();
    for phase in &line.phases {
        while let Some(pause) = idle.next_if(|pause| pause.ended <= phase.started) {
            let what = format!("── idle {} ──", span(pause.ended - pause.started));
            writeln!(out, "{}", what.dimmed())?;
        }
        picture.phase(out, phase)?;
    }
    picture.sum(out)
}

/// Moments without the idleness before them.
struct Axis<'a> {
    idle: &'a [Idle],
    /// How long the first pauses were together: of none, of one, ….
    sums: Vec<u64>,
}

impl<'a> Axis<'a> {
    fn new(idle: &'a [Idle]) -> Self {
        let mut sums = vec![0];
        for pause in idle {
            let sum = sums.last().copied().unwrap_or(0_u64);
            sums.push(sum.saturating_add(pause.ended - pause.started));
        }
        Self { idle, sums }
    }

    fn at(&self, moment: u64) -> u64 {
        let over = self.idle.partition_point(|pause| pause.ended <= moment);
        let inside = self
            .idle
            .get(over)
            .map_or(0, |p| moment.saturating_sub(p.started));
        moment.saturating_sub(self.sums[over] + inside)
    }
}

struct Picture<'a> {
    story: &'a Story,
    line: &'a Timeline,
    width: usize,
    label: usize,
    /// Columns of the bars.
    room: usize,
    /// The last moment on the axis.
    end: u64,
    axis: Axis<'a>,
}

impl Picture<'_> {
    fn phase(&self, out: &mut impl Write, phase: &Phase) -> io::Result<()> {
        let name = match phase.kind {
            PhaseKind::Connect => "connect",
            PhaseKind::List => "list",
            PhaseKind::Work => "work",
            PhaseKind::Close => "close",
        };
        let took = span(phase.ended.saturating_sub(phase.started));
        let turn = phase.turn.and_then(|turn| self.story.turns.get(turn));
        let turn = turn.map_or(String::new(), |turn| {
            let id = crate::render::escape::text(turn.id.as_bytes(), 40);
            format!(", prompt {id}")
        });
        writeln!(out, "{}{turn} {}", name.bold(), took.dimmed())?;
        phase.bars.iter().try_for_each(|bar| self.bar(out, bar))
    }

    fn bar(&self, out: &mut impl Write, bar: &Bar) -> io::Result<()> {
        let step = &self.story.steps[bar.step];
        let took = step.duration.map_or(String::new(), seconds);
        let drawn = self.drawn(bar);
        let drawn = match took.is_empty() {
            true => drawn.trim_end(),
            false => &drawn,
        };
        let drawn = match step.outcome.is_failure() {
            true => drawn.red().to_string(),
            false if bar.slow.is_some() => drawn.yellow().to_string(),
            false => drawn.green().to_string(),
        };
        let line = format!(
            "{:>5} {:>10} {} {drawn} {took:>10}",
            step.number,
            seconds(bar.started),
            pad(&label(self.story, step), self.label),
        );
        writeln!(out, "{}", line.trim_end())?;
        let remarks = remarks(bar, step);
        if !remarks.is_empty() {
            let room = self.width - NUMBER - MOMENT;
            let indent = " ".repeat(NUMBER + MOMENT);
            writeln!(out, "{indent}{}", fit(&remarks, room).yellow())?;
        }
        Ok(())
    }

    fn drawn(&self, bar: &Bar) -> String {
        let column = |moment| {
            let at = u128::from(self.axis.at(moment)) * self.room as u128;
            (at / u128::from(self.end)) as usize
        };
        let first = column(bar.started).min(self.room - 1);
        let Some(ended) = bar.ended else {
            return pad(&format!("{}·", " ".repeat(first)), self.room);
        };
        let columns = column(ended).min(self.room).saturating_sub(first);
        let body = match columns {
            0 => "▏".to_owned(),
            columns => "█".repeat(columns),
        };
        pad(&format!("{}{body}", " ".repeat(first)), self.room)
    }

    /// What there is to say about the whole.
    fn sum(&self, out: &mut impl Write) -> io::Result<()> {
        let line = self.line;
        let bars = || line.phases.iter().flat_map(|phase| &phase.bars);
        let mut parts = vec![format!(
            "busy {} of {}",
            span(line.busy),
            span(line.duration)
        )];
        if !line.idle.is_empty() {
            let idle = line.idle.iter().map(|pause| pause.ended - pause.started);
            let pauses = count(line.idle.len(), "pause");
            parts.push(format!("idle {} in {pauses}", span(idle.sum())));
        }
        if let Some((most, step)) = line.most.filter(|(most, _)| *most > 1) {
            parts.push(format!("up to {most} at once (step {step})"));
        }
        let failed = bars().filter(|bar| self.story.steps[bar.step].outcome.is_failure());
        let (failed, retries) = (failed.count(), bars().filter(|b| b.retry.is_some()).count());
        let slow = bars().filter(|bar| bar.slow.is_some()).count();
        for (number, what) in [(failed, "failed step"), (slow, "slow step")] {
            if number > 0 {
                parts.push(count(number, what));
            }
        }
        match retries {
            0 => {}
            1 => parts.push("1 retry".into()),
            more => parts.push(format!("{more} retries")),
        }
        let mut text = String::new();
        for (at, part) in parts.iter().enumerate() {
            let begun = text
                .rsplit('\n')
                .next()
                .map_or(0, |line| line.chars().count());
            match at {
                0 => {}
                _ if begun + part.chars().count() + 3 > self.width => text.push_str(",\n"),
                _ => text.push_str(", "),
            }
            text.push_str(part);
        }
        writeln!(out, "{text}")
    }
}

fn remarks(bar: &Bar, step: &Step) -> String {
    let mut remarks = Vec::new();
    if step.outcome != agent_trace_model::Outcome::Ok {
        remarks.push(step.outcome.as_str().replace('_', " "));
    }
    if let Some(retry) = bar.retry {
        remarks.push(format!(
            "attempt {}, first in step {}",
            retry.attempt, retry.of
        ));
    }
    match bar.slow {
        Some(Slow::Limit) => remarks.push("slow".into()),
        Some(Slow::Median(times)) => remarks.push(format!("slow: {times} times the median")),
        None => {}
    }
    if bar.at_once > 1 {
        remarks.push(format!("{} at once", bar.at_once));
    }
    remarks.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_analysis::testing::Tale;
    use agent_trace_analysis::timeline::{Limits, of};

    fn printed(story: &Story, width: usize) -> String {
        let mut out = Vec::new();
        let line = of(story, Limits::default());
        print(
            &mut anstream::StripStream::new(&mut out),
            story,
            &line,
            width,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        // The first line holds a date of the local time zone.
        text.split_once('\n').unwrap().1.to_owned()
    }

    fn story() -> Story {
        Tale::new()
            .request("initialize", "{}")
            .result("{}")
            .tells("notifications/initialized", "{}")
            .request("tools/list", "{}")
            .result("{}")
            .call("read_note", r#"{"id":1}"#)
            .tool_error("busy")
            .takes(40)
            .call("read_note", r#"{"id":1}"#)
            .text("x")
            .takes(60)
            .at(60_000)
            .call(
                "a_tool_with_a_name_that_is_longer_than_there_is_room_for",
                "{}",
            )
            .text("x")
            .takes(100)
            .at(60_050)
            .call("other", "{}")
            .told()
    }

    #[test]
    fn bars_are_aligned_and_fit() {
        insta::assert_snapshot!(printed(&story(), 90), @"
        connect 10ms
            1   0.000000 notes initialize               █                                   0.010
            2      0.010 notes notifications/initializ…  ·
        list 10ms
            3      0.010 notes tools/list                █                                  0.010
        work 100ms
            4      0.020 notes read_note                  ██████                            0.040
                         tool error
            5      0.060 notes read_note                        ████████                    0.060
                         attempt 2, first in step 4
        ── idle 59.8s ──
        work 100ms
            6     60.000 notes a_tool_with_a_name_that…                 ██████████████      0.100
            7     60.050 notes other                                           ·
                         unanswered, 2 at once
        busy 220ms of 1m00s, idle 59.8s in 1 pause, up to 2 at once (step 7), 2 failed steps,
        1 retry
        ");
    }

    #[test]
    fn whatever_the_width_lines_fit() {
        for width in [1, 60, 61, 80, 200] {
            for line in printed(&story(), width).lines() {
                let columns = line.chars().count();
                assert!(columns <= width.max(NARROWEST), "{width}: {line}");
            }
        }
    }
}
