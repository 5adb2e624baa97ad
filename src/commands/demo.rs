//! `demo`: needs nothing but this binary. Records a bundled server twice, once with a run
//! that succeeds and once with one that fails, and shows both.

mod client;
pub(crate) mod server;

use crate::cli::Demo;
use crate::config::Flags;
use crate::error::{CommandError, exit};
use crate::query::{self, Opened};
use crate::render::{lines, short, status};
use agent_trace_analysis::outcomes::failures;
use agent_trace_store::Store;
use agent_trace_store::trace::Sessions;
use client::Client;
use owo_colors::OwoColorize;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;

pub(crate) fn run(args: &Demo, flags: &Flags) -> Result<u8, CommandError> {
    let folder = match &flags.store {
        Some(folder) => folder.clone(),
        None => {
            fresh_folder().map_err(CommandError::failed("cannot make a folder for the demo"))?
        }
    };
    let store = Store::at(&folder);
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "Recording two runs of a bundled server into {}\n",
        folder.display()
    )?;
    let list = || store.list().map_err(CommandError::path(store.root()));
    let known: Vec<_> = list()?.runs.iter().map(|run| run.id).collect();
    let talked = succeed(&folder).and_then(|()| fail(&folder));
    talked.map_err(CommandError::failed("cannot talk to the bundled server"))?;

    let mut made = list()?.runs;
    made.retain(|run| !known.contains(&run.id));
    if made.len() < 2 {
        return Err(CommandError::Usage {
            what: format!("nothing was recorded into {}", folder.display()),
            hint: "`agent-trace --store DIR doctor` says what is wrong with a store",
        });
    }
    for session in made.iter().rev() {
        print(
            &mut out,
            &query::open_in(&store, &session.id.to_string())?,
            args,
        )?;
    }
    let place = quoted(&folder.to_string_lossy());
    let program = program();
    writeln!(out, "Look around:")?;
    for command in [
        "runs",
        "show latest",
        "show latest -c",
        "show latest --frames",
        "doctor",
    ] {
        writeln!(
            out,
            "  {}",
            format!("{program} --store {place} {command}").cyan()
        )?;
    }
    writeln!(
        out,
        "\nRecord a server of your own: put this before its command in your assistant's configuration:"
    )?;
    writeln!(out, "  {}", format!("{program} record --").cyan())?;
    Ok(exit::SUCCESS)
}

/// How to call this program: by its name where a shell finds it, else by its path.
fn program() -> String {
    let name = "agent-trace";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    match std::env::current_exe() {
        Ok(program) if !found => quoted(&program.to_string_lossy()),
        _ => name.into(),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn print(out: &mut impl Write, run: &Opened, args: &Demo) -> io::Result<()> {
    let story = &run.story;
    let failures = failures(story);
    let status = status(story, &failures);
    let status = if failures.is_empty() {
        status.green().to_string()
    } else {
        status.red().to_string()
    };
    let id = short(story.id);
    writeln!(out, "{} {}: {status}", "Run".bold(), id.bold())?;
    let options = lines::Options {
        cut: args.string_limit.into(),
        numbers: true,
        stderr: true,
        found: &[],
    };
    lines::print(out, story, story.steps.iter(), options)?;
    writeln!(out)
}

/// A run in which an error is made good.
fn succeed(store: &std::path::Path) -> io::Result<()> {
    let mut client = Client::start(store, &name("good"))?;
    client.call("add_note", &json!({"text": "Water the plants"}))?;
    client.call("read_note", &json!({"number": 7}))?;
    client.call("read_note", &json!({"number": 1}))?;
    client.finish()
}

/// A run whose last call of a tool is an error, and which is told a secret.
fn fail(store: &std::path::Path) -> io::Result<()> {
    let mut client = Client::start(store, &name("bad"))?;
    // Put together here, so that nobody takes it for a real one.
    let secret = ["ghp", "0123456789abcdefghijklmnopqrstuvwxyz"].join("_");
    client.call(
        "add_note",
        &json!({"text": format!("The token is {secret}")}),
    )?;
    client.call("read_note", &json!({"number": 2}))?;
    client.finish()
}

/// A name for one of the two runs: without one they would be one run, since it is one client.
fn name(which: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("demo-{which}-{:016x}", RandomState::new().hash_one(which))
}

/// A new folder that only its owner can read, and that nobody prepared for us.
fn fresh_folder() -> io::Result<PathBuf> {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    let folder = std::env::temp_dir().join(format!("agent-trace-demo-{random:016x}"));
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_with_blanks_or_signs_is_quoted() {
        assert_eq!(quoted("/tmp/agent-trace"), "/tmp/agent-trace");
        assert_eq!(quoted("/tmp/my store"), "'/tmp/my store'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
