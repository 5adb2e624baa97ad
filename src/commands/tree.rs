//! `tree`: sessions, prompts and steps, and what happened because of what.

use crate::cli::understand::{Form, Tree as Args};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::escape::text;
use crate::render::time::seconds;
use crate::render::words::{Named, asks, head};
use crate::render::{json, standing};
use agent_trace_analysis::tree::{self, Branch, By, Limb, Twig};
use agent_trace_model::step::Step;
use agent_trace_model::story::{Session, Standing, Story};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let story = query::story(config, &args.run)?;
    let branches = tree::of(&story);
    match args.format {
        Form::Text => {
            let printer = Printer {
                story: &story,
                limit: args.string_limit,
            };
            printer.print(&mut anstream::stdout().lock(), &branches)?;
        }
        Form::Json => json::document(&Document::of(&story, &branches))?,
    }
    Ok(exit::SUCCESS)
}

struct Printer<'a> {
    story: &'a Story,
    limit: usize,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write, branches: &[Branch]) -> io::Result<()> {
        writeln!(out, "{}", head(self.story))?;
        for (at, branch) in branches.iter().enumerate() {
            let is_last = at + 1 == branches.len();
            let (joint, indent) = joints("", is_last);
            let session = &self.story.sessions[branch.session];
            writeln!(
                out,
                "{joint}{} {}",
                name(session).bold(),
                standing(session).dimmed()
            )?;
            self.limbs(out, &branch.turns, &indent)?;
        }
        Ok(())
    }

    fn limbs(&self, out: &mut impl Write, limbs: &[Limb], indent: &str) -> io::Result<()> {
        for (at, limb) in limbs.iter().enumerate() {
            let is_last = at + 1 == limbs.len();
            let turn = limb.turn.and_then(|turn| self.story.turns.get(turn));
            let Some(turn) = turn else {
                self.twigs(out, &limb.steps, indent, is_last)?;
                continue;
            };
            let (joint, inside) = joints(indent, is_last);
            writeln!(out, "{joint}prompt {}", text(turn.id.as_bytes(), 60))?;
            self.twigs(out, &limb.steps, &inside, true)?;
        }
        Ok(())
    }

    /// No deeper than the tree, which is not deep.
    fn twigs(
        &self,
        out: &mut impl Write,
        twigs: &[Twig],
        indent: &str,
        ends: bool,
    ) -> io::Result<()> {
        for (at, twig) in twigs.iter().enumerate() {
            let (joint, inside) = joints(indent, ends && at + 1 == twigs.len());
            let step = &self.story.steps[twig.step];
            let guess = match twig.by {
                Some(By::OnlyOneOpen) => " (the only request that was open)",
                _ => "",
            };
            writeln!(
                out,
                "{joint}{} {}{}{}",
                step.number,
                asks(self.story, step, self.limit),
                outcome(step),
                guess.dimmed()
            )?;
            self.twigs(out, &twig.under, &inside, true)?;
        }
        Ok(())
    }
}

/// What stands before an entry, and before what is in it.
fn joints(indent: &str, is_last: bool) -> (String, String) {
    match is_last {
        true => (format!("{indent}└─ "), format!("{indent}   ")),
        false => (format!("{indent}├─ "), format!("{indent}│  ")),
    }
}

fn name(session: &Session) -> String {
    text(session.server.as_bytes(), 60)
}

fn outcome(step: &Step) -> String {
    let mut text = String::new();
    if step.outcome != agent_trace_model::Outcome::Ok {
        let word = step.outcome.as_str().replace('_', " ");
        text = match step.outcome.is_failure() {
            true => format!(" {}", word.red()),
            false => format!(" {}", word.yellow()),
        };
    }
    if let Some(took) = step.duration {
        text.push_str(&format!(" {}", format!("<{}>", seconds(took)).dimmed()));
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    run: String,
    sessions: Vec<SessionNode<'a>>,
}

#[derive(Serialize)]
struct SessionNode<'a> {
    session: String,
    server: &'a str,
    client: &'a str,
    standing: Standing,
    turns: Vec<TurnNode<'a>>,
}

#[derive(Serialize)]
struct TurnNode<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<&'a str>,
    steps: Vec<StepNode<'a>>,
}

#[derive(Serialize)]
struct StepNode<'a> {
    #[serde(flatten)]
    step: Named<'a>,
    /// How it is known to belong under the step that it is under.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<By>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    under: Vec<Self>,
}

impl<'a> Document<'a> {
    fn of(story: &'a Story, branches: &[Branch]) -> Self {
        let turn = |limb: &Limb| TurnNode {
            turn: limb
                .turn
                .and_then(|turn| Some(&story.turns.get(turn)?.id[..])),
            steps: limb
                .steps
                .iter()
                .map(|twig| StepNode::of(story, twig))
                .collect(),
        };
        let session = |branch: &Branch| {
            let session = &story.sessions[branch.session];
            SessionNode {
                session: session.id.to_string(),
                server: &session.server,
                client: &session.client,
                standing: session.standing,
                turns: branch.turns.iter().map(turn).collect(),
            }
        };
        Self {
            run: story.id.to_string(),
            sessions: branches.iter().map(session).collect(),
        }
    }
}

impl<'a> StepNode<'a> {
    fn of(story: &'a Story, twig: &Twig) -> Self {
        Self {
            step: Named::of(story, &story.steps[twig.step]),
            by: twig.by,
            under: twig
                .under
                .iter()
                .map(|twig| Self::of(story, twig))
                .collect(),
        }
    }
}
