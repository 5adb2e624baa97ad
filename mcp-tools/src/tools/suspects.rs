//! Which steps may have broken a run.

use super::{Tool, within};
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, Opened, blocking};
use crate::scope::Scope;
use crate::text::Text;
use crate::view::RunView;
use agent_trace_analysis::suspects::{
    self, Called, Element, Left, Quote, Reason, Rule, Side, Suspect,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Suspects of an answer unless that is asked for.
const SUSPECTS: usize = 5;
/// The most.
const MOST: usize = 20;
/// Reasons of a suspect, and quotes of a reason, that are told.
const REASONS: usize = 8;
const QUOTES: usize = 3;
/// What only passing siblings have, as much of it as is told.
const MISSING: usize = 5;
/// Siblings that can be named.
const MOST_SIBLINGS: usize = suspects::MOST_SIBLINGS;

/// `rank_suspects`.
pub(crate) struct RankSuspects;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The run's id, the beginning of it, or `latest`.
    run: String,
    /// Runs to compare with, passed or failed; unless given, those that were started for the same
    /// task.
    #[serde(default)]
    siblings: Vec<String>,
    /// How many suspects at most, 5 unless given, no more than 20.
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    run: RunView,
    /// Steps with evidence against them, the most suspect first.
    suspects: Vec<SuspectView>,
    /// How many more there are.
    more: usize,
    /// What one would say by place alone, to compare with: the first steps that could be
    /// suspects, and the last.
    baseline: BaselineView,
    /// What it was compared with.
    siblings: SiblingsView,
    /// What passing siblings did and this run did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<ElementView>,
    /// What was not looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_looked_at: Vec<LeftView>,
    /// Quotes that were dropped because they are not word for word what is stored.
    #[serde(skip_serializing_if = "crate::answer::is_zero")]
    dropped_quotes: usize,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SuspectView {
    /// The number of the step.
    step: usize,
    /// The sum of the weights of its reasons. It orders the steps of this run; it is no
    /// probability.
    score: f64,
    /// What came of the step.
    outcome: &'static str,
    /// Why it is suspected, the weightiest first.
    reasons: Vec<ReasonView>,
    recorded: CalledText,
}

/// What a step asked of whom.
#[derive(Debug, Serialize, JsonSchema)]
struct CalledText {
    server: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Text>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReasonView {
    /// The rule that found it, in a word.
    #[schemars(with = "String")]
    rule: Rule,
    /// What it adds to the score.
    weight: f64,
    /// In words of ours.
    because: String,
    /// What it is based on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quotes: Vec<QuoteView>,
}

/// A piece of a message, compared with what is stored.
#[derive(Debug, Serialize, JsonSchema)]
struct QuoteView {
    /// The run, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The number of the step.
    step: usize,
    /// request or response.
    part: &'static str,
    /// Where in the message, in bytes: `get_step` takes it.
    offset: usize,
    /// How long, in bytes.
    length: usize,
    recorded: QuoteText,
}

#[derive(Debug, Serialize, JsonSchema)]
struct QuoteText {
    /// JSON pointer to the value.
    pointer: Text,
    /// What stands there, as JSON text.
    text: Text,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BaselineView {
    /// The numbers of the first steps.
    first: Vec<usize>,
    /// The numbers of the last steps, the last one first.
    last: Vec<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SiblingsView {
    /// How many passed.
    passing: usize,
    /// How many failed, this run included.
    failing: usize,
    /// Whether that is too few to tell much: less than three of each.
    weak: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ElementView {
    /// How many passing runs did it.
    passing: usize,
    /// How many failing runs did it.
    failing: usize,
    /// How likely that is by chance (Fisher's exact test, Holm's correction); not how likely it is
    /// that this broke the run.
    p: f64,
    recorded: CalledText,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LeftView {
    /// What, in one word.
    what: &'static str,
    /// How many.
    count: u64,
    /// In words.
    because: &'static str,
}

impl Tool for RankSuspects {
    const NAME: &'static str = "rank_suspects";
    const TITLE: &'static str = "Rank the suspects of a failed run";
    const DESCRIPTION: &'static str = "Ranks the steps that may have broken a run, by fixed \
        rules (errors and the producers of their inputs, empty results that were used later, \
        arguments that do not fit the schema, retries, drift of definitions, differences to \
        siblings, ...), each with its reasons, weights and exact quotes. No model is involved. \
        Use it when asked which step broke a run or why it failed; then get_step for the \
        evidence and trace_value for wrong values.";
    const HINT: Option<&'static str> = Some("why did a run fail, root cause of a failed run");
    const SCOPE: Scope = Scope::SuspectsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        if input.siblings.len() > MOST_SIBLINGS {
            let what = format!("{} siblings: {MOST_SIBLINGS} at most", input.siblings.len());
            return Err(ToolError::new("arguments", what));
        }
        let opened = asked.open(&input.run).await?;
        let (mut siblings, unseen) = match input.siblings.is_empty() {
            true => asked.siblings(&opened).await?,
            false => (Vec::new(), 0),
        };
        for name in &input.siblings {
            let sibling = asked.open(name).await?;
            let id = sibling.run.row.id;
            let is_new = id != opened.run.row.id && siblings.iter().all(|s| s.run.row.id != id);
            if is_new {
                siblings.push(sibling);
            }
        }
        let run = RunView::opened(asked, &opened);
        // Of siblings no answer is quoted in which something was found.
        let flagged = Flagged::of(&opened, &siblings);
        let most = within(input.limit, SUSPECTS, MOST);
        let ranking = blocking(move || {
            let beside = siblings.iter().map(|s| (&s.story, s.run.failed()));
            suspects::rank_beside(&opened.story, opened.run.verdict(), beside, unseen, most)
        })
        .await?;
        let mut budget = asked.budget();
        budget.takes(&run);
        let left_views: Vec<LeftView> = ranking.not_looked_at.iter().map(LeftView::of).collect();
        budget.takes(&left_views);
        let mut for_missing = budget.set_aside(budget.text() / 6);
        let missing = ranking.missing.iter().take(MISSING).map(ElementView::of);
        let (missing, _) = for_missing.fill(missing);
        let views = ranking
            .suspects
            .iter()
            .map(|suspect| SuspectView::of(suspect, &flagged));
        let (suspects, shrunk, left) = budget.fill_or(views, SuspectView::drop_quotes);
        let mut truncated = Vec::new();
        if shrunk > 0 {
            let what = format!("the quotes of {shrunk} suspects");
            truncated.push(Cut::new(what, "get_step has the steps"));
        }
        if left > 0 {
            let what = format!("{left} suspects");
            truncated.push(Cut::new(
                what,
                "rank_suspects with a lower limit has the first",
            ));
        }
        Ok(Output {
            run,
            more: ranking.more + left,
            suspects,
            baseline: BaselineView {
                first: first(&ranking.baseline.first),
                last: first(&ranking.baseline.last),
            },
            siblings: SiblingsView {
                passing: ranking.siblings.passing,
                failing: ranking.siblings.failing,
                weak: ranking.siblings.weak,
            },
            missing,
            not_looked_at: left_views,
            dropped_quotes: ranking.dropped_quotes,
            truncated,
        })
    }
}

/// Steps whose answers are not shown unasked, by run.
struct Flagged {
    own: BTreeSet<usize>,
    of: BTreeMap<String, BTreeSet<usize>>,
}

impl Flagged {
    fn of(run: &Opened, siblings: &[Opened]) -> Self {
        let named = |run: &Opened| (run.run.row.id.to_string(), run.flagged.clone());
        Self {
            own: run.flagged.clone(),
            of: siblings.iter().map(named).collect(),
        }
    }

    fn has(&self, quote: &Quote) -> bool {
        let steps = match &quote.run {
            Some(run) => self.of.get(run),
            None => Some(&self.own),
        };
        let is_answer = matches!(quote.message, Side::Response);
        is_answer && steps.is_none_or(|steps| steps.contains(&quote.step))
    }
}

/// As many as say something.
fn first(numbers: &[usize]) -> Vec<usize> {
    numbers.iter().take(SUSPECTS).copied().collect()
}

impl CalledText {
    fn of(called: &Called) -> Self {
        Self {
            server: Text::name(&called.server),
            method: called.method.as_ref().map(Text::name),
            target: called.target.as_ref().map(Text::name),
        }
    }
}

impl SuspectView {
    fn drop_quotes(&mut self) {
        for reason in &mut self.reasons {
            reason.quotes.clear();
        }
    }

    fn of(suspect: &Suspect, flagged: &Flagged) -> Self {
        let reasons = suspect.reasons.iter().take(REASONS);
        Self {
            step: suspect.step,
            score: suspect.score.value(),
            outcome: suspect.outcome.as_str(),
            reasons: reasons
                .map(|reason| ReasonView::of(reason, flagged))
                .collect(),
            recorded: CalledText::of(&suspect.recorded),
        }
    }
}

impl ReasonView {
    fn of(reason: &Reason, flagged: &Flagged) -> Self {
        Self {
            rule: reason.rule,
            weight: reason.weight.value(),
            because: reason.because.clone(),
            quotes: reason
                .quotes
                .iter()
                .take(QUOTES)
                .map(|quote| QuoteView::of(quote, flagged))
                .collect(),
        }
    }
}

impl QuoteView {
    fn of(quote: &Quote, flagged: &Flagged) -> Self {
        Self {
            run: quote.run.clone(),
            step: quote.step,
            part: match quote.message {
                Side::Request => "request",
                Side::Response => "response",
            },
            offset: quote.offset,
            length: quote.length,
            recorded: QuoteText {
                pointer: Text::name(&quote.recorded.pointer),
                text: match flagged.has(quote) {
                    true => Text::withheld(),
                    false => Text::line(&quote.recorded.text),
                },
            },
        }
    }
}

impl ElementView {
    fn of(element: &Element) -> Self {
        Self {
            passing: element.ep,
            failing: element.ef,
            p: element.p,
            recorded: CalledText::of(&element.recorded),
        }
    }
}

impl LeftView {
    fn of(left: &Left) -> Self {
        Self {
            what: left.what,
            count: left.count,
            because: left.because,
        }
    }
}
