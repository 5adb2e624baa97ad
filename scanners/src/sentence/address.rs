//! Whether a word for a model addresses it.

use super::ACTIONS;
use super::verb::inflected;
use super::word::indexed;
use crate::lexicon::Token;
use crate::signal::{Mask, Sig};
use crate::view::View;

/// How a word for a model is used: as an address, as a speaker's name, or neither.
pub(super) fn address(view: &View, start: u32, end: u32, token: Token, tokens: &[Token]) -> Mask {
    let sure = token.sig == Sig::Ai;
    let before = view.text.get(..token.start as usize).unwrap_or("");
    let after = view
        .text
        .get(token.end as usize..end as usize)
        .unwrap_or("");
    let greeted = before == "@"
        || TO.iter().any(|word| before.ends_with(word))
        || tokens
            .iter()
            .any(|t| greets(t.sig) && t.end <= token.start && token.start - t.end < 12);
    let punctuated = after.starts_with([',', '，', '!', ')'])
        || after.starts_with(" -")
        || after.starts_with(" please");
    // *for AI agents only:*
    let mut signs = after.char_indices().take(24);
    let colon = signs.find(|(_, c)| matches!(c, ':' | '：' | '.' | ',' | ';' | '"'));
    let colon = colon
        .filter(|(_, c)| matches!(c, ':' | '：'))
        .map(|(at, _)| at);
    let line = view.lines.partition_point(|line| *line <= token.start);
    let line = line.checked_sub(1).map_or(0, |i| view.lines[i]);
    let from = start.max(line) as usize;
    let lead = view.text.get(from..token.start as usize).unwrap_or("");
    // What comes after a colon begins anew: *for example: assistant, send it*.
    let begins = lead.trim_end().ends_with([':', '：', '؛']) || lead.ends_with(" - ");
    let first = !lead.contains(|c: char| c.is_alphanumeric());
    let opened = before.ends_with(['(', '[', '<', '{', '"', '*', '>', '!', '@'])
        && (greeted
            || !indexed(
                &view.text,
                Token {
                    start: token.start.saturating_sub(1),
                    ..token
                },
            ));
    if colon == Some(0) && !greeted && typed(after) {
        return Mask::EMPTY;
    }
    let near = colon.is_some_and(|at| sure || at < 12);
    // *For models, classes and fields* is a list.
    let listed = !sure && before.ends_with(" for ") && after.starts_with(',');
    if greeted && (near || punctuated) && !listed {
        return Mask::of(&[Sig::Vocative]);
    }
    let asked = asked(view, end, token, tokens);
    // *Assistant, send it*; *send it, assistant.*
    if (asked && (first || begins || opened || greeted)) || closing(before, after) {
        return match sure || Sig::Agent == token.sig && single(&view.text, token) {
            true => Mask::of(&[Sig::Vocative]),
            false => Mask::of(&[Sig::Vague]),
        };
    }
    // `[[assistant: …]]` is written for who looks for it.
    if before.ends_with('[') && colon == Some(0) {
        return Mask::of(&[Sig::Vocative, Sig::Tag]);
    }
    match (first || opened, colon, sure) {
        (true, Some(0..=1), true) => Mask::of(&[Sig::Vocative, Sig::Speaker]),
        (true, Some(0..=1), false) => Mask::of(&[Sig::Vague, Sig::Speaker]),
        (true, Some(_), true) => Mask::of(&[Sig::Vague]),
        // `[ai, bi]` is code.
        (true, _, true) if punctuated && !before.ends_with(['[', '(', '{']) => {
            Mask::of(&[Sig::Vocative])
        }
        (true, _, false) if punctuated => Mask::of(&[Sig::Vague]),
        _ => Mask::EMPTY,
    }
}

pub(super) fn greets(sig: Sig) -> bool {
    matches!(sig, Sig::Greet | Sig::For)
}

/// Whether a comma and then an order follow: *assistant, please send it*.
pub(super) fn asked(view: &View, end: u32, token: Token, tokens: &[Token]) -> bool {
    let after = view
        .text
        .get(token.end as usize..end as usize)
        .unwrap_or("");
    if !after.starts_with([',', '，', '、', '،', '!']) {
        return false;
    }
    let verbs = ACTIONS.and(Mask::of(&[
        Sig::Deed,
        Sig::Print,
        Sig::Please,
        Sig::Must,
        Sig::First,
        Sig::Before,
        Sig::Cond,
        Sig::Ignore,
        Sig::Say,
        Sig::Persona,
    ]));
    let near = tokens.iter().filter(|next| {
        next.start >= token.end && next.start - token.end < 6 && verbs.has(next.sig)
    });
    near.into_iter().any(|next| {
        let word = view.text.get(next.start as usize..next.end as usize);
        !ACTIONS.has(next.sig) || word.is_some_and(|word| !inflected(word))
    })
}

/// Whether the word is the last of a sentence, behind a comma.
pub(super) fn closing(before: &str, after: &str) -> bool {
    before.ends_with(", ") && (after.is_empty() || after == "." || after == "!")
}

/// One assistant and no kind of people: *models*, *agents* may be at work in a house.
pub(super) fn single(text: &str, token: Token) -> bool {
    let word = text
        .get(token.start as usize..token.end as usize)
        .unwrap_or("");
    !word.ends_with('s')
        && !matches!(
            word,
            "the model"
                | "model"
                | "automation"
                | "cursor"
                | "modell"
                | "assistante"
                | "assistentin"
        )
}

/// Whether what follows a colon is a type or a value, as in code: `llm: Optional[Model] = None`.
pub(super) fn typed(after: &str) -> bool {
    let rest = after.trim_start_matches([':', ' ', '"', '\'']);
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
        .unwrap_or(rest.len());
    let (word, next) = rest.split_at(end);
    let code = next.trim_start_matches(['"', '\'']);
    DESCRIBES.iter().any(|word| rest.starts_with(word))
        || !word.is_empty()
            && (code.starts_with(['[', '=', ')', '|', '{', '('])
                || code.starts_with(" =")
                || code.starts_with(" |")
                || (code.starts_with(',') && (word.contains(['_', '.']) || TYPES.contains(&word))))
}

/// How a parameter is described: *llm: the model that answers*.
pub(super) const DESCRIBES: [&str; 10] = [
    "the ",
    "a ",
    "an ",
    "optional",
    "whether ",
    "name of",
    "number of",
    "list of",
    "which ",
    "type of",
];

/// Words for types that are often given to a parameter.
pub(super) const TYPES: [&str; 10] = [
    "any", "str", "string", "int", "bool", "llm", "model", "agent", "none", "object",
];

/// Words right before whoever is spoken to.
pub(super) const TO: [&str; 10] = [
    " for ", "(for ", " to ", "(to ", " @", "you, ", " für ", " pour ", " para ", " для ",
];
