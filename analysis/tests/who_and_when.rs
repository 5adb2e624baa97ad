//! The ranking of suspects on Who&When, a set of failed conversations of agents in which people
//! labelled the step that broke them (arXiv 2505.00212; MIT).
//!
//! This is a check of sanity, no goal: these conversations have no protocol, so of all rules only
//! those about texts have something to look at. It is not independent of the rules either: the words
//! of `error_signs` are those of the strict rule that they are compared with, and some more. The set
//! is not part of this project; where it does not lie beside it, the test is skipped.
//!
//! # How a history becomes a run
//! A message of an agent is a call of a tool with the agent's name, and what it says is the first
//! block of the answer. What a terminal or a human says next are further blocks of that answer. The
//! arguments hold the number of the message, so that no two calls are the same; of the very first
//! message, which restates the task, the text is in the arguments and not in the answer.
//! Times are not known. Nothing here looks into a text or ranks a step.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are to be read"
)]

use agent_trace_analysis::suspects::{Input, rank};
use agent_trace_analysis::testing::Tale;
use agent_trace_model::story::Story;
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A conversation with its label.
struct Case {
    file: String,
    speakers: Vec<String>,
    texts: Vec<String>,
    /// Positions of messages that can be the mistake: those of agents.
    eligible: Vec<usize>,
    step: usize,
    agent: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/attribution/who-and-when")
}

/// `WebSurfer` is `Websurfer`.
fn plain(name: &str) -> String {
    let name = name.to_lowercase();
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn case(path: &Path) -> Case {
    let raw: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let history = raw["history"].as_array().unwrap();
    let speaker = |item: &Value| {
        let role = item["role"].as_str().unwrap();
        let name = item["name"].as_str().filter(|name| !name.is_empty());
        // `Orchestrator (thought)`
        plain(name.unwrap_or(role.split(" (").next().unwrap()))
    };
    let text = |item: &Value| match &item["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let speakers: Vec<String> = history.iter().map(speaker).collect();
    let others = ["computerterminal", "human", "user"];
    let eligible = (0..speakers.len()).filter(|at| !others.contains(&&speakers[*at][..]));
    Case {
        file: path.file_name().unwrap().to_string_lossy().into_owned(),
        eligible: eligible.collect(),
        texts: history.iter().map(text).collect(),
        step: raw["mistake_step"].as_str().unwrap().parse().unwrap(),
        agent: plain(raw["mistake_agent"].as_str().unwrap()),
        speakers,
    }
}

fn cases(subset: &str) -> Vec<Case> {
    let files = std::fs::read_dir(folder().join(subset)).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    files.iter().map(|path| case(path)).collect()
}

/// The history as a run: step N is the Nth message of an agent.
fn story(case: &Case) -> Story {
    let mut tale = Tale::new();
    for (position, at) in case.eligible.iter().copied().enumerate() {
        let next = case.eligible.get(position + 1);
        let next = next.copied().unwrap_or(case.texts.len());
        let mut arguments = json!({"message": at});
        let mut said = &case.texts[at..next];
        if at == 0 {
            arguments["task"] = json!(said[0]);
            said = &said[1..];
        }
        let blocks = said
            .iter()
            .map(|text| json!({"type": "text", "text": text}));
        let content: Vec<Value> = blocks.collect();
        tale = tale
            .call(&case.speakers[at], &arguments.to_string())
            .result(&json!({"content": content}).to_string())
            .step(|step| step.duration = None);
    }
    tale.told()
}

/// The suspects, then the other steps as they come.
fn ours(case: &Case) -> Vec<usize> {
    let story = story(case);
    let input = Input {
        most: usize::MAX,
        ..Input::of(&story)
    };
    let ranking = rank(&input);
    let suspects = ranking.suspects.iter().map(|suspect| suspect.step);
    let steps = suspects.chain(ranking.others.iter().copied());
    steps.map(|step| case.eligible[step - 1]).collect()
}

/// The first message that shows a strict error is blamed; where a terminal or a human shows it,
/// the nearest message of an agent before that. Then the rest in order.
fn strict(case: &Case) -> Vec<usize> {
    let error = r"exitcode: [1-9]|execution failed|Traceback|chrome-error|[A-Z]\w+Error\b";
    let error = Regex::new(error).unwrap();
    let shows = (1..case.texts.len()).filter(|at| error.is_match(&case.texts[*at]));
    let mut ranked: Vec<usize> = Vec::new();
    let blamed = shows.filter_map(|at| case.eligible.iter().rev().find(|e| **e <= at));
    for at in blamed.chain(&case.eligible) {
        if !ranked.contains(at) {
            ranked.push(*at);
        }
    }
    ranked
}

/// Hits at 1, 3 and 5, hits of the agent, and the files that are right at 1.
#[derive(Debug, Default)]
struct Hits {
    counts: [usize; 4],
    right: BTreeSet<String>,
}

fn hits(cases: &[Case], ranked: &dyn Fn(&Case) -> Vec<usize>) -> Hits {
    let mut hits = Hits::default();
    for case in cases {
        let ranking = ranked(case);
        let among = |most: usize| ranking.iter().take(most).any(|at| *at == case.step);
        for (count, most) in hits.counts.iter_mut().zip([1, 3, 5]) {
            *count += usize::from(among(most));
        }
        let agent = ranking.first().map(|at| &case.speakers[*at]);
        hits.counts[3] += usize::from(agent == Some(&case.agent));
        if among(1) {
            hits.right.insert(case.file.clone());
        }
    }
    hits
}

/// Wilson's 95 % interval.
fn wilson(hits: usize, of: usize) -> (f64, f64) {
    let z = 1.959_963_984_540_054_f64;
    let (k, n) = (hits as f64, of as f64);
    let share = k / n;
    let under = 1.0 + z * z / n;
    let middle = (share + z * z / (2.0 * n)) / under;
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt() / under;
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// McNemar's test, exact and two-sided: right only in a, only in b, p.
fn mcnemar(a: &BTreeSet<String>, b: &BTreeSet<String>) -> (usize, usize, f64) {
    let (only_a, only_b) = (a.difference(b).count(), b.difference(a).count());
    let n = only_a + only_b;
    let mut term = 1.0;
    let mut tail = 0.0;
    for i in 0..=only_a.min(only_b) {
        tail += term;
        term *= (n - i) as f64 / (i + 1) as f64;
    }
    (only_a, only_b, (2.0 * tail / 2_f64.powi(n as i32)).min(1.0))
}

fn print(name: &str, hits: &Hits, of: usize) {
    let cells = ["step@1", "step@3", "step@5", "agent@1"]
        .iter()
        .zip(hits.counts);
    let cells = cells.map(|(what, hits)| {
        let (low, high) = wilson(hits, of);
        format!("{what} {hits:>2} [{low:.2}, {high:.2}]")
    });
    println!("  {name:<20} {}", cells.collect::<Vec<_>>().join("  "));
}

fn skip(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
    let Some(path) = std::env::var_os("AGENT_TRACE_TEST_SKIPS") else {
        return;
    };
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    writeln!(file, "skipped: {what}: {why}").unwrap();
}

#[test]
fn suspects_are_no_worse_than_the_first_error() {
    if !folder().is_dir() {
        skip(
            "suspects on Who&When",
            "the set does not lie beside the project",
        );
        return;
    }
    let expected = [
        ("Algorithm-Generated", 63, [16, 39, 52, 32]),
        ("Hand-Crafted", 29, [3, 3, 7, 17]),
    ];
    // At 1, 3 and 5: ours, the rule's.
    let mut sums = [[0; 2]; 3];
    for (subset, runs, counts) in expected {
        let cases = cases(subset);
        assert_eq!(cases.len(), runs);
        let rule = hits(&cases, &strict);
        assert_eq!(
            rule.counts, counts,
            "the strict first-error rule on {subset}"
        );
        let own = hits(&cases, &ours);
        println!("{subset}, {runs} runs: hits with Wilson's 95 % interval of their share");
        print("suspects", &own, runs);
        print("strict first error", &rule, runs);
        let by_place = |case: &Case| case.eligible.clone();
        print("first step first", &hits(&cases, &by_place), runs);
        let from_end = |case: &Case| case.eligible.iter().rev().copied().collect();
        print("last step first", &hits(&cases, &from_end), runs);
        let (only, other, p) = mcnemar(&own.right, &rule.right);
        println!(
            "  step@1 against the strict rule: right only here {only}, only there {other}, exact p = {p:.4}"
        );
        let counts = own.counts.iter().zip(rule.counts);
        for ([sum, of_rule], (own, rule)) in sums.iter_mut().zip(counts) {
            assert!(
                *own >= rule,
                "{subset}: {own} hits, the strict rule has {rule}"
            );
            *sum += own;
            *of_rule += rule;
        }
    }
    println!("both, ours and the strict rule's, at 1, 3 and 5: {sums:?}");
    assert!(sums.iter().all(|[own, rule]| own > rule), "{sums:?}");
}

#[test]
fn a_history_becomes_a_run_without_a_look_into_it() {
    let case = Case {
        file: String::new(),
        speakers: ["planner", "computerterminal", "coder", "coder", "human"]
            .map(String::from)
            .to_vec(),
        texts: ["the task", "exitcode: 0", "print(1)", "again", "go on"]
            .map(String::from)
            .to_vec(),
        eligible: vec![0, 2, 3],
        step: 2,
        agent: "coder".into(),
    };
    let story = story(&case);
    let tools: Vec<_> = story
        .steps
        .iter()
        .map(|step| step.tool().unwrap())
        .collect();
    assert_eq!(tools, ["planner", "coder", "coder"]);
    let answer = |at: usize| {
        let text = &story.steps[at].response.as_ref().unwrap().text;
        let answer: Value = serde_json::from_slice(text).unwrap();
        let blocks = answer["result"]["content"].as_array().unwrap().clone();
        blocks
            .iter()
            .map(|b| b["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(answer(0), ["exitcode: 0"]);
    assert_eq!(answer(1), ["print(1)"]);
    assert_eq!(answer(2), ["again", "go on"]);
    assert_eq!(ours(&case), [0, 2, 3]);
}
