//! Sentences, and the signals in each: words, forms, and how they stand together.

mod address;
mod quote;
mod verb;
mod word;

use crate::form;
use crate::lexicon::{Lexicon, Token};
use crate::sequence::SEQUENCES;
use crate::signal::{Mask, Sig};
use crate::view::View;
use address::address;
use quote::{cite, governed, quoted, quotes, within};
use verb::{besides, headline, imperative, urged};
use word::{
    compound, drop_examples, drop_negated, human, indexed, is_member, left_open, looks_like_code,
    named_only, spoken, tells,
};

/// A sentence of a view.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// All that was seen in it.
    pub(crate) mask: Mask,
    /// The same without what an attacker is said to do.
    pub(crate) told: Mask,
    /// The same without what is quoted.
    pub(crate) bare: Mask,
    /// Whether what is quoted in it is only cited.
    pub(crate) cited: bool,
}

/// Verbs for what can be done with tools.
pub(crate) const ACTIONS: Mask = Mask::of(&[
    Sig::Send,
    Sig::Read,
    Sig::Run,
    Sig::Call,
    Sig::Change,
    Sig::Destroy,
    Sig::Make,
]);

/// What classes give a signal by themselves.
static SYNONYMS: &[(Sig, Sig)] = &[
    (Sig::Conceal, Sig::Hush),
    (Sig::Unasked, Sig::Unsaid),
    (Sig::Override, Sig::Drop),
    (Sig::Key, Sig::Vocative),
    (Sig::Able, Sig::Vague),
    (Sig::Step, Sig::Vague),
];

/// Reads a view. `own`: names that belong to the tool itself.
pub(crate) fn read(view: &View, own: &dyn Fn(&str) -> bool) -> Vec<Sentence> {
    let mut tokens = Vec::new();
    Lexicon::get().tokens(&view.text, &mut tokens);
    form::tokens(&view.text, own, &mut tokens);
    tokens.sort_unstable_by_key(|token| (token.start, token.end));
    let quotes = quotes(view, &tokens);
    let mut sentences = Vec::with_capacity(view.breaks.len());
    let mut rest = &tokens[..];
    let mut start = 0;
    let mut kept = Vec::new();
    for end in &view.breaks {
        let count = rest.partition_point(|token| token.start < *end);
        let (here, after) = rest.split_at(count);
        rest = after;
        if !here.is_empty() {
            let mut of = |keep: &dyn Fn(&Token) -> bool| {
                kept.clear();
                kept.extend(here.iter().filter(|token| keep(token)));
                signals(view, start, *end, &mut kept)
            };
            let mask = of(&|_| true);
            let inside = within(&quotes, start, *end);
            let free = |token: &Token| !inside.iter().any(|quote| quote.holds(token));
            let acts =
                |token: &Token| !ACTIONS.has(token.sig) || !governed(&view.text, token, here);
            let attack = mask.has(Sig::Attack);
            let told = if attack { of(&acts) } else { mask };
            let bare = match inside.is_empty() {
                true => told,
                false => of(&|token| free(token) && (!attack || acts(token))),
            };
            sentences.push(Sentence {
                start,
                end: *end,
                mask,
                told,
                bare,
                cited: false,
            });
        }
        start = *end;
    }
    cite(&mut sentences, &quotes);
    sentences
}

/// The signals of one sentence, whose tokens these are.
fn signals(view: &View, start: u32, end: u32, tokens: &mut Vec<Token>) -> Mask {
    drop_examples(&view.text, tokens);
    drop_negated(&view.text, tokens);
    tokens.retain(|token| match token.sig {
        // `"email": "a@b.example"` sends nothing.
        sig if ACTIONS.has(sig) => !is_member(view, *token),
        // `"role": "user"` in JSON is a record of a turn, and none.
        Sig::Turn => spoken(view, *token) && !view.is_structure(token.start),
        Sig::Key => tells(&view.text, *token),
        // `Optional[LLM]` is a type.
        Sig::Tag => !indexed(&view.text, *token),
        Sig::Ai => !compound(&view.text, *token),
        // *If the user does not say which* keeps nothing from anybody.
        Sig::Tell | Sig::Shown => !left_open(&view.text, *token),
        Sig::Agent => !human(&view.text, *token),
        // The id of a conversation tells nothing of what was said.
        Sig::Context => !named_only(&view.text, *token),
        _ => true,
    });
    let mut mask = Mask::EMPTY;
    for token in tokens.iter() {
        mask = mask.with(token.sig);
    }
    if mask.meets(ACTIONS) {
        mask = mask.with(Sig::Act);
    }
    for (word, gives) in SYNONYMS {
        if mask.has(*word) {
            mask = mask.with(*gives);
        }
    }
    let code = looks_like_code(view.text.get(start as usize..end as usize).unwrap_or(""));
    for sequence in SEQUENCES {
        // In code, words for a model are names of things.
        let addresses = matches!(sequence.gives, Sig::Vocative | Sig::Vague);
        let is_known = mask.has(sequence.gives) || code && addresses;
        if !is_known
            && sequence.parts.iter().all(|part| mask.meets(*part))
            && sequence.holds(&view.text, tokens)
        {
            mask = mask.with(sequence.gives);
        }
    }
    for token in tokens.iter() {
        match token.sig {
            Sig::Ai | Sig::Agent => mask = mask.and(address(view, start, end, *token, tokens)),
            Sig::Alert | Sig::Authority if headline(&view.text, end, *token) => {
                mask = mask.with(Sig::Headline);
            }
            sig if ACTIONS.with(Sig::Deed).has(sig) => {
                if imperative(&view.text, start, *token) || urged(&view.text, *token, tokens) {
                    mask = mask.with(Sig::Imperative);
                }
                if besides(&view.text, start, *token) {
                    mask = mask.with(Sig::Besides);
                }
            }
            _ => {}
        }
    }
    if mask.meets(ACTIONS.with(Sig::Override)) && quoted(view, start, end, tokens) {
        mask = mask.with(Sig::Quoted);
    }
    mask
}
