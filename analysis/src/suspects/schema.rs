//! Whether arguments fit a tool's `inputSchema`: a bounded part of JSON Schema (2020-12).
//!
//! Looked at are `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`,
//! `items`, `minimum`, `maximum`, `minLength`, `maxLength`, `minItems`, `maxItems`, `allOf`,
//! `anyOf`, `oneOf` (as `anyOf`) and `$ref` within the schema. All else (`pattern`, `format`,
//! conditions, …) fits always, and so do items that `prefixItems` speaks of: what is reported
//! should be what a validator would report, too, and not all of that. In drafts before 2019-09 what
//! stands beside a `$ref` is not looked at, as they have it. References across an `$id` within
//! the schema are not followed as they should be.

use serde_json::Value;

/// Bytes of a schema, and of arguments, that are looked at.
pub(super) const BYTES: usize = 256 << 10;

/// Levels of nesting, and of references.
const DEPTH: usize = 32;

/// Values that are looked at, and compared: references can name the same schema again and
/// again.
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
    let draft = schema.get("$schema").and_then(Value::as_str);
    let mut check = Check {
        root: schema,
        is_old: draft.is_some_and(|draft| draft.contains("/draft-0")),
        work: 0,
    };
    check.value(schema, arguments, &At::default(), 0).err()
}

struct Check<'a> {
    root: &'a Value,
    /// Whether what stands beside a `$ref` means nothing.
    is_old: bool,
    work: usize,
}

/// A place in the arguments and in the schema: one step from the place around it. It becomes text
/// only where something does not fit.
#[derive(Clone, Copy, Debug, Default)]
struct At<'a> {
    around: Option<&'a Self>,
    argument: Option<Key<'a>>,
    keyword: Option<&'a str>,
    key: Option<Key<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Key<'a> {
    Name(&'a str),
    Index(usize),
}

impl At<'_> {
    /// What does not fit; `keyword` is the one that says so, none where the schema itself does.
    fn misfit(&self, keyword: Option<&str>, because: &'static str) -> Misfit {
        let mut ways = vec![self];
        while let Some(around) = ways.last().and_then(|at| at.around) {
            ways.push(around);
        }
        let (mut at, mut schema) = (String::new(), String::new());
        for way in ways.into_iter().rev() {
            push(&mut at, way.argument);
            push(&mut schema, way.keyword.map(Key::Name));
            push(&mut schema, way.key);
        }
        push(&mut schema, keyword.map(Key::Name));
        Misfit {
            at,
            schema,
            because,
        }
    }
}

fn push(pointer: &mut String, key: Option<Key<'_>>) {
    let Some(key) = key else {
        return;
    };
    pointer.push('/');
    match key {
        Key::Name(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
        Key::Index(index) => pointer.push_str(&index.to_string()),
    }
}

impl Check<'_> {
    fn value(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &At<'_>,
        depth: usize,
    ) -> Result<(), Misfit> {
        self.work += 1;
        if depth > DEPTH || self.is_tired() {
            return Ok(());
        }
        let Some(rules) = schema.as_object() else {
            return match schema {
                Value::Bool(false) => Err(at.misfit(None, "nothing may stand here")),
                _ => Ok(()),
            };
        };
        if let Some(target) = rules.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let target = target.strip_prefix('#').and_then(|p| root.pointer(p));
            if let Some(target) = target {
                self.value(target, value, at, depth + 1)?;
            }
            if self.is_old {
                return Ok(());
            }
        }
        if let Some(types) = rules.get("type")
            && !is_of(types, value)
        {
            return Err(at.misfit(Some("type"), "its type is another one"));
        }
        if let Some(Value::Array(values)) = rules.get("enum")
            && !values.iter().any(|known| self.equal(known, value))
        {
            return Err(at.misfit(Some("enum"), "it is none of the values that there are"));
        }
        if let Some(known) = rules.get("const")
            && !self.equal(known, value)
        {
            return Err(at.misfit(Some("const"), "it is not the value that there is"));
        }
        self.bounds(schema, value, at)?;
        self.either(schema, value, at, depth)?;
        match value {
            Value::Object(_) => self.members(schema, value, at, depth),
            Value::Array(items) => {
                let Some(rule) = schema.get("items") else {
                    return Ok(());
                };
                let prefix = schema.get("prefixItems").and_then(Value::as_array);
                let prefix = prefix.map_or(0, Vec::len);
                for (index, item) in items.iter().enumerate().skip(prefix) {
                    if self.is_tired() {
                        break;
                    }
                    let inside = At {
                        around: Some(at),
                        argument: Some(Key::Index(index)),
                        keyword: Some("items"),
                        key: None,
                    };
                    self.value(rule, item, &inside, depth + 1)?;
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
        at: &At<'_>,
        depth: usize,
    ) -> Result<(), Misfit> {
        let Some(members) = value.as_object() else {
            return Ok(());
        };
        let required = schema.get("required").and_then(Value::as_array);
        self.work += required.map_or(0, Vec::len);
        let mut required = required.into_iter().flatten().filter_map(Value::as_str);
        if required.any(|name| !members.contains_key(name)) {
            return Err(at.misfit(Some("required"), "a member that is required is missing"));
        }
        let properties = schema.get("properties");
        let others = schema.get("additionalProperties");
        for (name, member) in members {
            if self.is_tired() {
                break;
            }
            let inside = |keyword, key| At {
                around: Some(at),
                argument: Some(Key::Name(name)),
                keyword,
                key,
            };
            if let Some(rule) = properties.and_then(|p| p.get(name)) {
                let inside = inside(Some("properties"), Some(Key::Name(name)));
                self.value(rule, member, &inside, depth + 1)?;
            } else if schema.get("patternProperties").is_some() {
                // What names it has is not looked at.
            } else if others == Some(&Value::Bool(false)) {
                let inside = inside(None, None);
                return Err(inside.misfit(Some("additionalProperties"), "there is no such member"));
            } else if let Some(rule) = others {
                let inside = inside(Some("additionalProperties"), None);
                self.value(rule, member, &inside, depth + 1)?;
            }
        }
        Ok(())
    }

    fn bounds(&mut self, schema: &Value, value: &Value, at: &At<'_>) -> Result<(), Misfit> {
        let size = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => {
                self.work += text.len() / 1_000;
                Some(text.chars().count() as f64)
            }
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
                Err(at.misfit(Some(least), "it is less than the least that there may be"))
            }
            Some(size) if bound(most).is_some_and(|most| size > most) => {
                Err(at.misfit(Some(most), "it is more than the most that there may be"))
            }
            _ => Ok(()),
        }
    }

    fn either(
        &mut self,
        schema: &Value,
        value: &Value,
        at: &At<'_>,
        depth: usize,
    ) -> Result<(), Misfit> {
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        for (index, rule) in list("allOf").into_iter().flatten().enumerate() {
            if self.is_tired() {
                break;
            }
            let inside = At {
                around: Some(at),
                keyword: Some("allOf"),
                key: Some(Key::Index(index)),
                argument: None,
            };
            self.value(rule, value, &inside, depth + 1)?;
        }
        for name in ["anyOf", "oneOf"] {
            let Some(rules) = list(name) else {
                continue;
            };
            let mut fits = |rule: &Value| self.value(rule, value, at, depth + 1).is_ok();
            if !rules.iter().any(&mut fits) {
                return Err(at.misfit(Some(name), "it fits none of the alternatives"));
            }
        }
        Ok(())
    }

    fn is_tired(&self) -> bool {
        self.work > WORK
    }

    /// Numbers are equal by value; what is too much work is taken to be equal.
    fn equal(&mut self, a: &Value, b: &Value) -> bool {
        self.work += 1;
        if self.is_tired() {
            return true;
        }
        match (a, b) {
            (Value::Number(_), Value::Number(_)) => a == b || a.as_f64() == b.as_f64(),
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.equal(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                let mut members = a.iter();
                a.len() == b.len()
                    && members.all(|(name, a)| b.get(name).is_some_and(|b| self.equal(a, b)))
            }
            _ => a == b,
        }
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
    #[test]
    fn what_is_valid_fits() {
        let draft = "http://json-schema.org/draft-07/schema#";
        let cases = [
            (
                json!({"prefixItems": [{"type": "string"}], "items": false}),
                json!(["a"]),
            ),
            (json!({"const": [1, {"x": 2}]}), json!([1.0, {"x": 2.0}])),
            (json!({"enum": [{"x": [1]}]}), json!({"x": [1.0]})),
            (
                json!({"$schema": draft, "$ref": "#/definitions/a", "type": "string",
                    "definitions": {"a": {"type": "integer"}}}),
                json!(7),
            ),
        ];
        for (schema, arguments) in cases {
            assert_eq!(wrong(&schema, &arguments), None, "{schema}");
        }
        let schema = json!({"prefixItems": [true], "items": false});
        let expected = Some(("/1".to_owned(), "/items".to_owned()));
        assert_eq!(wrong(&schema, &json!(["a", "b"])), expected);
        assert!(wrong(&json!({"const": [1]}), &json!([1, 2])).is_some());
    }

    #[test]
    fn work_has_a_bound() {
        let schema = json!({"items": {"enum": (0..15_000).collect::<Vec<_>>()}});
        let arguments = json!(vec![14_999; 100_000]);
        let mut check = Check {
            root: &schema,
            is_old: false,
            work: 0,
        };
        let at = At::default();
        assert!(check.value(&schema, &arguments, &at, 0).is_ok());
        assert!(check.work <= WORK + 2, "{}", check.work);
        let deep = json!({"items": {"items": {"type": "integer"}}});
        let arguments = json!(vec![vec![1; 100]; 10_000]);
        check.work = 0;
        assert!(check.value(&deep, &arguments, &at, 0).is_ok());
        assert!(check.work <= WORK + 2, "{}", check.work);
    }
}
