//! `export` and `import`: a run as one file.

use crate::cli::{Export, Import};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::short;
use agent_trace_store::portable;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

pub(crate) fn export(args: &Export, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let (id, sessions) = query::entries(config, &args.run)?;
    let [session] = &sessions[..] else {
        return Err(CommandError::Usage {
            what: "the run has several sessions".into(),
            hint: "export each: `agent-trace show RUN --format json` has their ids",
        });
    };
    let bytes = portable::export(&store, session)?;
    if args.output.as_deref() == Some(Path::new("-")) {
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        out.flush()?;
        return Ok(exit::SUCCESS);
    }
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| format!("{}.atrace", short(id)).into());
    portable::write(&path, &bytes).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::Exists { path: path.clone() },
        _ => CommandError::path(&path)(error),
    })?;
    writeln!(
        anstream::stdout(),
        "wrote run {} to {}",
        short(id),
        path.display()
    )?;
    Ok(exit::SUCCESS)
}

pub(crate) fn import(args: &Import, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    for path in &args.files {
        let bytes = if path == Path::new("-") {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(path)
        };
        let bytes = bytes.map_err(CommandError::path(path))?;
        let imported = portable::import(&store, bytes).map_err(|source| CommandError::Import {
            path: path.clone(),
            source,
        })?;
        for run in imported {
            let what = if run.known { "has run" } else { "imported run" };
            let (id, path) = (short(run.run), path.display());
            writeln!(anstream::stdout(), "{what} {id} from {path}")?;
        }
    }
    Ok(exit::SUCCESS)
}
