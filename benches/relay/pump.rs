//! The floor: a program that copies bytes between its client and a server, and does nothing
//! else; with `--tee FILE` it also appends every chunk to a file, which is the least that a
//! recorder can do.

use crate::Result;
use std::fs::File;
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const CHUNK: usize = 64 << 10;

type Tee = Option<Arc<Mutex<File>>>;

/// Takes `[--tee FILE] -- COMMAND...`, and exits with the command's status.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let (tee, command) = match args {
        [option, file, dashes, command @ ..] if option == "--tee" && dashes == "--" => {
            (Some(Arc::new(Mutex::new(File::create(file)?))), command)
        }
        [dashes, command @ ..] if dashes == "--" => (None, command),
        _ => return Err("pump: wrong arguments".into()),
    };
    let (program, arguments) = command.split_first().ok_or("pump: no command")?;
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (to, from) = (server.stdin.take(), server.stdout.take());
    let (to, from) = to.zip(from).ok_or("pump: no pipes")?;
    let (input, output) = own_streams()?;
    let up = tee.clone();
    std::thread::spawn(move || copy(0, input, to, &up));
    copy(1, from, output, &tee)?;
    let code = server.wait()?.code().and_then(|code| code.try_into().ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Standard input and output themselves: std's own handles would buffer.
pub(crate) fn own_streams() -> io::Result<(File, File)> {
    let (input, output) = (io::stdin(), io::stdout());
    #[cfg(unix)]
    let (input, output) = (input.as_fd(), output.as_fd());
    #[cfg(windows)]
    let (input, output) = (input.as_handle(), output.as_handle());
    let input = input.try_clone_to_owned()?;
    let output = output.try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

fn copy(direction: u8, mut from: impl Read, mut to: impl Write, tee: &Tee) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        let chunk = &buffer[..n];
        to.write_all(chunk)?;
        if let Some(file) = tee {
            let [a, b, c, d, ..] = n.to_le_bytes();
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(&[direction, a, b, c, d])?;
            file.write_all(chunk)?;
        }
    }
}
