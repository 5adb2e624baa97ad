//! What is sent is cut to fit: rows of runs are as large as what they are made of, and an
//! answer is not. Answers that are not sent are cut alike. Whatever is left out is counted.

use crate::finding::Found;
use crate::listing::Listed;
use crate::protocol::MOST_ANSWERED;
use crate::stats::ToolStats;
use serde::Serialize;
use std::io;

/// What rows may take of an answer, in bytes: the rest is for what stands around them.
const MOST: usize = (MOST_ANSWERED as usize) - (320 << 10);
/// So many entries of each of its lists are tried first with a row that is too large.
const LONGEST_LIST: usize = 16 << 10;
/// The most lines that tell what cannot be read, …
const MOST_WARNINGS: usize = 100;
/// … and the most characters of each.
const LONGEST_WARNING: usize = 400;

/// Something that can be made shorter.
pub(crate) trait Cut: Serialize {
    /// Keeps so many entries of each of its lists, and returns how many others there were.
    fn cut(&mut self, most: usize) -> u64;
}

/// Counts what the rows of an answer take, so that it ends before it is too long to be sent.
#[derive(Debug)]
pub(crate) struct Fit {
    left: usize,
    is_empty: bool,
}

impl Default for Fit {
    fn default() -> Self {
        Self {
            left: MOST,
            is_empty: true,
        }
    }
}

impl Fit {
    /// Whether this row still fits, which then counts as taken. The first always does, since
    /// the page after it would be the same again: it is cut if it has to be.
    pub(crate) fn takes(&mut self, row: &mut impl Cut) -> bool {
        if self.is_empty {
            cut(row);
        }
        let left = self.left.checked_sub(size(row) + 1);
        let fits = left.is_some() || self.is_empty;
        (self.left, self.is_empty) = (left.unwrap_or(0), false);
        fits
    }
}

/// Cuts an answer of one row if it is too large.
pub(crate) fn cut(row: &mut impl Cut) {
    let mut most = LONGEST_LIST;
    while size(row) >= MOST && most > 0 {
        row.cut(most);
        most /= 2;
    }
}

impl Cut for Listed {
    fn cut(&mut self, most: usize) -> u64 {
        let row = &mut self.row;
        let tally = &mut row.tally;
        let left_out = shorten(&mut row.aliases, most)
            + shorten(&mut row.clients, most)
            + shorten(&mut row.servers, most)
            + shorten(&mut row.transports, most)
            + shorten(&mut row.revisions, most)
            + shorten(&mut row.slices, most)
            + shorten(&mut row.turns, most)
            + shorten(&mut row.failures, most)
            + shorten(&mut tally.tools, most)
            + shorten(&mut tally.methods, most)
            + shorten(&mut tally.codes, most)
            + shorten(&mut tally.statuses, most)
            + shorten(&mut tally.posts, most)
            + shorten(&mut tally.found, most)
            + shorten(&mut row.across, most);
        self.left_out += left_out;
        left_out
    }
}

impl Cut for Found {
    fn cut(&mut self, most: usize) -> u64 {
        let mut left_out = shorten(&mut self.files, most);
        self.more_findings += shorten(&mut self.findings, most);
        for session in &mut self.files {
            left_out += shorten(&mut session.files, most);
        }
        self.run.left_out += left_out;
        left_out + self.run.cut(most)
    }
}

impl Cut for ToolStats {
    fn cut(&mut self, _: usize) -> u64 {
        0
    }
}

fn shorten<T>(list: &mut Vec<T>, most: usize) -> u64 {
    let beyond = list.len().saturating_sub(most) as u64;
    list.truncate(most);
    beyond
}

fn size(row: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, row) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX - 1,
    }
}

/// Counts the bytes that are written.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What could not be read to answer: the first of it, and how much more there is.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    told: Vec<String>,
    more: u64,
}

impl Warnings {
    pub(crate) fn tell(&mut self, line: &str) {
        if self.told.len() < MOST_WARNINGS {
            let end = line.char_indices().nth(LONGEST_WARNING);
            self.told
                .push(line[..end.map_or(line.len(), |(at, _)| at)].to_owned());
        } else {
            self.more += 1;
        }
    }

    /// One line each.
    pub(crate) fn lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.told.push(format!("and {} more", self.more));
        }
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row(Vec<String>);

    impl Cut for Row {
        fn cut(&mut self, most: usize) -> u64 {
            shorten(&mut self.0, most)
        }
    }

    #[test]
    fn a_page_ends_before_it_is_too_long() {
        let mut row = Row(vec!["x".repeat(1 << 20)]);
        let mut fit = Fit::default();
        let taken: Vec<bool> = (0..5).map(|_| fit.takes(&mut row)).collect();
        assert_eq!(taken, [true, true, true, false, false]);
    }

    #[test]
    fn a_row_that_is_too_large_comes_alone_and_cut() {
        let mut row = Row(vec!["x".repeat(1 << 10); 100_000]);
        let mut fit = Fit::default();
        assert!(fit.takes(&mut row));
        assert_eq!(row.0.len(), 2_048);
        let mut fit = Fit::default();
        assert!(fit.takes(&mut Row(vec![])));
        assert!(!fit.takes(&mut Row(vec!["x".repeat(9 << 20)])));
    }

    #[test]
    fn of_many_warnings_some_are_told_and_the_others_counted() {
        let mut warnings = Warnings::default();
        (0..1_000).for_each(|_| warnings.tell(&"ä".repeat(10_000)));
        let lines = warnings.lines();
        assert_eq!(lines.len(), MOST_WARNINGS + 1);
        assert_eq!(lines[0], "ä".repeat(LONGEST_WARNING));
        assert_eq!(lines[MOST_WARNINGS], "and 900 more");
    }
}
