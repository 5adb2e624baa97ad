//! Finding the run that a command is about.

use crate::config::Config;
use crate::error::CommandError;
use agent_trace_model::story::Story;
use agent_trace_store::trace::{self, Sessions};

/// The run that is meant by `latest`, an id or a prefix of one.
pub(crate) fn story(config: &Config, name: &str) -> Result<Story, CommandError> {
    let store = config.store();
    let entry = store.find(name)?;
    let session = store.open(&entry)?;
    Ok(trace::story::of(entry.id, Vec::new(), &[session]))
}
