//! The run that is meant by a name: `latest`, an id, an id that it also goes by, or the
//! beginning of one.

use crate::filed::Filed;
use crate::fit;
use crate::keys;
use crate::listing::{Listed, Projects};
use crate::local::Local;
use crate::opening::{self, SessionFiles};
use crate::pins::CHANGED;
use crate::rows::scan::count;
use crate::rows::{self, RunRow};
use crate::runs::RunsError;
use agent_trace_model::RunId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The fewest digits of an id that name a run.
const SHORTEST: usize = 4;

/// A run that was found, and where it can be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The run.
    pub run: Listed,
    /// Which files hold its sessions; not all of them if [`Listed::left_out`] says so.
    pub files: Vec<SessionFiles>,
    /// What scans found in it.
    #[serde(default)]
    pub findings: Vec<Filed>,
    /// How much more they found.
    #[serde(default)]
    pub more_findings: u64,
}

impl Local {
    /// The run of this name.
    pub(crate) fn find(
        &self,
        workspace: &str,
        projects: &Projects,
        name: &str,
    ) -> Result<Found, RunsError> {
        let id = match name {
            "latest" => self.latest(workspace, projects)?.ok_or(RunsError::Empty)?,
            _ => self.by_prefix(workspace, projects, name)?,
        };
        let row = self.engine().get(&keys::run(workspace, id))?;
        let row: Option<RunRow> = row.as_deref().and_then(rows::decode);
        let row = row.ok_or_else(|| RunsError::NotFound(name.to_owned()))?;
        let files = opening::files(&**self.engine(), &row)?;
        let (findings, more_findings) = self.filed(&row)?;
        let mut run = self.listed(row);
        for one in findings.iter().filter(|one| one.found.code == CHANGED) {
            count(&mut run.row.tally.found, CHANGED, one.found.severity, 1);
        }
        let mut found = Found {
            run,
            files,
            findings,
            more_findings,
        };
        fit::cut(&mut found);
        Ok(found)
    }

    /// The newest run that is no probe; of probes alone the newest of them.
    fn latest(&self, workspace: &str, projects: &Projects) -> Result<Option<RunId>, RunsError> {
        let prefix = keys::times_of(workspace);
        let (mut after, mut probe): (Option<Vec<u8>>, _) = (None, None);
        loop {
            let mut found = None;
            self.engine()
                .scan(&prefix, after.as_deref(), &mut |key, _| {
                    found = Some(key.to_vec());
                    false
                })?;
            let Some(key) = found else {
                return Ok(probe);
            };
            if let Some((_, run)) = keys::run_at(&prefix, &key) {
                let row = self.engine().get(&keys::run(workspace, run))?;
                let row: Option<RunRow> = row.as_deref().and_then(rows::decode);
                match row.filter(|row| projects.include(row.project.as_deref())) {
                    Some(row) if !row.probe => return Ok(Some(run)),
                    Some(_) => drop(probe.get_or_insert(run)),
                    None => {}
                }
            }
            after = Some(key);
        }
    }

    fn by_prefix(
        &self,
        workspace: &str,
        projects: &Projects,
        name: &str,
    ) -> Result<RunId, RunsError> {
        let digits = name.to_ascii_lowercase().replace('-', "");
        let unknown = || RunsError::NotFound(name.to_owned());
        if digits.len() < SHORTEST || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let mut found = BTreeSet::new();
        let mut take = |id: RunId, run: RunId| {
            if id.to_string().starts_with(&digits) {
                found.insert(run);
            }
            found.len() < 1_000
        };
        let begin = bytes_of(&digits);
        let runs = keys::runs_of(workspace);
        let prefix = [&runs[..], &begin].concat();
        self.engine().scan(&prefix, None, &mut |key, _| {
            let id = key.get(runs.len()..).and_then(id);
            id.is_none_or(|id| take(id, id))
        })?;
        let prefix = keys::aliases_of(&begin);
        self.engine().scan(&prefix, None, &mut |key, value| {
            let of: Option<(String, [u8; 16])> = rows::decode(value);
            let alias = key.get(1..).and_then(id);
            match (of, alias) {
                (Some((of, run)), Some(alias)) if of == workspace => {
                    take(alias, RunId::from_bytes(run))
                }
                _ => true,
            }
        })?;
        if *projects != Projects::All {
            // Not even how many there are of others is told.
            let mut own = BTreeSet::new();
            for run in found {
                let row = self.engine().get(&keys::run(workspace, run))?;
                let row: Option<RunRow> = row.as_deref().and_then(rows::decode);
                if row.is_some_and(|row| projects.include(row.project.as_deref())) {
                    own.insert(run);
                }
            }
            found = own;
        }
        match (found.len(), found.pop_first()) {
            (1, Some(run)) => Ok(run),
            (0, _) | (_, None) => Err(unknown()),
            (count, _) => Err(RunsError::Ambiguous {
                name: name.to_owned(),
                count,
            }),
        }
    }
}

/// The whole bytes that these hexadecimal digits begin with.
fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2).take(16);
    let byte = |pair: &[u8]| {
        let pair = str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    pairs.map_while(byte).collect()
}

fn id(bytes: &[u8]) -> Option<RunId> {
    bytes.try_into().ok().map(RunId::from_bytes)
}
