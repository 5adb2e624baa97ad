//! `show --follow`: a run as it happens.

use super::{foot, head, options};
use crate::cli::{Format, Show};
use crate::commands::wait;
use crate::error::{CommandError, exit};
use crate::render::json::{self, StepLine};
use crate::render::lines::Printer;
use crate::render::time::Clock;
use agent_trace_store::Store;
use agent_trace_store::trace::follow::{Follower, News};
use agent_trace_store::trace::step::StepKind;
use agent_trace_store::trace::{Session, SessionEntry, Step};
use std::collections::HashSet;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// A request that is open for longer is announced.
const LONG: Duration = Duration::from_secs(1);

pub(super) fn run(store: &Store, entry: &SessionEntry, args: &Show) -> Result<u8, CommandError> {
    if args.format == Format::Json {
        return Err(CommandError::Usage {
            what: "a run that goes on is no JSON document".into(),
            hint: "`--format jsonl` prints an object for each step as it settles",
        });
    }
    let mut follower = Follower::new(store, entry)?;
    let mut follow = Follow {
        args,
        clock: Clock::local(),
        announced: HashSet::new(),
    };
    let mut out = anstream::stdout().lock();
    let mut begun = false;
    loop {
        let news = follower.poll()?;
        let run = follower.run();
        if !std::mem::replace(&mut begun, true) && args.format == Format::Text {
            head(&mut out, run)?;
        }
        follow.print(&mut out, run, &news)?;
        if news.over {
            if args.format == Format::Text {
                foot(&mut out, run, args)?;
            }
            return Ok(exit::SUCCESS);
        }
        out.flush()?;
        wait::a_moment()?;
    }
}

struct Follow<'a> {
    args: &'a Show,
    clock: Clock,
    /// Steps that were announced before they settled.
    announced: HashSet<usize>,
}

impl Follow<'_> {
    fn print(&mut self, out: &mut impl Write, run: &Session, news: &News) -> io::Result<()> {
        let long = self.open_for_long(run);
        if self.args.format == Format::Jsonl {
            let steps = news.steps.iter().chain(&long);
            return steps
                .filter_map(|at| run.steps.get(*at))
                .try_for_each(|step| json::line(&StepLine::of(run, step)));
        }
        // What came together, in the order of its times.
        let mut pieces: Vec<(u64, Piece)> = Vec::new();
        let piece = |at: &usize| Some((run.steps.get(*at)?.wall, Piece::Step(*at)));
        pieces.extend(news.steps.iter().filter_map(piece));
        for at in news.gaps.clone() {
            pieces.push((run.gaps[at].0.wall, Piece::Gap(at)));
        }
        if self.args.stderr {
            for at in news.errors.clone() {
                pieces.push((run.errors[at].envelope.wall, Piece::Error(at)));
            }
        }
        pieces.sort_by_key(|(wall, _)| *wall);
        if pieces.is_empty() && long.is_empty() {
            return Ok(());
        }
        let printer = Printer::new(run, options(self.args), &self.clock);
        for (wall, piece) in pieces {
            match piece {
                Piece::Step(at) => printer.whole(out, &run.steps[at])?,
                Piece::Gap(at) => printer.line(out, wall, None, &printer.gap(at))?,
                Piece::Error(at) => printer.line(out, wall, None, &printer.error(at))?,
            }
        }
        let mut long = long.into_iter().filter_map(|at| run.steps.get(at));
        long.try_for_each(|step| printer.unfinished(out, step))
    }

    /// The steps that have been open for long by now, each once.
    fn open_for_long(&mut self, run: &Session) -> Vec<usize> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let is_long = |step: &Step| {
            let asks = matches!(step.kind, StepKind::Request | StepKind::Http);
            asks && now.saturating_sub(Duration::from_nanos(step.wall)) > LONG
        };
        let open = run.steps.unsettled();
        let long: Vec<usize> = open
            .filter(|at| run.steps.get(*at).is_some_and(is_long))
            .filter(|at| !self.announced.contains(at))
            .collect();
        self.announced.extend(&long);
        long
    }
}

enum Piece {
    Step(usize),
    Gap(usize),
    Error(usize),
}
