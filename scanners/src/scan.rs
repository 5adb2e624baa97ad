//! Scans of whole things: a definition, a tool among its neighbours, a server, a result.

use crate::codes;
use crate::collide;
use crate::finding::{Confidence, Finding, Place, Severity, escaped};
use crate::params;
use crate::pieces;
use crate::text::{self, About};
use crate::walk::{self, Named, Strings};
use serde_json::Value;
use std::collections::HashSet;

/// A server that is connected at the same time, and trusted.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its tools, as `tools/list` gives them.
    pub tools: &'a [Value],
}

/// Scans a tool as `tools/list` gives it. `server`: what its server is called; `others`: the
/// servers that are connected beside it.
#[must_use]
pub fn tool(server: Option<&str>, tool: &Value, others: &[Server<'_>]) -> Vec<Finding> {
    let mut found = definition(server, tool);
    let name = tool.get("name").and_then(Value::as_str).unwrap_or("");
    if collide::praises(name) {
        found.push(of_name(server, name, "AT1018", None));
    }
    found.extend(copies(server, tool, others));
    found
}

/// Tools of other servers that a tool copies.
pub(crate) fn copies(server: Option<&str>, tool: &Value, others: &[Server<'_>]) -> Vec<Finding> {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or("");
    let copied = others.iter().filter_map(|other| {
        let copied = collide::copies(server, tool, other.name, other.tools)?;
        let what = format!("copy of {} of {}", escaped(&copied), escaped(other.name));
        Some(of_name(server, name, "AT1021", Some(what)))
    });
    copied.collect()
}

/// A finding about a tool by its name.
fn of_name(
    server: Option<&str>,
    name: &str,
    code: &'static str,
    decoded: Option<String>,
) -> Finding {
    Finding {
        code,
        title: codes::title(code),
        severity: Severity::Medium,
        confidence: Confidence::Medium,
        server: server.map(str::to_owned),
        tool: Some(short(name).to_owned()),
        place: Place::Name,
        pointer: "/name".into(),
        start: 0,
        end: name.len(),
        quote: escaped(name),
        decoded,
    }
}

/// Scans a definition of any kind: a tool, a prompt, a resource, the answer to `initialize`.
/// Pointers start at it.
#[must_use]
pub fn definition(server: Option<&str>, value: &Value) -> Vec<Finding> {
    let strings = walk::strings(value);
    let own = own_names(value, &strings.all);
    let is_own = |name: &str| own.contains(name);
    let mut found = Vec::new();
    for named in &strings.all {
        let about = About {
            place: named.place,
            field: named.field,
            own: &is_own,
        };
        let mut here = text::scan(named.text, about);
        if named.key == "$ref" {
            here.extend(reference(named));
        }
        found.extend(placed(here, named, &strings));
    }
    for named in params::scan(value, &strings.all) {
        let finding = Finding {
            code: "AT1020",
            title: codes::title("AT1020"),
            severity: Severity::Medium,
            confidence: Confidence::Medium,
            server: None,
            tool: None,
            place: Place::Name,
            pointer: String::new(),
            start: 0,
            end: named.text.len(),
            quote: escaped(named.text),
            decoded: None,
        };
        found.extend(placed(vec![finding], named, &strings));
    }
    let name = value.get("name").and_then(Value::as_str);
    for finding in &mut found {
        finding.server = server.map(str::to_owned);
        finding.tool = name.map(|name| short(name).to_owned());
    }
    found
}

/// Scans what only shows in several tools of one server. With each finding the position of the
/// tool that it is about.
#[must_use]
pub fn server(server: Option<&str>, tools: &[&Value]) -> Vec<(usize, Finding)> {
    let mut found = pieces::scan(tools);
    for (tool, finding) in &mut found {
        finding.server = server.map(str::to_owned);
        finding.tool = tools[*tool]
            .get("name")
            .and_then(Value::as_str)
            .map(|name| short(name).to_owned());
    }
    found
}

/// A name, cut after 256 bytes: it is in every finding.
fn short(name: &str) -> &str {
    let end = (0..=name.len().min(256)).rev();
    let end = end.filter(|at| name.is_char_boundary(*at)).max();
    &name[..end.unwrap_or(0)]
}

/// Scans a text that came from outside: a tool's result, a resource, a prompt's message, an
/// error. `pointer` leads to it in its message.
#[must_use]
pub fn result(pointer: &str, raw: &str) -> Vec<Finding> {
    let about = About {
        place: Place::Result,
        field: false,
        own: &|_| false,
    };
    let mut found = text::scan(raw, about);
    for finding in &mut found {
        pointer.clone_into(&mut finding.pointer);
    }
    found
}

/// Scans all strings of a message's `result` or `error`, however deep.
#[must_use]
pub fn message(value: &Value) -> Vec<Finding> {
    let strings = walk::message(value);
    let found = |named: &Named<'_>| placed(result("", named.text), named, &strings);
    strings.all.iter().flat_map(found).collect()
}

/// What is found in a string, with its pointer.
fn placed(found: Vec<Finding>, named: &Named<'_>, strings: &Strings<'_>) -> Vec<Finding> {
    let at = |finding| Finding {
        pointer: strings.pointer(named),
        ..finding
    };
    found.into_iter().map(at).collect()
}

/// Names that a definition uses of itself: its own and those of its parameters.
fn own_names(value: &Value, strings: &[Named<'_>]) -> HashSet<String> {
    let names = strings
        .iter()
        .filter(|named| named.place == Place::Name)
        .map(|named| named.text.to_lowercase());
    // Values of enumerations are often written like names.
    let values = strings
        .iter()
        .filter(|named| named.place == Place::Value && named.text.len() < 64)
        .map(|named| named.text.to_lowercase());
    let mut own: HashSet<String> = names.chain(values).collect();
    if let Some(name) = value.get("name").and_then(Value::as_str) {
        own.insert(name.to_lowercase());
        // What its name is about, without plurals.
        let words = params::words(name).into_iter();
        own.extend(words.map(|word| word.trim_end_matches('s').to_owned()));
    }
    own
}

/// A `$ref` that leads out of the schema.
fn reference(named: &Named<'_>) -> Option<Finding> {
    let target = named.text;
    let outside = target.contains("://")
        || target.starts_with('/')
        || target.contains("..")
        || target.starts_with("file:")
        || target.ends_with(".json");
    if target.starts_with('#') || !outside {
        return None;
    }
    let known = target.starts_with("https://json-schema.org/")
        || target.starts_with("http://json-schema.org/");
    Some(Finding {
        code: "AT1022",
        title: codes::title("AT1022"),
        severity: if known {
            Severity::Info
        } else {
            Severity::Medium
        },
        confidence: Confidence::High,
        server: None,
        tool: None,
        place: Place::Value,
        pointer: String::new(),
        start: 0,
        end: target.len(),
        quote: escaped(target),
        decoded: None,
    })
}

/// The signals in each sentence of a text, for whoever writes rules.
#[doc(hidden)]
#[must_use]
pub fn signals(raw: &str, place: Place) -> String {
    let about = About {
        place,
        field: false,
        own: &|_| false,
    };
    text::signals(raw, about)
}
