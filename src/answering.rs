//! What our MCP server answers from, in whichever process it is.

use crate::config::{Config, WORKSPACE};
use crate::render::time::utc_offset;
use agent_trace_index::Runs;
use agent_trace_index::listing::Projects;
use agent_trace_mcp_tools::{Caller, Reader};
use agent_trace_store::{Store, recorder};
use std::path::Path;
use std::sync::Arc;

/// What answers are made from.
pub(crate) fn reader(config: &Config, store: &Store, runs: Arc<dyn Runs>) -> Arc<Reader> {
    Arc::new(Reader {
        runs,
        store: store.clone(),
        slow: u64::try_from(config.slow().0.as_nanos()).unwrap_or(u64::MAX),
        offset: utc_offset(),
        bytes: config.answer().0,
    })
}

/// Whoever started this process from a folder.
pub(crate) fn local(folder: &Path, all_projects: bool) -> Caller {
    let projects = if all_projects {
        Projects::All
    } else {
        let project = recorder::project(folder);
        Projects::Only(Some(project.to_string_lossy().into_owned()))
    };
    Caller::local(WORKSPACE, projects)
}
