//! What codes mean.

use crate::cli::Format;
use crate::error::{CommandError, exit};
use crate::render::json;
use agent_trace_scanners::codes::{self, CODES, Code};
use owo_colors::OwoColorize;
use std::io::Write;

/// One code, or all of them in short.
pub(super) fn print(code: Option<&str>, format: Format) -> Result<u8, CommandError> {
    let known: Vec<&Code> = match code {
        None => CODES.iter().collect(),
        Some(code) => match codes::explain(code) {
            Some(code) => vec![code],
            None => {
                return Err(CommandError::Usage {
                    what: format!("there is no code {code}"),
                    hint: "`agent-trace mcp-scan explain` lists all codes",
                });
            }
        },
    };
    match format {
        Format::Json => json::document(&known)?,
        Format::Jsonl => known.iter().try_for_each(json::line)?,
        Format::Text => {
            let mut out = anstream::stdout().lock();
            for one in &known {
                writeln!(out, "{} {}", one.code.bold(), one.title)?;
                if code.is_some() {
                    writeln!(
                        out,
                        "\n{}\n\n{}\n\n{}",
                        one.meaning,
                        one.advice,
                        one.tags.join(", ").dimmed()
                    )?;
                }
            }
        }
    }
    Ok(exit::SUCCESS)
}
