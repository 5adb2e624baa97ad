//! `diff`: what is different between two runs.

use crate::cli::Format;
use crate::cli::understand::Diff as Args;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::escape::text;
use crate::render::json;
use crate::render::time::seconds;
use crate::render::words::{Named, answers, asks, count, head, is_answered};
use crate::render::{ending, standing};
use agent_trace_analysis::diff::{self, Both, Change, Changes, Diff, Ended, Entry};
use agent_trace_model::story::{Session, Standing, Story};
use agent_trace_model::{End, Outcome};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let a = query::story(config, &args.a)?;
    let b = query::story(config, &args.b)?;
    let diff = diff::of(&a, &b);
    let endings = || diff.endings.iter().map(|ended| Ending::of(&a, &b, *ended));
    let lines = || diff.entries.iter().map(|entry| Line::of(&a, &b, entry));
    match args.format {
        Format::Text => {
            let printer = Printer {
                a: &a,
                b: &b,
                limit: args.string_limit,
            };
            printer.print(&mut anstream::stdout().lock(), &diff)?;
        }
        Format::Json => json::document(&Document {
            a: a.id.to_string(),
            b: b.id.to_string(),
            is_same: diff.is_same(),
            same_steps: diff.same,
            endings: endings().collect(),
            differences: lines().collect(),
        })?,
        Format::Jsonl => {
            lines().try_for_each(|line| json::line(&line))?;
            endings().try_for_each(|ending| json::line(&ending))?;
        }
    }
    Ok(match diff.is_same() {
        true => exit::SUCCESS,
        false => exit::FOUND,
    })
}

#[derive(Serialize)]
struct Document<'a> {
    a: String,
    b: String,
    is_same: bool,
    same_steps: usize,
    endings: Vec<Ending<'a>>,
    differences: Vec<Line<'a>>,
}

/// A session that ended otherwise.
#[derive(Serialize)]
struct Ending<'a> {
    /// `ended`.
    difference: &'static str,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Stands<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Stands<'a>>,
}

#[derive(Serialize)]
struct Stands<'a> {
    session: String,
    standing: Standing,
    #[serde(flatten)]
    end: Option<&'a End>,
}

impl<'a> Ending<'a> {
    fn of(a: &'a Story, b: &'a Story, ended: Ended) -> Self {
        let (a, b) = sessions(a, b, ended);
        let stands = |session: &'a Session| Stands {
            session: session.id.to_string(),
            standing: session.standing,
            end: session.end.as_ref(),
        };
        Self {
            difference: "ended",
            server: a.or(b).map_or("", |session| &session.server),
            a: a.map(stands),
            b: b.map(stands),
        }
    }
}

fn sessions<'a>(
    a: &'a Story,
    b: &'a Story,
    ended: Ended,
) -> (Option<&'a Session>, Option<&'a Session>) {
    let of = |story: &'a Story, at: Option<usize>| at.and_then(|at| story.sessions.get(at));
    (of(a, ended.a), of(b, ended.b))
}

/// A difference.
#[derive(Serialize)]
struct Line<'a> {
    /// `only_a`, `only_b`, `changed`, or `slower_or_faster`, which makes no difference.
    difference: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Named<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Named<'a>>,
    #[serde(flatten)]
    changed: Option<Changed<'a>>,
}

#[derive(Serialize)]
struct Changed<'a> {
    moved: bool,
    #[serde(skip_serializing_if = "Changes::is_empty")]
    arguments: &'a Changes,
    #[serde(skip_serializing_if = "Changes::is_empty")]
    answer: &'a Changes,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Pair<Outcome>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Pair<u64>>,
}

#[derive(Serialize)]
struct Pair<T> {
    before: T,
    after: T,
}

impl<T> From<(T, T)> for Pair<T> {
    fn from((before, after): (T, T)) -> Self {
        Self { before, after }
    }
}

impl<'a> Line<'a> {
    fn of(a: &'a Story, b: &'a Story, entry: &'a Entry) -> Self {
        let in_a = |at: usize| Some(Named::of(a, &a.steps[at]));
        let in_b = |at: usize| Some(Named::of(b, &b.steps[at]));
        let line = |difference, a, b, changed| Self {
            difference,
            a,
            b,
            changed,
        };
        match entry {
            Entry::OnlyA(at) => line("only_a", in_a(*at), None, None),
            Entry::OnlyB(at) => line("only_b", None, in_b(*at), None),
            Entry::Both(both) => {
                let changed = Changed {
                    moved: both.moved,
                    arguments: &both.arguments,
                    answer: &both.answer,
                    outcome: both.outcome.map(Into::into),
                    duration: both.duration.map(Into::into),
                };
                let what = match both.is_same() {
                    true => "slower_or_faster",
                    false => "changed",
                };
                line(what, in_a(both.a), in_b(both.b), Some(changed))
            }
        }
    }
}

struct Printer<'a> {
    a: &'a Story,
    b: &'a Story,
    limit: usize,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write, diff: &Diff) -> io::Result<()> {
        writeln!(out, "a {}\nb {}", head(self.a), head(self.b))?;
        for entry in &diff.entries {
            match entry {
                Entry::OnlyA(at) => {
                    let line = format!("- {:>5} {:>5}  {}", at + 1, "", self.step(self.a, *at));
                    writeln!(out, "{}", line.red())?;
                }
                Entry::OnlyB(at) => {
                    let line = format!("+ {:>5} {:>5}  {}", "", at + 1, self.step(self.b, *at));
                    writeln!(out, "{}", line.green())?;
                }
                Entry::Both(both) => self.both(out, both)?,
            }
        }
        for ended in &diff.endings {
            self.ended(out, *ended)?;
        }
        self.sum(out, diff)
    }

    /// A step in one line, without colours of its own.
    fn step(&self, story: &Story, at: usize) -> String {
        let step = &story.steps[at];
        let mut line = asks(story, step, self.limit);
        if is_answered(step) {
            line = format!("{line} = {}", answers(story, step, self.limit));
        }
        anstream::adapter::strip_str(&line).to_string()
    }

    /// How a session ended, in both runs.
    fn ended(&self, out: &mut impl Write, ended: Ended) -> io::Result<()> {
        let (a, b) = sessions(self.a, self.b, ended);
        let server = a.or(b).map_or("?", |session| &session.server);
        let server = text(server.as_bytes(), 40);
        let how = |session: Option<&Session>| match session {
            Some(session) => format!("{}{}", standing(session), ending(session)),
            None => "no such session".into(),
        };
        let sign = "~".yellow();
        writeln!(out, "{sign} how the session with {} ended:", server.cyan())?;
        writeln!(out, "    {} → {}", how(a).red(), how(b).green())
    }

    fn both(&self, out: &mut impl Write, both: &Both) -> io::Result<()> {
        let asks = asks(self.a, &self.a.steps[both.a], self.limit);
        let sign = "~".yellow();
        writeln!(out, "{sign} {:>5} {:>5}  {asks}", both.a + 1, both.b + 1)?;
        if both.moved {
            writeln!(
                out,
                "    moved: it stands in another place among the others"
            )?;
        }
        for (word, changes) in [("arguments", &both.arguments), ("answer", &both.answer)] {
            changes
                .told
                .iter()
                .try_for_each(|change| self.change(out, word, change))?;
            if changes.more > 0 {
                writeln!(
                    out,
                    "    {word}: {}",
                    count(changes.more, "more difference")
                )?;
            }
        }
        if let Some((a, b)) = both.outcome {
            writeln!(
                out,
                "    outcome: {} → {}",
                a.as_str().red(),
                b.as_str().green()
            )?;
        }
        if let Some((a, b)) = both.duration {
            writeln!(out, "    time: {} → {}", seconds(a), seconds(b))?;
        }
        Ok(())
    }

    fn change(&self, out: &mut impl Write, word: &str, change: &Change) -> io::Result<()> {
        let side = |side: &Option<String>| match side {
            Some(value) => text(value.as_bytes(), self.limit),
            None => "(nothing)".into(),
        };
        let at = text(change.at.to_string().as_bytes(), 0);
        let (before, after) = (side(&change.before), side(&change.after));
        writeln!(out, "    {word} {at}: {} → {}", before.red(), after.green())
    }

    fn sum(&self, out: &mut impl Write, diff: &Diff) -> io::Result<()> {
        let how_many = |is: &dyn Fn(&Entry) -> bool| diff.entries.iter().filter(|e| is(e)).count();
        let only_a = how_many(&|entry| matches!(entry, Entry::OnlyA(_)));
        let only_b = how_many(&|entry| matches!(entry, Entry::OnlyB(_)));
        let changed = how_many(&|entry| matches!(entry, Entry::Both(both) if !both.is_same()));
        if diff.is_same() {
            return writeln!(out, "the same: {}", count(diff.same, "step"));
        }
        let ended = match diff.endings.len() {
            0 => String::new(),
            ended => format!(", {} ended otherwise", count(ended, "session")),
        };
        writeln!(
            out,
            "{} the same, {changed} different, {only_a} only in a, {only_b} only in b{ended}",
            count(diff.same, "step")
        )
    }
}
