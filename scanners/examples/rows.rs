//! Reads rows from standard input and prints verdicts, as `agent-trace mcp-scan --rows -` does.

use agent_trace_scanners::{Severity, rows};
use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    if std::env::args().any(|argument| argument == "--signals") {
        let mut out = io::stdout().lock();
        for line in text.lines() {
            writeln!(
                out,
                "{}",
                agent_trace_scanners::signals(line, agent_trace_scanners::Place::Description)
            )?;
        }
        return Ok(());
    }
    let details = std::env::args().any(|argument| argument == "--details");
    let sensitive = std::env::args().any(|argument| argument == "--sensitive");
    let least = if sensitive {
        Severity::Info
    } else {
        Severity::Medium
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    for verdict in rows::answer(text.lines(), least).map_err(io::Error::other)? {
        if details {
            for finding in &verdict.findings {
                writeln!(
                    out,
                    "{} {} {} {}",
                    verdict.id, finding.code, finding.pointer, finding.quote
                )?;
            }
        } else {
            serde_json::to_writer(&mut out, &verdict)?;
            writeln!(out)?;
        }
    }
    Ok(())
}
