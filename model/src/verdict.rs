//! What someone decided about a run, kept apart from what happened in it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether a run did what it should have done.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Right,
    /// It did not.
    Wrong,
    /// Nobody decided, or someone took a decision back.
    #[default]
    Unjudged,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Right, Self::Wrong, Self::Unjudged];

    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Unjudged => "unjudged",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseVerdictError;

impl fmt::Display for ParseVerdictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not right, wrong or unjudged")
    }
}

impl std::error::Error for ParseVerdictError {}

impl FromStr for Verdict {
    type Err = ParseVerdictError;

    fn from_str(text: &str) -> Result<Self, ParseVerdictError> {
        let known = Self::ALL.into_iter();
        let mut known = known.filter(|verdict| verdict.as_str().eq_ignore_ascii_case(text));
        known.next().ok_or(ParseVerdictError)
    }
}

/// Who decides about runs, the one whose word counts most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// A person.
    Person,
    /// An evaluation.
    Eval,
    /// The check command of the configuration.
    Check,
}

impl Judge {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Eval => "eval",
            Self::Check => "check",
        }
    }
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
