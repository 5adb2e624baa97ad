//! Finds the places where a secret could start, in one pass over the bytes.
//!
//! An anchor is a short fixed text: a token's prefix, a word as `password`, the beginning of
//! a literal. The filter looks in three stages. `pairs` takes two bytes at a step and passes
//! over nearly everything. Where it stops, four bytes are looked at: each byte value has a
//! word of 64 bits for each of the four places, one bit for each bucket of anchors, and where
//! the four words share a bit an anchor of that bucket may stand. Only there are anchors
//! compared. The tables are small and take microseconds to build, where an automaton over the
//! same anchors takes a hundred times of both, and the speed hardly depends on the text.

mod pairs;

use super::class::has_folded;
use pairs::Pairs;

/// What to do at an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A word that names may hold: see `pair`.
    Word,
    /// `SHAPES[n]` of `prefix`.
    Shape(u16),
    /// A structure that `shape` knows.
    Structure(Structure),
    /// The beginning of literal n.
    Literal(u32),
    /// The end of literal n.
    LiteralEnd(u32),
    /// Nothing by itself; the text deserves a closer look.
    Look,
}

/// Secrets that are more than a prefix and a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Structure {
    Jwt,
    Pem,
    Putty,
    AwsId,
    AzureClient,
    AzureKey,
    Telegram,
    /// `://`
    Url,
    Bearer,
    Basic,
    /// `@tcp(`
    GoDsn,
    /// `-u`
    UserFlag,
    /// `IDENTIFIED BY`
    IdentifiedBy,
}

struct Anchor {
    text: Box<[u8]>,
    fold: bool,
    what: What,
}

/// A set of anchors, compiled.
pub(super) struct Filter {
    pairs: Pairs,
    rows: Box<[[u64; 4]; 256]>,
    buckets: Vec<Vec<Anchor>>,
}

/// The least length of an anchor.
pub(super) const LEAST: usize = 3;
const WIDTH: usize = 4;
const BUCKETS: usize = 64;

/// Collects anchors for a [`Filter`].
#[derive(Default)]
pub(super) struct Builder(Vec<Anchor>);

impl Builder {
    /// Adds an anchor; shorter ones than [`LEAST`] are left out. With `fold`, `text` is lower
    /// case and matches any case.
    pub(super) fn add(&mut self, text: &[u8], fold: bool, what: What) {
        if text.len() >= LEAST {
            self.0.push(Anchor {
                text: text.into(),
                fold,
                what,
            });
        }
    }

    pub(super) fn build(mut self) -> Filter {
        // Anchors that begin alike share a bucket, so that its bits stay few in each place.
        // Folded ones stay apart: their bits are many.
        let head = |anchor: &Anchor| {
            let head: Vec<u8> = anchor.text.iter().take(WIDTH).copied().collect();
            (!anchor.fold, head)
        };
        self.0
            .sort_by(|a, b| head(a).cmp(&head(b)).then(b.text.len().cmp(&a.text.len())));
        let mut heads: Vec<_> = self.0.iter().map(head).collect();
        heads.dedup();
        let mut filter = Filter {
            pairs: Pairs::new(self.0.iter().map(|anchor| (&*anchor.text, anchor.fold))),
            rows: Box::new([[0; 4]; 256]),
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
        };
        let mut number = 0;
        for anchor in self.0 {
            if heads[number] != head(&anchor) {
                number += 1;
            }
            let bucket = number * BUCKETS / heads.len().max(BUCKETS);
            filter.add(bucket, anchor);
        }
        filter
    }
}

impl Filter {
    fn add(&mut self, bucket: usize, anchor: Anchor) {
        let bit = 1 << bucket;
        for place in 0..WIDTH {
            match anchor.text.get(place) {
                Some(&byte) if anchor.fold => {
                    self.rows[usize::from(byte)][place] |= bit;
                    self.rows[usize::from(byte.to_ascii_uppercase())][place] |= bit;
                }
                Some(&byte) => self.rows[usize::from(byte)][place] |= bit,
                None => self.rows.iter_mut().for_each(|row| row[place] |= bit),
            }
        }
        self.buckets[bucket].push(anchor);
    }

    /// The buckets of which an anchor may begin `text`.
    fn buckets(&self, text: &[u8]) -> u64 {
        let row = |byte: u8, place: usize| self.rows[usize::from(byte)][place];
        match *text {
            [a, b, c, d, ..] => row(a, 0) & row(b, 1) & row(c, 2) & row(d, 3),
            // At the end of a text three bytes can still be an anchor.
            [a, b, c] => row(a, 0) & row(b, 1) & row(c, 2),
            _ => 0,
        }
    }

    /// The anchors in `text`, by position; several at one position come in any order.
    pub(super) fn find<'f>(&'f self, text: &'f [u8]) -> Finder<'f> {
        Finder {
            filter: self,
            text,
            at: 0,
            found: Found::default(),
            given: 0,
        }
    }
}

/// An anchor that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) what: What,
}

/// Candidates at one position. More than these at one position are let go; only literals
/// that begin alike could be.
#[derive(Default)]
struct Found {
    list: [Option<Candidate>; 8],
    count: usize,
}

/// Iterates over the candidates in a text.
pub(super) struct Finder<'f> {
    filter: &'f Filter,
    text: &'f [u8],
    /// The next position to look at.
    at: usize,
    found: Found,
    given: usize,
}

impl Finder<'_> {
    /// The next candidate, which stays.
    pub(super) fn peek(&mut self) -> Option<Candidate> {
        loop {
            if let Some(found) = self.found.list[..self.found.count].get(self.given) {
                return *found;
            }
            let (at, buckets) = self.advance()?;
            self.verify(at, buckets);
        }
    }

    /// The next candidate before `end`.
    pub(super) fn next_before(&mut self, end: usize) -> Option<Candidate> {
        let candidate = self.peek().filter(|candidate| candidate.at < end)?;
        self.given += 1;
        Some(candidate)
    }

    /// Leaves out the candidates before `end`.
    pub(super) fn skip_to(&mut self, end: usize) {
        while self.next_before(end).is_some() {}
    }

    /// The next position where anchors may stand, and their buckets.
    fn advance(&mut self) -> Option<(usize, u64)> {
        let (filter, text) = (self.filter, self.text);
        let mut at = self.at;
        while let Some(rest) = text.get(at..) {
            let passed = filter.pairs.skip(rest);
            at += passed + 1;
            let buckets = filter.buckets(&rest[passed..]);
            if buckets != 0 {
                self.at = at;
                return Some((at - 1, buckets));
            }
        }
        self.at = at;
        None
    }

    #[cold]
    #[inline(never)]
    fn verify(&mut self, at: usize, mut buckets: u64) {
        self.found.count = 0;
        self.given = 0;
        let rest = &self.text[at..];
        while buckets != 0 {
            let bucket = buckets.trailing_zeros() as usize;
            buckets &= buckets - 1;
            for anchor in &self.filter.buckets[bucket] {
                let same = if anchor.fold {
                    has_folded(rest, 0, &anchor.text)
                } else {
                    rest.starts_with(&anchor.text)
                };
                if same && let Some(slot) = self.found.list.get_mut(self.found.count) {
                    *slot = Some(Candidate {
                        at,
                        len: anchor.text.len(),
                        what: anchor.what,
                    });
                    self.found.count += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(anchors: &[(&str, bool)], text: &str) -> Vec<(usize, usize)> {
        let mut builder = Builder::default();
        for (number, (anchor, fold)) in anchors.iter().enumerate() {
            builder.add(anchor.as_bytes(), *fold, What::Shape(number as u16));
        }
        let filter = builder.build();
        let mut finder = filter.find(text.as_bytes());
        let mut all = Vec::new();
        while let Some(found) = finder.next_before(usize::MAX) {
            let What::Shape(number) = found.what else {
                panic!()
            };
            assert_eq!(found.len, anchors[usize::from(number)].0.len());
            all.push((found.at, usize::from(number)));
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn anchors_are_found_at_every_position() {
        let anchors = [
            ("sk-", false),
            ("sk-ant-", false),
            ("key", true),
            ("token", true),
            ("AKIA", false),
        ];
        assert_eq!(find(&anchors, "sk-"), [(0, 0)]);
        assert_eq!(find(&anchors, "sk-ant-x"), [(0, 0), (0, 1)]);
        assert_eq!(find(&anchors, "KEYkeyKeY"), [(0, 2), (3, 2), (6, 2)]);
        assert_eq!(find(&anchors, "xTokENkey"), [(1, 3), (6, 2)]);
        assert_eq!(find(&anchors, "akia AKI AKIA"), [(9, 4)]);
        assert_eq!(find(&anchors, "ke"), []);
        assert_eq!(find(&anchors, ""), []);
        assert_eq!(find(&[], "token"), []);
    }

    #[test]
    fn an_anchor_is_found_wherever_it_stands() {
        let anchors = [("key", true), ("TOKEN", false), ("_pat", true)];
        for (number, (anchor, _)) in anchors.iter().enumerate() {
            for before in 0..12 {
                for after in 0..12 {
                    let text = ["e".repeat(before), "t".repeat(after)].join(anchor);
                    assert_eq!(find(&anchors, &text), [(before, number)], "{text}");
                }
            }
        }
    }

    #[test]
    fn many_anchors_share_buckets() {
        let names: Vec<_> = (0..500)
            .map(|number| format!("{number:03}-anchor"))
            .collect();
        let anchors: Vec<_> = names.iter().map(|name| (name.as_str(), false)).collect();
        let text = names.join(" ");
        let found = find(&anchors, &text);
        assert_eq!(found.len(), 500);
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(number, &(at, anchor))| at == number * 11 && anchor == number)
        );
    }

    #[test]
    fn peeking_and_skipping() {
        let mut builder = Builder::default();
        builder.add(b"key", true, What::Word);
        builder.add(b"no", true, What::Look);
        let filter = builder.build();
        let mut finder = filter.find(b"key key no key");
        assert_eq!(finder.peek().map(|found| found.at), Some(0));
        finder.skip_to(4);
        assert_eq!(finder.next_before(4), None);
        assert_eq!(finder.next_before(5).map(|found| found.at), Some(4));
        assert_eq!(finder.next_before(99).map(|found| found.at), Some(11));
        assert_eq!(finder.peek(), None);
        assert_eq!(finder.peek(), None);
    }
}
