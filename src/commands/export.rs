//! `export`: runs in one of several formats.

use crate::cli::formats::{Export, Form};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::render::short;
use agent_trace_store::portable;
use agent_trace_store::trace::Sessions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &Export, config: &Config) -> Result<u8, CommandError> {
    match args.format {
        Form::Portable => as_portable(args, config),
        _ => todo!(),
    }
}

fn as_portable(args: &Export, config: &Config) -> Result<u8, CommandError> {
    let [run] = &args.runs[..] else {
        return Err(CommandError::Usage {
            what: "a portable file holds one run".into(),
            hint: "export them one by one",
        });
    };
    let store = config.store();
    let run = store.find(run)?;
    let bytes = portable::export(&store, &run)?;
    if args.output.as_deref() == Some(Path::new("-")) {
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        out.flush()?;
        return Ok(exit::SUCCESS);
    }
    let default = || PathBuf::from(format!("{}.atrace", short(run.id)));
    let path = args.output.clone().unwrap_or_else(default);
    portable::write(&path, &bytes).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::Exists { path: path.clone() },
        _ => CommandError::path(&path)(error),
    })?;
    let (id, path) = (short(run.id), path.display());
    writeln!(anstream::stdout(), "wrote run {id} to {path}")?;
    Ok(exit::SUCCESS)
}
