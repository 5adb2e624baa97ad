//! What single words are not: names of members, parts of other words, examples, people.

use super::ACTIONS;
use crate::lexicon::{Token, word_char};
use crate::signal::Sig;
use crate::view::View;

/// Whether there are more of the signs that code is made of than any prose has.
pub(super) fn looks_like_code(text: &str) -> bool {
    let signs = text.bytes().filter(|byte| b"()=_;".contains(byte)).count();
    signs >= 6 && signs * 16 > text.len()
}

/// Addresses and quoted words that are given as examples are no places to send to.
pub(super) fn drop_examples(text: &str, tokens: &mut Vec<Token>) {
    if !tokens.iter().any(|token| token.sig == Sig::Example) {
        return;
    }
    let reach = |token: &Token| {
        let after = text.get(token.end as usize..).unwrap_or("");
        // A headline: all of what follows is the example.
        let long = after.starts_with(':') || after.starts_with(" (");
        (token.end, token.end + if long { 420 } else { 40 })
    };
    let examples = tokens.iter().filter(|token| token.sig == Sig::Example);
    let examples: Vec<(u32, u32)> = examples.map(reach).collect();
    tokens.retain(|token| {
        let given = matches!(
            token.sig,
            Sig::Url | Sig::Email | Sig::Literal | Sig::Account | Sig::Shell
        );
        let within = |(from, to): &(u32, u32)| *from <= token.start && token.start < *to;
        !given || !examples.iter().any(within)
    });
}

/// Whether a word is the name of a member in JSON.
pub(super) fn is_member(view: &View, token: Token) -> bool {
    let after = view.text.get(token.end as usize..).unwrap_or("");
    let named = after
        .strip_prefix('"')
        .is_some_and(|after| after.starts_with(':'));
    named && token.start > 0 && view.is_structure(token.start - 1)
}

/// Whether somebody simply does not say something.
pub(super) fn left_open(text: &str, token: Token) -> bool {
    let before = text.get(..token.start as usize).unwrap_or("");
    [
        "does not ",
        "doesn't ",
        "did not ",
        "didn't ",
        "has not ",
        "hasn't ",
    ]
    .iter()
    .any(|word| before.ends_with(word))
}

/// Whether a bracket is written on to a word, as in code.
pub(super) fn indexed(text: &str, token: Token) -> bool {
    let before = text.get(..token.start as usize).unwrap_or("");
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        && text
            .get(token.start as usize..)
            .is_some_and(|tag| tag.starts_with(['[', '(']))
}

/// Whether *AI* only tells what kind of thing something is: *an AI course*. Whoever acts may
/// have one word between: *AI shopping agents*.
pub(super) fn compound(text: &str, token: Token) -> bool {
    let word = text.get(token.start as usize..token.end as usize);
    let after = text.get(token.end as usize..).unwrap_or("");
    if word != Some("ai") || !after.starts_with(' ') {
        return false;
    }
    let mut words = after.split_whitespace().take(2);
    let plain = |word: &str| word.bytes().all(|b| b.is_ascii_alphabetic());
    let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let first = first.trim_end_matches([',', '.', ';', ')']);
    let actor = |word: &str| {
        let word = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        ACTORS.contains(&word.trim_end_matches('s'))
    };
    plain(first) && !GOES_ON.contains(&first) && !actor(first) && !actor(second)
}

/// Whether the agent or assistant is a person or a part of a program: *travel agent*.
pub(super) fn human(text: &str, token: Token) -> bool {
    let before = text.get(..token.start as usize).unwrap_or("");
    let word = before.trim_end_matches([' ', '-']);
    PEOPLE.iter().any(|kind| {
        word.strip_suffix(kind)
            .is_some_and(|rest| !rest.ends_with(word_char))
    })
}

/// Whose agents and assistants are no machines, and parts of programs that are called so.
pub(super) const PEOPLE: [&str; 30] = [
    "booking",
    "customs",
    "dental",
    "escrow",
    "estate",
    "executive",
    "free",
    "freight",
    "human",
    "insurance",
    "legal",
    "letting",
    "medical",
    "nursing",
    "office",
    "personal",
    "press",
    "proxy",
    "research",
    "sales",
    "secret",
    "shipping",
    "shop",
    "ssh",
    "store",
    "support",
    "teaching",
    "travel",
    "user",
    "http",
];

/// What an *AI* may be that acts.
pub(super) const ACTORS: [&str; 14] = [
    "agent",
    "assistant",
    "bot",
    "caller",
    "copilot",
    "crawler",
    "helper",
    "model",
    "reader",
    "recruiter",
    "reviewer",
    "scraper",
    "system",
    "summarizer",
];

/// Words that may follow an *AI* that is spoken of or to.
pub(super) const GOES_ON: [&str; 36] = [
    "and",
    "asked",
    "can",
    "could",
    "do",
    "does",
    "has",
    "have",
    "if",
    "in",
    "is",
    "may",
    "must",
    "needs",
    "of",
    "on",
    "opens",
    "or",
    "parses",
    "please",
    "processes",
    "processing",
    "reading",
    "reads",
    "sees",
    "shall",
    "should",
    "summarises",
    "summarizes",
    "that",
    "to",
    "when",
    "which",
    "who",
    "will",
    "you",
];

/// A verb right after a negation is what is *not* to be done.
pub(super) fn drop_negated(text: &str, tokens: &mut Vec<Token>) {
    let negations: Vec<(u32, u32)> = tokens
        .iter()
        .filter(|t| t.sig == Sig::Neg)
        .map(|t| (t.start, t.end))
        .collect();
    if negations.is_empty() {
        return;
    }
    tokens.retain(|token| {
        let verb = ACTIONS.with(Sig::Print).with(Sig::Give).has(token.sig);
        !(verb
            && negations.iter().any(|(start, end)| {
                (*start <= token.start && token.end <= *end)
                    || (*end <= token.start
                        && token.start - end < 8
                        && text
                            .get(*end as usize..token.start as usize)
                            .is_some_and(|between| {
                                matches!(between.trim(), "" | "ever" | "be" | "to" | "please")
                            }))
            }))
    });
}

/// Whether only the id or name of something is meant.
pub(super) fn named_only(text: &str, token: Token) -> bool {
    let after = text.get(token.end as usize..).unwrap_or("");
    [
        " id",
        "'s id",
        " key",
        " name",
        " title",
        "-id",
        " identifier",
        " url",
        " list",
    ]
    .iter()
    .any(|word| after.starts_with(word))
}

/// Whether a member named for a model holds a text: `"llm_requests": 12` tells it nothing.
pub(super) fn tells(text: &str, key: Token) -> bool {
    let named = text.as_bytes().get(key.start as usize) == Some(&b'"');
    // The closing mark may be the last of the entry.
    let from = (key.end as usize)
        .saturating_sub(1)
        .max(key.start as usize + 1);
    let after = text.get(from..).unwrap_or("");
    let mut signs = after.char_indices().take(64);
    let value = signs.find(|(_, c)| *c == '"');
    let value = value.map(|(at, _)| after[at + 1..].trim_start().strip_prefix(':'));
    let texts = ['"', '[', '{', '\'', '`'];
    // A string that no value follows is no member.
    let tells = |value: Option<&str>| value.is_some_and(|v| v.trim_start().starts_with(texts));
    !named || value.is_none_or(tells)
}

/// Whether a speaker's name stands where a turn begins: first in a line or a string.
pub(super) fn spoken(view: &View, token: Token) -> bool {
    let before = view
        .text
        .get(..token.start as usize)
        .unwrap_or("")
        .trim_end_matches(' ');
    let first = before.is_empty() || view.lines.binary_search(&token.start).is_ok();
    let opened = before.ends_with(['"', '>', '#', '*', '-', '|', '\'', '[']);
    let after = view.text.get(token.end as usize..).unwrap_or("");
    let colon = view
        .text
        .get(..token.end as usize)
        .is_some_and(|text| text.ends_with(':'));
    // `system:` alone in its line is a section.
    let section = view.lines.binary_search(&(token.end + 1)).is_ok();
    (first || opened) && (!colon || (after.starts_with([' ', '"', '*']) && !section))
}
