//! `export`: runs in one of several formats.

use crate::cli::formats::{Export, Form};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Index, Opened};
use crate::render::{escape, short};
use agent_trace_analysis::filter::Filter;
use agent_trace_index::filed;
use agent_trace_index::formats::export::{self, Format, Left};
use agent_trace_index::formats::strace::write::Folder;
use agent_trace_model::story::Story;
use agent_trace_store::portable;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &Export, config: &Config) -> Result<u8, CommandError> {
    let wanted = &Wanted::of(args, config)?;
    let left = match args.format {
        Form::Portable => return as_portable(args, wanted, config),
        Form::AgentStrace => as_folder(args, wanted, config)?,
        Form::Jsonl => as_file(Format::Jsonl, args, wanted, config)?,
        Form::Csv => as_file(Format::Csv, args, wanted, config)?,
        Form::Har => as_file(Format::Har, args, wanted, config)?,
        Form::Chrome => as_file(Format::Chrome, args, wanted, config)?,
    };
    let mut err = anstream::stderr().lock();
    for (what, count) in left {
        // What was written is written, whether anybody reads this or not.
        let what = escape::text(what.as_bytes(), 0);
        let _ = writeln!(err, "note: left out: {count} {what}");
    }
    Ok(exit::SUCCESS)
}

/// What is to be exported.
struct Wanted {
    /// The runs by their names; all are there.
    runs: Vec<String>,
    /// Which of their steps.
    filter: Option<Filter>,
}

impl Wanted {
    fn of(args: &Export, config: &Config) -> Result<Self, CommandError> {
        let mut runs = args.runs.clone();
        let text = runs.pop_if(|word| !is_name(word));
        let filter = query::filter(config, text.as_deref())?;
        let index = Index::of(config.store())?;
        if runs.is_empty() {
            let found = index.runs(query::runs(config, text.as_deref())?, 0)?.runs;
            // The oldest first, as things happened.
            runs.extend(found.iter().rev().map(|run| run.row.id.to_string()));
            if runs.is_empty() {
                return Err(CommandError::Usage {
                    what: "no run matches".into(),
                    hint: "`agent-trace runs FILTER` lists those that do",
                });
            }
        } else {
            // Before anything is written.
            for run in &runs {
                index.find(run)?;
            }
        }
        Ok(Self { runs, filter })
    }

    /// A run with the steps that are wanted.
    fn story(&self, run: &str, config: &Config) -> Result<Story, CommandError> {
        let Opened {
            run,
            mut story,
            findings,
            ..
        } = query::open(config, run)?;
        if let Some(filter) = &self.filter {
            let codes = filed::codes(&findings);
            let matcher = filter.over(&story, run.verdict()).with(&codes);
            let wanted: Vec<bool> = story.steps.iter().map(|step| matcher.step(step)).collect();
            let mut wanted = wanted.into_iter();
            story.steps.retain(|_| wanted.next().unwrap_or_default());
        }
        Ok(story)
    }
}

/// Whether a word is the name of a run and no filter.
fn is_name(word: &str) -> bool {
    let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    word == "latest" || word.bytes().all(is_id)
}

fn as_file(
    format: Format,
    args: &Export,
    wanted: &Wanted,
    config: &Config,
) -> Result<Left, CommandError> {
    let Some(path) = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"))
    else {
        return write(format, wanted, config, io::stdout().lock());
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
    let left = write(format, wanted, config, file).inspect_err(|_| {
        // Half a file looks like a whole one to some readers.
        let _ = std::fs::remove_file(path);
    })?;
    said(wanted, &path.display().to_string())?;
    Ok(left)
}

fn write(
    format: Format,
    wanted: &Wanted,
    config: &Config,
    out: impl Write,
) -> Result<Left, CommandError> {
    let mut export = export::begin(format, BufWriter::new(out))?;
    for run in &wanted.runs {
        // An exchange is nothing without its messages.
        let story = match format {
            Format::Har => query::story(config, run)?,
            _ => wanted.story(run, config)?,
        };
        export.add(&story)?;
    }
    Ok(export.finish()?)
}

fn as_folder(args: &Export, wanted: &Wanted, config: &Config) -> Result<Left, CommandError> {
    let path = args.output.clone();
    let path = path.unwrap_or_else(|| ".agent-traces".into());
    if path == Path::new("-") {
        return Err(CommandError::Usage {
            what: "agent-strace reads a folder".into(),
            hint: "give one with --output",
        });
    }
    let mut folder = Folder::open(&path)?;
    for run in &wanted.runs {
        folder.add(&query::story(config, run)?)?;
    }
    said(wanted, &path.display().to_string())?;
    Ok(folder.finish())
}

fn said(wanted: &Wanted, path: &str) -> io::Result<()> {
    let what = match &wanted.runs[..] {
        [_] => "run".to_owned(),
        runs => format!("{} runs", runs.len()),
    };
    let path = escape::text(path.as_bytes(), 0);
    writeln!(anstream::stdout(), "wrote {what} to {path}")
}

fn as_portable(args: &Export, wanted: &Wanted, config: &Config) -> Result<u8, CommandError> {
    if wanted.runs.len() > 1 && args.output.is_some() {
        return Err(CommandError::Usage {
            what: "a portable file holds one run".into(),
            hint: "leave --output out: the files get names of their own",
        });
    }
    for run in &wanted.runs {
        one_as_portable(args, run, config)?;
    }
    Ok(exit::SUCCESS)
}

fn one_as_portable(args: &Export, run: &str, config: &Config) -> Result<(), CommandError> {
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
    Ok(())
}
