//! Whether arguments fit a tool's `inputSchema`: a bounded part of JSON Schema (2020-12).
//!
//! Looked at are `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`,
//! `items`, `minimum`, `maximum`, `minLength`, `maxLength`, `minItems`, `maxItems`, `allOf`,
//! `anyOf`, `oneOf` (as `anyOf`) and `$ref` within the schema. All else (`pattern`, `format`,
//! conditions, …) fits always: nothing is reported that a validator would not report.

use serde_json::Value;

/// Bytes of a schema, and of arguments, that are looked at.
pub(super) const BYTES: usize = 256 << 10;

/// Levels of nesting, and of references.
const DEPTH: usize = 32;

/// Values that are looked at: references can name the same schema again and again.
const WORK: usize = 20_000;

/// That arguments do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// JSON pointer in the arguments to what does not fit, or to what lacks a member.
    pub(super) at: String,
    /// JSON pointer in the schema to what says so.
    pub(super) schema: String,
    /// In words; nothing in them was recorded.
    pub(super) because: &'static str,
}

/// How arguments fail to fit a schema, if they do; none as well where that was too much work.
pub(super) fn misfit(schema: &Value, arguments: &Value) -> Option<Misfit> {
    let mut check = Check {
        root: schema,
        work: 0,
    };
    check.value(schema, arguments, &mut At::default(), 0).err()
}

struct Check<'a> {
    root: &'a Value,
    work: usize,
}

#[derive(Clone, Debug, Default)]
struct At {
    arguments: String,
    schema: String,
}

impl At {
    fn misfit(&self, keyword: &str, because: &'static str) -> Misfit {
        Misfit {
            at: self.arguments.clone(),
            schema: format!("{}/{keyword}", self.schema),
            because,
        }
    }

    /// The place of a part of both.
    fn inside(&self, argument: Option<&str>, schema: &[&str]) -> Self {
        let mut inside = self.clone();
        if let Some(name) = argument {
            push(&mut inside.arguments, name);
        }
        for name in schema {
            push(&mut inside.schema, name);
        }
        inside
    }
}

fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

impl Check<'_> {
    fn value(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &mut At,
        depth: usize,
    ) -> Result<(), Misfit> {
        self.work += 1;
        if depth > DEPTH || self.work > WORK {
            return Ok(());
        }
        let Some(rules) = schema.as_object() else {
            return match schema {
                Value::Bool(false) => Err(at.misfit("", "nothing may stand here")),
                _ => Ok(()),
            };
        };
        if let Some(target) = rules.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let target = target.strip_prefix('#').and_then(|p| root.pointer(p));
            if let Some(target) = target {
                self.value(target, value, at, depth + 1)?;
            }
        }
        if let Some(types) = rules.get("type")
            && !is_of(types, value)
        {
            return Err(at.misfit("type", "its type is another one"));
        }
        if let Some(Value::Array(values)) = rules.get("enum")
            && !values.iter().any(|known| equal(known, value))
        {
            return Err(at.misfit("enum", "it is none of the values that there are"));
        }
        if rules.get("const").is_some_and(|known| !equal(known, value)) {
            return Err(at.misfit("const", "it is not the value that there is"));
        }
        self.bounds(schema, value, at)?;
        self.either(schema, value, at, depth)?;
        match value {
            Value::Object(_) => self.members(schema, value, at, depth),
            Value::Array(items) => {
                let Some(rule) = schema.get("items") else {
                    return Ok(());
                };
                for (index, item) in items.iter().enumerate() {
                    let mut inside = at.inside(Some(&index.to_string()), &["items"]);
                    self.value(rule, item, &mut inside, depth + 1)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn members(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &At,
        depth: usize,
    ) -> Result<(), Misfit> {
        let Some(members) = value.as_object() else {
            return Ok(());
        };
        let required = schema.get("required").and_then(Value::as_array);
        let mut required = required.into_iter().flatten().filter_map(Value::as_str);
        if required.any(|name| !members.contains_key(name)) {
            return Err(at.misfit("required", "a member that is required is missing"));
        }
        let properties = schema.get("properties");
        let others = schema.get("additionalProperties");
        for (name, member) in members {
            if let Some(rule) = properties.and_then(|p| p.get(name)) {
                let mut inside = at.inside(Some(name), &["properties", name]);
                self.value(rule, member, &mut inside, depth + 1)?;
            } else if schema.get("patternProperties").is_some() {
                // What names it has is not looked at.
            } else if others == Some(&Value::Bool(false)) {
                let inside = at.inside(Some(name), &[]);
                return Err(inside.misfit("additionalProperties", "there is no such member"));
            } else if let Some(rule) = others {
                let mut inside = at.inside(Some(name), &["additionalProperties"]);
                self.value(rule, member, &mut inside, depth + 1)?;
            }
        }
        Ok(())
    }

    fn bounds(&self, schema: &Value, value: &Value, at: &At) -> Result<(), Misfit> {
        let size = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => Some(text.chars().count() as f64),
            Value::Array(items) => Some(items.len() as f64),
            _ => None,
        };
        let (least, most) = match value {
            Value::Number(_) => ("minimum", "maximum"),
            Value::String(_) => ("minLength", "maxLength"),
            _ => ("minItems", "maxItems"),
        };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        match size {
            Some(size) if bound(least).is_some_and(|least| size < least) => {
                Err(at.misfit(least, "it is less than the least that there may be"))
            }
            Some(size) if bound(most).is_some_and(|most| size > most) => {
                Err(at.misfit(most, "it is more than the most that there may be"))
            }
            _ => Ok(()),
        }
    }

    fn either(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &At,
        depth: usize,
    ) -> Result<(), Misfit> {
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        for (index, rule) in list("allOf").into_iter().flatten().enumerate() {
            let mut inside = at.inside(None, &["allOf", &index.to_string()]);
            self.value(rule, value, &mut inside, depth + 1)?;
        }
        for name in ["anyOf", "oneOf"] {
            let Some(rules) = list(name) else {
                continue;
            };
            let mut fits =
                |rule: &Value| self.value(rule, value, &mut at.clone(), depth + 1).is_ok();
            if !rules.iter().any(&mut fits) {
                return Err(at.misfit(name, "it fits none of the alternatives"));
            }
        }
        Ok(())
    }
}

fn is_of(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        _ => true,
    };
    match types {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

/// Numbers are equal by value.
fn equal(a: &Value, b: &Value) -> bool {
    a == b || a.is_number() && b.is_number() && a.as_f64() == b.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(schema: &Value, arguments: &Value) -> Option<(String, String)> {
        misfit(schema, arguments).map(|m| (m.at, m.schema))
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({
            "type": "object",
            "required": ["id"],
            "additionalProperties": false,
            "properties": {
                "id": {"type": "integer", "minimum": 1},
                "state": {"enum": ["open", "closed"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                "by": {"anyOf": [{"$ref": "#/$defs/user"}, {"type": "null"}]},
            },
            "$defs": {"user": {"type": "object", "required": ["name"]}},
        });
        let cases = [
            (
                json!({"id": 1, "state": "open", "tags": ["x"], "by": null}),
                None,
            ),
            (json!({"id": 1.0, "by": {"name": "x"}}), None),
            (json!({}), Some(("", "/required"))),
            (json!([]), Some(("", "/type"))),
            (json!({"id": "1"}), Some(("/id", "/properties/id/type"))),
            (json!({"id": 1.5}), Some(("/id", "/properties/id/type"))),
            (json!({"id": 0}), Some(("/id", "/properties/id/minimum"))),
            (
                json!({"id": 1, "state": "clsed"}),
                Some(("/state", "/properties/state/enum")),
            ),
            (
                json!({"id": 1, "tags": [1]}),
                Some(("/tags/0", "/properties/tags/items/type")),
            ),
            (
                json!({"id": 1, "tags": ["a", "b", "c"]}),
                Some(("/tags", "/properties/tags/maxItems")),
            ),
            (
                json!({"id": 1, "by": {}}),
                Some(("/by", "/properties/by/anyOf")),
            ),
            (
                json!({"id": 1, "x/y": 2}),
                Some(("/x~1y", "/additionalProperties")),
            ),
        ];
        for (arguments, expected) in cases {
            let expected = expected.map(|(at, schema)| (at.to_owned(), schema.to_owned()));
            assert_eq!(wrong(&schema, &arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn schemas_without_an_end_end() {
        let schema = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(wrong(&schema, &json!({})), None);
        let schema = json!({"$ref": "#/nowhere"});
        assert_eq!(wrong(&schema, &json!({})), None);
    }
}
