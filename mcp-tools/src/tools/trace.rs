//! Where the values of a step came from.

use super::Tool;
use super::step::no_step;
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, blocking, withheld};
use crate::scope::Scope;
use crate::text::Text;
use agent_trace_analysis::scalars::Place;
use agent_trace_analysis::why::{self, Flow, Likeness, Link, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `trace_value`.
pub(crate) struct TraceValue;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The run's id, the beginning of it, or `latest`.
    run: String,
    /// The number of the step whose values are traced.
    step: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The run's id.
    run: String,
    /// The step first, then those whose values flow into it, then those whose values flow into
    /// these.
    chain: Vec<LinkView>,
    /// How many messages before the step the recording does not have whole: a value may have
    /// been there.
    not_whole: usize,
    /// Whether something before the step may be missing in the recording.
    incomplete: bool,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LinkView {
    /// The step's number.
    step: usize,
    /// Its values.
    values: Vec<FlowView>,
    /// How many of its values are left out.
    #[serde(skip_serializing_if = "crate::answer::is_zero")]
    more: usize,
    /// How many are everywhere (true, false, null, 0, 1) and not traced.
    #[serde(skip_serializing_if = "crate::answer::is_zero")]
    common: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FlowView {
    /// What of the step the value stands in.
    part: &'static str,
    /// before (it appeared in an earlier step), nowhere (whoever said it brought it in),
    /// `not_searched` (no equal value; not all texts were searched for it) or `too_short` (to be
    /// told from chance).
    source: &'static str,
    /// The number of the step that it first appeared in.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_step: Option<usize>,
    /// What of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_part: Option<&'static str>,
    /// same, inside (a longer text) or word (maybe by chance).
    #[serde(skip_serializing_if = "Option::is_none")]
    likeness: Option<&'static str>,
    recorded: FlowText,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FlowText {
    /// Where the value stands, as a JSON pointer.
    at: Text,
    value: Text,
    /// Where it first stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_at: Option<Text>,
    /// What stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    quote: Option<Text>,
}

impl Tool for TraceValue {
    const NAME: &'static str = "trace_value";
    const TITLE: &'static str = "Trace the values of a step";
    const DESCRIPTION: &'static str = "Tells where the arguments of a step came from: for each \
        value the earlier step whose result, argument or error first held it, and so on back. \
        Use it to find the step that produced a wrong value.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let opened = asked.open(&input.run).await?;
        let run = opened.run.row.id;
        let flagged = opened.flagged.clone();
        let traced = blocking(move || why::of(&opened.story, input.step)).await?;
        let Some(traced) = traced else {
            return Err(no_step(input.step));
        };
        let mut budget = asked.budget();
        let links = traced.chain.iter().map(|link| LinkView::of(link, &flagged));
        let (chain, shrunk, left) = budget.fill_or(links, |link| {
            link.more += link.values.len();
            link.values.clear();
        });
        let left = left + traced.more;
        let mut truncated = Vec::new();
        if shrunk > 0 {
            let what = format!("the values of {shrunk} steps");
            truncated.push(Cut::new(what, "trace_value of one of them"));
        }
        if left > 0 {
            let get = "trace_value of the last step of the chain";
            truncated.push(Cut::new(format!("{left} steps of the chain"), get));
        }
        Ok(Output {
            run: run.to_string(),
            chain,
            not_whole: traced.not_whole,
            incomplete: !traced.not_recorded.is_empty(),
            truncated,
        })
    }
}

/// Values of a step that are told.
const VALUES: usize = 12;

impl LinkView {
    fn of(link: &Link, flagged: &BTreeSet<usize>) -> Self {
        let left = link.flows.len().saturating_sub(VALUES);
        Self {
            step: link.step,
            values: link
                .flows
                .iter()
                .take(VALUES)
                .map(|flow| FlowView::of(flow, flagged))
                .collect(),
            more: link.more + left,
            common: link.common,
        }
    }
}

impl FlowView {
    fn of(flow: &Flow, flagged: &BTreeSet<usize>) -> Self {
        let place = |at: &Place| Text::name(at.to_string());
        let (source, origin) = match &flow.source {
            Source::Before(origin) => ("before", Some(origin)),
            Source::Nowhere => ("nowhere", None),
            Source::NotSearched => ("not_searched", None),
            Source::TooShort => ("too_short", None),
        };
        Self {
            part: flow.part.as_str(),
            source,
            from_step: origin.map(|origin| origin.step),
            from_part: origin.map(|origin| origin.origin.as_str()),
            likeness: origin.map(|origin| match origin.likeness {
                Likeness::Same => "same",
                Likeness::Inside => "inside",
                Likeness::Word => "word",
            }),
            recorded: FlowText {
                at: place(&flow.at),
                value: Text::name(&flow.value),
                from_at: origin.map(|origin| place(&origin.origin_at)),
                quote: origin
                    .map(|origin| withheld(flagged, Some(origin.step), Text::name(&origin.quote))),
            },
        }
    }
}
