//! `export`: runs in one of several formats.

use crate::cli::formats::{Export, Form};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::{escape, short};
use agent_trace_index::formats::export::{self, Format, Left};
use agent_trace_index::formats::strace::write::Folder;
use agent_trace_store::portable;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &Export, config: &Config) -> Result<u8, CommandError> {
    find_all(args, config)?;
    let left = match args.format {
        Form::Portable => return as_portable(args, config),
        Form::AgentStrace => as_folder(args, config)?,
        Form::Jsonl => as_file(Format::Jsonl, args, config)?,
        Form::Csv => as_file(Format::Csv, args, config)?,
        Form::Har => as_file(Format::Har, args, config)?,
        Form::Chrome => as_file(Format::Chrome, args, config)?,
    };
    let mut err = anstream::stderr().lock();
    for (what, count) in left {
        // What was written is written, whether anybody reads this or not.
        let what = escape::text(what.as_bytes(), 0);
        let _ = writeln!(err, "note: left out: {count} {what}");
    }
    Ok(exit::SUCCESS)
}

/// Looks that all runs are there, before anything is written.
fn find_all(args: &Export, config: &Config) -> Result<(), CommandError> {
    for run in &args.runs {
        query::find(config, run)?;
    }
    Ok(())
}

fn as_file(format: Format, args: &Export, config: &Config) -> Result<Left, CommandError> {
    let Some(path) = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"))
    else {
        return write(format, args, config, io::stdout().lock());
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::Exists {
            path: path.to_owned(),
        },
        _ => CommandError::path(path)(error),
    })?;
    let left = write(format, args, config, file).inspect_err(|_| {
        // Half a file looks like a whole one to some readers.
        let _ = std::fs::remove_file(path);
    })?;
    said(args, &path.display().to_string())?;
    Ok(left)
}

fn write(
    format: Format,
    args: &Export,
    config: &Config,
    out: impl Write,
) -> Result<Left, CommandError> {
    let mut export = export::begin(format, BufWriter::new(out))?;
    for run in &args.runs {
        export.add(&query::story(config, run)?)?;
    }
    Ok(export.finish()?)
}

fn as_folder(args: &Export, config: &Config) -> Result<Left, CommandError> {
    let path = args.output.clone();
    let path = path.unwrap_or_else(|| ".agent-traces".into());
    if path == Path::new("-") {
        return Err(CommandError::Usage {
            what: "agent-strace reads a folder".into(),
            hint: "give one with --output",
        });
    }
    let mut folder = Folder::open(&path)?;
    for run in &args.runs {
        folder.add(&query::story(config, run)?)?;
    }
    said(args, &path.display().to_string())?;
    Ok(folder.finish())
}

fn said(args: &Export, path: &str) -> io::Result<()> {
    let what = match &args.runs[..] {
        [_] => "run".to_owned(),
        runs => format!("{} runs", runs.len()),
    };
    let path = escape::text(path.as_bytes(), 0);
    writeln!(anstream::stdout(), "wrote {what} to {path}")
}

fn as_portable(args: &Export, config: &Config) -> Result<u8, CommandError> {
    let [run] = &args.runs[..] else {
        return Err(CommandError::Usage {
            what: "a portable file holds one run".into(),
            hint: "export them one by one",
        });
    };
    let (run, sessions) = query::entries(config, run)?;
    let id = run.row.id;
    let (store, several) = (config.store(), sessions.len() > 1);
    if several && args.output.is_some() {
        return Err(CommandError::Usage {
            what: format!("the run has {} sessions, each a file", sessions.len()),
            hint: "leave --output out: the files get names of their own",
        });
    }
    for (number, session) in sessions.iter().enumerate() {
        let bytes = portable::export(&store, session)?;
        if args.output.as_deref() == Some(Path::new("-")) {
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
            continue;
        }
        let default = || match several {
            true => PathBuf::from(format!("{}.{}.atrace", short(id), number + 1)),
            false => PathBuf::from(format!("{}.atrace", short(id))),
        };
        let path = args.output.clone().unwrap_or_else(default);
        portable::write(&path, &bytes).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => CommandError::Exists { path: path.clone() },
            _ => CommandError::path(&path)(error),
        })?;
        let (id, path) = (short(id), path.display());
        writeln!(anstream::stdout(), "wrote run {id} to {path}")?;
    }
    Ok(exit::SUCCESS)
}
