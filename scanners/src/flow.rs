//! Flows over the calls of a run: what each call did, by its tool's name and its arguments, and
//! which of them after each other carry data out.
//!
//! A pattern alone is common in honest runs: it is told with low severity. Where a value of what
//! was read stands in what was sent, or where what came from outside gives orders to the model,
//! it is reported. One pass over the calls; of each a bounded part is looked at.

mod kind;
mod rules;

use crate::codes;
use crate::finding::{Confidence, Finding, Place, escaped};
use aho_corasick::AhoCorasick;
use kind::{Did, Kinds};
use serde_json::Value;

/// A call of a tool, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The number of its step.
    pub step: usize,
    /// What its server is called.
    pub server: &'a str,
    /// What its tool is called.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// Its answer: the text of the message.
    pub answer: &'a str,
    /// Whether its answer gives orders to the model.
    pub steers: bool,
}

/// The most flows of a run that are told.
const MOST: usize = 100;
/// How much of an answer or of arguments is looked at, in bytes.
const LOOKED_AT: usize = 256 << 10;
/// Reads of files or records before an archive that are many.
const MANY: usize = 10;

/// What is found in the calls of a run, with the step at which each flow ends. `project`: the
/// folder in which the run worked, where it is known.
#[must_use]
pub fn flows(calls: &[Call<'_>], project: Option<&str>) -> Vec<(usize, Finding)> {
    let mut run = Run::default();
    for (at, call) in calls.iter().enumerate() {
        let did = kind::of(call, project);
        for rule in rules::RULES {
            if run.found.len() < MOST && did.kinds.has(rule.ends) {
                run.ends(calls, at, &did, rule);
            }
        }
        run.note(at, did.kinds);
    }
    run.found
}

/// What was seen so far: of each kind the last call.
#[derive(Default)]
struct Run {
    last: [Option<usize>; kind::COUNT],
    reads: usize,
    found: Vec<(usize, Finding)>,
}

impl Run {
    fn note(&mut self, at: usize, kinds: Kinds) {
        for kind in kind::ALL {
            if kinds.has(kind) {
                self.last[kind as usize] = Some(at);
            }
        }
        self.reads += usize::from(kinds.has(Did::Reads));
    }

    /// A call that may be the end of a flow.
    fn ends(&mut self, calls: &[Call<'_>], at: usize, did: &kind::Done, rule: &rules::Rule) {
        let mut before = Vec::new();
        for group in rule.after {
            let last = group.iter().filter_map(|kind| self.last[*kind as usize]);
            match last.max() {
                Some(call) => before.push(call),
                None => return,
            }
        }
        if self.reads < rule.reads {
            return;
        }
        before.sort_unstable();
        before.dedup();
        let end = &calls[at];
        let sent = text_of(end.arguments);
        let carried = before
            .iter()
            .find_map(|from| carried(calls[*from].answer, &sent));
        let steered = before.iter().any(|from| calls[*from].steers);
        let (severity, confidence) = match (rule.alone, carried.is_some(), steered) {
            (severity, false, false) => (severity, Confidence::Low),
            (severity, true, true) => (severity.max(rule.proven), Confidence::High),
            (severity, ..) => (severity.max(rule.proven), Confidence::Medium),
        };
        let same =
            |(_, known): &(usize, Finding)| known.code == rule.code && known.severity >= severity;
        // One run of many calls is one flow: it is told where it is seen first, and again where
        // it is worse.
        if self.found.iter().any(same) {
            return;
        }
        let mut steps: Vec<String> = before.iter().map(|from| said(&calls[*from])).collect();
        steps.push(said(end));
        let why = match &carried {
            Some(value) => format!("; {} is in both", escaped(value)),
            None if steered => "; what came from outside gives orders".to_owned(),
            None => String::new(),
        };
        let quote = did.quote.as_deref().unwrap_or(&sent);
        self.found.push((
            end.step,
            Finding {
                code: rule.code,
                title: codes::title(rule.code),
                severity,
                confidence,
                server: Some(end.server.to_owned()),
                tool: Some(end.tool.chars().take(256).collect()),
                place: Place::Call,
                pointer: "/params/arguments".into(),
                start: 0,
                end: quote.len(),
                quote: escaped(quote),
                decoded: Some(format!("{}{why}", steps.join(" → "))),
            },
        ));
    }
}

/// A call, shortly.
fn said(call: &Call<'_>) -> String {
    let tool: String = call.tool.chars().take(60).collect();
    format!("step {} {}", call.step, escaped(&tool))
}

/// All strings of a value, one after the other; not more than is looked at.
fn text_of(value: &Value) -> String {
    let mut out = String::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if out.len() < LOOKED_AT => {
                out.push_str(cut(text, LOOKED_AT - out.len()));
                out.push('\n');
            }
            Value::Array(items) => left.extend(items.iter().rev()),
            Value::Object(members) => left.extend(members.values().rev()),
            _ => {}
        }
    }
    out
}

fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Words of what was read that say whether it was sent on.
const WORDS: usize = 200;
/// Shorter words stand in any two texts.
const SHORTEST: usize = 14;

/// A word of one text that stands in another as well, and in no text by chance: long, and with
/// digits or signs in it.
fn carried(read: &str, sent: &str) -> Option<String> {
    let parts =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | ',' | ';' | '<' | '>');
    let telling = |word: &&str| {
        word.len() >= SHORTEST
            && word.len() <= 200
            && word.chars().any(|c| c.is_ascii_digit())
            && word.chars().any(char::is_alphabetic)
            && !word.contains("://")
    };
    let mut words: Vec<&str> = cut(read, LOOKED_AT).split(parts).filter(telling).collect();
    words.truncate(WORDS);
    let found = AhoCorasick::new(&words).ok()?;
    let hit = found.find(cut(sent, LOOKED_AT))?;
    words
        .get(hit.pattern().as_usize())
        .map(|word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use serde_json::json;

    /// A trace in words: calls with `>` between, each `server tool argument`.
    fn scanned(trace: &str) -> Vec<(usize, Finding)> {
        let parts: Vec<(&str, &str, Value)> = trace
            .split(" > ")
            .map(|call| {
                let mut words = call.splitn(3, ' ');
                let (server, tool) = (words.next().unwrap(), words.next().unwrap());
                (server, tool, json!({"value": words.next().unwrap_or("")}))
            })
            .collect();
        let calls: Vec<Call<'_>> = parts
            .iter()
            .enumerate()
            .map(|(i, (server, tool, arguments))| Call {
                step: i + 1,
                server,
                tool,
                arguments,
                answer: "ok token-4711-abcdef-99 done",
                steers: false,
            })
            .collect();
        flows(&calls, Some("/home/ann/work"))
    }

    #[test]
    fn rules_find_their_examples_and_no_others() {
        for rule in rules::RULES {
            for trace in rule.bad {
                let found = scanned(trace);
                assert!(
                    found.iter().any(|(_, f)| f.code == rule.code),
                    "{} {trace}: {found:?}",
                    rule.code
                );
            }
            for trace in rule.good {
                let found = scanned(trace);
                assert!(
                    !found.iter().any(|(_, f)| f.flagged()),
                    "{trace}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_value_that_is_carried_makes_it_worse() {
        let found = scanned("files read_file /home/ann/.aws/credentials > mail send_mail hello");
        assert_eq!(found[0].1.severity, Severity::Low);
        let found = scanned(
            "files read_file /home/ann/.aws/credentials > mail send_mail token-4711-abcdef-99",
        );
        let (step, finding) = &found[0];
        assert_eq!((*step, finding.severity), (2, Severity::High));
        assert!(
            finding
                .decoded
                .as_ref()
                .unwrap()
                .contains("step 1 read_file → step 2 send_mail")
        );
    }

    #[test]
    fn many_calls_are_read_once() {
        let trace = "files read_file /home/ann/.env > web fetch_page x > mail send_mail y";
        let many = vec![trace; 3000].join(" > ");
        assert!(scanned(&many).len() <= MOST);
    }
}
