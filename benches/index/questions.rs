//! What is asked, and what the answer has to be.

use crate::Result;
use crate::generate::needle;
use crate::generate::world::SERVERS;
use crate::place::{Place, There};
use crate::process::Tree;
use crate::reading::{LAST, count};
use crate::report::{Goal, Measured};
use crate::stats::{median, quantile};
use crate::verdict::Recorded;
use serde_json::Value;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How often each question is asked.
const TURNS: usize = 21;
const COLD_FAILED_MS: f64 = 400.0;
const FAILED_MS: f64 = 20.0;
const FILTER_MS: f64 = 100.0;
const STEPS_MS: f64 = 15.0;
const SEARCH_MS: f64 = 1_000.0;
const MOST_MB: f64 = 400.0;
/// A tool that is neither the most nor the least used one: of this server.
const TOOL: (usize, usize) = (2, 1);
const SERVER: usize = 3;
/// How many steps the run has whose steps are asked for, at least and at most.
const STEPS: (u64, u64) = (1_000, 1_200);
/// How long an owner may take until it answers.
const READY: Duration = Duration::from_secs(600);

/// A question, and how many lines of JSON answer it.
struct Question {
    what: String,
    words: Vec<String>,
    /// From who owns the index, and by a command of its own, in milliseconds.
    goals: (Goal, Goal),
    answers: Answers,
}

enum Answers {
    Exactly(u64),
    Between(u64, u64),
}

fn questions(place: &Place, there: &There) -> Result<Vec<Question>> {
    let made = &there.made;
    let tool = SERVERS[TOOL.0].tools[TOOL.1].name;
    let number: usize = SERVERS[..TOOL.0].iter().map(|s| s.tools.len()).sum();
    let server = SERVERS[SERVER].name;
    let filter = |what: &str, filter: String, answers| Question {
        what: format!("runs by {what}"),
        words: vec!["runs".into(), filter],
        goals: (Goal::AtMost(FILTER_MS), Goal::None),
        answers: Answers::Exactly(answers),
    };
    // Among the last runs, which are not all.
    let last = LAST as u64;
    let share = (last.min(made.runs)) / 128;
    Ok(vec![
        Question {
            what: "failed runs".into(),
            words: vec!["runs".into(), "--failed".into()],
            goals: (Goal::AtMost(FAILED_MS), Goal::AtMost(COLD_FAILED_MS)),
            answers: Answers::Exactly(made.failed),
        },
        filter("tool", format!("~t {tool}"), made.by_tool[number + TOOL.1]),
        filter("duration", "~d >2s".into(), made.slow),
        filter("server", format!("~s {server}"), made.by_server[SERVER]),
        Question {
            what: "steps of a run of 1,000".into(),
            words: vec!["show".into(), long_run(place)?],
            goals: (Goal::AtMost(STEPS_MS), Goal::None),
            answers: Answers::Between(STEPS.0, STEPS.1),
        },
        Question {
            what: "a word that is in 0.8 % of the last 10,000 runs".into(),
            words: vec![
                "search".into(),
                needle(0),
                "--last".into(),
                last.to_string(),
            ],
            goals: (Goal::AtMost(SEARCH_MS), Goal::AtMost(SEARCH_MS)),
            answers: Answers::Between(share, share + 1),
        },
    ])
}

/// The id of a run of 1,000 steps.
fn long_run(place: &Place) -> Result<String> {
    let all = place.run(["runs", "-n", "0", "--format", "jsonl"])?;
    for line in all.out.lines() {
        let run: Value = serde_json::from_str(line)?;
        let steps = run["steps"].as_u64().unwrap_or_default();
        if (STEPS.0..=STEPS.1).contains(&steps) {
            return Ok(run["run"].as_str().unwrap_or_default().to_owned());
        }
    }
    Err("no run of 1,000 steps".into())
}

/// Commands that open the index themselves.
pub(crate) fn cold(place: &Place, there: &There) -> Result<Vec<Measured>> {
    let mut lines = Vec::new();
    for question in questions(place, there)? {
        lines.push(ask(place, &question, question.goals.1)?);
    }
    Ok(lines)
}

/// Commands that ask who owns the index, and what memory that takes.
pub(crate) fn owner(place: &Place, there: &There) -> Result<Vec<Measured>> {
    let owner = Owner::start(place)?;
    let mut lines = Vec::new();
    for question in questions(place, there)? {
        lines.push(ask(place, &question, question.goals.0)?);
    }
    let memory = Tree::of(owner.0.id()).memory();
    lines.push(Measured {
        what: "memory of the owner, MB".into(),
        goal: Goal::AtMost(MOST_MB),
        value: memory.peak,
        detail: format!("the most there was; {:.0} in the end", memory.now),
        recorded: Recorded::All,
        gaps_allowed: false,
    });
    Ok(lines)
}

fn ask(place: &Place, question: &Question, goal: Goal) -> Result<Measured> {
    let mut took = Vec::new();
    // The first one warms the cache.
    let mut lines = 0;
    for turn in 0..=TURNS {
        let ran = place.run(&question.words)?;
        if turn > 0 {
            took.push(ran.milliseconds());
        }
        lines = ran.out.lines().count();
    }
    Ok(Measured {
        what: format!("{}, ms", question.what),
        goal,
        value: median(&took),
        detail: format!(
            "`{}`: {lines} lines; p95 {:.1} ms",
            question.words.join(" "),
            quantile(&took, 0.95)
        ),
        recorded: is_right(place, question)?,
        gaps_allowed: false,
    })
}

/// Whether all answers together are as many as there have to be.
fn is_right(place: &Place, question: &Question) -> Result<Recorded> {
    let mut words = question.words.clone();
    words.extend(["--format", "jsonl"].map(Into::into));
    if words[0] != "show" {
        words.extend(["-n", "0"].map(Into::into));
    }
    let found = place.run(&words)?.out.lines().count() as u64;
    Ok(match question.answers {
        Answers::Exactly(expected) => count("answers", found, expected),
        Answers::Between(least, most) if (least..=most).contains(&found) => Recorded::All,
        Answers::Between(least, most) => {
            Recorded::Differs(format!("{found} answers, not {least} to {most}"))
        }
    })
}

/// A daemon, which owns the index.
struct Owner(Child);

impl Owner {
    fn start(place: &Place) -> Result<Self> {
        let mut command = place.command(["daemon", "run"]);
        let log = std::fs::File::create(place.path("daemon.log"))?;
        let child = command.stdout(Stdio::null()).stderr(log).spawn()?;
        let owner = Self(child);
        let end = Instant::now() + READY;
        // It answers a question about all runs only when it knows them.
        while place.run(["runs", "--failed"]).is_err() {
            if Instant::now() > end {
                return Err("the daemon does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let told = std::process::Command::new("kill").arg(&pid).status();
        if !told.is_ok_and(|told| told.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}
