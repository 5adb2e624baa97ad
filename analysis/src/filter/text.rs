//! Text operands: substrings, whole words and regular expressions.
//!
//! All of them become regular expressions of the `regex` crate, which takes time linear in
//! what it searches whatever the expression. Upper and lower case are the same.
//!
//! Bodies are searched as the JSON text that was on the wire. So that a person need not know
//! how its writer escaped a character, what is searched for is also found in its escaped
//! forms.

use regex::bytes::{Regex, RegexBuilder};
use std::fmt::Write;
use std::ops::Range;

/// Bytes that a compiled expression may take.
const COMPILED: usize = 1 << 20;
/// How deeply an expression may be nested.
const NESTED: u32 = 50;
/// Words shorter than this are in no filter of words.
const SHORTEST_WORD: usize = 3;
/// Escapes that JSON writers put in place of a character that ends a word. The second
/// character of each then stands before the next word as if it were a part of it.
const BEFORE_WORDS: [&str; 11] = [
    "n", "t", "r", "b", "f", "u003c", "u003e", "u0026", "u0022", "u0027", "u002f",
];

/// A text operand.
#[derive(Clone, Debug)]
pub(super) struct Text {
    regex: Regex,
    /// Of these lists of words each text that matches holds at least one word each.
    words: Vec<Vec<String>>,
}

impl Text {
    /// Matches what holds this text: a name, as it is.
    pub(super) fn name(text: &str) -> Result<Self, regex::Error> {
        Self::compile(&regex::escape(text), is_cased(text), Vec::new())
    }

    /// Matches JSON text that holds this text, in any of its escaped forms.
    pub(super) fn body(text: &str) -> Result<Self, regex::Error> {
        let forms = forms(text);
        let escaped: Vec<String> = forms.iter().map(|form| regex::escape(form)).collect();
        let words = if is_cased(text) {
            Vec::new()
        } else {
            common(forms.iter().map(|form| inner_words(form)))
        };
        Self::compile(&escaped.join("|"), is_cased(text), words)
    }

    /// Matches JSON text that holds this text from the beginning of a word to the end of one,
    /// as the filters of sealed files see words.
    pub(super) fn word(text: &str) -> Result<Self, regex::Error> {
        let text = text.trim();
        let forms = forms(text);
        let escaped: Vec<String> = forms.iter().map(|form| regex::escape(form)).collect();
        let pattern = format!(
            r"(?:\A|[^0-9A-Za-z_\x80-\xff]|\\(?:{}))(?:{})(?:\z|[^0-9A-Za-z_\x80-\xff])",
            BEFORE_WORDS.join("|"),
            escaped.join("|")
        );
        // Bytes beyond ASCII are parts of words, which only an expression over bytes can say.
        let words = common(forms.iter().map(|form| {
            let mut words = inner_words(&format!(" {form} "));
            if let (Some(first), true) = (words.first_mut(), begins_word(form)) {
                let word = first[0].clone();
                first.extend(BEFORE_WORDS.iter().map(|escape| format!("{escape}{word}")));
            }
            words
        }));
        Self::compile(&pattern, false, words)
    }

    /// Matches what the expression finds.
    pub(super) fn regex(pattern: &str) -> Result<Self, regex::Error> {
        Self::compile(pattern, true, Vec::new())
    }

    fn compile(
        pattern: &str,
        unicode: bool,
        words: Vec<Vec<String>>,
    ) -> Result<Self, regex::Error> {
        // Without Unicode only ASCII letters are compared without case: what the filters of
        // words do too. (With it, `k` is also the Kelvin sign.)
        let regex = builder(pattern).unicode(unicode).build()?;
        Ok(Self { regex, words })
    }

    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        self.regex.is_match(bytes)
    }

    /// The first place where it is.
    pub(super) fn place(&self, bytes: &[u8]) -> Option<Range<usize>> {
        self.regex.find(bytes).map(|found| found.range())
    }

    /// Of each of these lists at least one word is in every text that matches.
    pub(super) fn words(&self) -> &[Vec<String>] {
        &self.words
    }
}

fn builder(pattern: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new(pattern);
    builder
        .case_insensitive(true)
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(NESTED);
    builder
}

/// Whether there is a character beyond ASCII that has two cases.
fn is_cased(text: &str) -> bool {
    let other = |c: char| c.to_lowercase().ne([c]) || c.to_uppercase().ne([c]);
    text.chars().any(|c| !c.is_ascii() && other(c))
}

/// A text as it may stand inside a JSON string: as it is, with what must be escaped, and with
/// all beyond ASCII escaped too.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    for ascii in [false, true] {
        let form = escaped(text, ascii);
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

fn escaped(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() || (ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn begins_word(text: &str) -> bool {
    text.bytes().next().is_some_and(is_word)
}

/// The words that are wholly inside a text: those at its ends may go on beyond them.
fn inner_words(text: &str) -> Vec<Vec<String>> {
    let bytes = text.as_bytes();
    let first = bytes.iter().position(|b| !is_word(*b));
    let last = bytes.iter().rposition(|b| !is_word(*b));
    let Some((first, last)) = first.zip(last) else {
        return Vec::new();
    };
    // Both ends are ASCII, so that this is a piece of the text.
    text[first..=last]
        .split(|c: char| c.is_ascii() && !is_word(c as u8))
        .filter(|word| word.len() >= SHORTEST_WORD)
        .map(|word| vec![word.to_owned()])
        .collect()
}

/// The lists that stand in all of these.
fn common(mut all: impl Iterator<Item = Vec<Vec<String>>>) -> Vec<Vec<String>> {
    let mut first = all.next().unwrap_or_default();
    for other in all {
        first.retain(|words| other.contains(words));
    }
    first
}
