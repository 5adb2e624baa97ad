//! Rows of what was found in sessions, and of the lists of definitions that they were told.

use super::overlay::Overlay;
use crate::digest::scan::{List, Scanned};
use crate::engine::EngineError;
use crate::keys;
use crate::rows::scan::{MOST_ACROSS, count};
use crate::rows::{FoundAt, FoundRow, ListRow, ListedAt, RunRow, SeenRow, SessionRow, encode};
use agent_trace_model::SessionId;
use agent_trace_scanners::pin::{Hash, Kind};
use agent_trace_scanners::{Server, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The most lists of a run that are compared with each other.
const MOST_LISTS: usize = 32;
/// So many comparisons are remembered.
const REMEMBERED: usize = 10_000;
/// So many lists are kept to compare others with.
const KEPT: usize = 256;

/// Puts what belongs to the row of a session in place of what belonged to the one before.
pub(super) fn write(
    rows: &mut Overlay<'_>,
    id: SessionId,
    before: Option<&SessionRow>,
    now: Option<&SessionRow>,
    scanned: &Scanned,
) -> Result<(), EngineError> {
    if scanned.filed.found.is_empty() && scanned.filed.more == 0 {
        // Most have none, and had none.
        let key = keys::filed(id);
        if before.is_some() && rows.has(&key)? {
            rows.remove(key);
        }
    } else {
        rows.put(keys::filed(id), encode(&scanned.filed));
    }
    let (old, new) = (told(before), told(now));
    if let Some(row) = now {
        let names = |row: &SessionRow| {
            let SessionRow {
                server,
                client,
                project,
                ..
            } = row;
            (server.clone(), client.clone(), project.clone())
        };
        let same_names = before.is_some_and(|before| names(before) == names(row));
        for (key, told) in &new {
            if same_names && old.contains_key(key) {
                continue;
            }
            let seen = SeenRow {
                at: told.at,
                server: row.server.clone(),
                client: row.client.clone(),
                project: row.project.clone(),
            };
            rows.put(key.clone(), encode(&seen));
        }
        for list in &scanned.lists {
            let is_known = |told: &ListedAt| told.list == list.hash;
            let same_server = before.is_some_and(|before| before.identity == row.identity);
            if !(same_server && old.values().any(|told| is_known(told))) {
                put_list(rows, row, list)?;
            }
        }
    }
    if let Some(row) = before {
        for (key, _) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
            rows.remove(key.clone());
        }
        let gone: BTreeSet<Hash> = old.values().map(|told| told.list).collect();
        for list in gone {
            let (workspace, server) = (&row.workspace, &row.identity);
            if !rows.has(&keys::seen_of(workspace, server, &list))? {
                rows.remove(keys::list(workspace, server, &list));
            }
        }
    }
    Ok(())
}

/// The lists that a session was told, by the keys of their rows.
fn told(row: Option<&SessionRow>) -> BTreeMap<Vec<u8>, &ListedAt> {
    let of = |row: &SessionRow, told: &ListedAt| {
        let server = (&row.workspace[..], &row.identity[..]);
        keys::seen(server, &told.list, row.view, told.at.wall, row.id)
    };
    let lists = row
        .iter()
        .flat_map(|row| row.lists.iter().map(|told| (of(row, told), told)));
    lists.collect()
}

/// A list that other sessions were told has its row.
fn put_list(rows: &mut Overlay<'_>, of: &SessionRow, list: &List) -> Result<(), EngineError> {
    let key = keys::list(&of.workspace, &of.identity, &list.hash);
    if !rows.has(&key)? {
        let row = ListRow {
            identity: of.identity.clone(),
            ..list.row.clone()
        };
        rows.put(key, encode(&row));
    }
    Ok(())
}

/// Two lists, each with what its server is called.
type Pair = ((String, Hash), (String, Hash));

/// What only shows in the definitions of several servers. Comparisons are remembered: the same
/// servers are connected in run after run.
#[derive(Debug, Default)]
pub(super) struct Across {
    found: HashMap<Pair, Arc<[FoundRow]>>,
    lists: HashMap<Hash, Arc<[Value]>>,
}

impl Across {
    /// Finds what the servers of a run copy from each other.
    pub(super) fn look(
        &mut self,
        rows: &Overlay<'_>,
        sessions: &HashMap<SessionId, SessionRow>,
        run: &mut RunRow,
    ) -> Result<(), EngineError> {
        if run.servers.len() < 2 {
            return Ok(());
        }
        // Of each server all that it told in this run, and when first.
        let mut told: BTreeMap<(&str, Hash), (ListedAt, &SessionRow)> = BTreeMap::new();
        for slice in &run.slices {
            let Some(row) = sessions.get(&slice.session) else {
                continue;
            };
            for list in &row.lists {
                if slice.holds(list.at.monotonic) && !row.server.is_empty() {
                    let known = told.entry((&row.server, list.list)).or_insert((*list, row));
                    if list.at < known.0.at {
                        *known = (*list, row);
                    }
                }
            }
        }
        let told: Vec<_> = told.into_iter().take(MOST_LISTS).collect();
        for ((server, list), (at, row)) in &told {
            for ((other, theirs), (_, their_row)) in &told {
                if server == other {
                    continue;
                }
                let pair = (
                    ((*server).to_owned(), *list),
                    ((*other).to_owned(), *theirs),
                );
                let found = match self.found.get(&pair) {
                    Some(found) => Arc::clone(found),
                    None => {
                        let own = self.tools(rows, row, list)?;
                        let tools = self.tools(rows, their_row, theirs)?;
                        let others = [Server {
                            name: other,
                            tools: &tools,
                        }];
                        let found = run::copies(server, &own, &others).into_iter();
                        let found: Arc<[FoundRow]> = found.map(FoundRow::of).collect();
                        if self.found.len() >= REMEMBERED {
                            self.found.clear();
                        }
                        self.found.insert(pair, Arc::clone(&found));
                        found
                    }
                };
                for found in found.iter() {
                    // Each once, however often the lists of either were told.
                    let same = |known: &FoundAt| {
                        known.at.session == at.at.session
                            && (&known.found.code, &known.found.tool, &known.found.decoded)
                                == (&found.code, &found.tool, &found.decoded)
                    };
                    if run.across.iter().any(same) {
                        continue;
                    }
                    count(&mut run.tally.found, &found.code, found.severity, 1);
                    run.across.push(FoundAt {
                        at: at.at,
                        found: found.clone(),
                    });
                }
            }
        }
        run.across.sort_by_key(|found| found.at);
        run.across.truncate(MOST_ACROSS);
        Ok(())
    }

    /// The tools of a list, each where it stands in it.
    fn tools(
        &mut self,
        rows: &Overlay<'_>,
        of: &SessionRow,
        list: &Hash,
    ) -> Result<Arc<[Value]>, EngineError> {
        if let Some(tools) = self.lists.get(list) {
            return Ok(Arc::clone(tools));
        }
        let key = keys::list(&of.workspace, &of.identity, list);
        let row: Option<ListRow> = rows.row(&key)?;
        let definitions = row.map(|row| row.definitions).unwrap_or_default();
        let tools = definitions.iter().filter(|one| one.kind == Kind::Tool);
        let tools: Arc<[Value]> = tools
            .map(|one| serde_json::from_str(&one.text).unwrap_or_default())
            .collect();
        if self.lists.len() >= KEPT {
            self.lists.clear();
        }
        self.lists.insert(*list, Arc::clone(&tools));
        Ok(tools)
    }
}
