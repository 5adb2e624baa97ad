//! The file of accepted findings of `check` and `mcp-scan`.

use crate::cli::check::Accepted;
use crate::error::CommandError;
use crate::render::words::count;
use agent_trace_analysis::baseline::{Acceptable, Baseline};
use std::fs::File;
use std::io::{self, Read, Write};

/// The largest baseline that is read, in bytes.
const MOST: u64 = 64 << 20;

/// The accepted findings: none without a file, which need not exist if it is going to be written.
pub(crate) fn read(accepted: &Accepted) -> Result<Baseline, CommandError> {
    let Some(path) = &accepted.baseline else {
        return Ok(Baseline::default());
    };
    let mut text = Vec::new();
    let file = match File::open(path) {
        Err(error) if accepted.write_baseline && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Baseline::default());
        }
        opened => opened.map_err(CommandError::path(path))?,
    };
    file.take(MOST)
        .read_to_end(&mut text)
        .map_err(CommandError::path(path))?;
    let wrong = |error| CommandError::path(path)(io::Error::other(error));
    Baseline::read(&text).map_err(wrong)
}

/// Accepts what was found, if that is asked for; says whether it was.
pub(crate) fn write<F: Acceptable>(
    accepted: &Accepted,
    found: &[F],
    before: &Baseline,
) -> Result<bool, CommandError> {
    let Some(path) = accepted
        .baseline
        .as_deref()
        .filter(|_| accepted.write_baseline)
    else {
        return Ok(false);
    };
    let baseline = Baseline::of(found, before);
    let wrong = |error| CommandError::path(path)(io::Error::other(error));
    let text = baseline.write().map_err(wrong)?;
    // There as a whole or not at all.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp{}", std::process::id()));
    let aside = path.with_file_name(name);
    let put = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path));
    if put.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    put.map_err(CommandError::path(path))?;
    writeln!(
        anstream::stderr(),
        "{} accepted in {}",
        count(baseline.accepted.len(), "finding"),
        path.display()
    )?;
    Ok(true)
}
