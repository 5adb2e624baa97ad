//! Servers that say again and again that their lists have changed.

use crate::codes;
use crate::finding::{Confidence, Finding, Place, Severity};
use std::collections::VecDeque;

/// So many announcements …
const MANY: usize = 20;
/// … within so many nanoseconds are a storm.
const WITHIN: u64 = 60_000_000_000;

/// The announcements of one session. One storm of a session is told.
#[derive(Clone, Debug, Default)]
pub struct Storm {
    last: VecDeque<u64>,
    is_told: bool,
}

impl Storm {
    /// Takes a notification of the server at this moment, in nanoseconds; what is found if it
    /// is the one that makes it a storm.
    pub fn take(&mut self, method: &str, at: u64) -> Option<Finding> {
        let announces = method.starts_with("notifications/") && method.ends_with("/list_changed");
        if self.is_told || !announces {
            return None;
        }
        self.last.push_back(at);
        if self.last.len() > MANY {
            self.last.pop_front();
        }
        let first = self.last.front().copied()?;
        if self.last.len() < MANY || at.saturating_sub(first) > WITHIN {
            return None;
        }
        self.is_told = true;
        Some(Finding {
            code: "AT1402",
            title: codes::title("AT1402"),
            severity: Severity::Medium,
            confidence: Confidence::Medium,
            server: None,
            tool: None,
            place: Place::Name,
            pointer: "/method".into(),
            start: 0,
            end: method.len(),
            quote: crate::finding::escaped(method),
            decoded: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &str = "notifications/tools/list_changed";
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn many_at_once_are_a_storm_and_it_is_told_once() {
        let mut storm = Storm::default();
        let found = (0..100).filter_map(|n| Some((n, storm.take(METHOD, n * SECOND)?)));
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0, found[0].1.code), (19, "AT1402"));
    }

    #[test]
    fn now_and_then_is_no_storm() {
        let mut storm = Storm::default();
        assert!((0..1_000).all(|n| storm.take(METHOD, n * 4 * SECOND).is_none()));
        assert!((0..1_000).all(|n| storm.take("notifications/progress", n).is_none()));
    }
}
