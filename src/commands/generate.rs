//! `completions` and `man`, made from the definition of the command line.

use crate::cli::{Cli, Completions, Man};
use crate::error::{CommandError, exit};
use clap::CommandFactory;
use std::io::{self, Write};

pub(crate) fn completions(args: &Completions) -> Result<u8, CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "agent-trace", &mut text);
    io::stdout().lock().write_all(&text)?;
    Ok(exit::SUCCESS)
}

pub(crate) fn man(args: &Man) -> Result<u8, CommandError> {
    match &args.dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(CommandError::path(folder))?;
            clap_mangen::generate_to(Cli::command(), folder).map_err(CommandError::path(folder))?;
        }
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            io::stdout().lock().write_all(&text)?;
        }
    }
    Ok(exit::SUCCESS)
}
