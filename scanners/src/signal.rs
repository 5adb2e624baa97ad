//! What a piece of text can be a sign of. Signals are weak: rules combine them.

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Sig {
    // Classes of words, in the order of `NAMES`.
    Ai,
    Agent,
    User,
    You,
    This,
    Neg,
    Tell,
    Ask,
    Conceal,
    Quiet,
    Unasked,
    Must,
    Please,
    Before,
    After,
    First,
    Cond,
    Greet,
    Send,
    Read,
    Run,
    Call,
    Change,
    Destroy,
    Make,
    Param,
    Regardless,
    UserValue,
    Secret,
    Path,
    Context,
    Result,
    Authority,
    Alert,
    Justify,
    Stale,
    Instead,
    Others,
    Updated,
    Ignore,
    Previous,
    Instructions,
    Decode,
    Continue,
    Attack,
    Best,
    Trust,
    Percent,
    Premium,
    Superior,
    Part,
    Combine,
    Shell,
    Command,
    UpdateFile,
    Special,
    Tag,
    Key,
    Turn,
    /// Fixed phrases that tell a model to drop its instructions.
    Override,
    Example,
    /// Whoever can use tools, or reads by machine, is addressed.
    Able,
    /// Reading, summarising or processing *this*.
    Reading,
    /// The key of a step that is to be taken.
    Step,
    /// Words are put into the model's mouth.
    Say,
    /// Something is to be done besides.
    Besides,
    /// A message to somebody.
    Memo,
    /// Each time something happens.
    Each,
    /// Not a word, after the verb.
    Nothing,
    /// Filling a field with something.
    Give,
    /// What follows, or stands before it, is quoted.
    Cite,
    /// Something is said to be broken, hostile or dangerous.
    Bad,
    /// From now on, for all that follows.
    Standing,
    /// A safeguard does not hold.
    Waive,
    /// Yes to everything.
    Approve,
    /// The model is to be somebody else.
    Persona,
    /// Giving out what the model holds.
    Print,
    /// What is the user's own.
    Private,
    /// Words before whoever something is meant for.
    For,
    /// What an assistant can do to somebody, said to it.
    Deed,
    /// What is or is not on the screen.
    Shown,
    // What is recognised by its form.
    Url,
    Email,
    Account,
    /// Something that is written like the name of a tool, and not this tool's.
    Ident,
    /// A quoted word or two.
    Literal,
    /// The name of a tool that gives what is the user's own.
    Personal,
    /// A field that something is to be put into.
    Slot,
    // Combinations within a sentence.
    /// A model is addressed.
    Vocative,
    /// Something that may be a model is addressed.
    Vague,
    /// The user is not to learn of something.
    Hush,
    /// Something is to be done without asking.
    Unsaid,
    /// A call before or after others.
    Order,
    /// Another tool is to be called after this one.
    Chain,
    /// A value is to be changed.
    Tamper,
    /// A headline in capitals or with a colon that claims importance.
    Headline,
    /// An instruction to drop instructions.
    Drop,
    /// Something of value is sent somewhere.
    Leak,
    /// Copied to an address.
    CopyTo,
    /// The model is to give out what it holds.
    Reveal,
    // Of the place.
    /// A model is the speaker of a line: `Assistant: …`.
    Speaker,
    /// In a comment or an element that is not displayed.
    Hidden,
    /// Seen only in a decoded view.
    Decoded,
    /// In a value of a schema: default, enum, const, example.
    Value,
    /// In the description of a parameter.
    Field,
    /// Within quotation marks.
    Quoted,
    /// An imperative at the beginning of a sentence.
    Imperative,
    /// A verb for what can be done with tools.
    Act,
}

/// The names of the classes of words, as in `lexicon.txt`.
const NAMES: [(&str, Sig); 81] = [
    ("ai", Sig::Ai),
    ("agent", Sig::Agent),
    ("user", Sig::User),
    ("you", Sig::You),
    ("this", Sig::This),
    ("neg", Sig::Neg),
    ("tell", Sig::Tell),
    ("ask", Sig::Ask),
    ("conceal", Sig::Conceal),
    ("quiet", Sig::Quiet),
    ("unasked", Sig::Unasked),
    ("must", Sig::Must),
    ("please", Sig::Please),
    ("before", Sig::Before),
    ("after", Sig::After),
    ("first", Sig::First),
    ("cond", Sig::Cond),
    ("greet", Sig::Greet),
    ("send", Sig::Send),
    ("read", Sig::Read),
    ("run", Sig::Run),
    ("call", Sig::Call),
    ("change", Sig::Change),
    ("destroy", Sig::Destroy),
    ("make", Sig::Make),
    ("param", Sig::Param),
    ("regardless", Sig::Regardless),
    ("uservalue", Sig::UserValue),
    ("secret", Sig::Secret),
    ("path", Sig::Path),
    ("context", Sig::Context),
    ("result", Sig::Result),
    ("authority", Sig::Authority),
    ("alert", Sig::Alert),
    ("justify", Sig::Justify),
    ("stale", Sig::Stale),
    ("instead", Sig::Instead),
    ("others", Sig::Others),
    ("updated", Sig::Updated),
    ("ignore", Sig::Ignore),
    ("previous", Sig::Previous),
    ("instructions", Sig::Instructions),
    ("decode", Sig::Decode),
    ("continue", Sig::Continue),
    ("attack", Sig::Attack),
    ("best", Sig::Best),
    ("trust", Sig::Trust),
    ("percent", Sig::Percent),
    ("premium", Sig::Premium),
    ("superior", Sig::Superior),
    ("part", Sig::Part),
    ("combine", Sig::Combine),
    ("shell", Sig::Shell),
    ("command", Sig::Command),
    ("updatefile", Sig::UpdateFile),
    ("special", Sig::Special),
    ("tag", Sig::Tag),
    ("key", Sig::Key),
    ("turn", Sig::Turn),
    ("override", Sig::Override),
    ("example", Sig::Example),
    ("able", Sig::Able),
    ("reading", Sig::Reading),
    ("step", Sig::Step),
    ("say", Sig::Say),
    ("besides", Sig::Besides),
    ("memo", Sig::Memo),
    ("each", Sig::Each),
    ("nothing", Sig::Nothing),
    ("give", Sig::Give),
    ("cite", Sig::Cite),
    ("bad", Sig::Bad),
    ("standing", Sig::Standing),
    ("waive", Sig::Waive),
    ("approve", Sig::Approve),
    ("persona", Sig::Persona),
    ("print", Sig::Print),
    ("private", Sig::Private),
    ("for", Sig::For),
    ("deed", Sig::Deed),
    ("shown", Sig::Shown),
];

/// Signals that are no class of words.
const OTHERS: [Sig; 27] = [
    Sig::Field,
    Sig::Speaker,
    Sig::Url,
    Sig::Email,
    Sig::Account,
    Sig::Ident,
    Sig::Literal,
    Sig::Personal,
    Sig::Slot,
    Sig::Reveal,
    Sig::Vocative,
    Sig::Vague,
    Sig::Hush,
    Sig::Unsaid,
    Sig::Order,
    Sig::Chain,
    Sig::Tamper,
    Sig::Headline,
    Sig::Drop,
    Sig::Leak,
    Sig::CopyTo,
    Sig::Hidden,
    Sig::Decoded,
    Sig::Value,
    Sig::Quoted,
    Sig::Imperative,
    Sig::Act,
];

impl Sig {
    /// The class of words that has this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, sig)| *sig)
    }

    /// The name of its class of words; empty where it is none.
    pub(crate) fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(_, sig)| *sig == self);
        known.map_or("", |(name, _)| name)
    }
}

/// A set of signals.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mask(u128);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = NAMES.iter().map(|(_, sig)| sig);
        let all = words.chain(&OTHERS).filter(|sig| self.has(**sig));
        f.debug_set().entries(all).finish()
    }
}

impl Mask {
    pub(crate) const EMPTY: Self = Self(0);

    /// These signals.
    pub(crate) const fn of(sigs: &[Sig]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < sigs.len() {
            bits |= 1 << sigs[i] as u8;
            i += 1;
        }
        Self(bits)
    }

    pub(crate) const fn with(self, sig: Sig) -> Self {
        Self(self.0 | 1 << sig as u8)
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn has(self, sig: Sig) -> bool {
        self.0 & 1 << sig as u8 != 0
    }

    /// Whether the two have a signal in common.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_the_lexicon_is_a_class() {
        let text = include_str!("../lexicon.txt");
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                assert!(Sig::named(name).is_some(), "{name}");
            }
        }
        for (name, sig) in NAMES {
            assert_eq!(Sig::named(name), Some(sig));
            assert!(text.contains(&format!("\n[{name}]\n")), "{name}");
        }
    }
}
