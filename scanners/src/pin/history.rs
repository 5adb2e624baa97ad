//! Which definitions changed, from all that was seen of one server.
//!
//! What a server tells may depend on who asks: on the client, what it can do, the revision
//! that is spoken. All that together is a *view*. A definition has changed where one view saw
//! it otherwise before, and nobody saw it as it is now. So it is no change that
//!
//! - a definition is not listed any more, or again,
//! - two clients are told different things,
//! - a server is reached in another way,
//! - a definition is once more what it was.
//!
//! What someone approved counts as seen by the views that it was approved for, at that time.
//! What changed before that was decided about and is not told.

use super::{Hash, Kind};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Who asks: equal for those that may be told the same.
pub type View = [u8; 8];

/// A definition as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a, T> {
    /// What is defined.
    pub kind: Kind,
    /// Its name.
    pub name: &'a str,
    /// The hash of its canonical form.
    pub hash: Hash,
    /// Who saw it.
    pub view: View,
    /// When, in nanoseconds since 1970.
    pub when: u64,
    /// Whether it was approved, and not only seen.
    pub approved: bool,
    /// Where it was seen: what the caller wants to know of it.
    pub place: T,
}

/// A definition that is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a, T> {
    /// As it was before, as the same view saw it.
    pub old: Seen<'a, T>,
    /// As it is from then on.
    pub new: Seen<'a, T>,
}

/// What changed, in the order in which it did. Of equal times the order is that of `seen`.
#[must_use]
pub fn changes<'a, T: Copy>(mut seen: Vec<Seen<'a, T>>) -> Vec<Change<'a, T>> {
    // An approval decides about what was seen at the same moment.
    seen.sort_by_key(|one| (one.when, one.approved));
    let mut approved: HashMap<(Kind, &str), u64> = HashMap::new();
    for one in seen.iter().filter(|one| one.approved) {
        approved.insert((one.kind, one.name), one.when);
    }
    let mut known: HashSet<(Kind, &str, Hash)> = HashSet::new();
    let mut last: HashMap<(Kind, &str, View), Seen<'a, T>> = HashMap::new();
    let mut out = Vec::new();
    for new in seen {
        let is_new = known.insert((new.kind, new.name, new.hash));
        let old = last.insert((new.kind, new.name, new.view), new);
        let decided = approved.get(&(new.kind, new.name));
        let is_open = decided.is_none_or(|at| new.when > *at);
        if let Some(old) = old.filter(|_| is_new && is_open && !new.approved) {
            out.push(Change { old, new });
        }
    }
    out
}

/// What each view saw last, by definition.
#[must_use]
pub fn latest<'a, T: Copy>(seen: &[Seen<'a, T>]) -> BTreeMap<(Kind, &'a str), Vec<Seen<'a, T>>> {
    let mut last: BTreeMap<(Kind, &str, View), Seen<'a, T>> = BTreeMap::new();
    for one in seen {
        let known = last.entry((one.kind, one.name, one.view)).or_insert(*one);
        if known.when <= one.when {
            *known = *one;
        }
    }
    let mut out: BTreeMap<(Kind, &str), Vec<Seen<'a, T>>> = BTreeMap::new();
    for ((kind, name, _), one) in last {
        out.entry((kind, name)).or_default().push(one);
    }
    for all in out.values_mut() {
        all.sort_by_key(|one| std::cmp::Reverse(one.when));
    }
    out
}

/// The different hashes among these.
#[must_use]
pub fn hashes<T>(seen: &[Seen<'_, T>]) -> BTreeSet<Hash> {
    seen.iter().map(|one| one.hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(when: u64, view: u8, name: &'static str, hash: u8) -> Seen<'static, u64> {
        Seen {
            kind: Kind::Tool,
            name,
            hash: [hash; 32],
            view: [view; 8],
            when,
            approved: false,
            place: when,
        }
    }

    fn approved(when: u64, view: u8, hash: u8) -> Seen<'static, u64> {
        Seen {
            approved: true,
            ..seen(when, view, "a", hash)
        }
    }

    /// Old and new, by when they were seen.
    fn told(all: &[Seen<'static, u64>]) -> Vec<(u64, u64)> {
        let changes = changes(all.to_vec());
        changes
            .iter()
            .map(|change| (change.old.place, change.new.place))
            .collect()
    }

    #[test]
    fn a_definition_that_is_not_what_it_was_has_changed() {
        assert_eq!(told(&[seen(1, 1, "a", 1), seen(2, 1, "a", 2)]), [(1, 2)]);
        // However late the first of it becomes known.
        assert_eq!(told(&[seen(2, 1, "a", 2), seen(1, 1, "a", 1)]), [(1, 2)]);
        // Once, not each time that it is seen.
        assert_eq!(
            told(&[
                seen(1, 1, "a", 1),
                seen(2, 1, "a", 2),
                seen(3, 1, "a", 2),
                seen(4, 2, "a", 2)
            ]),
            [(1, 2)]
        );
        // Not listed in between, and another one beside it.
        assert_eq!(
            told(&[seen(1, 1, "a", 1), seen(2, 1, "b", 7), seen(3, 1, "a", 2)]),
            [(1, 3)]
        );
    }

    #[test]
    fn what_depends_on_who_asks_has_not_changed() {
        let alternating = [
            seen(1, 1, "a", 1),
            seen(2, 2, "a", 2),
            seen(3, 1, "a", 1),
            seen(4, 2, "a", 2),
            seen(5, 1, "a", 2),
        ];
        assert_eq!(told(&alternating), []);
        // A tool that only some clients are shown.
        assert_eq!(
            told(&[seen(1, 1, "a", 1), seen(2, 2, "b", 1), seen(3, 1, "a", 1)]),
            []
        );
        // And back again.
        assert_eq!(
            told(&[
                seen(1, 1, "a", 1),
                seen(2, 1, "a", 2),
                seen(3, 1, "a", 1),
                seen(4, 1, "a", 2)
            ]),
            [(1, 2)]
        );
    }

    #[test]
    fn what_was_approved_is_what_later_ones_are_compared_with() {
        // What changed before was decided about.
        let before = [seen(1, 1, "a", 1), seen(2, 1, "a", 2), approved(3, 1, 2)];
        assert_eq!(told(&before), []);
        let after = [&before[..], &[seen(4, 1, "a", 3)]].concat();
        assert_eq!(told(&after), [(3, 4)]);
        // It outlasts what was recorded.
        assert_eq!(told(&[approved(3, 1, 2), seen(9, 1, "a", 3)]), [(3, 9)]);
        assert_eq!(told(&[approved(3, 1, 2), seen(9, 1, "a", 2)]), []);
        assert_eq!(told(&[approved(3, 1, 2), seen(9, 2, "a", 3)]), []);
    }
}
