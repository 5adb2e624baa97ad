//! YAML, from the events of a parser that tells where they come from.

use super::{BOM, Budget, Fault, Member, Node, Value};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::ops::Range;

/// Longer files are not read. Those of assistants have a few kilobytes.
const LARGEST: usize = 1 << 20;

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    if text.len() > LARGEST {
        return Err(Fault::new(LARGEST, "the file is too large"));
    }
    let skipped = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let places = Places::of(text, skipped);
    let mut open: Vec<Open> = Vec::new();
    let mut budget = Budget::default();
    let mut root = None;
    for event in Parser::new_from_str(&text[skipped..]) {
        let (event, span) = event.map_err(|error| {
            let at = places.byte(error.marker().index());
            Fault::new(at, error.info())
        })?;
        let span = places.range(span);
        let done = match event {
            Event::DocumentStart(_) if root.is_some() => {
                return Err(Fault::new(
                    span.start,
                    "the file has more than one document",
                ));
            }
            Event::MappingStart(anchor, tag) => {
                budget.take(span.start, open.len())?;
                open.push(Open::new(true, span, anchor != 0 || tag.is_some()));
                continue;
            }
            Event::SequenceStart(anchor, tag) => {
                budget.take(span.start, open.len())?;
                open.push(Open::new(false, span, anchor != 0 || tag.is_some()));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let Some(open) = open.pop() else { continue };
                open.close(text)
            }
            Event::Scalar(value, style, anchor, tag) => {
                budget.take(span.start, open.len())?;
                let value = match (value.as_ref(), style) {
                    _ if anchor != 0 || tag.is_some() => Value::Other,
                    ("true" | "True" | "TRUE", ScalarStyle::Plain) => Value::Bool(true),
                    ("false" | "False" | "FALSE", ScalarStyle::Plain) => Value::Bool(false),
                    ("" | "~" | "null" | "Null" | "NULL", ScalarStyle::Plain) => Value::Null,
                    (text, _) => Value::Text(text.to_owned()),
                };
                Node { span, value }
            }
            Event::Alias(_) => {
                budget.take(span.start, open.len())?;
                let value = Value::Other;
                Node { span, value }
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.nodes.push(done),
            None => root = Some(done),
        }
    }
    Ok(root.unwrap_or(Node {
        span: text.len()..text.len(),
        value: Value::Null,
    }))
}

/// A map or list that has begun.
struct Open {
    is_map: bool,
    start: Range<usize>,
    /// Whether it has an anchor or a tag.
    is_marked: bool,
    /// Items, or keys and values in turn.
    nodes: Vec<Node>,
}

impl Open {
    fn new(is_map: bool, start: Range<usize>, is_marked: bool) -> Self {
        Self {
            is_map,
            start,
            is_marked,
            nodes: Vec::new(),
        }
    }

    fn close(self, text: &str) -> Node {
        let mut start = self.start.start;
        let is_flow = text[start..].starts_with(['[', '{']);
        let first = self.nodes.first().map(|node| node.span.start);
        let mut is_marked = self.is_marked;
        if !self.is_map && !is_flow && first == Some(start) {
            // A list that is indented like its key: the parser is behind the first dash then.
            match text[..start].trim_end().strip_suffix('-') {
                Some(before) => start = before.len(),
                None => is_marked = true,
            }
        }
        let last = self
            .nodes
            .last()
            .map_or(self.start.end, |node| node.span.end);
        let end = if is_flow {
            bracket(text, last.max(start + 1))
        } else {
            last
        };
        let value = if is_marked {
            Value::Other
        } else if self.is_map {
            let mut nodes = self.nodes.into_iter();
            let mut members = Vec::new();
            while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
                let Value::Text(text) = key.value else {
                    continue;
                };
                members.push(Member {
                    key: text,
                    key_span: key.span,
                    value,
                });
            }
            Value::Map(members)
        } else {
            Value::List(self.nodes)
        };
        Node {
            span: start..end.max(start),
            value,
        }
    }
}

/// Where the bracket that closes ends. From here to there are only white space, comments and
/// commas. (After a comma the parser does not tell.)
fn bracket(text: &str, from: usize) -> usize {
    let mut in_comment = false;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'\n' | b'\r' => in_comment = false,
            b'#' => in_comment = true,
            b']' | b'}' if !in_comment => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The byte of each character: the parser counts characters.
struct Places {
    /// Empty where each character is one byte.
    of: Vec<usize>,
    skipped: usize,
    end: usize,
}

impl Places {
    fn of(text: &str, skipped: usize) -> Self {
        let rest = &text[skipped..];
        let of = if rest.is_ascii() {
            Vec::new()
        } else {
            rest.char_indices().map(|(at, _)| at + skipped).collect()
        };
        Self {
            of,
            skipped,
            end: text.len(),
        }
    }

    fn byte(&self, index: usize) -> usize {
        if self.of.is_empty() {
            (index + self.skipped).min(self.end)
        } else {
            self.of.get(index).copied().unwrap_or(self.end)
        }
    }

    fn range(&self, span: Span) -> Range<usize> {
        let start = self.byte(span.start.index());
        start..self.byte(span.end.index()).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(text: &'a str, node: &Node) -> &'a str {
        &text[node.span.clone()]
    }

    #[test]
    fn places_are_exact_in_blocks_and_in_brackets() {
        for end in ["\n", "\r\n"] {
            let text = "\u{feff}# é\nextensions:\n  dev:\n    cmd: npx # plain\n    args:\n    - -y\n    - \"b\\tc\"\n\
                        \n    # between\n    'enabled': true\n  \"two\": {cmd: 'x''y', args: [a, é],}\nlast: ~\n";
            let text = &text.replace('\n', end);
            let root = read(text).unwrap();
            let dev = root.get("extensions").unwrap().get("dev").unwrap();
            let cmd = dev.member("cmd").unwrap();
            assert_eq!(at(text, &cmd.value), "npx");
            assert_eq!(&text[cmd.key_span.clone()], "cmd");
            let args = dev.get("args").unwrap();
            assert_eq!(args.texts().unwrap(), ["-y", "b\tc"]);
            assert_eq!(at(text, args), "- -y\n    - \"b\\tc\"".replace('\n', end));
            assert_eq!(dev.get("enabled").unwrap().value, Value::Bool(true));
            let two = root.get("extensions").unwrap().get("two").unwrap();
            assert_eq!(at(text, two), "{cmd: 'x''y', args: [a, é],}");
            assert_eq!(two.get("cmd").unwrap().text(), Some("x'y"));
            assert_eq!(at(text, two.get("args").unwrap()), "[a, é]");
            assert_eq!(root.get("last").unwrap().value, Value::Null);
        }
    }

    #[test]
    fn what_stands_elsewhere_is_not_followed() {
        let root = read("a: &x npx\nb: *x\nc: !t [1]\n<<: *x\n").unwrap();
        for key in ["a", "b", "c", "<<"] {
            assert_eq!(root.get(key).unwrap().value, Value::Other, "{key}");
        }
    }

    #[test]
    fn faults_name_their_place() {
        assert!(read("a: [1\nb: 2\n").is_err());
        assert!(read("a: b: c\n").is_err());
        let more = read("a: 1\n---\nb: 2\n").unwrap_err();
        assert_eq!(more.what, "the file has more than one document");
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&"- ".repeat(10_000)).is_err());
        assert_eq!(read("").unwrap().value, Value::Null);
        assert_eq!(read("# nothing\n").unwrap().value, Value::Null);
    }
}
