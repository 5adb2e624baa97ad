//! How a recording compares with what went through.

/// How a recording compares with what went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Byte for byte, or length for length.
    All,
    /// So many bytes are missing, and the recording says so.
    WithGaps(u64),
    /// What differs.
    Differs(String),
}

impl Recorded {
    /// A recording of ordinary traffic holds every byte.
    pub(crate) fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Under abuse it may lack some, but counts them.
    pub(crate) fn is_honest(&self) -> bool {
        !matches!(self, Self::Differs(_))
    }

    /// The worse of two.
    pub(crate) fn and(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Differs(_), _) | (_, Self::All) => self,
            (Self::WithGaps(a), Self::WithGaps(b)) => Self::WithGaps(a + b),
            _ => other,
        }
    }
}

impl std::fmt::Display for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("yes"),
            Self::WithGaps(_) => f.write_str("yes, with counted gaps"),
            Self::Differs(what) => write!(f, "NO: {what}"),
        }
    }
}
