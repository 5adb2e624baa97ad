//! Two runs, step by step.

use super::Tool;
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, Opened, blocking};
use crate::scope::Scope;
use crate::text::Text;
use crate::view::StepView;
use agent_trace_analysis::diff::{self, Entry};
use agent_trace_analysis::diff::{Change, Changes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `compare_runs`.
pub(crate) struct CompareRuns;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id of the first run, or the beginning of it: the one that went well, for instance.
    /// Unless given, the nearest run that was started for the same task and passed.
    a: Option<String>,
    /// The id of the second run, the beginning of it, or `latest`.
    b: String,
    /// Only differences after so many.
    #[serde(default)]
    after: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The id of the first run.
    a: String,
    /// The id of the second.
    b: String,
    /// Whether nothing differs but how long things took.
    same: bool,
    /// How many steps are the same in both.
    same_steps: usize,
    /// Sessions that ended otherwise in the second run, or crashed and are in one run only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    endings: Vec<EndingView>,
    /// What differs, in the order of the first run.
    differences: Vec<Difference>,
    /// Where to go on, if there are more: pass it as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EndingView {
    /// The number of the session in the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<usize>,
    /// In the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Difference {
    /// `only_a`, `only_b` or both.
    of: &'static str,
    /// The step of the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<StepView>,
    /// The step of the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<StepView>,
    /// Whether it stands in another place among the others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    moved: bool,
    recorded: DifferenceText,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct DifferenceText {
    /// How the arguments differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<ChangeView>,
    /// How the answers differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answer: Vec<ChangeView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangeView {
    /// Where, as a JSON pointer.
    at: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Text>,
}

/// Changes of a message that are told.
const CHANGES: usize = 6;

impl Tool for CompareRuns {
    const NAME: &'static str = "compare_runs";
    const TITLE: &'static str = "Compare two runs";
    const DESCRIPTION: &'static str = "Aligns the steps of two runs and tells which are in one \
        only, and how arguments, answers and outcomes of the others differ. Use it with a run \
        that went well and one that failed.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let b = asked.open(&input.b).await?;
        let a = match &input.a {
            Some(a) => asked.open(a).await?,
            None => asked.open(&passed(asked, &b).await?).await?,
        };
        let ids = (a.run.row.id.to_string(), b.run.row.id.to_string());
        let budget = asked.budget();
        blocking(move || {
            let diff = diff::of(&a.story, &b.story);
            let mut budget = budget;
            let number = |at: Option<usize>| at.map(|at| at + 1);
            let endings = diff.endings.iter().map(|ended| EndingView {
                a: number(ended.a),
                b: number(ended.b),
            });
            let mut for_endings = budget.set_aside(budget.text() / 4);
            let (endings, more_endings) = for_endings.fill(endings);
            budget.give_back(for_endings);
            let entries = diff.entries.iter().skip(input.after);
            let of = entries.map(|entry| Difference::of(&a, &b, entry));
            let (differences, shrunk, left) = budget.fill_or(of, |difference| {
                difference.recorded = DifferenceText::default();
            });
            let mut truncated = Vec::new();
            if more_endings > 0 {
                let what = format!("{more_endings} sessions that ended otherwise");
                truncated.push(Cut::new(what, "get_run has the sessions of each run"));
            }
            if shrunk > 0 {
                let what = format!("how the messages of {shrunk} steps differ");
                truncated.push(Cut::new(what, "get_step of both"));
            }
            if left > 0 {
                let what = format!("{left} differences");
                truncated.push(Cut::new(what, "ask with `after` set to `next`"));
            }
            Output {
                a: ids.0,
                b: ids.1,
                same: diff.is_same(),
                same_steps: diff.same,
                next: (left > 0).then_some(input.after + differences.len()),
                endings,
                differences,
                truncated,
            }
        })
        .await
    }
}

/// The id of the nearest run of the same task that passed.
async fn passed(asked: &Asked, run: &Opened) -> Result<String, ToolError> {
    let chosen = asked.of_its_task(&run.run).await?;
    let passed = chosen.runs.iter().find(|other| !other.failed());
    passed.map(|run| run.row.id.to_string()).ok_or_else(|| {
        ToolError::new("not_found", "no run of the same task is known that passed")
            .hint("name one as `a`: list_runs with the filter !~failed has those that passed")
    })
}

impl Difference {
    fn of(a: &Opened, b: &Opened, entry: &Entry) -> Self {
        let view = |run: &Opened, at: usize| {
            let step = run.story.steps.get(at)?;
            Some(StepView::of(run, step))
        };
        let is_flagged = |run: &Opened, at: usize| {
            let step = run.story.steps.get(at);
            step.is_some_and(|step| run.flagged.contains(&step.number))
        };
        let (of, at_a, at_b) = match entry {
            Entry::OnlyA(at) => ("only_a", Some(*at), None),
            Entry::OnlyB(at) => ("only_b", None, Some(*at)),
            Entry::Both(both) => ("both", Some(both.a), Some(both.b)),
        };
        let (moved, recorded) = match entry {
            Entry::Both(both) => (
                both.moved,
                DifferenceText {
                    arguments: changes(&both.arguments),
                    // How it differs would show what it is.
                    answer: match is_flagged(a, both.a) || is_flagged(b, both.b) {
                        true => Vec::new(),
                        false => changes(&both.answer),
                    },
                },
            ),
            _ => (false, DifferenceText::default()),
        };
        Self {
            of,
            a: at_a.and_then(|at| view(a, at)),
            b: at_b.and_then(|at| view(b, at)),
            moved,
            recorded,
        }
    }
}

fn changes(changes: &Changes) -> Vec<ChangeView> {
    changes
        .told
        .iter()
        .take(CHANGES)
        .map(ChangeView::of)
        .collect()
}

impl ChangeView {
    fn of(change: &Change) -> Self {
        Self {
            at: Text::name(change.at.to_string()),
            before: change.before.as_ref().map(Text::name),
            after: change.after.as_ref().map(Text::name),
        }
    }
}
