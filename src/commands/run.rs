//! `run`: start a program whose MCP sessions are one run.

use crate::cli::RunCommand;
use crate::error::{CommandError, exit};
use agent_trace_store::process::{RUN_MARK, TASK_MARK};
use std::process::{Command, ExitCode};

/// Becomes the program, or where that cannot be had runs it to its end and exits with its
/// status.
pub(crate) fn run(args: &RunCommand) -> Result<ExitCode, CommandError> {
    let Some((program, arguments)) = args.command.split_first() else {
        return Ok(exit::FAILURE.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).env(RUN_MARK, name(args));
    if let Some(task) = &args.task {
        command.env(TASK_MARK, task);
    }
    let failed = CommandError::failed(format!("cannot start {}", program.display()));
    #[cfg(unix)]
    return Err(failed(std::os::unix::process::CommandExt::exec(
        &mut command,
    )));
    #[cfg(not(unix))]
    match command.status() {
        Ok(status) => Ok(ExitCode::from(
            u8::try_from(status.code().unwrap_or(1) & 0xff).unwrap_or(u8::MAX),
        )),
        Err(error) => Err(failed(error)),
    }
}

/// The name that was given, or one that nothing else has.
fn name(args: &RunCommand) -> String {
    use std::hash::{BuildHasher, RandomState};
    let new = || {
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::SystemTime::UNIX_EPOCH);
        let random = RandomState::new().hash_one(std::process::id());
        format!("{:x}-{random:016x}", now.unwrap_or_default().as_millis())
    };
    args.name.clone().unwrap_or_else(new)
}
