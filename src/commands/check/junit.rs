//! Findings as JUnit XML, which CI systems show as test results.
//!
//! Each rule that found nothing is a test that passed; of the others each finding is a test
//! that failed (equal ones are one). What the baseline accepts, and what is not bad enough to
//! fail for, is a test that was skipped.
//!
//! Form: the elements and attributes that the schema of Jenkins' xUnit plug-in
//! (`junit-10.xsd`) and those who read it have in common.

use super::Outcome;
use crate::render::{escape, short};
use agent_trace_analysis::check::{Finding, rules};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What tests are said to be of.
const CLASS: &str = "agent-trace.check";

pub(super) fn of(outcome: &Outcome<'_>) -> String {
    let mut cases = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    let all = outcome.found.iter().chain(&outcome.accepted);
    let broken: BTreeSet<&str> = all.map(|finding| finding.code).collect();
    for rule in rules().iter().filter(|rule| !broken.contains(rule.code)) {
        tests += 1;
        case(&mut cases, rule.code, "");
    }
    for group in outcome.groups() {
        let Some(first) = group.first() else { continue };
        tests += 1;
        let message = attribute(&first.what);
        let body = if outcome.counts(first) {
            failures += 1;
            let kind = first.severity.as_str();
            let text = content(&details(&group));
            format!("<failure message=\"{message}\" type=\"{kind}\">{text}</failure>")
        } else {
            skipped += 1;
            format!("<skipped message=\"{message}\"/>")
        };
        case(&mut cases, &name(first), &body);
    }
    let mut known = BTreeSet::new();
    for accepted in &outcome.accepted {
        if known.insert(&accepted.key) {
            tests += 1;
            skipped += 1;
            let message = attribute(&format!("accepted: {}", accepted.what));
            case(
                &mut cases,
                &name(accepted),
                &format!("<skipped message=\"{message}\"/>"),
            );
        }
    }
    let suite = attribute(&format!("run {}", short(outcome.story.id)));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"agent-trace check\" tests=\"{tests}\" failures=\"{failures}\">\n  \
         <testsuite name=\"{suite}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" \
         skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

fn case(out: &mut String, name: &str, body: &str) {
    let name = attribute(name);
    let _ = match body {
        "" => writeln!(out, "    <testcase classname=\"{CLASS}\" name=\"{name}\"/>"),
        _ => writeln!(
            out,
            "    <testcase classname=\"{CLASS}\" name=\"{name}\">{body}</testcase>"
        ),
    };
}

/// What a finding is called: the same in each run.
fn name(finding: &Finding) -> String {
    let mut name = format!("{} {}", finding.code, finding.server);
    if let Some(tool) = &finding.tool {
        name.push(' ');
        name.push_str(tool);
    }
    format!("{name} [{}]", finding.key)
}

/// All that is known of equal findings.
fn details(group: &[&Finding]) -> String {
    let mut text = String::new();
    for finding in group {
        let step = finding.step.map(|step| format!("step {step}: "));
        let _ = writeln!(text, "{}{}", step.unwrap_or_default(), finding.what);
        if !finding.quote.is_empty() {
            let cut = if finding.quote.cut { "…" } else { "" };
            let _ = writeln!(text, "    {}{cut}", finding.quote.text);
        }
    }
    text
}

/// A text as the value of an attribute.
fn attribute(text: &str) -> String {
    xml(text, false)
}

/// A text between tags; its lines stay.
fn content(text: &str) -> String {
    xml(text, true)
}

/// Characters that XML has no place for, and those that steer a terminal, are shown as escapes.
/// Source: XML 1.0, sections 2.2 and 2.4.
fn xml(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push_str(if lines { "\n" } else { " " });
        }
        for c in escape::text(line.as_bytes(), 0).chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&apos;"),
                // Neither is a character of XML.
                '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_becomes_markup() {
        let hostile = "a<b>&\"'\u{1b}[2J\0\u{ffff}\u{202e}\r\nnext";
        assert_eq!(
            attribute(hostile),
            "a&lt;b&gt;&amp;&quot;&apos;\\u{1b}[2J\\u{0}\u{fffd}\\u{202e}\\r next"
        );
        assert!(content(hostile).ends_with("\\r\nnext"));
        assert_eq!(attribute("]]>"), "]]&gt;");
    }
}
