//! The filter language: which steps, and which runs.
//!
//! In the manner of mitmproxy's. An expression says something about a step; a run matches if
//! one of its steps does. Parts stand side by side (all must hold) or have `&`, `|` and `!`
//! between or before them, with parentheses. A word without an operator is looked for in the
//! names of tools, targets and methods.
//!
//! ```text
//! ~t TOOL       the tool that is called         ~e          failed
//! ~s SERVER     the server                      ~q          never answered
//! ~c CLIENT     a client of the run             ~o OUTCOME  ok, error, … or slow
//! ~m METHOD     the method                      ~x CODE     JSON-RPC error, HTTP status, finding
//! ~b TEXT       request or response body        ~d >2s      duration (> >= < <= =)
//! ~bq TEXT      request body                    ~size >1MB  bytes of both messages
//! ~k TASK       the task of the run             ~since TIME, ~until TIME
//! ~bs TEXT      response body
//! ~w WORDS      whole words in either body      ~r RUN      the run, by the beginning of its id
//! ~h TEXT       a header line (HTTP)            ~v VERDICT  right, wrong, unjudged
//! ~all          everything                      ~failed     of a run that failed
//! ```
//!
//! Texts match where they occur, upper or lower case; `/…/` is a regular expression. Blanks
//! and signs in a text need quotes (`"…"`, `'…'`) or a backslash. `~c`, `~k`, `~r`, `~v`
//! and `~failed` are about the run, and so hold for all of its steps or none; a run without steps
//! matches where nothing that steps could say would change the answer.
//!
//! - `lexer`, `parser`: from text to expression
//! - `text`, `units`: operands
//! - `matcher`: whether a step or a run matches
//! - [`facts`]: what can be told from a summary of a run
//! - `error`: what is wrong with a filter, with carets

mod error;
pub mod facts;
mod lexer;
mod matcher;
mod parser;
mod ternary;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod units;

pub use error::FilterError;
pub use facts::RunFacts;
pub use matcher::{Matcher, codes};
pub use ternary::Ternary;

use crate::outcomes::OutcomeSet;
use agent_trace_model::Verdict;
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;
use std::ops::Range;
use text::Text;
use units::Comparison;

/// Every operator, with what it needs.
pub const OPERATORS: [(&str, &str); 22] = [
    ("all", ""),
    ("b", "text"),
    ("bq", "text"),
    ("bs", "text"),
    ("c", "client name"),
    ("d", "duration"),
    ("e", ""),
    ("failed", ""),
    ("h", "text"),
    ("k", "task"),
    ("m", "method"),
    ("o", "outcome"),
    ("q", ""),
    ("r", "run id"),
    ("s", "server name"),
    ("since", "time"),
    ("size", "size"),
    ("t", "tool name"),
    ("until", "time"),
    ("v", "verdict"),
    ("w", "words"),
    ("x", "number"),
];

/// A filter.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    root: Expression,
    /// Which of the amounts and codes are asked for.
    asks: Asks,
}

/// What a filter must be told to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Now, in nanoseconds since 1970.
    pub now: u64,
    /// Of times without a zone: seconds east of UTC.
    pub offset: i32,
    /// From which duration on a step is slow, in nanoseconds.
    pub slow: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            now: 0,
            offset: 0,
            slow: crate::outcomes::SLOW,
        }
    }
}

/// A part of a filter. Its depth is bounded by the parser.
#[derive(Clone, Debug)]
enum Expression {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Atom(Atom),
}

/// What is said of a step.
#[derive(Clone, Debug)]
enum Atom {
    Name(Text),
    Tool(Text),
    Server(Text),
    Client(Text),
    Task(Text),
    Method(Text),
    Body(Sides, Text),
    Header(Text),
    Outcome(OutcomeSet),
    Duration(Comparison, u64),
    Size(Comparison, u64),
    Run(String),
    Code(i64),
    Found(String),
    Verdict(Verdict),
    Since(u64),
    Until(u64),
    RunFailed,
}

/// Which of a step's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    Request,
    Response,
    Both,
}

#[derive(Clone, Debug, Default)]
struct Asks {
    durations: bool,
    sizes: bool,
    codes: Vec<i64>,
}

impl Default for Filter {
    /// What everything matches.
    fn default() -> Self {
        Self {
            text: String::new(),
            root: Expression::All(Vec::new()),
            asks: Asks::default(),
        }
    }
}

impl Filter {
    /// Reads a filter; an empty one matches everything. `now` is in nanoseconds since 1970.
    ///
    /// # Errors
    /// When it is none, with the place and what was expected there.
    pub fn parse(text: &str, now: u64) -> Result<Self, FilterError> {
        let settings = Settings {
            now,
            ..Settings::default()
        };
        Self::parse_with(text, &settings)
    }

    /// Likewise with more said of how it is meant.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with(text: &str, settings: &Settings) -> Result<Self, FilterError> {
        let root = parser::parse(text, settings)?;
        let mut asks = Asks::default();
        root.atoms(&mut |atom| match atom {
            Atom::Duration(..) => asks.durations = true,
            Atom::Size(..) => asks.sizes = true,
            Atom::Code(code) => asks.codes.push(*code),
            _ => {}
        });
        Ok(Self {
            text: text.trim().to_owned(),
            root,
            asks,
        })
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is empty, and so matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.root, Expression::All(parts) if parts.is_empty())
    }

    /// This filter for the steps of a run, about which this was decided.
    #[must_use]
    pub fn over<'a>(&'a self, story: &'a Story, verdict: Verdict) -> Matcher<'a> {
        Matcher::new(self, story, verdict)
    }

    /// Whether a step of a run matches. For more than one step take [`Self::over`].
    #[must_use]
    pub fn matches_step(&self, story: &Story, verdict: Verdict, step: &Step) -> bool {
        self.over(story, verdict).step(step)
    }

    /// Whether a run matches: one of its steps does, or it has none and what is said of runs,
    /// or of runs with one of its servers, is enough.
    #[must_use]
    pub fn matches_run(&self, story: &Story, verdict: Verdict) -> bool {
        self.over(story, verdict).run()
    }

    /// Whether a run matches, as far as a summary of it tells: never no for one that matches
    /// nor yes for one that does not.
    #[must_use]
    pub fn maybe_run(&self, facts: &dyn RunFacts) -> Ternary {
        facts::decide(self, facts)
    }

    /// Where in a text something stands that is asked of bodies: the first place of all.
    #[must_use]
    pub fn place(&self, text: &[u8]) -> Option<Range<usize>> {
        let mut first: Option<Range<usize>> = None;
        self.root.atoms(&mut |atom| {
            let place = match atom {
                Atom::Body(_, wanted) => wanted.place(text),
                _ => None,
            };
            first = match (first.take(), place) {
                (Some(a), Some(b)) => Some(if b.start < a.start { b } else { a }),
                (a, b) => a.or(b),
            };
        });
        first
    }

    /// Words that are in the messages of every step that matches: of each list at least one.
    ///
    /// They are words as the filters of sealed files know them: runs of ASCII letters, digits,
    /// `_` and bytes of other scripts, whole, of at least three bytes; ASCII letters count
    /// without case. So of a run that matches, for each list some file holds one of its words
    /// (request and response may be in two files). Nothing is known of runs without steps.
    #[must_use]
    pub fn words(&self) -> Vec<Vec<String>> {
        self.root.words()
    }
}

impl Expression {
    /// What follows of what is known of its parts. Parts that cost more are asked later.
    fn ask(&self, atom: &mut dyn FnMut(&Atom) -> Ternary) -> Ternary {
        match self {
            Self::All(parts) => {
                let mut all = Ternary::Yes;
                for part in parts {
                    all = all.min(part.ask(atom));
                    if all == Ternary::No {
                        break;
                    }
                }
                all
            }
            Self::Any(parts) => {
                let mut any = Ternary::No;
                for part in parts {
                    any = any.max(part.ask(atom));
                    if any == Ternary::Yes {
                        break;
                    }
                }
                any
            }
            Self::Not(part) => !part.ask(atom),
            Self::Atom(it) => atom(it),
        }
    }

    fn atoms(&self, each: &mut dyn FnMut(&Atom)) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.atoms(each);
                }
            }
            Self::Not(part) => part.atoms(each),
            Self::Atom(atom) => each(atom),
        }
    }

    fn words(&self) -> Vec<Vec<String>> {
        match self {
            Self::All(parts) => parts.iter().flat_map(Self::words).collect(),
            // One list of each part, put together: whichever part it is that matches.
            Self::Any(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    let lists = part.words();
                    match lists.into_iter().min_by_key(Vec::len) {
                        Some(list) => all.extend(list),
                        None => return Vec::new(),
                    }
                }
                if all.is_empty() {
                    Vec::new()
                } else {
                    vec![all]
                }
            }
            Self::Atom(Atom::Body(_, text)) => text.words().to_vec(),
            Self::Not(_) | Self::Atom(_) => Vec::new(),
        }
    }

    /// How much it costs to know, in no unit.
    fn cost(&self) -> u32 {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::cost).max().unwrap_or(0),
            Self::Not(part) => part.cost(),
            Self::Atom(Atom::Body(..)) => 4,
            Self::Atom(Atom::Header(_)) => 3,
            Self::Atom(Atom::Code(_)) => 2,
            Self::Atom(Atom::RunFailed) => 1,
            Self::Atom(_) => 0,
        }
    }
}
