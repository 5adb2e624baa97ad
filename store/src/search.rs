//! Looking for text in journal files without taking them apart.
//!
//! A sealed file's word filter is asked first ([`bloom`]); only a file that may hold the text
//! is unpacked. A file that was not sealed yet is read as it is. Either way the answer is
//! about the file: which step it is in, and whether in one at all, has to be looked up.

use crate::journal::bloom;
use crate::journal::reader::Segment;
use crate::journal::sealed;
use crate::layout::SegmentPath;
use regex::bytes::{Regex, RegexBuilder};
use std::fs::File;
use std::io;
use std::ops::Range;

/// A text to look for. ASCII letters count without case.
#[derive(Clone, Debug)]
pub struct Needle {
    text: Vec<u8>,
    /// Whether its ends must be ends of words.
    whole: bool,
    pattern: Regex,
}

impl Needle {
    /// This text; with `whole` not as a part of longer words, which is found faster.
    ///
    /// # Errors
    /// When the text is too long to look for.
    pub fn new(text: &str, whole: bool) -> Result<Self, regex::Error> {
        let pattern = RegexBuilder::new(&regex::escape(text))
            .case_insensitive(true)
            // What is searched may be no UTF-8, and the word filter knows no other case.
            .unicode(false)
            .build()?;
        Ok(Self {
            text: text.as_bytes().to_vec(),
            whole,
            pattern,
        })
    }

    /// Where it is first in these bytes.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let is_whole = |found: &Range<usize>| {
            let before = found.start.checked_sub(1).and_then(|at| bytes.get(at));
            let after = bytes.get(found.end);
            let joins = |inner: Option<&u8>, outer: Option<&u8>| {
                let is_word = |b: Option<&u8>| b.is_some_and(|b| bloom::is_word(*b));
                is_word(inner) && is_word(outer)
            };
            !joins(bytes.get(found.start), before)
                && !joins(found.end.checked_sub(1).and_then(|at| bytes.get(at)), after)
        };
        let mut found = self.pattern.find_iter(bytes).map(|found| found.range());
        found.find(|found| !self.whole || is_whole(found))
    }

    /// Whether it is in a record of this file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_in(&self, path: &SegmentPath) -> io::Result<bool> {
        if !path.sealed {
            return Ok(self.find(&std::fs::read(&path.path)?).is_some());
        }
        let file = File::open(&path.path)?;
        let words = sealed::words(&file)?;
        if !bloom::may_hold(&words, &self.text, self.whole) {
            return Ok(false);
        }
        let segment = Segment::open(path).map_err(io::Error::other)?;
        let mut views = segment.views().flatten();
        Ok(views.any(|view| self.find(view.payload).is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_word_is_not_a_part_of_one() {
        let find = |text, whole, bytes: &str| {
            let needle = Needle::new(text, whole).unwrap();
            needle.find(bytes.as_bytes())
        };
        assert_eq!(find("issue", false, "get_issues"), Some(4..9));
        assert_eq!(find("issue", true, "get_issues"), None);
        assert_eq!(find("issue", true, "issues, an Issue."), Some(11..16));
        assert_eq!(find("a.b", false, "axb A.B"), Some(4..7));
        assert_eq!(find("\u{e4}", false, "x\u{e4}"), Some(1..3));
        // Ends that are no word need none.
        assert_eq!(find(" b ", true, "a b c"), Some(1..4));
    }
}
