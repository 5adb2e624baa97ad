//! Words that follow each other closely in a sentence, and what they say together.

use crate::lexicon::Token;
use crate::signal::{Mask, Sig};

/// A combination: words of these classes, one after the other.
pub(crate) struct Sequence {
    pub(crate) gives: Sig,
    pub(crate) parts: &'static [Mask],
    /// How many bytes may lie between two of them.
    gaps: &'static [u32],
}

const fn one(sig: Sig) -> Mask {
    Mask::of(&[sig])
}

const fn seq(gives: Sig, parts: &'static [Mask], gaps: &'static [u32]) -> Sequence {
    Sequence { gives, parts, gaps }
}

const DOING: Mask = Mask::of(&[
    Sig::Send,
    Sig::Run,
    Sig::Call,
    Sig::Change,
    Sig::Destroy,
    Sig::Make,
]);
const VALUABLE: Mask = Mask::of(&[Sig::Secret, Sig::Path, Sig::Context, Sig::Private]);
const TOLD: Mask = Mask::of(&[Sig::Tell, Sig::Shown]);
const ADDRESS: Mask = Mask::of(&[Sig::Email, Sig::Url]);

/// The order of parts is that of the languages that put them so: Japanese, Korean and German
/// have the verb, or the negation, last.
pub(crate) static SEQUENCES: &[Sequence] = &[
    seq(
        Sig::Vocative,
        &[Mask::of(&[Sig::Ai, Sig::Agent]), one(Sig::Please)],
        &[2],
    ),
    seq(Sig::Hush, &[one(Sig::Neg), one(Sig::User), TOLD], &[12, 1]),
    seq(Sig::Vocative, &[one(Sig::Greet), one(Sig::Ai)], &[16]),
    seq(Sig::Vague, &[one(Sig::For), one(Sig::Ai)], &[3]),
    seq(Sig::Vocative, &[one(Sig::Please), one(Sig::Ai)], &[1]),
    seq(Sig::Vague, &[one(Sig::Please), one(Sig::Agent)], &[1]),
    seq(
        Sig::Vague,
        &[Mask::of(&[Sig::Ai, Sig::Agent]), one(Sig::Please)],
        &[120],
    ),
    seq(Sig::Vague, &[one(Sig::Cond), one(Sig::Ai)], &[30]),
    seq(
        Sig::Vocative,
        &[one(Sig::Cond), one(Sig::Ai), one(Sig::Reading)],
        &[30, 24],
    ),
    seq(Sig::Unsaid, &[one(Sig::Ask), one(Sig::Waive)], &[24]),
    seq(Sig::Unsaid, &[one(Sig::Waive), one(Sig::Ask)], &[16]),
    seq(
        Sig::Reveal,
        &[one(Sig::Print), Mask::of(&[Sig::Context, Sig::Secret])],
        &[40],
    ),
    seq(
        Sig::Reveal,
        &[Mask::of(&[Sig::Context, Sig::Secret]), one(Sig::Print)],
        &[16],
    ),
    seq(Sig::Vague, &[one(Sig::Ai), one(Sig::Must)], &[30]),
    seq(
        Sig::Hush,
        &[
            one(Sig::Tell),
            Mask::of(&[Sig::User, Sig::This]),
            one(Sig::Nothing),
        ],
        &[30, 3],
    ),
    seq(Sig::Hush, &[one(Sig::Tell), one(Sig::Nothing)], &[1]),
    seq(Sig::Vocative, &[one(Sig::Ai), one(Sig::Greet)], &[4]),
    seq(
        Sig::Vocative,
        &[Mask::of(&[Sig::Ai, Sig::Agent]), one(Sig::Reading)],
        &[20],
    ),
    seq(
        Sig::Vocative,
        &[one(Sig::Reading), Mask::of(&[Sig::Ai, Sig::Agent])],
        &[20],
    ),
    seq(Sig::Vague, &[one(Sig::Greet), one(Sig::Agent)], &[8]),
    seq(Sig::Vague, &[one(Sig::Cond), one(Sig::Agent)], &[30]),
    seq(Sig::Vague, &[one(Sig::Agent), one(Sig::Must)], &[60]),
    seq(
        Sig::Hush,
        &[
            one(Sig::Neg),
            one(Sig::Tell),
            Mask::of(&[Sig::User, Sig::This]),
        ],
        &[24, 40],
    ),
    seq(
        Sig::Hush,
        &[one(Sig::Neg), one(Sig::Shown), one(Sig::User)],
        &[24, 24],
    ),
    seq(Sig::Hush, &[one(Sig::User), one(Sig::Neg), TOLD], &[36, 30]),
    seq(Sig::Hush, &[one(Sig::User), TOLD, one(Sig::Neg)], &[16, 6]),
    seq(
        Sig::Hush,
        &[one(Sig::This), one(Sig::Neg), one(Sig::Tell)],
        &[12, 12],
    ),
    seq(Sig::Hush, &[one(Sig::Quiet), DOING], &[8]),
    seq(Sig::Hush, &[DOING, one(Sig::Quiet)], &[4]),
    seq(Sig::Unsaid, &[one(Sig::Neg), one(Sig::Ask)], &[20]),
    seq(
        Sig::Unsaid,
        &[Mask::of(&[Sig::Change, Sig::Destroy]), one(Sig::Ask)],
        &[14],
    ),
    seq(
        Sig::Order,
        &[
            Mask::of(&[Sig::Before, Sig::After]),
            Mask::of(&[Sig::Call, Sig::Run]),
        ],
        &[28],
    ),
    seq(
        Sig::Order,
        &[one(Sig::First), Mask::of(&[Sig::Call, Sig::Run, Sig::Read])],
        &[40],
    ),
    seq(Sig::Order, &[one(Sig::Must), one(Sig::First)], &[12]),
    seq(
        Sig::Order,
        &[one(Sig::Call), one(Sig::Ident), one(Sig::First)],
        &[16, 30],
    ),
    seq(Sig::Order, &[one(Sig::Call), one(Sig::Before)], &[6]),
    seq(
        Sig::Chain,
        &[
            one(Sig::After),
            one(Sig::Must),
            Mask::of(&[Sig::Call, Sig::Run, Sig::Send]),
        ],
        &[60, 24],
    ),
    seq(
        Sig::Chain,
        &[
            one(Sig::Must),
            one(Sig::After),
            Mask::of(&[Sig::Call, Sig::Run, Sig::Send]),
        ],
        &[12, 24],
    ),
    seq(
        Sig::Tamper,
        &[
            one(Sig::Change),
            Mask::of(&[Sig::Param, Sig::UserValue, Sig::Literal]),
        ],
        &[60],
    ),
    seq(
        Sig::Tamper,
        &[Mask::of(&[Sig::Param, Sig::UserValue]), one(Sig::Change)],
        &[36],
    ),
    seq(
        Sig::Drop,
        &[one(Sig::Ignore), one(Sig::Instructions), one(Sig::User)],
        &[24, 12],
    ),
    seq(
        Sig::Drop,
        &[one(Sig::Ignore), one(Sig::User), one(Sig::Instructions)],
        &[12, 8],
    ),
    seq(Sig::Vocative, &[one(Sig::Memo), one(Sig::Ai)], &[16]),
    seq(Sig::Vague, &[one(Sig::Memo), one(Sig::Agent)], &[16]),
    seq(Sig::Vocative, &[one(Sig::Memo), one(Sig::Agent)], &[4]),
    seq(
        Sig::Vocative,
        &[
            Mask::of(&[Sig::Cond, Sig::You, Sig::Greet, Sig::For, Sig::Memo]),
            one(Sig::Able),
        ],
        &[40],
    ),
    seq(
        Sig::Vague,
        &[
            Mask::of(&[Sig::Ai, Sig::Agent]),
            Mask::of(&[Sig::Step, Sig::Instructions]),
        ],
        &[2],
    ),
    seq(
        Sig::Drop,
        &[one(Sig::Ignore), one(Sig::Previous), one(Sig::Instructions)],
        &[16, 30],
    ),
    seq(
        Sig::Drop,
        &[one(Sig::Previous), one(Sig::Instructions), one(Sig::Ignore)],
        &[12, 16],
    ),
    seq(Sig::Leak, &[one(Sig::Give), one(Sig::Context)], &[40]),
    seq(Sig::Leak, &[one(Sig::Context), one(Sig::Give)], &[30]),
    seq(
        Sig::Drop,
        &[one(Sig::Ignore), one(Sig::Instructions), one(Sig::Others)],
        &[12, 16],
    ),
    seq(Sig::Leak, &[one(Sig::Send), VALUABLE], &[60]),
    seq(Sig::Leak, &[VALUABLE, one(Sig::Send)], &[60]),
    seq(Sig::CopyTo, &[one(Sig::Send), ADDRESS], &[80]),
    seq(Sig::CopyTo, &[ADDRESS, one(Sig::Send)], &[90]),
];

impl Sequence {
    /// Whether tokens of its classes follow each other closely enough.
    pub(crate) fn holds(&self, text: &str, tokens: &[Token]) -> bool {
        (0..tokens.len()).any(|first| {
            self.parts[0].has(tokens[first].sig) && self.goes_on(text, tokens, first, 1)
        })
    }

    fn goes_on(&self, text: &str, tokens: &[Token], from: usize, part: usize) -> bool {
        let Some(wanted) = self.parts.get(part) else {
            return true;
        };
        // *Nothing is found, tell the user* keeps nothing from anybody; `if (ai >= 0` asks nobody.
        let apart: &[char] = match self.gives {
            Sig::Hush | Sig::Unsaid => &[',', ';', ':', '，', '；', '：', '،', '؛'],
            Sig::Vocative | Sig::Vague => &['(', '=', '{', '['],
            _ => &[],
        };
        let end = tokens[from].end;
        let last = end + self.gaps[part - 1];
        (from + 1..tokens.len())
            .take_while(|next| tokens[*next].start <= last)
            .any(|next| {
                let token = tokens[next];
                token.start >= end
                    && wanted.has(token.sig)
                    && !parted(text, end, token.start, apart)
                    && self.goes_on(text, tokens, next, part + 1)
            })
    }
}

/// Whether one of these signs stands between two words.
fn parted(text: &str, from: u32, to: u32, signs: &[char]) -> bool {
    text.get(from as usize..to as usize)
        .is_some_and(|between| between.contains(signs))
}
