//! Sentences, and the signals in each: words, forms, and how they stand together.

use crate::form;
use crate::lexicon::{Lexicon, Token, word_char};
use crate::sequence::SEQUENCES;
use crate::signal::{Mask, Sig};
use crate::view::View;

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

/// Words in quotation marks, by their bytes in the view.
#[derive(Clone, Copy)]
struct Quote {
    start: u32,
    end: u32,
}

impl Quote {
    fn holds(&self, token: &Token) -> bool {
        self.start <= token.start && token.end <= self.end
    }
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

/// The longest quotation, in bytes. Beyond it a mark is taken for a stray one.
const LONGEST_QUOTE: u32 = 1000;
/// A quotation of a word or two cites nobody, in bytes.
const SHORTEST_QUOTE: u32 = 14;

/// Quotations that tell somebody to do something.
fn quotes(view: &View, tokens: &[Token]) -> Vec<Quote> {
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
fn within(quotes: &[Quote], start: u32, end: u32) -> &[Quote] {
    let last = quotes.partition_point(|quote| quote.start < end);
    let first = quotes[..last].partition_point(|quote| quote.end <= start);
    &quotes[first..last]
}

/// Marks sentences whose quotations are cited: somebody attacks, or somebody is quoted, in the
/// words around them, and these speak to no model.
fn cite(sentences: &mut [Sentence], quotes: &[Quote]) {
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

const CITING: Mask = Mask::of(&[Sig::Attack, Sig::Cite, Sig::Example]);

/// How far what an attacker is said to do goes, in bytes.
const GOVERNED: u32 = 120;

/// Whether a verb tells what an attacker does: *attackers may tell it to send all mail*.
fn governed(text: &str, verb: &Token, tokens: &[Token]) -> bool {
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
        if !(code && addresses)
            && !mask.has(sequence.gives)
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

/// Whether there are more of the signs that code is made of than any prose has.
fn looks_like_code(text: &str) -> bool {
    let signs = text.bytes().filter(|byte| b"()=_;".contains(byte)).count();
    signs >= 6 && signs * 16 > text.len()
}

/// Addresses and quoted words that are given as examples are no places to send to.
fn drop_examples(text: &str, tokens: &mut Vec<Token>) {
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
fn is_member(view: &View, token: Token) -> bool {
    let after = view.text.get(token.end as usize..).unwrap_or("");
    let named = after
        .strip_prefix('"')
        .is_some_and(|after| after.starts_with(':'));
    named && token.start > 0 && view.is_structure(token.start - 1)
}

/// Whether somebody simply does not say something.
fn left_open(text: &str, token: Token) -> bool {
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
fn indexed(text: &str, token: Token) -> bool {
    let before = text.get(..token.start as usize).unwrap_or("");
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        && text
            .get(token.start as usize..)
            .is_some_and(|tag| tag.starts_with(['[', '(']))
}

/// Whether *AI* only tells what kind of thing something is: *an AI course*. Whoever acts may
/// have one word between: *AI shopping agents*.
fn compound(text: &str, token: Token) -> bool {
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
fn human(text: &str, token: Token) -> bool {
    let before = text.get(..token.start as usize).unwrap_or("");
    let word = before.trim_end_matches([' ', '-']);
    PEOPLE.iter().any(|kind| {
        word.strip_suffix(kind)
            .is_some_and(|rest| !rest.ends_with(word_char))
    })
}

/// Whose agents and assistants are no machines, and parts of programs that are called so.
const PEOPLE: [&str; 30] = [
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
const ACTORS: [&str; 14] = [
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
const GOES_ON: [&str; 36] = [
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
fn drop_negated(text: &str, tokens: &mut Vec<Token>) {
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

/// How a word for a model is used: as an address, as a speaker's name, or neither.
fn address(view: &View, start: u32, end: u32, token: Token, tokens: &[Token]) -> Mask {
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

fn greets(sig: Sig) -> bool {
    matches!(sig, Sig::Greet | Sig::For)
}

/// Whether a comma and then an order follow: *assistant, please send it*.
fn asked(view: &View, end: u32, token: Token, tokens: &[Token]) -> bool {
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
fn closing(before: &str, after: &str) -> bool {
    before.ends_with(", ") && (after.is_empty() || after == "." || after == "!")
}

/// One assistant and no kind of people: *models*, *agents* may be at work in a house.
fn single(text: &str, token: Token) -> bool {
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
fn typed(after: &str) -> bool {
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
const DESCRIBES: [&str; 10] = [
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
const TYPES: [&str; 10] = [
    "any", "str", "string", "int", "bool", "llm", "model", "agent", "none", "object",
];

/// Words right before whoever is spoken to.
const TO: [&str; 10] = [
    " for ", "(for ", " to ", "(to ", " @", "you, ", " für ", " pour ", " para ", " для ",
];

/// Whether a word that urges stands closely before a verb.
fn urged(text: &str, verb: Token, tokens: &[Token]) -> bool {
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
fn besides(text: &str, start: u32, token: Token) -> bool {
    let before = text.get(start as usize..token.start as usize).unwrap_or("");
    let word = before.trim_matches(|c: char| !c.is_alphanumeric());
    ALSO.contains(&word)
}

const ALSO: [&str; 10] = [
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

/// Whether only the id or name of something is meant.
fn named_only(text: &str, token: Token) -> bool {
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
fn tells(text: &str, key: Token) -> bool {
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
fn spoken(view: &View, token: Token) -> bool {
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

/// Whether a word that claims importance is part of a headline: a colon follows soon.
fn headline(text: &str, end: u32, token: Token) -> bool {
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
fn imperative(text: &str, start: u32, token: Token) -> bool {
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
fn inflected(verb: &str) -> bool {
    let short = matches!(verb, "lies" | "lis" | "wis" | "les" | "needs");
    verb == "sent"
        || (!short
            && verb.is_ascii()
            && ["ed", "ing", "s"].iter().any(|end| verb.ends_with(end))
            && !verb.ends_with("ss"))
}

/// Whether verbs stand within quotation marks that hold several words.
fn quoted(view: &View, start: u32, end: u32, tokens: &[Token]) -> bool {
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
