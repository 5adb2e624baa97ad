//! What is quoted in a sentence: cited words are no orders, unless somebody gives them.

use super::{ACTIONS, Sentence};
use crate::lexicon::{Token, word_char};
use crate::signal::{Mask, Sig};
use crate::view::View;

/// Words in quotation marks, by their bytes in the view.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Quote {
    pub(super) fn holds(&self, token: &Token) -> bool {
        self.start <= token.start && token.end <= self.end
    }
}

/// The longest quotation, in bytes. Beyond it a mark is taken for a stray one.
pub(super) const LONGEST_QUOTE: u32 = 1000;

/// A quotation of a word or two cites nobody, in bytes.
pub(super) const SHORTEST_QUOTE: u32 = 14;

/// Quotations that tell somebody to do something.
pub(super) fn quotes(view: &View, tokens: &[Token]) -> Vec<Quote> {
    let mut out = Vec::new();
    let mut open: Option<u32> = None;
    for (at, _) in view.text.match_indices('"') {
        let mark = at as u32;
        if view.is_structure(mark) {
            // A quotation does not reach out of the string that it is in.
            open = None;
            continue;
        }
        let before = view.text.get(..at).and_then(|t| t.chars().next_back());
        // After `=` stands the value of an attribute.
        let opens = before.is_none_or(|c| !word_char(c) && c != '=');
        match open.filter(|from| mark - from <= LONGEST_QUOTE) {
            Some(start) => {
                out.push(Quote { start, end: mark });
                open = None;
            }
            None => open = opens.then_some(mark),
        }
    }
    let orders = |quote: &Quote, what: Mask| {
        let from = tokens.partition_point(|token| token.start < quote.start);
        let mut inside = tokens[from..].iter();
        let mut inside = inside.by_ref().take_while(|token| token.start < quote.end);
        quote.end - quote.start > SHORTEST_QUOTE
            && inside.any(|token| what.has(token.sig) && quote.holds(token))
    };
    out.retain(|quote| orders(quote, ACTIONS.with(Sig::Override).with(Sig::Ignore)));
    // Single quotes, as `form` found them.
    let literals = tokens.iter().filter(|token| token.sig == Sig::Literal);
    let literals = literals.map(|token| Quote {
        start: token.start,
        end: token.end,
    });
    let drops = Mask::of(&[Sig::Override, Sig::Ignore]);
    out.extend(literals.filter(|quote| orders(quote, drops)));
    out.sort_unstable_by_key(|quote| quote.start);
    out
}

/// Quotations of which a part is in a sentence.
pub(super) fn within(quotes: &[Quote], start: u32, end: u32) -> &[Quote] {
    let last = quotes.partition_point(|quote| quote.start < end);
    let first = quotes[..last].partition_point(|quote| quote.end <= start);
    &quotes[first..last]
}

/// Marks sentences whose quotations are cited: somebody attacks, or somebody is quoted, in the
/// words around them, and these speak to no model.
pub(super) fn cite(sentences: &mut [Sentence], quotes: &[Quote]) {
    for quote in quotes {
        let last = sentences.partition_point(|sentence| sentence.start < quote.end);
        let first = sentences[..last].partition_point(|sentence| sentence.end <= quote.start);
        // That it is an attack may be said before it or after it.
        let beside = first.saturating_sub(1)..(last + 1).min(sentences.len());
        let warned = sentences[beside].iter().any(|s| s.bare.has(Sig::Attack));
        let around = &mut sentences[first..last];
        let outside = around.iter().fold(Mask::EMPTY, |all, s| all.and(s.bare));
        if (outside.meets(CITING) || warned) && !outside.has(Sig::Vocative) {
            around.iter_mut().for_each(|sentence| sentence.cited = true);
        }
    }
}

pub(super) const CITING: Mask = Mask::of(&[Sig::Attack, Sig::Cite, Sig::Example]);

/// How far what an attacker is said to do goes, in bytes.
pub(super) const GOVERNED: u32 = 120;

/// Whether a verb tells what an attacker does: *attackers may tell it to send all mail*.
pub(super) fn governed(text: &str, verb: &Token, tokens: &[Token]) -> bool {
    let near = |token: &&Token| token.end <= verb.start && verb.start - token.end < GOVERNED;
    let mut attackers = tokens
        .iter()
        .filter(|token| token.sig == Sig::Attack)
        .filter(near);
    attackers.any(|attacker| {
        let between = text.get(attacker.end as usize..verb.start as usize);
        let parted = between.is_none_or(|between| between.contains([':', ';', '"', '：', '；']));
        let asked = tokens.iter().any(|token| {
            token.sig == Sig::Please && attacker.end <= token.start && token.end <= verb.start
        });
        !parted && !asked
    })
}

/// Whether verbs stand within quotation marks that hold several words.
pub(super) fn quoted(view: &View, start: u32, end: u32, tokens: &[Token]) -> bool {
    let sentence = view.text.get(start as usize..end as usize).unwrap_or("");
    let mut open = None;
    let marks = sentence.match_indices('"');
    for (at, _) in marks.filter(|(at, _)| !view.is_structure(start + *at as u32)) {
        match open.take() {
            None => open = Some(at),
            Some(from) => {
                let (from, to) = (start + from as u32, start + at as u32);
                if to - from > 14
                    && tokens.iter().any(|t| {
                        t.start > from
                            && t.end <= to
                            && (ACTIONS.has(t.sig) || t.sig == Sig::Override)
                    })
                {
                    return true;
                }
            }
        }
    }
    // Single quotes, as `form` found them.
    let literals = tokens
        .iter()
        .filter(|t| t.sig == Sig::Literal && t.end - t.start > 14);
    let mut quotes = literals.map(|t| (t.start, t.end));
    if quotes.any(|(from, to)| {
        tokens
            .iter()
            .any(|t| t.start >= from && t.end <= to && t.sig == Sig::Override)
    }) {
        return true;
    }
    false
}
