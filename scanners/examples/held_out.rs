//! Held out: the families of texts are split in two halves; the entries of the lexicon that no
//! attack of one half needs are left out, and the other half is scanned. What is still found
//! rests on words and rules that the held-out half did not bring.
//!
//! `held_out FILE…` reads probes (`tests/probes/*.txt`, families by their headlines) and rows of
//! a labelled set (`*.jsonl`, families by source and class). The rules themselves are code and
//! stay: this measures the words, not the rules.

use agent_trace_scanners::{Finding, held_out, result, tool};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::process::Command;
use std::{env, fs};

/// A labelled text.
struct Text {
    family: String,
    hostile: bool,
    /// A tool, or `None`: the text of a result.
    tool: Option<Value>,
    text: String,
}

fn main() -> io::Result<()> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut half = None;
    if arguments.first().is_some_and(|first| first == "--half") {
        half = arguments.get(1).and_then(|half| half.parse::<usize>().ok());
        held_out::leave_out(&fs::read_to_string(&arguments[2])?);
        arguments.drain(..3);
    }
    let mut texts = Vec::new();
    for path in &arguments {
        read(path, &mut texts)?;
    }
    let families: BTreeSet<String> = texts.iter().map(|text| text.family.clone()).collect();
    let halves: BTreeMap<String, usize> = families
        .into_iter()
        .enumerate()
        .map(|(i, family)| (family, i % 2))
        .collect();
    let halves = &halves;
    let texts = &texts;
    let of = |wanted: usize| {
        texts
            .iter()
            .filter(move |text| halves[&text.family] == wanted)
    };
    let mut out = io::stdout().lock();
    if let Some(half) = half {
        let (found, all) = score(of(half));
        return writeln!(out, "{found} {all}");
    }
    let (mut seen, mut unseen, mut total) = (0, 0, 0);
    for half in 0..2 {
        let needs = |half| -> BTreeSet<String> {
            let hostile = of(half).filter(|text| text.hostile);
            hostile
                .flat_map(|text| held_out::entries(&text.text))
                .collect()
        };
        let other = needs(1 - half);
        let only: Vec<String> = needs(half)
            .into_iter()
            .filter(|e| !other.contains(e))
            .collect();
        let list = env::temp_dir().join(format!("held-out-{}-{half}", std::process::id()));
        fs::write(&list, only.join("\n"))?;
        let child = Command::new(env::current_exe()?)
            .arg("--half")
            .arg(half.to_string())
            .arg(&list)
            .args(&arguments)
            .output()?;
        fs::remove_file(&list)?;
        let (found, all) = score(of(half));
        let printed = String::from_utf8_lossy(&child.stdout).into_owned();
        let held: usize = printed
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        writeln!(
            out,
            "half {half}: {found} of {all} attacks found; {held} without the {} entries that only they need",
            only.len()
        )?;
        seen += found;
        unseen += held;
        total += all;
    }
    let rate = |n: usize| n as f64 / total.max(1) as f64;
    writeln!(
        out,
        "all {:.3}, held out {:.3}, gap {:.3}",
        rate(seen),
        rate(unseen),
        rate(seen - unseen.min(seen))
    )
}

/// How many attacks are found, of how many.
fn score<'a>(texts: impl Iterator<Item = &'a Text>) -> (usize, usize) {
    let hostile: Vec<&Text> = texts.filter(|text| text.hostile).collect();
    let flagged = |text: &&&Text| {
        let found = match &text.tool {
            Some(value) => tool(Some("probe"), value, &[]),
            None => result("", &text.text),
        };
        found.iter().any(Finding::flagged)
    };
    (hostile.iter().filter(flagged).count(), hostile.len())
}

fn read(path: &str, out: &mut Vec<Text>) -> io::Result<()> {
    let file = fs::read_to_string(path)?;
    if path.ends_with(".jsonl") {
        for line in file.lines() {
            let row: Value = serde_json::from_str(line).map_err(io::Error::other)?;
            let word = |key: &str| row[key].as_str().unwrap_or("").to_owned();
            // What a text alone tells.
            if ["T1", "T2", "R1"].contains(&&word("track")[..]) && row["constructed"] != true {
                out.push(Text {
                    family: format!("{} {}", word("source"), word("attack_class")),
                    hostile: word("label") == "malicious",
                    tool: row["json"].is_object().then(|| row["json"].clone()),
                    text: format!("{} {}", word("text"), row["json"]),
                });
            }
        }
        return Ok(());
    }
    let mut family = String::new();
    for line in file.lines() {
        if let Some(headline) = line.strip_prefix("# ") {
            headline.clone_into(&mut family);
        } else if let Some((mark, text)) = line.split_once(' ') {
            let text = text.replace("\\n", "\n");
            let described = json!({"name": "probe_tool", "description": text});
            out.push(Text {
                family: family.clone(),
                hostile: mark.ends_with('+'),
                tool: (!mark.starts_with('R')).then_some(described),
                text,
            });
        }
    }
    Ok(())
}
