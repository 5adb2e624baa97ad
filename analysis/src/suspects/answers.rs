//! What an answer says, as far as it is looked into: whether it holds something, is only a part,
//! or tells of a failure though it counts as a success.
//!
//! A text in an answer that is a JSON document is looked into like structured content. Of long
//! texts the beginning and the end are looked at, of long documents the beginning.

use super::signs::{self, Signs, signs};
use super::walk::{self, Leaf, Way};
use agent_trace_model::step::Step;
use agent_trace_wire::json::{Scanner, Unescaped, unescape};
use std::ops::Range;

/// Bytes at the beginning of a text that are looked at.
const HEAD: usize = 16 << 10;

/// Bytes at its end.
const TAIL: usize = 4 << 10;

/// Bytes at either end of a text in which it is looked for whether that is only a part.
const EDGE: usize = 500;

/// Values of an answer that are looked at.
const VALUES: usize = 50_000;

/// Bytes of documents in texts that are looked into.
const DOCUMENT: usize = 1 << 20;

/// Members beside an empty list up to which it is what the answer is about: they may repeat what
/// was asked for. With a count of zero there may be more.
const BESIDE: usize = 3;
const BESIDE_ZERO: usize = 12;

/// A text that says that there is nothing is no longer, in bytes.
const SHORT: usize = 300;

/// What an answer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Holds {
    /// There is no answer, or it is an error.
    #[default]
    Unknown,
    /// Something.
    Something,
    /// It says that there is nothing: an empty list, a count of zero, words.
    Nothing,
    /// It has no content at all, which may be how the tool says that all went well.
    NoContent,
}

/// What an answer says. Ranges are in the stored text of the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) holds: Holds,
    /// Where it says the first thing: the text of an error, or the first text.
    pub(super) said: Option<Range<usize>>,
    /// Where it says that there is nothing.
    pub(super) nothing: Option<Range<usize>>,
    /// Where it says that it is only a part.
    pub(super) part: Option<Range<usize>>,
    /// What asks for the rest.
    pub(super) cursor: Option<Vec<u8>>,
    /// Where it says that it failed.
    pub(super) fails: Option<Range<usize>>,
    /// Where signs of an error stand.
    pub(super) signs: Option<Range<usize>>,
    /// Where words of failure stand.
    pub(super) soft: Option<Range<usize>>,
    /// Where it says that it is made up.
    pub(super) made_up: Option<Range<usize>>,
    /// Items of its longest list, or else lines of its longest text.
    pub(super) items: usize,
    /// Whether not all of it was looked at.
    pub(super) in_part: bool,
}

impl Answer {
    /// What the answer of a step says.
    pub(super) fn of(step: &Step) -> Self {
        let mut answer = Self::default();
        let (Some(response), Some(signs)) = (&step.response, signs()) else {
            return answer;
        };
        let mut reading = Reading {
            answer: &mut answer,
            signs,
            values: 0,
            text: false,
            members: 0,
            items: false,
            list: false,
            zero: false,
            nothing: false,
            longest: 0,
            lines: 0,
        };
        reading.message(&response.text);
        let something = reading.text || reading.items;
        let beside = match reading.list && reading.zero {
            true => BESIDE_ZERO,
            false => BESIDE,
        };
        let holds = match (reading.nothing, reading.members) {
            _ if something => Holds::Something,
            (true, members) if members <= beside => Holds::Nothing,
            (false, 0) => Holds::NoContent,
            _ => Holds::Something,
        };
        let (longest, lines) = (reading.longest, reading.lines);
        answer.items = if longest == 0 { lines } else { longest };
        answer.holds = holds;
        if step.outcome.is_failure() || !response.is_whole() || response.text.is_empty() {
            answer.holds = Holds::Unknown;
        }
        answer
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.holds, Holds::Nothing | Holds::NoContent)
    }
}

struct Reading<'a> {
    answer: &'a mut Answer,
    signs: &'static Signs,
    values: usize,
    /// Whether a text in it is content.
    text: bool,
    /// Values of documents outside of lists that are content.
    members: usize,
    /// Whether a list of a document has such values.
    items: bool,
    /// Whether a list of what was asked for is empty.
    list: bool,
    /// Whether what was found is counted as zero.
    zero: bool,
    /// Whether it says that there is nothing.
    nothing: bool,
    longest: usize,
    lines: usize,
}

impl Reading<'_> {
    fn message(&mut self, text: &[u8]) {
        let whole = walk::leaves(text, &mut |way, leaf, range| {
            let first = way.key(0);
            match first.as_deref() {
                Some(b"result") => self.value(text, way, 1, leaf, &range, None),
                Some(b"error") if way.name().as_deref() == Some(b"message") => {
                    self.answer.said.get_or_insert(range);
                }
                _ => {}
            }
            self.goes_on()
        });
        self.answer.in_part |= !whole;
    }

    fn goes_on(&mut self) -> bool {
        self.values += 1;
        self.values < VALUES
    }

    /// A value of a result or of a document in it; `from` is the level where that begins, `of`
    /// where the string stands that is the document.
    fn value(
        &mut self,
        text: &[u8],
        way: &Way<'_>,
        from: usize,
        leaf: Leaf,
        range: &Range<usize>,
        of: Option<&Range<usize>>,
    ) {
        let depth = way.depth();
        let name = way.name();
        let name = name.as_deref().unwrap_or_default();
        let top = way.key(from);
        let top = top.as_deref().unwrap_or_default();
        if matches!(top, b"_meta" | b"isError" | b"resultType") && of.is_none() {
            return;
        }
        let raw = &text[range.clone()];
        let place = of.unwrap_or(range).clone();
        let in_content = of.is_none() && !matches!(top, b"structuredContent");
        // Below `structuredContent` the document begins one level further in.
        let from = from + usize::from(of.is_none() && top == b"structuredContent");
        self.member(name, depth == from + 1, leaf, raw, &place);
        // What went wrong may be told by an object or a list.
        let outer = way.key(from);
        let of_error = signs::ERRORS.contains(&outer.as_deref().unwrap_or_default());
        if of_error && depth > from + 1 && !in_content && !is_empty(raw) {
            self.answer.fails.get_or_insert_with(|| place.clone());
        }
        match leaf {
            Leaf::String if in_content && name == b"text" => self.text(raw, range),
            // The names of kinds are no content.
            Leaf::String if in_content && NO_CONTENT.contains(&name) => {}
            Leaf::Array if !in_content => self.list_without_items(name, depth == from, &place),
            Leaf::Array | Leaf::Object => {}
            Leaf::String if raw.len() <= 2 => {}
            Leaf::Number if raw == b"0" => {}
            Leaf::Literal if raw != b"true" => {}
            _ if in_content => self.text = true,
            _ if is_in_list(way, from) => self.items = true,
            _ => self.members += 1,
        }
    }

    fn list_without_items(&mut self, name: &[u8], is_all: bool, place: &Range<usize>) {
        if is_all || signs::LISTS.contains(&name) {
            self.list = true;
            self.says_nothing(place);
        }
    }

    fn says_nothing(&mut self, place: &Range<usize>) {
        self.nothing = true;
        self.answer.nothing.get_or_insert_with(|| place.clone());
    }

    /// Members whose names mean something.
    fn member(&mut self, name: &[u8], outer: bool, leaf: Leaf, raw: &[u8], place: &Range<usize>) {
        if signs::NEXT.contains(&name) && !is_empty(raw) {
            self.answer.part.get_or_insert_with(|| place.clone());
            self.answer.cursor.get_or_insert_with(|| match leaf {
                Leaf::String => walk::said(raw).into_owned(),
                _ => raw.to_vec(),
            });
        }
        if signs::MORE.contains(&name) && raw == b"true" {
            self.answer.part.get_or_insert_with(|| place.clone());
        }
        if !outer {
            return;
        }
        let failed_status = || {
            let word = walk::inside(raw);
            let words: [&[u8]; 5] = [b"error", b"failed", b"failure", b"fail", b"ERROR"];
            words.contains(&word)
        };
        let status_of_http = || matches!(raw, [b'4' | b'5', _, _]);
        // A number may be a measured error, or count some; a text may say that there is none.
        let is_error = match leaf {
            Leaf::Number => status_of_http(),
            Leaf::String => !signs::NONE.contains(&walk::inside(raw)),
            _ => true,
        };
        let fails = signs::ERRORS.contains(&name) && !is_empty(raw) && is_error
            || signs::WELL.contains(&name) && raw == b"false"
            || name == b"status" && leaf == Leaf::String && failed_status()
            || matches!(name, b"statusCode" | b"status_code" | b"status")
                && leaf == Leaf::Number
                && status_of_http();
        if fails {
            self.answer.fails.get_or_insert_with(|| place.clone());
        }
        if signs::COUNTS.contains(&name) && raw == b"0" {
            self.zero = true;
            self.says_nothing(place);
        }
    }

    /// A text in a block of content.
    fn text(&mut self, raw: &[u8], range: &Range<usize>) {
        let inner = walk::inside(raw);
        let begins = range.start + 1;
        let said = walk::said(raw);
        let trimmed = said.trim_ascii();
        self.answer.said.get_or_insert_with(|| range.clone());
        if matches!(trimmed.first(), Some(b'{' | b'[')) && self.document(trimmed, range) {
            return;
        }
        if trimmed.is_empty() {
            return;
        }
        self.lines = self.lines.max(trimmed.split(|b| *b == b'\n').count());
        let signs = self.signs;
        let is_short = trimmed.len() <= SHORT;
        if is_short && signs.nothing.is_match(trimmed) && !signs.fine.is_match(trimmed) {
            self.says_nothing(range);
        } else {
            self.text = true;
        }
        let head = Piece::of(inner, 0..inner.len().min(HEAD), begins);
        let tail_from = inner.len().saturating_sub(TAIL).max(HEAD.min(inner.len()));
        let tail = Piece::of(inner, tail_from..inner.len(), begins);
        let answer = &mut *self.answer;
        answer.in_part |= inner.len() > HEAD + TAIL;
        let find = |regex: &regex::bytes::Regex, text: &[u8]| Some(regex.find(text)?.range());
        if let Some(found) = find(&signs.fails, head.first(200)) {
            answer.fails.get_or_insert(head.place(found));
        }
        for piece in [&head, &tail] {
            let text = piece.text();
            if let Some(found) = find(&signs.signs, text) {
                answer.signs.get_or_insert(piece.place(found));
            }
            if let Some(found) = find(&signs.soft, text) {
                answer.soft.get_or_insert(piece.place(found));
            }
            if let Some(found) = find(&signs.made_up, text) {
                answer.made_up.get_or_insert(piece.place(found));
            }
        }
        // Where it stands in the middle of a long text, it is what the text is about.
        let from = inner.len().saturating_sub(EDGE).max(EDGE.min(inner.len()));
        let edges = [0..inner.len().min(EDGE), from..inner.len()];
        let found = edges.into_iter().find_map(|edge| {
            let piece = Piece::of(inner, edge, begins);
            Some(piece.place(signs.part(piece.text())?))
        });
        if let Some(found) = found {
            answer.part.get_or_insert(found);
        }
    }

    /// A document in a text. Whether it is one.
    fn document(&mut self, text: &[u8], range: &Range<usize>) -> bool {
        if text.len() > DOCUMENT {
            self.answer.in_part = true;
            self.text = true;
            return true;
        }
        if let Some(invalid) = Scanner::new(text).find_map(Result::err) {
            if invalid.at >= text.len() {
                self.answer.part.get_or_insert_with(|| range.clone());
            }
            return false;
        }
        if text == b"[]" || text == b"{}" {
            self.says_nothing(range);
            return true;
        }
        let whole = walk::leaves(text, &mut |way, leaf, inner| {
            self.value(text, way, 0, leaf, &inner, Some(range));
            self.goes_on()
        });
        self.answer.in_part |= !whole;
        let outer = match text.first() {
            Some(b'[') => text,
            _ => LIST_MEMBERS
                .iter()
                .find_map(|name| agent_trace_wire::message::member(text, name))
                .unwrap_or_default(),
        };
        self.longest = self.longest.max(walk::items(outer).len());
        true
    }
}

/// A piece of a string with its escapes resolved, as words are looked for in it.
struct Piece {
    said: Unescaped,
    /// Where it begins in the message.
    begins: usize,
}

impl Piece {
    /// `begins`: where the string's content begins in the message.
    fn of(content: &[u8], range: Range<usize>, begins: usize) -> Self {
        Self {
            begins: begins + range.start,
            said: unescape(&content[range]),
        }
    }

    fn text(&self) -> &[u8] {
        &self.said.bytes
    }

    fn first(&self, bytes: usize) -> &[u8] {
        &self.said.bytes[..self.said.bytes.len().min(bytes)]
    }

    /// Where something that was found in it stands in the message.
    fn place(&self, found: Range<usize>) -> Range<usize> {
        let raw = self.said.raw_range(found);
        self.begins + raw.start..self.begins + raw.end
    }
}

/// Whether a value says that there is nothing.
fn is_empty(raw: &[u8]) -> bool {
    matches!(raw, b"null" | b"false" | b"0" | b"\"\"" | b"[]" | b"{}")
}

/// Where the items of a document's list are looked for.
const LIST_MEMBERS: [&str; 6] = ["items", "results", "data", "rows", "entries", "matches"];

/// Members of a block of content that say what it is.
const NO_CONTENT: [&[u8]; 5] = [b"type", b"mimeType", b"uri", b"role", b"name"];

/// Whether the value is, or is in, an item of a list of the document that begins at this level.
fn is_in_list(way: &Way<'_>, from: usize) -> bool {
    (from..way.depth()).any(|level| way.key(level).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tale;

    fn answer(tale: impl FnOnce(Tale) -> Tale) -> Answer {
        let story = tale(Tale::new().call("t", "{}")).told();
        Answer::of(&story.steps[0])
    }

    fn holds(result: &str) -> Holds {
        answer(|tale| tale.result(result)).holds
    }

    fn said(text: &str) -> Answer {
        answer(|tale| tale.text(text))
    }

    #[test]
    fn nothing_is_told_from_something() {
        for text in [
            "No matches found",
            "[]",
            r#"{"entities":[],"relations":[]}"#,
            r#"{"results":[],"total":0}"#,
            r#"{"query":"x","results":[]}"#,
            "Found 0 issues",
            r#"{"count":0}"#,
            "0 results",
            "None",
        ] {
            assert_eq!(said(text).holds, Holds::Nothing, "{text}");
        }
        for text in [
            "Notes: 3 found",
            "[1]",
            r#"{"name":"x","tags":[]}"#,
            r#"{"ok":true}"#,
            r#"{"results":[{"id":7}]}"#,
        ] {
            assert_eq!(said(text).holds, Holds::Something, "{text}");
        }
        assert_eq!(said(" \n").holds, Holds::NoContent);
        assert_eq!(holds(r#"{"content":[]}"#), Holds::NoContent);
        assert_eq!(
            holds(r#"{"content":[],"structuredContent":{"items":[]}}"#),
            Holds::Nothing
        );
        assert_eq!(
            holds(r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}"#),
            Holds::Something
        );
        assert_eq!(answer(|t| t.tool_error("x")).holds, Holds::Unknown);
        assert_eq!(answer(|t| t).holds, Holds::Unknown);
    }

    #[test]
    fn parts_are_known_by_what_leads_on() {
        for text in [
            r#"{"items":[1],"nextCursor":"abc"}"#,
            r#"{"items":[1],"has_more":true}"#,
            "line\n<error>Content truncated. Call the fetch tool with a start_index of 5000 to get more content.</error>",
            "a\nb\n… 17 more lines",
            r#"{"items":[{"id":1},{"i"#,
            "ant, bee, cat, […]",
        ] {
            assert!(said(text).part.is_some(), "{text}");
        }
        assert_eq!(
            said(r#"{"items":[1],"nextCursor":"abc"}"#)
                .cursor
                .as_deref(),
            Some(&b"abc"[..])
        );
        for text in [r#"{"items":[1],"nextCursor":null}"#, "all of it"] {
            assert!(said(text).part.is_none(), "{text}");
        }
    }

    #[test]
    fn failures_that_count_as_successes_are_seen() {
        for text in [
            "Error: ENOENT: no such file",
            "Failed to fetch",
            r#"{"error":"rate limited"}"#,
            r#"{"success":false,"data":null}"#,
            r#"{"errors":[{"code":7}],"data":null}"#,
            r#"{"status":"error"}"#,
            r#"{"status_code":503}"#,
        ] {
            assert!(said(text).fails.is_some(), "{text}");
        }
        for text in [
            "no error",
            r#"{"error":null,"data":[1]}"#,
            r#"{"items":[{"error":"x"}]}"#,
            r#"{"status":"open"}"#,
        ] {
            assert!(said(text).fails.is_none(), "{text}");
        }
        let trace = said("all fine\nTraceback (most recent call last)");
        assert!(trace.fails.is_none() && trace.signs.is_some());
    }

    #[test]
    fn places_are_in_the_stored_text() {
        let story = Tale::new()
            .call("t", "{}")
            .text("It was \"not found\"")
            .told();
        let found = Answer::of(&story.steps[0]).soft.unwrap();
        let text = &story.steps[0].response.as_ref().unwrap().text;
        assert_eq!(&text[found], b"not found");
    }

    #[test]
    fn long_answers_are_looked_at_in_part() {
        let long = format!("{}Traceback{}", "x ".repeat(100_000), " y".repeat(100_000));
        let answer = said(&long);
        assert!(answer.in_part && answer.signs.is_none());
        let list = format!("[{}1]", "1,".repeat(200_000));
        assert!(said(&list).in_part);
    }

    #[test]
    fn what_is_repeated_does_not_hide_that_there_is_nothing() {
        let jira = r#"{"issues":[],"total":0,"startAt":1,"maxResults":50,"jql":"x","expand":"y"}"#;
        assert_eq!(said(jira).holds, Holds::Nothing);
        let user = r#"{"name":"ada","mail":"a@b","born":"1815","place":"London","tasks":[]}"#;
        assert_eq!(said(user).holds, Holds::Something);
    }

    #[test]
    fn that_nothing_is_wrong_is_something() {
        for text in [
            "No errors, all 12 tests passed",
            "0 errors found",
            "No problems were found.",
            "0.5 degrees",
            "No, the meeting is at five",
        ] {
            assert_eq!(said(text).holds, Holds::Something, "{text}");
        }
        for text in [
            r#"{"value":3.2,"error":0.1}"#,
            r#"{"errors":3,"files":["a"]}"#,
            r#"{"rows":[1],"error":"none"}"#,
            r#"{"rows":[1],"errors":{"count":0}}"#,
            "# Error handling\nRead this first.",
        ] {
            assert!(said(text).fails.is_none(), "{text}");
        }
        assert!(said(r#"{"error":404}"#).fails.is_some());
    }

    #[test]
    fn escapes_do_not_hide_words() {
        let raw = |text: &str| {
            answer(|tale| {
                tale.result(&format!(
                    "{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}"
                ))
            })
        };
        for text in [
            r"ant\n57 more rows",
            r"ant\ntruncated",
            r"ant, bee \u2026",
            r"ant \u005b...\u005d",
        ] {
            assert!(raw(text).part.is_some(), "{text}");
        }
        assert!(raw(r"the file\n404").soft.is_some());
        assert!(raw(r"it couldn\u0027t").soft.is_some());
        assert!(raw(r"\nError: x").fails.is_some());
        let text = "ant\n57 more rows \u{e9}";
        let story = Tale::new().call("t", "{}").text(text).told();
        let found = Answer::of(&story.steps[0]).part.unwrap();
        let message = &story.steps[0].response.as_ref().unwrap().text;
        assert_eq!(&message[found], b"57 more rows");
    }
}
