//! `mcp`: answer assistants on standard input and output.

use crate::answering;
use crate::cli::assistants::Mcp as Args;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::secret;
use crate::serving::signals::runtime;
use agent_trace_index::Access;
use agent_trace_mcp_tools::{Callers, Gate, Guard, Server, key, stdio};
use agent_trace_store::process::Process;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Environment variables in which assistants name the folder of the plugin whose server they start
/// (Claude Code 2.1.332 and Copilot CLI 1.0.102).
const PLUGIN_FOLDERS: [&str; 3] = ["COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT"];

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let callers = match &args.key_file {
        Some(path) => Callers::Key(read(path)?.into()),
        None => {
            let folder = folder().map_err(CommandError::failed("no folder"))?;
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

/// The folder that the assistant works in. Copilot CLI starts the server of a plugin in the
/// plugin's own folder, which it names in the environment: the assistant itself is in its user's.
fn folder() -> io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let of_plugin = PLUGIN_FOLDERS.iter().any(|name| {
        std::env::var_os(name)
            .and_then(|named| Path::new(&named).canonicalize().ok())
            .is_some_and(|named| here.canonicalize().is_ok_and(|here| here == named))
    });
    let assistant = Process::parent().filter(|_| of_plugin);
    Ok(assistant
        .and_then(|process| process.folder())
        .unwrap_or(here))
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
