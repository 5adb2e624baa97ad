//! The same questions to agent-strace, on the same sessions, which we import.
//!
//! `benches/index/install-peer` installs it. It has no question for failed sessions or for a word:
//! its list names the errors of each session, and its folder can be searched with `grep`.

use crate::Result;
use crate::place::{Place, Ran, disk_use};
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

/// Where that is installed, below the checkout.
const INSTALLED: &str = "target/bench-peer/bin/agent-strace";

/// A question, in both programs' words.
struct Question {
    what: &'static str,
    /// The program, and what it is told.
    theirs: Vec<OsString>,
    ours: Vec<String>,
}

/// What it took, in milliseconds.
struct Took {
    wall: f64,
    cpu: f64,
}

/// None where the peer is not installed.
pub(crate) fn run(scale: &Scale) -> Result<Option<Vec<Measured>>> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(INSTALLED);
    if ran(Command::new(&installed).arg("--version")).is_err() {
        eprintln!("skipped: peer: no {INSTALLED} (benches/index/install-peer makes it)");
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
    let (_, store) = disk_use(place.store().root())?;
    let (_, theirs) = disk_use(&folder)?;
    let all = count("runs", listed.lines().count() as u64, SESSIONS as u64);
    let mut lines = vec![
        Measured {
            what: "importing all its sessions, ms".into(),
            goal: Goal::None,
            value: imported.milliseconds(),
            detail: format!("{SESSIONS} sessions of {EVENTS} events"),
            recorded: all.clone(),
            gaps_allowed: false,
        },
        Measured {
            what: "disk: agent-strace's folder, × our store with its index".into(),
            goal: Goal::None,
            value: theirs as f64 / store as f64,
            detail: format!("MB: {:.1}, {:.1}", theirs as f64 / 1e6, store as f64 / 1e6),
            recorded: all,
            gaps_allowed: false,
        },
    ];
    let newest = ids.last().ok_or("no sessions")?;
    for question in questions(&installed, &folder, newest, &ours) {
        lines.push(compare(&place, &question)?);
    }
    Ok(Some(lines))
}

fn questions(program: &Path, folder: &Path, theirs: &str, ours: &str) -> Vec<Question> {
    let words = |line: &str| -> Vec<String> { line.split(' ').map(Into::into).collect() };
    let question = |what, theirs: &str, ours: &str| {
        let mut command: Vec<OsString> = vec![program.into(), "--trace-dir".into(), folder.into()];
        command.extend(words(theirs).into_iter().map(Into::into));
        Question {
            what,
            theirs: command,
            ours: words(ours),
        }
    };
    let of = |what, command: &str| {
        question(
            what,
            &format!("{command} {theirs}"),
            &format!("{command} {ours}"),
        )
    };
    vec![
        question("list all, ours the newest 20", "list", "runs"),
        question("list failed", "list", "runs --failed -n 0"),
        question(
            "show one",
            &format!("replay {theirs}"),
            &format!("show {ours}"),
        ),
        of("explain one", "explain"),
        of("timeline of one", "timeline"),
        question("stats of all", "dashboard", "stats"),
        Question {
            what: "search a word",
            theirs: ["grep", "-rlF", strace::RARE.0]
                .map(Into::into)
                .into_iter()
                .chain([folder.into()])
                .collect(),
            ours: words(&format!("search {} -n 0", strace::RARE.0)),
        },
    ]
}

fn compare(place: &Place, question: &Question) -> Result<Measured> {
    let (program, told) = question.theirs.split_first().ok_or("no program")?;
    let theirs = take(THEIR_TURNS, || {
        let mut command = Command::new(program);
        command.args(told).env("DO_NOT_TRACK", "1");
        ran(&mut command)
    })?;
    let ours = take(OUR_TURNS, || {
        place.run(&question.ours).map(|ran: Ran| ran.out)
    })?;
    let program = Path::new(program).file_name().unwrap_or_default();
    let word = match told.get(2) {
        Some(word) if program == "agent-strace" => word.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    Ok(Measured {
        what: format!("{}: their wall time, × ours", question.what),
        goal: Goal::None,
        value: theirs.wall / ours.wall,
        detail: format!(
            "ms, wall (processor): `{}` {:.1} ({:.1}), `{}` {:.1} ({:.1})",
            format!("{} {word}", program.to_string_lossy()).trim_end(),
            theirs.wall,
            theirs.cpu,
            question.ours.join(" "),
            ours.wall,
            ours.cpu
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
