//! `mcp`: answer assistants on standard input and output.

use crate::answering;
use crate::cli::assistants::Mcp as Args;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::serving::signals::runtime;
use agent_trace_index::Access;
use agent_trace_mcp_tools::{Callers, Gate, Guard, Server, key, stdio};
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
        stdio::serve(Guard::new(gate, callers, Server::new(reader))).await
    });
    // Whoever still waits for a disk does not hold up the end.
    runtime.shutdown_background();
    served.map_err(CommandError::failed("cannot answer"))?;
    Ok(exit::SUCCESS)
}

/// The key in a file that only its owner can read.
fn read(path: &Path) -> Result<String, CommandError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let about = std::fs::metadata(path).map_err(CommandError::path(path))?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(CommandError::Usage {
                what: format!("{} can be read by others", path.display()),
                hint: "`chmod 600` it, and make a new key if someone may have read it",
            });
        }
    }
    let text = std::fs::read_to_string(path).map_err(CommandError::path(path))?;
    let text = text.trim();
    if key::id(text).is_none() {
        return Err(CommandError::Usage {
            what: format!("{} holds no key", path.display()),
            hint: "`agent-trace key create --key-file FILE` writes one",
        });
    }
    Ok(text.to_owned())
}
