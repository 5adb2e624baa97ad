//! Looking for words in journal files without taking them apart.
//!
//! Of a sealed file its word filter is asked ([`bloom`]); a file that was not sealed yet is
//! read as it is. The answer is about the file, and may be yes too often. Which sessions have
//! records with the words takes unpacking it, but no look at what the records mean; which step
//! the words are in, and whether in one at all, has to be looked up.

use crate::journal::bloom;
use crate::journal::reader::{OpenError, Segment};
use crate::journal::sealed;
use crate::layout::SegmentPath;
use regex::bytes::{Regex, RegexBuilder};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;

/// Lists of words, of each of which one is looked for. ASCII letters count without case.
#[derive(Clone, Debug)]
pub struct Words {
    lists: Vec<(Vec<String>, Regex)>,
}

impl Words {
    /// These lists, of whole words as [`bloom`] has them.
    ///
    /// # Errors
    /// When there is too much in a list to look for.
    pub fn new(lists: Vec<Vec<String>>) -> Result<Self, regex::Error> {
        let with_pattern = |words: Vec<String>| {
            let escaped: Vec<String> = words.iter().map(|word| regex::escape(word)).collect();
            let pattern = RegexBuilder::new(&escaped.join("|"))
                .case_insensitive(true)
                // What is searched may be no UTF-8, and the word filter knows no other case.
                .unicode(false)
                .build()?;
            Ok((words, pattern))
        };
        let lists = lists.into_iter().map(with_pattern);
        Ok(Self {
            lists: lists.collect::<Result<_, _>>()?,
        })
    }

    /// How many lists there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether nothing is looked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Whether for each list one of these files may hold one of its words.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn may_be_in<'a>(
        &self,
        files: impl IntoIterator<Item = &'a SegmentPath>,
    ) -> io::Result<bool> {
        let mut found = vec![false; self.lists.len()];
        for path in files {
            if found.iter().all(|found| *found) {
                break;
            }
            self.look(path, &mut found)?;
        }
        Ok(found.into_iter().all(|found| found))
    }

    /// For each list the ordinals of the sessions that have a record in this file which holds
    /// one of its words.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sessions_in(&self, path: &SegmentPath) -> Result<Vec<BTreeSet<u32>>, OpenError> {
        let segment = Segment::open(path)?;
        let mut found = vec![BTreeSet::new(); self.lists.len()];
        for view in segment.views().filter_map(Result::ok) {
            let session = view.envelope.session;
            for ((_, pattern), found) in self.lists.iter().zip(&mut found) {
                if !found.contains(&session) && pattern.is_match(view.payload) {
                    found.insert(session);
                }
            }
        }
        Ok(found)
    }

    fn look(&self, path: &SegmentPath, found: &mut [bool]) -> io::Result<()> {
        let lists = self.lists.iter().zip(found);
        let open = lists.filter(|(_, found)| !**found);
        if path.sealed {
            let filter = sealed::words(&File::open(&path.path)?)?;
            for ((words, _), found) in open {
                let mut words = words.iter();
                *found = words.any(|word| bloom::may_hold(&filter, word.as_bytes(), true));
            }
        } else {
            let bytes = std::fs::read(&path.path)?;
            for ((_, pattern), found) in open {
                *found = pattern.is_match(&bytes);
            }
        }
        Ok(())
    }
}
