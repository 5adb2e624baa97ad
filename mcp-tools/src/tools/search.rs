//! Steps that match, over many runs.

use super::{Tool, within};
use crate::answer::{Budget, Cut, ToolError};
use crate::ask::{Asked, Opened, blocking, cursor};
use crate::scope::Scope;
use crate::text::{LINE, Text};
use crate::view::StepView;
use agent_trace_analysis::filter::Filter;
use agent_trace_analysis::quote;
use agent_trace_index::filed;
use agent_trace_index::listing::RunsQuery;
use agent_trace_model::step::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps of an answer unless that is asked for.
const HITS: usize = 20;
/// The most.
const MOST: usize = 200;
/// The newest runs that are looked at unless that is asked for, and the most.
const LAST: usize = 1_000;
const MOST_RUNS: usize = 10_000;
/// Steps of one run that are told.
const OF_A_RUN: usize = 10;
/// Runs that are opened between two looks at what is wanted.
const BLOCK: usize = 20;
/// Characters around a text that was found.
const AROUND: usize = 160;

/// `search_steps`.
pub(crate) struct SearchSteps;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Steps whose messages hold this text, whatever its case, also within longer words. Among many
    /// runs whole words, by the filter `~w WORD`, are found sooner.
    text: Option<String>,
    /// Steps that match this: ~t TOOL, ~s SERVER, ~m METHOD, ~e failed, ~q unanswered, ~b TEXT
    /// in any message, ~bq in requests, ~bs in answers, ~w WORD, ~d >2s (duration), ~x CODE;
    /// with ! & | and parentheses. Names match in part.
    filter: Option<String>,
    /// Only in this run.
    run: Option<String>,
    /// Only among so many of the newest runs; 1,000 unless given, no more than 10,000.
    last: Option<usize>,
    /// How many steps at most, 20 unless given, no more than 200.
    limit: Option<usize>,
    /// Go on from here: `next` of the answer before, with the same filter, run and `last`.
    after: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    hits: Vec<Hit>,
    /// Where to go on, if there is more to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Hit {
    /// The run that it is in.
    run: String,
    step: StepView,
    recorded: HitText,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct HitText {
    /// What stands around the text that was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    around: Option<Text>,
}

impl Tool for SearchSteps {
    const NAME: &'static str = "search_steps";
    const TITLE: &'static str = "Search steps";
    const DESCRIPTION: &'static str = "Finds steps of any run by a text in their requests or \
        answers, or by a filter over tool, server, method, outcome and duration. Use it to find \
        where a value, an error or a file was seen.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let text = wanted(&input)?;
        let filter = asked.filter(&text)?;
        let limit = within(input.limit, HITS, MOST);
        let mut found = Found {
            left: limit,
            budget: asked.budget(),
            hits: Vec::new(),
            truncated: Vec::new(),
        };
        if let Some(name) = &input.run {
            return of_run(asked, name, &filter, &input, found).await;
        }
        let mut query = RunsQuery {
            last: input.last.unwrap_or(LAST).clamp(1, MOST_RUNS),
            cursor: cursor(input.after.as_deref())?,
            limit: BLOCK,
            ..asked.query(Some(&text))
        };
        loop {
            let page = asked.runs(query.clone()).await?;
            for run in &page.runs {
                let id = run.row.id;
                // One that is not there any more was removed meanwhile.
                let Ok(file) = asked.find(&id.to_string()).await else {
                    continue;
                };
                let opened = asked.read(file).await?;
                let (filter, input) = (filter.clone(), input.text.clone());
                let hits = blocking(move || {
                    let codes = filed::codes(&opened.findings);
                    let matcher = filter.over(&opened.story, opened.run.verdict());
                    let matcher = matcher.with(&codes);
                    let mut steps = matcher.steps();
                    let told = steps.by_ref().take(OF_A_RUN);
                    let told =
                        told.map(|step| Hit::of(&id.to_string(), &opened, step, input.as_deref()));
                    let told: Vec<Hit> = told.collect();
                    (told, steps.count())
                });
                let (hits, more) = hits.await?;
                if !found.take_all(hits) {
                    // Where the runs end of which there are hits, the index knows.
                    let mut again = query.clone();
                    again.limit = page.all.iter().position(|run| *run == id).unwrap_or(0);
                    let next = match again.limit {
                        0 => query.cursor,
                        _ => asked.runs(again).await?.cursor,
                    };
                    return Ok(found.done(next.map(|next| next.to_string())));
                }
                if more > 0 {
                    let id = id.to_string();
                    found.say(
                        format!("{more} steps of run {id}"),
                        &format!("with run {id}"),
                    );
                }
            }
            match page.cursor {
                Some(next) => query.cursor = Some(next),
                None => return Ok(found.done(None)),
            }
        }
    }
}

/// The steps of one run that match. A place in it is the number of a step.
async fn of_run(
    asked: &Asked,
    name: &str,
    filter: &Filter,
    input: &Input,
    mut found: Found,
) -> Result<Output, ToolError> {
    let after = input.after.as_deref().map(str::parse).transpose();
    let after: usize = after
        .map_err(|_| ToolError::new("cursor", "`after` is not what an answer ended with"))?
        .unwrap_or(0);
    let opened = asked.open(name).await?;
    let (filter, text) = (filter.clone(), input.text.clone());
    blocking(move || {
        let id = opened.run.row.id.to_string();
        let codes = filed::codes(&opened.findings);
        let matcher = filter.over(&opened.story, opened.run.verdict());
        let matcher = matcher.with(&codes);
        let mut last = after;
        for step in matcher.steps().filter(|step| step.number > after) {
            if !found.take(Hit::of(&id, &opened, step, text.as_deref())) {
                let next = (last > after).then(|| last.to_string());
                return found.done(next);
            }
            last = step.number;
        }
        found.done(None)
    })
    .await
}

/// What is wanted, as one filter.
fn wanted(input: &Input) -> Result<String, ToolError> {
    let text = input.text.as_deref().filter(|text| !text.is_empty());
    let quoted = text.map(|text| {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("~b \"{quoted}\"")
    });
    Ok(match (quoted, &input.filter) {
        (Some(text), Some(filter)) => format!("{text} & ({filter})"),
        (Some(text), None) => text,
        (None, Some(filter)) => filter.clone(),
        (None, None) => {
            let what = "give a text, a filter, or both";
            return Err(ToolError::new("arguments", what));
        }
    })
}

/// What is told so far.
struct Found {
    left: usize,
    budget: Budget,
    hits: Vec<Hit>,
    truncated: Vec<Cut>,
}

impl Found {
    /// Takes a step; the first one always, if need be without the text around.
    fn take(&mut self, mut hit: Hit) -> bool {
        let mut fits = self.left > 0 && self.budget.takes(&hit);
        if !fits && self.hits.is_empty() {
            hit.recorded.around = None;
            fits = self.budget.takes(&hit);
        }
        if fits {
            self.left -= 1;
            self.hits.push(hit);
        } else {
            let get = "ask again with `after` set to `next`";
            self.truncated.push(Cut::new("more steps", get));
        }
        fits
    }

    /// Takes the steps of a run, or none of them.
    fn take_all(&mut self, hits: Vec<Hit>) -> bool {
        if self.hits.is_empty() {
            let wanted = hits.len();
            let first = hits.into_iter().take(self.left);
            let (hits, _, _) = self.budget.fill_or(first, |hit| hit.recorded.around = None);
            let left = wanted - hits.len();
            if left > 0 {
                self.say(format!("{left} steps of the first run"), "with `run`");
            }
            self.left -= hits.len();
            self.hits = hits;
            return true;
        }
        let fits = hits.len() <= self.left && self.budget.takes(&hits);
        if fits {
            self.left -= hits.len();
            self.hits.extend(hits);
        }
        fits
    }

    fn say(&mut self, what: String, get: &str) {
        let cut = Cut::new(what, format!("search_steps {get}"));
        if self.budget.takes(&cut) {
            self.truncated.push(cut);
        }
    }

    fn done(self, next: Option<String>) -> Output {
        Output {
            hits: self.hits,
            next,
            truncated: self.truncated,
        }
    }
}

impl Hit {
    fn of(run: &str, opened: &Opened, step: &Step, text: Option<&str>) -> Self {
        let is_flagged = opened.flagged.contains(&step.number);
        // What the server said is not quoted: its answer, or what it asked on its own.
        let is_clients = step.is_clients();
        let request = step.request.as_ref().filter(|_| is_clients || !is_flagged);
        let response = step
            .response
            .as_ref()
            .filter(|_| !is_clients || !is_flagged);
        let messages = [request, response];
        let mut bodies = messages
            .into_iter()
            .flatten()
            .map(|message| &message.text[..]);
        let around = text.and_then(|text| {
            bodies.find_map(|body| {
                let at = find(body, text.as_bytes())?;
                Some(Text::of(
                    quote::around(body, at..at + text.len(), AROUND),
                    LINE,
                ))
            })
        });
        Self {
            run: run.to_owned(),
            step: StepView::of(opened, step),
            recorded: HitText { around },
        }
    }
}

/// Where a text stands, ASCII letters in any case.
fn find(body: &[u8], text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    let windows = body.windows(text.len());
    windows
        .into_iter()
        .position(|window| window.eq_ignore_ascii_case(text))
}
