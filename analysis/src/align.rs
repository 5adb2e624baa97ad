//! Which entries of two lists belong together: a longest common subsequence, as far as that is
//! cheap.
//!
//! Entries that occur once on both sides are anchors (patience); between anchors the same again,
//! and what is left is compared in full where it is small, else first come, first served. The
//! time it takes is bounded by the lengths of the lists times a constant.

use std::collections::HashMap;
use std::ops::Range;

/// Comparisons that one stretch without anchors may take.
const CELLS: usize = 250_000;

/// How often stretches between anchors are split by anchors of their own.
const ROUNDS: usize = 16;

/// Pairs of positions with equal keys, ascending on both sides.
#[must_use]
pub fn pairs(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut stretches = vec![(0..a.len(), 0..b.len(), 0)];
    while let Some((mut in_a, mut in_b, round)) = stretches.pop() {
        while !in_a.is_empty() && !in_b.is_empty() && a[in_a.start] == b[in_b.start] {
            found.push((in_a.start, in_b.start));
            in_a.start += 1;
            in_b.start += 1;
        }
        while !in_a.is_empty() && !in_b.is_empty() && a[in_a.end - 1] == b[in_b.end - 1] {
            in_a.end -= 1;
            in_b.end -= 1;
            found.push((in_a.end, in_b.end));
        }
        if in_a.is_empty() || in_b.is_empty() {
            continue;
        }
        let anchors = match round {
            ROUNDS => Vec::new(),
            _ => anchors(a, b, &in_a, &in_b),
        };
        if anchors.is_empty() {
            let rest = match in_a.len().saturating_mul(in_b.len()) {
                0..=CELLS => longest(a, b, &in_a, &in_b),
                _ => in_turn(a, b, &in_a, &in_b),
            };
            found.extend(rest);
            continue;
        }
        let (mut from_a, mut from_b) = (in_a.start, in_b.start);
        for (at_a, at_b) in anchors {
            found.push((at_a, at_b));
            stretches.push((from_a..at_a, from_b..at_b, round + 1));
            (from_a, from_b) = (at_a + 1, at_b + 1);
        }
        stretches.push((from_a..in_a.end, from_b..in_b.end, round + 1));
    }
    found.sort_unstable();
    found
}

/// Keys that occur once on either side, in the longest order that both sides have.
fn anchors(a: &[u64], b: &[u64], in_a: &Range<usize>, in_b: &Range<usize>) -> Vec<(usize, usize)> {
    // How often in a and in b, and where.
    let mut keys: HashMap<u64, (u32, u32, usize, usize)> = HashMap::new();
    for at in in_a.clone() {
        let entry = keys.entry(a[at]).or_default();
        (entry.0, entry.2) = (entry.0 + 1, at);
    }
    for at in in_b.clone() {
        let entry = keys.entry(b[at]).or_default();
        (entry.1, entry.3) = (entry.1 + 1, at);
    }
    let once = keys
        .into_values()
        .filter(|entry| (entry.0, entry.1) == (1, 1));
    let mut once: Vec<(usize, usize)> = once.map(|entry| (entry.2, entry.3)).collect();
    once.sort_unstable();
    rising(&once)
}

/// The longest subsequence whose second numbers rise.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair with the smallest end; for each pair, the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut longest = Vec::new();
    let mut at = ends.last().copied();
    while let Some(pair) = at {
        longest.push(pairs[pair]);
        at = before[pair];
    }
    longest.reverse();
    longest
}

/// A longest common subsequence, by comparing each with each.
fn longest(a: &[u64], b: &[u64], in_a: &Range<usize>, in_b: &Range<usize>) -> Vec<(usize, usize)> {
    let (a, b) = (&a[in_a.clone()], &b[in_b.clone()]);
    let width = b.len() + 1;
    // Lengths of what is common from here on.
    let mut lengths = vec![0_u32; (a.len() + 1) * width];
    for at_a in (0..a.len()).rev() {
        for at_b in (0..b.len()).rev() {
            let at = at_a * width + at_b;
            lengths[at] = match a[at_a] == b[at_b] {
                true => lengths[at + width + 1] + 1,
                false => lengths[at + width].max(lengths[at + 1]),
            };
        }
    }
    let (mut at_a, mut at_b) = (0, 0);
    let mut found = Vec::new();
    while at_a < a.len() && at_b < b.len() {
        let at = at_a * width + at_b;
        if a[at_a] == b[at_b] {
            found.push((in_a.start + at_a, in_b.start + at_b));
            at_a += 1;
            at_b += 1;
        } else if lengths[at + width] >= lengths[at + 1] {
            at_a += 1;
        } else {
            at_b += 1;
        }
    }
    found
}

/// Each with the next like it.
fn in_turn(a: &[u64], b: &[u64], in_a: &Range<usize>, in_b: &Range<usize>) -> Vec<(usize, usize)> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    // The next one is at the end.
    for at in in_b.clone().rev() {
        places.entry(b[at]).or_default().push(at);
    }
    let mut found = Vec::new();
    let mut from = in_b.start;
    for at in in_a.clone() {
        let Some(places) = places.get_mut(&a[at]) else {
            continue;
        };
        while places.last().is_some_and(|place| *place < from) {
            places.pop();
        }
        // What lies far ahead would leave out all that is between.
        let near = |place: &usize| place - from <= 64;
        if let Some(place) = places.last().copied().filter(near) {
            found.push((at, place));
            from = place + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(text: &str) -> Vec<u64> {
        text.bytes().map(u64::from).collect()
    }

    fn common(a: &str, b: &str) -> String {
        let (a, b) = (keys(a), keys(b));
        let pairs = pairs(&a, &b);
        pairs.iter().map(|(at, _)| a[*at] as u8 as char).collect()
    }

    #[test]
    fn what_is_common_is_found() {
        assert_eq!(common("abcde", "abxde"), "abde");
        assert_eq!(common("abc", ""), "");
        assert_eq!(common("abcabba", "cbabac").len(), 4);
        assert_eq!(common("xaybzc", "aqbrc"), "abc");
    }

    #[test]
    fn long_lists_with_nothing_to_hold_on_to_take_no_time() {
        let a: Vec<u64> = (0..50_000).map(|n| n % 7).collect();
        let b: Vec<u64> = (0..50_000).map(|n| n % 5).collect();
        let begun = std::time::Instant::now();
        assert!(pairs(&a, &b).len() > 10_000);
        let other: Vec<u64> = (0..50_000).map(|n| n + 100).collect();
        assert_eq!(pairs(&a, &other), []);
        let back: Vec<u64> = other.iter().rev().copied().collect();
        assert_eq!(pairs(&other, &back).len(), 1);
        assert!(begun.elapsed().as_secs() < 20);
    }

    proptest! {
        #[test]
        fn pairs_are_equal_and_in_order(a in "[a-d]{0,40}", b in "[a-d]{0,40}") {
            let (a, b) = (keys(&a), keys(&b));
            let pairs = pairs(&a, &b);
            for (at_a, at_b) in &pairs {
                prop_assert_eq!(a[*at_a], b[*at_b]);
            }
            for two in pairs.windows(2) {
                prop_assert!(two[0].0 < two[1].0 && two[0].1 < two[1].1);
            }
        }
    }
}
