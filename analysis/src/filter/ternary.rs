//! Answers that may be unknown.

use std::ops::Not;

/// Kleene's three-valued logic: what follows whatever the unknown turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ternary {
    /// It is not so.
    No,
    /// It is not known.
    Maybe,
    /// It is so.
    Yes,
}

impl Ternary {
    /// What holds of all of something of which this holds for some: yes where it holds for
    /// each, no where for none.
    #[must_use]
    pub(super) fn of(some: bool, all: bool) -> Self {
        match (some, all) {
            (_, true) => Self::Yes,
            (true, false) => Self::Maybe,
            (false, false) => Self::No,
        }
    }
}

impl From<bool> for Ternary {
    fn from(known: bool) -> Self {
        if known { Self::Yes } else { Self::No }
    }
}

impl Not for Ternary {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}
