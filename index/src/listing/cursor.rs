//! Places in the list of runs, as text.

use agent_trace_model::RunId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A place in the list of runs: after this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cursor {
    /// When the run began, in nanoseconds since 1970.
    pub started: u64,
    /// The run.
    pub run: RunId,
    /// How many runs were looked at before, for [`RunsQuery::last`](super::RunsQuery::last).
    pub seen: usize,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}-{:x}", self.started, self.run, self.seen)
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
    }
}

/// A text that is no place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor that a page ended with")]
pub struct CursorError;

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or(CursorError);
        let (started, run, seen) = (part()?, part()?, part()?);
        let number = |text| u64::from_str_radix(text, 16).map_err(|_| CursorError);
        Ok(Self {
            started: number(started)?,
            run: run.parse().map_err(|_| CursorError)?,
            seen: usize::try_from(number(seen)?).map_err(|_| CursorError)?,
        })
    }
}

impl TryFrom<String> for Cursor {
    type Error = CursorError;

    fn try_from(text: String) -> Result<Self, CursorError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text() {
        let cursor = Cursor {
            started: 1_764_000_000_000_000_000,
            run: RunId::from_digest([7; 16]),
            seen: 40,
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "x", "1-2-3", "1-07070707070787078707070707070707"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(CursorError), "{wrong}");
        }
    }
}
