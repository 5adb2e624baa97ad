//! `show --follow`: a run as it happens.

use super::{foot, head, options};
use crate::cli::{Format, Show};
use crate::commands::wait;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::json::{self, StepLine};
use crate::render::lines::Printer;
use crate::render::time::Clock;
use agent_trace_analysis::filter::Filter;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_model::{RunId, Verdict};
use agent_trace_store::trace::follow::{Follower, News};
use agent_trace_store::trace::{Session, story};
use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// A request that is open for longer is announced.
const LONG: Duration = Duration::from_secs(1);

pub(super) fn run(config: &Config, args: &Show) -> Result<u8, CommandError> {
    if args.format == Format::Json {
        return Err(CommandError::Usage {
            what: "a run that goes on is no JSON document".into(),
            hint: "`--format jsonl` prints an object for each step as it settles",
        });
    }
    let filter = query::filter(config, args.filter.as_deref())?;
    let (run, entries) = query::entries(config, &args.run)?;
    let store = config.store();
    let followers = entries.iter().map(|entry| Follower::new(&store, entry));
    let mut followers = followers.collect::<Result<Vec<_>, _>>()?;
    let mut follow = Follow {
        args,
        filter,
        run: run.row.id,
        verdict: run.verdict(),
        clock: Clock::local(),
        announced: HashSet::new(),
    };
    let mut out = anstream::stdout().lock();
    let mut begun = false;
    loop {
        let (mut over, mut pieces) = (true, Vec::new());
        for (position, follower) in followers.iter_mut().enumerate() {
            let news = follower.poll()?;
            over &= news.over;
            pieces.extend(follow.pieces(position, follower.run(), &news));
        }
        let sessions = || followers.iter().map(Follower::run);
        if !std::mem::replace(&mut begun, true) && args.format == Format::Text {
            head(&mut out, &follow.story(sessions(), false))?;
        }
        // What came together, in the order of its times.
        pieces.sort_by_key(|piece| (piece.late, piece.wall));
        pieces
            .into_iter()
            .try_for_each(|piece| piece.print(&mut out))?;
        if over {
            if args.format == Format::Text {
                foot(&mut out, &follow.story(sessions(), true), args)?;
            }
            return Ok(exit::SUCCESS);
        }
        out.flush()?;
        wait::a_moment()?;
    }
}

struct Follow<'a> {
    args: &'a Show,
    filter: Option<Filter>,
    run: RunId,
    /// What was decided about it when following began.
    verdict: Verdict,
    clock: Clock,
    /// Steps that were announced before they settled, by session and position.
    announced: HashSet<(usize, usize)>,
}

/// Something to print.
struct Piece {
    wall: u64,
    /// Whether it is told only since it has been going on for long.
    late: bool,
    what: What,
}

enum What {
    Text(String),
    Json(String),
}

impl Piece {
    fn print(self, out: &mut impl Write) -> io::Result<()> {
        match self.what {
            What::Text(text) => out.write_all(text.as_bytes()),
            What::Json(text) => json::text(text),
        }
    }
}

impl Follow<'_> {
    /// What is new of a session.
    fn pieces(&mut self, position: usize, session: &Session, news: &News) -> Vec<Piece> {
        let long = self.open_for_long(position, session);
        if news.is_empty() && long.is_empty() {
            return Vec::new();
        }
        let names = (session.server(), &session.client()[..]);
        let options = options(self.args);
        let printer = Printer::of(names, &session.exchanges, options, &self.clock);
        let around = (self.filter.as_ref()).map(|_| self.story([session].into_iter(), false));
        let wanted = |step: &Step| match (&self.filter, &around) {
            (Some(filter), Some(story)) => filter.matches_step(story, self.verdict, step),
            _ => true,
        };
        let settled = news.steps.iter().map(|at| (*at, false));
        let mut pieces = Vec::new();
        for (at, late) in settled.chain(long.iter().map(|at| (*at, true))) {
            let step = session.steps.get(at);
            let step = step.map(|step| story::step(session, step, 0));
            let Some(step) = step.filter(wanted) else {
                continue;
            };
            let what = match (self.args.format, late) {
                (Format::Jsonl | Format::Json, _) => {
                    let id = session.entry.session.to_string();
                    let line = StepLine::in_session(id, names.0, &step);
                    serde_json::to_string(&line).map(What::Json).ok()
                }
                (Format::Text, false) => Some(What::Text(printer.whole(&step))),
                (Format::Text, true) => Some(What::Text(printer.unfinished(&step))),
            };
            let wall = step.wall;
            pieces.extend(what.map(|what| Piece { wall, late, what }));
        }
        if self.args.format != Format::Text {
            return pieces;
        }
        let mut tell = |wall, line: &str| {
            let what = What::Text(printer.line(wall, None, line));
            pieces.push(Piece {
                wall,
                late: false,
                what,
            });
        };
        for gap in session.gaps[news.gaps.clone()].iter().map(story::gap) {
            tell(gap.wall, &printer.gap(&gap));
        }
        if self.args.stderr {
            let lines = session.errors[news.errors.clone()].iter().map(story::line);
            lines.for_each(|line| tell(line.wall, &printer.error(&line)));
        }
        pieces
    }

    /// The steps that have been open for long by now, each once.
    fn open_for_long(&mut self, position: usize, session: &Session) -> Vec<usize> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let is_long = |at: &usize| {
            session.steps.get(*at).is_some_and(|step| {
                let asks = matches!(step.kind, StepKind::Request | StepKind::Http);
                asks && now.saturating_sub(Duration::from_nanos(step.wall)) > LONG
            })
        };
        let open = session.steps.unsettled().filter(is_long);
        let long: Vec<usize> = open
            .filter(|at| !self.announced.contains(&(position, *at)))
            .collect();
        self.announced.extend(long.iter().map(|at| (position, *at)));
        long
    }

    /// The story of these sessions; without their steps only what is told of them.
    fn story<'s>(&self, sessions: impl Iterator<Item = &'s Session>, steps: bool) -> Story {
        let sessions: Vec<&Session> = sessions.collect();
        if steps {
            return story::of(self.run, Vec::new(), &sessions);
        }
        Story {
            id: self.run,
            aliases: Vec::new(),
            workspace: String::new(),
            project: None,
            task: None,
            sessions: sessions.into_iter().map(story::session).collect(),
            turns: Vec::new(),
            steps: Vec::new(),
        }
    }
}
