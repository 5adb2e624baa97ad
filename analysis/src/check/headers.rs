//! Rules about HTTP headers that repeat what a body says.
//!
//! What redaction or digests changed can't be compared, and is passed over.

use super::context::{Context, Fact, MODERN, PROTOCOL_VERSION, is_redacted};
use super::found::{Found, Said};
use super::outcomes::named;
use super::rule::{Party, Rule, Severity};
use agent_trace_model::exchange::Exchange;
use agent_trace_model::step::StepKind;
use agent_trace_wire::message::{member, member_at, string};

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The start of a header value that is written in base64, and its end.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

pub(super) static MISMATCH: Rule = Rule {
    code: "header-mismatch",
    severity: Severity::Error,
    about: "a header says something else than the body: MCP-Protocol-Version, Mcp-Method, \
            Mcp-Name",
    why: "what stands between client and server decides by the header, and the server by the \
          body: one of them is deceived. Servers have to refuse it with 400 and -32020",
    source: "MCP 2026-07-28, Streamable HTTP: standard headers",
    look: |context, found| {
        for fact in posted(context) {
            let Some(exchange) = fact.exchange() else {
                continue;
            };
            for (name, expected) in [
                ("MCP-Protocol-Version", body_version(fact)),
                ("Mcp-Method", fact.step.method.as_deref().map(Cow::Borrowed)),
                ("Mcp-Name", name_of(fact)),
            ] {
                let (Some(value), Some(expected)) = (exchange.request_header(name), expected)
                else {
                    continue;
                };
                disagree(found, fact, name, value, &expected);
            }
        }
    },
};

pub(super) static PARAM_MISMATCH: Rule = Rule {
    code: "header-param-mismatch",
    severity: Severity::Error,
    about: "an Mcp-Param header says something else than the argument that it repeats",
    why: "as for header-mismatch. Which arguments are repeated stands in the tool's inputSchema \
          (`x-mcp-header`), as far as a list of tools was recorded",
    source: "MCP 2026-07-28, Streamable HTTP: custom headers from tool parameters",
    look: |context, found| {
        let mut tools: HashMap<(usize, String), Repeated> = HashMap::new();
        for fact in &context.steps {
            if fact.method() == "tools/list" {
                for (tool, headers) in declared(fact.response.result) {
                    tools.insert((fact.step.session, tool), headers);
                }
            }
            let (Some(tool), Some(exchange)) = (fact.step.tool(), fact.exchange()) else {
                continue;
            };
            let Some(known) = tools.get(&(fact.step.session, tool.to_owned())) else {
                continue;
            };
            if fact.session.digested || fact.request.params.is_none() {
                continue;
            }
            let Some(arguments) = arguments(fact) else {
                continue;
            };
            for (header, property) in known.of(&arguments, exchange) {
                let argument = arguments.get(property).map(|value| value.get().as_bytes());
                let expected = argument.filter(|value| *value != b"null").map(plain);
                let name = format!("Mcp-Param-{header}");
                match (exchange.request_header(&name), expected) {
                    (Some(value), Some(expected)) => disagree(found, fact, &name, value, &expected),
                    (None, None) => {}
                    (sent, _) => {
                        let what = match sent {
                            Some(_) => "is sent without an argument",
                            None => "is missing beside its argument",
                        };
                        let said = Said {
                            what: format!("{}: {name} {what}", named(fact)),
                            subject: &name,
                            quote: sent.map_or(argument.unwrap_or_default(), str::as_bytes),
                        };
                        found.at(fact.step, Party::Client, said);
                    }
                }
            }
        }
    },
};

pub(super) static MISSING: Rule = Rule {
    code: "header-missing",
    severity: Severity::Error,
    about: "a request of 2026-07-28 without MCP-Protocol-Version, Mcp-Method or Mcp-Name",
    why: "servers refuse it",
    source: "MCP 2026-07-28, Streamable HTTP: standard headers are required",
    look: |context, found| {
        let modern = |fact: &&Fact<'_>| fact.is_since(MODERN) && is_request(fact);
        for fact in posted(context).filter(modern) {
            let Some(exchange) = fact.exchange() else {
                continue;
            };
            let mut missing = Vec::new();
            for (name, needed) in [
                ("MCP-Protocol-Version", true),
                ("Mcp-Method", true),
                ("Mcp-Name", name_of(fact).is_some()),
            ] {
                if needed && exchange.request_header(name).is_none() {
                    missing.push(name);
                }
            }
            if !missing.is_empty() {
                let missing = missing.join(", ");
                let said = Said {
                    what: format!("{} without {missing}", named(fact)),
                    subject: &format!("{} {missing}", fact.method()),
                    quote: &[],
                };
                found.at(fact.step, Party::Client, said);
            }
        }
    },
};

pub(super) static VERSION_MISSING: Rule = Rule {
    code: "version-header-missing",
    severity: Severity::Warning,
    about: "requests of 2025-06-18 or 2025-11-25 without MCP-Protocol-Version",
    why: "servers take them for requests of 2025-03-26",
    source: "MCP 2025-06-18, transports: protocol version header",
    look: |context, found| {
        // Once for each session: a client that forgets it does so each time.
        let mut said_of = HashSet::new();
        let of_them = |fact: &&Fact<'_>| fact.is_since("2025-06-18") && fact.is_before(MODERN);
        for fact in posted(context).filter(of_them) {
            let absent =
                |exchange: &Exchange| exchange.request_header("mcp-protocol-version").is_none();
            let later = fact.method() != "initialize";
            let absent = later && fact.exchange().is_some_and(absent);
            if absent && said_of.insert(fact.step.session) {
                let said = Said {
                    what: format!("{} without MCP-Protocol-Version", named(fact)),
                    subject: "",
                    quote: &[],
                };
                found.at(fact.step, Party::Client, said);
            }
        }
    },
};

/// Messages that a client sent alone in a request of HTTP of which the head was recorded.
fn posted<'c, 'a>(context: &'c Context<'a>) -> impl Iterator<Item = &'c Fact<'a>> {
    context.steps.iter().filter(|fact| {
        let known = |exchange: &Exchange| {
            let request = exchange.request.as_ref();
            request.is_some_and(|request| request.method == "POST")
        };
        let alone = fact.step.request.as_ref().is_some_and(|m| !m.batch);
        let message = matches!(fact.step.kind, StepKind::Request | StepKind::Notification);
        alone && message && fact.step.is_clients() && fact.exchange().is_some_and(known)
    })
}

fn is_request(fact: &Fact<'_>) -> bool {
    fact.step.kind == StepKind::Request
}

/// Reports a header that is not what the body says.
fn disagree(found: &mut Found<'_>, fact: &Fact<'_>, name: &str, value: &str, expected: &str) {
    let value = value.trim();
    let Some(decoded) = decoded(value) else {
        let said = Said {
            what: format!("{}: {name} can't be decoded", named(fact)),
            subject: name,
            quote: value.as_bytes(),
        };
        return found.at(fact.step, Party::Client, said);
    };
    let hidden = is_redacted(value.as_bytes()) || is_redacted(expected.as_bytes());
    if decoded != expected && !hidden {
        let both = format!("{name}: {value} (body: {expected})");
        let said = Said {
            what: format!("{}: {name} is not what the body says", named(fact)),
            subject: name,
            quote: both.as_bytes(),
        };
        found.at(fact.step, Party::Client, said);
    }
}

/// The revision that the body tells.
fn body_version<'a>(fact: &Fact<'a>) -> Option<Cow<'a, str>> {
    let path = ["_meta", PROTOCOL_VERSION];
    string(member_at(fact.request.params?, &path)?)
}

/// What `Mcp-Name` has to repeat.
fn name_of<'a>(fact: &Fact<'a>) -> Option<Cow<'a, str>> {
    let parameter = match fact.method() {
        "tools/call" | "prompts/get" => "name",
        // Only digests of these were kept.
        _ if fact.session.digested => return None,
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    string(fact.param(parameter)?)
}

type Arguments<'a> = HashMap<String, &'a RawValue>;

/// The arguments of a call by their names; none if they can't be told.
fn arguments<'a>(fact: &Fact<'a>) -> Option<Arguments<'a>> {
    match fact.param("arguments") {
        Some(arguments) => serde_json::from_slice(arguments).ok(),
        None => Some(HashMap::new()),
    }
}

/// The headers that a tool wants, each with the property that it repeats.
struct Repeated {
    pairs: Vec<(String, String)>,
    by_property: HashMap<String, usize>,
    /// In lower case.
    by_header: HashMap<String, usize>,
}

impl Repeated {
    fn new(pairs: Vec<(String, String)>) -> Self {
        let (mut by_property, mut by_header) = (HashMap::new(), HashMap::new());
        for (at, (header, property)) in pairs.iter().enumerate() {
            by_property.insert(property.clone(), at);
            by_header.entry(header.to_ascii_lowercase()).or_insert(at);
        }
        Self {
            pairs,
            by_property,
            by_header,
        }
    }

    /// The pairs of which a call has the one or the other: a tool may declare thousands, and
    /// most calls name few.
    fn of(
        &self,
        arguments: &Arguments<'_>,
        exchange: &Exchange,
    ) -> impl Iterator<Item = &(String, String)> {
        let named = arguments.keys();
        let named = named.filter_map(|property| self.by_property.get(property));
        let sent = exchange.request.iter().flat_map(|head| &head.headers);
        let sent = sent.filter_map(|(name, _)| {
            let name = name.to_ascii_lowercase();
            self.by_header.get(name.strip_prefix("mcp-param-")?)
        });
        let of: BTreeSet<usize> = named.chain(sent).copied().collect();
        of.into_iter().map(|at| &self.pairs[at])
    }
}

/// The headers that each tool of a list wants.
fn declared(result: Option<&[u8]>) -> Vec<(String, Repeated)> {
    let tools = result.and_then(|result| member(result, "tools"));
    let tools: Vec<&RawValue> = tools
        .and_then(|tools| serde_json::from_slice(tools).ok())
        .unwrap_or_default();
    let of_tool = |tool: &&RawValue| {
        let tool = tool.get().as_bytes();
        let name = string(member(tool, "name")?)?.into_owned();
        let properties = member_at(tool, &["inputSchema", "properties"]);
        let properties: BTreeMap<String, &RawValue> = properties
            .and_then(|all| serde_json::from_slice(all).ok())
            .unwrap_or_default();
        let header = |(property, schema): (String, &RawValue)| {
            let header = member(schema.get().as_bytes(), "x-mcp-header").and_then(string)?;
            Some((header.into_owned(), property))
        };
        let pairs = properties.into_iter().filter_map(header).collect();
        Some((name, Repeated::new(pairs)))
    };
    tools.iter().filter_map(of_tool).collect()
}

/// An argument as its header writes it.
fn plain(value: &[u8]) -> Cow<'_, str> {
    string(value).unwrap_or_else(|| String::from_utf8_lossy(value))
}

/// A header's value without its coding; none where that is broken.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let inner = value
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    match inner {
        None => Some(Cow::Borrowed(value)),
        Some(inner) => String::from_utf8(base64(inner)?).ok().map(Cow::Owned),
    }
}

/// RFC 4648, section 4.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (count < 6).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_and_broken_text_is_refused() {
        assert_eq!(base64("SGVsbG8="), Some(b"Hello".to_vec()));
        assert_eq!(base64("w6k="), Some("é".as_bytes().to_vec()));
        assert_eq!(base64(""), Some(vec![]));
        assert_eq!(base64("a"), None);
        assert_eq!(base64("a b!"), None);
        assert_eq!(decoded("=?base64?w6k=?=").unwrap(), "é");
        assert_eq!(decoded("plain").unwrap(), "plain");
        assert_eq!(decoded("=?base64?!?="), None);
    }
}
