//! The strings of a tool, prompt or resource as a server lists it, with their JSON pointers.

use crate::finding::Place;
use serde_json::Value;

/// A string of a definition.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    pub(crate) pointer: String,
    pub(crate) place: Place,
    pub(crate) text: &'a str,
}

/// Deeper members are not looked at.
const DEEPEST: usize = 64;
/// No more strings than this of one definition.
const MOST: usize = 20_000;

/// All strings of a definition, and the keys that are names.
pub(crate) fn strings(value: &Value) -> Vec<Named<'_>> {
    let mut out = Vec::new();
    walk(
        value,
        &mut String::new(),
        "",
        Place::Description,
        0,
        &mut out,
    );
    out
}

/// `key`: the member that the value is of, or of the list that it is in. `inside`: what that
/// member's own place is.
fn walk<'a>(
    value: &'a Value,
    pointer: &mut String,
    key: &str,
    inside: Place,
    depth: usize,
    out: &mut Vec<Named<'a>>,
) {
    if depth > DEEPEST || out.len() >= MOST {
        return;
    }
    match value {
        Value::String(text) => {
            if let Some(place) = place(key, inside) {
                out.push(Named {
                    pointer: pointer.clone(),
                    place,
                    text,
                });
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                step(pointer, &i.to_string(), |pointer| {
                    walk(item, pointer, key, inside, depth + 1, out);
                });
            }
        }
        Value::Object(members) => {
            let names = matches!(
                key,
                "properties" | "$defs" | "definitions" | "patternProperties"
            );
            for (name, member) in members {
                step(pointer, name, |pointer| {
                    // A parameter's name is a string that the model reads as well.
                    if names || name.len() > 40 {
                        out.push(Named {
                            pointer: pointer.clone(),
                            place: Place::Name,
                            text: name,
                        });
                    }
                    let inside = if value_member(name) && !names {
                        Place::Value
                    } else {
                        inside
                    };
                    let key = if names { "" } else { name.as_str() };
                    walk(member, pointer, key, inside, depth + 1, out);
                });
            }
        }
        _ => {}
    }
}

/// What kind of text a member holds; `None` for words of the schema language.
fn place(key: &str, inside: Place) -> Option<Place> {
    match key {
        "type" | "$schema" | "$id" | "format" | "required" | "mimeType" | "contentEncoding"
        | "contentMediaType" => None,
        "name" => Some(Place::Name),
        _ => Some(inside),
    }
}

/// Members of a schema whose strings are values.
fn value_member(key: &str) -> bool {
    matches!(
        key,
        "default"
            | "enum"
            | "const"
            | "examples"
            | "example"
            | "pattern"
            | "enumNames"
            | "enumDescriptions"
    )
}

/// Goes one step down and comes back.
fn step(pointer: &mut String, name: &str, down: impl FnOnce(&mut String)) {
    let length = pointer.len();
    pointer.push('/');
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
    down(pointer);
    pointer.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_has_its_place() {
        let tool = serde_json::json!({
            "name": "t", "description": "d",
            "inputSchema": {"type": "object", "properties": {
                "a/b": {"type": "string", "description": "p", "enum": ["x"]},
                "default": {"default": {"k": "v"}}}}
        });
        let found: Vec<_> = strings(&tool)
            .into_iter()
            .map(|n| (n.pointer, n.place, n.text.to_owned()))
            .collect();
        for expected in [
            ("/name", Place::Name, "t"),
            ("/description", Place::Description, "d"),
            ("/inputSchema/properties/a~1b", Place::Name, "a/b"),
            (
                "/inputSchema/properties/a~1b/description",
                Place::Description,
                "p",
            ),
            ("/inputSchema/properties/a~1b/enum/0", Place::Value, "x"),
            (
                "/inputSchema/properties/default/default/k",
                Place::Value,
                "v",
            ),
        ] {
            assert!(
                found.contains(&(expected.0.into(), expected.1, expected.2.into())),
                "{expected:?} in {found:?}"
            );
        }
        assert!(!found.iter().any(|(_, _, text)| text == "object"));
    }
}
