//! Definitions as pins keep them: in one form that does not depend on how a server writes its
//! JSON, or on the key that secrets were hidden with; its hash; and what changed.
//!
//! - [`identity`]: which server it is, however it is reached
//! - [`diff`]: what is different in two forms, field by field
//! - [`history`]: which definitions changed, in the order in which they were seen
//!
//! # The canonical form
//!
//! The JSON of a definition as in RFC 8785 (members sorted by the UTF-16 code units of their
//! names, no white space, the fewest escapes), with these differences:
//!
//! - each marker of a hidden secret, `[REDACTED:kind:digits]`, is reduced to `[REDACTED:kind]`,
//!   in names of members as well: what is recorded on two machines is then the same;
//! - numbers without a fraction are written without one (`1.0` is `1`), others with the fewest
//!   digits that tell them from their neighbours and without an exponent;
//! - the lists `required`, `enum` and `type` of a schema are sorted: they are sets;
//! - what is nested deeper than 128 levels is not there.
//!
//! The hash is BLAKE3 of that text (32 bytes).

pub mod diff;
pub mod history;
pub mod identity;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// What is nested deeper is not in the canonical form.
const DEEPEST: usize = 128;
/// The most bytes of a name.
const LONGEST_NAME: usize = 256;
/// The most definitions of one answer.
pub const MOST: usize = 10_000;

/// A hash of a canonical form.
pub type Hash = [u8; 32];

/// What is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A tool, by its name.
    Tool,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its URI.
    Resource,
    /// A template of resources, by its URI template.
    Template,
    /// What the server tells models of itself: its instructions.
    Instructions,
}

impl Kind {
    /// The word for it, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
        }
    }

    /// The member of an answer in which it stands.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Instructions => "instructions",
        }
    }
}

/// A definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What is defined.
    pub kind: Kind,
    /// Its name, cut after 256 bytes; of several with one name the second has `#2` behind it.
    pub name: String,
    /// Where it stands in its list.
    pub position: usize,
    /// The canonical form.
    pub text: String,
    /// The hash of that.
    pub hash: Hash,
}

/// What the `result` of an answer defines; no more than [`MOST`].
#[must_use]
pub fn definitions(result: &Value) -> Vec<Definition> {
    let lists = [
        (Kind::Tool, "name"),
        (Kind::Prompt, "name"),
        (Kind::Resource, "uri"),
        (Kind::Template, "uriTemplate"),
    ];
    let mut all = Vec::new();
    for (kind, called) in lists {
        let items = result.get(kind.member()).and_then(Value::as_array);
        for (position, item) in items.into_iter().flatten().enumerate() {
            let name = item.get(called).and_then(Value::as_str).unwrap_or_default();
            all.push((kind, name, position, item));
        }
    }
    let instructions = result.get(Kind::Instructions.member());
    if let Some(text) = instructions.filter(|text| text.is_string()) {
        all.push((Kind::Instructions, "", 0, text));
    }
    all.truncate(MOST);
    let mut known: HashMap<(Kind, String), usize> = HashMap::new();
    let definition = |(kind, name, position, value): (Kind, &str, usize, &Value)| {
        let mut name = cut(&reduced(name)).to_owned();
        let count = known.entry((kind, name.clone())).or_default();
        *count += 1;
        if *count > 1 {
            name.push_str(&format!("#{count}"));
        }
        let text = canonical(value);
        Definition {
            kind,
            name,
            position,
            hash: hash(&text),
            text,
        }
    };
    all.into_iter().map(definition).collect()
}

/// The hash of a canonical form.
#[must_use]
pub fn hash(canonical: &str) -> Hash {
    *blake3::hash(canonical.as_bytes()).as_bytes()
}

/// The canonical form of a value.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, "", 0, &mut out);
    out
}

fn write(value: &Value, key: &str, depth: usize, out: &mut String) {
    match value {
        _ if depth > DEEPEST => out.push_str("null"),
        Value::Null => out.push_str("null"),
        Value::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&digits(number)),
        Value::String(text) => string(&reduced(text), out),
        Value::Array(items) => {
            let text = |item| {
                let mut text = String::new();
                write(item, "", depth + 1, &mut text);
                text
            };
            let mut texts: Vec<String> = items.iter().map(text).collect();
            if matches!(key, "required" | "enum" | "type") {
                texts.sort_unstable();
            }
            out.push('[');
            out.push_str(&texts.join(","));
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(Cow<'_, str>, &str, &Value)> = members
                .iter()
                .map(|(name, value)| (reduced(name), &name[..], value))
                .collect();
            members.sort_by(|(one, ..), (other, ..)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (position, (shown, name, value)) in members.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                string(&shown, out);
                out.push(':');
                write(value, name, depth + 1, out);
            }
            out.push('}');
        }
    }
}

fn digits(number: &serde_json::Number) -> String {
    match number.as_f64() {
        // Whole numbers beyond this are not exact, and are left as they are written.
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
            #[allow(clippy::cast_possible_truncation, reason = "it is whole, and in range")]
            let whole = float as i64;
            whole.to_string()
        }
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

/// A JSON string with the escapes of RFC 8785, section 3.2.2.2.
fn string(text: &str, out: &mut String) {
    use std::fmt::Write;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

const MARKER: &str = "[REDACTED:";
/// The longest kind of a secret, in bytes.
const LONGEST_KIND: usize = 40;

/// A text with each marker of a hidden secret reduced to its kind.
#[must_use]
pub fn reduced(text: &str) -> Cow<'_, str> {
    if !text.contains(MARKER) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARKER) {
        let (before, marker) = rest.split_at(at);
        out.push_str(before);
        match kind(marker) {
            Some((kind, length)) => {
                out.push_str(MARKER);
                out.push_str(kind);
                out.push(']');
                rest = &marker[length..];
            }
            None => {
                out.push_str(MARKER);
                rest = &marker[MARKER.len()..];
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The kind in the marker that a text begins with, and the marker's length.
fn kind(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix(MARKER)?;
    let end = rest
        .bytes()
        .take(LONGEST_KIND + 1)
        .position(|b| b == b':')?;
    let named = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let (kind, digits) = (&rest[..end], rest.as_bytes().get(end + 1..end + 10)?);
    let (bracket, digits) = digits.split_last()?;
    let hex = digits.iter().all(u8::is_ascii_hexdigit);
    (end > 0 && kind.bytes().all(named) && hex && *bracket == b']')
        .then_some((kind, MARKER.len() + end + 10))
}

/// A name, no longer than is kept of one.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_definition_has_one_form_however_it_is_written() {
        let one = r#"{"name":"a","inputSchema":{"required":["y","x"],"minimum":1.0,"b\u0061":"\u00e9\/\n"}}"#;
        let other = "{ \"inputSchema\": {\"ba\": \"é/\\n\", \"minimum\": 1, \"required\": [\"x\", \"y\"]},\n \"name\": \"a\" }";
        let form = |text| canonical(&serde_json::from_str(text).unwrap());
        assert_eq!(form(one), form(other));
        assert_eq!(
            form(one),
            r#"{"inputSchema":{"ba":"é/\n","minimum":1,"required":["x","y"]},"name":"a"}"#
        );
        // By UTF-16 code units, and not by code points.
        assert_eq!(
            canonical(&json!({"\u{ffff}": 1, "\u{10000}": 2})),
            "{\"\u{10000}\":2,\"\u{ffff}\":1}"
        );
        // The order of other lists says something.
        assert_ne!(form(r#"{"x":[1,2]}"#), form(r#"{"x":[2,1]}"#));
        assert_eq!(
            form("[0.1,1e30,-2.50]"),
            "[0.1,1000000000000000000000000000000,-2.5]"
        );
    }

    #[test]
    fn the_key_of_the_redaction_makes_no_difference() {
        let one = json!({"description": "[REDACTED:token:00112233] and [REDACTED:x"});
        let other = json!({"description": "[REDACTED:token:aabbccdd] and [REDACTED:x"});
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(
            canonical(&one),
            r#"{"description":"[REDACTED:token] and [REDACTED:x"}"#
        );
        assert_ne!(
            canonical(&one),
            canonical(&json!({"description": "[REDACTED:url:00112233] and [REDACTED:x"}))
        );
    }

    #[test]
    fn all_that_an_answer_defines_has_its_name() {
        let result = json!({
            "tools": [{"name": "a"}, {"name": "b"}, {"name": "a", "title": "again"}],
            "resources": [{"uri": "file:///x"}],
            "instructions": "be kind",
            "serverInfo": {"version": "1"},
        });
        let all = definitions(&result);
        let names: Vec<(Kind, &str)> = all.iter().map(|d| (d.kind, &d.name[..])).collect();
        assert_eq!(
            names,
            [
                (Kind::Tool, "a"),
                (Kind::Tool, "b"),
                (Kind::Tool, "a#2"),
                (Kind::Resource, "file:///x"),
                (Kind::Instructions, ""),
            ]
        );
        assert_ne!(all[0].hash, all[2].hash);
    }

    #[test]
    fn depth_is_bounded() {
        let mut value = json!("deep");
        for _ in 0..100_000 {
            value = Value::Array(vec![value]);
        }
        assert!(canonical(&value).len() < 1_000);
        while let Value::Array(mut items) = value {
            value = items.pop().unwrap();
        }
    }
}
