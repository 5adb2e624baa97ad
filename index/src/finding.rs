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
use crate::rows::{self, NameRow, RunRow};
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
        let row = match name {
            "latest" => self.latest(workspace, projects)?.ok_or(RunsError::Empty)?,
            _ => self.by_prefix(workspace, projects, name)?,
        };
        let files = opening::files(&**self.engine(), &row)?;
        let (findings, more_findings) = self.filed(&row, &self.changes(workspace, projects)?)?;
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
    fn latest(&self, workspace: &str, projects: &Projects) -> Result<Option<RunRow>, RunsError> {
        let (mut found, mut probe) = (None, None);
        self.engine()
            .scan(&keys::runs_of(workspace), None, &mut |_, row| {
                let row: Option<RunRow> = rows::decode(row);
                match row.filter(|row| projects.include(row.project.as_deref())) {
                    Some(row) if !row.probe => found = Some(row),
                    Some(row) => drop(probe.get_or_insert(row)),
                    None => {}
                }
                found.is_none()
            })?;
        Ok(found.or(probe))
    }

    fn by_prefix(
        &self,
        workspace: &str,
        projects: &Projects,
        name: &str,
    ) -> Result<RunRow, RunsError> {
        let digits = name.to_ascii_lowercase().replace('-', "");
        let unknown = || RunsError::NotFound(name.to_owned());
        if digits.len() < SHORTEST || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let mut found = BTreeSet::new();
        let prefix = keys::aliases_of(&bytes_of(&digits));
        self.engine().scan(&prefix, None, &mut |key, value| {
            let name: Option<NameRow> = rows::decode(value);
            let id = key.get(1..).and_then(id);
            if let (Some(name), Some(id)) = (name, id)
                && name.workspace == workspace
                && id.to_string().starts_with(&digits)
            {
                found.insert(name);
            }
            found.len() < 1_000
        })?;
        let mut rows = Vec::new();
        // Not even how many there are of others is told.
        for name in &found {
            let row = self.engine().get(&name.key())?;
            let row: Option<RunRow> = row.as_deref().and_then(rows::decode);
            rows.extend(row.filter(|row| projects.include(row.project.as_deref())));
        }
        match (rows.len(), rows.pop()) {
            (1, Some(row)) => Ok(row),
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
