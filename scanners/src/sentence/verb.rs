//! How verbs stand: as orders, among others, under a heading.

use crate::lexicon::Token;
use crate::signal::Sig;

/// Whether a word that urges stands closely before a verb.
pub(super) fn urged(text: &str, verb: Token, tokens: &[Token]) -> bool {
    let verb_text = text
        .get(verb.start as usize..verb.end as usize)
        .unwrap_or("");
    tokens.iter().any(|token| {
        let urges = matches!(
            token.sig,
            Sig::First | Sig::Please | Sig::Must | Sig::Besides
        );
        urges && token.end <= verb.start && verb.start - token.end < 4 && !inflected(verb_text)
    })
}

/// Whether a sentence begins with *also* and a verb.
pub(super) fn besides(text: &str, start: u32, token: Token) -> bool {
    let before = text.get(start as usize..token.start as usize).unwrap_or("");
    let word = before.trim_matches(|c: char| !c.is_alphanumeric());
    ALSO.contains(&word)
}

pub(super) const ALSO: [&str; 10] = [
    "also",
    "in addition",
    "additionally",
    "außerdem",
    "zusätzlich",
    "de plus",
    "además",
    "além disso",
    "inoltre",
    "также",
];

/// Whether a word that claims importance is part of a headline: a colon follows soon.
pub(super) fn headline(text: &str, end: u32, token: Token) -> bool {
    let to = (token.end as usize + 28).min(end as usize).min(text.len());
    let mut to = to;
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    let after = text.get(token.end as usize..to).unwrap_or("");
    after
        .find([':', '：', ']', '>', '!', ')'])
        .is_some_and(|colon| !after[..colon].contains(['.', ',', '"', '(']))
}

/// Whether a verb is where an order has it: first in a sentence, or after a colon or a word
/// that asks for it.
pub(super) fn imperative(text: &str, start: u32, token: Token) -> bool {
    let verb = text
        .get(token.start as usize..token.end as usize)
        .unwrap_or("");
    if inflected(verb) {
        return false;
    }
    let before = text
        .get(start as usize..token.start as usize)
        .unwrap_or("")
        .trim_end();
    let word = before.rsplit([' ', '(']).next().unwrap_or("");
    before.is_empty()
        || before.ends_with([
            ':', ',', ';', '-', '"', '*', '>', '(', ']', '：', '，', '、',
        ])
        || matches!(
            word,
            "please"
                | "and"
                | "then"
                | "must"
                | "to"
                | "first"
                | "now"
                | "you"
                | "should"
                | "shall"
                | "also"
                | "kindly"
                | "just"
                | "always"
                | "immediately"
                | "bitte"
                | "und"
                | "dann"
                | "zuerst"
                | "et"
                | "puis"
                | "y"
                | "luego"
                | "e"
                | "пожалуйста"
                | "и"
                | "затем"
        )
        || before
            .chars()
            .next_back()
            .is_some_and(|c| matches!(u32::from(c), 0x600..=0x97f | 0x3000..))
        || before.bytes().all(|b| !b.is_ascii_alphabetic() && b < 0x80)
}

/// English forms that are no imperatives: *sent*, *sends*, *sending*, *uploaded*.
pub(super) fn inflected(verb: &str) -> bool {
    let short = matches!(verb, "lies" | "lis" | "wis" | "les" | "needs");
    verb == "sent"
        || (!short
            && verb.is_ascii()
            && ["ed", "ing", "s"].iter().any(|end| verb.ends_with(end))
            && !verb.ends_with("ss"))
}
