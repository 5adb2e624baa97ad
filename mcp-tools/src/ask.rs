//! Runs as a caller may see them: of the caller's workspace and projects, and without the
//! question itself.
//!
//! An assistant that asks "why did my last run fail?" does so within a run. What it does in the
//! prompt that asks is no part of the answer; what it did in earlier prompts is. Which prompt
//! asks is known where the client names it in its call (Codex does).

use crate::answer::{self, Budget, ToolError, Warnings};
use crate::gate::{Caller, now};
use crate::text::Text;
use agent_trace_analysis::filter::{Filter, Settings as FilterSettings};
use agent_trace_analysis::outcomes::{self, Failure, is_failed};
use agent_trace_index::filed::{self, StoreScan};
use agent_trace_index::finding::Found;
use agent_trace_index::listing::{Cursor, Listed, Projects, RunsPage, RunsQuery};
use agent_trace_index::pins::PinsPage;
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::stats::Stats;
use agent_trace_index::{Runs, RunsError, opening};
use agent_trace_model::RunId;
use agent_trace_model::story::{Session, Story};
use agent_trace_scanners::run::InRun;
use agent_trace_scanners::{self as scanners, Severity};
use agent_trace_store::Store;
use agent_trace_store::journal::reader::OpenError;
use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Runs that are looked at before it is told how far it is, and asked whether somebody waits.
const LOOK: usize = 64;

/// What answers are made from.
pub struct Reader {
    /// Who knows the runs.
    pub runs: Arc<dyn Runs>,
    /// Where their journals are.
    pub store: Store,
    /// From which duration on a step is slow, in nanoseconds.
    pub slow: u64,
    /// Seconds east of UTC, of times in filters without a zone.
    pub offset: i32,
    /// The most bytes of an answer.
    pub bytes: usize,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Asked {
    pub(crate) reader: Arc<Reader>,
    pub(crate) caller: Caller,
    /// The id of the prompt that asks.
    pub(crate) turn: Option<String>,
    /// Whom to tell how far it is.
    pub(crate) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    /// Nobody waits for the answer any more.
    pub(crate) cancelled: CancellationToken,
    /// What could not be read, in one line each.
    pub(crate) warnings: Arc<Mutex<BTreeSet<String>>>,
}

/// Some runs, newest first.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) runs: Vec<Listed>,
    /// Where to go on; none where there are no more.
    pub(crate) cursor: Option<Cursor>,
    /// Those of which the index tells too much: the prompt that asks is cut out of them.
    pub(crate) cut: HashMap<RunId, Opened>,
    /// All runs of the page in their order, also those of which nothing is left.
    pub(crate) all: Vec<RunId>,
}

/// A run, read from its journals.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) run: Listed,
    pub(crate) story: Story,
    /// Why it failed, by what happened.
    pub(crate) failures: Vec<Failure>,
    /// Why sessions of it cannot be read.
    pub(crate) unreadable: Vec<String>,
    /// The numbers of steps whose answers hold what is meant to steer a model to harm. Nothing
    /// of such an answer is shown unless that is asked for.
    pub(crate) flagged: BTreeSet<usize>,
    /// What scans found, by the numbers of the steps, and how much more.
    pub(crate) findings: Vec<InRun>,
    pub(crate) more_findings: u64,
}

impl Opened {
    /// What of it cannot be read, in one line each.
    fn lacks(&self) -> impl Iterator<Item = String> {
        let run = self.run.row.id;
        let cut = (self.run.left_out > 0).then(|| {
            let left_out = self.run.left_out;
            format!("run {run}: it is too large, {left_out} entries of its lists are left out")
        });
        let sessions = self.story.sessions.iter().enumerate();
        let damaged = sessions.filter_map(move |(at, session)| {
            let (missing, bytes) = (session.missing, session.damaged);
            (missing + bytes > 0).then(|| {
                let what = "records are missing, and so many bytes cannot be read";
                format!("run {run}, session {}: {missing} {what}: {bytes}", at + 1)
            })
        });
        let files = self.story.sessions.iter().flat_map(|s| &s.unreadable);
        let files = self.unreadable.iter().chain(files).cloned();
        cut.into_iter().chain(damaged).chain(files)
    }

    /// Recorded text of a step, unless the step is flagged.
    pub(crate) fn text(&self, step: Option<usize>, text: Text) -> Text {
        withheld(&self.flagged, step, text)
    }
}

/// Recorded text of a step, unless the step is flagged.
pub(crate) fn withheld(flagged: &BTreeSet<usize>, step: Option<usize>, text: Text) -> Text {
    match step {
        Some(step) if flagged.contains(&step) => Text::withheld(),
        _ => text,
    }
}

impl Asked {
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.reader.bytes.max(answer::LEAST))
    }

    /// The runs that match a filter, newest first.
    pub(crate) fn query(&self, filter: Option<&str>) -> RunsQuery {
        RunsQuery {
            workspace: self.caller.workspace.clone(),
            projects: self.caller.projects.clone(),
            filter: filter.unwrap_or_default().to_owned(),
            task: None,
            now: now(),
            offset: self.reader.offset,
            slow: self.reader.slow,
            failed: false,
            probes: false,
            limit: 0,
            last: 0,
            cursor: None,
            look: LOOK,
            // Whoever has the files themselves may know of all of them.
            unowned: self.caller.is_local() && self.caller.projects == Projects::All,
        }
    }

    /// A filter that steps are asked with.
    pub(crate) fn filter(&self, text: &str) -> Result<Filter, ToolError> {
        let settings = FilterSettings {
            now: now(),
            offset: self.reader.offset,
            slow: self.reader.slow,
        };
        Filter::parse_with(text, &settings).map_err(|error| {
            let hint = error.hint.clone();
            let told = ToolError::new("filter", format!("{error}\n{}", error.caret()));
            ToolError { hint, ..told }
        })
    }

    /// A page of runs.
    pub(crate) async fn runs(&self, query: RunsQuery) -> Result<Page, ToolError> {
        let filter = self.filter(&query.filter)?;
        let failed = query.failed;
        let listed = self.listed(query).await?;
        let mut page = Page {
            cursor: listed.cursor,
            all: listed.runs.iter().map(|run| run.row.id).collect(),
            ..Page::default()
        };
        for run in listed.runs {
            if !self.is_asking(&run) {
                page.runs.push(run);
                continue;
            }
            let opened = match self.find(&run.row.id.to_string()).await {
                Ok(found) => self.read(found).await?,
                // Removed meanwhile.
                Err(_) => continue,
            };
            // As it is without the prompt that asks: nothing may be left of it, or nothing that is
            // looked for, or it had not failed before.
            let verdict = opened.run.verdict();
            let counts = !failed || is_failed(&opened.story, verdict);
            let codes = filed::codes(&opened.findings);
            let counts = counts && filter.over(&opened.story, verdict).with(&codes).run();
            if counts && !opened.story.steps.is_empty() {
                page.cut.insert(run.row.id, opened);
                page.runs.push(run);
            }
        }
        Ok(page)
    }

    /// As many runs as are asked for, over as many pages as that takes.
    async fn listed(&self, mut query: RunsQuery) -> Result<RunsPage, ToolError> {
        let mut all = RunsPage::default();
        let limit = query.limit.max(1);
        loop {
            query.limit = limit - all.runs.len();
            let Reply::Runs(page) = self.ask(Query::Runs(query.clone())).await? else {
                return Err(unknown());
            };
            self.warn(page.warnings);
            all.runs.extend(page.runs);
            all.cursor = page.cursor;
            // A page that ends before it is full was cut to be sent, or looked at enough.
            let Some(cursor) = page.cursor.filter(|_| all.runs.len() < limit) else {
                return Ok(all);
            };
            if !query.filter.is_empty() {
                self.tell(cursor.seen, None).await;
            }
            query.cursor = Some(cursor);
        }
    }

    /// What could not be read, for the answer.
    pub(crate) fn warnings(&self) -> Option<Warnings> {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        Warnings::of(warnings.iter())
    }

    /// Something could not be read.
    fn warn(&self, lines: impl IntoIterator<Item = String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.extend(lines);
    }

    /// What tools did.
    pub(crate) async fn stats(&self, query: RunsQuery) -> Result<Stats, ToolError> {
        if !query.filter.is_empty() {
            self.filter(&query.filter)?;
        }
        match self.ask(Query::Stats(query)).await? {
            Reply::Stats(mut stats) => {
                self.warn(std::mem::take(&mut stats.warnings));
                Ok(stats)
            }
            _ => Err(unknown()),
        }
    }

    /// The run of this name, read. `latest` is the newest one that is not the question itself.
    pub(crate) async fn open(&self, name: &str) -> Result<Opened, ToolError> {
        let mut found = self.find(name).await?;
        if name == "latest" && self.turn.is_some() && self.is_asking(&found.run) {
            let opened = self.read(found.clone()).await?;
            if !opened.story.steps.is_empty() {
                return Ok(opened);
            }
            found = self.newest().await?;
        }
        self.read(found).await
    }

    /// The newest run that is not the question itself.
    async fn newest(&self) -> Result<Found, ToolError> {
        let mut query = self.query(None);
        query.limit = 2;
        loop {
            let page = self.runs(query.clone()).await?;
            if let Some(run) = page.runs.first() {
                return self.find(&run.row.id.to_string()).await;
            }
            if page.cursor.is_none() {
                return Err(empty());
            }
            query.cursor = page.cursor;
        }
    }

    pub(crate) async fn find(&self, name: &str) -> Result<Found, ToolError> {
        let query = Query::Run {
            workspace: self.caller.workspace.clone(),
            projects: self.caller.projects.clone(),
            name: name.to_owned(),
        };
        match self.ask(query).await? {
            Reply::Run(found) => Ok(*found),
            _ => Err(unknown()),
        }
    }

    /// Whether somebody still waits: what takes long asks now and then.
    fn is_awaited(&self) -> Result<(), ToolError> {
        match self.cancelled.is_cancelled() {
            true => Err(ToolError::new("cancelled", "nobody waits for the answer")),
            false => Ok(()),
        }
    }

    /// Reads a run that was found.
    pub(crate) async fn read(&self, found: Found) -> Result<Opened, ToolError> {
        self.is_awaited()?;
        let (store, turn) = (self.reader.store.clone(), self.turn.clone());
        let read = move || -> Result<Opened, RunsError> {
            let Found {
                run,
                files,
                findings,
                more_findings,
            } = found;
            let opened = opening::open(&store, &run.row, &files)?;
            let mut story = opened.story(&run.row);
            let mut findings = filed::in_story(&story, &run.row, &opened.sessions, &findings);
            cut(&mut story, turn.as_deref());
            let left: BTreeSet<usize> = story.steps.iter().map(|step| step.number).collect();
            findings.retain(|found| left.contains(&found.step));
            let mut flagged: BTreeSet<usize> = findings
                .iter()
                .filter(|found| found.finding.severity >= Severity::High)
                .map(|found| found.step)
                .collect();
            // A list that is told again is filed once, and the run may be a later part of it.
            flagged.extend(scanners::run::steps(&story, Severity::High));
            Ok(Opened {
                failures: outcomes::failures(&story),
                flagged,
                findings,
                more_findings,
                unreadable: opened.unreadable.iter().map(in_one_line).collect(),
                story,
                run,
            })
        };
        let opened = blocking(read).await?.map_err(|error| told(&error))?;
        self.warn(opened.lacks());
        Ok(opened)
    }

    pub(crate) async fn ask(&self, query: Query) -> Result<Reply, ToolError> {
        self.is_awaited()?;
        // Asking makes nothing.
        if !self.reader.store.root().is_dir() {
            return match query {
                Query::Runs(_) => Ok(Reply::Runs(RunsPage::default())),
                Query::Stats(_) => Ok(Reply::Stats(Stats::default())),
                Query::Scan(_) => Ok(Reply::Scanned(StoreScan::default())),
                Query::Pins(_) => Ok(Reply::Pins(PinsPage::default())),
                _ => Err(empty()),
            };
        }
        match self.reader.runs.ask(query).await {
            Ok(Reply::Wrong(wrong)) => Err(told(&wrong.into())),
            Ok(reply) => Ok(reply),
            Err(error) => Err(told(&error)),
        }
    }

    /// Whether the prompt that asks belongs to this run.
    pub(crate) fn is_asking(&self, run: &Listed) -> bool {
        let asks = |turn: &str| run.row.turns.iter().any(|own| own.id == turn);
        self.turn.as_deref().is_some_and(asks)
    }

    /// Tells how far it is.
    pub(crate) async fn tell(&self, done: usize, of: Option<usize>) {
        if let Some((peer, token)) = &self.progress {
            #[allow(clippy::cast_precision_loss, reason = "MCP tells progress as a float")]
            let mut told = ProgressNotificationParam::new(token.clone(), done as f64);
            told.total = of.map(|of| of as f64);
            // Whoever does not listen misses it.
            let _ = peer.notify_progress(told).await;
        }
    }
}

/// Takes the prompt that asks out of a run, and what was said to our own server. The other steps
/// keep their numbers, by which everything else knows them.
fn cut(story: &mut Story, turn: Option<&str>) {
    let asking = turn.and_then(|id| story.turns.iter().position(|turn| turn.id == id));
    let own: Vec<bool> = story.sessions.iter().map(Session::is_own).collect();
    let is_own = |session: usize| own.get(session).copied().unwrap_or(false);
    story
        .steps
        .retain(|step| !(is_own(step.session) || asking.is_some() && step.turn == asking));
    if asking.is_some_and(|asking| asking + 1 == story.turns.len()) {
        story.turns.pop();
    }
}

/// An error with what caused it.
fn in_one_line(error: &OpenError) -> String {
    let mut line = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        line = format!("{line}: {error}");
        cause = error.source();
    }
    line
}

/// Does what takes the processor for a while.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ToolError::new("failed", "answering failed: this is a fault of agent-trace"))
}

/// The place that a page ended at.
pub(crate) fn cursor(text: Option<&str>) -> Result<Option<Cursor>, ToolError> {
    text.map(str::parse).transpose().map_err(|_| {
        ToolError::new("cursor", "`after` is not what an answer ended with")
            .hint("pass the `next` of the answer before, as it is")
    })
}

pub(crate) fn unknown() -> ToolError {
    ToolError::new("failed", "whoever has the index answered something else")
}

fn empty() -> ToolError {
    told(&RunsError::Empty)
}

/// What went wrong, in words that tell nothing of other workspaces.
fn told(error: &RunsError) -> ToolError {
    match error {
        RunsError::Empty | RunsError::NoStore(_) => {
            ToolError::new("no_runs", "nothing has been recorded here yet").hint(
                "runs are recorded where a server's command is `agent-trace record -- COMMAND`",
            )
        }
        RunsError::NotFound(_) => ToolError::new("not_found", "there is no such run")
            .hint("list_runs has the ids; `latest` is the newest run"),
        RunsError::Ambiguous { .. } => {
            ToolError::new("ambiguous", "several runs begin so").hint("give more digits of the id")
        }
        RunsError::Wrong(what) => ToolError::new("wrong", what),
        error => {
            tracing::warn!("a question could not be answered: {error}");
            let told = ToolError::new("failed", "what was recorded cannot be read at the moment");
            ToolError {
                hint: error.hint().map(Into::into),
                ..told
            }
        }
    }
}

/// The id of a request as the token of its progress.
pub(crate) fn token(token: Option<ProgressToken>) -> Option<ProgressToken> {
    token.filter(|token| !matches!(&token.0, NumberOrString::String(text) if text.is_empty()))
}
