//! `mcp`: answer assistants on standard input and output.

use crate::answering;
use crate::cli::assistants::Mcp as Args;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::secret;
use crate::serving::signals::runtime;
use agent_trace_index::Access;
use agent_trace_mcp_tools::server::Callers;
use agent_trace_mcp_tools::{Gate, Server, key, stdio};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let callers = match &args.key_file {
        Some(path) => Callers::Key(read(path)?.into()),
        None => {
            let folder = std::env::current_dir().map_err(CommandError::failed("no folder"))?;
            Callers::Local(Arc::new(answering::local(&folder, args.all_projects)))
        }
    };
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let access = Access::lasting(&store, query::settings());
        let reader = answering::reader(config, &store, Arc::new(access));
        let gate = Arc::new(Gate::of(&store));
        stdio::serve(Server::new(reader, gate, callers)).await
    });
    // Whoever still waits for a disk does not hold up the end.
    runtime.shutdown_background();
    served.map_err(CommandError::failed("cannot answer"))?;
    Ok(exit::SUCCESS)
}

/// The key in a file that only its owner can read.
fn read(path: &Path) -> Result<String, CommandError> {
    let text = secret::read(path)?;
    if key::id(&text).is_none() {
        return Err(CommandError::Usage {
            what: format!("{} holds no key", path.display()),
            hint: "`agent-trace key create --key-file FILE` writes one",
        });
    }
    Ok(text)
}
