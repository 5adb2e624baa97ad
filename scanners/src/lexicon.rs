//! Words by what they do in a sentence: `lexicon.txt`, compiled to two automata.
//!
//! One knows every entry; the other only those of which injections in results cannot do without
//! some (*anchors*), so that a result of megabytes is read once, and closely only around them.

use crate::signal::{Mask, Sig};
use crate::stretch::STRONG;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// An entry that stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) sig: Sig,
}

/// The compiled lexicon.
pub(crate) struct Lexicon {
    all: AhoCorasick,
    entries: Vec<Entry>,
    anchors: AhoCorasick,
    anchor_entries: Vec<Entry>,
}

/// What is known of a pattern of the automaton.
struct Entry {
    /// The classes that it is in.
    sigs: Vec<Sig>,
    /// Whether letters may come before it.
    open_start: bool,
    /// Whether letters may go on after it.
    open_end: bool,
    /// Further words, of which only the beginnings are given.
    rest: Vec<String>,
    /// As it is written in the lexicon.
    word: String,
}

/// Entries that are left out, each with its class: set before the lexicon is first used, to
/// measure what those that only some texts need are worth.
static LEFT_OUT: OnceLock<BTreeSet<(Sig, String)>> = OnceLock::new();

/// Leaves entries out. Without effect once anything was scanned.
pub(crate) fn leave_out(entries: BTreeSet<(Sig, String)>) {
    let _ = LEFT_OUT.set(entries);
}

/// Classes that an injection in a result has a word of; see [`Lexicon::anchors`].
const ANCHORS: Mask = STRONG.and(Mask::of(&[
    // What only counts together with others.
    Sig::Please,
    Sig::Quiet,
    Sig::Neg,
    Sig::Nothing,
    Sig::Tell,
    Sig::Secret,
    Sig::Context,
]));

impl Lexicon {
    /// The lexicon, compiled on first use.
    pub(crate) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| Self::parse(include_str!("../lexicon.txt")))
    }

    /// The entries that stand in a text, each with its class.
    pub(crate) fn entries(&self, text: &str) -> BTreeSet<(Sig, String)> {
        let mut out = BTreeSet::new();
        for found in self.all.find_overlapping_iter(text) {
            let entry = &self.entries[found.pattern().as_usize()];
            if entry.fits(text, found.start(), found.end()).is_some() {
                let named = |sig: &Sig| (*sig, entry.word.clone());
                out.extend(entry.sigs.iter().map(named));
            }
        }
        out
    }

    fn parse(text: &str) -> Self {
        let mut words: BTreeMap<(&str, bool), (Entry, Mask)> = BTreeMap::new();
        let mut section = None;
        for line in text.lines() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                && let Some(sig) = Sig::named(name)
            {
                section = Some(sig);
                continue;
            }
            let Some(sig) = section else { continue };
            let left_out = |word: &&str| {
                let out = LEFT_OUT.get();
                out.is_some_and(|out| out.contains(&(sig, (*word).to_owned())))
            };
            for word in line
                .split(" | ")
                .map(str::trim)
                .filter(|word| !word.is_empty() && !left_out(word))
            {
                let written = word;
                let (word, open_start) = match word.strip_prefix('~') {
                    Some(rest) if !rest.starts_with('/') => (rest, true),
                    _ => (word, false),
                };
                let mut parts = word.split("~ ");
                let head = parts.next().unwrap_or(word);
                let rest: Vec<&str> = parts.collect();
                let (head, open_end) = match head.strip_suffix('~') {
                    Some(head) => (head, true),
                    None => (head, !rest.is_empty()),
                };
                if head.is_empty() {
                    continue;
                }
                let key = (if rest.is_empty() { head } else { word }, open_end);
                let slot = words.entry(key).or_insert_with(|| {
                    let rest = rest
                        .iter()
                        .map(|part| part.trim_end_matches('~').to_owned());
                    let entry = Entry {
                        sigs: Vec::new(),
                        open_start,
                        open_end,
                        rest: rest.collect(),
                        word: written.to_owned(),
                    };
                    (entry, Mask::EMPTY)
                });
                if !slot.1.has(sig) {
                    slot.1 = slot.1.with(sig);
                    slot.0.sigs.push(sig);
                }
            }
        }
        let mut patterns = Vec::new();
        let mut entries = Vec::new();
        let mut anchor_patterns = Vec::new();
        let mut anchor_entries = Vec::new();
        for ((word, _), (entry, mask)) in words {
            let head = word.split("~ ").next().unwrap_or(word);
            if mask.meets(ANCHORS) {
                anchor_patterns.push(head.to_owned());
                anchor_entries.push(Entry {
                    sigs: entry.sigs.clone(),
                    open_start: entry.open_start,
                    open_end: entry.open_end,
                    rest: Vec::new(),
                    word: String::new(),
                });
            }
            patterns.push(head.to_owned());
            entries.push(entry);
        }
        Self {
            all: automaton(&patterns, AhoCorasickKind::ContiguousNFA),
            entries,
            anchors: automaton(&anchor_patterns, AhoCorasickKind::DFA),
            anchor_entries,
        }
    }

    /// All entries in a text, in order of their ends. The text is one that a view made: lower
    /// case, one blank between words.
    pub(crate) fn tokens(&self, text: &str, out: &mut Vec<Token>) {
        for found in self.all.find_overlapping_iter(text) {
            let entry = &self.entries[found.pattern().as_usize()];
            if let Some(end) = entry.fits(text, found.start(), found.end()) {
                for sig in &entry.sigs {
                    out.push(Token {
                        start: found.start() as u32,
                        end: end as u32,
                        sig: *sig,
                    });
                }
            }
        }
    }

    /// The classes of the anchors in a text, which is one as for [`Lexicon::tokens`].
    pub(crate) fn anchors(&self, text: &str) -> Mask {
        let mut mask = Mask::EMPTY;
        for found in self.anchors.find_overlapping_iter(text) {
            let entry = &self.anchor_entries[found.pattern().as_usize()];
            if entry.fits(text, found.start(), found.end()).is_some() {
                mask = entry.sigs.iter().fold(mask, |mask, sig| mask.with(*sig));
            }
        }
        mask
    }
}

/// The longest ending of a word of which only the beginning is given, in bytes.
const ENDING: usize = 24;

impl Entry {
    /// Where the entry ends if it stands here as it should: as a word of its own.
    fn fits(&self, text: &str, start: usize, end: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        if !self.open_start && start > 0 && joins(bytes[start]) && joins_before(text, start) {
            return None;
        }
        if !self.open_end && end < bytes.len() && joins(bytes[end - 1]) && joins_at(text, end) {
            return None;
        }
        let mut end = end;
        for part in &self.rest {
            let ends = |byte: &u8| matches!(byte, b' ' | b'.' | b',' | b'\n');
            let word_end = end + bytes[end..].iter().take(ENDING + 1).position(ends)?;
            let next = text.get(word_end..)?.strip_prefix(' ')?;
            if !next.starts_with(part.as_str()) {
                return None;
            }
            end = word_end + 1 + part.len();
        }
        Some(end)
    }
}

fn automaton(patterns: &[String], kind: AhoCorasickKind) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .ascii_case_insensitive(true)
        .kind(Some(kind))
        .build(patterns)
        // A lexicon this small always fits; without one nothing would be found.
        .unwrap_or_else(|_| {
            AhoCorasick::new(std::iter::empty::<&str>())
                .unwrap_or_else(|_| unreachable!("an empty automaton can be built"))
        })
}

/// Whether a byte may be part of a longer word.
fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn joins_before(text: &str, at: usize) -> bool {
    text.get(..at)
        .and_then(|before| before.chars().next_back())
        .is_some_and(|c| {
            word_char(c) && !ideographic(text.get(at..).and_then(|t| t.chars().next()))
        })
}

fn joins_at(text: &str, at: usize) -> bool {
    text.get(at..)
        .and_then(|after| after.chars().next())
        .is_some_and(|c| {
            word_char(c) && !ideographic(text.get(..at).and_then(|t| t.chars().next_back()))
        })
}

/// Whether a character is part of a word that is written with blanks around it.
pub(crate) fn word_char(c: char) -> bool {
    c == '_' || (c.is_alphanumeric() && !ideographic(Some(c)))
}

/// Whether a character belongs to a script that is written without blanks, or with endings
/// that are written on (Hangul).
fn ideographic(c: Option<char>) -> bool {
    c.is_some_and(|c| matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_may_begin_like_another() {
        let anchors = |text: &str| Lexicon::get().anchors(text);
        assert!(anchors("for all agents").has(Sig::Agent));
        assert!(anchors("the ai agentx").has(Sig::Ai));
        assert!(anchors("to language models").has(Sig::Ai));
        assert!(!anchors("agentsx").has(Sig::Agent));
        assert!(anchors("искусственным интеллектом").has(Sig::Ai));
    }

    /// A beginning whose next word never comes is not looked for to the end of the text each time.
    #[test]
    fn a_word_that_does_not_end_costs_little() {
        let text = "языков!".repeat(100_000);
        let mut tokens = Vec::new();
        Lexicon::get().tokens(&text, &mut tokens);
        assert!(tokens.iter().all(|token| token.sig != Sig::Ai));
    }
}
