//! A run in plain words.

use super::Tool;
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, blocking, withheld};
use crate::scope::Scope;
use crate::text::Text;
use crate::view::RunView;
use agent_trace_analysis::explain::{self, Judged, Point, Quote, Topic};
use agent_trace_analysis::timeline::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `explain_run`.
pub(crate) struct ExplainRun;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The run's id, the beginning of it, or `latest`.
    run: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    run: RunView,
    /// What there is to say, each with the steps that it is about.
    points: Vec<PointView>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PointView {
    /// judged, asked, failed, recovered, unanswered, lost or unknown.
    topic: &'static str,
    /// The numbers of the steps.
    steps: Vec<usize>,
    /// How many more there are.
    #[serde(skip_serializing_if = "crate::answer::is_zero")]
    more_steps: usize,
    recorded: PointText,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PointText {
    /// The sentence, which names what was recorded.
    text: Text,
    /// What it is based on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quotes: Vec<QuoteView>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct QuoteView {
    /// The number of the step; none of a line on standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    /// What of it: arguments, answer or stderr.
    of: &'static str,
    text: Text,
}

impl Tool for ExplainRun {
    const NAME: &'static str = "explain_run";
    const TITLE: &'static str = "Explain a run";
    const DESCRIPTION: &'static str = "Tells in plain words what a run asked for, what failed, \
        what was made good, what got no answer and what the recording lacks, with quotes. No \
        model is involved. Use it for an overview; rank_suspects tells which step broke it.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let opened = asked.open(&input.run).await?;
        let run = RunView::opened(asked, &opened);
        let limits = Limits {
            slow: asked.reader.slow,
            ..Limits::default()
        };
        let flagged = opened.flagged.clone();
        let explained = blocking(move || {
            let decision = opened.run.decision.as_ref();
            let judged = decision.map(|decision| Judged {
                verdict: decision.verdict,
                by: decision.by,
                reason: &decision.reason,
            });
            explain::of(&opened.story, judged, limits)
        });
        let explained = explained.await?;
        let mut budget = asked.budget();
        budget.takes(&run);
        let views = explained
            .points
            .iter()
            .map(|point| PointView::of(point, &flagged));
        let (points, _, left) = budget.fill_or(views, |point| point.recorded.quotes.clear());
        let truncated = (left > 0).then(|| {
            Cut::new(
                format!("{left} sentences"),
                "get_run and get_step have what they are about",
            )
        });
        Ok(Output {
            run,
            points,
            truncated: truncated.into_iter().collect(),
        })
    }
}

impl PointView {
    fn of(point: &Point, flagged: &BTreeSet<usize>) -> Self {
        Self {
            topic: match point.topic {
                Topic::Judged => "judged",
                Topic::Asked => "asked",
                Topic::Failed => "failed",
                Topic::Recovered => "recovered",
                Topic::Unanswered => "unanswered",
                Topic::Lost => "lost",
                Topic::Unknown => "unknown",
            },
            steps: point.steps.clone(),
            more_steps: point.more_steps,
            recorded: PointText {
                text: Text::of(&point.text, 1_000),
                quotes: point
                    .quotes
                    .iter()
                    .map(|quote| QuoteView::of(quote, flagged))
                    .collect(),
            },
        }
    }
}

impl QuoteView {
    fn of(quote: &Quote, flagged: &BTreeSet<usize>) -> Self {
        let step = quote.step.filter(|_| quote.of == "answer");
        Self {
            step: quote.step,
            of: quote.of,
            text: withheld(flagged, step, Text::line(&quote.text)),
        }
    }
}
