//! Which parts of sessions make up which run.
//!
//! What a client says of the conversation it is in counts first: the parts that name the same
//! one are a run, however far apart they are. Parts that name none belong together where they
//! have something in common (the client's process, a trace, an `Mcp-Session-Id`) and no pause
//! of all of them is between them: an assistant asks several servers, and each of its sessions
//! alone may be idle while others are not. Among these, parts that name no conversation go
//! with the one that began nearest to them: a server that is only listed is told no
//! conversation.
//!
//! A run that was marked has what was marked, and nothing else.
//!
//! A trace joins and never separates: some clients begin a new one for each call, and one run
//! must not become ten.
//!
//! All this depends on the set of parts alone, not on the order in which they became known.

use crate::rows::{GroupKey, PartRow, SessionRow};
use agent_trace_model::{RunId, SessionId};
use agent_trace_store::trace;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A part of a session, as far as it matters for grouping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// Its session.
    pub session: SessionId,
    /// Which part of that it is, from 0.
    pub part: u32,
    /// When it began on the monotonic clock of its session; none where the session itself
    /// began with it.
    pub from: Option<u64>,
    /// When the client first did something, in nanoseconds since 1970.
    pub started: u64,
    /// When it last did, or was answered.
    pub active: u64,
    /// The conversation, where it is named.
    pub explicit: Option<GroupKey>,
    /// What it may have in common with others, the strongest first.
    pub joins: Vec<GroupKey>,
}

/// Parts that make up a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The run's id.
    pub id: RunId,
    /// Ids that it would have if less were known, sorted.
    pub aliases: Vec<RunId>,
    /// What joins it.
    pub key: GroupKey,
    /// Positions of its parts in what was given, in the order in which they began.
    pub members: Vec<usize>,
}

impl Atom {
    /// A part of a session.
    #[must_use]
    pub fn of(session: &SessionRow, part: u32, row: &PartRow) -> Self {
        let marked = session.keys.iter().find(|key| key.is_explicit());
        let joins = session.keys.iter().filter(|key| !key.is_explicit());
        Self {
            session: session.id,
            part,
            from: (part > 0 || session.clipped).then_some(row.from),
            started: row.started,
            active: row.active.max(row.started),
            explicit: marked.or(row.conversation.as_ref()).cloned(),
            joins: joins.chain(&row.traces).cloned().collect(),
        }
    }

    /// Everything by which other parts may be found that belong to it.
    pub fn keys(&self) -> impl Iterator<Item = &GroupKey> {
        self.explicit.iter().chain(&self.joins)
    }

    fn order(&self) -> (u64, SessionId, u32) {
        (self.started, self.session, self.part)
    }

    /// The id of a run that begins with it, if this joins it.
    fn run_id(&self, workspace: &str, key: &GroupKey) -> RunId {
        let session = self.session.to_string();
        let moment = self.from.map(|from| from.to_string());
        match (key, &moment) {
            (GroupKey::Session, None) => trace::run_id(workspace, self.session),
            _ => {
                let value = key.value();
                let value = (*key != GroupKey::Session).then_some(&value[..]);
                let parts = [workspace, key.kind()].into_iter().chain(value);
                let first = [&session[..]].into_iter().chain(moment.as_deref());
                trace::run_id_of(parts.chain(first))
            }
        }
    }

    /// What joins a run that begins with it and names no conversation.
    fn strongest(&self) -> GroupKey {
        self.joins.first().cloned().unwrap_or(GroupKey::Session)
    }
}

/// The runs that these parts of sessions of one workspace make up. After a pause of `idle`
/// nanoseconds a client begins a new one.
#[must_use]
pub fn group(workspace: &str, atoms: &[Atom], idle: u64) -> Vec<Group> {
    let mut explicit: BTreeMap<&GroupKey, Vec<usize>> = BTreeMap::new();
    let mut groups = Vec::new();
    for segment in segments(atoms, idle) {
        let mut named: Vec<usize> = segment.clone();
        named.retain(|at| atoms[*at].explicit.is_some());
        if named.is_empty() {
            groups.push(joined(workspace, atoms, segment));
            continue;
        }
        for at in segment {
            let by = nearest(atoms, &named, at);
            if let Some(key) = &atoms[by].explicit {
                explicit.entry(key).or_default().push(at);
            }
        }
    }
    for (key, mut members) in explicit {
        members.sort_by_key(|at| atoms[*at].order());
        let id = trace::run_id_of([workspace, key.kind(), &key.value()]);
        groups.push(Group {
            id,
            aliases: aliases(workspace, atoms, &members, id),
            key: key.clone(),
            members,
        });
    }
    groups.sort_by_key(|group| group.id);
    groups
}

fn joined(workspace: &str, atoms: &[Atom], members: Vec<usize>) -> Group {
    let first = members.first().map(|at| &atoms[*at]);
    let key = first.map_or(GroupKey::Session, Atom::strongest);
    let digest = trace::run_id_of([workspace]);
    let id = first.map_or(digest, |first| first.run_id(workspace, &key));
    Group {
        id,
        aliases: aliases(workspace, atoms, &members, id),
        key,
        members,
    }
}

/// The ids of the runs that began with one of these parts if less were known: which of them
/// come before it, and what joins it to them.
fn aliases(workspace: &str, atoms: &[Atom], members: &[usize], id: RunId) -> Vec<RunId> {
    let mut aliases = BTreeSet::new();
    for at in members {
        let atom = &atoms[*at];
        let lasting = |key: &&GroupKey| !matches!(key, GroupKey::Trace(_));
        for key in atom.joins.iter().filter(lasting) {
            aliases.insert(atom.run_id(workspace, key));
        }
        aliases.insert(atom.run_id(workspace, &GroupKey::Session));
    }
    aliases.remove(&id);
    aliases.into_iter().collect()
}

/// Of the parts that name a conversation the one that began nearest to this one, of two
/// equally near ones the earlier. `named` is in the order in which they began.
fn nearest(atoms: &[Atom], named: &[usize], at: usize) -> usize {
    let atom = &atoms[at];
    if atom.explicit.is_some() {
        return at;
    }
    let after = named.partition_point(|at| atoms[*at].order() < atom.order());
    let near = named[after.saturating_sub(1)..].iter().take(2);
    let distance = |at: &&usize| {
        let other = &atoms[**at];
        (other.started.abs_diff(atom.started), other.order())
    };
    near.min_by_key(distance).copied().unwrap_or(at)
}

/// Parts between which there is no pause, each in the order in which they began.
fn segments(atoms: &[Atom], idle: u64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..atoms.len()).collect();
    order.sort_by_key(|at| atoms[*at].order());
    let mut sets = Sets::new(atoms.len());
    // By what joins it, the last part, and until when parts before it were active.
    let mut open: HashMap<&GroupKey, (usize, u64)> = HashMap::new();
    for at in &order {
        let atom = &atoms[*at];
        if matches!(atom.explicit, Some(GroupKey::Marked(_))) {
            continue;
        }
        for key in &atom.joins {
            let entry = open.entry(key).or_insert((*at, atom.active));
            if atom.started.saturating_sub(entry.1) < idle {
                sets.join(entry.0, *at);
                entry.1 = entry.1.max(atom.active);
            } else {
                entry.1 = atom.active;
            }
            entry.0 = *at;
        }
    }
    let mut segments: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in order {
        segments.entry(sets.root(at)).or_default().push(at);
    }
    segments.into_values().collect()
}

/// Disjoint sets of positions.
struct Sets {
    parents: Vec<usize>,
}

impl Sets {
    fn new(count: usize) -> Self {
        Self {
            parents: (0..count).collect(),
        }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[other] = one;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_model::ProcessId;
    use proptest::prelude::*;

    const IDLE: u64 = 600;

    fn client(pid: u32) -> GroupKey {
        GroupKey::Client {
            host: "h".into(),
            boot: "b".into(),
            pid,
            started: 7,
        }
    }

    fn session(number: u8) -> SessionId {
        SessionId {
            process: ProcessId::from_bytes([number; 16]),
            ordinal: 1,
        }
    }

    fn atom(number: u8, started: u64, active: u64, joins: &[GroupKey]) -> Atom {
        Atom {
            session: session(number),
            part: 0,
            from: None,
            started,
            active,
            explicit: None,
            joins: joins.to_vec(),
        }
    }

    fn said(mut atom: Atom, conversation: &str) -> Atom {
        atom.explicit = Some(GroupKey::Conversation(conversation.into()));
        atom
    }

    #[test]
    fn a_session_alone_has_the_id_that_it_always_had() {
        let groups = group("w", &[atom(1, 0, 9, &[])], IDLE);
        assert_eq!(groups[0].id, trace::run_id("w", session(1)));
        assert_eq!(groups[0].aliases, []);
        assert_eq!(groups[0].key, GroupKey::Session);
    }

    #[test]
    fn sessions_of_a_client_are_one_run_until_all_of_them_pause() {
        let atoms = [
            atom(1, 0, 1_000, &[client(5)]),
            atom(2, 1_500, 1_600, &[client(5)]),
            atom(3, 2_200, 2_300, &[client(5)]),
            atom(4, 1_500, 1_600, &[client(6)]),
        ];
        let mut runs: Vec<Vec<usize>> = group("w", &atoms, IDLE)
            .into_iter()
            .map(|group| group.members)
            .collect();
        runs.sort();
        assert_eq!(runs, [vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn a_run_is_found_by_the_ids_that_its_sessions_had_before() {
        let atoms = [
            atom(1, 0, 10, &[client(5)]),
            said(atom(2, 20, 30, &[client(5)]), "c"),
        ];
        let alone: Vec<RunId> = atoms
            .iter()
            .flat_map(|atom| {
                let mut atom = atom.clone();
                atom.explicit = None;
                let joined = group("w", &[atom.clone()], IDLE)[0].id;
                atom.joins.clear();
                [joined, group("w", &[atom], IDLE)[0].id]
            })
            .collect();
        let groups = group("w", &atoms, IDLE);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].key, GroupKey::Conversation("c".into()));
        for id in alone {
            assert!(groups[0].aliases.contains(&id));
        }
    }

    #[test]
    fn what_names_no_conversation_goes_with_the_nearest_that_does() {
        let atoms = [
            said(atom(1, 0, 10, &[client(5)]), "a"),
            atom(2, 20, 30, &[client(5)]),
            atom(3, 90, 95, &[client(5)]),
            said(atom(4, 100, 110, &[client(5)]), "b"),
            // The same conversation, days later.
            said(atom(5, 1_000_000, 1_000_010, &[client(9)]), "a"),
        ];
        let mut runs: Vec<Vec<usize>> = group("w", &atoms, IDLE)
            .into_iter()
            .map(|group| group.members)
            .collect();
        runs.sort();
        assert_eq!(runs, [vec![0, 1, 4], vec![2, 3]]);
    }

    #[test]
    fn a_trace_joins_clients_and_does_not_separate_what_one_does() {
        let trace = |name: &str| GroupKey::Trace(name.into());
        let atoms = [
            atom(1, 0, 10, &[client(5), trace("a"), trace("b")]),
            atom(2, 5, 15, &[client(6), trace("b")]),
            atom(3, 7, 15, &[trace("c")]),
        ];
        let groups = group("w", &atoms, IDLE);
        assert_eq!(groups.len(), 2);
        assert!(groups.iter().any(|group| group.members == [0, 1]));
    }

    fn any_atom() -> impl Strategy<Value = (u64, u64, Vec<u8>, Option<u8>)> {
        let keys = proptest::collection::vec(0_u8..4, 0..3);
        (
            0_u64..5_000,
            0_u64..900,
            keys,
            proptest::option::of(0_u8..3),
        )
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter_and_nothing_is_lost(
            drawn in proptest::collection::vec(any_atom(), 0..20),
            rotate in 0_usize..20,
        ) {
            let mut atoms: Vec<Atom> = (0_u8..).zip(drawn).map(|(n, (at, long, keys, name))| {
                let keys: Vec<GroupKey> = keys.into_iter().map(|k| client(u32::from(k))).collect();
                let atom = atom(n, at, at + long, &keys);
                match name {
                    Some(name) => said(atom, &name.to_string()),
                    None => atom,
                }
            }).collect();
            let named = |atoms: &[Atom]| -> BTreeMap<RunId, (Vec<SessionId>, Vec<RunId>)> {
                group("w", atoms, IDLE).into_iter().map(|group| {
                    let members = group.members.iter().map(|at| atoms[*at].session).collect();
                    (group.id, (members, group.aliases))
                }).collect()
            };
            let before = named(&atoms);
            let members: usize = before.values().map(|(members, _)| members.len()).sum();
            prop_assert_eq!(members, atoms.len(), "each part is in one run");
            let all: Vec<RunId> = before.iter().flat_map(|(id, (_, a))| a.iter().chain([id])).copied().collect();
            prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "each id is of one run");
            let by = rotate.min(atoms.len());
            atoms.rotate_left(by);
            atoms.reverse();
            prop_assert_eq!(named(&atoms), before);
        }
    }
}
