//! Results as JUnit XML, which CI systems show as test results.
//!
//! Form: the elements and attributes that the schema of Jenkins' xUnit plug-in
//! (`junit-10.xsd`) and those who read it have in common.

use super::escape;
use std::fmt::Write;

/// A suite of tests.
#[derive(Debug)]
pub(crate) struct Suite {
    /// What the tests are said to be of, such as `check`.
    of: &'static str,
    cases: String,
    tests: usize,
    failures: usize,
    skipped: usize,
}

/// What came of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Came<'a> {
    Passed,
    Failed {
        message: &'a str,
        kind: &'a str,
        text: &'a str,
    },
    Skipped {
        message: &'a str,
    },
}

impl Suite {
    pub(crate) fn new(of: &'static str) -> Self {
        Self {
            of,
            cases: String::new(),
            tests: 0,
            failures: 0,
            skipped: 0,
        }
    }

    pub(crate) fn add(&mut self, name: &str, came: Came<'_>) {
        self.tests += 1;
        let (of, name) = (self.of, attribute(name));
        let case = format!("    <testcase classname=\"agent-trace.{of}\" name=\"{name}\"");
        let _ = match came {
            Came::Passed => writeln!(self.cases, "{case}/>"),
            Came::Failed {
                message,
                kind,
                text,
            } => {
                self.failures += 1;
                let (message, text) = (attribute(message), content(text));
                let failure = format!("<failure message=\"{message}\" type=\"{kind}\">");
                writeln!(self.cases, "{case}>{failure}{text}</failure></testcase>")
            }
            Came::Skipped { message } => {
                self.skipped += 1;
                let message = attribute(message);
                writeln!(
                    self.cases,
                    "{case}><skipped message=\"{message}\"/></testcase>"
                )
            }
        };
    }

    /// The document; `name` is of this one suite.
    pub(crate) fn document(&self, name: &str) -> String {
        let Self {
            of,
            cases,
            tests,
            failures,
            skipped,
        } = self;
        let name = attribute(name);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"agent-trace {of}\" tests=\"{tests}\" failures=\"{failures}\">\n  \
             <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" \
             skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n"
        )
    }
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
