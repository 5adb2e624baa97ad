//! What is found in all that was recorded. It was scanned when it was indexed: a scan reads
//! what is new, and tells what is filed.

use super::{Found, Scanned};
use crate::config::{Config, WORKSPACE};
use crate::error::CommandError;
use crate::query::Index;
use agent_trace_index::RunsError;
use agent_trace_index::filed::{InStore, ScanQuery};
use agent_trace_index::listing::Projects;
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_scanners::Severity;

pub(super) fn scan(config: &Config, least: Severity) -> Result<Scanned, CommandError> {
    let index = Index::of(config.store())?;
    let mut query = ScanQuery {
        workspace: WORKSPACE.into(),
        projects: Projects::All,
        least,
        after: 0,
    };
    let mut findings = Vec::new();
    loop {
        let Reply::Scanned(page) = index.ask(Query::Scan(query.clone()))? else {
            return Err(RunsError::Unknown(None).into());
        };
        findings.extend(page.findings.into_iter().filter_map(found));
        match page.next {
            Some(next) => query.after = next,
            None => {
                return Ok(Scanned {
                    tools: usize::try_from(page.tools).unwrap_or(usize::MAX),
                    others: usize::try_from(page.others).unwrap_or(usize::MAX),
                    findings,
                    ..Scanned::default()
                });
            }
        }
    }
}

fn found(found: InStore) -> Option<Found> {
    let finding = found.found.finding(&found.server)?;
    let step = found.step.and_then(|step| usize::try_from(step).ok());
    Some(Found {
        run: found.run.map(|run| run.to_string()),
        sessions: Some(found.sessions),
        identity: Some(found.identity),
        fields: found.fields,
        step,
        ..Found::from(finding)
    })
}
