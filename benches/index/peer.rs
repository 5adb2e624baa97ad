//! The same questions to agent-strace, on the same sessions.

use crate::Result;
use crate::place::{Place, Ran};
use crate::reading::count;
use crate::report::{Goal, Measured};
use crate::scale::Scale;
use crate::stats::median;
use crate::strace;
use crate::verdict::Recorded;
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const SESSIONS: usize = 2_000;
const EVENTS: usize = 60;
/// How often the peer is asked, which takes seconds, and how often we are.
const THEIR_TURNS: usize = 3;
const OUR_TURNS: usize = 15;

/// A question, in both programs' words.
struct Question {
    what: &'static str,
    theirs: Vec<String>,
    ours: Vec<String>,
}

/// What it took, in milliseconds.
struct Took {
    wall: f64,
    cpu: f64,
}

/// None where the peer is not installed.
pub(crate) fn run(scale: &Scale) -> Result<Option<Vec<Measured>>> {
    if ran(Command::new("agent-strace").arg("--version")).is_err() {
        eprintln!("skipped: peer: no agent-strace on the path (pip install agent-strace==0.103.0)");
        return Ok(None);
    }
    let place = Place::empty(scale)?;
    let folder = place.path(".agent-traces");
    let ids = strace::write(&folder, SESSIONS, EVENTS, scale.plan.seed)?;
    let import: [OsString; 2] = ["import".into(), folder.clone().into()];
    let imported = place.run(import)?;
    let listed = place.run(["runs", "-n", "0", "--format", "jsonl"])?.out;
    let newest: Value = serde_json::from_str(listed.lines().next().ok_or("no runs")?)?;
    let ours = newest["run"].as_str().unwrap_or_default().to_owned();
    let mut lines = vec![Measured {
        what: "importing all its sessions, ms".into(),
        goal: Goal::None,
        value: imported.milliseconds(),
        detail: format!("{SESSIONS} sessions of {EVENTS} events"),
        recorded: count("runs", listed.lines().count() as u64, SESSIONS as u64),
        gaps_allowed: false,
    }];
    let theirs = ids.last().ok_or("no sessions")?;
    for question in questions(theirs, &ours) {
        lines.push(compare(&place, &folder, &question)?);
    }
    Ok(Some(lines))
}

fn questions(theirs: &str, ours: &str) -> Vec<Question> {
    let words = |line: &str| line.split(' ').map(Into::into).collect();
    let question = |what, theirs: &str, ours: &str| Question {
        what,
        theirs: words(theirs),
        ours: words(ours),
    };
    vec![
        question("list", "list", "runs"),
        question(
            "replay",
            &format!("replay {theirs}"),
            &format!("show {ours}"),
        ),
        question(
            "explain",
            &format!("explain {theirs}"),
            &format!("explain {ours}"),
        ),
        question(
            "timeline",
            &format!("timeline {theirs}"),
            &format!("timeline {ours}"),
        ),
        question("tree", &format!("tree {theirs}"), &format!("tree {ours}")),
        question("dashboard", "dashboard", "stats"),
    ]
}

fn compare(place: &Place, folder: &Path, question: &Question) -> Result<Measured> {
    let theirs = take(THEIR_TURNS, || {
        let mut command = Command::new("agent-strace");
        command
            .arg("--trace-dir")
            .arg(folder)
            .args(&question.theirs)
            .env("DO_NOT_TRACK", "1");
        ran(&mut command)
    })?;
    let ours = take(OUR_TURNS, || {
        place.run(&question.ours).map(|ran: Ran| ran.out)
    })?;
    Ok(Measured {
        what: format!("{}: agent-strace's wall time, × ours", question.what),
        goal: Goal::None,
        value: theirs.wall / ours.wall,
        detail: format!(
            "ms, wall (processor): `{}` {:.1} ({:.1}), `{}` {:.1} ({:.1})",
            question.theirs[0], theirs.wall, theirs.cpu, question.ours[0], ours.wall, ours.cpu
        ),
        recorded: Recorded::All,
        gaps_allowed: false,
    })
}

/// The median time, and the mean time on processors. The first turn, which warms the cache,
/// does not count.
fn take(turns: usize, mut ask: impl FnMut() -> Result<String>) -> Result<Took> {
    ask()?;
    let (mut wall, before) = (Vec::new(), cpu_of_children());
    for _ in 0..turns {
        let started = Instant::now();
        ask()?;
        wall.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Took {
        wall: median(&wall),
        cpu: (cpu_of_children() - before) / turns as f64,
    })
}

/// Time on processors of the children that have ended, in milliseconds; counted in hundredths
/// of a second.
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = stat.rsplit_once(')').unwrap_or_default().1;
    let of_children = rest.split_ascii_whitespace().skip(13).take(2);
    let ticks: u64 = of_children
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    ticks as f64 * 10.0
}

fn ran(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {said}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
